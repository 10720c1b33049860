// The time of day in a cluster is the store's: ages of objects, timeouts of transactions, retention and expiry are held
// against rows that others wrote. A node whose machine's clock is off by more than a second corrects itself by the store's,
// asked at the start and now and then. What is right within a second stays as it is.
import type { Timer } from '../base/clock.ts';
import { FloeError } from '../base/error.ts';
import type { Component } from '../base/lifecycle.ts';
import type { Logger } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { SteeredClock } from '../base/steered-clock.ts';

export interface ClockKeeperOptions {
  readonly clock: SteeredClock;
  /** The store's clock (`metadata.cluster`). */
  readonly store: { nowMs(): Promise<number> };
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** Less is no matter, and more than round trips and stores' own steps explain. */
const TOLERATED_MS = 1_000;
const LOOK_MS = 10_000;
/** An answer that took longer says too little of when it was given. */
const MAX_ROUND_TRIP_MS = 2_000;

export class ClockKeeper implements Component {
  readonly #options: ClockKeeperOptions;
  #timer: Timer | undefined;
  #stopped = false;

  private constructor(options: ClockKeeperOptions) {
    this.#options = options;
  }

  /** The clock is right when this has resolved, unless the store could not be asked. */
  static async start(options: ClockKeeperOptions): Promise<ClockKeeper> {
    const keeper = new ClockKeeper(options);
    await keeper.#look();
    return keeper;
  }

  async #look(): Promise<void> {
    const { clock, store, logger } = this.#options;
    const askedMs = clock.monotonic();
    try {
      const theirsMs = await store.nowMs();
      const tookMs = clock.monotonic() - askedMs;
      if (tookMs <= MAX_ROUND_TRIP_MS) this.#correct(theirsMs + tookMs / 2 - clock.now());
    } catch (caught) {
      logger.debug({ error: FloeError.from(caught).message }, 'could not ask for the time');
    }
    if (!this.#stopped) this.#timer = clock.setTimer(LOOK_MS, () => void this.#look());
  }

  /** @param offMs how far the store's clock is ahead of ours, corrected as that is. */
  #correct(offMs: number): void {
    const { clock, logger, metrics } = this.#options;
    if (Math.abs(offMs) > TOLERATED_MS) {
      const offsetMs = Math.round(clock.offsetMs + offMs);
      // A machine whose clock was set right needs no help any more.
      clock.steer(Math.abs(offsetMs) <= TOLERATED_MS ? 0 : offsetMs);
      logger.warn(
        { offsetMs: clock.offsetMs },
        "this machine's clock differs from the database's, which holds: run an NTP client on both",
      );
    }
    metrics.gauge(
      'floe_cluster_clock_offset_seconds',
      "What is added to this machine's clock to agree with the database's",
      clock.offsetMs / 1_000,
    );
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
  }
}
