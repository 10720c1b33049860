// The kill test: SIGKILL at random moments under acks=all load while a table commits, then an audit.
// Every acknowledged record must be in the topic once and in the table once, offsets unbroken, nothing orphaned.
// Not for: power loss. A killed process keeps the page cache, so unsynced writes are the simulation's business.
//   ROUNDS=20 SEED=1 npm run killtest
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import kafkajs, { type Kafka, type Producer } from 'kafkajs';
import { type Prng, seededPrng } from '../../src/base/prng.ts';
import { awaitRows } from '../../src/cli/await-rows.ts';
import { type ChildNode, startChild } from '../../src/cli/child.ts';
import { call } from '../../src/cli/http-client.ts';
import {
  manifestSource,
  parseIcebergJson,
  planScan,
  type TableMetadata,
} from '../../src/formats/iceberg/index.ts';

const ROUNDS = Number(process.env['ROUNDS'] ?? 20);
const SEED = Number(process.env['SEED'] ?? 1);
const TOPIC = 'kills';
const PARTITIONS = 4;
const PRODUCERS = 2;
const BATCH = 20;
/** Orphans are swept at once instead of after their usual ages. */
const SETTINGS = ['--set', 'table.sweep.age.ms=1000'];

interface Ledger {
  /** Next id to send; an id is sent once and never again, so twice in the topic is a doubling. */
  next: number;
  readonly acked: Set<number>;
  readonly sent: Set<number>;
}

const failures: string[] = [];
function check(condition: boolean, what: string): void {
  process.stdout.write(`${condition ? 'ok  ' : 'FAIL'} ${what}\n`);
  if (!condition) failures.push(what);
}

function client(node: ChildNode): Kafka {
  return new kafkajs.Kafka({
    clientId: 'kill',
    brokers: [node.addresses.kafka],
    logLevel: kafkajs.logLevel.NOTHING,
    retry: { retries: 0 },
  });
}

/** Sends until the node dies; a failed send leaves its records unacknowledged. */
async function load(producer: Producer, ledger: Ledger): Promise<void> {
  await producer.connect();
  for (;;) {
    const ids = Array.from({ length: BATCH }, () => ledger.next++);
    for (const id of ids) ledger.sent.add(id);
    const messages = ids.map((id) => ({
      value: JSON.stringify({ id, text: `record ${id}` }),
      partition: id % PARTITIONS,
    }));
    await producer.send({ topic: TOPIC, acks: -1, messages });
    for (const id of ids) ledger.acked.add(id);
  }
}

async function round(dataDir: string, ledger: Ledger, prng: Prng): Promise<void> {
  const node = await startChild(dataDir, SETTINGS);
  const producers = Array.from({ length: PRODUCERS }, () =>
    client(node).producer({ allowAutoTopicCreation: false, retry: { retries: 0 } }),
  );
  const loads = producers.map((producer) => load(producer, ledger).catch(() => {}));
  await new Promise((resolve) => setTimeout(resolve, 200 + prng.int(1_800)));
  await node.kill();
  await Promise.all(loads);
  await Promise.all(producers.map((producer) => producer.disconnect().catch(() => {})));
}

async function createTopic(node: ChildNode): Promise<void> {
  const admin = client(node).admin();
  await admin.connect();
  const configEntries = Object.entries({
    'table.topic.enable': 'true',
    'table.topic.convert.value.type': 'json',
    'table.topic.commit.interval.ms': '300',
  }).map(([name, value]) => ({ name, value }));
  await admin.createTopics({
    topics: [{ topic: TOPIC, numPartitions: PARTITIONS, configEntries }],
  });
  await admin.disconnect();
}

/** All ids of the topic in order of arrival, and whether offsets were unbroken. */
async function readTopic(
  node: ChildNode,
): Promise<{ ids: number[]; unbroken: boolean; total: number }> {
  const kafka = client(node);
  const admin = kafka.admin();
  await admin.connect();
  const ends = new Map(
    (await admin.fetchTopicOffsets(TOPIC)).map((end) => [end.partition, Number(end.high)]),
  );
  await admin.disconnect();
  const total = [...ends.values()].reduce((sum, end) => sum + end, 0);
  const expected = new Map([...ends.keys()].map((partition) => [partition, 0]));
  const ids: number[] = [];
  let unbroken = true;
  const consumer = kafka.consumer({ groupId: `audit-${SEED}`, retry: { retries: 5 } });
  await consumer.connect();
  await consumer.subscribe({ topic: TOPIC, fromBeginning: true });
  await new Promise<void>((resolve, reject) => {
    const late = setTimeout(
      () => reject(new Error(`read ${ids.length} of ${total} records in 120 s`)),
      120_000,
    );
    const finish = () => {
      clearTimeout(late);
      resolve();
    };
    if (total === 0) finish();
    void consumer.run({
      autoCommit: false,
      eachMessage: async ({ partition, message }) => {
        const offset = Number(message.offset);
        if (offset !== expected.get(partition)) unbroken = false;
        expected.set(partition, offset + 1);
        ids.push((JSON.parse(message.value!.toString()) as { id: number }).id);
        if (ids.length === total) finish();
      },
    });
  });
  await consumer.disconnect();
  return { ids, unbroken, total };
}

async function sql(node: ChildNode, query: string): Promise<unknown[][]> {
  const server = node.addresses.http;
  const response = await call({ server, path: '/v1/sql', method: 'POST', body: { query } });
  return ((await response.json()) as { rows: unknown[][] }).rows;
}

async function audit(node: ChildNode, dataDir: string, ledger: Ledger): Promise<void> {
  const { ids, unbroken, total } = await readTopic(node);
  const seen = new Set(ids);
  const lost = [...ledger.acked].filter((id) => !seen.has(id));
  check(
    lost.length === 0,
    `every acked record is in the topic (${ledger.acked.size} acked, lost: ${lost.slice(0, 5)})`,
  );
  check(seen.size === ids.length, `no record twice in the topic (${ids.length} records)`);
  check(
    [...seen].every((id) => ledger.sent.has(id)),
    'nothing that was never sent',
  );
  check(unbroken, 'offsets unbroken');
  await awaitRows({ server: node.addresses.http, topic: TOPIC, rows: total });
  const [[rows, distinct]] = (await sql(
    node,
    `SELECT count(*), count(DISTINCT id) FROM ${TOPIC}`,
  )) as [[number, number]];
  check(Number(rows) === total, `the table has each record once: ${rows} rows of ${total} records`);
  check(Number(distinct) === seen.size, `… and no other ids: ${distinct} of ${seen.size}`);
  const places = await sql(
    node,
    `SELECT count(DISTINCT (_kafka_partition, _kafka_offset)) FROM ${TOPIC}`,
  );
  check(Number(places[0]![0]) === total, 'every row stands at its own offset');
  await checkOrphans(node, dataDir);
}

/** Data files on disk beside those that the table names; the sweep gets time to work. */
async function checkOrphans(node: ChildNode, dataDir: string): Promise<void> {
  const deadline = performance.now() + 60_000;
  let orphans: string[] = [];
  do {
    const live = await liveFiles(node);
    const entries = await readdir(dataDir, { recursive: true });
    orphans = entries.filter((path) => path.endsWith('.parquet') && !live.has(basename(path)));
    if (orphans.length > 0) await new Promise((resolve) => setTimeout(resolve, 500));
  } while (orphans.length > 0 && performance.now() < deadline);
  check(orphans.length === 0, `no orphaned data file after the sweep (${orphans.slice(0, 3)})`);
}

/** Names of the files in the table's current snapshot, as any reader of the catalog finds them. */
async function liveFiles(node: ChildNode): Promise<Set<string>> {
  const response = await fetch(
    `http://${node.addresses.catalog}/v1/namespaces/kafka/tables/${TOPIC}`,
  );
  const { metadata } = parseIcebergJson(await response.text()) as { metadata: TableMetadata };
  const source = manifestSource({ read: (uri) => readFile(new URL(uri)) });
  const { files } = await planScan({ metadata, source });
  return new Set(files.map(({ file }) => basename(file.filePath)));
}

const dataDir = await mkdtemp(join(tmpdir(), 'floe-kill-'));
const ledger: Ledger = { next: 0, acked: new Set(), sent: new Set() };
const prng = seededPrng(SEED);
process.stdout.write(`kill test: ${ROUNDS} rounds, SEED=${SEED}, ${dataDir}\n`);
try {
  const first = await startChild(dataDir, SETTINGS);
  await createTopic(first);
  await first.kill();
  for (let n = 1; n <= ROUNDS; n += 1) {
    const before = ledger.acked.size;
    await round(dataDir, ledger, prng);
    process.stdout.write(`round ${n}: ${ledger.acked.size - before} records acked\n`);
  }
  const node = await startChild(dataDir, SETTINGS);
  try {
    await audit(node, dataDir, ledger);
  } finally {
    check((await node.stop()) === 0, 'SIGTERM ends with exit code 0');
  }
} finally {
  await rm(dataDir, { recursive: true, force: true });
}
process.stdout.write(
  failures.length === 0
    ? 'kill test passed\n'
    : `kill test FAILED (SEED=${SEED}):\n${failures.join('\n')}\n`,
);
process.exit(failures.length === 0 ? 0 : 1);
