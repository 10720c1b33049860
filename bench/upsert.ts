// Upsert tables without sockets: a table of 5 million keys (--scale of it), then commits of 100,000 changes of which half
// replace a row. Measured: changes per processor second from log to commit, time of a commit, starting the key index
// from its disk, and building it from the table. Run by node_modules/.bin/node bench/upsert.ts [--scale 1] [--rounds 5]
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { systemClock } from '../src/base/clock.ts';
import { seededIds, seededPrng } from '../src/base/prng.ts';
import type { Topic } from '../src/metadata/topics.ts';
import { buildBatch } from '../src/protocol/record-builder.ts';
import { LocalObjectStore } from '../src/storage/objects/local.ts';
import { resolveTopicConfigs } from '../src/table-topic/settings/index.ts';
import { Bench } from '../src/table-topic/testing/bench.ts';
import { upsertTable } from '../src/table-topic/upsert/id-columns.ts';
import { KeyIndexHost } from '../src/table-topic/upsert/key-index.ts';
import { FolderRunFiles } from '../src/table-topic/upsert/run-files.ts';

const { values: args } = parseArgs({
  options: {
    scale: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '5' },
    format: { type: 'string', default: '2' },
  },
});

const KEYS = Math.round(5_000_000 * Number(args.scale));
const CHANGES = 100_000;
const BATCH = 2_000;
const PARTITIONS = 4;

const CONFIG = {
  'table.topic.convert.value.type': 'json',
  'table.topic.upsert.enable': 'true',
  'table.topic.id.columns': '[id]',
  'table.topic.format.version': args.format,
  'table.topic.commit.interval.ms': '900000',
};

const folder = mkdtempSync(join(tmpdir(), 'floe-upsert-'));
const prng = seededPrng(1);
const ids = seededIds(prng);

const place = (name: string) => (tableUuid: string) => {
  const own = join(folder, name, tableUuid);
  mkdirSync(own, { recursive: true });
  return { database: join(own, 'index.db'), runs: new FolderRunFiles(own) };
};

/** Batches are built before the clock starts: producing is the broker's work. */
function batchesOf(keys: readonly number[]): { partition: number; batch: Uint8Array }[] {
  const parts = Array.from({ length: PARTITIONS }, () => [] as number[]);
  for (const key of keys) parts[key % PARTITIONS]!.push(key);
  return parts.flatMap((part, partition) =>
    Array.from({ length: Math.ceil(part.length / BATCH) }, (_, n) => ({
      partition,
      batch: buildBatch(
        part.slice(n * BATCH, (n + 1) * BATCH).map((id) => ({
          value: JSON.stringify({
            id,
            name: `name of ${id}`,
            amount: prng.int(1_000_000),
            city: `city ${id % 1_000}`,
          }),
        })),
      ),
    })),
  );
}

const cpu = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
};

async function commit(bench: Bench, topic: Topic, keys: readonly number[]) {
  const batches = batchesOf(keys);
  const before = cpu();
  const started = performance.now();
  for (const { partition, batch } of batches) bench.log.add(topic.partitions[partition]!, batch);
  await bench.tables.commit('t');
  const seconds = (performance.now() - started) / 1_000;
  const used = cpu() - before;
  // Committed records aren't read again; the log in memory would grow by them.
  for (const id of topic.partitions) bench.log.expire(id, bench.log.watermarks(id)!.highWatermark);
  return { seconds, used };
}

const store = await LocalObjectStore.open(join(folder, 'store'), { clock: systemClock, ids });
const settings = { 'table.maintenance.enable': 'false', 'table.staged.max.bytes': '1000000000' };
const bench = await Bench.open({ store, settings });
const host = (name: string) => new KeyIndexHost({ io: bench.warehouse, ids, place: place(name) });
bench.start({ keys: host('a') });
const topic = await bench.topic('t', CONFIG, PARTITIONS);
const show = (what: string, value: string) => process.stdout.write(`${what.padEnd(34)}${value}\n`);
try {
  let loaded = 0;
  let loadCpu = 0;
  while (loaded < KEYS) {
    const count = Math.min(500_000, KEYS - loaded);
    const keys = Array.from({ length: count }, (_, n) => loaded + n);
    loadCpu += (await commit(bench, topic, keys)).used;
    loaded += count;
  }
  show('keys', String(KEYS));
  show('inserts per CPU second', Math.round(KEYS / loadCpu).toLocaleString('en'));
  let next = KEYS;
  const times: number[] = [];
  let used = 0;
  for (let round = 0; round < Number(args.rounds); round += 1) {
    const keys = Array.from({ length: CHANGES }, (_, n) => (n % 2 === 0 ? prng.int(KEYS) : next++));
    const one = await commit(bench, topic, keys);
    times.push(one.seconds);
    used += one.used;
  }
  const total = CHANGES * Number(args.rounds);
  show('changes per CPU second', Math.round(total / used).toLocaleString('en'));
  show('commit of 100,000 changes, s', times.map((time) => time.toFixed(2)).join(' '));
  const metadata = await bench.load('t');
  const uuid = metadata['table-uuid'];
  await bench.tables.stop();
  const schema = metadata.schemas.find(
    (one) => one['schema-id'] === metadata['current-schema-id'],
  )!;
  const topicId = metadata.properties?.['floe.topic-id'] ?? '';
  const table = { schema, uuid, keyField: undefined, topicId };
  const upsert = upsertTable(resolveTopicConfigs(CONFIG), table)!;
  const request = { metadata, upsert, files: [], sidecars: [], prefix: 'file:///none' };
  const timed = async (name: string) => {
    const index = host(name);
    const started = performance.now();
    const before = cpu();
    await index.prepare({ ...request, commitId: 'unknown', history: [] });
    const seconds = (performance.now() - started) / 1_000;
    const cpuUsed = cpu() - before;
    await index.stop();
    return { seconds, cpuUsed };
  };
  show('start from disk, s', (await timed('a')).seconds.toFixed(3));
  const rebuilt = await timed('b');
  const rows = KEYS + (CHANGES / 2) * Number(args.rounds);
  show('rebuild, s', `${rebuilt.seconds.toFixed(2)} (${rebuilt.cpuUsed.toFixed(2)} of CPU)`);
  show('keys rebuilt a CPU second', Math.round(rows / rebuilt.cpuUsed).toLocaleString('en'));
} finally {
  bench.metadata.close();
  rmSync(folder, { recursive: true, force: true });
}
