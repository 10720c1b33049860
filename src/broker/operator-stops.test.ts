// Read-only mode and quarantine over the wire: what is refused with which code and sentence, what goes on meanwhile, and
// that clients go on afterwards as if nothing had been.
import { Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ErrorCode } from '../protocol/errors.ts';
import { ZERO_UUID } from '../protocol/fields.ts';
import { produceApi } from '../protocol/messages/00-produce.ts';
import { fetchApi } from '../protocol/messages/01-fetch.ts';
import { listOffsetsApi } from '../protocol/messages/02-list-offsets.ts';
import { metadataApi } from '../protocol/messages/03-metadata.ts';
import { deleteRecordsApi } from '../protocol/messages/21-delete-records.ts';
import { describeConfigsApi } from '../protocol/messages/32-describe-configs.ts';
import { incrementalAlterConfigsApi } from '../protocol/messages/44-incremental-alter-configs.ts';
import type { BatchOptions } from '../protocol/record-builder.ts';
import { CONFIG_SOURCE } from './broker-config.ts';
import { RESOURCE } from './config-resources.ts';
import { type FetchClient, readPass } from './fetch-read.ts';
import { produceHandler } from './handlers/00-produce.ts';
import { anybody } from './testing/access.ts';
import { startTestBroker, type TestBroker } from './testing/harness.ts';
import { RawClient } from './testing/raw-client.ts';
import { batchOf, fetchRequest, produceRequest } from './testing/requests.ts';

const READ_ONLY = 'floe.read.only';
const QUARANTINED = 'floe.quarantined.partitions';

let test: TestBroker;
let client: RawClient;
let other: RawClient;
let topic = '';
let count = 0;
const warned: unknown[] = [];

beforeAll(async () => {
  const logger = { trace() {}, debug() {}, info() {}, error() {}, child: () => logger };
  const warn = (fields: object) => warned.push(fields);
  test = await startTestBroker({ logger: { ...logger, warn } as never });
  client = await RawClient.connect(test.port);
  other = await RawClient.connect(test.port);
});

afterAll(async () => {
  client.close();
  other.close();
  await test.stop();
});

beforeEach(async () => {
  topic = `t${count++}`;
  const { ids } = test.broker.services;
  await test.directory.create({
    topicId: ids.uuid(),
    name: topic,
    partitionCount: 3,
    config: {},
    nowMs: 0,
  });
});

/** Changes one config; `of` is the topic, the cluster's default (''), or the broker ('0'). */
async function alter(of: 'topic' | '' | '0', name: string, value: string | null, operation = 0) {
  const resource = {
    resourceType: of === 'topic' ? RESOURCE.topic : RESOURCE.broker,
    resourceName: of === 'topic' ? topic : of,
    configs: [{ name, configOperation: value === null ? 1 : operation, value }],
  };
  const { responses } = await client.call(incrementalAlterConfigsApi, 1, {
    resources: [resource],
    validateOnly: false,
  });
  return responses[0]!;
}

async function set(...change: Parameters<typeof alter>): Promise<void> {
  expect(await alter(...change)).toMatchObject({ errorCode: 0 });
}

async function produce(partition = 0, value = 'v', options: BatchOptions = {}) {
  const request = produceRequest(topic, batchOf([value], options), { partition });
  const { responses } = await client.call(produceApi, 9, request);
  return responses[0]!.partitionResponses[0]!;
}

async function fetched(partitions: readonly number[], maxWaitMs = 0, by = client) {
  const from = partitions.map((partition) => ({ topic, partition }));
  const { responses } = await by.call(fetchApi, 12, fetchRequest(from, { maxWaitMs }));
  return responses.flatMap((one) =>
    one.partitions.map(({ partitionIndex, errorCode, records }) => ({
      partitionIndex,
      errorCode,
      bytes: records?.length ?? 0,
    })),
  );
}

async function described(of: 'topic' | 'broker', name: string) {
  const { results } = await client.call(describeConfigsApi, 4, {
    resources: [
      {
        resourceType: RESOURCE[of],
        resourceName: of === 'topic' ? topic : '0',
        configurationKeys: [name],
      },
    ],
    includeSynonyms: true,
    includeDocumentation: true,
  });
  return results[0]!.configs[0]!;
}

const OK = { errorCode: 0 };
const READ_ONLY_REFUSAL = { errorCode: ErrorCode.NOT_ENOUGH_REPLICAS, baseOffset: -1 };
const QUARANTINE_REFUSAL = { errorCode: ErrorCode.KAFKA_STORAGE_ERROR };

describe('read-only mode', () => {
  it('refuses Produce of the topic, naming it, the setting and the remedy', async () => {
    await set('topic', READ_ONLY, 'true');
    expect(await produce()).toMatchObject({
      ...READ_ONLY_REFUSAL,
      errorMessage: `topic "${topic}" is read-only: it takes records again once an operator sets floe.read.only=false (now true by the config of the topic)`,
    });
    await set('topic', READ_ONLY, null);
    expect(await produce()).toMatchObject({ ...OK, baseOffset: 0 });
  });

  it.each(['', '0'] as const)(
    'by the default of the cluster or of one broker (%j), which a topic overrides',
    async (scope) => {
      await set(scope, READ_ONLY, 'true');
      expect(await produce()).toMatchObject({
        ...READ_ONLY_REFUSAL,
        errorMessage: expect.stringContaining('of the brokers, which the topic can override'),
      });
      const source = scope === '' ? CONFIG_SOURCE.dynamicDefault : CONFIG_SOURCE.dynamicBroker;
      expect(await described('topic', READ_ONLY)).toMatchObject({
        value: 'true',
        configSource: source,
        synonyms: [
          { name: READ_ONLY, value: 'true', source },
          { name: READ_ONLY, value: 'false', source: CONFIG_SOURCE.default },
        ],
      });
      expect(await described('broker', READ_ONLY)).toMatchObject({ value: 'true' });
      await set('topic', READ_ONLY, 'false');
      expect(await produce()).toMatchObject(OK);
      await set(scope, READ_ONLY, null);
    },
  );

  it('is set at the start as well', async () => {
    const started = await startTestBroker({ set: { [READ_ONLY]: 'true' } });
    const { services, topicConfigs } = started.broker;
    const request = { topicId: services.ids.uuid(), name: 'x', partitionCount: 1 };
    const made = await started.directory.create({ ...request, config: {}, nowMs: 0 });
    expect(topicConfigs.writeStop(made, 0)).toMatchObject({
      errorCode: ErrorCode.NOT_ENOUGH_REPLICAS,
    });
    await started.stop();
  });

  it('leaves other topics of the request alone', async () => {
    await set('topic', READ_ONLY, 'true');
    const records = batchOf(['v']);
    const request = produceRequest('t0', records);
    const stopped = produceRequest(topic, records);
    const topicData = [...stopped.topicData, ...request.topicData];
    const { responses } = await client.call(produceApi, 9, { ...request, topicData });
    expect(responses.map(({ partitionResponses: [one] }) => one)).toMatchObject([
      READ_ONLY_REFUSAL,
      OK,
    ]);
  });

  it('lets everything else go on', async () => {
    await produce();
    await set('topic', READ_ONLY, 'true');
    expect(await fetched([0])).toMatchObject([{ errorCode: 0, bytes: expect.any(Number) }]);
    const { topics } = await client.call(deleteRecordsApi, 2, {
      topics: [{ name: topic, partitions: [{ partitionIndex: 0, offset: 1 }] }],
      timeoutMs: 1_000,
    });
    expect(topics[0]!.partitions[0]).toMatchObject({ errorCode: 0, lowWatermark: 1 });
  });

  it('touches neither sequences nor quotas', async () => {
    const batch = (baseSequence: number) => ({ producerId: 7, producerEpoch: 0, baseSequence });
    expect(await produce(0, 'a', batch(0))).toMatchObject(OK);
    await set('topic', READ_ONLY, 'true');
    const { services } = test.broker;
    const charged: number[] = [];
    const produceRate = { add: (bytes: number) => charged.push(bytes) };
    for (let attempt = 0; attempt < 10; attempt += 1)
      expect(await produce(0, 'b', batch(1))).toMatchObject(READ_ONLY_REFUSAL);
    // The wire test can't see the meter: the handler is asked with one.
    const records = batchOf(['b'], batch(1));
    const context = {
      apiVersion: 9,
      services,
      access: anybody(),
      limits: { produce: produceRate },
      countError() {},
    };
    await produceHandler.handle(
      { ...produceRequest(topic, records), transactionalId: null },
      context as never,
    );
    expect(charged).toEqual([-records.length]);
    await set('topic', READ_ONLY, null);
    expect(await produce(0, 'b', batch(1))).toMatchObject({ ...OK, baseOffset: 1 });
    expect(await produce(0, 'c', batch(2))).toMatchObject({ ...OK, baseOffset: 2 });
  });

  it('makes an idempotent kafkajs producer wait, which then goes on without gaps', async () => {
    const kafka = new Kafka({
      brokers: [test.address],
      logLevel: logLevel.NOTHING,
      retry: { initialRetryTime: 5, maxRetryTime: 20 },
    });
    const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 });
    await producer.connect();
    const send = (value: string) =>
      producer.send({ topic, messages: [{ value, partition: 1 }] }).then(([sent]) => sent);
    expect(await send('a')).toMatchObject({ baseOffset: '0' });
    await set('topic', READ_ONLY, 'true');
    let requests = 0;
    producer.on(producer.events.REQUEST, ({ payload }) => {
      if (payload.apiName === 'Produce') requests += 1;
    });
    const waiting = [send('b'), send('c')];
    await expect.poll(() => requests).toBeGreaterThan(10);
    await set('topic', READ_ONLY, 'false');
    // kafkajs itself lets either go first.
    const offsets = (await Promise.all(waiting)).map((sent) => sent?.baseOffset);
    expect(offsets.toSorted()).toEqual(['1', '2']);
    expect(await send('d')).toMatchObject({ baseOffset: '3' });
    await producer.disconnect();
  });
});

describe('quarantine of a partition', () => {
  it('refuses Produce of it with the remedy; the request’s other partitions are written', async () => {
    await set('topic', QUARANTINED, '1');
    const records = batchOf(['v']);
    const request = produceRequest(topic, records);
    const partitionData = [0, 1, 2].map((index) => ({ index, records }));
    const topicData = [{ name: topic, topicId: ZERO_UUID, partitionData }];
    const { responses } = await client.call(produceApi, 9, { ...request, topicData });
    expect(responses[0]!.partitionResponses).toMatchObject([
      OK,
      {
        ...QUARANTINE_REFUSAL,
        errorMessage: `partition 1 of topic "${topic}" is quarantined: it is served again once an operator takes 1 off the topic's floe.quarantined.partitions`,
      },
      OK,
    ]);
  });

  it('refuses Fetch and look-ups by time of it, and serves its neighbours and both its ends', async () => {
    for (const partition of [0, 1, 2]) await produce(partition);
    await set('topic', QUARANTINED, '1');
    const reads = test.log.reads;
    expect(await fetched([0, 1, 2])).toMatchObject([
      { errorCode: 0, bytes: expect.any(Number) },
      { ...QUARANTINE_REFUSAL, bytes: 0 },
      { errorCode: 0, bytes: expect.any(Number) },
    ]);
    expect(test.log.reads).toBe(reads + 1);
    const offsets = async (partitionIndex: number, timestamp: number) => {
      const partitions = [{ partitionIndex, timestamp, currentLeaderEpoch: -1 }];
      const { topics } = await client.call(listOffsetsApi, 7, {
        replicaId: -1,
        isolationLevel: 0,
        timeoutMs: 1_000,
        topics: [{ name: topic, partitions }],
      });
      return topics[0]!.partitions[0]!;
    };
    for (const timestamp of [0, -3])
      expect(await offsets(1, timestamp)).toMatchObject(QUARANTINE_REFUSAL);
    expect(await offsets(1, -1)).toMatchObject({ errorCode: 0, offset: 1 });
    expect(await offsets(1, -2)).toMatchObject({ errorCode: 0, offset: 0 });
    expect(await offsets(2, 0)).toMatchObject({ errorCode: 0 });
  });

  it('ends with the config: everything is where it was', async () => {
    await produce(1, 'a');
    await set('topic', QUARANTINED, '1');
    expect(await produce(1, 'lost?')).toMatchObject(QUARANTINE_REFUSAL);
    await set('topic', QUARANTINED, '1', 3);
    expect(await described('topic', QUARANTINED)).toMatchObject({ value: '' });
    expect(await produce(1, 'b')).toMatchObject({ ...OK, baseOffset: 1 });
    expect(await fetched([1])).toMatchObject([{ errorCode: 0 }]);
  });

  it('ends open polls, when it begins and when it is lifted', async () => {
    const { fetchWaits } = test.broker.services;
    const waits = () => expect.poll(() => fetchWaits.waiting).toBe(1);
    const long = 60_000;
    const open = fetched([0, 1], long, other);
    await waits();
    await set('topic', QUARANTINED, '1');
    expect(await open).toMatchObject([{ errorCode: 0 }, QUARANTINE_REFUSAL]);
    // Whoever asks for nothing else waits as well: it would only ask again at once.
    const alone = fetched([1], long, other);
    await waits();
    await set('topic', QUARANTINED, null);
    expect(await alone).toMatchObject([{ errorCode: 0 }]);
  });

  it('ends a poll that was reading when it began', async () => {
    const read = test.log.read.bind(test.log);
    const { topicId } = test.directory.byName(topic)!;
    test.log.read = async (request) => {
      test.log.read = read;
      await test.directory.alterConfig(topicId, { [QUARANTINED]: '1' });
      return read(request);
    };
    // What lies at the end is answered without a read.
    await produce(0);
    const { responses } = await client.call(
      fetchApi,
      12,
      fetchRequest(
        [
          { topic, partition: 0 },
          { topic, partition: 1 },
        ],
        { maxWaitMs: 60_000, minBytes: 100_000 },
      ),
    );
    const codes = responses.flatMap((one) => one.partitions.map(({ errorCode }) => errorCode));
    expect(codes).toEqual([0, ErrorCode.KAFKA_STORAGE_ERROR]);
  });

  it('leaves Metadata as it is', async () => {
    const ask = () =>
      client.call(metadataApi, 12, {
        topics: [{ name: topic, topicId: ZERO_UUID }],
        allowAutoTopicCreation: false,
        includeClusterAuthorizedOperations: false,
        includeTopicAuthorizedOperations: false,
      });
    const before = await ask();
    await set('topic', QUARANTINED, '1');
    expect(await ask()).toEqual(before);
  });

  it('of a bad number is refused by name, of an absent partition told of', async () => {
    for (const bad of ['-1', '1.5', 'one', '1;2', '1,x', '12345678901']) {
      const { errorCode, errorMessage } = await alter('topic', QUARANTINED, bad);
      expect(errorCode).toBe(ErrorCode.INVALID_CONFIG);
      expect(errorMessage).toMatch(
        /^floe\.quarantined\.partitions: ".+" is not a partition number/,
      );
    }
    expect(await alter('topic', READ_ONLY, 'maybe')).toMatchObject({
      errorCode: ErrorCode.INVALID_CONFIG,
      errorMessage: expect.stringMatching(/^floe\.read\.only: "maybe" is not true or false/),
    });
    warned.length = 0;
    await set('topic', QUARANTINED, '2, 3,7');
    expect(warned).toMatchObject([{ topic, absent: [3, 7], partitions: 3 }]);
    expect(await produce(2)).toMatchObject(QUARANTINE_REFUSAL);
    expect(await produce(0)).toMatchObject(OK);
  });
});

it('costs a Fetch no policy of topics that have no quarantine', async () => {
  const { services } = test.broker;
  let parsed = 0;
  const topicConfigs = Object.create(services.topicConfigs) as typeof services.topicConfigs;
  topicConfigs.isQuarantined = (one, index) => services.topicConfigs.isQuarantined(one, index);
  topicConfigs.policy = (one) => {
    parsed += 1;
    return services.topicConfigs.policy(one);
  };
  const context = { access: anybody(), services: { ...services, topicConfigs } } as FetchClient;
  const asked = {
    topic,
    topicId: ZERO_UUID,
    index: 0,
    fetchOffset: 0,
    maxBytes: 1,
    currentLeaderEpoch: -1,
  };
  const { signal } = new AbortController();
  const limits = { isolation: 'read_uncommitted', maxBytes: 1, signal } as const;
  const pass = await readPass(context, [asked], limits);
  expect([pass.partitions[0]!.errorCode, parsed]).toEqual([0, 0]);
});
