// The S3 double in a process of its own: for benchmarks and harnesses whose event loop it must not share, and for several
// brokers at one bucket. `node test/s3/double-process.ts [PORT] [PUT_MS] [GET_MS]` prints its endpoint and runs until it is
// ended.
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import {
  type ControlOrder,
  type Counters,
  type Latency,
  startDouble,
  usualLatency,
} from './double.ts';
import type { FaultRule } from './double-faults.ts';

/** Ends when standard input does. */
const WITH_PARENT = '--with-parent';

export interface BucketUse {
  readonly objects: number;
  readonly bytes: number;
}

export interface DoubleProcess {
  readonly endpoint: string;
  counters(): Promise<Counters>;
  /** What lies in each bucket. */
  buckets(): Promise<Readonly<Record<string, BucketUse>>>;
  resetCounters(): Promise<void>;
  setLatency(latency: Latency): Promise<void>;
  fault(rule: FaultRule): Promise<void>;
  /** Of this tag; all if left out. */
  clearFaults(tag?: string): Promise<void>;
  stop(): Promise<void>;
}

/** Latency as usual, but for how long puts and gets take. */
export const latencyOf = (putMs: number, getMs: number): Latency => ({
  ...usualLatency,
  ms: { ...usualLatency.ms, put: putMs, part: putMs, get: getMs, head: getMs },
});

/** Starts the double as a child; it ends with this process at the latest, as the pipe to it does. */
export async function startDoubleProcess(
  options: { readonly latency?: Latency; readonly port?: number } = {},
): Promise<DoubleProcess> {
  const child = spawn(
    process.execPath,
    [
      '--disable-warning=ExperimentalWarning',
      import.meta.filename,
      String(options.port ?? 0),
      WITH_PARENT,
    ],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  );
  const endpoint = await firstLine(child);
  const double = controlDouble(endpoint);
  if (options.latency !== undefined) await double.setLatency(options.latency);
  return {
    ...double,
    async stop() {
      const gone = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGKILL');
      await gone;
    },
  };
}

/** Steers a double that runs elsewhere. */
export function controlDouble(endpoint: string): Omit<DoubleProcess, 'stop'> {
  const url = `${endpoint}/_double`;
  const look = async () =>
    (await (await fetch(url)).json()) as { counters: Counters; buckets: Record<string, BucketUse> };
  const order = async (body: ControlOrder) => {
    await (await fetch(url, { method: 'POST', body: JSON.stringify(body) })).arrayBuffer();
  };
  return {
    endpoint,
    counters: async () => (await look()).counters,
    buckets: async () => (await look()).buckets,
    resetCounters: () => order({ counters: 'reset' }),
    setLatency: (latency) => order({ latency }),
    fault: (fault) => order({ fault }),
    clearFaults: (tag) => order({ faults: 'clear', ...(tag === undefined ? {} : { tag }) }),
  };
}

function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    const lines = createInterface({ input: child.stdout! });
    lines.once('line', resolve);
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`the S3 double ended at once (${code})`)));
  });
}

if (process.argv[1] === import.meta.filename) {
  const given = process.argv.slice(2).filter((argument) => argument !== WITH_PARENT);
  const [port = '0', putMs = '100', getMs = '30'] = given;
  const double = await startDouble({
    port: Number(port),
    latency: latencyOf(Number(putMs), Number(getMs)),
  });
  process.stdout.write(`${double.endpoint}\n`);
  // The parent's end closes the pipe.
  if (process.argv.includes(WITH_PARENT)) process.stdin.resume().once('end', () => process.exit(0));
}
