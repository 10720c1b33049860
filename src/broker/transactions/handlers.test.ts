// The wire of transactions, API by API, over sockets and the real metadata store: versions, codes by version, and
// what each answers to bad input. Not for: batches (the log in memory knows no transactions; test/integration does).
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../base/clock.ts';
import { silentLogger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import { seededPrng } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import { openSqliteMetadata } from '../../metadata/sqlite/index.ts';
import { TopicDirectory } from '../../metadata/topic-directory.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import { produceApi } from '../../protocol/messages/00-produce.ts';
import { initProducerIdApi } from '../../protocol/messages/22-init-producer-id.ts';
import { addPartitionsToTxnApi } from '../../protocol/messages/24-add-partitions-to-txn.ts';
import { addOffsetsToTxnApi } from '../../protocol/messages/25-add-offsets-to-txn.ts';
import { endTxnApi } from '../../protocol/messages/26-end-txn.ts';
import { writeTxnMarkersApi } from '../../protocol/messages/27-write-txn-markers.ts';
import { txnOffsetCommitApi } from '../../protocol/messages/28-txn-offset-commit.ts';
import { describeProducersApi } from '../../protocol/messages/61-describe-producers.ts';
import { describeTransactionsApi } from '../../protocol/messages/65-describe-transactions.ts';
import { listTransactionsApi } from '../../protocol/messages/66-list-transactions.ts';
import { type Authorizer, openSecurity, securitySettings } from '../auth/index.ts';
import { startTestBroker, type TestBroker } from '../testing/harness.ts';
import { allLeases } from '../testing/leases.ts';
import { RawClient } from '../testing/raw-client.ts';
import { batchOf, produceRequest } from '../testing/requests.ts';
import { AgreeableGroups } from '../testing/transactional-groups.ts';
import { TransactionCoordinator, transactionHandlers } from './index.ts';
import { transactionSettings } from './settings.ts';

const groups = new AgreeableGroups(8);
const { applied } = groups;

/** What nobody may do, as `operation type`. */
const forbidden = new Set<string>();
const authorizer: Authorizer = {
  enabled: true,
  // Answers aren't kept: every question is another version.
  get version() {
    return ++asked;
  },
  allows: (_who, operation, type) => !forbidden.has(`${operation} ${type}`),
  allowsAny: (_who, operation, type) => !forbidden.has(`${operation} ${type}`),
  acls: undefined,
};
let asked = 0;
let broker: TestBroker;
let coordinator: TransactionCoordinator;
let client: RawClient;
let nextId = 0;

beforeAll(async () => {
  const metadata = openSqliteMetadata(':memory:');
  const directory = await TopicDirectory.load(metadata);
  coordinator = await TransactionCoordinator.load({
    leases: allLeases(),
    metadata: metadata.transactions,
    groups,
    settings: resolveSettings(transactionSettings, {}),
    clock: systemClock,
    logger: silentLogger,
    metrics: noMetrics,
  });
  const settings = resolveSettings(securitySettings, {});
  const security = await openSecurity({
    settings,
    listeners: [{ name: 'PLAINTEXT', host: '127.0.0.1', port: 0, protocol: 'PLAINTEXT', settings }],
    metadata: metadata.security,
    clock: systemClock,
    prng: seededPrng(1),
    logger: silentLogger,
  });
  broker = await startTestBroker({
    metadata,
    directory,
    transactions: coordinator,
    security: { ...security, authorizer },
    handlers: () => transactionHandlers(coordinator),
  });
  const topicId = '22222222-2222-4222-8222-222222222222';
  await directory.create({ topicId, name: 'orders', partitionCount: 2, config: {}, nowMs: 0 });
  client = await RawClient.connect(broker.port);
});

afterAll(async () => {
  client.close();
  await coordinator.stop();
  await broker.stop();
});

interface Started {
  readonly transactionalId: string;
  readonly producerId: number;
  readonly producerEpoch: number;
}

async function init(options: Partial<Started> & { version?: number; timeoutMs?: number } = {}) {
  const { version = 4, timeoutMs = 60_000, ...named } = options;
  const transactionalId = named.transactionalId ?? `tx-${nextId++}`;
  const request = { ...named, transactionalId, transactionTimeoutMs: timeoutMs };
  return {
    transactionalId,
    ...(await client.call(initProducerIdApi, version, request)),
  };
}

async function add(by: Started, topics: [string, number[]][], version = 3) {
  const reply = await client.call(addPartitionsToTxnApi, version, {
    transactions: [],
    v3AndBelowTransactionalId: by.transactionalId,
    v3AndBelowProducerId: by.producerId,
    v3AndBelowProducerEpoch: by.producerEpoch,
    v3AndBelowTopics: topics.map(([name, partitions]) => ({ name, partitions })),
  });
  return reply.resultsByTopicV3AndBelow.flatMap(({ resultsByPartition }) =>
    resultsByPartition.map(({ partitionErrorCode }) => partitionErrorCode),
  );
}

const end = (by: Started, committed: boolean, version = 4) =>
  client.call(endTxnApi, version, { ...by, committed });

async function describeOne(transactionalId: string) {
  const request = { transactionalIds: [transactionalId] };
  return (await client.call(describeTransactionsApi, 0, request)).transactionStates[0]!;
}

interface Position {
  readonly topic?: string;
  readonly partition?: number;
  readonly groupId?: string;
  readonly metadata?: string;
}

async function commitOffset(by: Started, version: number, position: Position = {}) {
  const { topic = 'orders', partition = 0, groupId = 'g', metadata = 'm' } = position;
  const { topics } = await client.call(txnOffsetCommitApi, version, {
    ...by,
    groupId,
    topics: [
      {
        name: topic,
        partitions: [
          { partitionIndex: partition, committedOffset: 42, committedMetadata: metadata },
        ],
      },
    ],
  });
  return topics[0]!.partitions[0]!.errorCode;
}

const addOffsets = async (by: Started, version = 3) =>
  (await client.call(addOffsetsToTxnApi, version, { ...by, groupId: 'g' })).errorCode;

describe('InitProducerId', () => {
  it.each([
    ['zero', 0],
    ['negative', -5],
    ['above the maximum', 2 ** 31 - 1],
  ])('refuses a timeout that is %s', async (_what, timeoutMs) => {
    const { errorCode } = await init({ timeoutMs });
    expect(errorCode).toBe(ErrorCode.INVALID_TRANSACTION_TIMEOUT);
  });

  it('refuses an empty id and half an identity', async () => {
    expect((await init({ transactionalId: '' })).errorCode).toBe(ErrorCode.INVALID_REQUEST);
    expect((await init({ producerId: 5 })).errorCode).toBe(ErrorCode.INVALID_REQUEST);
    expect((await init({ producerEpoch: 5 })).errorCode).toBe(ErrorCode.INVALID_REQUEST);
  });

  it('tells a fenced caller by version', async () => {
    const first = await init();
    const stale = { ...first, producerEpoch: 7 };
    expect((await init({ ...stale, version: 4 })).errorCode).toBe(ErrorCode.PRODUCER_FENCED);
    expect((await init({ ...stale, version: 3 })).errorCode).toBe(ErrorCode.INVALID_PRODUCER_EPOCH);
    const { transactionalId, producerId, producerEpoch } = first;
    const bumped = await init({ transactionalId, producerId, producerEpoch });
    expect(bumped).toMatchObject({ errorCode: 0, producerId, producerEpoch: 1 });
  });
});

describe('AddPartitionsToTxn', () => {
  it.each([0, 1, 2, 3])('v%i adds all or none', async (version) => {
    const by = await init();
    expect(await add(by, [['orders', [0, 1]]], version)).toEqual([0, 0]);
    expect(await add(by, [['orders', [0, 9]]], version)).toEqual([
      ErrorCode.OPERATION_NOT_ATTEMPTED,
      ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]);
    expect(await add({ ...by, transactionalId: '' }, [['orders', [0]]], version)).toEqual([
      ErrorCode.INVALID_REQUEST,
    ]);
    expect(await add({ ...by, transactionalId: 'no' }, [['orders', [0]]], version)).toEqual([
      ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ]);
    await init(by);
    expect(await add(by, [['orders', [0]]], version)).toEqual([
      version < 2 ? ErrorCode.INVALID_PRODUCER_EPOCH : ErrorCode.PRODUCER_FENCED,
    ]);
  });

  it.each([4, 5])('v%i adds to several transactions, or only looks', async (version) => {
    const by = [await init(), await init()];
    const call = async (verifyOnly: boolean) => {
      const topics = [{ name: 'orders', partitions: [0, 1] }];
      const reply = await client.call(addPartitionsToTxnApi, version, {
        transactions: by.map((one) => ({ ...one, verifyOnly, topics })),
        v3AndBelowTransactionalId: '',
        v3AndBelowProducerId: -1,
        v3AndBelowProducerEpoch: -1,
        v3AndBelowTopics: [],
      });
      return reply.resultsByTransaction.map(({ topicResults }) =>
        topicResults[0]!.resultsByPartition.map(({ partitionErrorCode }) => partitionErrorCode),
      );
    };
    const outside = [ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE];
    expect(await call(true)).toEqual([outside, outside]);
    expect(await call(false)).toEqual([
      [0, 0],
      [0, 0],
    ]);
    expect(await call(true)).toEqual([
      [0, 0],
      [0, 0],
    ]);
  });
});

describe('EndTxn', () => {
  it.each([0, 1, 2, 3, 4])('v%i keeps the epoch', async (version) => {
    const by = await init();
    expect((await end(by, true, version)).errorCode).toBe(ErrorCode.INVALID_TXN_STATE);
    await add(by, [['orders', [0]]]);
    expect((await end(by, true, version)).errorCode).toBe(0);
    expect((await end(by, true, version)).errorCode).toBe(0);
    expect((await end(by, false, version)).errorCode).toBe(ErrorCode.INVALID_TXN_STATE);
    await init(by);
    expect((await end(by, true, version)).errorCode).toBe(
      version < 2 ? ErrorCode.INVALID_PRODUCER_EPOCH : ErrorCode.PRODUCER_FENCED,
    );
  });

  it('v5 answers the next epoch, again when asked again', async () => {
    const by = await init();
    await add(by, [['orders', [0]]]);
    const { producerId } = by;
    const done = { errorCode: 0, producerId, producerEpoch: 1 };
    expect(await end(by, true, 5)).toMatchObject(done);
    expect(await end(by, true, 5)).toMatchObject(done);
    expect(await end({ ...by, producerEpoch: 1 }, true, 5)).toMatchObject({
      errorCode: ErrorCode.INVALID_TXN_STATE,
      producerId: -1,
      producerEpoch: -1,
    });
  });

  it('refuses an empty id', async () => {
    const by = { transactionalId: '', producerId: 1, producerEpoch: 0 };
    expect((await end(by, true)).errorCode).toBe(ErrorCode.INVALID_REQUEST);
  });
});

describe('offsets in transactions', () => {
  it.each([
    [0, ErrorCode.INVALID_TXN_STATE],
    [1, ErrorCode.INVALID_TXN_STATE],
    [2, ErrorCode.INVALID_TXN_STATE],
    [3, ErrorCode.INVALID_TXN_STATE],
    [4, ErrorCode.TRANSACTION_ABORTABLE],
    [5, 0],
  ])('TxnOffsetCommit v%i of a group that was not announced: %i', async (version, code) => {
    const by = await init();
    expect(await commitOffset(by, version)).toBe(code);
    expect(await addOffsets(by)).toBe(0);
    expect(await commitOffset(by, version)).toBe(0);
    applied.length = 0;
    expect((await end(by, true)).errorCode).toBe(0);
    expect(applied).toEqual([['g', [42]]]);
  });

  it('are refused for what is wrong with them', async () => {
    const by = await init();
    await addOffsets(by);
    const unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
    expect(await commitOffset(by, 5, { topic: 'no' })).toBe(unknown);
    expect(await commitOffset(by, 5, { partition: 9 })).toBe(unknown);
    expect(await commitOffset(by, 5, { groupId: '' })).toBe(ErrorCode.INVALID_GROUP_ID);
    const tooLong = ErrorCode.OFFSET_METADATA_TOO_LARGE;
    expect(await commitOffset(by, 5, { metadata: 'x'.repeat(9) })).toBe(tooLong);
    groups.fault = ErrorCode.ILLEGAL_GENERATION;
    expect(await commitOffset(by, 5)).toBe(ErrorCode.ILLEGAL_GENERATION);
    groups.fault = 0;
    const strange = { ...by, producerId: by.producerId + 99 };
    expect(await commitOffset(strange, 5)).toBe(ErrorCode.INVALID_PRODUCER_ID_MAPPING);
    expect(await addOffsets(strange)).toBe(ErrorCode.INVALID_PRODUCER_ID_MAPPING);
    await init(by);
    expect(await commitOffset(by, 5)).toBe(ErrorCode.INVALID_PRODUCER_EPOCH);
    expect(await addOffsets(by, 1)).toBe(ErrorCode.INVALID_PRODUCER_EPOCH);
    expect(await addOffsets(by, 2)).toBe(ErrorCode.PRODUCER_FENCED);
  });
});

describe('Produce', () => {
  const records = (by: Started) =>
    batchOf(['a'], {
      transactional: true,
      producerId: by.producerId,
      producerEpoch: by.producerEpoch,
      baseSequence: 0,
    });
  const produce = async (by: Started, version: number, transactionalId: string | null) => {
    const request = { ...produceRequest('orders', records(by)), transactionalId };
    const { responses } = await client.call(produceApi, version, request);
    return responses[0]!.partitionResponses[0]!.errorCode;
  };

  it.each([
    [8, ErrorCode.INVALID_TXN_STATE],
    [10, ErrorCode.INVALID_TXN_STATE],
    [11, ErrorCode.TRANSACTION_ABORTABLE],
    [12, 0],
  ])('v%i to a partition that was not added: %i', async (version, code) => {
    const by = await init();
    expect(await produce(by, version, by.transactionalId)).toBe(code);
    await add(by, [['orders', [0]]]);
    expect(await produce(by, version, by.transactionalId)).toBe(0);
  });

  it.each([8, 12])('v%i refuses at once who may not write', async (version) => {
    const by = await init();
    const mapping = ErrorCode.INVALID_PRODUCER_ID_MAPPING;
    expect(await produce(by, version, 'no')).toBe(mapping);
    const strange = { ...by, producerId: by.producerId + 99 };
    expect(await produce(strange, version, by.transactionalId)).toBe(mapping);
    expect(await produce(by, version, '')).toBe(ErrorCode.INVALID_REQUEST);
    const unnamed = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
    expect(await produce(by, version, null)).toBe(unnamed);
    await init(by);
    const fenced = ErrorCode.INVALID_PRODUCER_EPOCH;
    expect(await produce(by, version, by.transactionalId)).toBe(fenced);
  });
});

describe('what operators ask', () => {
  it('DescribeTransactions', async () => {
    const by = await init({ timeoutMs: 7_000 });
    await add(by, [['orders', [1, 0]]]);
    expect(await describeOne(by.transactionalId)).toMatchObject({
      errorCode: 0,
      transactionState: 'Ongoing',
      transactionTimeoutMs: 7_000,
      producerId: by.producerId,
      producerEpoch: 0,
      topics: [{ topic: 'orders', partitions: [1, 0] }],
    });
    expect((await describeOne('no')).errorCode).toBe(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND);
    expect((await describeOne('')).errorCode).toBe(ErrorCode.INVALID_REQUEST);
  });

  it('ListTransactions by state, producer, duration and pattern', async () => {
    const busy = await init({ transactionalId: 'list-busy' });
    await add(busy, [['orders', [0]]]);
    const { producerId } = await init({ transactionalId: 'list-idle' });
    interface Filter {
      readonly stateFilters?: string[];
      readonly producerIdFilters?: number[];
      readonly durationFilter?: number;
      readonly transactionalIdPattern?: string;
    }
    const list = async (filter: Filter, version = 2) => {
      const request = { stateFilters: [], producerIdFilters: [], ...filter };
      const reply = await client.call(listTransactionsApi, version, request);
      const ids = reply.transactionStates.map(({ transactionalId }) => transactionalId);
      return {
        code: reply.errorCode,
        unknown: reply.unknownStateFilters,
        ids: ids.filter((id) => id.startsWith('list-')).sort(),
      };
    };
    const found = (...ids: string[]) => ({ code: 0, unknown: [], ids });
    for (const version of [0, 1, 2])
      expect(await list({}, version)).toEqual(found('list-busy', 'list-idle'));
    expect(await list({ stateFilters: ['Ongoing'] })).toEqual(found('list-busy'));
    expect(await list({ stateFilters: ['PrepareCommit', 'Dead'] })).toEqual(found());
    expect(await list({ stateFilters: ['Ongoing', 'ongoing'] })).toEqual({
      ...found('list-busy'),
      unknown: ['ongoing'],
    });
    expect(await list({ producerIdFilters: [producerId] })).toEqual(found('list-idle'));
    // Without a transaction yet: open since the beginning of time, as in Kafka.
    expect(await list({ durationFilter: 1e9 })).toEqual(found('list-idle'));
    expect(await list({ transactionalIdPattern: 'list-b.*' })).toEqual(found('list-busy'));
    expect(await list({ transactionalIdPattern: 'list' })).toEqual(found());
    expect(await list({ transactionalIdPattern: '(' })).toEqual({
      ...found(),
      code: ErrorCode.INVALID_REGULAR_EXPRESSION,
    });
  });

  it('DescribeProducers names what is wrong', async () => {
    const ask = async (name: string, index: number) => {
      const request = { topics: [{ name, partitionIndexes: [index] }] };
      return (await client.call(describeProducersApi, 0, request)).topics[0]!.partitions[0]!;
    };
    expect(await ask('orders', 0)).toMatchObject({ errorCode: 0 });
    const unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
    expect(await ask('orders', 9)).toMatchObject({ errorCode: unknown });
    expect(await ask('no', 0)).toMatchObject({ errorCode: unknown });
    const invalid = ErrorCode.INVALID_TOPIC_EXCEPTION;
    expect(await ask('bad topic!', 0)).toMatchObject({ errorCode: invalid });
  });

  it.each([1, 2])('WriteTxnMarkers v%i aborts a hanging transaction whole', async (version) => {
    const by = await init();
    await add(by, [['orders', [0, 1]]]);
    const abort = async (options: { topic?: string; commit?: boolean; epoch?: number } = {}) => {
      const { topic = 'orders', commit = false, epoch = by.producerEpoch } = options;
      const { markers } = await client.call(writeTxnMarkersApi, version, {
        markers: [
          {
            producerId: by.producerId,
            producerEpoch: epoch,
            transactionResult: commit,
            topics: [{ name: topic, partitionIndexes: [0] }],
            coordinatorEpoch: -1,
          },
        ],
      });
      return markers[0]!.topics[0]!.partitions[0]!.errorCode;
    };
    expect(await abort({ commit: true })).toBe(ErrorCode.INVALID_REQUEST);
    expect(await abort({ topic: 'no' })).toBe(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
    expect((await describeOne(by.transactionalId)).transactionState).toBe('Ongoing');
    expect(await abort()).toBe(0);
    expect(await describeOne(by.transactionalId)).toMatchObject({
      transactionState: 'CompleteAbort',
      topics: [],
    });
    expect(await abort()).toBe(0);
    expect((await end(by, true)).errorCode).toBe(ErrorCode.PRODUCER_FENCED);
  });
});

describe('who may not', () => {
  const without = async <T>(what: string, call: () => Promise<T>): Promise<T> => {
    forbidden.add(what);
    try {
      return await call();
    } finally {
      forbidden.clear();
    }
  };
  const transactional = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED;

  it('write to the transactional id is refused everywhere', async () => {
    const by = await init();
    await without('write transactionalId', async () => {
      expect((await init(by)).errorCode).toBe(transactional);
      expect(await add(by, [['orders', [0]]])).toEqual([transactional]);
      expect(await addOffsets(by)).toBe(transactional);
      expect(await commitOffset(by, 5)).toBe(transactional);
      expect((await end(by, true)).errorCode).toBe(transactional);
    });
    expect(await describeOne(by.transactionalId)).toMatchObject({
      transactionState: 'Empty',
      producerEpoch: 0,
    });
  });

  it('read the group, or the topic, stages nothing', async () => {
    const by = await init();
    const group = ErrorCode.GROUP_AUTHORIZATION_FAILED;
    const topic = ErrorCode.TOPIC_AUTHORIZATION_FAILED;
    expect(await without('read group', () => addOffsets(by))).toBe(group);
    expect(await without('read group', () => commitOffset(by, 5))).toBe(group);
    expect(await without('read topic', () => commitOffset(by, 5))).toBe(topic);
    expect(await without('write topic', () => add(by, [['orders', [0, 1]]]))).toEqual([
      topic,
      topic,
    ]);
    expect((await describeOne(by.transactionalId)).transactionState).toBe('Empty');
  });

  it('describe sees nothing', async () => {
    const by = await init();
    await add(by, [['orders', [0]]]);
    const hidden = await without('describe transactionalId', () => describeOne(by.transactionalId));
    expect(hidden).toMatchObject({ errorCode: transactional, producerId: 0, topics: [] });
    const topicless = await without('describe topic', () => describeOne(by.transactionalId));
    expect(topicless).toMatchObject({ errorCode: 0, topics: [] });
    const request = { stateFilters: [], producerIdFilters: [] };
    const list = () => client.call(listTransactionsApi, 2, request);
    expect((await without('describe transactionalId', list)).transactionStates).toEqual([]);
    const asked = { topics: [{ name: 'orders', partitionIndexes: [0] }] };
    const producers = () => client.call(describeProducersApi, 0, asked);
    const { topics } = await without('read topic', producers);
    expect(topics[0]!.partitions[0]!.errorCode).toBe(ErrorCode.TOPIC_AUTHORIZATION_FAILED);
  });

  it('be an idempotent producer: neither idempotent writes nor any topic', async () => {
    forbidden.add('idempotentWrite cluster');
    const init = () =>
      client.call(initProducerIdApi, 4, { transactionalId: null, transactionTimeoutMs: 0 });
    const { errorCode } = await without('write topic', init);
    expect(errorCode).toBe(ErrorCode.CLUSTER_AUTHORIZATION_FAILED);
    expect((await without('idempotentWrite cluster', init)).errorCode).toBe(0);
  });
});
