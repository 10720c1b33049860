// The broker over the real log (sequencer thread, WAL files, slabs) and consumer groups, with an unmodified client:
// what is produced is consumed, once, in order, also by a broker started anew on the same data.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Kafka, logLevel } from 'kafkajs';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemClock } from '../base/clock.ts';
import { silentLogger } from '../base/log.ts';
import { noMetrics } from '../base/metrics.ts';
import { systemIds, systemPrng } from '../base/prng.ts';
import { resolveSettings } from '../base/settings.ts';
import type { Log } from '../storage/log/log.ts';
import { type OpenedLog, openLog } from '../storage/log/open-log.ts';
import { readSettings } from '../storage/log/read-settings.ts';
import { logSettings } from '../storage/log/settings.ts';
import { LocalObjectStore } from '../storage/objects/local.ts';
import { GroupCoordinator, groupHandlers, groupSettings } from './groups/index.ts';
import { startTestBroker, type TestBroker } from './testing/harness.ts';
import { allLeases } from './testing/leases.ts';

const common = {
  clock: systemClock,
  prng: systemPrng,
  ids: systemIds,
  logger: silentLogger,
  metrics: noMetrics,
};

let folder: string;
let opened: OpenedLog;
let groups: GroupCoordinator;
let test: TestBroker<Log>;

async function start(): Promise<Kafka> {
  const store = await LocalObjectStore.open(join(folder, 'objects'), common);
  opened = await openLog({
    dataDir: folder,
    store,
    settings: resolveSettings({ ...logSettings, ...readSettings }, {}),
    logLevel: 'silent',
    ...common,
  });
  const { directory, metadata, log, clusterId } = opened;
  groups = await GroupCoordinator.load({
    ...common,
    directory,
    metadata: metadata.groups,
    transactions: metadata.transactions,
    leases: allLeases(),
    settings: resolveSettings(groupSettings, { 'group.initial.rebalance.delay.ms': '0' }),
  });
  const handlers = () => groupHandlers(groups);
  test = await startTestBroker({ ...common, log, directory, metadata, clusterId, handlers });
  return new Kafka({ brokers: [test.address], logLevel: logLevel.NOTHING, clientId: 'real' });
}

async function stop(): Promise<void> {
  await test.broker.stop();
  await groups.stop();
  await opened.stop();
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'floe-broker-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Values of the topic's first `count` records, by a group that commits what it read. */
async function consume(kafka: Kafka, topic: string, count: number): Promise<string[]> {
  const consumer = kafka.consumer({ groupId: 'g' });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  const values: string[] = [];
  await new Promise<void>((resolve, reject) => {
    consumer.on('consumer.crash', ({ payload }) => reject(payload.error));
    const eachMessage = async ({ message }: { message: { value: Buffer | null } }) => {
      values.push(message.value!.toString());
      if (values.length === count) resolve();
    };
    consumer.run({ eachMessage }).catch(reject);
  });
  await consumer.disconnect();
  return values;
}

const numbers = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, i) => `${from + i}`);

async function send(kafka: Kafka, topic: string, values: readonly string[]): Promise<void> {
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 });
  await producer.connect();
  for (const value of values) await producer.send({ topic, messages: [{ value }] });
  await producer.disconnect();
}

it('brings records from producer to group, across a restart', async () => {
  let kafka = await start();
  const admin = kafka.admin();
  await admin.connect();
  await admin.createTopics({ topics: [{ topic: 't', numPartitions: 1 }] });
  await admin.disconnect();
  await send(kafka, 't', numbers(0, 30));
  expect(await consume(kafka, 't', 30)).toEqual(numbers(0, 30));
  await stop();

  kafka = await start();
  await send(kafka, 't', numbers(30, 40));
  expect(await consume(kafka, 't', 10)).toEqual(numbers(30, 40));
  await stop();
});
