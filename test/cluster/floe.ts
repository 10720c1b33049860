// The `floe` command as an operator runs it: a process, its exit code and what it said, or a process that is killed half
// way. For scripts that look at commands end to end.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { endTogether } from '../../src/cli/child.ts';

const MAIN = join(import.meta.dirname, '..', '..', 'src', 'cli', 'main.ts');

export interface Ran {
  /** −1: killed. */
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export interface RunOptions {
  /** SIGKILL as soon as a line of its output says so. */
  readonly killAt?: (line: string) => boolean;
  /** SIGKILL when this resolves. */
  readonly killWhen?: Promise<unknown>;
}

/** Runs `floe …` to its end. */
export async function floe(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', MAIN, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  endTogether(child);
  let out = '';
  let err = '';
  child.stderr.on('data', (chunk: Buffer) => {
    err += chunk;
  });
  createInterface({ input: child.stdout }).on('line', (line) => {
    out += `${line}\n`;
    if (options.killAt?.(line) === true) child.kill('SIGKILL');
  });
  void options.killWhen?.then(() => child.kill('SIGKILL'));
  const code = await new Promise<number>((resolve) =>
    child.once('close', (ended) => resolve(ended ?? -1)),
  );
  return { code, out, err };
}
