// Produce, Fetch, ListOffsets, OffsetForLeaderEpoch, DeleteRecords and InitProducerId over a socket, with raw
// requests where real clients would not send such.
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { FloeError } from '../../base/error.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import { ZERO_UUID } from '../../protocol/fields.ts';
import { produceApi } from '../../protocol/messages/00-produce.ts';
import { fetchApi } from '../../protocol/messages/01-fetch.ts';
import { listOffsetsApi } from '../../protocol/messages/02-list-offsets.ts';
import { deleteRecordsApi } from '../../protocol/messages/21-delete-records.ts';
import { initProducerIdApi } from '../../protocol/messages/22-init-producer-id.ts';
import { offsetForLeaderEpochApi } from '../../protocol/messages/23-offset-for-leader-epoch.ts';
import * as RecordBatch from '../../protocol/record-batch.ts';
import { readRecords } from '../../protocol/records.ts';
import { startTestBroker, type TestBroker } from '../testing/harness.ts';
import { RawClient } from '../testing/raw-client.ts';
import {
  batchOf,
  type FetchFrom,
  type FetchWith,
  fetchRequest,
  produceRequest,
} from '../testing/requests.ts';

let test: TestBroker;
let client: RawClient;
let topics = 0;

beforeAll(async () => {
  test = await startTestBroker();
  client = await RawClient.connect(test.port);
});

afterAll(async () => {
  client.close();
  await test.stop();
});

async function topic(config: Record<string, string> = {}, partitionCount = 2): Promise<string> {
  const name = `topic-${(topics += 1)}`;
  const topicId = `00000000-0000-4000-8000-${String(topics).padStart(12, '0')}`;
  await test.directory.create({ topicId, name, partitionCount, config, nowMs: 0 });
  return name;
}

type Options = Parameters<typeof produceRequest>[2];

async function produce(name: string, records: Uint8Array | null, options: Options = {}) {
  const { responses } = await client.call(produceApi, 8, produceRequest(name, records, options));
  return responses[0]!.partitionResponses[0]!;
}

async function fetch(from: readonly FetchFrom[], options: FetchWith = {}) {
  const reply = await client.call(fetchApi, 11, fetchRequest(from, options));
  const partitions = reply.responses.flatMap((one) => one.partitions);
  return { ...reply, partitions };
}

const valuesOf = (records: Uint8Array | null) =>
  readRecords(records!).map(({ value }) => value!.toString());

describe('Produce', () => {
  it('answers offsets and log start', async () => {
    const name = await topic();
    await produce(name, batchOf(['a', 'b']));
    expect(await produce(name, batchOf(['c']))).toMatchObject({
      errorCode: 0,
      baseOffset: 2,
      logAppendTimeMs: -1,
      logStartOffset: 0,
    });
  });

  it('refuses one partition and writes another', async () => {
    const name = await topic();
    const broken = batchOf(['x']);
    broken[20]! ^= 1;
    const { responses } = await client.call(produceApi, 8, {
      acks: -1,
      timeoutMs: 1_000,
      topicData: [
        {
          name,
          topicId: ZERO_UUID,
          partitionData: [
            { index: 0, records: batchOf(['a']) },
            { index: 1, records: broken },
            { index: 9, records: batchOf(['c']) },
          ],
        },
      ],
    });
    const codes = responses[0]!.partitionResponses.map(({ errorCode }) => errorCode);
    expect(codes).toEqual([0, ErrorCode.CORRUPT_MESSAGE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]);
  });

  it.each([
    ['no records', null, ErrorCode.INVALID_RECORD],
    ['an empty set', Buffer.alloc(0), ErrorCode.INVALID_RECORD],
    ['two batches', Buffer.concat([batchOf(['a']), batchOf(['b'])]), ErrorCode.INVALID_RECORD],
    ['a cut batch', batchOf(['abcdef']).subarray(0, -3), ErrorCode.INVALID_RECORD],
    ['a base offset', batchOf(['a'], { baseOffset: 7 }), ErrorCode.INVALID_RECORD],
    [
      'a control batch',
      batchOf([{ key: '\0\0\0\u0001', value: '' }], { control: true }),
      ErrorCode.INVALID_RECORD,
    ],
    [
      'a transactional batch without transactional id',
      batchOf(['a'], { transactional: true, producerId: 1, producerEpoch: 0, baseSequence: 0 }),
      ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ],
  ])('refuses %s', async (_name, records, errorCode) => {
    const name = await topic();
    expect(await produce(name, records)).toMatchObject({ errorCode, baseOffset: -1 });
    const id = test.directory.byName(name)!.partitions[0]!;
    expect(test.log.watermarks(id)!.highWatermark).toBe(0);
  });

  it('refuses acks other than 0, 1 and -1', async () => {
    const name = await topic();
    const { errorCode } = await produce(name, batchOf(['a']), { acks: 2 });
    expect(errorCode).toBe(ErrorCode.INVALID_REQUIRED_ACKS);
  });

  it('enforces max.message.bytes and follows a change of it at once', async () => {
    const name = await topic({ 'max.message.bytes': '1000' });
    const large = batchOf(['x'.repeat(2_000)]);
    expect((await produce(name, large)).errorCode).toBe(ErrorCode.MESSAGE_TOO_LARGE);
    await test.directory.alterConfig(test.directory.byName(name)!.topicId, {
      'max.message.bytes': null,
    });
    expect((await produce(name, large)).errorCode).toBe(0);
  });

  it('names the records without key on a compacted topic', async () => {
    const name = await topic({ 'cleanup.policy': 'compact' });
    const reply = await produce(name, batchOf([{ key: 'k', value: 'v' }, { value: 'v' }]));
    expect(reply.errorCode).toBe(ErrorCode.INVALID_RECORD);
    expect(reply.recordErrors.map(({ batchIndex }) => batchIndex)).toEqual([1]);
  });

  it('stamps batches with the time of admission under LogAppendTime', async () => {
    const name = await topic({ 'message.timestamp.type': 'LogAppendTime' });
    const { logAppendTimeMs } = await produce(name, batchOf([{ value: 'a', timestamp: 5 }]));
    const { partitions } = await fetch([{ topic: name }]);
    const bytes = partitions[0]!.records!;
    expect(RecordBatch.maxTimestamp(bytes)).toBe(logAppendTimeMs);
    expect(RecordBatch.crcMatches(bytes)).toBe(true);
    expect(RecordBatch.attributes(bytes) & RecordBatch.Attribute.LOG_APPEND_TIME).not.toBe(0);
  });

  it('has no reply for acks=0, and hangs up on a failure', async () => {
    const name = await topic();
    const raw = await RawClient.connect(test.port);
    raw.send(produceApi, 8, produceRequest(name, batchOf(['a']), { acks: 0 }));
    const next = raw.send(listOffsetsApi, 5, latest(name));
    expect((await raw.receive(listOffsetsApi, 5)).correlationId).toBe(next);
    raw.send(produceApi, 8, produceRequest('missing', batchOf(['a']), { acks: 0 }));
    await raw.closed;
  });

  it('takes topic ids from version 13 on', async () => {
    const name = await topic();
    const { topicId } = test.directory.byName(name)!;
    const request = (id: string) => ({
      acks: -1,
      timeoutMs: 1_000,
      topicData: [
        { name: '', topicId: id, partitionData: [{ index: 0, records: batchOf(['a']) }] },
      ],
    });
    const known = await client.call(produceApi, 13, request(topicId));
    expect(known.responses[0]!.partitionResponses[0]!.errorCode).toBe(0);
    const unknown = await client.call(
      produceApi,
      13,
      request('00000000-0000-4000-8000-999999999999'),
    );
    const { errorCode } = unknown.responses[0]!.partitionResponses[0]!;
    expect(errorCode).toBe(ErrorCode.UNKNOWN_TOPIC_ID);
  });
});

describe('Fetch', () => {
  it('returns whole batches, also from within one', async () => {
    const name = await topic();
    await produce(name, batchOf(['a', 'b', 'c']));
    await produce(name, batchOf(['d']));
    const { partitions } = await fetch([{ topic: name, offset: 1 }]);
    expect(valuesOf(partitions[0]!.records)).toEqual(['a', 'b', 'c', 'd']);
    expect(partitions[0]!.highWatermark).toBe(4);
  });

  it('patches headers of raw runs: offsets, leader epoch, nothing else', async () => {
    const name = await topic();
    const values = ['small', 'x'.repeat(9_000), 'tail'];
    for (const value of values) await produce(name, batchOf([value, value]));
    test.log.raw = true;
    const { partitions } = await fetch([{ topic: name }]);
    test.log.raw = false;
    const bytes = partitions[0]!.records!;
    const offsets: number[] = [];
    for (let at = 0; at < bytes.length; at = RecordBatch.batchEnd(bytes, at)) {
      offsets.push(RecordBatch.baseOffset(bytes, at));
      expect(RecordBatch.leaderEpoch(bytes, at)).toBe(0);
      expect(RecordBatch.crcMatches(bytes, at)).toBe(true);
    }
    expect(offsets).toEqual([0, 2, 4]);
    expect(valuesOf(bytes)).toEqual(values.flatMap((value) => [value, value]));
  });

  it('answers what is out of range with -1 everywhere', async () => {
    const name = await topic();
    await produce(name, batchOf(['a']));
    for (const offset of [2, -1]) {
      const { partitions } = await fetch([{ topic: name, offset }]);
      expect(partitions[0]).toMatchObject({
        errorCode: ErrorCode.OFFSET_OUT_OF_RANGE,
        highWatermark: -1,
        logStartOffset: -1,
      });
    }
  });

  it('keeps the order asked and spends the request limit in it', async () => {
    const name = await topic();
    for (const partition of [0, 1]) {
      await produce(name, batchOf(['x'.repeat(500)]), { partition });
    }
    const both = [
      { topic: name, partition: 1 },
      { topic: name, partition: 0 },
    ];
    const { partitions } = await fetch(both, { maxBytes: 1 });
    expect(partitions.map((p) => [p.partitionIndex, p.records!.length > 0])).toEqual([
      [1, true],
      [0, false],
    ]);
  });

  it('waits for min bytes, and one unknown partition does not end the wait', async () => {
    const name = await topic();
    const answer = fetch([{ topic: name }, { topic: name, partition: 7 }], { maxWaitMs: 15_000 });
    while (test.broker.services.fetchWaits.waiting === 0) await new Promise(setImmediate);
    const other = await RawClient.connect(test.port);
    await other.call(produceApi, 8, produceRequest(name, batchOf(['late'])));
    const { partitions } = await answer;
    expect(partitions.map(({ errorCode }) => errorCode)).toEqual([
      0,
      ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]);
    expect(valuesOf(partitions[0]!.records)).toEqual(['late']);
    other.close();
  });

  it('waits on while there are fewer bytes than asked for, without reading again', async () => {
    const name = await topic();
    const answer = fetch([{ topic: name }], { maxWaitMs: 15_000, minBytes: 1_000 });
    while (test.broker.services.fetchWaits.waiting === 0) await new Promise(setImmediate);
    const { reads } = test.log;
    const other = await RawClient.connect(test.port);
    const send = (value: string) =>
      other.call(produceApi, 8, produceRequest(name, batchOf([value])));
    await send('x'.repeat(400));
    await send('y'.repeat(400));
    expect(test.broker.services.fetchWaits.waiting).toBe(1);
    expect(test.log.reads).toBe(reads);
    await send('z'.repeat(400));
    expect(readRecords((await answer).partitions[0]!.records!)).toHaveLength(3);
    expect(test.log.reads).toBe(reads + 1);
    other.close();
  });

  it('does not wait for min bytes that its own limits keep back', async () => {
    const name = await topic();
    for (const value of ['x', 'y', 'z']) await produce(name, batchOf([value.repeat(400)]));
    for (const raw of [false, true]) {
      test.log.raw = raw;
      const limits = { maxWaitMs: 60_000, minBytes: 1_000, maxBytes: 1_000 };
      const { partitions } = await fetch([{ topic: name }], limits);
      expect(readRecords(partitions[0]!.records!)).toHaveLength(2);
      const two = await fetch([{ topic: name, offset: 1, maxBytes: 500 }], limits);
      expect(readRecords(two.partitions[0]!.records!)).toHaveLength(1);
    }
    test.log.raw = false;
  });

  it('answers at once with nothing to wait for', async () => {
    const name = await topic();
    const request = { maxWaitMs: 60_000 };
    expect((await fetch([{ topic: 'missing' }], request)).partitions[0]!.errorCode).toBe(3);
    expect((await fetch([{ topic: name, offset: 9 }], request)).partitions[0]!.errorCode).toBe(1);
    expect((await fetch([{ topic: name }], { ...request, minBytes: 0 })).partitions).toHaveLength(
      1,
    );
  });

  it('refuses a leader epoch from the future', async () => {
    const name = await topic();
    const epochs = await fetch([
      { topic: name, leaderEpoch: 0 },
      { topic: name, partition: 1, leaderEpoch: 1 },
    ]);
    expect(epochs.partitions.map(({ errorCode }) => errorCode)).toEqual([
      0,
      ErrorCode.UNKNOWN_LEADER_EPOCH,
    ]);
  });

  it('tells a session only news', async () => {
    const name = await topic();
    await produce(name, batchOf(['a']));
    const first = await fetch([{ topic: name }, { topic: name, partition: 1 }], {
      session: [0, 0],
    });
    expect(first.partitions).toHaveLength(2);
    const { sessionId } = first;
    const quiet = await fetch([{ topic: name, offset: 1 }], { session: [sessionId, 1] });
    expect(quiet.partitions).toHaveLength(0);
    await produce(name, batchOf(['b']));
    const news = await fetch([], { session: [sessionId, 2] });
    expect(news.partitions.map((p) => valuesOf(p.records))).toEqual([['b']]);
    const { errorCode } = await fetch([], { session: [sessionId, 9] });
    expect(errorCode).toBe(ErrorCode.INVALID_FETCH_SESSION_EPOCH);
  });

  it('takes topic ids from version 13 on, and knows a deleted one no more', async () => {
    const name = await topic();
    const { topicId } = test.directory.byName(name)!;
    const read = () => client.call(fetchApi, 13, fetchRequest([{ topicId }]));
    expect((await read()).responses[0]!.partitions[0]!.errorCode).toBe(0);
    await test.directory.delete(topicId);
    const { partitions } = (await read()).responses[0]!;
    expect(partitions[0]!.errorCode).toBe(ErrorCode.UNKNOWN_TOPIC_ID);
  });

  it('holds nothing once replies are out', () => {
    expect(test.log.unreleased).toBe(0);
  });
});

const listRequest = (name: string, timestamp: number) => ({
  replicaId: -1,
  isolationLevel: 0,
  timeoutMs: 0,
  topics: [{ name, partitions: [{ partitionIndex: 0, timestamp }] }],
});

const latest = (name: string) => listRequest(name, -1);

async function offsetAt(name: string, timestamp: number, version = 7): Promise<number[]> {
  const { topics: found } = await client.call(
    listOffsetsApi,
    version,
    listRequest(name, timestamp),
  );
  const { errorCode, offset, timestamp: at } = found[0]!.partitions[0]!;
  return [errorCode, offset, at];
}

describe('ListOffsets', () => {
  it('finds records by time and the special times', async () => {
    const name = await topic();
    await produce(
      name,
      batchOf([1_000, 2_000, 5_000, 3_000].map((timestamp) => ({ value: 'v', timestamp }))),
    );
    expect(await offsetAt(name, 1_500)).toEqual([0, 1, 2_000]);
    expect(await offsetAt(name, 6_000)).toEqual([0, -1, -1]);
    expect(await offsetAt(name, -1)).toEqual([0, 4, -1]);
    expect(await offsetAt(name, -2)).toEqual([0, 0, -1]);
    expect(await offsetAt(name, -3)).toEqual([0, 2, 5_000]);
    expect(await offsetAt(name, -4, 8)).toEqual([0, 0, -1]);
    expect(await offsetAt(name, -5, 9)).toEqual([0, -1, -1]);
    expect((await offsetAt('missing', -1))[0]).toBe(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
  });
});

describe('ListOffsets over damaged records', () => {
  it('answers a storage error and keeps the connection', async () => {
    const name = await topic();
    await produce(name, batchOf([{ value: 'v', timestamp: 1_000 }]));
    const look = vi.spyOn(test.log, 'offsetForTime');
    look.mockRejectedValueOnce(new FloeError('corrupt', 'a damaged batch'));
    expect(await offsetAt(name, 500)).toEqual([ErrorCode.KAFKA_STORAGE_ERROR, -1, -1]);
    expect(await offsetAt(name, 500)).toEqual([0, 0, 1_000]);
    look.mockRestore();
  });
});

describe('OffsetForLeaderEpoch', () => {
  it('knows one epoch, which ends at the log end', async () => {
    const name = await topic();
    await produce(name, batchOf(['a', 'b']));
    const ask = async (leaderEpoch: number, currentLeaderEpoch = -1) => {
      const partitions = [{ partition: 0, leaderEpoch, currentLeaderEpoch }];
      const reply = await client.call(offsetForLeaderEpochApi, 3, {
        topics: [{ topic: name, partitions }],
      });
      return reply.topics[0]!.partitions[0];
    };
    expect(await ask(0)).toMatchObject({ errorCode: 0, leaderEpoch: 0, endOffset: 2 });
    expect(await ask(5)).toMatchObject({ errorCode: 0, leaderEpoch: -1, endOffset: -1 });
    expect(await ask(0, 1)).toMatchObject({ errorCode: ErrorCode.UNKNOWN_LEADER_EPOCH });
  });
});

describe('DeleteRecords', () => {
  it('moves the log start and refuses to go past the end', async () => {
    const name = await topic();
    await produce(name, batchOf(['a', 'b', 'c']));
    const remove = async (offset: number, partitionIndex = 0) => {
      const asked = [{ name, partitions: [{ partitionIndex, offset }] }];
      const reply = await client.call(deleteRecordsApi, 1, { topics: asked, timeoutMs: 1_000 });
      const { errorCode, lowWatermark } = reply.topics[0]!.partitions[0]!;
      return [errorCode, lowWatermark];
    };
    expect(await remove(2)).toEqual([0, 2]);
    expect(await remove(1)).toEqual([0, 2]);
    expect(await remove(4)).toEqual([ErrorCode.OFFSET_OUT_OF_RANGE, -1]);
    expect(await remove(-1)).toEqual([0, 3]);
    expect(await remove(0, 9)).toEqual([ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1]);
  });

  it('is refused where compaction alone deletes', async () => {
    const errors = [];
    for (const policy of ['compact', 'compact,delete']) {
      const name = await topic({ 'cleanup.policy': policy });
      await produce(name, batchOf([{ key: 'k', value: 'v' }]));
      const topics = [{ name, partitions: [{ partitionIndex: 0, offset: 1 }] }];
      const reply = await client.call(deleteRecordsApi, 1, { topics, timeoutMs: 1_000 });
      errors.push(reply.topics[0]!.partitions[0]!.errorCode);
    }
    expect(errors).toEqual([ErrorCode.POLICY_VIOLATION, 0]);
  });
});

describe('InitProducerId', () => {
  const init = (transactionalId: string | null) =>
    client.call(initProducerIdApi, 4, { transactionalId, transactionTimeoutMs: 60_000 });

  it('hands out each id once', async () => {
    const ids: number[] = [];
    for (let i = 0; i < 5; i += 1) ids.push((await init(null)).producerId);
    expect(new Set(ids).size).toBe(5);
  });

  it('refuses a transactional id for good where nobody coordinates it', async () => {
    expect((await init('tx')).errorCode).toBe(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
    expect((await init('')).errorCode).toBe(ErrorCode.INVALID_REQUEST);
  });
});
