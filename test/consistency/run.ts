// The consistency workload: producers, transactional producers and consumers, each a process of its own with an
// unmodified client, beside kill -9, pauses and slow storage; then everything they saw is held against the log and the
// table (check.ts).
//   npm run consistency -- [--minutes 30] [--on local,s3,cluster] [--seed 1] [--keep]
//     [--from REVISION]
// `s3` needs the object store of `npm run test:s3` and is left out where there is none; `cluster` is three brokers,
// which begin with the program of a revision if one is given, and are upgraded to this one and back while all that goes on.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import kafkajs from 'kafkajs';
import { type Prng, seededPrng } from '../../src/base/prng.ts';
import { awaitRows } from '../../src/cli/await-rows.ts';
import { endTogether } from '../../src/cli/child.ts';
import type { Finding } from '../../src/cli/doctor/finding.ts';
import { call } from '../../src/cli/http-client.ts';
import { told } from '../cluster/checks.ts';
import { floe } from '../cluster/floe.ts';
import { check, type Scan } from './check.ts';
import { readHistory } from './history.ts';
import { localNode, s3Node } from './one-node.ts';
import { poll, withAnyWire } from './reader.ts';
import type { Target } from './target.ts';
import { threeBrokers } from './three-brokers.ts';
import { PARTITIONS, TOPIC } from './topic.ts';

const { values: args } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    on: { type: 'string', default: 'local,s3' },
    seed: { type: 'string', default: '1' },
    keep: { type: 'boolean', default: false },
    from: { type: 'string' },
  },
});

/** Once faults have ended, every client ends and every consumer sees everything within this (I3, I5). */
const REST_MS = 90_000;

/** Role and name; names with the same beginning share a transactional id. */
const CLIENTS = [
  ['producer', 'p1'],
  ['producer', 'p2'],
  ['transactional', 't1'],
  ['transactional', 't2'],
  ['transactional', 'shared-a'],
  ['transactional', 'shared-b'],
  ['consumer', 'c1'],
  ['reader', 'r1'],
] as const;

const reads = (role: string) => role === 'consumer' || role === 'reader';

const say = (text: string) => process.stdout.write(`${text}\n`);

class Run {
  readonly folder: string;
  readonly target: Target;
  readonly prng: Prng;
  readonly #clients = new Map<string, ChildProcess>();
  /** Each kind once, in any order, before any comes again. */
  readonly #ahead: string[] = [];
  readonly faults: string[] = [];
  readonly nemeses: Record<string, number> = {};

  constructor(folder: string, target: Target) {
    this.folder = folder;
    this.target = target;
    this.prng = seededPrng(Number(args.seed));
  }

  get broker(): string {
    return this.target.brokers;
  }

  startClient(role: string, name: string): void {
    const file = join(this.folder, `${name}.jsonl`);
    const script = join(import.meta.dirname, 'client.ts');
    const child = spawn(
      process.execPath,
      [
        '--disable-warning=ExperimentalWarning',
        '--disable-warning=TimeoutNegativeWarning',
        script,
        role,
        name,
        this.broker,
        file,
      ],
      { stdio: ['ignore', 'ignore', 'inherit'] },
    );
    endTogether(child);
    this.#clients.set(name, child);
  }

  /** One bad thing, and its end. */
  async harm(): Promise<void> {
    const { harms, weights = {} } = this.target;
    if (this.#ahead.length === 0)
      for (const name of ['client', ...Object.keys(harms)])
        for (let n = weights[name] ?? 1; n > 0; n -= 1) this.#ahead.push(name);
    const [kind = 'client'] = this.#ahead.splice(this.prng.int(this.#ahead.length), 1);
    this.nemeses[kind] = (this.nemeses[kind] ?? 0) + 1;
    const harm = harms[kind];
    if (harm !== undefined) return harm(this.prng);
    const [role, name] = CLIENTS[this.prng.int(CLIENTS.length)]!;
    await ended(this.#clients.get(name)!, 'SIGKILL');
    this.startClient(role, name);
  }

  /** I3, I5: producers end, then the consumers, once they have seen what came last. */
  async rest(): Promise<void> {
    const stopping = CLIENTS.filter(([role]) => !reads(role)).map(([, name]) => this.#stop(name));
    await Promise.all(stopping);
    const last = await sendLast(this.broker);
    const consumers = CLIENTS.filter(([role]) => reads(role)).map(([, name]) => name);
    for (const name of consumers) {
      const missing = await this.#unseen(name, last);
      if (missing.length > 0)
        this.faults.push(`I3: ${name} never polled ${missing[0]}, sent at the end`);
    }
    await Promise.all(consumers.map((name) => this.#stop(name)));
  }

  async #stop(name: string): Promise<void> {
    const child = this.#clients.get(name)!;
    const code = await Promise.race([ended(child, 'SIGTERM'), sleep(REST_MS, 'late' as const)]);
    // By the signal itself: it had been started so lately that it didn't listen for it yet.
    if (code === 0 || code === 'SIGTERM') return;
    this.faults.push(
      `I5: ${name} ${code === 'late' ? `has not ended after ${REST_MS} ms` : `ended with ${code}`}`,
    );
    if (code === 'late') await ended(child, 'SIGKILL');
  }

  async #unseen(name: string, last: readonly string[]): Promise<string[]> {
    const deadline = performance.now() + REST_MS;
    for (;;) {
      const { entries } = readHistory(name, join(this.folder, `${name}.jsonl`));
      const polled = new Set(
        entries.flatMap((entry) =>
          entry.op === 'polled' ? entry.records.map(([, value]) => value) : [],
        ),
      );
      const missing = last.filter((value) => !polled.has(value));
      if (missing.length === 0 || performance.now() > deadline) return missing;
      await sleep(500);
    }
  }

  histories() {
    return [
      ...CLIENTS.map(([, name]) => readHistory(name, join(this.folder, `${name}.jsonl`))),
      { who: 'last', entries: [lastEntry] },
    ];
  }

  async end(): Promise<void> {
    for (const child of this.#clients.values()) await ended(child, 'SIGKILL');
    await this.target.stop();
    if (!args.keep) rmSync(this.folder, { recursive: true, force: true });
  }
}

function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<number | string> {
  if (child.exitCode !== null || child.signalCode !== null)
    return Promise.resolve(child.exitCode ?? child.signalCode!);
  return new Promise((resolve) => {
    child.once('exit', (code, by) => resolve(code ?? by!));
    child.kill(signal);
  });
}

const kafka = (broker: string) =>
  new kafkajs.Kafka({
    clientId: 'checker',
    brokers: broker.split(','),
    logLevel: kafkajs.logLevel.NOTHING,
  });

async function createTopic(broker: string): Promise<void> {
  const admin = kafka(broker).admin();
  await admin.connect();
  const configEntries = Object.entries({
    'table.topic.enable': 'true',
    'table.topic.convert.value.type': 'json',
    'table.topic.commit.interval.ms': '1000',
  }).map(([name, value]) => ({ name, value }));
  await admin.createTopics({
    topics: [{ topic: TOPIC, numPartitions: PARTITIONS, configEntries }],
  });
  await admin.disconnect();
}

const LAST = Array.from({ length: PARTITIONS }, (_, partition) => `last-${partition}`);
const lastEntry = { op: 'send', partition: -1, values: LAST } as const;

/** One more record for each partition: what consumers must see to have seen everything. */
async function sendLast(broker: string): Promise<readonly string[]> {
  const producer = kafka(broker).producer({ allowAutoTopicCreation: false });
  await producer.connect();
  const messages = LAST.map((value, partition) => ({
    partition,
    value: JSON.stringify({ value }),
  }));
  await producer.send({ topic: TOPIC, acks: -1, messages });
  await producer.disconnect();
  return LAST;
}

/** Everything from the start, until the last records came by. */
function scan(broker: string, committedOnly: boolean): Promise<Scan> {
  const deadline = performance.now() + REST_MS;
  return withAnyWire(broker, async (wire) => {
    const found = new Map<number, Map<number, string>>();
    for (const [partition, last] of LAST.entries()) {
      const records = new Map<number, string>();
      found.set(partition, records);
      for (let offset = 0, over = false; !over; ) {
        const polled = await poll(wire, { partition, offset, committedOnly });
        for (const [at, value] of polled.records) {
          records.set(at, value);
          over ||= value === last;
        }
        offset = polled.next;
        if (performance.now() > deadline) throw new Error(`I3: ${last} not read in ${REST_MS} ms`);
      }
    }
    return found;
  });
}

async function tableRows(server: string): Promise<(readonly [number, number, string])[]> {
  const query = `SELECT _kafka_partition AS p, _kafka_offset AS o, value FROM ${TOPIC}`;
  const accept = 'application/x-ndjson';
  const response = await call({ server, path: '/v1/sql', method: 'POST', accept, body: { query } });
  const lines = (await response.text()).split('\n').filter((line) => line !== '');
  return lines.map((line) => {
    const { p, o, value } = JSON.parse(line) as { p: number; o: number; value: string };
    return [p, o, value] as const;
  });
}

/** What is stored agrees with itself, every batch of it, while the nodes go on. */
async function storedFaults(stores: readonly string[]): Promise<readonly string[]> {
  const ran = await floe(['fsck', '--sample', '100', '--format', 'json', ...stores]);
  if (ran.out === '') return [`fsck: ${told(ran)}`];
  const findings = JSON.parse(ran.out) as readonly Finding[];
  const sample = findings.find(({ what }) => what === 'sample');
  say(`  fsck: ${sample?.value ?? 'read nothing'}`);
  return findings
    .filter(({ severity }) => severity === 'wrong')
    .map(({ what, value }) => `fsck: ${what}: ${value}`);
}

async function evidence(run: Run) {
  const committed = await scan(run.broker, true);
  const uncommitted = await scan(run.broker, false);
  const server = run.target.http;
  // How many rows there should be is the checker's question.
  await awaitRows({ server, topic: TOPIC, rows: 0, timeoutMs: REST_MS });
  return { histories: run.histories(), committed, uncommitted, table: await tableRows(server) };
}

async function play(run: Run, untilMs: number): Promise<boolean> {
  await createTopic(run.broker);
  for (const [role, name] of CLIENTS) run.startClient(role, name);
  while (performance.now() < untilMs) {
    await sleep(1_000 + run.prng.int(5_000));
    await run.harm();
  }
  await run.rest();
  const { faults, counts } = check(await evidence(run));
  const stored = await storedFaults(run.target.stores);
  const all = [...run.faults, ...(run.target.faults?.() ?? []), ...faults, ...stored];
  say(`  nemeses ${JSON.stringify(run.nemeses)}`);
  say(`  ${JSON.stringify(counts)}`);
  for (const fault of all.slice(0, 20)) say(`  FAIL ${fault}`);
  if (all.length > 20) say(`  … ${all.length} in all`);
  return all.length === 0;
}

const TARGETS: Readonly<Record<string, (folder: string) => Promise<Target | undefined>>> = {
  local: localNode,
  s3: s3Node,
  cluster: (folder) => threeBrokers(folder, args.from),
};

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
const names = args.on.split(',');
const shareMs = (Number(args.minutes) * 60_000) / names.length;
let passed = 0;
let failed = 0;
let skipped = 0;
for (const name of names) {
  const start = TARGETS[name];
  if (start === undefined) throw new Error(`--on ${name}: one of ${Object.keys(TARGETS)}`);
  const folder = mkdtempSync(join(tmpdir(), 'floe-consistency-'));
  const target = await start(folder);
  if (target === undefined) {
    say('skipped s3: no object store (npm run test:s3 installs one)');
    skipped += 1;
    rmSync(folder, { recursive: true, force: true });
    continue;
  }
  const run = new Run(folder, target);
  say(`consistency on ${name}, ${Math.round(shareMs / 1_000)} s, SEED=${args.seed}, ${folder}`);
  try {
    if (await play(run, performance.now() + shareMs)) passed += 1;
    else failed += 1;
  } catch (caught) {
    say(`  FAIL ${caught instanceof Error ? caught.message : caught}`);
    failed += 1;
  } finally {
    await run.end();
  }
}
say(`${passed} passed, ${failed} failed, ${skipped} skipped`);
process.exit(failed === 0 ? 0 : 1);
