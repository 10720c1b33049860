// The logger's narrow interface, and its pino implementation for real life.
import { pino } from 'pino';

export interface Logger {
  debug(facts: object, message: string): void;
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
  error(facts: object, message: string): void;
  /** A logger that adds `facts` to every line. */
  child(facts: object): Logger;
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

const RANK: Readonly<Record<LogLevel, number>> = {
  debug: 0,
  info: 1,
  warn: 2,
  error: 3,
  silent: 4,
};

/** What is logged from now on, by a logger and its children. */
export interface LevelControl {
  level: LogLevel;
}

export interface LeveledLogger extends Logger {
  readonly control: LevelControl;
}

/** JSON lines on stderr: stdout belongs to commands. */
export function createLogger(level: LogLevel): LeveledLogger {
  const options = { level: 'debug', base: null, timestamp: pino.stdTimeFunctions.isoTime };
  return new PinoLogger(pino(options, pino.destination(2)), { level });
}

class PinoLogger implements LeveledLogger {
  readonly control: LevelControl;
  readonly #pino: pino.Logger;

  constructor(to: pino.Logger, control: LevelControl) {
    this.#pino = to;
    this.control = control;
  }

  debug(facts: object, message: string): void {
    if (this.#logs('debug')) this.#pino.debug(facts, message);
  }

  info(facts: object, message: string): void {
    if (this.#logs('info')) this.#pino.info(facts, message);
  }

  warn(facts: object, message: string): void {
    if (this.#logs('warn')) this.#pino.warn(facts, message);
  }

  error(facts: object, message: string): void {
    if (this.#logs('error')) this.#pino.error(facts, message);
  }

  child(facts: object): Logger {
    return new PinoLogger(this.#pino.child(facts), this.control);
  }

  #logs(level: LogLevel): boolean {
    return RANK[level] >= RANK[this.control.level];
  }
}

/** Says nothing. */
export const silentLogger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLogger,
};
