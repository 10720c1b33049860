// What other nodes do to stored objects, as far as a front must know: objects that it follows were sealed or compacted
// (their entries are then asked of the metadata store), partitions were compacted by key (older copies in memory are not
// served any more). Asked every few seconds; between two questions a front reads what it knows, which is right for as
// long as the bytes are there, and a missing object is planned anew (reader.ts).
// Not for: log starts and topics, which versions tell of (follower.ts).
import type { Clock, Timer } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import type { Logger } from '../../base/log.ts';
import type { ObjectsMetadata } from '../../metadata/objects.ts';
import type { FrontLog } from './front-log.ts';
import type { LogReader } from './reader.ts';

export interface ObjectsWatchOptions {
  readonly objects: Pick<ObjectsMetadata, 'notOpen' | 'cleanedSince'>;
  readonly reader: Pick<LogReader, 'openObjects' | 'noLongerOpen' | 'forgetRows'>;
  readonly front: Pick<FrontLog, 'compacted'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** `log.follow.objects.ms`. */
  readonly everyMs: number;
}

/** Ids in one question. */
const IDS_AT_ONCE = 10_000;

/**
 * How old the last answer may be where readers of committed records rely on it. Markers of aborted transactions stay a
 * minute after their records have gone (MARKER_RETENTION_MS in batch-cleaner.ts): a read that takes the other half of
 * it still leaves out what it must (L7).
 */
export const CURRENT_MS = 30_000;

export class ObjectsWatch {
  readonly #options: ObjectsWatchOptions;
  /** When the last good question was asked, by the monotonic clock. */
  #askedMs = -Infinity;
  /** Version of `cleanings` up to which compactions by key are known here. */
  #cleaned = -1;
  #running: Promise<void> | undefined;
  #timer: Timer | undefined;
  #stopped = false;

  constructor(options: ObjectsWatchOptions) {
    this.#options = options;
  }

  /** Asks for the first time; from then on by itself. @throws FloeError when the store can't be asked. */
  async start(): Promise<void> {
    await this.look();
    this.#schedule();
  }

  /** False after the store could not be asked, or this process did not run, for a while; then it asks at once. */
  isCurrent(): boolean {
    const { clock } = this.#options;
    if (clock.monotonic() - this.#askedMs <= CURRENT_MS) return true;
    this.look().catch(() => {});
    return false;
  }

  /** Asks once; calls share one question. */
  look(): Promise<void> {
    this.#running ??= this.#ask().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #ask(): Promise<void> {
    const { objects, reader, front, clock } = this.#options;
    const askedMs = clock.monotonic();
    const followed = reader.openObjects();
    for (let n = 0; n < followed.length; n += IDS_AT_ONCE)
      reader.noLongerOpen(await objects.notOpen(followed.slice(n, n + IDS_AT_ONCE)));
    const { version, cleanings } = await objects.cleanedSince(this.#cleaned);
    for (const { partitionId, cleanEnd } of cleanings) {
      reader.forgetRows(partitionId);
      front.compacted(partitionId, cleanEnd);
    }
    this.#cleaned = version;
    this.#askedMs = askedMs;
  }

  #schedule(): void {
    if (this.#stopped) return;
    const { clock, everyMs, logger } = this.#options;
    this.#timer = clock.setTimer(everyMs, () => {
      this.look()
        .catch((caught) => {
          if (caught instanceof Error && caught.name === 'AssertionError') throw caught;
          if (!this.#stopped)
            logger.warn(
              { error: FloeError.from(caught).message },
              'stored objects are not watched',
            );
        })
        .finally(() => this.#schedule());
    });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.#running?.catch(() => {});
  }
}
