// The log in a front thread, put together: batches are admitted and sent (admission.ts), their commits and everybody
// else's are applied in order (commit-order.ts), the tail is served, watermarks move and wake waiters.
// Everything here is memory; durability is the flush target's.
// Not for: what a commit decides (metadata/decide.ts), cold data (cold-reader.ts), asking for others' commits
// (follower.ts).
import { assert } from '../../base/assert.ts';
import type { Clock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import type { Logger } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { Prng } from '../../base/prng.ts';
import type {
  FlushRow,
  FollowedCommit,
  LogMetadata,
  LogSnapshot,
  PartitionLog,
} from '../../metadata/log.ts';
import { isMarker, openIndex, type PackedIndex } from '../../metadata/packed-index.ts';
import type { StageRequest } from '../../metadata/tables.ts';
import type { TopicDirectory } from '../../metadata/topic-directory.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import { AbortedRanges } from './aborted-ranges.ts';
import { Admission, answerAll, failed } from './admission.ts';
import type { ColdReader } from './cold-reader.ts';
import { CommitOrder } from './commit-order.ts';
import type { FlushPolicy } from './flush-policy.ts';
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
import type { OpenFlush } from './open-flush.ts';
import { observePartitions } from './partition-gauges.ts';
import { patchAccepted } from './patch.ts';
import { readFront } from './read-front.ts';
import { ReaderPins } from './reader-pins.ts';
import { columnsOf, type FlushReply } from './sequencer-port.ts';
import type { SlabPool } from './slab.ts';
import { TailCache } from './tail.ts';

export interface FrontLogOptions {
  readonly slabs: SlabPool;
  readonly target: FlushTarget;
  readonly policy: FlushPolicy;
  readonly metadata: LogMetadata;
  /** What the log begins with; `topics` and `reader` were loaded after it. */
  readonly snapshot: LogSnapshot;
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

/** What a log of many brokers asks of its follower (follower.ts). */
export interface Primary {
  /** Resolves once everything is applied here that was committed before the call. */
  caughtUp(): Promise<void>;
  /** Somebody waits for this commit. */
  wanted(commitNumber: number): void;
  /** Somebody has begun to wait for records. */
  awaited(): void;
  /** A flush of ours was committed. */
  committed(commitNumber: number): void;
  /** {@link OthersWork.isCurrent}. */
  isCurrent(): boolean;
}

/** A commit that another way than a reply has told. */
export type OtherCommit = FlushRow & Partial<Pick<FollowedCommit, 'begun'>>;

/**
 * Slabs that the tail cache and readers leave to everything else: to what may be in flight and to the one being filled,
 * where that is no more than half of them.
 */
function slabsAtWork({ count, slabBytes }: SlabPool, inFlightBytes: number): number {
  const needed = Math.ceil(inFlightBytes / slabBytes) + 1;
  return Math.max(MIN_SLABS_AT_WORK, Math.min(needed, Math.floor(count / 2)));
}

const MIN_SLABS_AT_WORK = 4;

export class FrontLog implements Log {
  readonly #options: FrontLogOptions;
  readonly #tail: TailCache;
  readonly #partitions: FrontPartitions;
  readonly #aborted: AbortedRanges;
  readonly #admission: Admission;
  readonly #order: CommitOrder<OtherCommit>;
  readonly #flushIds: () => Uint8Array;
  readonly #stopFollowing: () => void;
  readonly #pins: ReaderPins;
  /** Undefined: nobody else commits. */
  #primary: Primary | undefined;
  #stopping: Promise<void> | undefined;

  constructor(options: FrontLogOptions) {
    this.#options = options;
    const { slabs, tailBytes, snapshot, topics } = options;
    // What is being filled, written and held by readers comes first.
    const spare = slabs.count - slabsAtWork(slabs, options.inFlightBytes);
    this.#tail = new TailCache(slabs, Math.min(tailBytes, spare * slabs.slabBytes));
    const maxSlabs = Math.max(1, spare);
    this.#pins = new ReaderPins({ slabs, maxSlabs, maxCopyBytes: options.readCopyBytes });
    this.#partitions = new FrontPartitions(topics, snapshot.partitions, snapshot.transactions);
    observePartitions(this.#partitions, topics, options.metrics);
    this.#aborted = new AbortedRanges(options);
    for (const { partitionId, lastAbortedOffset } of snapshot.transactions)
      this.#aborted.load(partitionId, lastAbortedOffset);
    this.#admission = new Admission({
      ...options,
      freeSlab: () => this.#tail.evictOldest(),
      send: (flush) => this.#send(flush),
    });
    this.#order = new CommitOrder<OtherCommit>({
      applied: snapshot.lastCommit,
      apply: (row) => this.#apply(row),
      onMissing: (commitNumber) => this.#primary?.wanted(commitNumber),
      onLanded: () => this.#admission.settle(),
    });
    this.#flushIds = flushIds(options.prng);
    this.#stopFollowing = topics.onChange((change) => {
      if (change.kind === 'deleted') this.#removePartitions(change.topic.partitions);
    });
  }

  /** Others commit too: from now on `primary` brings what they did (by {@link committed}). */
  follow(primary: Primary): void {
    this.#primary = primary;
  }

  append(items: readonly AppendItem[]): Promise<readonly AppendOutcome[]> {
    return this.#admission.append(items);
  }

  get maxAppendBytes(): number {
    return this.#options.slabs.slabBytes;
  }

  appendWithStage(items: readonly AppendItem[], stage: StageRequest): Promise<StagedAppend> {
    return this.#admission.appendWithStage(items, stage);
  }

  get congested(): boolean {
    return this.#admission.congested;
  }

  get room(): number {
    return this.#admission.room;
  }

  whenRelieved(action: () => void): void {
    this.#admission.whenRelieved(action);
  }

  // ---------------------------------------------------------------- commits

  #send(flush: OpenFlush): void {
    const flushId = this.#flushIds();
    const known = this.#order.sent(flushId);
    const landed = (outcome: () => void, commitNumber?: number) =>
      known(() => this.#admission.landed(flush, outcome), commitNumber);
    void this.#options.target.flush(flush, flushId).then(
      (flushed) => {
        this.#primary?.committed(flushed.reply.commitNumber);
        landed(() => this.#committed(flush, flushed), flushed.reply.commitNumber);
      },
      (caught) => landed(() => this.#failed(flush, caught)),
    );
  }

  /**
   * Commits that were not flushes of this front: ends of transactions told by its sequencer, everything that other
   * brokers commit. Any order, more than once: each becomes visible in its turn.
   */
  committed(commits: readonly OtherCommit[]): void {
    this.#order.take(commits);
  }

  /** Resolves once the commit is visible here. */
  whenApplied(commitNumber: number): Promise<void> {
    return this.#order.whenApplied(commitNumber);
  }

  caughtUp(): Promise<void> {
    return this.#primary?.caughtUp() ?? Promise.resolve();
  }

  get lastCommitNumber(): number {
    return this.#order.applied;
  }

  /** Commits that are here and wait for one that isn't. */
  get waitingCommits(): number {
    return this.#order.waitingRows;
  }

  /** True while anybody waits for what comes next. */
  get awaited(): boolean {
    return this.#order.awaited || this.#partitions.awaited;
  }

  #apply(commit: OtherCommit): void {
    const index = openIndex(commit.index);
    this.#options.reader.follow(commit);
    if (index.count > 0 && isMarker(index.kinds[0]!)) this.#ended(index);
    else this.#partitions.notify(this.#partitions.advance(index, commit.begun));
  }

  #ended(index: PackedIndex): void {
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
    const moved = this.#partitions.advance(openIndex(reply.index));
    if (flush.transactional) this.#partitions.begin(reply);
    answerAll(flush, (n) => this.#outcome(flush, reply, n));
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
    answerAll(flush, () => failed(errorCode, message));
    for (const { resolve } of flush.riders) resolve({ kind: 'failed', errorCode, message });
  }

  // ---------------------------------------------------------------- reads

  read(request: ReadRequest): Promise<ReadResult> {
    return readFront(request, {
      partitions: this.#partitions,
      aborted: this.#aborted,
      tail: this.#tail,
      pins: this.#pins,
      reader: this.#options.reader,
      ...(this.#primary === undefined ? {} : { others: this.#others(this.#primary) }),
    });
  }

  #others(primary: Primary) {
    return {
      isCurrent: () => primary.isCurrent(),
      refreshStart: async (partitionId: number) => {
        this.logStartsMoved(await this.#options.metadata.partitions([partitionId]));
      },
    };
  }

  commitSteps(partitionId: number, offset: number, endOffset: number): Promise<CommitSteps> {
    return this.#options.reader.commitSteps(partitionId, offset, endOffset);
  }

  watermarks(partitionId: number): Watermarks | undefined {
    return this.#partitions.watermarks(partitionId);
  }

  subscribe(partitionIds: readonly number[], listener: (partitionId: number) => void): () => void {
    const first = !this.#partitions.awaited;
    const stop = this.#partitions.subscribe(partitionIds, listener);
    if (first) this.#primary?.awaited();
    return stop;
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

  /**
   * Log starts and sizes changed in the metadata store.
   * @returns the partitions that had moved on here since: they are better asked about again.
   */
  logStartsMoved(moved: readonly PartitionLog[]): readonly number[] {
    return this.#partitions.moveLogStarts(moved);
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
    await this.#admission.stop();
    this.#stopFollowing();
    await this.#options.target.stop();
    this.#tail.clear();
    this.#admission.release();
    await this.#options.reader.stop();
    this.#order.stop();
  }
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
