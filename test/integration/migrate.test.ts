// A node's data directory with records, groups, transactions and a table, moved: a broker on the new stores serves the
// same. What can't be moved is refused by name.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { resolveSettings } from '../../src/base/settings.ts';
import { avroEncoder, registerAvro } from '../../src/cli/avro-value.ts';
import { awaitRows } from '../../src/cli/await-rows.ts';
import { type ChildNode, startChild } from '../../src/cli/child.ts';
import { call } from '../../src/cli/http-client.ts';
import { kafkaClient } from '../../src/cli/kafka-client.ts';
import { migrate } from '../../src/cli/migrate/migrate.ts';
import { serverSettings } from '../../src/cli/settings.ts';
import { startPostgres, type TestServer } from '../../src/metadata/postgres/testing.ts';
import { openDatabase } from '../../src/metadata/sqlite/index.ts';
import { noLatency, startDouble } from '../s3/double.ts';

const folder = mkdtempSync(join(tmpdir(), 'floe-migrate-'));
const dataDir = join(folder, 'data');
const storage = pathToFileURL(join(folder, 'shared')).href;
const SCHEMA = JSON.stringify({
  type: 'record',
  name: 'Order',
  fields: [
    { name: 'id', type: 'long' },
    { name: 'what', type: 'string' },
  ],
});
const ROWS = 60;
const UPSERTS = [
  ['positions', '2'],
  ['vectors', '3'],
] as const;
let postgres: TestServer;
let metadata: string;

beforeAll(async () => {
  postgres = await startPostgres({ fsync: true });
  metadata = await postgres.empty();
}, 60_000);
afterAll(async () => {
  await postgres?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const moving = (said: string[], more: object = {}) =>
  migrate({
    dataDir,
    fromStorage: undefined,
    storage,
    metadata,
    settings: resolveSettings(serverSettings, {}),
    checkOneOf: 1,
    warehouse: 'copy',
    say: (line) => said.push(line),
    ...more,
  });

test('records, groups, transactions and tables are the same after the move', {
  timeout: 240_000,
}, async () => {
  const first = await startChild(dataDir);
  await fill(first);
  await expect(moving([])).rejects.toMatchObject({ code: 'conflict' });
  // As after a crash: what was acknowledged is recovered, then moved.
  await first.kill();

  const said: string[] = [];
  await moving(said);
  const text = said.join('\n');
  expect(text).toContain('metadata equal');
  expect(text).toMatch(/table kafka\.orders: [1-9]\d* data files, 60 rows/);

  const again: string[] = [];
  await moving(again);
  expect(again.join('\n')).toMatch(/objects of the log: (\d+) with \d+ bytes, \1 of them there/);
  await expect(startChild(dataDir)).rejects.toThrow(/was moved to postgres:/);

  const node = await startChild(join(folder, 'broker'), [
    '--metadata',
    metadata,
    '--storage',
    storage,
  ]);
  try {
    expect(await readAll(node)).toHaveLength(ROWS);
    expect(await countRows(node)).toBe(ROWS);
    for (const [table] of UPSERTS) {
      expect(await countRows(node, table)).toBe(10);
      await send(node, 5, 10, table);
      await call({
        server: node.addresses.http,
        path: `/v1/tables/${table}/commit`,
        method: 'POST',
      });
      await awaitRows({ server: node.addresses.http, topic: table, rows: 30 });
      expect(await countRows(node, table)).toBe(15);
    }
    await send(node, ROWS, 5);
    await call({ server: node.addresses.http, path: '/v1/tables/orders/commit', method: 'POST' });
    await awaitRows({ server: node.addresses.http, topic: 'orders', rows: ROWS + 5 });
    expect(await countRows(node)).toBe(ROWS + 5);
    const admin = kafkaClient(node.addresses.kafka).admin();
    await admin.connect();
    const [offsets] = await admin.fetchOffsets({ groupId: 'readers', topics: ['orders'] });
    await admin.disconnect();
    expect(offsets!.partitions.find(({ partition }) => partition === 1)!.offset).toBe('7');
  } finally {
    await node.stop();
  }
  await expect(moving([])).rejects.toThrow(/if brokers have used it since it was moved/);
});

test('a node over S3 moves its metadata only, after single flushes became one object', {
  timeout: 240_000,
}, async () => {
  const bucket = await startDouble({ latency: noLatency });
  const alone = join(folder, 'over-s3');
  const uri = 's3://bucket/floe';
  const keys = {
    's3.endpoint': bucket.endpoint,
    's3.access.key.id': 'any',
    's3.secret.access.key': 'any',
    's3.region': 'us-east-1',
  };
  const flags = Object.entries(keys).flatMap(([name, value]) => ['--set', `${name}=${value}`]);
  const database = await postgres.empty();
  try {
    const first = await startChild(alone, ['--storage', uri, ...flags]);
    const producer = kafkaClient(first.addresses.kafka).producer();
    await producer.connect();
    for (let n = 0; n < 5; n += 1)
      await producer.send({ topic: 'orders', messages: [{ key: String(n), value: 'x' }] });
    await producer.disconnect();
    await first.stop();
    const said: string[] = [];
    await moving(said, {
      dataDir: alone,
      fromStorage: uri,
      storage: uri,
      metadata: database,
      settings: resolveSettings(serverSettings, keys),
    });
    expect(said.join('\n')).toContain('objects of the log: 1 with');
    const node = await startChild(join(folder, 'broker-2'), [
      '--metadata',
      database,
      '--storage',
      uri,
      ...flags,
    ]);
    try {
      expect(await readAll(node, 5)).toHaveLength(5);
    } finally {
      await node.stop();
    }
  } finally {
    await bucket.stop();
  }
});

test('what is no data directory, a full database and a foreign store are refused by name', async () => {
  await expect(moving([], { dataDir: join(folder, 'nothing') })).rejects.toThrow(
    /holds no metadata.db/,
  );
  const other = join(folder, 'other');
  const { mkdirSync } = await import('node:fs');
  mkdirSync(other);
  openDatabase(join(other, 'metadata.db')).close();
  await expect(moving([], { dataDir: other })).rejects.toThrow(/belongs to no cluster yet/);
});

async function fill(node: ChildNode): Promise<void> {
  const kafka = kafkaClient(node.addresses.kafka);
  const admin = kafka.admin();
  await admin.connect();
  const configEntries = Object.entries({
    'table.topic.enable': 'true',
    'table.topic.convert.value.type': 'by_schema_id',
    'table.topic.commit.interval.ms': '2000',
  }).map(([name, value]) => ({ name, value }));
  await admin.createTopics({ topics: [{ topic: 'orders', numPartitions: 2, configEntries }] });
  await admin.createTopics({ topics: [{ topic: 'gone', numPartitions: 1 }] });
  await admin.deleteTopics({ topics: ['gone'] });
  await send(node, 0, ROWS);
  const producer = kafka.producer({ transactionalId: 'mover', maxInFlightRequests: 1 });
  await producer.connect();
  const transaction = await producer.transaction();
  await transaction.send({ topic: 'plain', messages: [{ value: 'aborted' }] });
  await transaction.abort();
  await producer.disconnect();
  await upserts(node);
  await admin.setOffsets({
    groupId: 'readers',
    topic: 'orders',
    partitions: [{ partition: 1, offset: '7' }],
  });
  await admin.disconnect();
  await call({ server: node.addresses.http, path: '/v1/tables/orders/commit', method: 'POST' });
  await awaitRows({ server: node.addresses.http, topic: 'orders', rows: ROWS });
}

/** Ten rows in each, replaced once: by position deletes (v2) and by deletion vectors (v3). */
async function upserts(node: ChildNode): Promise<void> {
  const admin = kafkaClient(node.addresses.kafka).admin();
  await admin.connect();
  for (const [topic, version] of UPSERTS) {
    const configEntries = Object.entries({
      'table.topic.enable': 'true',
      'table.topic.convert.value.type': 'by_schema_id',
      'table.topic.commit.interval.ms': '100',
      'table.topic.upsert.enable': 'true',
      'table.topic.id.columns': '[id]',
      'table.topic.format.version': version,
    }).map(([name, value]) => ({ name, value }));
    await admin.createTopics({ topics: [{ topic, numPartitions: 1, configEntries }] });
    for (let round = 1; round <= 2; round += 1) {
      await send(node, 0, 10, topic);
      await call({
        server: node.addresses.http,
        path: `/v1/tables/${topic}/commit`,
        method: 'POST',
      });
      await awaitRows({ server: node.addresses.http, topic, rows: 10 * round });
    }
    expect(await countRows(node, topic)).toBe(10);
  }
  await admin.disconnect();
}

async function send(node: ChildNode, from: number, count: number, topic = 'orders'): Promise<void> {
  const schemaId = await registerAvro(node.addresses.registry, `${topic}-value`, SCHEMA);
  const encoder = avroEncoder(SCHEMA, schemaId);
  const producer = kafkaClient(node.addresses.kafka).producer();
  await producer.connect();
  const messages = Array.from({ length: count }, (_, n) => ({
    key: String(from + n),
    value: encoder.encode({ id: from + n, what: `thing ${from + n}` }),
  }));
  await producer.send({ topic, messages });
  await producer.disconnect();
}

async function readAll(node: ChildNode, count = ROWS): Promise<readonly string[]> {
  const consumer = kafkaClient(node.addresses.kafka).consumer({ groupId: 'all' });
  await consumer.connect();
  await consumer.subscribe({ topic: 'orders', fromBeginning: true });
  const found: string[] = [];
  await new Promise<void>((resolve) => {
    void consumer.run({
      eachMessage: async ({ message }) => {
        if (found.push(message.key!.toString()) === count) resolve();
      },
    });
  });
  await consumer.disconnect();
  return found;
}

async function countRows(node: ChildNode, table = 'orders'): Promise<number> {
  const body = { query: `SELECT count(*) AS n FROM ${table}` };
  const answer = await call({ server: node.addresses.http, path: '/v1/sql', method: 'POST', body });
  const { rows } = (await answer.json()) as { readonly rows: readonly (readonly unknown[])[] };
  return Number(rows[0]![0]);
}
