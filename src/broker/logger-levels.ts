// The BROKER_LOGGER resource: what the broker logs, changed while it runs and back at `log.level` after a restart, as in
// Kafka. There is one logger, `root`; worker threads have their own, which keep the level they started with.
import { FloeError } from '../base/error.ts';
import type { LevelControl, LogLevel } from '../base/log.ts';

export const ROOT_LOGGER = 'root';

/** Kafka's levels as ours. */
const LEVELS: Readonly<Record<string, LogLevel>> = {
  TRACE: 'debug',
  DEBUG: 'debug',
  INFO: 'info',
  WARN: 'warn',
  ERROR: 'error',
  FATAL: 'silent',
};

export class LoggerLevels {
  readonly #control: LevelControl;
  readonly #atStart: LogLevel;

  constructor(control: LevelControl) {
    this.#control = control;
    this.#atStart = control.level;
  }

  /** Kafka's name of the level in force. */
  get shown(): string {
    const { level } = this.#control;
    return level === 'silent' ? 'FATAL' : level.toUpperCase();
  }

  /** Checks changes of levels, null meaning the one at start. @throws FloeError `invalid`. */
  check(changes: Readonly<Record<string, string | null>>): void {
    for (const [name, level] of Object.entries(changes)) {
      if (name !== ROOT_LOGGER) {
        throw new FloeError(
          'invalid',
          `there is no logger "${name}": ${ROOT_LOGGER} is the only one`,
        );
      }
      if (level !== null && LEVELS[level] === undefined) {
        const known = Object.keys(LEVELS).join(', ');
        throw new FloeError('invalid', `"${level}" is no log level: ${known} are`);
      }
    }
  }

  /** Uses checked changes. */
  alter(changes: Readonly<Record<string, string | null>>): void {
    for (const level of Object.values(changes)) {
      this.#control.level = level === null ? this.#atStart : LEVELS[level]!;
    }
  }
}
