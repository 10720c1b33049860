// Exactly once over a real server: a copy job whose offsets are part of its transactions, by an unmodified client of
// the old protocol, while the server is killed; and the new protocol (KIP-890) at the wire.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Kafka, logLevel, type Producer } from 'kafkajs';
import { afterAll, expect, test, vi } from 'vitest';
import { RawClient } from '../../src/broker/testing/raw-client.ts';
import { batchOf, fetchRequest, produceRequest } from '../../src/broker/testing/requests.ts';
import { startChild } from '../../src/cli/child.ts';
import { ErrorCode } from '../../src/protocol/errors.ts';
import { produceApi } from '../../src/protocol/messages/00-produce.ts';
import { fetchApi } from '../../src/protocol/messages/01-fetch.ts';
import { createTopicsApi } from '../../src/protocol/messages/19-create-topics.ts';
import { initProducerIdApi } from '../../src/protocol/messages/22-init-producer-id.ts';
import { endTxnApi } from '../../src/protocol/messages/26-end-txn.ts';
import {
  Attribute,
  attributes,
  baseOffset,
  batchEnd,
  lastOffsetDelta,
  producerId,
} from '../../src/protocol/record-batch.ts';
import { readRecords } from '../../src/protocol/records.ts';

const folder = mkdtempSync(join(tmpdir(), 'floe-txn-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const RECORDS = 40;
const PER_TRANSACTION = 5;
const GROUP = 'copier';

function connect(broker: string): Kafka {
  return new Kafka({ brokers: [broker], logLevel: logLevel.NOTHING, clientId: 'copier' });
}

async function copierOf(kafka: Kafka): Promise<Producer> {
  const producer = kafka.producer({
    transactionalId: 'copier',
    idempotent: true,
    maxInFlightRequests: 1,
  });
  await producer.connect();
  return producer;
}

/** Copies records from where the group stands, up to `end`; every third transaction is aborted and done again. */
async function copy(kafka: Kafka, producer: Producer, end: number): Promise<void> {
  const admin = kafka.admin();
  await admin.connect();
  let aborts = 0;
  for (;;) {
    const [{ partitions } = { partitions: [] }] = await admin.fetchOffsets({
      groupId: GROUP,
      topics: ['in'],
    });
    const from = Math.max(0, Number(partitions[0]?.offset ?? 0));
    if (from >= end) break;
    const transaction = await producer.transaction();
    const values = Array.from({ length: PER_TRANSACTION }, (_, n) => String(from + n));
    await transaction.send({ topic: 'out', messages: values.map((value) => ({ value })) });
    const offset = String(from + PER_TRANSACTION);
    await transaction.sendOffsets({
      consumerGroupId: GROUP,
      topics: [{ topic: 'in', partitions: [{ partition: 0, offset }] }],
    });
    aborts += 1;
    await (aborts % 3 === 0 ? transaction.abort() : transaction.commit());
  }
  await admin.disconnect();
}

/** All values of `out`, as far as the isolation lets them be read. */
async function readOut(port: number, isolationLevel: 0 | 1): Promise<string[]> {
  const client = await RawClient.connect(port);
  const values: string[] = [];
  for (let offset = 0; ; ) {
    const request = fetchRequest([{ topic: 'out', offset }], { isolationLevel });
    const reply = await client.call(fetchApi, 11, request);
    const { records, abortedTransactions, highWatermark, lastStableOffset } =
      reply.responses[0]!.partitions[0]!;
    const end = isolationLevel === 1 ? lastStableOffset : highWatermark;
    const aborted = new Set<number>();
    const begun = [...(abortedTransactions ?? [])];
    for (let at = 0; at < (records?.length ?? 0); ) {
      const batch = records!.subarray(at, batchEnd(records!, at));
      at += batch.length;
      offset = baseOffset(batch) + lastOffsetDelta(batch) + 1;
      const writer = producerId(batch);
      for (const one of begun.filter(({ firstOffset }) => firstOffset < offset)) {
        aborted.add(one.producerId);
        begun.splice(begun.indexOf(one), 1);
      }
      const isControl = (attributes(batch) & Attribute.CONTROL) !== 0;
      if (isControl) aborted.delete(writer);
      if (isControl || aborted.has(writer)) continue;
      for (const { value } of readRecords(batch)) values.push(String(value));
    }
    if (offset >= end) break;
  }
  client.close();
  return values;
}

const portOf = (address: string) => Number(address.split(':').at(-1));

test('a copy job is exactly once over aborts and a killed server', {
  timeout: 90_000,
}, async () => {
  const dataDir = join(folder, 'copy');
  const first = await startChild(dataDir);
  const before = connect(first.addresses.kafka);
  const admin = before.admin();
  await admin.connect();
  await admin.createTopics({ topics: ['in', 'out'].map((topic) => ({ topic, numPartitions: 1 })) });
  await admin.disconnect();
  const producer = await copierOf(before);
  await copy(before, producer, RECORDS / 2);
  // Written, offsets staged, not committed: it must never be seen.
  const open = await producer.transaction();
  await open.send({ topic: 'out', messages: [{ value: 'lost' }] });
  await open.sendOffsets({
    consumerGroupId: GROUP,
    topics: [{ topic: 'in', partitions: [{ partition: 0, offset: '999' }] }],
  });
  await first.kill();
  await producer.disconnect().catch(() => {});

  const second = await startChild(dataDir);
  const after = connect(second.addresses.kafka);
  // The same transactional id: what was open is aborted before it answers.
  const successor = await copierOf(after);
  await copy(after, successor, RECORDS);
  await successor.disconnect();
  const port = portOf(second.addresses.kafka);
  const all = Array.from({ length: RECORDS }, (_, n) => String(n));
  expect(await readOut(port, 1)).toEqual(all);
  const uncommitted = await readOut(port, 0);
  expect(uncommitted).toContain('lost');
  expect(uncommitted.length).toBeGreaterThan(RECORDS);
  expect(await second.stop()).toBe(0);
});

test('KIP-890: partitions join by being written to, every end raises the epoch, timeouts abort', {
  timeout: 60_000,
}, async () => {
  const node = await startChild(join(folder, 'v2'));
  const port = portOf(node.addresses.kafka);
  const client = await RawClient.connect(port);
  await client.call(createTopicsApi, 5, {
    topics: [{ name: 'out', numPartitions: 1, replicationFactor: 1, assignments: [], configs: [] }],
    timeoutMs: 5_000,
  });
  const transactionalId = 'v2';
  const init = async (transactionTimeoutMs: number) =>
    client.call(initProducerIdApi, 5, { transactionalId, transactionTimeoutMs });
  const write = async (value: string, producerEpoch: number, baseSequence: number) => {
    const batch = batchOf([value], {
      transactional: true,
      producerId: mine,
      producerEpoch,
      baseSequence,
    });
    const request = { ...produceRequest('out', batch), transactionalId };
    const { responses } = await client.call(produceApi, 12, request);
    return responses[0]!.partitionResponses[0]!.errorCode;
  };
  const end = async (producerEpoch: number, committed: boolean) => {
    const request = { transactionalId, producerId: mine, producerEpoch, committed };
    const reply = await client.call(endTxnApi, 5, request);
    return [reply.errorCode, reply.producerEpoch];
  };
  const { producerId: mine, producerEpoch: epoch } = await init(60_000);
  expect(await write('a', epoch, 0)).toBe(0);
  expect(await write('b', epoch, 1)).toBe(0);
  expect(await end(epoch, true)).toEqual([0, epoch + 1]);
  expect(await end(epoch, true)).toEqual([0, epoch + 1]);
  // Late, of the transaction that has ended.
  expect(await write('late', epoch, 2)).toBe(ErrorCode.INVALID_PRODUCER_EPOCH);
  expect(await write('c', epoch + 1, 0)).toBe(0);
  expect(await end(epoch + 1, false)).toEqual([0, epoch + 2]);
  expect(await end(epoch + 2, false)).toEqual([0, epoch + 3]);
  expect(await end(epoch + 3, true)).toEqual([ErrorCode.INVALID_TXN_STATE, -1]);

  const short = await init(300);
  expect(await write('slow', short.producerEpoch, 0)).toBe(0);
  expect(await readOut(port, 1)).toEqual(['a', 'b']);
  await vi.waitFor(
    async () =>
      expect(await write('slow', short.producerEpoch, 1)).toBe(ErrorCode.INVALID_PRODUCER_EPOCH),
    { timeout: 10_000, interval: 100 },
  );
  expect(await end(short.producerEpoch, true)).toEqual([ErrorCode.INVALID_TXN_STATE, -1]);
  expect(await end(short.producerEpoch, false)).toEqual([0, short.producerEpoch + 1]);
  expect(await readOut(port, 1)).toEqual(['a', 'b']);
  client.close();
  expect(await node.stop()).toBe(0);
});
