// Very many partitions, nearly all of them idle: what they cost two brokers and their metadata store (PostgreSQL with
// fsync, the S3 double), made by an unmodified client. Costs are CPU time, bytes and statements; waits are those of one
// request at a time, but for the load, which writes to 100 of the partitions at a steady rate.
// Run: node bench/many-partitions.ts [--shape TOPICSxPARTITIONS] [--idle SECONDS] [--load SECONDS] [--top STATEMENTS]
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Kafka, logLevel } from 'kafkajs';
import pg from 'pg';
import { RawClient } from '../src/broker/testing/raw-client.ts';
import { batchOf, produceRequest } from '../src/broker/testing/requests.ts';
import { ZERO_UUID } from '../src/protocol/fields.ts';
import { produceApi } from '../src/protocol/messages/00-produce.ts';
import { listOffsetsApi } from '../src/protocol/messages/02-list-offsets.ts';
import { metadataApi } from '../src/protocol/messages/03-metadata.ts';
import { createTopicsApi } from '../src/protocol/messages/19-create-topics.ts';
import { type Member, TestCluster } from '../test/cluster/cluster.ts';
import { cpuSeconds, megabytes, quantile } from '../test/measured.ts';

const { values: args } = parseArgs({
  options: {
    shape: { type: 'string', default: '100x1000' },
    idle: { type: 'string', default: '30' },
    load: { type: 'string', default: '30' },
    top: { type: 'string', default: '0' },
    set: { type: 'string', multiple: true, default: [] },
  },
});
const [TOPICS, PARTITIONS] = args.shape.split('x').map(Number) as [number, number];
const TOTAL = TOPICS * PARTITIONS;
/** One request of a client asks for at most so many partitions, of whole topics. */
const CREATED_AT_ONCE = 10_000;
const LOADED = 100;
/** Partitions of one request of the load, and a batch for each. */
const SPREAD = 10;
const VALUE = 'x'.repeat(1_000);
const RECORDS = 10;
const EVERY_MS = 50;
const ASKED = 20;
const WARM_UP_MS = 5_000;
/** What follows a change (leases, caches, compaction of the first commits) has come to rest. */
const SETTLE_MS = 15_000;

const topicName = (n: number) => `many-${n}`;
const show = (what: string, ...values: readonly (string | number)[]) =>
  process.stdout.write(`${what.padEnd(48)}${values.join('  ')}\n`);

/** All processes of the database server: children of ours, by the way of the shell that keeps them. */
function postgresPids(): number[] {
  const parents = new Map<number, number>();
  const servers: number[] = [];
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
      if (stat.includes('(postgres)')) servers.push(Number(name));
    } catch {
      // It has ended.
    }
  }
  const ours = (pid: number): boolean => {
    const parent = parents.get(pid);
    return parent === process.pid || (parent !== undefined && parent > 1 && ours(parent));
  };
  return servers.filter(ours);
}

interface Reading {
  readonly atMs: number;
  readonly brokers: readonly number[];
  readonly postgres: ReadonlyMap<number, number>;
  readonly statements: number;
  readonly rows: number;
  readonly requests: number;
}

/** Costs, as they add up. */
class Meter {
  readonly #cluster: TestCluster;
  readonly #sql: pg.Client;

  private constructor(cluster: TestCluster, sql: pg.Client) {
    this.#cluster = cluster;
    this.#sql = sql;
  }

  static async open(cluster: TestCluster): Promise<Meter> {
    const { host, port } = cluster.postgres.address;
    const sql = new pg.Client(`postgres://postgres@${host}:${port}/${cluster.postgres.name}`);
    // The server may end first, when something else has failed.
    sql.on('error', () => {});
    await sql.connect();
    await sql.query('CREATE EXTENSION pg_stat_statements');
    return new Meter(cluster, sql);
  }

  async read(): Promise<Reading> {
    const { rows } = await this.#sql.query(
      'SELECT sum(calls)::float8 AS statements, sum(rows)::float8 AS rows FROM pg_stat_statements',
    );
    const counters = await this.#cluster.s3.counters();
    return {
      atMs: performance.now(),
      brokers: this.#cluster.members.map(({ node }) => cpuSeconds(node.pid)),
      postgres: new Map(postgresPids().map((pid) => [pid, cpuSeconds(pid)])),
      statements: rows[0].statements,
      rows: rows[0].rows,
      requests: Object.values(counters).reduce((sum, { requests }) => sum + requests, 0),
    };
  }

  /** Prints what happened since. */
  async since(before: Reading, what: string): Promise<void> {
    const now = await this.read();
    const seconds = (now.atMs - before.atMs) / 1_000;
    const share = (cpu: number) => `${((100 * cpu) / seconds).toFixed(1)} %`;
    let database = 0;
    for (const [pid, cpu] of now.postgres) database += cpu - (before.postgres.get(pid) ?? 0);
    show(
      `${what}: CPU of brokers, PostgreSQL`,
      now.brokers.map((cpu, n) => share(cpu - before.brokers[n]!)).join(' + '),
      share(database),
    );
    const rate = (count: number) => (count / seconds).toFixed(1);
    show(
      `${what}: statements/s, rows/s`,
      rate(now.statements - before.statements),
      rate(now.rows - before.rows),
    );
    show(`${what}: S3 requests/s`, rate(now.requests - before.requests));
  }

  async reset(): Promise<void> {
    await this.#sql.query('SELECT pg_stat_statements_reset()');
  }

  /** The statements that took most, since the last reset. */
  async top(count: number): Promise<void> {
    const { rows } = await this.#sql.query(
      `SELECT calls, rows, round(total_exec_time) AS ms, left(regexp_replace(query, '\\s+', ' ', 'g'), 150) AS text
       FROM pg_stat_statements ORDER BY total_exec_time DESC LIMIT ${count}`,
    );
    for (const { calls, rows: found, ms, text } of rows)
      show(`    ${ms} ms, ${calls} calls, ${found} rows`, text);
  }

  async size(): Promise<void> {
    const { rows } = await this.#sql.query(
      'SELECT pg_database_size(current_database())::float8 AS bytes',
    );
    show('database, MB', Math.round(rows[0].bytes / 2 ** 20));
  }

  end(): Promise<void> {
    return this.#sql.end();
  }
}

function showMemory(what: string, { members }: TestCluster): void {
  show(
    `${what}: RSS MB (most so far)`,
    members
      .map(({ node }) => `${megabytes(node.pid, 'VmRSS')} (${megabytes(node.pid, 'VmHWM')})`)
      .join(' + '),
  );
}

async function createAll(cluster: TestCluster): Promise<void> {
  const kafka = new Kafka({
    brokers: cluster.members.map(({ kafka: address }) => address),
    requestTimeout: 120_000,
    logLevel: logLevel.ERROR,
  });
  const admin = kafka.admin();
  await admin.connect();
  const each = Math.max(1, Math.floor(CREATED_AT_ONCE / PARTITIONS));
  for (let from = 0; from < TOPICS; from += each) {
    const topics = Array.from({ length: Math.min(each, TOPICS - from) }, (_, n) => ({
      topic: topicName(from + n),
      numPartitions: PARTITIONS,
    }));
    await admin.createTopics({ topics, timeout: 120_000 });
  }
  await admin.disconnect();
}

/** The partition of the load's number n: spread over all there are. */
function loaded(n: number): { readonly name: string; readonly index: number } {
  const at = Math.floor((n * TOTAL) / LOADED);
  return { name: topicName(Math.floor(at / PARTITIONS)), index: at % PARTITIONS };
}

/** A steady rate to one broker; times from each request to its answer. */
async function produce({ port }: Member, offset: number, seconds: number): Promise<number[]> {
  const client = await RawClient.connect(port);
  const records = batchOf(Array.from({ length: RECORDS }, () => VALUE));
  const count = Math.ceil((seconds * 1_000) / EVERY_MS / 2);
  const sent: number[] = [];
  const times: number[] = [];
  let refused = 0;
  const receiving = (async () => {
    for (let n = 0; n < count; n += 1) {
      const { response } = await client.receive(produceApi, 11);
      const codes = response.responses.flatMap(({ partitionResponses }) =>
        partitionResponses.map(({ errorCode }) => errorCode),
      );
      if (codes.every((code) => code === 0)) times.push(performance.now() - sent[n]!);
      else refused += 1;
    }
  })();
  const start = performance.now() + offset;
  for (let n = 0; n < count; n += 1) {
    const wait = start + n * EVERY_MS * 2 - performance.now();
    if (wait > 0) await sleep(wait);
    sent.push(performance.now());
    const first = (n * 2 + (offset > 0 ? 1 : 0)) * SPREAD;
    const topicData = Array.from({ length: SPREAD }, (_, k) => loaded((first + k) % LOADED)).map(
      ({ name, index }) => ({ name, topicId: ZERO_UUID, partitionData: [{ index, records }] }),
    );
    client.send(produceApi, 11, {
      transactionalId: null,
      acks: -1,
      timeoutMs: 30_000,
      topicData,
    } as never);
  }
  await receiving;
  client.close();
  // A client would send them again, here or elsewhere.
  if (refused > 0) show('requests refused', refused);
  return times;
}

async function timed<T>(what: string, work: () => Promise<T>): Promise<T> {
  const start = performance.now();
  const result = await work();
  show(what, `${Math.round(performance.now() - start)} ms`);
  return result;
}

/** The first time, and then what the broker takes for it. */
async function asked(what: string, { node }: Member, work: () => Promise<unknown>): Promise<void> {
  await timed(`${what}, first`, work);
  const start = performance.now();
  const before = cpuSeconds(node.pid);
  for (let n = 0; n < ASKED; n += 1) await work();
  const each = (value: number) => `${Math.round(value / ASKED)} ms`;
  const cpu = each((cpuSeconds(node.pid) - before) * 1_000);
  show(what, `${each(performance.now() - start)}, CPU ${cpu}`);
}

/** Made on one broker, written to on the other as soon as it takes it. */
async function usableElsewhere(one: RawClient, other: RawClient): Promise<void> {
  const times: number[] = [];
  for (let n = 0; n < 5; n += 1) {
    const name = `late-${n}`;
    await one.call(createTopicsApi, 5, {
      topics: [{ name, numPartitions: 1, replicationFactor: 1, assignments: [], configs: [] }],
      timeoutMs: 30_000,
    });
    const start = performance.now();
    for (;;) {
      const { topics } = await other.call(metadataApi, 9, {
        topics: [{ name }],
        allowAutoTopicCreation: false,
      } as never);
      if (topics[0]!.errorCode === 0) break;
      await sleep(1);
    }
    times.push(performance.now() - start);
    const request = produceRequest(name, batchOf(['x']));
    for (;;) {
      const { responses } = await other.call(produceApi, 11, {
        transactionalId: null,
        ...request,
      } as never);
      // Clients are sent to another broker for a moment when one has come.
      if (responses[0]!.partitionResponses[0]!.errorCode === 0) break;
      await sleep(EVERY_MS);
    }
  }
  show(
    'a topic made on one is known on the other, ms',
    times.map((ms) => Math.round(ms)).join(' '),
  );
}

const folder = mkdtempSync(join(tmpdir(), 'floe-many-'));
const cluster = await TestCluster.start({
  folder,
  brokers: 2,
  putMs: 30,
  getMs: 10,
  database: [
    'shared_preload_libraries=pg_stat_statements',
    'shared_buffers=256MB',
    'autovacuum=on',
  ],
  arguments: [...args.set, 'max.topic.partitions=1000000'].flatMap((assignment) => [
    '--set',
    assignment,
  ]),
});
try {
  const meter = await Meter.open(cluster);
  show('topics × partitions', `${TOPICS} × ${PARTITIONS}`);
  showMemory('empty', cluster);
  let before = await meter.read();
  await timed('created by kafkajs in', () => createAll(cluster));
  await meter.since(before, 'creating');
  await meter.top(Number(args.top));
  showMemory('created', cluster);
  await meter.size();

  await sleep(SETTLE_MS);
  await meter.reset();
  before = await meter.read();
  await sleep(Number(args.idle) * 1_000);
  await meter.since(before, 'idle');
  await meter.top(Number(args.top));

  const [one, other] = (await Promise.all(
    cluster.members.map(({ port }) => RawClient.connect(port)),
  )) as [RawClient, RawClient];
  await asked('Metadata of all topics', cluster.members[0]!, () =>
    one.call(metadataApi, 9, { topics: null } as never),
  );
  const topics = [
    {
      name: topicName(0),
      partitions: Array.from({ length: PARTITIONS }, (_, partitionIndex) => ({
        partitionIndex,
        timestamp: -1,
      })),
    },
  ];
  await asked('ListOffsets of one topic', cluster.members[0]!, () =>
    one.call(listOffsetsApi, 5, { replicaId: -1, isolationLevel: 0, topics } as never),
  );
  await meter.reset();
  before = await meter.read();
  await usableElsewhere(one, other);
  await meter.since(before, 'five topics');
  await meter.top(Number(args.top));
  for (const client of [one, other]) client.close();

  const load = (seconds: number) =>
    Promise.all(cluster.members.map((member, n) => produce(member, n * EVERY_MS, seconds)));
  await load(WARM_UP_MS / 1_000);
  await meter.reset();
  before = await meter.read();
  const times = (await load(Number(args.load))).flat();
  show(
    'produce to 100 of them, ms',
    `p50 ${Math.round(quantile(times, 0.5))}  p99 ${Math.round(quantile(times, 0.99))}  of ${times.length}`,
  );
  await meter.since(before, 'load');
  await meter.top(Number(args.top));
  showMemory('loaded', cluster);

  const [, restarted] = cluster.members as [Member, Member];
  await restarted.stop();
  await restarted.start();
  show(
    'a broker started again is ready',
    `${Math.round(restarted.node.readyMs)} ms, ${cpuSeconds(restarted.node.pid).toFixed(1)} s of CPU`,
  );
  await sleep(SETTLE_MS);
  showMemory('after the restart', cluster);
  await meter.size();
  await meter.end();
} finally {
  await cluster.stop();
  rmSync(folder, { recursive: true, force: true });
}
