// Follows where logs begin when retention or DeleteRecords moved them elsewhere: the version of `log-starts` tells that
// something moved, then those that did are asked, at most every so often. Until then a front serves what it still has;
// what is gone already is asked for when it is missed (read-front.ts).
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
  #running = false;

  constructor(options: LogStartsOptions) {
    this.#options = options;
    this.#version = options.versions['log-starts'];
  }

  /** Called with the versions of each answer to a follower. */
  seen(versions: Versions): void {
    const version = versions['log-starts'];
    const { clock, everyMs, logger } = this.#options;
    if (version <= this.#version || this.#running) return;
    if (clock.monotonic() - this.#askedMs < everyMs) return;
    this.#askedMs = clock.monotonic();
    this.#running = true;
    this.#refresh()
      .catch((caught) => {
        logger.warn({ error: FloeError.from(caught).message }, 'log starts could not be read');
      })
      .finally(() => {
        this.#running = false;
      });
  }

  async #refresh(): Promise<void> {
    const { metadata, log } = this.#options;
    const { version, ids } = await metadata.versions.changes('log-starts', this.#version);
    log.logStartsMoved(await metadata.log.partitions(ids?.map(Number)));
    this.#version = version;
  }
}
