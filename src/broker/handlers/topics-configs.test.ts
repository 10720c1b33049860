// Metadata, topics, partitions and configs over a socket.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FloeError } from '../../base/error.ts';
import { oneOf, text } from '../../base/settings.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import { ZERO_UUID } from '../../protocol/fields.ts';
import { metadataApi } from '../../protocol/messages/03-metadata.ts';
import { apiVersionsApi } from '../../protocol/messages/18-api-versions.ts';
import { createTopicsApi } from '../../protocol/messages/19-create-topics.ts';
import { deleteTopicsApi } from '../../protocol/messages/20-delete-topics.ts';
import { describeConfigsApi } from '../../protocol/messages/32-describe-configs.ts';
import { alterConfigsApi } from '../../protocol/messages/33-alter-configs.ts';
import { describeLogDirsApi } from '../../protocol/messages/35-describe-log-dirs.ts';
import { createPartitionsApi } from '../../protocol/messages/37-create-partitions.ts';
import { incrementalAlterConfigsApi } from '../../protocol/messages/44-incremental-alter-configs.ts';
import { describeClusterApi } from '../../protocol/messages/60-describe-cluster.ts';
import { listConfigResourcesApi } from '../../protocol/messages/74-list-config-resources.ts';
import { describeTopicPartitionsApi } from '../../protocol/messages/75-describe-topic-partitions.ts';
import { startTestBroker, type TestBroker } from '../testing/harness.ts';
import { RawClient } from '../testing/raw-client.ts';
import type { TopicConfigExtension } from '../topic-configs.ts';

const extension: TopicConfigExtension = {
  definitions: {
    'table.mode': oneOf(['on', 'off'], { default: 'off', doc: 'Mode.', aliases: ['old.mode'] }),
  },
  find: (name) =>
    name.startsWith('table.properties.')
      ? [name, text({ default: '', doc: 'Passed through.' })]
      : undefined,
  async validate({ config }) {
    if (config['table.mode'] === 'on' && config['table.properties.need'] === undefined) {
      throw new FloeError('invalid', 'table.mode=on needs table.properties.need: set it too');
    }
  },
};

let test: TestBroker;
let client: RawClient;

beforeAll(async () => {
  test = await startTestBroker({
    topicConfigExtensions: [extension],
    set: { 'num.partitions': '3' },
  });
  client = await RawClient.connect(test.port);
});

afterAll(async () => {
  client.close();
  await test.stop();
});

interface Wish {
  readonly name: string;
  readonly partitions?: number;
  readonly replicas?: number;
  readonly configs?: Readonly<Record<string, string | null>>;
  readonly assignments?: readonly (readonly number[])[];
}

async function create(wishes: readonly Wish[], validateOnly = false) {
  const { topics } = await client.call(createTopicsApi, 7, {
    timeoutMs: 1_000,
    validateOnly,
    topics: wishes.map((wish) => ({
      name: wish.name,
      numPartitions: wish.partitions ?? -1,
      replicationFactor: wish.replicas ?? -1,
      assignments: (wish.assignments ?? []).map((brokerIds, partitionIndex) => ({
        partitionIndex,
        brokerIds,
      })),
      configs: Object.entries(wish.configs ?? {}).map(([name, value]) => ({ name, value })),
    })),
  });
  return topics;
}

async function createOne(wish: Wish, validateOnly = false) {
  return (await create([wish], validateOnly))[0]!;
}

async function metadata(names: readonly string[] | null, allowAutoTopicCreation = false) {
  return client.call(metadataApi, 12, {
    topics: names?.map((name) => ({ name, topicId: ZERO_UUID })) ?? null,
    allowAutoTopicCreation,
    includeClusterAuthorizedOperations: false,
    includeTopicAuthorizedOperations: true,
  });
}

describe('ApiVersions', () => {
  it('advertises exactly the table', async () => {
    const { apiKeys } = await client.call(apiVersionsApi, 3, {
      clientSoftwareName: 'a',
      clientSoftwareVersion: '1',
    });
    expect(apiKeys.map(({ apiKey }) => apiKey)).toEqual(
      test.broker.services.router.served.map(({ apiKey }) => apiKey),
    );
    expect(apiKeys[0]).toEqual({ apiKey: 0, minVersion: 0, maxVersion: 13 });
  });
});

describe('CreateTopics', () => {
  it('takes defaults, tells id, count and configs', async () => {
    const topic = await createOne({ name: 'defaults', configs: { 'retention.ms': '5000' } });
    expect(topic).toMatchObject({ errorCode: 0, numPartitions: 3, replicationFactor: 1 });
    expect(topic.topicId).toBe(test.directory.byName('defaults')!.topicId);
    const retention = topic.configs!.find(({ name }) => name === 'retention.ms');
    expect(retention).toMatchObject({ value: '5000', configSource: 1 });
  });

  it('only validates when asked to', async () => {
    expect((await createOne({ name: 'ghost' }, true)).errorCode).toBe(0);
    expect(test.directory.byName('ghost')).toBeUndefined();
  });

  it.each<[Wish, number, RegExp]>([
    [{ name: 'a b' }, ErrorCode.INVALID_TOPIC_EXCEPTION, /"a b"/],
    [{ name: '..' }, ErrorCode.INVALID_TOPIC_EXCEPTION, /\.\./],
    [{ name: 'x'.repeat(250) }, ErrorCode.INVALID_TOPIC_EXCEPTION, /249/],
    [{ name: 'zero', partitions: 0 }, ErrorCode.INVALID_PARTITIONS, /at least one/],
    [
      { name: 'many', partitions: 10_001 },
      ErrorCode.INVALID_PARTITIONS,
      /max\.partitions\.per\.topic/,
    ],
    [{ name: 'rf', replicas: 4 }, ErrorCode.INVALID_REPLICATION_FACTOR, /1…3/],
    [
      { name: 'cfg', configs: { 'no.such': '1' } },
      ErrorCode.INVALID_CONFIG,
      /no\.such.*DescribeConfigs/,
    ],
    [
      { name: 'cfg', configs: { 'retention.ms': 'x' } },
      ErrorCode.INVALID_CONFIG,
      /retention\.ms.*"x"/,
    ],
    [{ name: 'cfg', configs: { 'retention.ms': null } }, ErrorCode.INVALID_CONFIG, /retention\.ms/],
    [
      { name: 'ext', configs: { 'table.mode': 'on' } },
      ErrorCode.INVALID_CONFIG,
      /table\.properties\.need/,
    ],
    [
      { name: 'as', assignments: [[7]] },
      ErrorCode.INVALID_REPLICA_ASSIGNMENT,
      /no broker 7, only 0/,
    ],
    [{ name: 'as', partitions: 1, assignments: [[0]] }, ErrorCode.INVALID_REQUEST, /-1/],
  ])('refuses %j', async (wish, code, message) => {
    const topic = await createOne(wish);
    expect(topic.errorCode).toBe(code);
    expect(topic.errorMessage).toMatch(message);
    expect(test.directory.byName(wish.name)).toBeUndefined();
  });

  it('refuses a name that exists, and one named twice, and makes the others', async () => {
    await create([{ name: 'there' }]);
    const answers = await create([
      { name: 'there' },
      { name: 'twin' },
      { name: 'twin' },
      { name: 'fine' },
    ]);
    const codes = Object.fromEntries(answers.map(({ name, errorCode }) => [name, errorCode]));
    expect(codes).toEqual({
      there: ErrorCode.TOPIC_ALREADY_EXISTS,
      twin: ErrorCode.INVALID_REQUEST,
      fine: 0,
    });
  });

  it('takes assignments to this node', async () => {
    const topic = await createOne({ name: 'assigned', assignments: [[0], [0]] });
    expect(topic).toMatchObject({ errorCode: 0, numPartitions: 2 });
  });

  it('keeps aliases and open families under their proper names', async () => {
    await create([
      { name: 'aliased', configs: { 'old.mode': 'on', 'table.properties.need': 'y' } },
    ]);
    expect(test.directory.byName('aliased')!.config).toEqual({
      'table.mode': 'on',
      'table.properties.need': 'y',
    });
  });
});

describe('Metadata', () => {
  it('shows topics by name and by id, and what is wrong with the others', async () => {
    await create([{ name: 'seen', partitions: 2 }]);
    const reply = await metadata(['seen', 'unseen', 'bad name!']);
    expect(reply.topics.map(({ errorCode }) => errorCode)).toEqual([0, 3, 17]);
    expect(reply.topics[0]!.partitions).toHaveLength(2);
    expect(reply.topics[0]!.partitions[0]).toMatchObject({
      leaderId: 0,
      leaderEpoch: 0,
      isrNodes: [0],
    });
    expect(reply.brokers).toEqual([{ nodeId: 0, host: '127.0.0.1', port: test.port, rack: null }]);
    const { topicId } = test.directory.byName('seen')!;
    const byId = await client.call(metadataApi, 12, {
      topics: [
        { name: null, topicId },
        { name: null, topicId: '00000000-0000-4000-8000-0000000000ff' },
      ],
      includeClusterAuthorizedOperations: false,
      includeTopicAuthorizedOperations: false,
    });
    expect(byId.topics.map(({ name, errorCode }) => [name, errorCode])).toEqual([
      ['seen', 0],
      [null, ErrorCode.UNKNOWN_TOPIC_ID],
    ]);
  });

  it('creates a topic when client and broker both allow it', async () => {
    expect((await metadata(['auto'])).topics[0]!.errorCode).toBe(3);
    expect((await metadata(['auto'], true)).topics[0]).toMatchObject({
      errorCode: 0,
      name: 'auto',
    });
    expect(test.directory.byName('auto')!.partitions).toHaveLength(3);
  });

  it('lists all topics for null, and for an empty list in version 0', async () => {
    const all = test.directory
      .all()
      .map(({ name }) => name)
      .sort();
    expect((await metadata(null)).topics.map(({ name }) => name).sort()).toEqual(all);
    expect((await metadata([])).topics).toEqual([]);
    const v0 = await client.call(metadataApi, 0, {
      topics: [],
      includeClusterAuthorizedOperations: false,
      includeTopicAuthorizedOperations: false,
    });
    expect(v0.topics).toHaveLength(all.length);
  });
});

describe('DeleteTopics and CreatePartitions', () => {
  it('deletes by name or id, and once', async () => {
    await create([{ name: 'gone1' }, { name: 'gone2' }]);
    const { topicId } = test.directory.byName('gone2')!;
    const remove = () =>
      client.call(deleteTopicsApi, 6, {
        timeoutMs: 1_000,
        topicNames: [],
        topics: [
          { name: 'gone1', topicId: ZERO_UUID },
          { name: null, topicId },
        ],
      });
    expect((await remove()).responses.map(({ errorCode }) => errorCode)).toEqual([0, 0]);
    expect((await remove()).responses.map(({ errorCode }) => errorCode)).toEqual([3, 100]);
  });

  it('raises the count and never lowers it', async () => {
    await create([{ name: 'grows', partitions: 2 }]);
    const grow = async (count: number, name = 'grows', validateOnly = false) => {
      const topics = [{ name, count, assignments: null }];
      const { results } = await client.call(createPartitionsApi, 3, {
        topics,
        timeoutMs: 1_000,
        validateOnly,
      });
      return results[0]!.errorCode;
    };
    expect(await grow(2)).toBe(ErrorCode.INVALID_PARTITIONS);
    expect(await grow(4, 'grows', true)).toBe(0);
    expect(test.directory.byName('grows')!.partitions).toHaveLength(2);
    expect(await grow(4)).toBe(0);
    expect(test.directory.byName('grows')!.partitions).toHaveLength(4);
    expect(await grow(4, 'missing')).toBe(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
  });
});

const TOPIC = 2;
const BROKER = 4;

async function describeConfigs(
  resourceType: number,
  resourceName: string,
  keys: readonly string[] | null = null,
) {
  const { results } = await client.call(describeConfigsApi, 4, {
    resources: [{ resourceType, resourceName, configurationKeys: keys }],
    includeSynonyms: true,
    includeDocumentation: true,
  });
  return results[0]!;
}

async function setConfig(
  resourceType: number,
  resourceName: string,
  changes: readonly (readonly [string, number, string | null])[],
) {
  const configs = changes.map(([name, configOperation, value]) => ({
    name,
    configOperation,
    value,
  }));
  const { responses } = await client.call(incrementalAlterConfigsApi, 1, {
    resources: [{ resourceType, resourceName, configs }],
    validateOnly: false,
  });
  return responses[0]!;
}

describe('configs', () => {
  beforeAll(() => create([{ name: 'conf', configs: { 'max.message.bytes': '2000' } }]));

  it('shows value, source, type, documentation and synonyms of a topic', async () => {
    const { configs } = await describeConfigs(TOPIC, 'conf');
    const byName = new Map(configs.map((config) => [config.name, config]));
    expect(byName.get('max.message.bytes')).toMatchObject({
      value: '2000',
      configSource: 1,
      configType: 3,
      synonyms: [
        { name: 'max.message.bytes', value: '2000', source: 1 },
        { name: 'message.max.bytes', value: '1048588', source: 5 },
      ],
    });
    expect(byName.get('cleanup.policy')).toMatchObject({
      value: 'delete',
      configSource: 5,
      configType: 7,
    });
    expect(byName.get('retention.ms')).toMatchObject({ value: '604800000', configSource: 5 });
    expect(byName.get('flush.ms')!.value).toBe('9223372036854775807');
    expect(byName.get('table.mode')).toMatchObject({ value: 'off' });
    for (const { documentation } of configs) expect(documentation!.length).toBeGreaterThan(4);
  });

  it('shows only the keys asked for', async () => {
    const { configs } = await describeConfigs(TOPIC, 'conf', ['retention.ms', 'no.such']);
    expect(configs.map(({ name }) => name)).toEqual(['retention.ms']);
  });

  it('sets, appends, subtracts and deletes single configs', async () => {
    const config = () => test.directory.byName('conf')!.config;
    await setConfig(TOPIC, 'conf', [
      ['cleanup.policy', 2, 'compact'],
      ['retention.ms', 0, '1'],
    ]);
    expect(config()).toMatchObject({ 'cleanup.policy': 'delete,compact', 'retention.ms': '1' });
    await setConfig(TOPIC, 'conf', [
      ['cleanup.policy', 3, 'delete'],
      ['retention.ms', 1, null],
    ]);
    expect(config()).toEqual({ 'cleanup.policy': 'compact', 'max.message.bytes': '2000' });
    expect(await setConfig(TOPIC, 'conf', [['retention.ms', 2, '1']])).toMatchObject({
      errorCode: ErrorCode.INVALID_CONFIG,
      errorMessage: expect.stringMatching(/no list/),
    });
    expect((await setConfig(TOPIC, 'none', [['retention.ms', 0, '1']])).errorCode).toBe(3);
  });

  it('replaces all configs with the old request', async () => {
    const alter = (configs: { name: string; value: string | null }[]) =>
      client.call(alterConfigsApi, 2, {
        resources: [{ resourceType: TOPIC, resourceName: 'conf', configs }],
        validateOnly: false,
      });
    await alter([{ name: 'retention.ms', value: '7' }]);
    expect(test.directory.byName('conf')!.config).toEqual({ 'retention.ms': '7' });
    const { responses } = await alter([{ name: 'retention.ms', value: 'seven' }]);
    expect(responses[0]!.errorCode).toBe(ErrorCode.INVALID_CONFIG);
    expect(test.directory.byName('conf')!.config).toEqual({ 'retention.ms': '7' });
  });

  it('changes dynamic broker settings for all brokers or one, and no others', async () => {
    expect((await setConfig(BROKER, '', [['message.max.bytes', 0, '5000']])).errorCode).toBe(0);
    expect((await setConfig(BROKER, '0', [['message.max.bytes', 0, '6000']])).errorCode).toBe(0);
    expect(test.broker.config.values['message.max.bytes']).toBe(6_000);
    const { configs } = await describeConfigs(BROKER, '0', ['message.max.bytes', 'num.partitions']);
    expect(
      configs.map(({ name, value, readOnly, configSource }) => [
        name,
        value,
        readOnly,
        configSource,
      ]),
    ).toEqual([
      ['num.partitions', '3', true, 4],
      ['message.max.bytes', '6000', false, 2],
    ]);
    const topic = await describeConfigs(TOPIC, 'conf', ['max.message.bytes']);
    expect(topic.configs[0]).toMatchObject({ value: '6000', configSource: 2 });
    await setConfig(BROKER, '0', [['message.max.bytes', 1, null]]);
    expect(test.broker.config.values['message.max.bytes']).toBe(5_000);
    expect(await setConfig(BROKER, '0', [['num.partitions', 0, '9']])).toMatchObject({
      errorCode: ErrorCode.INVALID_REQUEST,
      errorMessage: expect.stringMatching(/--set/),
    });
    expect((await setConfig(BROKER, '7', [['message.max.bytes', 0, '1']])).errorCode).toBe(
      ErrorCode.INVALID_REQUEST,
    );
  });

  it('lists resources', async () => {
    const { configResources } = await client.call(listConfigResourcesApi, 1, {
      resourceTypes: [BROKER],
    });
    expect(configResources).toEqual([{ resourceName: '0', resourceType: BROKER }]);
  });
});

describe('cluster', () => {
  it('is one node', async () => {
    const ask = (endpointType: number) =>
      client.call(describeClusterApi, 1, {
        endpointType,
        includeClusterAuthorizedOperations: false,
        includeFencedBrokers: false,
      });
    expect(await ask(1)).toMatchObject({
      clusterId: 'test-cluster',
      controllerId: 0,
      brokers: [{ brokerId: 0 }],
    });
    expect((await ask(2)).errorCode).toBe(ErrorCode.MISMATCHED_ENDPOINT_TYPE);
  });

  it('shows bytes per partition', async () => {
    await create([{ name: 'sized', partitions: 1 }]);
    const { results } = await client.call(describeLogDirsApi, 4, {
      topics: [{ topic: 'sized', partitions: [0, 5] }],
    });
    expect(results[0]).toMatchObject({
      logDir: 'memory://log',
      topics: [{ name: 'sized', partitions: [{ partitionIndex: 0, partitionSize: 0 }] }],
    });
  });

  it('pages through partitions', async () => {
    await create([
      { name: 'page-a', partitions: 2 },
      { name: 'page-b', partitions: 3 },
    ]);
    const page = (cursor: { topicName: string; partitionIndex: number } | null) =>
      client.call(describeTopicPartitionsApi, 0, {
        topics: [{ name: 'page-b' }, { name: 'page-a' }, { name: 'page-z' }],
        responsePartitionLimit: 3,
        cursor,
      });
    const first = await page(null);
    expect(first.topics.map(({ name, partitions }) => [name, partitions.length])).toEqual([
      ['page-a', 2],
      ['page-b', 1],
    ]);
    const second = await page(first.nextCursor);
    expect(
      second.topics.map(({ name, errorCode, partitions }) => [name, errorCode, partitions.length]),
    ).toEqual([
      ['page-b', 0, 2],
      ['page-z', 3, 0],
    ]);
    expect(second.nextCursor).toBeNull();
  });
});
