// A node over S3, moved to PostgreSQL: a broker on both serves the same. What can't be moved is refused by name. Not for:
// a node with a folder, tables, groups and transactions, killed at every step (test/cluster/moves.ts, in the gate).
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { resolveSettings } from '../../src/base/settings.ts';
import { type ChildNode, startChild } from '../../src/cli/child.ts';
import { kafkaClient } from '../../src/cli/kafka-client.ts';
import { migrate } from '../../src/cli/migrate/migrate.ts';
import { serverSettings } from '../../src/cli/settings.ts';
import { startPostgres, type TestServer } from '../../src/metadata/postgres/testing.ts';
import { openDatabase } from '../../src/metadata/sqlite/index.ts';
import { noLatency, startDouble } from '../s3/double.ts';

const folder = mkdtempSync(join(tmpdir(), 'floe-migrate-'));
const dataDir = join(folder, 'data');
const storage = pathToFileURL(join(folder, 'shared')).href;
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

async function readAll(node: ChildNode, count: number): Promise<readonly string[]> {
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
