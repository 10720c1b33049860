// What happens to batches before they are sent: admitted into slabs in order of arrival, gathered into flushes, sent
// when the policy says so, kept back where bytes or slabs run out. A front has one; everything here is memory.
// Not for: making flushes durable (flush-target.ts), what becomes of them (commit-order.ts, front-log.ts).
import type { Clock, Timer } from '../../base/clock.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { StageRequest } from '../../metadata/tables.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import { Backlog, type WaitingBatch } from './backlog.ts';
import { type FlushPolicy, flushDueIn, maxInFlight } from './flush-policy.ts';
import type { AppendItem, AppendOutcome, StagedAppend } from './log.ts';
import { type AppendRequest, OpenFlush } from './open-flush.ts';
import type { Slab, SlabPool } from './slab.ts';

export interface AdmissionOptions {
  readonly slabs: SlabPool;
  readonly policy: FlushPolicy;
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** Admitted bytes that are not yet committed: past it the log is congested. */
  readonly inFlightBytes: number;
  /** Lets go of the oldest slab that only serves reads; false when there is none. */
  readonly freeSlab: () => boolean;
  /** Takes a flush on its way; {@link Admission.landed} is called when its outcome is known. */
  readonly send: (flush: OpenFlush) => void;
}

/** The next flush may be so many times as large as the one before. */
const MARGIN = 1.25;
/** How soon it is asked again whether a slab is free: readers in other threads let go of them without a word. */
const SLAB_RETRY_MS = 10;

export class Admission {
  readonly #options: AdmissionOptions;
  readonly #onRelief: (() => void)[] = [];
  #slab: Slab | undefined;
  /** Where in the slab the next flush begins. */
  #nextStart = 0;
  #open: OpenFlush | undefined;
  /** Of the flush before. */
  #lastBytes = 0;
  /** Full flushes that wait for their turn. */
  #ready: OpenFlush[] = [];
  #inFlight = 0;
  #inFlightBytes = 0;
  /** What found no slab. */
  readonly #backlog = new Backlog();
  #slabTimer: Timer | undefined;
  #lastAppendMs = 0;
  #lastFlushMs = 0;
  #pumpScheduled = false;
  #timer: Timer | undefined;
  #stopping = false;
  #idle: (() => void) | undefined;

  constructor(options: AdmissionOptions) {
    this.#options = options;
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

  appendWithStage(items: readonly AppendItem[], stage: StageRequest): Promise<StagedAppend> {
    return new Promise((resolve) => {
      const bytes = items.reduce((sum, item) => sum + item.bytes.length, 0);
      const flush =
        !this.#stopping && this.#backlog.empty && bytes <= this.#options.slabs.slabBytes
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
    const { slabBytes } = this.#options.slabs;
    if (!this.#stopping && bytes > slabBytes) {
      const message = `${bytes} bytes of dead letters exceed log.slab.bytes (${slabBytes})`;
      return { kind: 'failed', errorCode: ErrorCode.MESSAGE_TOO_LARGE, message };
    }
    const message = this.#stopping ? 'the broker is stopping' : 'all slabs are in use';
    return { kind: 'failed', errorCode: ErrorCode.KAFKA_STORAGE_ERROR, message };
  }

  #admit(item: AppendItem, request: AppendRequest, n: number): void {
    const refusal = this.#refusal(item);
    if (refusal !== undefined) {
      answer(request, n, failed(...refusal));
      return;
    }
    const batch = { item, request, n };
    if (this.#backlog.empty && this.#take(batch)) return;
    // Requests under way when congestion began; whoever doesn't look at `congested` is refused in time.
    if (this.#backlog.bytes + item.bytes.length > this.#options.inFlightBytes) {
      const why = 'all slabs are in use (log.slab.count): the broker is overloaded, try again';
      answer(request, n, failed(ErrorCode.KAFKA_STORAGE_ERROR, why));
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
    if (this.#stopping) return [ErrorCode.KAFKA_STORAGE_ERROR, 'the broker is stopping'];
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
    const room = this.#slab === undefined ? -1 : this.#slab.bytes.length - start;
    if (room < bytes || this.#isCramped(room)) {
      const fresh = this.#acquireSlab();
      if (fresh === undefined && room < bytes) return undefined;
      if (fresh !== undefined) this.#change(fresh);
    }
    this.#options.slabs.retain(this.#slab!.number);
    const nowMs = this.#options.clock.monotonic();
    this.#open = new OpenFlush(this.#slab!, this.#nextStart, nowMs);
    return this.#open;
  }

  /** On S3 a flush that the slab's end would cut costs a PUT before its time: what is left is no place to begin one. */
  #isCramped(room: number): boolean {
    return this.#options.policy.kind === 'object' && room < this.#lastBytes * MARGIN;
  }

  #change(fresh: Slab): void {
    if (this.#slab !== undefined) this.#options.slabs.release(this.#slab.number);
    this.#slab = fresh;
    this.#nextStart = 0;
  }

  #closeOpen(): OpenFlush | undefined {
    const open = this.#open;
    if (open === undefined) return undefined;
    this.#open = undefined;
    this.#lastBytes = open.bytes;
    this.#nextStart = open.end;
    this.#ready.push(open);
    return open;
  }

  #acquireSlab(): Slab | undefined {
    for (;;) {
      const slab = this.#options.slabs.acquire();
      if (slab !== undefined) return slab;
      if (!this.#options.freeSlab()) return undefined;
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
    if (dueInMs === 0 || (this.#stopping && this.#open !== undefined)) this.#closeOpen();
    else if (dueInMs !== Infinity) this.#timer = clock.setTimer(dueInMs, () => this.#pump());
    // Locally the whole queue goes out together once nothing is in flight; the sequencer commits it as one.
    if (policy.kind === 'group' && this.#inFlight > 0) return;
    while (this.#ready.length > 0 && this.#inFlight < maxInFlight(policy)) {
      this.#inFlight += 1;
      this.#lastFlushMs = clock.monotonic();
      this.#options.send(this.#ready.shift()!);
    }
  }

  /** The outcome of a flush is known: `work` deals with it, after the next one has left. */
  landed(flush: OpenFlush, work: () => void): void {
    this.#inFlight -= 1;
    // The next flush leaves before this outcome is worked on: the sequencer needn't wait for us.
    this.#pump();
    const congested = this.congested;
    this.#inFlightBytes -= flush.bytes;
    work();
    this.#drainBacklog();
    if (congested) this.#relieve();
  }

  /** To be called after outcomes were taken: who stops waits for the last. */
  settle(): void {
    if (this.#inFlight === 0 && this.#ready.length === 0 && this.#open === undefined)
      this.#idle?.();
  }

  get congested(): boolean {
    return this.#inFlightBytes > this.#options.inFlightBytes || !this.#backlog.empty;
  }

  get room(): number {
    return this.congested ? 0 : Math.max(1, this.#options.inFlightBytes - this.#inFlightBytes);
  }

  whenRelieved(action: () => void): void {
    if (this.congested) this.#onRelief.push(action);
    else action();
  }

  /** Refuses new batches from now on, sends what was admitted; resolves when all of it has landed. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await Promise.resolve();
    this.#slabTimer?.cancel();
    this.#backlog.drain((batch) => this.#take(batch));
    // Whoever holds the slabs now may do so for long.
    this.#backlog.drain(({ request, n }) => {
      answer(request, n, failed(ErrorCode.KAFKA_STORAGE_ERROR, 'the broker is stopping'));
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
  }

  /** Lets go of the slab that is being filled; after {@link stop}. */
  release(): void {
    if (this.#slab !== undefined) this.#options.slabs.release(this.#slab.number);
    this.#slab = undefined;
  }
}

/** Answers every batch of a flush. */
export function answerAll(
  { spans }: Pick<OpenFlush, 'spans'>,
  outcome: (n: number) => AppendOutcome,
): void {
  for (const { request, firstItem, firstBatch, count } of spans) {
    for (let i = 0; i < count; i += 1) {
      const { logAppendTimeMs } = request.items[firstItem + i]!;
      answer(request, firstItem + i, { ...outcome(firstBatch + i), logAppendTimeMs });
    }
  }
}

function answer(request: AppendRequest, n: number, outcome: AppendOutcome): void {
  request.outcomes[n] = outcome;
  request.remaining -= 1;
  if (request.remaining === 0) request.resolve(request.outcomes);
}

/** An outcome that is an error. */
export function failed(errorCode: number, errorMessage: string): AppendOutcome {
  return { errorCode, baseOffset: -1, logAppendTimeMs: -1, logStartOffset: -1, errorMessage };
}
