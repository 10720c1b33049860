// Strangers read tables that three nodes made while nodes were killed: appends and upserts, v2 and v3, partitioned and
// not, compacted and expired beside, over PostgreSQL and an S3 double. What the log holds at the end is what pyiceberg,
// DuckDB and chdb must read; a checker reads every byte and wants no orphan once the sweep has been.
// The checkers come from a folder of oracles (ORACLES=…); without it there is nobody to ask.
//   npm run oracles:cluster [-- --rounds 8] [--seed 1] [--only WORD] [--spark]
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import kafkajs from 'kafkajs';
import { type Prng, seededPrng } from '../../src/base/prng.ts';
import { awaitRows } from '../../src/cli/await-rows.ts';
import { call } from '../../src/cli/http-client.ts';
import { TestCluster } from '../cluster/cluster.ts';
import { readLog } from './read-log.ts';

const root = join(import.meta.dirname, '..', '..');
const oracles = resolve(process.env['ORACLES'] ?? join(root, '..', 'shared', 'oracles'));
const { values: args } = parseArgs({
  options: {
    rounds: { type: 'string', default: '8' },
    seed: { type: 'string', default: '1' },
    /** Tables whose name contains it. */
    only: { type: 'string', default: '' },
    /** Spark reads them, too (15 s each). */
    spark: { type: 'boolean', default: false },
  },
});
if (!existsSync(join(oracles, 'read.py'))) {
  process.stdout.write(
    `skipped: no oracles at ${oracles} (set ORACLES)\n0 passed, 0 failed, 1 skipped\n`,
  );
  process.exit(0);
}

interface Table {
  readonly topic: string;
  readonly keyed: boolean;
  readonly configs: Readonly<Record<string, string>>;
  /** Who reads it: ClickHouse knows no deletion vectors. */
  readonly engines: string;
}

const KEYS = 400;
const PARTITIONS = 3;
const BATCH = 30;
const READERS = 'pyiceberg,duckdb,chdb';

const COMMON = {
  'table.topic.enable': 'true',
  'table.topic.convert.value.type': 'json',
  'table.topic.commit.interval.ms': '300',
  'table.topic.compact.interval.ms': '1500',
  'table.topic.compact.min.input.files': '3',
  'table.topic.expire.snapshot.interval.ms': '1500',
  'table.topic.expire.snapshot.retain.last': '4',
  'table.topic.expire.snapshot.older.than.hours': '0',
};
const UPSERT = { 'table.topic.upsert.enable': 'true', 'table.topic.id.columns': '[k]' };
const V3 = { 'table.topic.format.version': '3' };
const parted = (by: string) => ({ 'table.topic.partition.by': by });

const TABLES: readonly Table[] = [
  { topic: 'append', keyed: false, configs: {}, engines: READERS },
  {
    topic: 'append_parted',
    keyed: false,
    configs: { ...parted('[zone, bucket(id, 3)]'), 'table.topic.sort.by': '[id desc]' },
    engines: READERS,
  },
  { topic: 'append_v3', keyed: false, configs: { ...V3, ...parted('[zone]') }, engines: READERS },
  { topic: 'upsert_v2', keyed: true, configs: UPSERT, engines: READERS },
  { topic: 'upsert_v3', keyed: true, configs: { ...UPSERT, ...V3 }, engines: 'pyiceberg,duckdb' },
  {
    topic: 'upsert_v2_parted',
    keyed: true,
    configs: { ...UPSERT, ...parted('[zone]') },
    engines: READERS,
  },
  {
    topic: 'upsert_v3_parted',
    keyed: true,
    configs: { ...UPSERT, ...V3, ...parted('[bucket(k, 4)]') },
    engines: 'pyiceberg,duckdb',
  },
].filter(({ topic }) => topic.includes(args.only));

let passed = 0;
let failed = 0;
function note(ok: boolean, what: string): void {
  if (ok) passed += 1;
  else failed += 1;
  process.stdout.write(`${ok ? 'ok  ' : 'FAIL'} ${what}\n`);
}

const clientOf = (cluster: TestCluster) =>
  new kafkajs.Kafka({
    clientId: 'oracles',
    brokers: cluster.members.filter(({ up }) => up).map(({ kafka }) => kafka),
    logLevel: kafkajs.logLevel.NOTHING,
    retry: { retries: 0 },
  });

async function createTopics(cluster: TestCluster): Promise<void> {
  const admin = clientOf(cluster).admin();
  await admin.connect();
  await admin.createTopics({
    topics: TABLES.map(({ topic, configs }) => ({
      topic,
      numPartitions: PARTITIONS,
      configEntries: Object.entries({ ...COMMON, ...configs }).map(([name, value]) => ({
        name,
        value,
      })),
    })),
  });
  await admin.disconnect();
}

interface Ledger {
  next: number;
  readonly acked: Set<number>;
}

const ZONES = ['north', 'south', 'west'];

function recordsOf(table: Table, ids: readonly number[]) {
  return ids.map((id) => {
    if (!table.keyed) {
      const value = JSON.stringify({ id, text: `record ${id}`, zone: ZONES[id % 3] });
      return { key: null, value, partition: id % PARTITIONS };
    }
    const k = (id * 7) % KEYS;
    // A key moves between zones: its row goes from one partition of the table to another.
    const value = id % 11 === 0 ? null : JSON.stringify({ k, v: id, zone: ZONES[id % 3] });
    return { key: String(k), value, partition: k % PARTITIONS };
  });
}

/** Sends until `over`; what fails stays unacknowledged, and a new client goes on. */
async function load(cluster: TestCluster, ledger: Ledger, over: () => boolean): Promise<void> {
  while (!over()) {
    const producer = clientOf(cluster).producer({ allowAutoTopicCreation: false });
    try {
      await producer.connect();
      while (!over()) {
        const ids = Array.from({ length: BATCH }, () => ledger.next++);
        const topicMessages = TABLES.map((table) => ({
          topic: table.topic,
          messages: recordsOf(table, ids),
        }));
        await producer.sendBatch({ acks: -1, topicMessages });
        for (const id of ids) ledger.acked.add(id);
      }
    } catch {
      await sleep(50);
    }
    await producer.disconnect().catch(() => {});
  }
}

/** One node dies under load, the others go on for a while, and it comes back. */
async function playRound(cluster: TestCluster, ledger: Ledger, prng: Prng): Promise<number> {
  let over = false;
  const loads = [load(cluster, ledger, () => over), load(cluster, ledger, () => over)];
  await sleep(300 + prng.int(2_500));
  const member = cluster.members[prng.int(cluster.members.length)]!;
  await member.kill();
  await sleep(prng.int(4_000));
  over = true;
  await Promise.all(loads);
  await member.start();
  return member.nodeId;
}

/** The rows that the log leaves, as JSON lines. */
function rowsOf(table: Table, log: Awaited<ReturnType<typeof readLog>>): string[] {
  if (!table.keyed)
    return log.map(({ partition, offset, value }) =>
      JSON.stringify({
        ...JSON.parse(value!),
        _kafka_partition: partition,
        _kafka_offset: offset,
      }),
    );
  const newest = new Map(log.map(({ key, value }) => [key, value]));
  return [...newest.values()].filter((value) => value !== null);
}

/** Undefined when it is content. Not `spawnSync`: the brokers reach their stores through relays of this process. */
async function ask(script: string, argv: readonly string[]): Promise<string | undefined> {
  const child = spawn(join(oracles, 'env.sh'), ['python', join(oracles, script), ...argv], {
    env: {
      ...process.env,
      AWS_ACCESS_KEY_ID: 'floe',
      AWS_SECRET_ACCESS_KEY: 'floe-secret',
      AWS_REGION: 'us-east-1',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const said: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (piece: Buffer) => said.push(piece));
  const [code] = (await once(child, 'close')) as [number];
  return code === 0 ? undefined : Buffer.concat(said).toString().slice(-3_000);
}

/** Upkeep works beside, and what the dead left is the sweep's: it gets time until nothing is left over. */
const SWEEP_MS = 90_000;

async function fsck(table: readonly string[]): Promise<string | undefined> {
  const deadline = performance.now() + SWEEP_MS;
  for (;;) {
    const complaint = await ask('fsck.py', [...table, '--no-equality-deletes', '--quiet']);
    if (complaint === undefined || performance.now() > deadline) return complaint;
    await sleep(2_000);
  }
}

async function check(cluster: TestCluster, table: Table, folder: string): Promise<void> {
  const { topic, keyed, engines } = table;
  const log = await readLog(cluster.brokers.split(','), topic, PARTITIONS);
  const ids = log.map(({ value }) => value).filter((value) => value !== null);
  note(new Set(ids).size === ids.length, `${topic}: no record twice in the log (${log.length})`);
  const server = cluster.anyNode.addresses.http;
  await awaitRows({ server, topic, rows: 0 });
  await call({ server, path: `/v1/tables/${topic}/commit`, method: 'POST' });
  const rows = rowsOf(table, log);
  const file = join(folder, `${topic}.jsonl`);
  writeFileSync(file, rows.map((row) => `${row}\n`).join(''));
  const named = [
    ...['--catalog', `http://${cluster.anyNode.addresses.catalog}`, `kafka.${topic}`],
    ...['--s3-endpoint', cluster.s3.endpoint],
  ];
  const columns = keyed ? 'k,v,zone' : 'id,text,zone,_kafka_partition,_kafka_offset';
  const readers = args.spark ? `${engines},spark` : engines;
  const misread = await ask('read.py', [
    ...named,
    ...['--expect', file, '--columns', columns, '--engines', readers],
  ]);
  note(misread === undefined, `${topic}: ${readers} read the log's ${rows.length} rows`);
  const wrong = await fsck(named);
  note(wrong === undefined, `${topic}: fsck, orphans included`);
  for (const text of [misread, wrong]) if (text !== undefined) process.stdout.write(`${text}\n`);
}

const folder = mkdtempSync(join(tmpdir(), 'floe-three-'));
const cluster = await TestCluster.start({
  folder,
  brokers: 3,
  racks: ['a', 'b'],
  putMs: 20,
  getMs: 5,
  arguments: ['--set', 'table.sweep.age.ms=1000'],
});
try {
  const prng = seededPrng(Number(args.seed));
  const ledger: Ledger = { next: 0, acked: new Set() };
  await createTopics(cluster);
  for (let round = 1; round <= Number(args.rounds); round += 1) {
    const before = ledger.acked.size;
    const killed = await playRound(cluster, ledger, prng);
    process.stdout.write(
      `round ${round}: broker ${killed} killed, ${ledger.acked.size - before} acked\n`,
    );
  }
  for (const table of TABLES)
    await check(cluster, table, folder).catch((caught: unknown) =>
      note(false, `${table.topic}: ${String(caught)}`),
    );
} catch (caught) {
  note(false, String(caught));
} finally {
  await cluster.stop();
  rmSync(folder, { recursive: true, force: true });
}
process.stdout.write(`${passed} passed, ${failed} failed, 0 skipped (SEED ${args.seed})\n`);
process.exit(failed === 0 ? 0 : 1);
