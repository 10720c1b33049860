// What a script that looks at a cluster end to end has found: a line for each check as it is made, and the exit code.
import type { Ran } from './floe.ts';

export class Checks {
  readonly #startedMs = performance.now();
  readonly #failuresOnly: boolean;
  #failed = 0;

  /** @param failuresOnly for a script that shows what it sees by itself */
  constructor({ failuresOnly = false } = {}) {
    this.#failuresOnly = failuresOnly;
  }

  /** @param detail shown when it doesn't hold */
  readonly check = (holds: boolean, what: string, detail = ''): void => {
    if (!holds) this.#failed += 1;
    if (holds && this.#failuresOnly) return;
    const at = ((performance.now() - this.#startedMs) / 1_000).toFixed(1).padStart(5);
    process.stdout.write(`${at} ${holds ? 'ok  ' : 'FAIL'} ${what}\n`);
    if (!holds && detail !== '') process.stdout.write(`${detail.replace(/^/gm, '       | ')}\n`);
  };

  /** Ends the process: 0 when all holds. */
  end(): never {
    process.stdout.write(this.#failed === 0 ? '\nall holds\n' : `\n${this.#failed} failed\n`);
    process.exit(this.#failed === 0 ? 0 : 1);
  }
}

/** A command that didn't do as it should, as the detail of a check. */
export const told = ({ code, out, err }: Ran): string => `exit ${code}\n${out}${err}`.trimEnd();
