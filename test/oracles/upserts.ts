// Strangers read our upsert tables: keyed changes go in through an ordinary Kafka client, in many commits; pyiceberg and
// DuckDB's iceberg extension read what is left of them, and a checker reads every byte. v2 (position deletes) and v3
// (deletion vectors), partitioned and not. Without a folder of oracles (ORACLES=…) there is nobody to ask.
//   node_modules/.bin/node test/oracles/upserts.ts [--changes 6000]
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
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

/** Changes of a package index: releases, and packages that go. */
function change(prng: ReturnType<typeof seededPrng>, n: number): Package | string {
  const name = `package-${prng.int(800)}`;
  if (prng.next() < 0.1) return name;
  const section = SECTIONS[prng.int(SECTIONS.length)]!;
  return { name, version: `${n}.${prng.int(10)}`, size: prng.int(10_000_000), section };
}

async function run(node: ChildNode, format: string, partitionBy: string, folder: string) {
  const topic = `packages_v${format}${partitionBy === '' ? '' : '_parted'}`;
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
  const prng = seededPrng(Number(format));
  const rows = new Map<string, Package>();
  const total = Number(args.changes);
  for (let at = 0; at < total; at += 500) {
    const messages = Array.from({ length: Math.min(500, total - at) }, (_, n) => {
      const one = change(prng, at + n);
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
  note(ask('fsck.py', [...table, '--no-orphans', '--no-equality-deletes']), `${topic}: fsck`);
  const engines = format === '2' ? 'pyiceberg,duckdb,chdb' : 'pyiceberg,duckdb';
  const columns = 'name,version,size,section';
  const read = [...table, '--expect', expected, '--columns', columns, '--engines', engines];
  note(ask('read.py', read), `${topic}: ${engines} read what the log says`);
}

const folder = mkdtempSync(join(tmpdir(), 'floe-upserts-'));
try {
  const node = await startChild(join(folder, 'data'), []);
  try {
    for (const format of ['2', '3'])
      for (const partitionBy of ['', '[section]']) await run(node, format, partitionBy, folder);
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
