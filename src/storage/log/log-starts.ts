// Follows where logs begin and how large they are when retention, DeleteRecords or compaction elsewhere changed it: the
// version of `log-starts` tells that something did, then those partitions are asked, at most every so often. Until then
// a front serves what it still has; what is gone already is asked for when it is missed (read-front.ts). Who must not be
// answered from a stale copy has them asked at once.
import type { Clock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import type { Logger } from '../../base/log.ts';
import type { LogMetadata } from '../../metadata/log.ts';
import type { Versions, VersionsMetadata } from '../../metadata/versions.ts';
import type { FrontLog } from './front-log.ts';

export interface LogStartsOptions {
  readonly log: Pick<FrontLog, 'logStartsMoved'>;
  readonly metadata: {
    readonly log: Pick<LogMetadata, 'partitions'>;
    readonly versions: Pick<VersionsMetadata, 'changes'>;
  };
  readonly clock: Clock;
  readonly logger: Logger;
  /** Of what the log began with. */
  readonly versions: Versions;
  /** `log.follow.starts.ms`. */
  readonly everyMs: number;
}

export class LogStarts {
  readonly #options: LogStartsOptions;
  #version: number;
  #askedMs = -Infinity;
  /** Partitions that were written to while they were asked about: what was answered of their sizes is not the whole. */
  #again: readonly number[] = [];
  #running: Promise<void> | undefined;

  constructor(options: LogStartsOptions) {
    this.#options = options;
    this.#version = options.versions['log-starts'];
  }

  /** Called with the versions of each answer to a follower. */
  seen(versions: Versions): void {
    const version = versions['log-starts'];
    const { clock, everyMs, logger } = this.#options;
    if (version <= this.#version && this.#again.length === 0) return;
    if (this.#running !== undefined || clock.monotonic() - this.#askedMs < everyMs) return;
    this.#start().catch((caught) => {
      logger.warn({ error: FloeError.from(caught).message }, 'log starts could not be read');
    });
  }

  /**
   * Resolves once logs begin here where they did as of `versions`, or later.
   * @throws FloeError `unavailable`, `timeout`: the store could not be asked.
   */
  async caughtUp(versions: Versions): Promise<void> {
    const version = versions['log-starts'];
    // What is under way may have been asked before that.
    if (version > this.#version) await this.#running?.catch(() => {});
    if (version > this.#version) await (this.#running ?? this.#start());
  }

  #start(): Promise<void> {
    this.#askedMs = this.#options.clock.monotonic();
    this.#running = this.#refresh().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #refresh(): Promise<void> {
    const { metadata, log } = this.#options;
    const { version, ids } = await metadata.versions.changes('log-starts', this.#version);
    const asked = ids && [...new Set([...ids.map(Number), ...this.#again])];
    this.#again = log.logStartsMoved(await metadata.log.partitions(asked));
    this.#version = version;
  }
}
