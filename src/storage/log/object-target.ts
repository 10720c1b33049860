// Flushes as objects of a store: a conditional PUT each, several at once, committed in the order of admission.
// A PUT that is slower than nearly all others lately is hedged under a second key of the same flush id; the commit names
// the one that made it, the other is an orphan for the sweeper. A flush given up is never committed later: its requests may be sent again (L9).
import type { Clock } from '../../base/clock.ts';
import { FloeError, isFloeError } from '../../base/error.ts';
import type { Logger } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { IdSource } from '../../base/prng.ts';
import { groupByPartition } from '../../metadata/batch-columns.ts';
import { HedgeTimer, LatencyWindow } from '../objects/latency-window.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import { storeFor } from '../objects/purposes.ts';
import { walKey } from '../paths.ts';
import { type Flushed, type FlushTarget, submitUntilKnown } from './flush-target.ts';
import { layoutFlush } from './layout.ts';
import type { OpenFlush } from './open-flush.ts';
import { columnsOf, type SequencerPort } from './sequencer-port.ts';
import type { SlabPool } from './slab.ts';
import { clusterTag } from './wal-format.ts';

export interface ObjectTargetOptions {
  readonly store: ObjectStore;
  readonly sequencer: SequencerPort;
  readonly slabs: SlabPool;
  readonly clusterId: string;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** A PUT that takes this long is hedged in any case. */
  readonly hedgeMs: number;
  /** Hedges per PUT of those that are merely slower than usual. */
  readonly hedgeShare: number;
  readonly giveUpMs: number;
}

const RETRY_PAUSE_MS = 100;
/** PUTs that take longer than this share of recent ones of their size are hedged. */
const HEDGE_QUANTILE = 0.97;
const HEDGE_MIN_MS = 50;
/** Sizes of flushes whose durations are compared with one another, upper bounds in bytes. */
const SIZE_CLASSES = [256 * 1024, 1024 * 1024, 4 * 1024 * 1024, Infinity];

/** How long PUTs took, shared by all flushes of a front. */
class PutTimes {
  readonly timer: HedgeTimer;
  readonly #windows = SIZE_CLASSES.map(() => new LatencyWindow());

  constructor({ clock, hedgeMs, hedgeShare }: ObjectTargetOptions) {
    const limits = { quantile: HEDGE_QUANTILE, share: hedgeShare, minMs: HEDGE_MIN_MS };
    this.timer = new HedgeTimer(clock, { ...limits, lateMs: hedgeMs });
  }

  /** Those of as many bytes, then those of more. */
  of(bytes: number): readonly LatencyWindow[] {
    return this.#windows.slice(SIZE_CLASSES.findIndex((bound) => bytes <= bound));
  }
}

export function objectTarget(options: ObjectTargetOptions): FlushTarget {
  /** Resolves when the flush before has committed or was given up. */
  let before: Promise<unknown> = Promise.resolve();
  const store = storeFor(options.store, 'produce');
  const times = new PutTimes(options);
  return {
    flush(flush, flushId) {
      const previous = before;
      const upload = new Upload({ ...options, store, times }, flush, flushId);
      const flushed = commitInOrder(options, { flush, flushId, upload, previous });
      before = flushed.catch(() => {});
      return flushed;
    },
    async stop() {
      await before;
    },
  };
}

async function commitInOrder(
  { sequencer, clock }: ObjectTargetOptions,
  more: {
    readonly flush: OpenFlush;
    readonly flushId: Uint8Array;
    readonly upload: Upload;
    readonly previous: Promise<unknown>;
  },
): Promise<Flushed> {
  const { flush, flushId, upload, previous } = more;
  const stored = upload.done();
  // A failure is looked at after the predecessor; it must not count as unhandled meanwhile.
  stored.catch(() => {});
  await previous;
  const { key, bytes } = await stored;
  const reply = await submitUntilKnown(sequencer, clock, {
    flushId,
    columns: flush.take(),
    slab: flush.slab.number,
    ...flush.takeRiders(),
    object: { key, kind: 'object', generation: 0, bytes },
  });
  return { reply, settled: upload.settled() };
}

type UploadOptions = ObjectTargetOptions & { readonly times: PutTimes };

interface Stored {
  readonly key: string;
  readonly bytes: number;
}

/** The attempts to store one flush. The first to succeed wins; the slab is held until all have settled. */
class Upload {
  readonly #options: UploadOptions;
  readonly #parts: readonly Uint8Array[];
  readonly #bytes: number;
  readonly #attempts: Promise<unknown>[] = [];
  readonly #abort = new AbortController();
  readonly #done: Promise<Stored>;

  constructor(options: UploadOptions, flush: OpenFlush, flushId: Uint8Array) {
    this.#options = options;
    const batches = columnsOf(flush.take());
    const layout = layoutFlush({
      batches,
      order: groupByPartition(batches),
      slab: flush.slab.bytes,
      position: 0,
      clusterTag: clusterTag(options.clusterId),
      generation: 0,
      flushId,
    });
    this.#parts = layout.parts;
    this.#bytes = layout.bytes;
    this.#done = this.#store();
  }

  done(): Promise<Stored> {
    return this.#done;
  }

  /** Resolves when no attempt can touch the slab any more. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#attempts);
  }

  async #store(): Promise<Stored> {
    const { clock, times, giveUpMs, metrics } = this.#options;
    const startedMs = clock.monotonic();
    const deadline = startedMs + giveUpMs;
    const windows = times.of(this.#bytes);
    const usualMs = times.timer.begin(windows);
    const first = this.#attempt(deadline);
    const hedge = times.timer.due(usualMs, this.#abort.signal).then(() => {
      metrics.count('floe_log_put_hedges_total', 'Slow PUTs that were tried a second time');
      return this.#attempt(deadline);
    });
    // An aborted pause (the first attempt succeeded) is no failure of an attempt.
    hedge.catch(() => {});
    const late = clock.sleep(giveUpMs, this.#abort.signal).then(() => {
      throw new FloeError('unavailable', `the object store did not take a flush in ${giveUpMs} ms`);
    });
    late.catch(() => {});
    try {
      const stored = await Promise.race([Promise.any([first, hedge]), late]);
      windows[0]!.add(clock.monotonic() - startedMs);
      return stored;
    } catch (caught) {
      const error = caught instanceof AggregateError ? caught.errors[0] : caught;
      throw FloeError.from(error, 'flush');
    } finally {
      this.#abort.abort();
    }
  }

  #attempt(deadline: number): Promise<Stored> {
    const running = this.#put(deadline);
    this.#attempts.push(running);
    return running;
  }

  /** One key, tried until the deadline. Each retry has a key of its own: whether the last arrived is unknown. */
  async #put(deadline: number): Promise<Stored> {
    const { store, clock, ids, clusterId, logger } = this.#options;
    for (;;) {
      const key = walKey(clusterId, { timeMs: clock.now(), id: ids.uuid() });
      try {
        await store.put(key, this.#parts, { ifNoneMatch: true, signal: this.#abort.signal });
        return { key, bytes: this.#bytes };
      } catch (caught) {
        const passing = isFloeError(caught, 'unavailable', 'timeout', 'conflict', 'exhausted');
        if (!passing || this.#abort.signal.aborted || clock.monotonic() >= deadline) throw caught;
        logger.warn({ key, error: caught.message }, 'a PUT failed, trying again');
        await clock.sleep(RETRY_PAUSE_MS, this.#abort.signal);
      }
    }
  }
}
