// The right to coordinate groups, as a deadline on a clock that never goes back: it is looked at before every answer,
// so that a process that slept through a takeover answers nothing of the past. The holder asks the store again long
// before the deadline; in the embedded store nobody else can take it, so it renews itself.
import type { Clock, Timer } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import type { Logger } from '../../base/log.ts';
import type { GroupsLease, GroupsMetadata } from '../../metadata/groups.ts';

export interface LeaseOptions {
  readonly metadata: GroupsMetadata;
  readonly clock: Clock;
  readonly logger: Logger;
  /** How long an answer of the store is good for, milliseconds, counted from the question. */
  readonly durationMs: number;
}

/** Of the duration: renewals asked for within it, and what is kept in hand for clocks that differ in speed. */
const RENEWALS = 3;
const MARGIN = 0.1;

export class CoordinatorLease {
  readonly lease: GroupsLease;
  readonly #options: LeaseOptions;
  #deadlineMs: number;
  #lost = false;
  #timer: Timer | undefined;

  private constructor(options: LeaseOptions, lease: GroupsLease, askedMs: number) {
    this.#options = options;
    this.lease = lease;
    this.#deadlineMs = askedMs + options.durationMs * (1 - MARGIN);
    this.#schedule();
  }

  static async acquire(options: LeaseOptions): Promise<CoordinatorLease> {
    const askedMs = options.clock.monotonic();
    return new CoordinatorLease(options, await options.metadata.acquireLease(), askedMs);
  }

  /** True while nobody else can be coordinating. */
  get held(): boolean {
    return !this.#lost && this.#options.clock.monotonic() < this.#deadlineMs;
  }

  /** The store said that somebody else has it. */
  lose(): void {
    if (this.#lost) return;
    this.#lost = true;
    const { epoch } = this.lease;
    this.#options.logger.error({ epoch }, 'another broker coordinates the groups now');
  }

  stop(): void {
    this.#timer?.cancel();
    this.#lost = true;
  }

  #schedule(): void {
    const { clock, durationMs } = this.#options;
    this.#timer = clock.setTimer(durationMs / RENEWALS, () => void this.#renew());
  }

  async #renew(): Promise<void> {
    const { clock, metadata, durationMs, logger } = this.#options;
    const askedMs = clock.monotonic();
    try {
      if (await metadata.holdsLease(this.lease))
        this.#deadlineMs = askedMs + durationMs * (1 - MARGIN);
      else this.lose();
    } catch (caught) {
      const { code, message } = FloeError.from(caught);
      logger.warn({ code, error: message }, 'could not renew the lease of the groups');
    }
    if (!this.#lost) this.#schedule();
  }
}
