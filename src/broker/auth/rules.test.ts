// Every served API asks what rules.ts says it asks, and nothing else: each handler is called by a client that may do
// everything and by one that may do nothing, and what it asked is written down. A new handler without a rule fails.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../base/clock.ts';
import { silentLogger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import { seededIds, seededPrng } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import { openSqliteMetadata } from '../../metadata/sqlite/index.ts';
import { TopicDirectory } from '../../metadata/topic-directory.ts';
import type { AnyApi } from '../../protocol/api.ts';
import { ALL_APIS } from '../../protocol/apis.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import { ZERO_UUID } from '../../protocol/fields.ts';
import { Reader } from '../../protocol/reader.ts';
import { Writer } from '../../protocol/writer.ts';
import { GroupCoordinator, groupHandlers, groupSettings } from '../groups/index.ts';
import type { AnyHandler, RequestContext } from '../handler.ts';
import { servedApis } from '../index.ts';
import { anybody } from '../testing/access.ts';
import { allLeases } from '../testing/leases.ts';
import { batchOf } from '../testing/requests.ts';
import { type SecureBroker, startSecureBroker } from '../testing/secure-broker.ts';
import {
  TransactionCoordinator,
  transactionHandlers,
  transactionSettings,
} from '../transactions/index.ts';
import type { Access } from './access.ts';
import type { Authorizer, ResourceType } from './authorizer.ts';
import { ACCESS_RULES, type Question } from './rules.ts';

const JOIN_GROUP = 11;
const TOPIC_ID = '22222222-2222-4222-8222-222222222222';
const DOOMED_ID = '33333333-3333-4333-8333-333333333333';
const t = 'orders';

interface Sample {
  /** The API's newest if not said. */
  readonly version?: number;
  readonly request: object;
  /** What the client may not see is left out instead of refused. */
  readonly hides?: true;
}

const onTopic = (partition: object) => ({ topics: [{ name: t, partitions: [partition] }] });
const transactional = Buffer.from(
  batchOf(['a'], {
    producerId: 1,
    producerEpoch: 0,
    baseSequence: 0,
    transactional: true,
  } as never),
);

/** Requests by API key: together they make a handler ask everything that it may ask. */
const SAMPLES: Readonly<Record<number, readonly Sample[]>> = {
  0: [
    {
      version: 9,
      request: {
        transactionalId: 'x',
        acks: -1,
        timeoutMs: 1_000,
        topicData: [{ name: t, partitionData: [{ index: 0, records: transactional }] }],
      },
    },
  ],
  1: [
    {
      version: 12,
      request: {
        maxWaitMs: 0,
        minBytes: 0,
        maxBytes: 100,
        sessionEpoch: -1,
        topics: [{ topic: t, partitions: [{ partition: 0, partitionMaxBytes: 100 }] }],
      },
    },
  ],
  2: [{ request: onTopic({ partitionIndex: 0, timestamp: -1, currentLeaderEpoch: -1 }) }],
  3: [
    { request: { topics: [{ name: t, topicId: ZERO_UUID }] } },
    { request: { topics: [{ name: null, topicId: TOPIC_ID }] } },
    { request: { topics: null }, hides: true },
    {
      request: {
        topics: [{ name: 'made-by-metadata', topicId: ZERO_UUID }],
        allowAutoTopicCreation: true,
      },
    },
    { version: 8, request: { topics: [], includeClusterAuthorizedOperations: true }, hides: true },
  ],
  8: [
    {
      version: 9,
      request: {
        groupId: 'g',
        generationIdOrMemberEpoch: -1,
        ...onTopic({ partitionIndex: 0, committedOffset: 0, committedLeaderEpoch: -1 }),
      },
    },
  ],
  9: [
    {
      version: 8,
      request: { groups: [{ groupId: 'g', topics: [{ name: t, partitionIndexes: [0] }] }] },
    },
  ],
  10: [
    { request: { keyType: 0, coordinatorKeys: ['g'] } },
    { version: 3, request: { keyType: 1, key: 'x' } },
  ],
  11: [{ request: { groupId: 'g', sessionTimeoutMs: 10_000, protocolType: 'consumer' } }],
  12: [{ request: { groupId: 'g' } }],
  13: [{ request: { groupId: 'g', members: [{ memberId: 'm' }] } }],
  14: [{ request: { groupId: 'g' } }],
  15: [{ request: { groups: ['g'] } }],
  16: [{ request: {}, hides: true }],
  17: [{ request: { mechanism: 'PLAIN' } }],
  18: [{ request: { clientSoftwareName: 'a', clientSoftwareVersion: '1' } }],
  19: [{ request: { topics: [{ name: 'made', numPartitions: 1, replicationFactor: 1 }] } }],
  20: [
    { request: { topics: [{ name: 'made', topicId: ZERO_UUID }] } },
    { request: { topics: [{ name: null, topicId: DOOMED_ID }] } },
  ],
  21: [{ request: onTopic({ partitionIndex: 0, offset: 0 }) }],
  22: [
    {
      request: { transactionalId: 'x', producerId: -1, producerEpoch: -1, transactionTimeoutMs: 9 },
    },
    { request: { transactionalId: null, producerId: -1, producerEpoch: -1 } },
  ],
  23: [{ request: { topics: [{ topic: t, partitions: [{ partition: 0, leaderEpoch: 0 }] }] } }],
  24: [
    {
      version: 3,
      request: { v3AndBelowTransactionalId: 'x', v3AndBelowTopics: [{ name: t, partitions: [0] }] },
    },
    {
      version: 4,
      request: { transactions: [{ transactionalId: 'x', topics: [{ name: t, partitions: [0] }] }] },
    },
  ],
  25: [{ request: { transactionalId: 'x', groupId: 'g' } }],
  26: [{ request: { transactionalId: 'x' } }],
  27: [
    { request: { markers: [{ producerId: 999, topics: [{ name: t, partitionIndexes: [0] }] }] } },
  ],
  28: [
    {
      request: {
        transactionalId: 'x',
        groupId: 'g',
        ...onTopic({ partitionIndex: 0, committedOffset: 0, committedLeaderEpoch: -1 }),
      },
    },
  ],
  29: [
    { request: { resourceTypeFilter: 1, patternTypeFilter: 1, operation: 1, permissionType: 1 } },
  ],
  30: [
    {
      request: {
        creations: [{ resourceType: 2, resourceName: t, principal: 'User:a', host: '*' }],
      },
    },
  ],
  31: [{ request: { filters: [{ resourceTypeFilter: 2 }] } }],
  32: [2, 4, 32].map((resourceType) => ({
    request: { resources: [{ resourceType, resourceName: resourceType === 2 ? t : '0' }] },
  })),
  33: [2, 4, 32].map((resourceType) => ({
    request: {
      validateOnly: true,
      resources: [{ resourceType, resourceName: resourceType === 2 ? t : '0' }],
    },
  })),
  34: [{ request: { dirs: [{ path: '/', topics: [{ name: t, partitions: [0] }] }] } }],
  35: [{ request: { topics: null } }],
  36: [{ request: {} }],
  37: [{ request: { validateOnly: true, topics: [{ name: t, count: 9 }] } }],
  42: [{ request: { groupsNames: ['g'] } }],
  43: [{ request: { topicPartitions: [{ topic: t, partitions: [0] }] } }],
  44: [2, 4, 32].map((resourceType) => ({
    request: {
      validateOnly: true,
      resources: [{ resourceType, resourceName: resourceType === 2 ? t : '0' }],
    },
  })),
  45: [{ request: { topics: [{ name: t, partitions: [{ partitionIndex: 0, replicas: [0] }] }] } }],
  46: [{ request: { topics: null } }],
  47: [
    { request: { groupId: 'kept', topics: [{ name: t, partitions: [{ partitionIndex: 0 }] }] } },
  ],
  48: [{ request: {} }],
  49: [{ request: { entries: [{ entity: [{ entityType: 'user', entityName: 'a' }] }] } }],
  50: [{ request: { users: null } }],
  51: [{ request: { deletions: [{ name: 'a', mechanism: 1 }] } }],
  55: [{ request: {} }],
  57: [{ request: {} }],
  60: [{ request: { endpointType: 1, includeClusterAuthorizedOperations: true }, hides: true }],
  61: [{ request: { topics: [{ name: t, partitionIndexes: [0] }] } }],
  65: [{ request: { transactionalIds: ['open'] } }],
  66: [{ request: {}, hides: true }],
  68: [
    {
      request: {
        groupId: 'k',
        memberId: 'm',
        memberEpoch: 0,
        rebalanceTimeoutMs: 1_000,
        subscribedTopicNames: [t],
        topicPartitions: [],
      },
    },
  ],
  69: [{ request: { groupIds: ['g', 'k'] } }],
  71: [{ request: {} }],
  72: [{ request: {} }],
  74: [{ request: {} }],
  75: [{ request: { topics: [{ name: t }], responsePartitionLimit: 1 } }],
};

let broker: SecureBroker;
let handlers: ReadonlyMap<number, AnyHandler>;
const stops: (() => Promise<void>)[] = [];

beforeAll(async () => {
  const metadata = openSqliteMetadata(':memory:');
  const directory = await TopicDirectory.load(metadata);
  const parts = { clock: systemClock, logger: silentLogger, metrics: noMetrics };
  const leases = allLeases();
  const groups = await GroupCoordinator.load({
    ...parts,
    metadata: metadata.groups,
    transactions: metadata.transactions,
    leases,
    directory,
    settings: resolveSettings(groupSettings, {}),
    ids: seededIds(seededPrng(3)),
  });
  const transactions = await TransactionCoordinator.load({
    ...parts,
    metadata: metadata.transactions,
    leases,
    groups,
    settings: resolveSettings(transactionSettings, {}),
  });
  const own = [...groupHandlers(groups), ...transactionHandlers(transactions)];
  broker = await startSecureBroker(
    { 'authorizer.class.name': 'StandardAuthorizer' },
    { metadata, directory, transactions, handlers: () => own },
  );
  const { router } = broker.broker.services;
  handlers = new Map(servedApis().map(({ key }) => [key, router.handler(key)!]));
  const topic = { topicId: TOPIC_ID, name: t, partitionCount: 2, config: {}, nowMs: 0 };
  await directory.create(topic);
  await directory.create({ ...topic, topicId: DOOMED_ID, name: 'doomed' });
  await prepare();
  stops.push(
    () => transactions.stop(),
    () => groups.stop(),
    () => broker.stop(),
  );
});

afterAll(async () => {
  for (const stop of stops) await stop();
});

/** Calls a handler as a client that may do everything. */
async function allowed(key: number, sample: Sample): Promise<Record<string, unknown>> {
  const access = recordingAccess(new Set(), 'everything');
  return (await ask(handlers.get(key)!, sample, access)) as Record<string, unknown>;
}

/** A group with positions, and a transaction under way. */
async function prepare(): Promise<void> {
  const kept = { ...SAMPLES[8]![0]!.request, groupId: 'kept' };
  await allowed(8, { version: 9, request: kept });
  const wish = { producerId: -1, producerEpoch: -1, transactionTimeoutMs: 60_000 };
  const begun = await allowed(22, { request: { transactionalId: 'open', ...wish } });
  const producer = {
    v3AndBelowTransactionalId: 'open',
    v3AndBelowProducerId: begun['producerId'],
    v3AndBelowProducerEpoch: begun['producerEpoch'],
    v3AndBelowTopics: [{ name: t, partitions: [0] }],
  };
  await allowed(24, { version: 3, request: producer });
}

/** Clients by what they may do. */
const CLIENTS = {
  nothing: () => false,
  everything: () => true,
  allButCluster: (type: ResourceType) => type !== 'cluster',
} as const;

/** What is asked about the client goes into `asked`. */
function recordingAccess(asked: Set<Question>, client: keyof typeof CLIENTS): Access {
  const authorizer: Authorizer = {
    enabled: true,
    version: 0,
    acls: undefined,
    allows(_who, operation, type) {
      asked.add(`${operation} ${type}`);
      return CLIENTS[client](type);
    },
    allowsAny(_who, operation, type) {
      asked.add(`${operation} ${type}`);
      return CLIENTS[client](type);
    },
  };
  const access = anybody(authorizer);
  // The bit sets of KIP-430 ask for everything there is: they tell, they don't protect.
  access.operations = () => 0;
  return access;
}

/** The request as it would come from the wire, with what is left out filled in. */
function decoded(api: AnyApi, version: number, request: object): never {
  const writer = new Writer();
  api.request.encode(writer, request as never, version);
  return api.request.decode(new Reader(Buffer.concat(writer.finish())), version) as never;
}

async function ask(handler: AnyHandler, sample: Sample, access: Access): Promise<unknown> {
  const version = sample.version ?? handler.versions.max;
  const aborted = AbortSignal.abort();
  const context = {
    apiVersion: version,
    clientId: 'c',
    connection: {
      id: 1,
      listener: 'PLAINTEXT',
      remoteAddress: '127.0.0.1',
      signal: aborted,
      client: { name: 'a', version: '1' },
      session: { handshake: () => ({}), authenticate: async () => ({}) },
    },
    services: broker.broker.services,
    access,
    countError() {},
    endConnection() {},
    afterSend() {},
    throttle() {},
    limits: undefined,
  } as unknown as RequestContext;
  const outcome = handler.handle(decoded(handler.api, version, sample.request), context);
  // A join waits for others; all that it asks is asked by then.
  return handler.api.key === JOIN_GROUP ? undefined : await outcome;
}

const REFUSALS: readonly number[] = [
  ErrorCode.TOPIC_AUTHORIZATION_FAILED,
  ErrorCode.GROUP_AUTHORIZATION_FAILED,
  ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
  ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
];

/** Every error code in a reply, at any depth. */
function codesIn(reply: unknown): number[] {
  if (typeof reply !== 'object' || reply === null || ArrayBuffer.isView(reply)) return [];
  return Object.entries(reply).flatMap(([name, value]) =>
    /errorCode$/i.test(name) ? [value as number] : codesIn(value),
  );
}

describe.each(servedApis())('$name', ({ key }) => {
  it('asks what its rule says', async () => {
    const rule = ACCESS_RULES[key];
    expect(rule, 'a rule in rules.ts').toBeDefined();
    expect(SAMPLES[key], 'a sample in this test').toBeDefined();
    const asked = new Set<Question>();
    for (const sample of SAMPLES[key]!) {
      const refused = await ask(handlers.get(key)!, sample, recordingAccess(asked, 'nothing'));
      if (rule!.asks.length === 0 || refused === undefined) continue;
      const codes = codesIn(refused);
      if (sample.hides) expect(codes.filter((code) => code !== 0)).toEqual([]);
      else
        expect(
          codes.some((code) => REFUSALS.includes(code)),
          JSON.stringify(refused),
        ).toBe(true);
    }
    for (const client of ['allButCluster', 'everything'] as const) {
      for (const sample of SAMPLES[key]!) {
        await ask(handlers.get(key)!, sample, recordingAccess(asked, client));
      }
    }
    expect([...asked].toSorted()).toEqual([...rule!.asks].toSorted());
  });
});

it('has no rule for an API that is not served', () => {
  const served = new Set(servedApis().map(({ key }) => key));
  expect(Object.keys(ACCESS_RULES).filter((key) => !served.has(Number(key)))).toEqual([]);
  expect(ALL_APIS.length).toBeGreaterThan(served.size);
});
