// What the sequencer's thread does between flushes: state rows brought up to memory, flush rows pruned, SQLite's own
// log moved into its file, idle producers forgotten. In slices of at most a few milliseconds, each yielding to commits.
import type { Clock, Timer } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import type { SqliteMetadata } from '../../metadata/sqlite/index.ts';

export interface UpkeepOptions {
  readonly metadata: SqliteMetadata;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly producerExpirationMs: number;
  /** How long a flush row is kept for retries of its flush id. */
  readonly retryHorizonMs: number;
}

const TICK_MS = 250;
/** A transaction of this many rows takes about 5 ms. */
const ROWS_PER_SLICE = 1_000;
/** SQLite's log is moved at this size, which takes about 5 ms, or when the store has come to rest. */
const CHECKPOINT_BYTES = 1_500_000;
const STATE_EVERY_TICKS = 20;
const EXPIRE_EVERY_TICKS = 240;

export class Upkeep {
  readonly #options: UpkeepOptions;
  #timer: Timer | undefined;
  #ticks = 0;
  #seenCommit = 0;
  #stopped = false;

  constructor(options: UpkeepOptions) {
    this.#options = options;
    this.#schedule();
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#timer = this.#options.clock.setTimer(TICK_MS, () => void this.#tick());
  }

  async #tick(): Promise<void> {
    this.#ticks += 1;
    try {
      await this.#work();
    } catch (caught) {
      this.#options.logger.warn({ error: String(caught) }, 'upkeep of the metadata failed');
    }
    this.#schedule();
  }

  async #work(): Promise<void> {
    const { metadata, clock, producerExpirationMs, retryHorizonMs } = this.#options;
    if (this.#ticks % STATE_EVERY_TICKS === 0) {
      await this.#slices(() => metadata.log.checkpoint(ROWS_PER_SLICE));
      const before = clock.now() - retryHorizonMs;
      await this.#slices(
        () => metadata.log.pruneFlushes(before, ROWS_PER_SLICE) === ROWS_PER_SLICE,
      );
    }
    if (this.#ticks % EXPIRE_EVERY_TICKS === 0) {
      const idleSince = clock.now() - producerExpirationMs;
      const expired = await metadata.producers.expire(idleSince, ROWS_PER_SLICE);
      if (expired > 0) this.#options.logger.debug({ expired }, 'idle producers forgotten');
    }
    this.#moveLog();
  }

  async #slices(slice: () => boolean): Promise<void> {
    while (!this.#stopped && slice()) await new Promise((resolve) => setImmediate(resolve));
  }

  #moveLog(): void {
    const { log, database } = this.#options.metadata;
    const atRest = log.lastCommit === this.#seenCommit;
    this.#seenCommit = log.lastCommit;
    // Other domains write too; at rest their frames go along every 20 ticks.
    const due = log.pendingLogBytes >= CHECKPOINT_BYTES || (atRest && log.pendingLogBytes > 0);
    if (!due && this.#ticks % STATE_EVERY_TICKS !== 0) return;
    database.checkpoint();
    log.pendingLogBytes = 0;
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }
}
