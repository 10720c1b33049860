// Configs of groups, client metrics, loggers and listeners, and the refusals of each kind as Kafka 4.3.1 gives them.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LevelControl } from '../../base/log.ts';
import { int } from '../../base/settings.ts';
import { openSqliteMetadata } from '../../metadata/sqlite/index.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import { describeConfigsApi } from '../../protocol/messages/32-describe-configs.ts';
import { alterConfigsApi } from '../../protocol/messages/33-alter-configs.ts';
import { incrementalAlterConfigsApi } from '../../protocol/messages/44-incremental-alter-configs.ts';
import { listConfigResourcesApi } from '../../protocol/messages/74-list-config-resources.ts';
import { RESOURCE } from '../config-resources.ts';
import { ResourceConfigs } from '../resource-configs.ts';
import { startTestBroker, type TestBroker } from '../testing/harness.ts';
import { RawClient } from '../testing/raw-client.ts';

const { topic, broker, brokerLogger, clientMetrics, group } = RESOURCE;

const others = ['session.timeout.ms', 'heartbeat.interval.ms'].flatMap((what, at) =>
  (
    [
      ['', [45_000, 5_000]],
      ['min.', [45_000, 5_000]],
      ['max.', [60_000, 15_000]],
    ] as const
  ).map(([bound, values]) => ({
    name: `group.consumer.${bound}${what}`,
    setting: int({ default: values[at]!, doc: '' }),
    value: String(values[at]),
  })),
);

const metadata = openSqliteMetadata(':memory:');
const logControl: LevelControl = { level: 'warn' };
let test: TestBroker;
let client: RawClient;

beforeAll(async () => {
  test = await startTestBroker({ metadata, logControl, otherSettings: others, nodeId: 1 });
  client = await RawClient.connect(test.port);
  const wish = { topicId: '00000000-0000-4000-8000-000000000001', name: 'there', config: {} };
  await test.directory.create({ ...wish, partitionCount: 1, nowMs: 0 });
});

afterAll(async () => {
  client.close();
  await test.stop();
});

type Change = readonly [name: string, operation: number, value: string | null];
const SET = 0;
const DELETE = 1;
const APPEND = 2;

async function alter(
  resourceType: number,
  resourceName: string,
  changes: readonly Change[],
  validateOnly = false,
) {
  const configs = changes.map(([name, configOperation, value]) => ({
    name,
    configOperation,
    value,
  }));
  const { responses } = await client.call(incrementalAlterConfigsApi, 1, {
    resources: [{ resourceType, resourceName, configs }],
    validateOnly,
  });
  return responses[0]!;
}

async function show(resourceType: number, resourceName: string, keys: string[] | null = null) {
  const { results } = await client.call(describeConfigsApi, 4, {
    resources: [{ resourceType, resourceName, configurationKeys: keys }],
    includeSynonyms: true,
    includeDocumentation: true,
  });
  return results[0]!;
}

describe('refusals', () => {
  const ok: readonly Change[] = [['interval.ms', SET, '1000']];
  it.each<[number, string, readonly Change[], number, RegExp]>([
    [clientMetrics, 's', [['interval.ms', SET, '10']], 42, /interval\.ms.*100/],
    [clientMetrics, 's', [['match', SET, 'foo=abc.*']], 40, /foo=abc/],
    [clientMetrics, 's', [['match', SET, 'client_id=(']], 40, /no pattern/],
    [clientMetrics, 's', [['foo', SET, 'x']], 42, /"foo".*interval\.ms/],
    [clientMetrics, '', ok, 42, /name/],
    [group, 'g', [['consumer.session.timeout.ms', SET, '1']], 40, /group\.consumer\.min/],
    [group, 'g', [['consumer.session.timeout.ms', SET, '70000']], 40, /group\.consumer\.max/],
    [group, 'g', [['foo', SET, '1']], 40, /"foo"/],
    [group, '', [['consumer.session.timeout.ms', SET, '46000']], 42, /name/],
    [brokerLogger, '1', [['root', SET, 'LOUD']], 40, /LOUD.*DEBUG/],
    [brokerLogger, '1', [['nope.nope', SET, 'DEBUG']], 40, /nope\.nope/],
    [brokerLogger, '1', [['root', APPEND, 'DEBUG']], 42, /append/],
    [brokerLogger, '2', [['root', SET, 'DEBUG']], 42, /broker 1/],
    [3, 'x', [['a', SET, 'b']], 42, /type 3/],
    [broker, '1', [['num.partitions', SET, '9']], 42, /--set/],
    [broker, '', [['node.id', SET, '9']], 42, /node\.id/],
    [broker, '1', [['message.max.bytes', SET, 'x']], 42, /message\.max\.bytes/],
    [broker, '1', [['message.max.bytes', SET, '3000000000']], 42, /32 bits/],
    [broker, '7', [['message.max.bytes', SET, '9']], 42, /broker 1/],
    [broker, '1', [['max.connections.per.ip.overrides', SET, 'nowhere:1']], 42, /ADDRESS:COUNT/],
    [topic, 'there', [['retention.ms', SET, 'x']], 40, /retention\.ms/],
    [topic, 'there', [['foo', SET, 'x']], 40, /"foo"/],
    [topic, 'nope', [['retention.ms', SET, '1']], 3, /"nope"/],
    [topic, 'there', [['retention.ms', APPEND, '1']], 40, /no list/],
    [topic, 'there', [['retention.ms', SET, null]], 42, /no value/],
    [topic, 'there', [['retention.ms', 9, '1']], 42, /operation 9/],
    [topic, 'there', [['remote.storage.enable', SET, 'true']], 40, /--storage/],
    [
      topic,
      'there',
      [
        ['min.compaction.lag.ms', SET, '10'],
        ['max.compaction.lag.ms', SET, '5'],
      ],
      40,
      /above max/,
    ],
    [
      topic,
      'there',
      [
        ['retention.ms', SET, '1'],
        ['retention.ms', DELETE, null],
      ],
      42,
      /twice/,
    ],
  ])('of type %d, "%s": %j', async (type, name, changes, code, message) => {
    const reply = await alter(type, name, changes);
    expect(reply.errorCode).toBe(code);
    expect(reply.errorMessage).toMatch(message);
    expect(test.directory.byName('there')!.config).toEqual({});
    expect(await metadata.resourceConfigs.list()).toEqual([]);
  });

  it('of a resource named twice', async () => {
    const resource = { resourceType: topic, resourceName: 'there', configs: [] };
    const { responses } = await client.call(incrementalAlterConfigsApi, 1, {
      resources: [resource, resource],
      validateOnly: false,
    });
    expect(responses.map(({ errorCode }) => errorCode)).toEqual([42, 42]);
  });

  it('of loggers by the old request, and of names that no resource can have', async () => {
    const { responses } = await client.call(alterConfigsApi, 2, {
      resources: [{ resourceType: brokerLogger, resourceName: '1', configs: [] }],
      validateOnly: false,
    });
    expect(responses[0]!.errorCode).toBe(ErrorCode.INVALID_REQUEST);
    for (const [type, name] of [
      [group, ''],
      [clientMetrics, ''],
      [3, 'x'],
      [broker, 'abc'],
    ] as const) {
      expect((await show(type, name)).errorCode).toBe(ErrorCode.INVALID_REQUEST);
    }
  });
});

describe('what is set', () => {
  it('of client metrics is shown, listed, kept over a restart, and gone with its last config', async () => {
    const changes: Change[] = [
      ['interval.ms', SET, '1000'],
      ['metrics', SET, 'org.apache.kafka.producer.'],
    ];
    expect((await alter(clientMetrics, 'sub', changes, true)).errorCode).toBe(0);
    expect(await metadata.resourceConfigs.list()).toEqual([]);
    await alter(clientMetrics, 'sub', changes);
    await alter(clientMetrics, 'sub', [['metrics', APPEND, 'org.apache.kafka.consumer.']]);
    const { configs } = await show(clientMetrics, 'sub');
    expect(configs.map(({ name, value, configSource }) => [name, value, configSource])).toEqual([
      ['interval.ms', '1000', 7],
      ['match', '', 5],
      ['metrics', 'org.apache.kafka.producer.,org.apache.kafka.consumer.', 7],
    ]);
    const list = (version: number, resourceTypes: number[]) =>
      client.call(listConfigResourcesApi, version, { resourceTypes });
    const sub = { resourceName: 'sub', resourceType: clientMetrics };
    expect((await list(0, [])).configResources).toEqual([sub]);
    expect((await list(1, [clientMetrics, group])).configResources).toEqual([sub]);
    expect((await list(1, [3])).errorCode).toBe(ErrorCode.UNSUPPORTED_VERSION);
    expect((await list(1, [])).configResources).toHaveLength(4);
    const again = await ResourceConfigs.load(metadata.resourceConfigs);
    expect(again.of('client-metrics', 'sub')).toMatchObject({ 'interval.ms': '1000' });
    await alter(clientMetrics, 'sub', [
      ['metrics', DELETE, null],
      ['interval.ms', DELETE, null],
    ]);
    expect((await list(0, [])).configResources).toEqual([]);
  });

  it('of a group overrides the broker’s setting', async () => {
    await alter(group, 'g', [['consumer.session.timeout.ms', SET, '46000']]);
    const { configs } = await show(group, 'g', ['consumer.session.timeout.ms']);
    expect(configs).toMatchObject([
      {
        value: '46000',
        configSource: 8,
        synonyms: [
          { name: 'consumer.session.timeout.ms', value: '46000', source: 8 },
          { name: 'group.consumer.session.timeout.ms', value: '45000', source: 5 },
        ],
      },
    ]);
    const changes = { resources: [{ resourceType: group, resourceName: 'g', configs: [] }] };
    await client.call(alterConfigsApi, 2, { ...changes, validateOnly: false });
    expect(test.broker.services.resourceConfigs.of('group', 'g')).toBeUndefined();
  });

  it('of the logger holds at once and until it is taken back', async () => {
    expect((await show(brokerLogger, '1')).configs).toMatchObject([
      { name: 'root', value: 'WARN', configSource: 6 },
    ]);
    await alter(brokerLogger, '1', [['root', SET, 'DEBUG']], true);
    expect(logControl.level).toBe('warn');
    await alter(brokerLogger, '1', [['root', SET, 'DEBUG']]);
    expect(logControl.level).toBe('debug');
    await alter(brokerLogger, '1', [['root', DELETE, null]]);
    expect(logControl.level).toBe('warn');
  });

  it('of a listener is its own limit', async () => {
    const name = 'listener.name.plaintext.max.connections';
    const limit = () => test.broker.config.listenerValue('PLAINTEXT', 'max.connections');
    const standard = limit();
    expect((await alter(broker, '', [[name, SET, '5']])).errorCode).toBe(0);
    expect(limit()).toBe(5);
    await alter(broker, '1', [[name, SET, '7']]);
    expect(limit()).toBe(7);
    const { configs } = await show(broker, '1', [name]);
    expect(configs).toMatchObject([
      { name, value: '7', configSource: 2, synonyms: [{ source: 2 }, { source: 3, value: '5' }] },
    ]);
    expect((await show(broker, '', [name])).configs).toMatchObject([{ name, value: '5' }]);
    await alter(broker, '1', [[name, DELETE, null]]);
    await alter(broker, '', [[name, DELETE, null]]);
    expect(limit()).toBe(standard);
  });
});

it('shows every config of a topic with its broker synonym, type and meaning', async () => {
  await alter(broker, '', [['log.cleaner.min.compaction.lag.ms', SET, '77']]);
  const { configs } = await show(topic, 'there');
  const byName = new Map(configs.map((config) => [config.name, config]));
  // Those that Kafka 4.3.1 shows.
  expect(byName.size).toBeGreaterThanOrEqual(33);
  expect(byName.get('min.compaction.lag.ms')).toMatchObject({
    value: '77',
    configSource: 3,
    synonyms: [
      { name: 'log.cleaner.min.compaction.lag.ms', value: '77', source: 3 },
      { name: 'log.cleaner.min.compaction.lag.ms', value: '0', source: 5 },
    ],
  });
  expect(byName.get('leader.replication.throttled.replicas')!.configType).toBe(7);
  expect(byName.get('min.cleanable.dirty.ratio')!.configType).toBe(6);
  for (const { documentation } of configs) expect(documentation!.length).toBeGreaterThan(20);
});
