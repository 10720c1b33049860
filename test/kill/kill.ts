// The kill test: SIGKILL at random moments under acks=all load while a table commits, gains columns, is compacted and
// expires snapshots, and another is upserted, then an audit. Every acknowledged record must be in the topic once, and in the table or among the
// dead letters once, offsets unbroken, nothing orphaned.
// Not for: power loss. A killed process keeps the page cache, so unsynced writes are the simulation's business.
//   ROUNDS=20 SEED=1 npm run killtest [-- cluster]
// `cluster`: three brokers over PostgreSQL and an S3 double, of which one dies in each round.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import kafkajs, { type Kafka, type Producer } from 'kafkajs';
import { type Prng, seededPrng } from '../../src/base/prng.ts';
import { awaitRows } from '../../src/cli/await-rows.ts';
import type { ChildNode } from '../../src/cli/child.ts';
import { call } from '../../src/cli/http-client.ts';
import { parseIcebergJson, type TableMetadata } from '../../src/formats/iceberg/index.ts';
import { visitFiles } from '../../src/table-topic/maintenance/reach.ts';
import { type KillTarget, oneNode, threeBrokers } from './target.ts';

const ROUNDS = Number(process.env['ROUNDS'] ?? 20);
const SEED = Number(process.env['SEED'] ?? 1);
const TOPIC = 'kills';
const PARTITIONS = 4;
const PRODUCERS = 2;
const BATCH = 20;
/** Every so many records is none that a table takes. */
const BAD_EVERY = 17;
const LETTERS = `${TOPIC}-dlq`;
/** An upsert table: so many keys, each written again and again and deleted now and then. */
const KEYED = 'keyed';
const KEYS = 300;
/** Orphans are swept at once instead of after their usual ages. */
const SETTINGS = ['--set', 'table.sweep.age.ms=1000'];

/** What a record of this id says; rounds bring fields of their own. */
function textOf(id: number, round: number): string {
  if (id % BAD_EVERY === 0) return `no JSON: ${id}`;
  return JSON.stringify({ id, text: `record ${id}`, [`round${round % 6}`]: round });
}

const idOf = (value: string) => Number(/\d+/.exec(value)![0]);

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

function client(brokers: readonly string[]): Kafka {
  return new kafkajs.Kafka({
    clientId: 'kill',
    brokers: [...brokers],
    logLevel: kafkajs.logLevel.NOTHING,
    retry: { retries: 0 },
  });
}

/** Sends until a node dies; a failed send leaves its records unacknowledged. */
async function load(
  producer: Producer,
  ledger: Ledger,
  { round, over }: { readonly round: number; readonly over: () => boolean },
): Promise<void> {
  await producer.connect();
  while (!over()) {
    const ids = Array.from({ length: BATCH }, () => ledger.next++);
    for (const id of ids) ledger.sent.add(id);
    const messages = ids.map((id) => ({
      value: textOf(id, round),
      partition: id % PARTITIONS,
    }));
    const changes = ids.map((id) => {
      const k = (id * 7) % KEYS;
      const value = id % 11 === 0 ? null : JSON.stringify({ k, v: id });
      return { key: String(k), value, partition: k % PARTITIONS };
    });
    const topicMessages = [
      { topic: TOPIC, messages },
      { topic: KEYED, messages: changes },
    ];
    await producer.sendBatch({ acks: -1, topicMessages });
    for (const id of ids) ledger.acked.add(id);
  }
}

async function playRound(
  target: KillTarget,
  ledger: Ledger,
  { prng, round }: { readonly prng: Prng; readonly round: number },
): Promise<void> {
  await target.up();
  let dead = false;
  const producers = Array.from({ length: PRODUCERS }, () =>
    client(target.brokers).producer({ allowAutoTopicCreation: false, retry: { retries: 0 } }),
  );
  const loads = producers.map((producer) =>
    load(producer, ledger, { round, over: () => dead }).catch(() => {}),
  );
  await new Promise((resolve) => setTimeout(resolve, 200 + prng.int(1_800)));
  await target.kill(prng);
  dead = true;
  await Promise.all(loads);
  await Promise.all(producers.map((producer) => producer.disconnect().catch(() => {})));
}

async function createTopics(target: KillTarget): Promise<void> {
  const admin = client(target.brokers).admin();
  await admin.connect();
  const common = {
    'table.topic.enable': 'true',
    'table.topic.convert.value.type': 'json',
    'table.topic.commit.interval.ms': '300',
    'table.topic.compact.interval.ms': '1000',
    'table.topic.compact.min.input.files': '2',
    'table.topic.expire.snapshot.interval.ms': '1000',
    'table.topic.expire.snapshot.retain.last': '3',
    'table.topic.expire.snapshot.older.than.hours': '0',
  };
  const letters = { ...common, 'table.topic.errors.tolerance': 'dlq_topic' };
  const upserts = {
    ...common,
    'table.topic.upsert.enable': 'true',
    'table.topic.id.columns': '[k]',
  };
  const entries = (config: Readonly<Record<string, string>>) =>
    Object.entries(config).map(([name, value]) => ({ name, value }));
  await admin.createTopics({
    topics: [
      { topic: TOPIC, numPartitions: PARTITIONS, configEntries: entries(letters) },
      { topic: KEYED, numPartitions: PARTITIONS, configEntries: entries(upserts) },
    ],
  });
  await admin.disconnect();
}

interface TopicRead {
  /** In order of arrival. */
  readonly ids: readonly number[];
  /** `partition:offset` of records that are no JSON. */
  readonly bad: readonly string[];
  /** Where dead letters say that they come from. */
  readonly origins: readonly string[];
  /** The last value of each key, null for a deleted one; a key has one partition. */
  readonly newest: ReadonlyMap<string, string | null>;
  readonly unbroken: boolean;
  readonly total: number;
}

/** All of a topic's records. */
async function readTopic(target: KillTarget, topic: string): Promise<TopicRead> {
  const kafka = client(target.brokers);
  const admin = kafka.admin();
  await admin.connect();
  const ends = new Map(
    (await admin.fetchTopicOffsets(topic)).map((end) => [end.partition, Number(end.high)]),
  );
  await admin.disconnect();
  const total = [...ends.values()].reduce((sum, end) => sum + end, 0);
  const expected = new Map([...ends.keys()].map((partition) => [partition, 0]));
  const ids: number[] = [];
  const bad: string[] = [];
  const origins: string[] = [];
  const newest = new Map<string, string | null>();
  let unbroken = true;
  const groupId = `audit-${topic}-${SEED}`;
  const consumer = kafka.consumer({ groupId, retry: { retries: 5 } });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
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
        const value = message.value?.toString() ?? null;
        if (message.key !== null) newest.set(message.key.toString(), value);
        ids.push(value === null ? -1 : idOf(value));
        if (value?.startsWith('{') === false) bad.push(`${partition}:${offset}`);
        const origin = (name: string) => String(message.headers?.[`__connect.errors.${name}`]);
        origins.push(`${origin('partition')}:${origin('offset')}`);
        if (ids.length === total) finish();
      },
    });
  });
  await consumer.disconnect();
  return { ids, bad, origins, newest, unbroken, total };
}

async function sql(node: ChildNode, query: string): Promise<unknown[][]> {
  const server = node.addresses.http;
  const response = await call({ server, path: '/v1/sql', method: 'POST', body: { query } });
  return ((await response.json()) as { rows: unknown[][] }).rows;
}

async function audit(target: KillTarget, ledger: Ledger): Promise<void> {
  const { node } = target;
  const { ids, bad, unbroken, total } = await readTopic(target, TOPIC);
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
  const good = total - bad.length;
  await awaitRows({ server: node.addresses.http, topic: TOPIC, rows: good });
  const [[rows, distinct]] = (await sql(
    node,
    `SELECT count(*), count(DISTINCT id) FROM ${TOPIC}`,
  )) as [[number, number]];
  check(Number(rows) === good, `the table has each record once: ${rows} rows of ${good} records`);
  check(Number(distinct) === good, `… and no other ids: ${distinct} of ${good}`);
  const places = await sql(
    node,
    `SELECT count(DISTINCT (_kafka_partition, _kafka_offset)) FROM ${TOPIC}`,
  );
  check(Number(places[0]![0]) === good, 'every row stands at its own offset');
  await auditValues(node, good);
  await auditLetters(target, bad);
  await auditKeys(target);
  await checkOrphans(target);
}

/** Cells are those of their records, also where columns came later and files were rewritten. */
async function auditValues(node: ChildNode, good: number): Promise<void> {
  const [[right]] = (await sql(
    node,
    `SELECT count(*) FROM ${TOPIC} WHERE text = 'record ' || id AND id % ${BAD_EVERY} <> 0`,
  )) as [[number]];
  check(Number(right) === good, `every cell is its record's: ${right} of ${good}`);
  const server = node.addresses.http;
  const status = (await (await call({ server, path: `/v1/tables/${TOPIC}` })).json()) as {
    readonly state: string;
  };
  check(status.state === 'running', `the table is ${status.state}`);
}

/** Each record that is no JSON is a dead letter once, and nothing else is one. */
async function auditLetters(target: KillTarget, bad: readonly string[]): Promise<void> {
  const letters = await readTopic(target, LETTERS);
  const once = new Set(letters.origins);
  check(once.size === letters.total, `no dead letter twice (${letters.total})`);
  check(
    once.size === bad.length && bad.every((place) => once.has(place)),
    `each bad record is a dead letter: ${once.size} of ${bad.length}`,
  );
}

/** The upsert table is what the log's replay says, key by key. */
async function auditKeys(target: KillTarget): Promise<void> {
  const { node } = target;
  const { newest, total } = await readTopic(target, KEYED);
  await call({ server: node.addresses.http, path: `/v1/tables/${KEYED}/commit`, method: 'POST' });
  const rows = (await sql(node, `SELECT k, v FROM ${KEYED}`)).map(
    ([k, v]) => [String(k), Number(v)] as const,
  );
  const live = [...newest].filter(([, value]) => value !== null);
  const found = new Map(rows);
  check(found.size === rows.length, `no key twice (${rows.length} rows of ${total} changes)`);
  const wrong = live.filter(
    ([k, value]) => found.get(k) !== (JSON.parse(value!) as { v: number }).v,
  );
  check(
    wrong.length === 0 && live.length === rows.length,
    `each key as the log leaves it: ${live.length} live, ${rows.length} rows, ${wrong.length} wrong`,
  );
}

/** Data files in the warehouse beside those that the table names; the sweep gets time to work. */
async function checkOrphans(target: KillTarget): Promise<void> {
  const deadline = performance.now() + 60_000;
  let orphans: string[] = [];
  do {
    const files = await target.dataFiles();
    const live = new Set([
      ...(await liveFiles(target, TOPIC)),
      ...(await liveFiles(target, KEYED)),
    ]);
    orphans = files.filter((name) => !live.has(name));
    if (orphans.length > 0) await new Promise((resolve) => setTimeout(resolve, 500));
  } while (orphans.length > 0 && performance.now() < deadline);
  check(orphans.length === 0, `no orphaned data file after the sweep (${orphans.slice(0, 3)})`);
}

/**
 * Names of the files that the table's snapshots hold. Delete files count also where the data files that they are about
 * have left: they are the table's until a rewrite takes them out.
 */
async function liveFiles(target: KillTarget, table: string): Promise<Set<string>> {
  const response = await fetch(
    `http://${target.node.addresses.catalog}/v1/namespaces/kafka/tables/${table}`,
  );
  const { metadata } = parseIcebergJson(await response.text()) as { metadata: TableMetadata };
  const io = { read: (uri: string) => target.read(uri) };
  const live = new Set<string>();
  await visitFiles(metadata, io, (path, isLive) => {
    if (isLive) live.add(basename(path));
  });
  return live;
}

const folder = await mkdtemp(join(tmpdir(), 'floe-kill-'));
const ledger: Ledger = { next: 0, acked: new Set(), sent: new Set() };
const prng = seededPrng(SEED);
const start = process.argv[2] === 'cluster' ? threeBrokers : oneNode;
process.stdout.write(`kill test: ${ROUNDS} rounds, SEED=${SEED}, ${folder}\n`);
try {
  const target = await start(folder, SETTINGS);
  try {
    await target.up();
    await createTopics(target);
    for (let n = 1; n <= ROUNDS; n += 1) {
      const before = ledger.acked.size;
      await playRound(target, ledger, { prng, round: n });
      process.stdout.write(`round ${n}: ${ledger.acked.size - before} records acked\n`);
    }
    await target.up();
    await audit(target, ledger);
  } finally {
    check(await target.stop(), 'SIGTERM ends with exit code 0');
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}
process.stdout.write(
  failures.length === 0
    ? 'kill test passed\n'
    : `kill test FAILED (SEED=${SEED}):\n${failures.join('\n')}\n`,
);
process.exit(failures.length === 0 ? 0 : 1);
