// The log in a front thread: admits batches into slabs in order of arrival, sends flushes, hands out offsets,
// serves the tail, keeps watermarks and wakes waiters. Everything here is memory; durability is the flush target's.
// Not for: what a commit decides (metadata/decide.ts), cold data (cold-reader.ts).
import { assert } from '../../base/assert.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import type { Logger } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { Prng } from '../../base/prng.ts';
import type { FlushRow, LogMetadata, PartitionLog } from '../../metadata/log.ts';
import { openIndex } from '../../metadata/packed-index.ts';
import type { StageRequest } from '../../metadata/tables.ts';
import type { TopicDirectory } from '../../metadata/topic-directory.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import { AbortedRanges } from './aborted-ranges.ts';
import { Backlog, type WaitingBatch } from './backlog.ts';
import type { ColdReader } from './cold-reader.ts';
import { type FlushPolicy, flushDueIn, maxInFlight } from './flush-policy.ts';
import type { Flushed, FlushTarget } from './flush-target.ts';
import { FrontPartitions } from './front-partitions.ts';
import type {
  AppendItem,
  AppendOutcome,
  CommitSteps,
  Isolation,
  Log,
  OffsetAtTime,
  ReadRequest,
  ReadResult,
  StagedAppend,
  Watermarks,
} from './log.ts';
import { type AppendRequest, OpenFlush } from './open-flush.ts';
import { patchAccepted } from './patch.ts';
import { readFront } from './read-front.ts';
import { ReaderPins } from './reader-pins.ts';
import { columnsOf, type FlushReply } from './sequencer-port.ts';
import type { Slab, SlabPool } from './slab.ts';
import { TailCache } from './tail.ts';

export interface FrontLogOptions {
  readonly slabs: SlabPool;
  readonly target: FlushTarget;
  readonly policy: FlushPolicy;
  readonly metadata: LogMetadata;
  readonly topics: TopicDirectory;
  readonly reader: ColdReader;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly tailBytes: number;
  readonly inFlightBytes: number;
  /** Most bytes of copies that readers hold when they may hold no more slabs. */
  readonly readCopyBytes: number;
}

/** Slabs that the tail cache and readers leave to everything else. */
const SLABS_AT_WORK = 4;
/** How soon it is asked again whether a slab is free: readers in other threads let go of them without a word. */
const SLAB_RETRY_MS = 10;

interface Flight {
  readonly flush: OpenFlush;
  outcome: (() => void) | undefined;
  /** Of a flush that was committed. */
  commitNumber: number | undefined;
}

/** What the metadata store says of the log at the start. */
interface Loaded {
  readonly partitions: readonly PartitionLog[];
  readonly transactions: Awaited<ReturnType<LogMetadata['transactions']>>;
  readonly lastCommit: number;
}

export class FrontLog implements Log {
  readonly #options: FrontLogOptions;
  readonly #tail: TailCache;
  readonly #partitions: FrontPartitions;
  readonly #aborted: AbortedRanges;
  readonly #flushIds: () => Uint8Array;
  readonly #stopFollowing: () => void;
  readonly #onRelief: (() => void)[] = [];
  #slab: Slab | undefined;
  #open: OpenFlush | undefined;
  /** Full flushes that wait for their turn. */
  #ready: OpenFlush[] = [];
  #inFlight = 0;
  /** Sent flushes in order, until their outcomes are taken. */
  readonly #flights: Flight[] = [];
  /** Commits of markers that wait for the commits before them, in order. */
  readonly #markers: FlushRow[] = [];
  /** Number of the newest commit that is visible here; there is no gap before it. */
  #applied: number;
  readonly #onApplied: { readonly commitNumber: number; readonly resolve: () => void }[] = [];
  #inFlightBytes = 0;
  readonly #pins: ReaderPins;
  /** What found no slab. */
  readonly #backlog = new Backlog();
  #slabTimer: Timer | undefined;
  #lastAppendMs = 0;
  #lastFlushMs = 0;
  #pumpScheduled = false;
  #timer: Timer | undefined;
  #stopping: Promise<void> | undefined;
  #idle: (() => void) | undefined;

  private constructor(options: FrontLogOptions, loaded: Loaded) {
    this.#options = options;
    this.#applied = loaded.lastCommit;
    const { slabs, tailBytes } = options;
    // What is being filled, written and held by readers comes first.
    const spare = (slabs.count - SLABS_AT_WORK) * slabs.slabBytes;
    this.#tail = new TailCache(slabs, Math.min(tailBytes, spare));
    const maxSlabs = Math.max(1, slabs.count - SLABS_AT_WORK);
    this.#pins = new ReaderPins({ slabs, maxSlabs, maxCopyBytes: options.readCopyBytes });
    this.#partitions = new FrontPartitions(options.topics, loaded.partitions, loaded.transactions);
    this.#aborted = new AbortedRanges(options);
    for (const { partitionId, lastAbortedOffset } of loaded.transactions)
      this.#aborted.load(partitionId, lastAbortedOffset);
    this.#flushIds = flushIds(options.prng);
    this.#stopFollowing = options.topics.onChange((change) => {
      if (change.kind === 'deleted') this.#removePartitions(change.topic.partitions);
    });
  }

  /** Loads watermarks; the reader has its own start. */
  static async open(options: FrontLogOptions): Promise<FrontLog> {
    const { metadata } = options;
    return new FrontLog(options, {
      partitions: await metadata.partitions(),
      transactions: await metadata.transactions(),
      lastCommit: await metadata.lastCommitNumber(),
    });
  }

  append(items: readonly AppendItem[]): Promise<readonly AppendOutcome[]> {
    return new Promise((resolve) => {
      const request: AppendRequest = {
        items,
        outcomes: new Array<AppendOutcome>(items.length),
        remaining: items.length,
        resolve,
      };
      for (const [n, item] of items.entries()) this.#admit(item, request, n);
      if (items.length === 0) resolve([]);
      this.#schedulePump();
    });
  }

  get maxAppendBytes(): number {
    return this.#options.slabs.slabBytes;
  }

  appendWithStage(items: readonly AppendItem[], stage: StageRequest): Promise<StagedAppend> {
    return new Promise((resolve) => {
      const bytes = items.reduce((sum, item) => sum + item.bytes.length, 0);
      const flush =
        this.#stopping === undefined && this.#backlog.empty && bytes <= this.maxAppendBytes
          ? this.#flushFor(bytes, items.length)
          : undefined;
      if (flush === undefined) return resolve(this.#stageRefusal(bytes));
      const outcomes = new Array<AppendOutcome>(items.length);
      flush.addWithStage(
        { items, outcomes, remaining: items.length, resolve() {} },
        stage,
        resolve,
      );
      this.#inFlightBytes += bytes;
      this.#lastAppendMs = this.#options.clock.monotonic();
      this.#schedulePump();
    });
  }

  #stageRefusal(bytes: number): StagedAppend {
    if (this.#stopping === undefined && bytes > this.maxAppendBytes) {
      const message = `${bytes} bytes of dead letters exceed log.slab.bytes (${this.maxAppendBytes})`;
      return { kind: 'failed', errorCode: ErrorCode.MESSAGE_TOO_LARGE, message };
    }
    const message =
      this.#stopping === undefined ? 'all slabs are in use' : 'the broker is stopping';
    return { kind: 'failed', errorCode: ErrorCode.KAFKA_STORAGE_ERROR, message };
  }

  #admit(item: AppendItem, request: AppendRequest, n: number): void {
    const refusal = this.#refusal(item);
    if (refusal !== undefined) {
      this.#answer(request, n, failed(...refusal));
      return;
    }
    const batch = { item, request, n };
    if (this.#backlog.empty && this.#take(batch)) return;
    // Requests under way when congestion began; whoever doesn't look at `congested` is refused in time.
    if (this.#backlog.bytes + item.bytes.length > this.#options.inFlightBytes) {
      const why = 'all slabs are in use (log.slab.count): the broker is overloaded, try again';
      this.#answer(request, n, failed(ErrorCode.KAFKA_STORAGE_ERROR, why));
      return;
    }
    this.#backlog.add(batch);
    this.#options.metrics.count('floe_log_backlog_batches_total', 'Batches that waited for a slab');
    this.#retrySlabs();
  }

  /** False when there is no slab for the batch. */
  #take({ item, request, n }: WaitingBatch): boolean {
    const flush = this.#flushFor(item.bytes.length);
    if (flush === undefined) return false;
    flush.add(item, request, n);
    this.#inFlightBytes += item.bytes.length;
    this.#lastAppendMs = this.#options.clock.monotonic();
    return true;
  }

  #retrySlabs(): void {
    this.#slabTimer ??= this.#options.clock.setTimer(SLAB_RETRY_MS, () => {
      this.#slabTimer = undefined;
      this.#drainBacklog();
    });
  }

  /** Admits what waited for slabs, in order. */
  #drainBacklog(): void {
    if (this.#backlog.empty) return;
    const congested = this.congested;
    this.#backlog.drain((batch) => this.#take(batch));
    if (!this.#backlog.empty) this.#retrySlabs();
    this.#pump();
    if (congested) this.#relieve();
  }

  #relieve(): void {
    if (!this.congested) for (const action of this.#onRelief.splice(0)) action();
  }

  #refusal(item: AppendItem): readonly [number, string] | undefined {
    if (this.#stopping !== undefined)
      return [ErrorCode.KAFKA_STORAGE_ERROR, 'the broker is stopping'];
    const { slabBytes } = this.#options.slabs;
    if (item.bytes.length <= slabBytes) return undefined;
    const text = `a batch of ${item.bytes.length} bytes exceeds log.slab.bytes (${slabBytes})`;
    return [ErrorCode.MESSAGE_TOO_LARGE, text];
  }

  /** The open flush with room for `bytes`; undefined when no slab can be had. */
  #flushFor(bytes: number, batches = 1): OpenFlush | undefined {
    if (this.#open?.hasRoom(bytes, batches) === true) return this.#open;
    const start = this.#open?.end ?? this.#nextStart;
    this.#closeOpen();
    if (this.#slab === undefined || start + bytes > this.#slab.bytes.length) {
      const fresh = this.#acquireSlab();
      if (fresh === undefined) return undefined;
      if (this.#slab !== undefined) this.#options.slabs.release(this.#slab.number);
      this.#slab = fresh;
      this.#nextStart = 0;
    }
    this.#options.slabs.retain(this.#slab.number);
    const nowMs = this.#options.clock.monotonic();
    this.#open = new OpenFlush(this.#slab, this.#nextStart, nowMs);
    return this.#open;
  }

  /** Where in the current slab the next flush begins. */
  #nextStart = 0;

  #closeOpen(): OpenFlush | undefined {
    const open = this.#open;
    if (open === undefined) return undefined;
    this.#open = undefined;
    this.#nextStart = open.end;
    this.#ready.push(open);
    return open;
  }

  #acquireSlab(): Slab | undefined {
    for (;;) {
      const slab = this.#options.slabs.acquire();
      if (slab !== undefined) return slab;
      if (!this.#tail.evictOldest()) return undefined;
    }
  }

  /** At the end of the event loop's turn, so that one turn's requests share a flush. */
  #schedulePump(): void {
    if (this.#pumpScheduled) return;
    this.#pumpScheduled = true;
    setImmediate(() => {
      this.#pumpScheduled = false;
      this.#pump();
    });
  }

  #pump(): void {
    const { policy, clock } = this.#options;
    this.#timer?.cancel();
    this.#timer = undefined;
    const dueInMs = flushDueIn(policy, {
      nowMs: clock.monotonic(),
      openBytes: this.#open?.bytes ?? 0,
      openedMs: this.#open?.startedMs ?? 0,
      lastAppendMs: this.#lastAppendMs,
      lastFlushMs: this.#lastFlushMs,
      inFlight: this.#inFlight,
    });
    if (dueInMs === 0 || (this.#stopping !== undefined && this.#open !== undefined))
      this.#closeOpen();
    else if (dueInMs !== Infinity) this.#timer = clock.setTimer(dueInMs, () => this.#pump());
    // Locally the whole queue goes out together once nothing is in flight; the sequencer commits it as one.
    if (policy.kind === 'group' && this.#inFlight > 0) return;
    while (this.#ready.length > 0 && this.#inFlight < maxInFlight(policy))
      this.#send(this.#ready.shift()!);
  }

  #send(flush: OpenFlush): void {
    this.#inFlight += 1;
    this.#lastFlushMs = this.#options.clock.monotonic();
    const flight: Flight = { flush, outcome: undefined, commitNumber: undefined };
    this.#flights.push(flight);
    const landed = (outcome: () => void, commitNumber?: number) => {
      flight.outcome = outcome;
      flight.commitNumber = commitNumber;
      this.#land();
    };
    void this.#options.target.flush(flush, this.#flushIds()).then(
      (flushed) => landed(() => this.#committed(flush, flushed), flushed.reply.commitNumber),
      (caught) => landed(() => this.#failed(flush, caught)),
    );
  }

  /** Transactions have ended: their markers become visible in their turn. */
  markersCommitted(commit: FlushRow): void {
    this.#markers.push(commit);
    this.#land();
  }

  /** Resolves once the commit is visible here. */
  whenApplied(commitNumber: number): Promise<void> {
    if (this.#applied >= commitNumber) return Promise.resolve();
    return new Promise((resolve) => this.#onApplied.push({ commitNumber, resolve }));
  }

  /**
   * Takes outcomes in the order of sending, which is that of commits: when the reply of one was lost and must be asked
   * again, its successors wait, or their records would be visible behind a hole (L3, L4). Markers come by another way;
   * the numbers of commits, which have no gap, say whose turn it is.
   */
  #land(): void {
    for (;;) {
      if (this.#markers[0]?.commitNumber === this.#applied + 1) {
        this.#ended(this.#markers.shift()!);
        continue;
      }
      const first = this.#flights[0];
      if (first?.outcome === undefined || (first.commitNumber ?? 0) > this.#applied + 1) break;
      const { flush, outcome, commitNumber } = this.#flights.shift()!;
      this.#applied = commitNumber ?? this.#applied;
      this.#inFlight -= 1;
      // The next flush leaves before this outcome is worked on: the sequencer needn't wait for us.
      this.#pump();
      const congested = this.congested;
      this.#inFlightBytes -= flush.bytes;
      outcome!();
      this.#drainBacklog();
      if (congested) this.#relieve();
    }
    this.#tellApplied();
    if (this.#inFlight === 0 && this.#ready.length === 0 && this.#open === undefined)
      this.#idle?.();
  }

  #tellApplied(): void {
    if (this.#onApplied.length === 0) return;
    for (const waiter of this.#onApplied.splice(0)) {
      if (waiter.commitNumber > this.#applied) this.#onApplied.push(waiter);
      else waiter.resolve();
    }
  }

  #ended(commit: FlushRow): void {
    const index = openIndex(commit.index);
    this.#applied = commit.commitNumber;
    this.#options.reader.follow(commit);
    this.#tail.addMarkers(index);
    const moved = this.#partitions.end(index, (range) => this.#aborted.add(range));
    this.#partitions.notify(moved);
  }

  #committed(flush: OpenFlush, { reply, settled }: Flushed): void {
    const { reader, slabs } = this.#options;
    const batches = columnsOf(reply.columns);
    const patched = settled === undefined;
    if (patched) patchAccepted(flush.slab.bytes, batches, reply);
    const markPatched = this.#tail.add({ slab: flush.slab, batches, patched, ...reply });
    const release = () => slabs.release(flush.slab.number);
    if (settled === undefined) release();
    else {
      void settled.then(() => {
        patchAccepted(flush.slab.bytes, batches, reply);
        markPatched();
        release();
      });
    }
    reader.follow(reply);
    const moved = this.#partitions.advance(reply.index);
    if (flush.transactional) this.#partitions.begin(reply);
    this.#answerAll(flush, (n) => this.#outcome(flush, reply, n));
    for (const [n, { resolve }] of flush.riders.entries()) resolve(reply.riders![n]!);
    this.#partitions.notify(moved);
    this.#observe(flush);
  }

  #observe(flush: OpenFlush): void {
    const { metrics, clock } = this.#options;
    const seconds = (clock.monotonic() - flush.startedMs) / 1000;
    metrics.seconds('floe_log_flush_seconds', 'First admission to commit of a flush', seconds);
    metrics.count('floe_log_flush_bytes_total', 'Bytes of committed flushes', {}, flush.bytes);
    metrics.count('floe_log_flush_batches_total', 'Batches of committed flushes', {}, flush.count);
  }

  #outcome(flush: OpenFlush, reply: FlushReply, n: number): AppendOutcome {
    const errorCode = reply.errorCodes[n]!;
    if (errorCode !== 0) return failed(errorCode, '');
    const partitionId = columnsOf(reply.columns).partitionIds[n]!;
    assert(flush.count > n, 'an outcome belongs to a batch');
    return {
      errorCode,
      baseOffset: reply.baseOffsets[n]!,
      logAppendTimeMs: -1,
      logStartOffset: this.#partitions.get(partitionId)?.logStartOffset ?? 0,
      errorMessage: '',
    };
  }

  #failed(flush: OpenFlush, caught: unknown): void {
    const error = FloeError.from(caught, 'flush');
    this.#options.slabs.release(flush.slab.number);
    this.#options.logger.warn({ error: error.message, batches: flush.count }, 'flush refused');
    // Retriable whatever the cause: the client may try again, here or at another broker (L9).
    const errorCode = ErrorCode.KAFKA_STORAGE_ERROR;
    const { message } = error;
    this.#answerAll(flush, () => failed(errorCode, message));
    for (const { resolve } of flush.riders) resolve({ kind: 'failed', errorCode, message });
  }

  #answerAll(flush: OpenFlush, outcome: (n: number) => AppendOutcome): void {
    for (const { request, firstItem, firstBatch, count } of flush.spans) {
      for (let i = 0; i < count; i += 1) {
        const item = request.items[firstItem + i]!;
        const answer = outcome(firstBatch + i);
        this.#answer(request, firstItem + i, { ...answer, logAppendTimeMs: item.logAppendTimeMs });
      }
    }
  }

  #answer(request: AppendRequest, n: number, outcome: AppendOutcome): void {
    request.outcomes[n] = outcome;
    request.remaining -= 1;
    if (request.remaining === 0) request.resolve(request.outcomes);
  }

  get congested(): boolean {
    return this.#inFlightBytes > this.#options.inFlightBytes || !this.#backlog.empty;
  }

  whenRelieved(action: () => void): void {
    if (this.congested) this.#onRelief.push(action);
    else action();
  }

  read(request: ReadRequest): Promise<ReadResult> {
    return readFront(request, {
      partitions: this.#partitions,
      aborted: this.#aborted,
      tail: this.#tail,
      pins: this.#pins,
      reader: this.#options.reader,
    });
  }

  commitSteps(partitionId: number, offset: number, endOffset: number): Promise<CommitSteps> {
    return this.#options.reader.commitSteps(partitionId, offset, endOffset);
  }

  get lastCommitNumber(): number {
    return this.#applied;
  }

  watermarks(partitionId: number): Watermarks | undefined {
    return this.#partitions.watermarks(partitionId);
  }

  subscribe(partitionIds: readonly number[], listener: (partitionId: number) => void): () => void {
    return this.#partitions.subscribe(partitionIds, listener);
  }

  async offsetForTime(
    partitionId: number,
    timestampMs: number,
    isolation: Isolation,
  ): Promise<OffsetAtTime | undefined> {
    const range = this.#range(partitionId, isolation);
    return range && this.#options.reader.offsetForTime(partitionId, timestampMs, range);
  }

  async maxTimestamp(
    partitionId: number,
    isolation: Isolation = 'read_uncommitted',
  ): Promise<OffsetAtTime | undefined> {
    const range = this.#range(partitionId, 'read_uncommitted');
    const found = range && (await this.#options.reader.maxTimestamp(partitionId, range));
    if (found === undefined || isolation === 'read_uncommitted') return found;
    const marks = this.#partitions.watermarks(partitionId);
    return marks !== undefined && found.offset < marks.lastStableOffset ? found : undefined;
  }

  /** Log start and end as the isolation sees them; undefined when there is nothing between. */
  #range(partitionId: number, isolation: Isolation) {
    const marks = this.#partitions.watermarks(partitionId);
    if (marks === undefined) return undefined;
    const committed = isolation === 'read_committed';
    const endOffset = committed ? marks.lastStableOffset : marks.highWatermark;
    const { logStartOffset } = marks;
    return endOffset > logStartOffset ? { logStartOffset, endOffset } : undefined;
  }

  async deleteRecords(partitionId: number, offset: number): Promise<number> {
    const moved = await this.#options.metadata.deleteRecords(partitionId, offset);
    this.logStartsMoved([moved]);
    return moved.logStartOffset;
  }

  /** Retention moved log starts in the metadata store. */
  logStartsMoved(moved: readonly PartitionLog[]): void {
    this.#partitions.moveLogStarts(moved);
  }

  /** Records below `endOffset` were compacted by key: older copies in memory are not served any more. */
  compacted(partitionId: number, endOffset: number): void {
    this.#tail.dropBelow(partitionId, endOffset);
  }

  /** These markers of aborted transactions are about to go: see AbortedRanges. */
  abortsGone(partitionId: number, markerOffsets: readonly number[]): void {
    this.#aborted.forget(partitionId, markerOffsets);
  }

  sizeOf(partitionId: number): number {
    return this.#partitions.get(partitionId)?.sizeBytes ?? 0;
  }

  #removePartitions(partitionIds: readonly number[]): void {
    for (const partitionId of partitionIds) {
      this.#tail.removePartition(partitionId);
      this.#options.reader.removePartition(partitionId);
      this.#aborted.remove(partitionId);
    }
    this.#partitions.remove(partitionIds);
  }

  /** Refuses new batches, flushes what was admitted, lets go of every slab. */
  stop(): Promise<void> {
    this.#stopping ??= this.#finish();
    return this.#stopping;
  }

  async #finish(): Promise<void> {
    await Promise.resolve();
    this.#slabTimer?.cancel();
    this.#backlog.drain((batch) => this.#take(batch));
    // Whoever holds the slabs now may do so for long.
    this.#backlog.drain(({ request, n }) => {
      this.#answer(request, n, failed(ErrorCode.KAFKA_STORAGE_ERROR, 'the broker is stopping'));
      return true;
    });
    if (this.#inFlight > 0 || this.#ready.length > 0 || this.#open !== undefined) {
      const idle = new Promise<void>((resolve) => {
        this.#idle = resolve;
      });
      this.#pump();
      await idle;
    }
    this.#timer?.cancel();
    this.#stopFollowing();
    await this.#options.target.stop();
    this.#tail.clear();
    if (this.#slab !== undefined) this.#options.slabs.release(this.#slab.number);
    this.#slab = undefined;
    await this.#options.reader.stop();
    for (const { resolve } of this.#onApplied.splice(0)) resolve();
  }
}

function failed(errorCode: number, errorMessage: string): AppendOutcome {
  return { errorCode, baseOffset: -1, logAppendTimeMs: -1, logStartOffset: -1, errorMessage };
}

/** Flush ids of one life of a front: eight random bytes, then a counter. */
function flushIds(prng: Prng): () => Uint8Array {
  const life = prng.bytes(8);
  let counter = 0;
  return () => {
    const id = new Uint8Array(16);
    id.set(life);
    new DataView(id.buffer).setFloat64(8, counter);
    counter += 1;
    return id;
  };
}
