// Strangers read our upsert tables: keyed changes go in through an ordinary Kafka client, in many commits; pyiceberg and
// DuckDB's iceberg extension read what is left of them, and a checker reads every byte. v2 (position deletes) and v3
// (deletion vectors), partitioned and not; a made-up package index, and this machine's own. Without a folder of oracles (ORACLES=…) there is nobody to ask.
//   node_modules/.bin/node test/oracles/upserts.ts [--changes 6000]
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import kafkajs from 'kafkajs';
import { seededPrng } from '../../src/base/prng.ts';
import { type ChildNode, startChild } from '../../src/cli/child.ts';

const root = join(import.meta.dirname, '..', '..');
const oracles = resolve(process.env['ORACLES'] ?? join(root, '..', 'shared', 'oracles'));
const { values: args } = parseArgs({ options: { changes: { type: 'string', default: '6000' } } });
if (!existsSync(join(oracles, 'read.py'))) {
  process.stdout.write(`skipped: no oracles at ${oracles}\n0 passed, 0 failed, 1 skipped\n`);
  process.exit(0);
}

let passed = 0;
let failed = 0;
function note(ok: boolean, what: string): void {
  if (ok) passed += 1;
  else failed += 1;
  process.stdout.write(`${ok ? 'ok  ' : 'FAIL'} ${what}\n`);
}

function ask(script: string, argv: readonly string[]): boolean {
  const done = spawnSync(join(oracles, 'env.sh'), ['python', join(oracles, script), ...argv], {
    encoding: 'utf8',
  });
  if (done.status !== 0) process.stdout.write(`${done.stdout}${done.stderr}`.slice(-4_000));
  return done.status === 0;
}

interface Package {
  readonly name: string;
  readonly version: string;
  readonly size: number;
  readonly section: string;
}

const SECTIONS = ['admin', 'devel', 'libs', 'net'];

/** A release of a package, or the name of one that goes. */
type Change = Package | string;

/** Changes of a made-up package index. */
function made(seed: number, count: number): Change[] {
  const prng = seededPrng(seed);
  return Array.from({ length: count }, (_, n) => change(prng, n));
}

const APT = '/var/lib/apt/lists';

/** This machine's own package index, where it is a Debian: a release, then its updates; some packages go again. */
function debian(limit: number): Change[] {
  if (!existsSync(APT)) return [];
  const lists = readdirSync(APT).filter((name) => /_Packages(\.lz4)?$/.test(name));
  const order = (name: string) => (/-(security|updates)_/.test(name) ? 1 : 0);
  const changes: Change[] = [];
  for (const list of lists.toSorted((a, b) => order(a) - order(b) || (a < b ? -1 : 1))) {
    const cat = spawnSync('/usr/lib/apt/apt-helper', ['cat-file', join(APT, list)], {
      maxBuffer: 2 ** 28,
    });
    for (const entry of cat.stdout.toString().split('\n\n').slice(0, limit)) {
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(entry)?.[1];
      const name = field('Package');
      if (name === undefined) continue;
      const section = (field('Section') ?? 'none').replace(/.*\//, '').slice(0, 4);
      changes.push({ name, version: field('Version')!, size: Number(field('Size')), section });
    }
  }
  const gone = changes.filter((_, n) => n % 50 === 7).map((one) => (one as Package).name);
  return [...changes, ...gone];
}

function change(prng: ReturnType<typeof seededPrng>, n: number): Change {
  const name = `package-${prng.int(800)}`;
  if (prng.next() < 0.1) return name;
  const section = SECTIONS[prng.int(SECTIONS.length)]!;
  return { name, version: `${n}.${prng.int(10)}`, size: prng.int(10_000_000), section };
}

interface Case {
  readonly name: string;
  readonly changes: readonly Change[];
  readonly format: string;
  readonly partitionBy: string;
}

async function run(node: ChildNode, folder: string, test: Case): Promise<void> {
  const { name, changes, format, partitionBy } = test;
  const topic = `${name}_v${format}${partitionBy === '' ? '' : '_parted'}`;
  const kafka = new kafkajs.Kafka({
    brokers: [node.addresses.kafka],
    logLevel: kafkajs.logLevel.NOTHING,
  });
  const configs = {
    'table.topic.enable': 'true',
    'table.topic.convert.value.type': 'json',
    'table.topic.convert.key.type': 'string',
    'table.topic.upsert.enable': 'true',
    'table.topic.id.columns': '[name]',
    'table.topic.format.version': format,
    'table.topic.commit.interval.ms': '300',
    ...(partitionBy === '' ? {} : { 'table.topic.partition.by': partitionBy }),
  };
  const admin = kafka.admin();
  await admin.connect();
  const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }));
  await admin.createTopics({ topics: [{ topic, numPartitions: 3, configEntries }] });
  await admin.disconnect();
  const producer = kafka.producer();
  await producer.connect();
  const rows = new Map<string, Package>();
  const step = Math.max(500, Math.ceil(changes.length / 12));
  for (let at = 0; at < changes.length; at += step) {
    const messages = changes.slice(at, at + step).map((one) => {
      if (typeof one === 'string') {
        rows.delete(one);
        return { key: one, value: null };
      }
      rows.set(one.name, one);
      return { key: one.name, value: JSON.stringify(one) };
    });
    await producer.send({ topic, messages, acks: -1 });
    await fetch(`http://${node.addresses.http}/v1/tables/${topic}/commit`, { method: 'POST' });
  }
  await producer.disconnect();
  const expected = join(folder, `${topic}.jsonl`);
  writeFileSync(expected, [...rows.values()].map((row) => `${JSON.stringify(row)}\n`).join(''));
  const table = ['--catalog', `http://${node.addresses.catalog}`, `kafka.${topic}`];
  // Maintenance works beside: what its lost attempts left is the sweep's, minutes later.
  note(ask('fsck.py', [...table, '--no-equality-deletes']), `${topic}: fsck`);
  const engines = format === '2' ? 'pyiceberg,duckdb,chdb' : 'pyiceberg,duckdb';
  const columns = 'name,version,size,section';
  const read = [...table, '--expect', expected, '--columns', columns, '--engines', engines];
  note(ask('read.py', read), `${topic}: ${engines} read what the log says`);
}

const folder = mkdtempSync(join(tmpdir(), 'floe-upserts-'));
try {
  const node = await startChild(join(folder, 'data'), []);
  try {
    const count = Number(args.changes);
    const real = debian(count);
    for (const format of ['2', '3']) {
      const changes = made(Number(format), count);
      for (const partitionBy of ['', '[section]'])
        await run(node, folder, { name: 'packages', changes, format, partitionBy });
      if (real.length === 0) continue;
      const test = { name: 'debian', changes: real, format, partitionBy: '[section]' };
      await run(node, folder, test);
    }
  } finally {
    await node.stop();
  }
} catch (caught) {
  note(false, String(caught));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.stdout.write(`${passed} passed, ${failed} failed\n`);
process.exit(failed === 0 ? 0 : 1);
