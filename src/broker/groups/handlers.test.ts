// The handlers of groups: unmodified clients (kafkajs) over sockets, and the corners of versions by direct calls.
import { Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../base/clock.ts';
import { silentLogger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import { seededIds, seededPrng } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import { openSqliteMetadata } from '../../metadata/sqlite/index.ts';
import { TopicDirectory } from '../../metadata/topic-directory.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import { ZERO_UUID } from '../../protocol/fields.ts';
import type { AnyHandler, RequestContext } from '../handler.ts';
import { anybody } from '../testing/access.ts';
import { startTestBroker, type TestBroker } from '../testing/harness.ts';
import { allLeases } from '../testing/leases.ts';
import { GroupCoordinator, groupHandlers, groupSettings } from './index.ts';

let broker: TestBroker;
let groups: GroupCoordinator;
let kafka: Kafka;
let handlers: readonly AnyHandler[];
let topicId: string;

beforeAll(async () => {
  const metadata = openSqliteMetadata(':memory:');
  const directory = await TopicDirectory.load(metadata);
  groups = await GroupCoordinator.load({
    metadata: metadata.groups,
    transactions: metadata.transactions,
    leases: allLeases(),
    directory,
    settings: resolveSettings(groupSettings, { 'group.initial.rebalance.delay.ms': '0' }),
    clock: systemClock,
    ids: seededIds(seededPrng(3)),
    logger: silentLogger,
    metrics: noMetrics,
  });
  handlers = groupHandlers(groups);
  broker = await startTestBroker({ metadata, directory, handlers: () => handlers });
  topicId = '22222222-2222-4222-8222-222222222222';
  const topic = { topicId, name: 'orders', partitionCount: 2, config: {}, nowMs: 0 };
  await directory.create(topic);
  kafka = new Kafka({ brokers: [broker.address], logLevel: logLevel.NOTHING, clientId: 'test' });
});

afterAll(async () => {
  await groups.stop();
  await broker.stop();
});

describe('kafkajs', () => {
  test('two members share the partitions; who comes back goes on where the group stopped', async () => {
    const seen: string[] = [];
    const admin = kafka.admin();
    const producer = kafka.producer();
    await Promise.all([admin.connect(), producer.connect()]);
    const send = (value: string) =>
      producer.send({
        topic: 'orders',
        messages: [0, 1].map((partition) => ({ value: `${value}${partition}`, partition })),
      });
    await send('a');
    const consume = async () => {
      const consumer = kafka.consumer({
        groupId: 'pair',
        sessionTimeout: 6_000,
        heartbeatInterval: 100,
        maxWaitTimeInMs: 100,
      });
      await consumer.connect();
      await consumer.subscribe({ topics: ['orders'], fromBeginning: true });
      await consumer.run({
        eachMessage: async ({ message }) => void seen.push(String(message.value)),
      });
      return consumer;
    };
    const consumers = [await consume(), await consume()];
    await expect.poll(() => seen.toSorted(), { timeout: 10_000 }).toEqual(['a0', 'a1']);
    const shares = async () => {
      const { groups: described } = await admin.describeGroups(['pair']);
      return described[0]?.state === 'Stable' ? described[0].members.length : 0;
    };
    await expect.poll(shares, { timeout: 10_000 }).toBe(2);
    const listed = (await admin.listGroups()).groups;
    expect(listed).toContainEqual({ groupId: 'pair', protocolType: 'consumer' });
    await expect(admin.deleteGroups(['pair'])).rejects.toMatchObject({
      groups: [{ errorCode: ErrorCode.NON_EMPTY_GROUP }],
    });
    await Promise.all(consumers.map((consumer) => consumer.disconnect()));
    const [offsets] = await admin.fetchOffsets({ groupId: 'pair', topics: ['orders'] });
    expect(offsets?.partitions.map(({ offset }) => offset)).toEqual(['1', '1']);
    await send('b');
    const again = await consume();
    await expect.poll(() => seen.toSorted(), { timeout: 10_000 }).toEqual(['a0', 'a1', 'b0', 'b1']);
    await again.disconnect();
    await admin.deleteGroups(['pair']);
    expect((await admin.listGroups()).groups).toEqual([]);
    await Promise.all([admin.disconnect(), producer.disconnect()]);
  });
});

/** Calls a handler as the connection would. */
async function call(key: number, apiVersion: number, request: object) {
  const handler = handlers.find(({ api }) => api.key === key)!;
  const context = {
    apiVersion,
    clientId: 'c',
    connection: { listener: 'PLAINTEXT', remoteAddress: '127.0.0.1' },
    services: broker.broker.services,
    access: anybody(),
    countError() {},
  } as unknown as RequestContext;
  return handler.handle(request as never, context) as Promise<Record<string, never>>;
}

const commit = (groupId: string, topics: object[], apiVersion = 9) =>
  call(8, apiVersion, {
    groupId,
    generationIdOrMemberEpoch: -1,
    memberId: '',
    groupInstanceId: null,
    retentionTimeMs: -1,
    topics,
  });

const committed = (
  partitionIndex: number,
  committedOffset: number,
  text: string | null = null,
) => ({
  partitionIndex,
  committedOffset,
  committedLeaderEpoch: 3,
  committedMetadata: text,
});

describe('versions', () => {
  test('offsets by name and by id, known and unknown, mixed', async () => {
    const reply = await commit('mixed', [
      { name: 'nope', topicId: ZERO_UUID, partitions: [committed(0, 1)] },
      {
        name: 'orders',
        topicId: ZERO_UUID,
        partitions: [committed(9, 1), committed(1, 7, 'note')],
      },
    ]);
    expect(reply).toMatchObject({
      topics: [
        { name: 'nope', partitions: [{ errorCode: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION }] },
        {
          partitions: [
            { partitionIndex: 9, errorCode: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION },
            { partitionIndex: 1, errorCode: 0 },
          ],
        },
      ],
    });
    const unknown = '33333333-3333-4333-8333-333333333333';
    const byId = [
      { name: '', topicId, partitions: [committed(0, 8)] },
      { name: '', topicId: unknown, partitions: [committed(0, 8)] },
    ];
    expect(await commit('mixed', byId, 10)).toMatchObject({
      topics: [
        { topicId, partitions: [{ errorCode: 0 }] },
        { topicId: unknown, partitions: [{ errorCode: ErrorCode.UNKNOWN_TOPIC_ID }] },
      ],
    });
    const ask = { name: '', topicId: unknown, partitionIndexes: [0] };
    const fetched = await call(9, 10, {
      groups: [
        { groupId: 'mixed', topics: null },
        { groupId: 'mixed', topics: [ask] },
        {
          groupId: 'none',
          topics: [{ name: 'orders', topicId: ZERO_UUID, partitionIndexes: [0] }],
        },
      ],
    });
    expect(fetched).toMatchObject({
      groups: [
        {
          topics: [
            {
              name: 'orders',
              topicId,
              partitions: [
                {
                  partitionIndex: 1,
                  committedOffset: 7,
                  metadata: 'note',
                  committedLeaderEpoch: 3,
                },
                { partitionIndex: 0, committedOffset: 8, metadata: '' },
              ],
            },
          ],
        },
        { topics: [{ partitions: [{ errorCode: ErrorCode.UNKNOWN_TOPIC_ID }] }] },
        { topics: [{ partitions: [{ committedOffset: -1, metadata: '', errorCode: 0 }] }] },
      ],
    });
    expect(await call(9, 2, { groupId: 'mixed', topics: null, groups: [] })).toMatchObject({
      topics: [{ name: 'orders' }],
    });
  });

  test('a position with another staged in a transaction is unstable, for whoever asks', async () => {
    const topics = [
      { name: 'orders', topicId: ZERO_UUID, partitions: [committed(0, 4), committed(1, 5)] },
    ];
    await commit('staged', topics);
    const first = broker.directory.byName('orders')!.partitions[0];
    groups.pending.begin('t', 'staged', [first!]);
    const ask = { name: 'orders', topicId: ZERO_UUID, partitionIndexes: [0, 1] };
    const fetch = (requireStable: boolean, asked: object[] | null = [ask]) =>
      call(9, 9, {
        requireStable,
        groups: [{ groupId: 'staged', memberId: null, memberEpoch: -1, topics: asked }],
      });
    const unstable = { committedOffset: -1, errorCode: ErrorCode.UNSTABLE_OFFSET_COMMIT };
    const stable = { committedOffset: 5, errorCode: 0 };
    const all = [{ topics: [{ partitions: [unstable, stable] }] }];
    expect(await fetch(true)).toMatchObject({ groups: all });
    expect(await fetch(true, null)).toMatchObject({ groups: all });
    expect(await fetch(false)).toMatchObject({
      groups: [{ topics: [{ partitions: [{ committedOffset: 4, errorCode: 0 }, stable] }] }],
    });
    expect(
      await call(9, 7, { groupId: 'staged', topics: [ask], requireStable: true, groups: [] }),
    ).toMatchObject({ topics: [{ partitions: [unstable, stable] }] });
  });

  test('deleting offsets', async () => {
    await commit('gone', [{ name: 'orders', topicId: ZERO_UUID, partitions: [committed(0, 1)] }]);
    const topics = [{ name: 'orders', partitions: [{ partitionIndex: 0 }, { partitionIndex: 5 }] }];
    expect(await call(47, 0, { groupId: 'gone', topics })).toMatchObject({
      errorCode: 0,
      topics: [
        { partitions: [{ errorCode: 0 }, { errorCode: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION }] },
      ],
    });
    expect(groups.view('gone')?.offsets.size).toBe(0);
    expect(await call(47, 0, { groupId: 'never', topics })).toMatchObject({
      errorCode: ErrorCode.GROUP_ID_NOT_FOUND,
    });
  });

  test('finding coordinators, one or many, of what kind', async () => {
    const here = { errorCode: 0, nodeId: 0, port: broker.port };
    expect(await call(10, 3, { key: 'g', keyType: 0, coordinatorKeys: [] })).toMatchObject(here);
    expect(await call(10, 4, { keyType: 1, coordinatorKeys: ['t', 'u'] })).toMatchObject({
      coordinators: [
        { key: 't', ...here },
        { key: 'u', ...here },
      ],
    });
    expect(await call(10, 6, { keyType: 2, coordinatorKeys: ['s'] })).toMatchObject({
      coordinators: [{ errorCode: ErrorCode.INVALID_REQUEST }],
    });
  });

  test('unknown groups are dead, and since v6 not found', async () => {
    const request = { groups: ['ghost'], includeAuthorizedOperations: false };
    expect(await call(15, 5, request)).toMatchObject({
      groups: [{ errorCode: 0, groupState: 'Dead' }],
    });
    expect(await call(15, 6, request)).toMatchObject({
      groups: [{ errorCode: ErrorCode.GROUP_ID_NOT_FOUND, groupState: 'Dead' }],
    });
  });

  test('lists by state and type', async () => {
    await commit('listed', [{ name: 'orders', topicId: ZERO_UUID, partitions: [committed(0, 1)] }]);
    const list = async (statesFilter: string[], typesFilter: string[]) => {
      const { groups: found } = await call(16, 5, { statesFilter, typesFilter });
      return (found as { groupId: string }[]).some(({ groupId }) => groupId === 'listed');
    };
    expect(await list([], [])).toBe(true);
    expect(await list(['empty'], ['Classic'])).toBe(true);
    expect(await list(['Stable'], [])).toBe(false);
    expect(await list([], ['consumer'])).toBe(false);
  });

  test('leaving: one code for the request before v3, one for each member since', async () => {
    const members = [{ memberId: 'x', groupInstanceId: null, reason: 'why' }];
    expect(await call(13, 5, { groupId: 'ghost', members })).toMatchObject({
      errorCode: 0,
      members: [{ memberId: 'x', errorCode: ErrorCode.UNKNOWN_MEMBER_ID }],
    });
    expect(await call(13, 2, { groupId: 'ghost', memberId: 'x', members: [] })).toMatchObject({
      errorCode: ErrorCode.UNKNOWN_MEMBER_ID,
    });
    expect(await call(13, 5, { groupId: '', members })).toMatchObject({
      errorCode: ErrorCode.INVALID_GROUP_ID,
    });
  });
});
