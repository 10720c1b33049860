// Two brokers of a cluster over one metadata store, as clients meet them: sockets, handlers, the connection's order.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../base/clock.ts';
import type { Cluster, ClusterNode } from '../cluster/cluster.ts';
import { chooseNode } from '../cluster/index.ts';
import { clusterNode } from '../cluster/testing/nodes.ts';
import { openSqliteMetadata, type SqliteMetadata } from '../metadata/sqlite/index.ts';
import { ErrorCode } from '../protocol/errors.ts';
import { ZERO_UUID } from '../protocol/fields.ts';
import { produceApi } from '../protocol/messages/00-produce.ts';
import { fetchApi } from '../protocol/messages/01-fetch.ts';
import { listOffsetsApi } from '../protocol/messages/02-list-offsets.ts';
import { metadataApi } from '../protocol/messages/03-metadata.ts';
import { offsetFetchApi } from '../protocol/messages/09-offset-fetch.ts';
import { findCoordinatorApi } from '../protocol/messages/10-find-coordinator.ts';
import { heartbeatApi } from '../protocol/messages/12-heartbeat.ts';
import { describeGroupsApi } from '../protocol/messages/15-describe-groups.ts';
import { listGroupsApi } from '../protocol/messages/16-list-groups.ts';
import {
  type DescribeLogDirsRequest,
  describeLogDirsApi,
} from '../protocol/messages/35-describe-log-dirs.ts';
import { deleteGroupsApi } from '../protocol/messages/42-delete-groups.ts';
import { describeClusterApi } from '../protocol/messages/60-describe-cluster.ts';
import { describeTransactionsApi } from '../protocol/messages/65-describe-transactions.ts';
import type { BatchOptions } from '../protocol/record-builder.ts';
import type { AppendItem } from '../storage/log/log.ts';
import { groupHandlers } from './groups/index.ts';
import { startTestBroker, type TestBroker } from './testing/harness.ts';
import { leaseOf } from './testing/leases.ts';
import { openNodes, stopNodes, type TestNode } from './testing/nodes.ts';
import { RawClient } from './testing/raw-client.ts';
import { batchOf, fetchRequest, produceRequest } from './testing/requests.ts';
import { transactionHandlers } from './transactions/index.ts';

let metadata: SqliteMetadata;
let clock: ManualClock;
let nodes: readonly [TestNode, TestNode];
let brokers: readonly [TestBroker, TestBroker];
let clients: readonly [RawClient, RawClient];
/** Partition ids that the second broker has been asked to append to, in order. */
let appended: number[];
let partitions: readonly number[];

/** Ports are known once brokers listen. */
const living = [
  clusterNode(0, { rack: 'a', listeners: {} }),
  clusterNode(1, { rack: 'b', listeners: {} }),
];

const clusterOf = (nodeId: number): Cluster => ({
  self: living[nodeId]!,
  nodes: () => living,
  chosen: (key, _role, rack) => chooseNode(key, living, rack),
  level: () => 1,
  onChange: () => () => {},
});

async function start(node: TestNode): Promise<TestBroker> {
  const { leases, directory, groups, transactions } = node;
  const handlers = () => [...groupHandlers(groups), ...transactionHandlers(transactions)];
  const { nodeId } = leases;
  const cluster = { cluster: clusterOf(nodeId), leases };
  const broker = await startTestBroker({
    metadata,
    directory,
    nodeId,
    cluster,
    transactions,
    handlers,
  });
  Object.assign(living[nodeId]!.listeners, { PLAINTEXT: { host: '127.0.0.1', port: broker.port } });
  return broker;
}

beforeEach(async () => {
  clock = new ManualClock();
  metadata = openSqliteMetadata(':memory:', { clock });
  const topicId = '11111111-1111-4111-8111-111111111111';
  const topic = { topicId, name: 'orders', partitionCount: 8, config: {}, nowMs: 0 };
  partitions = (await metadata.topics.create(topic)).partitions;
  nodes = await openNodes({ metadata, clock });
  brokers = [await start(nodes[0]), await start(nodes[1])];
  clients = [await RawClient.connect(brokers[0].port), await RawClient.connect(brokers[1].port)];
  await nodes[0].leases.take(leaseOf('groups', 'g'), leaseOf('transactions', 't'));
  appended = [];
  const { log } = brokers[1];
  const append = log.append.bind(log);
  log.append = (items: readonly AppendItem[]) => {
    appended.push(...items.map(({ partitionId }) => partitionId));
    return append(items);
  };
});

afterEach(async () => {
  for (const one of clients) one.close();
  for (const { stop } of brokers) await stop();
  await stopNodes(nodes);
  metadata.close();
});

describe('who is where', () => {
  test('both are brokers, each is led by one of them, in the rack that the client tells', async () => {
    const ask = {
      topics: [{ name: 'orders', topicId: ZERO_UUID }],
      allowAutoTopicCreation: false,
      includeClusterAuthorizedOperations: false,
      includeTopicAuthorizedOperations: false,
    };
    const seen = await Promise.all(clients.map((client) => client.call(metadataApi, 12, ask)));
    for (const { brokers: named, controllerId } of seen) {
      expect(named.map(({ nodeId, port, rack }) => [nodeId, port, rack])).toEqual([
        [0, brokers[0].port, 'a'],
        [1, brokers[1].port, 'b'],
      ]);
      expect(controllerId).toBe(0);
    }
    // By the rack of the broker that answers, until a Fetch has told another.
    const led = (reply: (typeof seen)[0]) =>
      new Set(reply.topics[0]!.partitions.map(({ leaderId }) => leaderId));
    expect(seen.map(led)).toEqual([new Set([0]), new Set([1])]);
    const fetch = { ...fetchRequest([{ topic: 'orders', offset: 0 }]), rackId: 'b' };
    const read = await clients[0].call(fetchApi, 11, fetch);
    expect(read.responses[0]?.partitions[0]?.preferredReadReplica).toBe(-1);
    expect(led(await clients[0].call(metadataApi, 12, ask))).toEqual(new Set([1]));
    expect(
      await clients[1].call(describeClusterApi, 1, {
        endpointType: 1,
        includeClusterAuthorizedOperations: false,
        includeFencedBrokers: false,
      }),
    ).toMatchObject({
      controllerId: 0,
      brokers: [{ brokerId: 0 }, { brokerId: 1 }],
    });
  });

  test('FindCoordinator names the holder, from either broker; nobody is not available', async () => {
    const none = ['a', 'b', 'c'].find((key) => leaseOf('groups', key) !== leaseOf('groups', 'g'))!;
    for (const client of clients) {
      const request = { key: '', keyType: 0, coordinatorKeys: ['g', none] };
      const { coordinators } = await client.call(findCoordinatorApi, 4, request);
      expect(coordinators).toMatchObject([
        { key: 'g', nodeId: 0, port: brokers[0].port, errorCode: 0 },
        { key: none, nodeId: -1, errorCode: ErrorCode.COORDINATOR_NOT_AVAILABLE },
      ]);
    }
  });

  test('sizes add up over all brokers to what there is, as tools add them: each partition once', async () => {
    for (const { log } of brokers) log.sizeOf = (partitionId) => 1_000 + partitionId;
    /** What each broker shows, of one topic: index → bytes. */
    const shown = (topics: DescribeLogDirsRequest['topics']) =>
      Promise.all(
        clients.map(async (client) => {
          const { errorCode, results } = await client.call(describeLogDirsApi, 4, { topics });
          expect([errorCode, results.length]).toEqual([0, 1]);
          return results[0]!.topics.flatMap(({ name, partitions: sizes }) =>
            sizes.map(({ partitionIndex, partitionSize }) => [name, partitionIndex, partitionSize]),
          );
        }),
      );
    const all = partitions.map((partitionId, index) => ['orders', index, 1_000 + partitionId]);
    const [first, second] = (await shown(null)) as [unknown[], unknown[]];
    expect([...first, ...second]).toHaveLength(8);
    expect([...first, ...second]).toEqual(expect.arrayContaining(all));
    expect(Math.min(first.length, second.length)).toBeGreaterThan(0);
    // Asked about by name, twice, and about what isn't there.
    const orders = (...indexes: number[]) => ({ topic: 'orders', partitions: indexes });
    const nowhere = { topic: 'nowhere', partitions: [0] };
    const named = await shown([orders(0, 1, 1, 2, 3, 8, -1), nowhere, orders(3, 4, 5, 6, 7)]);
    expect(named.flat()).toHaveLength(8);
    expect(named.flat()).toEqual(expect.arrayContaining(all));
    // One that is about to go shows nothing; no topic without partitions is shown.
    const [, leaving] = living as [ClusterNode, ClusterNode];
    Object.assign(leaving, { draining: true });
    expect(await shown(null)).toEqual([all, []]);
    const { results } = await clients[1].call(describeLogDirsApi, 4, { topics: [orders(0)] });
    expect(results).toMatchObject([{ errorCode: 0, topics: [] }]);
    Object.assign(leaving, { draining: false });
  });

  test('who coordinates neither answers NOT_COORDINATOR, and lists nothing', async () => {
    const [, client] = clients;
    const errorCode = ErrorCode.NOT_COORDINATOR;
    const member = { groupId: 'g', generationId: 1, memberId: 'm' };
    expect(await client.call(heartbeatApi, 3, member)).toMatchObject({ errorCode });
    const groups = [{ groupId: 'g', topics: null }];
    expect(
      await client.call(offsetFetchApi, 8, {
        groupId: '',
        topics: null,
        groups,
        requireStable: false,
      }),
    ).toMatchObject({
      groups: [{ errorCode }],
    });
    expect(
      await client.call(describeGroupsApi, 5, {
        groups: ['g'],
        includeAuthorizedOperations: false,
      }),
    ).toMatchObject({
      groups: [{ errorCode }],
    });
    expect(await client.call(deleteGroupsApi, 2, { groupsNames: ['g'] })).toMatchObject({
      results: [{ errorCode }],
    });
    expect(
      await client.call(listGroupsApi, 4, { statesFilter: [], typesFilter: [] }),
    ).toMatchObject({ errorCode: 0, groups: [] });
    expect(
      await client.call(describeTransactionsApi, 0, { transactionalIds: ['t'] }),
    ).toMatchObject({ transactionStates: [{ errorCode }] });
  });
});

describe('a Produce', () => {
  const batch = (options: BatchOptions = {}) => batchOf(['v'], options);
  const produced = (
    replies: readonly {
      responses: readonly { partitionResponses: readonly { errorCode: number }[] }[];
    }[],
  ) => replies.map(({ responses }) => responses[0]!.partitionResponses[0]!.errorCode);

  test('of a transaction coordinated elsewhere waits for its note, and what follows it waits too', async () => {
    const { transactions } = nodes[0];
    const { errorCode: _, ...producer } = await transactions.initProducerId('t', {
      timeoutMs: 9_000,
    });
    const records = batch({ ...producer, baseSequence: 0, transactional: true });
    const { questions } = nodes[1];
    questions.close();
    const [, client] = clients;
    const calls = [
      client.call(produceApi, 12, { ...produceRequest('orders', records), transactionalId: 't' }),
      client.call(produceApi, 12, produceRequest('orders', batch(), { partition: 1 })),
      client.call(produceApi, 12, produceRequest('orders', batch(), { partition: 2 })),
    ];
    await expect.poll(() => questions.waiting).toBe(1);
    // Other connections go on.
    const other = await RawClient.connect(brokers[1].port);
    await other.call(produceApi, 12, produceRequest('orders', batch(), { partition: 3 }));
    other.close();
    expect(appended).toEqual([partitions[3]]);
    questions.open();
    expect(produced(await Promise.all(calls))).toEqual([0, 0, 0]);
    expect(appended).toEqual([3, 0, 1, 2].map((index) => partitions[index]));
    // The next of this epoch is admitted at once.
    questions.close();
    const next = batch({ ...producer, baseSequence: 1, transactional: true });
    const again = { ...produceRequest('orders', next), transactionalId: 't' };
    expect(produced([await client.call(produceApi, 12, again)])).toEqual([0]);
    questions.open();
  });

  test('whose client goes while it waits is still written, and nothing is left behind', async () => {
    const { transactions } = nodes[0];
    const { errorCode: _, ...producer } = await transactions.initProducerId('t', {
      timeoutMs: 9_000,
    });
    const records = batch({ ...producer, baseSequence: 0, transactional: true });
    const { questions } = nodes[1];
    questions.close();
    const client = await RawClient.connect(brokers[1].port);
    client.send(produceApi, 12, { ...produceRequest('orders', records), transactionalId: 't' });
    await expect.poll(() => questions.waiting).toBe(1);
    client.close();
    questions.open();
    await expect.poll(() => appended).toEqual([partitions[0]]);
  });

  test('into a topic that another broker made a moment ago is not refused', async () => {
    const topic = { topicId: '22222222-2222-4222-8222-222222222222', name: 'fresh' };
    await nodes[0].directory.create({ ...topic, partitionCount: 1, config: {}, nowMs: 0 });
    expect(nodes[1].directory.byName('fresh')).toBeUndefined();
    const [, client] = clients;
    const reply = await client.call(produceApi, 12, produceRequest('fresh', batch()));
    expect(produced([reply])).toEqual([0]);
    const unknown = await client.call(produceApi, 12, produceRequest('nowhere', batch()));
    expect(produced([unknown])).toEqual([ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]);
  });

  test('into a partition that another broker added a moment ago is not refused', async () => {
    await nodes[0].directory.addPartitions(nodes[0].directory.byName('orders')!.topicId, 9);
    const request = produceRequest('orders', batch(), { partition: 8 });
    expect(produced([await clients[1].call(produceApi, 12, request)])).toEqual([0]);
  });
});

describe('what other brokers wrote', () => {
  test('counts for ListOffsets, and for a Fetch above the end that is known here', async () => {
    const { log } = brokers[1];
    const [, client] = clients;
    const other = await RawClient.connect(brokers[1].port);
    const write = () => other.call(produceApi, 12, produceRequest('orders', batchOf(['v'])));
    let caughtUp = 0;
    log.caughtUp = async () => {
      caughtUp += 1;
      await write();
    };
    const ask = {
      replicaId: -1,
      isolationLevel: 0,
      timeoutMs: 0,
      topics: [{ name: 'orders', partitions: [{ partitionIndex: 0, timestamp: -1 }] }],
    };
    const listed = await client.call(listOffsetsApi, 6, ask);
    expect(listed.topics[0]!.partitions[0]).toMatchObject({ offset: 1, errorCode: 0 });
    const fetched = await client.call(fetchApi, 11, fetchRequest([{ topic: 'orders', offset: 2 }]));
    expect(fetched.responses[0]!.partitions[0]).toMatchObject({ errorCode: 0, highWatermark: 2 });
    const beyond = await client.call(fetchApi, 11, fetchRequest([{ topic: 'orders', offset: 9 }]));
    const errorCode = ErrorCode.OFFSET_OUT_OF_RANGE;
    expect(beyond.responses[0]!.partitions[0]).toMatchObject({ errorCode });
    expect(caughtUp).toBe(3);
    other.close();
  });
});
