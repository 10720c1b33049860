// The sequencer of a broker among several: commits flushes whose bytes lie in objects already, in the order of calls,
// all that wait in one call of the shared metadata store (group commit).
// What a failure means decides what comes next. Nothing happened: tried again until the flush is given up, then refused,
// and never committed later (L9). Nobody knows: asked again under the same flush ids for as long as it takes, for the
// first attempt may still be under way in the store, and only its outcome or ours under the same id ends that (L5).
// A flush that can't be committed (its object is being deleted) fails alone.
// Not for: local write-ahead files and SQLite (sequencer.ts), when a flush is sent (flush-policy.ts).
import { assert } from '../../base/assert.ts';
import type { Clock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import type { Logger } from '../../base/log.ts';
import { type BatchColumns, groupByPartition } from '../../metadata/batch-columns.ts';
import type { CommittedFlush, FlushCommit, LogMetadata } from '../../metadata/log.ts';
import { timeOfKey } from '../paths.ts';
import {
  columnsOf,
  type FlushReply,
  type FlushRequest,
  type SequencerPort,
} from './sequencer-port.ts';

export interface StoreSequencerOptions {
  readonly metadata: Pick<LogMetadata, 'commit'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** `log.put.give.up.ms`: a store that is away for longer fails the flush. */
  readonly giveUpMs: number;
  /** A flush whose object was begun earlier than this is committed no more, see `FlushCommit.notAfterMs`. */
  readonly horizonMs: number;
}

/**
 * Far more than a flush takes, and far less than orphans live (`log.orphan.age.ms`) and outcomes are remembered
 * (`log.follow.horizon.ms`): a writer that was paused in between can neither commit what was swept, nor twice.
 */
export const COMMIT_HORIZON_MS = 600_000;

interface Waiting {
  readonly request: FlushRequest;
  readonly batches: BatchColumns;
  readonly deadlineMs: number;
  /** True once an attempt may have committed it, or may yet. */
  doubtful: boolean;
  readonly resolve: (reply: FlushReply) => void;
  readonly reject: (error: FloeError) => void;
}

/** Flushes in one transaction. */
const MAX_GROUP = 32;
/** First pause after a failure; doubles up to a second. */
const FIRST_PAUSE_MS = 20;

export class StoreSequencer implements SequencerPort {
  readonly #options: StoreSequencerOptions;
  readonly #queue: Waiting[] = [];
  #running: Promise<void> | undefined;
  #stopping = false;

  constructor(options: StoreSequencerOptions) {
    this.#options = options;
  }

  submit(request: FlushRequest): Promise<FlushReply> {
    assert(
      request.object !== undefined,
      'L11: what is committed to a shared store lies in an object',
    );
    const deadlineMs = this.#options.clock.monotonic() + this.#options.giveUpMs;
    return new Promise((resolve, reject) => {
      const batches = columnsOf(request.columns);
      const doubtful = request.again === true;
      this.#queue.push({ request, batches, deadlineMs, doubtful, resolve, reject });
      this.#running ??= this.#drain();
    });
  }

  async #drain(): Promise<void> {
    try {
      while (this.#queue.length > 0) await this.#commit(this.#queue.splice(0, MAX_GROUP));
    } finally {
      // In the same turn as the last look at the queue: who comes later begins anew.
      this.#running = undefined;
    }
  }

  /** Until each of them has an answer. */
  async #commit(group: readonly Waiting[]): Promise<void> {
    let left = group;
    for (let pauseMs = FIRST_PAUSE_MS; left.length > 0; pauseMs = Math.min(pauseMs * 2, 1_000)) {
      try {
        const { clock, horizonMs } = this.#options;
        const flushes = left.map((waiting) => toCommit(waiting, clock.now(), horizonMs));
        answer(left, await this.#options.metadata.commit(flushes));
        return;
      } catch (caught) {
        if (caught instanceof Error && caught.name === 'AssertionError') throw caught;
        const error = FloeError.from(caught, 'commit');
        if (isPassing(error)) left = await this.#later(left, error, pauseMs);
        else if (left.length > 1) return this.#alone(left);
        // An object that is being deleted, or comes too late, was in no commit before, nor will it be. Anything else
        // says nothing of that.
        else if (error.code === 'conflict' || !left[0]!.doubtful) return left[0]!.reject(error);
        else left = await this.#later(left, error, pauseMs);
      }
    }
  }

  /** One of them can't be committed: the others can, in their order. */
  async #alone(group: readonly Waiting[]): Promise<void> {
    for (const waiting of group) await this.#commit([waiting]);
  }

  /** Waits, gives up what may be given up; returns what is tried again. */
  async #later(
    group: readonly Waiting[],
    error: FloeError,
    pauseMs: number,
  ): Promise<readonly Waiting[]> {
    const { clock, logger } = this.#options;
    if (error.code === 'timeout') for (const waiting of group) waiting.doubtful = true;
    logger.warn({ error: error.message, flushes: group.length }, 'commit failed, trying again');
    await clock.sleep(pauseMs);
    const nowMs = clock.monotonic();
    return group.filter((waiting) => {
      const mayGo = !waiting.doubtful || this.#stopping || !isPassing(error);
      if (!mayGo || nowMs < waiting.deadlineMs) return true;
      waiting.reject(new FloeError('unavailable', `not committed in time: ${error.message}`));
      return false;
    });
  }

  async retireFiles(): Promise<void> {}

  async roll(): Promise<void> {}

  /** Resolves when everything submitted has its answer; what is in doubt then waits no longer than its time. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await this.#running;
  }
}

/** The store is away or at odds with others for a moment, or nobody knows what happened. */
function isPassing({ code }: FloeError): boolean {
  return code === 'timeout' || code === 'unavailable' || code === 'exhausted';
}

function toCommit({ request, batches }: Waiting, nowMs: number, horizonMs: number): FlushCommit {
  const { flushId, riders } = request;
  const object = request.object!;
  const notAfterMs = (timeOfKey(object.key) ?? nowMs) + horizonMs;
  const flush = { flushId, object, nowMs, notAfterMs, batches };
  return riders === undefined ? flush : { ...flush, riders };
}

function answer(group: readonly Waiting[], committed: readonly CommittedFlush[]): void {
  for (const [n, { request, batches, resolve }] of group.entries()) {
    const flush = committed[n]!;
    const { commitNumber, committedMs, objectId, objectKey, generation, index } = flush;
    const { errorCodes, baseOffsets, duplicates, riders } = flush;
    resolve({
      commitNumber,
      committedMs,
      objectId,
      objectKey,
      generation,
      columns: request.columns,
      errorCodes,
      baseOffsets,
      duplicates,
      ...(riders === undefined ? {} : { riders }),
      order: groupByPartition(batches),
      index,
    });
  }
}
