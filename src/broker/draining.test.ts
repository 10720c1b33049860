import { afterAll, beforeAll, expect, test } from 'vitest';
import { ErrorCode } from '../protocol/errors.ts';
import { ZERO_UUID } from '../protocol/fields.ts';
import { produceApi } from '../protocol/messages/00-produce.ts';
import { fetchApi } from '../protocol/messages/01-fetch.ts';
import { metadataApi } from '../protocol/messages/03-metadata.ts';
import { sendClientsAway } from './draining.ts';
import { startTestBroker, type TestBroker } from './testing/harness.ts';
import { RawClient } from './testing/raw-client.ts';
import { batchOf, fetchRequest } from './testing/requests.ts';

let broker: TestBroker;
let client: RawClient;

beforeAll(async () => {
  broker = await startTestBroker();
  client = await RawClient.connect(broker.port);
  const topicId = '00000000-0000-4000-8000-000000000001';
  await broker.directory.create({ topicId, name: 't', partitionCount: 1, config: {}, nowMs: 1 });
});
afterAll(async () => {
  client.close();
  await broker.stop();
});

const produce = (acks: number) =>
  client.call(produceApi, 9, {
    acks,
    timeoutMs: 1_000,
    topicData: [
      {
        name: 't',
        topicId: ZERO_UUID,
        partitionData: [{ index: 0, records: Buffer.from(batchOf(['a'])) }],
      },
    ],
  });

const fetch = (session: { readonly sessionId: number; readonly sessionEpoch: number }) =>
  client.call(fetchApi, 11, {
    ...session,
    maxWaitMs: 0,
    minBytes: 0,
    topics: [
      {
        topic: 't',
        topicId: ZERO_UUID,
        partitions: [{ partition: 0, fetchOffset: 0, partitionMaxBytes: 1_000 }],
      },
    ],
    forgottenTopicsData: [],
  });

test('a broker that drains sends clients to others and takes nothing', async () => {
  const before = await produce(1);
  expect(before.responses[0]!.partitionResponses[0]!.errorCode).toBe(0);
  const { sessionId } = await fetch({ sessionId: 0, sessionEpoch: 0 });
  expect(sessionId).not.toBe(0);

  const sent = sendClientsAway(broker.broker.services);
  const after = await produce(1);
  expect(after.responses[0]!.partitionResponses[0]).toMatchObject({
    index: 0,
    errorCode: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    baseOffset: -1,
  });
  expect(broker.log.watermarks(broker.directory.byName('t')!.partitions[0]!)!.highWatermark).toBe(
    1,
  );

  // A session is over: its client asks for everything, and hears of each partition.
  const next = await fetch({ sessionId, sessionEpoch: 1 });
  expect(next.errorCode).toBe(ErrorCode.FETCH_SESSION_ID_NOT_FOUND);
  const full = await fetch({ sessionId: 0, sessionEpoch: 0 });
  expect(full.responses[0]!.partitions[0]).toMatchObject({
    partitionIndex: 0,
    errorCode: ErrorCode.NOT_LEADER_OR_FOLLOWER,
  });
  expect(sent.quietMs()).toBeLessThan(20_000);

  // Whoever asks where to go is answered.
  const { topics } = await client.call(metadataApi, 9, {
    topics: [{ name: 't', topicId: ZERO_UUID }],
    allowAutoTopicCreation: false,
    includeClusterAuthorizedOperations: false,
    includeTopicAuthorizedOperations: false,
  });
  expect(topics[0]!.errorCode).toBe(0);
});

test('a poll that waits is answered when its broker begins to drain', async () => {
  const waiting = await startTestBroker();
  const reader = await RawClient.connect(waiting.port);
  const topicId = '00000000-0000-4000-8000-000000000001';
  await waiting.directory.create({ topicId, name: 't', partitionCount: 1, config: {}, nowMs: 1 });
  const { fetchWaits } = waiting.broker.services;
  const request = fetchRequest([{ topic: 't', offset: 0 }]);
  const polling = reader.call(fetchApi, 11, { ...request, maxWaitMs: 60_000 });
  await expect.poll(() => fetchWaits.waiting).toBe(1);
  sendClientsAway(waiting.broker.services);
  expect((await polling).responses[0]!.partitions[0]!.errorCode).toBe(0);
  expect(fetchWaits.waiting).toBe(0);
  reader.close();
  await waiting.stop();
});
