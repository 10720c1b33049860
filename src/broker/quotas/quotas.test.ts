// Quotas over sockets: what the APIs accept, what replies say, and that a client really has to wait.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { silentLogger } from '../../base/log.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import { ZERO_UUID } from '../../protocol/fields.ts';
import { produceApi } from '../../protocol/messages/00-produce.ts';
import { fetchApi } from '../../protocol/messages/01-fetch.ts';
import { metadataApi } from '../../protocol/messages/03-metadata.ts';
import { createTopicsApi } from '../../protocol/messages/19-create-topics.ts';
import { deleteTopicsApi } from '../../protocol/messages/20-delete-topics.ts';
import { createPartitionsApi } from '../../protocol/messages/37-create-partitions.ts';
import { describeClientQuotasApi } from '../../protocol/messages/48-describe-client-quotas.ts';
import { alterClientQuotasApi } from '../../protocol/messages/49-alter-client-quotas.ts';
import { startTestBroker, type TestBroker } from '../testing/harness.ts';
import { RawClient } from '../testing/raw-client.ts';
import { batchOf, fetchRequest, produceRequest } from '../testing/requests.ts';

let clock: ManualClock;
let test: TestBroker;
let client: RawClient;

beforeEach(async () => {
  clock = new ManualClock();
  warnings.length = 0;
  const logger = { ...silentLogger, warn: (_: object, text: string) => void warnings.push(text) };
  test = await startTestBroker({ clock, logger });
  client = await RawClient.connect(test.port);
});

afterEach(async () => {
  client.close();
  await test.stop();
});

type Entity = Readonly<Record<string, string | null>>;
type Value = number | null;

async function alter(entity: Entity, values: Readonly<Record<string, Value>>, only = false) {
  const entry = {
    entity: Object.entries(entity).map(([entityType, entityName]) => ({ entityType, entityName })),
    ops: Object.entries(values).map(([key, value]) => ({
      key,
      value: value ?? 0,
      remove: value === null,
    })),
  };
  const request = { entries: [entry], validateOnly: only };
  return (await client.call(alterClientQuotasApi, 1, request)).entries[0]!;
}

type Component = readonly [type: string, match: number, name: string | null];

const describeQuotas = (components: readonly Component[], strict = false) =>
  client.call(describeClientQuotasApi, 1, {
    components: components.map(([entityType, matchType, match]) => ({
      entityType,
      matchType,
      match,
    })),
    strict,
  });

describe('AlterClientQuotas', () => {
  it.each<[Entity, Readonly<Record<string, Value>>, RegExp]>([
    [{}, { producer_byte_rate: 1 }, /empty/],
    [{ group: 'g' }, { producer_byte_rate: 1 }, /"group"/],
    [{ user: '' }, { producer_byte_rate: 1 }, /empty user/],
    [{ user: 'u' }, { no_such_rate: 1 }, /no_such_rate.*producer_byte_rate/],
    [{ user: 'u' }, { connection_creation_rate: 1 }, /connection_creation_rate/],
    [{ user: 'u' }, { producer_byte_rate: 0 }, /greater than 0/],
    [{ user: 'u' }, { request_percentage: -1 }, /greater than 0/],
    [{ user: 'u' }, { request_percentage: Number.NaN }, /greater than 0/],
    [{ user: 'u' }, { consumer_byte_rate: 1.5 }, /whole number/],
    [{ ip: 'no.such.host' }, { connection_creation_rate: 1 }, /no\.such\.host/],
    [{ ip: '10.0.0.1', user: 'u' }, { connection_creation_rate: 1 }, /not combined/],
  ])('refuses %j %j', async (entity, values, message) => {
    const reply = await alter(entity, values);
    expect(reply.errorCode).toBe(ErrorCode.INVALID_REQUEST);
    expect(reply.errorMessage).toMatch(message);
    expect(test.broker.services.quotas.list()).toEqual([]);
  });

  it('refuses a key or an entity given twice', async () => {
    const entity = [{ entityType: 'user', entityName: 'u' }];
    const op = { key: 'producer_byte_rate', value: 1, remove: false };
    const send = async (entries: { entity: typeof entity; ops: (typeof op)[] }[]) =>
      (await client.call(alterClientQuotasApi, 1, { entries, validateOnly: false })).entries;
    const [twiceKey] = await send([{ entity, ops: [op, op] }]);
    expect(twiceKey).toMatchObject({ errorCode: 42, errorMessage: expect.stringMatching(/twice/) });
    const both = await send([
      { entity, ops: [op] },
      { entity, ops: [op] },
    ]);
    expect(both.map(({ errorCode }) => errorCode)).toEqual([42, 42]);
  });

  it('keeps nothing when only asked to validate', async () => {
    expect((await alter({ user: 'u' }, { producer_byte_rate: 5 }, true)).errorCode).toBe(0);
    expect(test.broker.services.quotas.list()).toEqual([]);
  });
});

describe('DescribeClientQuotas', () => {
  beforeEach(async () => {
    await alter({ user: 'u', 'client-id': null }, { consumer_byte_rate: 5 });
    await alter({ user: null }, { request_percentage: 50.5 });
    await alter({ 'client-id': 'raw' }, { producer_byte_rate: 1_000_000 });
    await alter({ ip: '127.0.0.9' }, { connection_creation_rate: 10 });
  });

  it.each<[readonly Component[], boolean, number]>([
    [[], false, 4],
    [[], true, 0],
    [[['user', 2, null]], false, 2],
    [[['user', 2, null]], true, 1],
    [[['user', 1, null]], false, 1],
    [[['user', 0, 'u']], false, 1],
    [[['client-id', 2, null]], false, 2],
    [[['ip', 2, null]], false, 1],
    [
      [
        ['user', 2, null],
        ['client-id', 1, null],
      ],
      true,
      1,
    ],
  ])('finds by %j, strict %s', async (components, strict, count) => {
    const { errorCode, entries } = await describeQuotas(components, strict);
    expect([errorCode, entries!.length]).toEqual([0, count]);
  });

  it.each<[readonly Component[], number]>([
    [[['foo', 2, null]], ErrorCode.UNSUPPORTED_VERSION],
    [
      [
        ['user', 2, null],
        ['user', 0, 'u'],
      ],
      ErrorCode.INVALID_REQUEST,
    ],
    [[['user', 0, null]], ErrorCode.INVALID_REQUEST],
    [
      [
        ['ip', 2, null],
        ['user', 2, null],
      ],
      ErrorCode.INVALID_REQUEST,
    ],
    [[['', 2, null]], ErrorCode.INVALID_REQUEST],
    [[['user', 9, null]], ErrorCode.INVALID_REQUEST],
  ])('refuses %j as Kafka does', async (components, code) => {
    expect(await describeQuotas(components)).toMatchObject({ errorCode: code, entries: null });
  });
});

async function createTopic(name: string, numPartitions = 1, version = 7) {
  const { topics } = await client.call(createTopicsApi, version, {
    timeoutMs: 1_000,
    validateOnly: false,
    topics: [{ name, numPartitions, replicationFactor: 1, assignments: [], configs: [] }],
  });
  return topics[0]!.errorCode;
}

/** Whether an answer to anything at all comes while the clock stands still. */
async function answers(): Promise<boolean> {
  client.send(metadataApi, 12, {
    topics: [],
    allowAutoTopicCreation: false,
    includeClusterAuthorizedOperations: false,
    includeTopicAuthorizedOperations: false,
  });
  const answer = client.receive(metadataApi, 12).then(() => true);
  // Another connection's whole exchange is time enough for this one's.
  const other = await RawClient.connect(test.port);
  await other.call(describeClientQuotasApi, 1, { components: [], strict: false });
  other.close();
  pending = answer;
  return Promise.race([answer, Promise.resolve(false)]);
}

let pending: Promise<boolean>;
const warnings: string[] = [];

const VALUE = 'x'.repeat(1_000);

describe('a producer', () => {
  const produce = (acks = -1) =>
    client.call(produceApi, 9, produceRequest('t', batchOf([VALUE]), { acks }));

  it('is told to wait and is not heard until then; others are', async () => {
    await createTopic('t');
    await alter({ 'client-id': 'raw' }, { producer_byte_rate: 100 });
    const { throttleTimeMs, responses } = await produce();
    expect(responses[0]!.partitionResponses[0]!.errorCode).toBe(0);
    // A little more than 1,000 bytes at 100 bytes a second, measured over 10 seconds.
    expect(throttleTimeMs).toBeGreaterThan(0);
    expect(throttleTimeMs).toBeLessThan(2_000);
    expect(await answers()).toBe(false);
    await clock.advance(throttleTimeMs);
    expect(await pending).toBe(true);
    // Waiting for a quota is no slow request.
    expect(warnings).toEqual([]);
  });

  it('with acks=0 waits without having been told', async () => {
    await createTopic('t');
    await alter({ user: null }, { producer_byte_rate: 10 });
    client.send(produceApi, 9, produceRequest('t', batchOf([VALUE]), { acks: 0 }));
    expect(await answers()).toBe(false);
    await clock.advance(200_000);
    expect(await pending).toBe(true);
  });

  it('waits no more once the quota is gone', async () => {
    await createTopic('t');
    await alter({ 'client-id': 'raw' }, { producer_byte_rate: 100 });
    const { throttleTimeMs } = await produce();
    await clock.advance(throttleTimeMs);
    await alter({ 'client-id': 'raw' }, { producer_byte_rate: null });
    expect((await produce()).throttleTimeMs).toBe(0);
  });
});

describe('a consumer', () => {
  it('gets nothing and waits when it would be above, then gets it all', async () => {
    await createTopic('t');
    const values = Array.from({ length: 4 }, () => VALUE);
    for (const value of values) {
      await client.call(produceApi, 9, produceRequest('t', batchOf([value])));
    }
    await alter({ 'client-id': 'raw' }, { consumer_byte_rate: 200 });
    const read = () => client.call(fetchApi, 12, fetchRequest([{ topic: 't' }]));
    const bytesOf = ({ responses }: Awaited<ReturnType<typeof read>>) =>
      responses[0]?.partitions[0]?.records?.length ?? 0;
    const first = await read();
    // Ten windows' worth at most, which is one batch.
    expect(bytesOf(first)).toBeGreaterThan(1_000);
    expect(bytesOf(first)).toBeLessThan(2_000);
    expect(first.throttleTimeMs).toBe(0);
    const second = await read();
    expect(second).toMatchObject({ errorCode: 0, responses: [] });
    expect(second.throttleTimeMs).toBeGreaterThan(0);
    expect(test.log.unreleased).toBe(0);
    await clock.advance(11_000);
    expect(bytesOf(await read())).toBe(bytesOf(first));
  });
});

describe('request_percentage', () => {
  it('makes a client wait no longer than a window', async () => {
    await alter({ user: null }, { request_percentage: 0.000_1 });
    // The clock stands still: the time that requests take is charged by hand.
    const { request } = test.broker.services.quotas.limits('ANONYMOUS', 'raw')!;
    request!.add(1_000, clock.monotonic());
    const { throttleTimeMs } = await describeQuotas([]);
    expect(throttleTimeMs).toBe(1_000);
    expect(await answers()).toBe(false);
    await clock.advance(1_000);
    expect(await pending).toBe(true);
  });
});

describe('controller_mutation_rate', () => {
  beforeEach(() => alter({ user: 'ANONYMOUS' }, { controller_mutation_rate: 1 }));

  it('refuses what comes while earlier changes are not paid off', async () => {
    expect(await createTopic('big', 15)).toBe(0);
    expect(await createTopic('next')).toBe(ErrorCode.THROTTLING_QUOTA_EXCEEDED);
    expect(test.directory.byName('next')).toBeUndefined();
    await clock.advance(4_000);
    expect(await createTopic('next')).toBe(0);
    const topics = [{ name: 'big', count: 16, assignments: null }];
    const grown = client.call(createPartitionsApi, 3, {
      topics,
      timeoutMs: 1_000,
      validateOnly: false,
    });
    await clock.advance(0);
    expect((await grown).results[0]!.errorCode).toBe(ErrorCode.THROTTLING_QUOTA_EXCEEDED);
    const removed = client.call(deleteTopicsApi, 6, {
      timeoutMs: 1_000,
      topicNames: [],
      topics: [{ name: 'big', topicId: ZERO_UUID }],
    });
    await clock.advance(2_000);
    const { responses, throttleTimeMs } = await removed;
    expect(responses[0]!.errorCode).toBe(0);
    expect(throttleTimeMs).toBe(0);
  });

  it('lets clients of old versions pass and wait', async () => {
    expect(await createTopic('big', 15, 5)).toBe(0);
    expect(await answers()).toBe(false);
    await clock.advance(4_000);
    expect(await pending).toBe(true);
  });
});
