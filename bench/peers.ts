// The systems that benchmarks run: Floe as a child process, over a local folder or a bucket, Apache Kafka, Kafka Connect with the
// Iceberg sink, and the pyiceberg script, the rivals started and stopped by the scripts of a folder of peers (PEERS=…, see HACKING.md).
// Not for: what is measured (run.ts, table.ts).
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type ChildNode, startChild } from '../src/cli/child.ts';
import { latencyOf, startDoubleProcess } from '../test/s3/double-process.ts';

const root = join(import.meta.dirname, '..');

/** Folder of the rivals' start scripts. */
export const peersFolder = resolve(process.env['PEERS'] ?? join(root, '..', 'shared', 'peers'));
/** Where those scripts keep their files: test data, C clients, Python's packages. */
export const scratchFolder =
  process.env['FLOE_PEERS_DIR'] ?? join(homedir(), '.cache', 'floe-peers');

export const python = join(scratchFolder, 'venv', 'bin', 'python');

/** A process under test. */
export interface Target {
  readonly pid: number;
  stop(): Promise<void>;
}

export interface Broker extends Target {
  /** Host and port of its Kafka listener. */
  readonly bootstrap: string;
}

/** Floe on a fresh data directory (below BENCH_DIR or the temporary folder), removed at the end. */
export async function startFloe(
  args: readonly string[] = [],
): Promise<Broker & { node: ChildNode }> {
  const dataDir = mkdtempSync(join(process.env['BENCH_DIR'] ?? tmpdir(), 'floe-bench-'));
  const node = await startChild(dataDir, ['--set', 'group.initial.rebalance.delay.ms=0', ...args]);
  process.stdout.write(`floe: ready in ${Math.round(node.readyMs)} ms\n`);
  return {
    node,
    bootstrap: node.addresses.kafka,
    pid: node.pid,
    async stop() {
      await node.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** As a bucket in the same region. */
const BUCKET_LATENCY = latencyOf(100, 30);

/** The same over a bucket of the S3 double, which is a process of its own: what it takes is not the broker's. */
export async function startFloeOnS3(args: readonly string[] = []): Promise<Broker> {
  const double = await startDoubleProcess({ latency: BUCKET_LATENCY });
  const where = ['--storage', 's3://floe-bench', '--s3-endpoint', double.endpoint];
  const names = ['s3.access.key.id', 's3.secret.access.key'];
  const keys = names.flatMap((name) => ['--set', `${name}=any`]);
  const floe = await startFloe([...where, ...keys, ...args]);
  return {
    ...floe,
    async stop() {
      await floe.stop();
      await double.stop();
    },
  };
}

/** Apache Kafka, one node; `fsync` makes it sync every append, as Floe does. */
export function startKafka(fsync: boolean): Broker {
  const said = script('kafka/start.sh', fsync ? ['--fsync'] : []);
  const [, pid, port] = /pid=(\d+) port=(\d+)/.exec(said)!;
  return {
    bootstrap: `127.0.0.1:${port}`,
    pid: Number(pid),
    async stop() {
      spawnSync(join(peersFolder, 'kafka', 'stop.sh'), { stdio: 'ignore' });
    },
  };
}

/** How records of the table benchmark are written. */
export type Format = 'avro' | 'protobuf' | 'jsonschema' | 'json';

/** Converters of bench/connect, for what the peers have none for. */
const CONVERTERS: Partial<Record<Format, string>> = {
  avro: 'avro',
  protobuf: 'floe.bench.ProtobufFlightConverter',
  jsonschema: 'floe.bench.JsonSchemaFlightConverter',
};

/** Kafka Connect with the sink of Apache Iceberg, on one topic of a broker. */
export function startConnect(topic: string, bootstrap: string, format: Format): Target {
  const flags = ['--topic', topic, '--bootstrap', bootstrap, '--tasks', '1', '--flush-ms', '1000'];
  const named = CONVERTERS[format];
  const converter = named === undefined ? [] : ['--value-converter', named];
  const ours = named?.startsWith('floe.bench') === true;
  const said = script('connect/start.sh', [...flags, ...converter], {
    ...(ours ? { CONNECT_EXTRA_CP: compiledConverters() } : {}),
  });
  return {
    pid: Number(/pid=(\d+)/.exec(said)![1]),
    async stop() {
      spawnSync(join(peersFolder, 'connect', 'stop.sh'), { stdio: 'ignore' });
    },
  };
}

/** Class path of the converters of bench/connect, compiled against the peers' Kafka Connect. */
function compiledConverters(): string {
  const sources = join(import.meta.dirname, 'connect');
  const out = join(scratchFolder, 'connect', 'converters');
  mkdirSync(out, { recursive: true });
  const found = join(out, 'cp.txt');
  if (!existsSync(found)) {
    const goal = ['dependency:build-classpath', '-DincludeScope=runtime'];
    const pom = ['-f', join(sources, 'pom.xml')];
    execFileSync('mvn', ['-q', '-B', ...pom, ...goal, `-Dmdep.outputFile=${found}`]);
  }
  const libraries = readFileSync(found, 'utf8').trim();
  const connect = readFileSync(join(scratchFolder, 'connect', 'cp.txt'), 'utf8').trim();
  const files = readdirSync(sources).filter((name) => name.endsWith('.java'));
  execFileSync('javac', [
    ...['-nowarn', '-cp', `${connect}:${libraries}`, '-d', out],
    ...files.map((name) => join(sources, name)),
  ]);
  return `${out}:${libraries}`;
}

/** The script that consumes JSON and appends by pyiceberg every ten seconds. */
export function startPyiceberg(topic: string, bootstrap: string, lake: string): Target {
  const flags = ['--bootstrap', bootstrap, '--topic', topic, '--lake', lake];
  const child = spawn(python, [join(peersFolder, 'pyiceberg', 'append.py'), ...flags], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  return {
    pid: child.pid!,
    async stop() {
      child.kill('SIGTERM');
      if (child.exitCode === null) await once(child, 'exit');
    },
  };
}

/** Runs a script of the peers and returns what it printed. @throws with what it wrote to stderr. */
export function script(
  name: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): string {
  const env = { ...process.env, ...environment };
  return execFileSync(join(peersFolder, name), args, { encoding: 'utf8', env });
}
