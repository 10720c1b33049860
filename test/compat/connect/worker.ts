// A Kafka Connect worker in distributed mode as a child process, and its REST interface.
// Its class path comes from Maven (pom.xml beside this file) and is kept in the cache folder.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../../src/metadata/testing/free-port.ts';

const cache = join(
  process.env['FLOE_CACHE'] ?? join(homedir(), '.cache', 'floe'),
  'compat-connect',
);

/** The jars of Connect, resolved once. */
function classPath(): string {
  const file = join(cache, 'class-path');
  if (!existsSync(file)) {
    mkdirSync(cache, { recursive: true });
    const plugin = 'org.apache.maven.plugins:maven-dependency-plugin:3.6.1:build-classpath';
    const pom = join(import.meta.dirname, 'pom.xml');
    execFileSync('mvn', ['-q', '-B', '-f', pom, plugin, `-Dmdep.outputFile=${file}`]);
  }
  return readFileSync(file, 'utf8').trim();
}

/** How long anything of Connect's may take, milliseconds: its rebalances wait for lost workers. */
const PATIENCE_MS = 120_000;

/** Asks every 200 ms until `probe` answers something other than undefined. */
export async function until<T>(what: string, probe: () => Promise<T | undefined>): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const found = await probe().catch(() => undefined);
    if (found !== undefined) return found;
    if (performance.now() > deadline) throw new Error(`waited in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

export interface Worker {
  readonly url: string;
  /** GET, or PUT of a JSON body. @throws when the answer isn't a success. */
  call<T>(path: string, body?: unknown): Promise<T>;
  /** SIGKILL, and the end of the process. */
  kill(): Promise<void>;
}

/** Starts a worker of the group that all workers on `bootstrap` form, and waits for its REST interface. */
export async function startWorker(
  bootstrap: string,
  folder: string,
  name: string,
): Promise<Worker> {
  const url = `http://127.0.0.1:${await freePort()}`;
  const file = join(folder, `${name}.properties`);
  writeFileSync(file, properties(bootstrap, url));
  const log = openSync(join(folder, `${name}.log`), 'a');
  const java = ['-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-cp', classPath()];
  const child = spawn('java', [...java, 'org.apache.kafka.connect.cli.ConnectDistributed', file], {
    stdio: ['ignore', log, log],
  });
  await until(`the REST interface of ${name}`, () => call(url, '/connectors'));
  return {
    url,
    call: (path: string, body?: unknown) => call(url, path, body),
    kill: () => killed(child),
  };
}

async function killed(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await exited;
}

async function call<T>(url: string, path: string, body?: unknown): Promise<T> {
  const put = {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  };
  const response = await fetch(`${url}${path}`, body === undefined ? {} : put);
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}

function properties(bootstrap: string, url: string): string {
  const lines = {
    'bootstrap.servers': bootstrap,
    'group.id': 'connect',
    listeners: url,
    'config.storage.topic': 'connect-configs',
    'offset.storage.topic': 'connect-offsets',
    'status.storage.topic': 'connect-status',
    'config.storage.replication.factor': 1,
    'offset.storage.replication.factor': 1,
    'status.storage.replication.factor': 1,
    'offset.storage.partitions': 5,
    'key.converter': 'org.apache.kafka.connect.storage.StringConverter',
    'value.converter': 'org.apache.kafka.connect.storage.StringConverter',
    'exactly.once.source.support': 'enabled',
    'offset.flush.interval.ms': 500,
    'session.timeout.ms': 6000,
    'heartbeat.interval.ms': 1000,
    'scheduled.rebalance.max.delay.ms': 1000,
    'plugin.discovery': 'only_scan',
  };
  return Object.entries(lines)
    .map(([key, value]) => `${key}=${value}\n`)
    .join('');
}
