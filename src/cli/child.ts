// A node as a child process: for the demo, the kill test and the benchmarks, which must not share its event loop.
import { type ChildProcess, spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { FloeError } from '../base/error.ts';
import { parseReadyLine } from './commands/serve.ts';
import type { Floe } from './serve.ts';

export interface ChildNode {
  readonly addresses: Floe['addresses'];
  readonly pid: number;
  /** Milliseconds from spawn to the ready line. */
  readonly readyMs: number;
  /** The exit code, whoever ended it; −1 after a signal. */
  readonly exited: Promise<number>;
  /** The last of what it wrote to stderr. */
  said(): string;
  /** SIGTERM, and the exit code. */
  stop(): Promise<number>;
  /** SIGKILL, and the end of the process. */
  kill(): Promise<void>;
  /** Halts the process, or lets it go on. Nothing once it has ended, as it may while halted. */
  signal(name: 'SIGSTOP' | 'SIGCONT'): void;
}

const MAIN = join(import.meta.dirname, 'main.ts');

export interface ChildOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** A file that all of its stderr is appended to. */
  readonly logFile?: string;
  /** The program. Default: this one. */
  readonly main?: string;
}

/** Starts `floe serve`, as `npm start` does (decision 0017), on free loopback ports. @throws FloeError with what it wrote to stderr if it doesn't get ready. */
export async function startChild(
  dataDir: string,
  args: readonly string[] = [],
  { env = {}, logFile, main = MAIN }: ChildOptions = {},
): Promise<ChildNode> {
  const free = ['--kafka', '--registry', '--catalog', '--http'].flatMap((flag) => [
    flag,
    '127.0.0.1:0',
  ]);
  const startedMs = performance.now();
  const child = spawn(
    process.execPath,
    [
      '--max-semi-space-size=16',
      '--disable-warning=ExperimentalWarning',
      main,
      'serve',
      '--data-dir',
      dataDir,
      ...free,
      ...args,
    ],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, MALLOC_ARENA_MAX: '2', UV_THREADPOOL_SIZE: '8', ...env },
    },
  );
  const exited = new Promise<number>((resolve) =>
    child.once('exit', (code) => resolve(code ?? -1)),
  );
  endTogether(child);
  const said = listen(child, logFile);
  const addresses = await ready(child, { exited, said });
  return {
    addresses,
    pid: child.pid!,
    readyMs: performance.now() - startedMs,
    exited,
    said,
    stop() {
      child.kill('SIGTERM');
      return exited;
    },
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
    signal(name) {
      child.kill(name);
    },
  };
}

function listen(child: ChildProcess, logFile: string | undefined): () => string {
  let said = '';
  child.stderr!.on('data', (chunk: Buffer) => {
    said = (said + chunk.toString()).slice(-8_192);
    if (logFile !== undefined) appendFileSync(logFile, chunk);
  });
  return () => said.trim();
}

async function ready(
  child: ChildProcess,
  { exited, said }: Pick<ChildNode, 'exited' | 'said'>,
): Promise<Floe['addresses']> {
  const line = new Promise<Floe['addresses']>((resolve) => {
    createInterface({ input: child.stdout! }).on('line', (text) => {
      const addresses = parseReadyLine(text);
      if (addresses !== undefined) resolve(addresses);
    });
  });
  const failed = exited.then((code) => {
    throw new FloeError('unavailable', `floe serve ended with code ${code}: ${said()}`);
  });
  return Promise.race([line, failed]);
}

/** A child that doesn't outlive this process, however it ends (short of SIGKILL). */
export function endTogether(child: ChildProcess): void {
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  child.once('exit', () => process.off('exit', kill));
}
