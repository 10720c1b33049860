// Read-only mode and quarantine of a whole server with an unmodified client: transactions end and groups commit while a
// topic takes no records, tables wait with their dead letters, and afterwards everything is there once.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Admin, Kafka, logLevel, type Producer } from 'kafkajs';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { RawClient } from '../../src/broker/testing/raw-client.ts';
import { batchOf, produceRequest } from '../../src/broker/testing/requests.ts';
import { serveOptions } from '../../src/cli/options.ts';
import { type Floe, serve } from '../../src/cli/serve.ts';
import { ErrorCode } from '../../src/protocol/errors.ts';
import { produceApi } from '../../src/protocol/messages/00-produce.ts';
import { deleteRecordsApi } from '../../src/protocol/messages/21-delete-records.ts';
import { initProducerIdApi } from '../../src/protocol/messages/22-init-producer-id.ts';
import { endTxnApi } from '../../src/protocol/messages/26-end-txn.ts';
import { incrementalAlterConfigsApi } from '../../src/protocol/messages/44-incremental-alter-configs.ts';
import type { TableStatus } from '../../src/table-topic/index.ts';

const TOPIC = 2;
const BROKER = 4;
const folder = mkdtempSync(join(tmpdir(), 'floe-stops-'));
let floe: Floe;
let kafka: Kafka;
let admin: Admin;
let client: RawClient;
let topic = '';
let count = 0;

beforeAll(async () => {
  const any = '127.0.0.1:0';
  floe = await serve(
    serveOptions({
      dataDir: folder,
      ...{ kafka: any, registry: any, catalog: any, http: any },
      set: [
        'log.level=silent',
        'group.initial.rebalance.delay.ms=0',
        'table.retry.first.ms=50',
        'table.retry.max.ms=200',
      ],
    }),
  );
  const brokers = [floe.addresses.kafka];
  const retry = { initialRetryTime: 5, maxRetryTime: 20, retries: 1_000 };
  kafka = new Kafka({ brokers, logLevel: logLevel.NOTHING, retry });
  admin = kafka.admin();
  await admin.connect();
  client = await RawClient.connect(Number(floe.addresses.kafka.split(':')[1]));
});

afterAll(async () => {
  client.close();
  await admin.disconnect();
  await floe.stop();
  rmSync(folder, { recursive: true, force: true });
});

beforeEach(async () => {
  topic = `t${count++}`;
  await admin.createTopics({ topics: [{ topic, numPartitions: 2 }] });
});

async function set(
  [resourceType, resourceName]: readonly [number, string],
  name: string,
  value: string | null,
): Promise<void> {
  const configs = [{ name, configOperation: value === null ? 1 : 0, value }];
  const resources = [{ resourceType, resourceName, configs }];
  const request = { resources, validateOnly: false };
  const { responses } = await client.call(incrementalAlterConfigsApi, 1, request);
  expect(responses[0]).toMatchObject({ errorCode: 0 });
}

const readOnly = (value: 'true' | null) => set([TOPIC, topic], 'floe.read.only', value);

/** What is read of partition 0 by a group that commits it. */
async function consumed(groupId: string, records: number): Promise<string[]> {
  const consumer = kafka.consumer({ groupId });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  const values: string[] = [];
  await new Promise<void>((resolve) => {
    void consumer.run({
      eachMessage: async ({ message }) => {
        values.push(message.value!.toString());
        if (values.length === records) resolve();
      },
    });
  });
  await consumer.disconnect();
  return values;
}

/** Resolves once the producer has sent so many Produce requests more. */
function attempts(producer: Producer, wanted: number): Promise<void> {
  return new Promise((resolve) => {
    let left = wanted;
    const stop = producer.on(producer.events.REQUEST, ({ payload }) => {
      if (payload.apiName !== 'Produce') return;
      left -= 1;
      if (left > 0) return;
      stop();
      resolve();
    });
  });
}

test('read-only: transactions end, groups commit; a waiting transaction goes on without a gap', async () => {
  const producer = kafka.producer({
    transactionalId: 'tx',
    idempotent: true,
    maxInFlightRequests: 1,
  });
  await producer.connect();
  const begin = async (value: string) => {
    const transaction = await producer.transaction();
    await transaction.send({ topic, messages: [{ value, partition: 0 }] });
    return transaction;
  };
  const kept = await begin('kept');
  await readOnly('true');
  await kept.commit();
  await readOnly(null);
  const gone = await begin('gone');
  await readOnly('true');
  await gone.abort();
  const waiting = begin('waited');
  await attempts(producer, 5);
  // A record and a marker of each transaction that has ended, and nothing of the third.
  expect((await admin.fetchTopicOffsets(topic))[0]).toMatchObject({ high: '4' });
  expect(await consumed('before', 1)).toEqual(['kept']);
  const [{ partitions } = { partitions: [] }] = await admin.fetchOffsets({
    groupId: 'before',
    topics: [topic],
  });
  expect(Number(partitions.find(({ partition }) => partition === 0)!.offset)).toBeGreaterThan(0);
  await readOnly(null);
  await (await waiting).commit();
  expect(await consumed('after', 2)).toEqual(['kept', 'waited']);
  await producer.disconnect();
});

test('read-only: a refused batch doesn’t enter a transaction of the new protocol (KIP-890)', async () => {
  const transactionalId = 'implicit';
  const { producerId, producerEpoch } = await client.call(initProducerIdApi, 5, {
    transactionalId,
    transactionTimeoutMs: 60_000,
    producerId: -1,
    producerEpoch: -1,
  });
  const send = async (partition: number, baseSequence: number) => {
    const producer = { producerId, producerEpoch, baseSequence, transactional: true };
    const request = produceRequest(topic, batchOf(['v'], producer), { partition });
    const { responses } = await client.call(produceApi, 12, { ...request, transactionalId });
    return responses[0]!.partitionResponses[0]!.errorCode;
  };
  expect(await send(0, 0)).toBe(0);
  await set([TOPIC, topic], 'floe.quarantined.partitions', '1');
  expect(await send(1, 0)).toBe(ErrorCode.KAFKA_STORAGE_ERROR);
  await readOnly('true');
  expect(await send(0, 1)).toBe(ErrorCode.NOT_ENOUGH_REPLICAS);
  await readOnly(null);
  expect(await send(0, 1)).toBe(0);
  // The marker of a partition that is quarantined meanwhile is written all the same.
  await set([TOPIC, topic], 'floe.quarantined.partitions', '0,1');
  const end = { transactionalId, producerId, producerEpoch, committed: true };
  expect(await client.call(endTxnApi, 5, end)).toMatchObject({ errorCode: 0 });
  await expect
    .poll(async () => (await admin.fetchTopicOffsets(topic)).map(({ high }) => high).toSorted())
    .toEqual(['0', '3']);
});

test('quarantine: DeleteRecords past what is damaged works', async () => {
  const producer = kafka.producer();
  await producer.connect();
  await producer.send({ topic, messages: ['a', 'b'].map((value) => ({ value, partition: 1 })) });
  await producer.disconnect();
  await set([TOPIC, topic], 'floe.quarantined.partitions', '1');
  const { topics } = await client.call(deleteRecordsApi, 2, {
    topics: [{ name: topic, partitions: [{ partitionIndex: 1, offset: 1 }] }],
    timeoutMs: 1_000,
  });
  expect(topics[0]!.partitions[0]).toMatchObject({ errorCode: 0, lowWatermark: 1 });
});

test('read-only by default: a table waits with its dead letters and says why, then goes on', async () => {
  const table = `${topic}-rows`;
  const configs = {
    'table.topic.enable': 'true',
    'table.topic.convert.value.type': 'json',
    'table.topic.errors.tolerance': 'dlq_topic',
    'table.topic.commit.interval.ms': '100',
  };
  const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }));
  await admin.createTopics({ topics: [{ topic: table, numPartitions: 1, configEntries }] });
  await set([TOPIC, table], 'floe.read.only', 'false');
  await set([BROKER, ''], 'floe.read.only', 'true');
  const request = produceRequest(table, batchOf(['{"a":1}', 'bad']));
  const { responses } = await client.call(produceApi, 9, request);
  expect(responses[0]!.partitionResponses[0]).toMatchObject({ errorCode: 0 });
  const status = async () => {
    const reply = await fetch(`http://${floe.addresses.http}/v1/tables/${table}`);
    return (await reply.json()) as TableStatus;
  };
  const limit = { timeout: 10_000 };
  await expect
    .poll(async () => (await status()).reason, limit)
    .toMatch(`dead letters can't be appended: topic "${table}-dlq" is read-only`);
  expect((await status()).counters).toMatchObject({ rows: 0, deadLetters: 0 });
  await set([BROKER, ''], 'floe.read.only', null);
  await expect
    .poll(async () => (await status()).counters, limit)
    .toMatchObject({ rows: 1, deadLetters: 1, skipped: 0 });
  expect(await admin.fetchTopicOffsets(`${table}-dlq`)).toMatchObject([{ high: '1' }]);
});
