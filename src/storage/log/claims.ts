// What one maintainer of several has claimed, so that none rewrites what another is at work on, and its turn to swap what
// it has made of flushes: rewritten side by side, they are swapped in the order of their commits (decision 0040). Under no
// lease a maintainer is alone: everything is its own and at once.
// Not for: what is worth rewriting (compactor.ts); the transactions in which claims hold (metadata/objects.ts).
import type { Clock } from '../../base/clock.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { LeaseToken } from '../../metadata/leases.ts';
import { type LogObject, type ObjectsMetadata, overtaking } from '../../metadata/objects.ts';

export interface ClaimsOptions {
  readonly objects: Pick<ObjectsMetadata, 'list' | 'notOpen' | 'claim' | 'claimedByOthers'>;
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** Under which everything is claimed. */
  readonly lease?: LeaseToken;
  /** Ends a wait for others. */
  readonly signal?: AbortSignal;
}

/** Whoever waits for its turn looks this often. */
const TURN_MS = 100;

export class Claims {
  readonly #options: ClaimsOptions;
  /** Something may be claimed. */
  #some = false;

  constructor(options: ClaimsOptions) {
    this.#options = options;
  }

  /** What others have claimed and may be at work on. */
  async others(): Promise<ReadonlySet<number>> {
    const { lease, objects } = this.#options;
    return new Set(lease === undefined ? [] : await objects.claimedByOthers(lease));
  }

  /** Takes these objects in place of all that was claimed before. False: another was quicker. */
  async take(objectIds: readonly number[]): Promise<boolean> {
    const { lease, objects } = this.#options;
    if (lease === undefined) return true;
    const taken = await objects.claim(lease, objectIds);
    if (taken) this.#some = objectIds.length > 0;
    return taken;
  }

  /** The same of unsealed objects. Whoever had them before may have sealed them since they were listed: then false, too. */
  async takeOpen(
    openObjects: readonly number[],
    besides: readonly number[] = [],
  ): Promise<boolean> {
    if (!(await this.take([...besides, ...openObjects]))) return false;
    const { lease, objects } = this.#options;
    return lease === undefined || (await objects.notOpen(openObjects)).length === 0;
  }

  async release(): Promise<void> {
    if (this.#some) await this.take([]);
  }

  /**
   * Waits until everything older than these objects is sealed, at most until `untilMs`. Whoever has claimed it may be slow;
   * if it is dead, its claim ends with its lease. @throws FloeError `conflict` when nobody is at work on what is older: one
   * has to begin there.
   */
  async turn(openObjects: readonly number[], untilMs: number): Promise<void> {
    const { lease, objects, clock, metrics, signal } = this.#options;
    if (lease === undefined || openObjects.length === 0) return;
    const mine = new Set(openObjects);
    const startedMs = clock.monotonic();
    try {
      while (clock.now() <= untilMs) {
        // In this order: what another has sealed between the two is not taken for given up.
        const others = await this.others();
        const { value: oldest } = await flushObjects(objects, 1).next();
        if (oldest === undefined || mine.has(oldest.objectId)) return;
        if (!others.has(oldest.objectId)) throw overtaking(oldest.objectId);
        await clock.sleep(TURN_MS, signal);
      }
    } finally {
      metrics.count(
        'floe_log_compaction_turn_seconds_total',
        'Time for which rewritten flushes waited until others had swapped older ones.',
        {},
        (clock.monotonic() - startedMs) / 1_000,
      );
    }
  }
}

/** Unsealed objects of single flushes in the order of their commits, asked for some at a time. */
export async function* flushObjects(
  objects: Pick<ObjectsMetadata, 'list'>,
  atOnce: number,
): AsyncGenerator<LogObject, undefined> {
  for (let after = 0; ; ) {
    const found = await objects.list('open', after, atOnce);
    yield* found.filter(({ kind }) => kind === 'object');
    if (found.length < atOnce) return;
    after = found.at(-1)!.objectId;
  }
}
