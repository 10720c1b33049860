// Configs that change what Produce takes, each changed while the broker runs: the next request knows, whether the topic
// or the broker had it changed.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import { produceApi } from '../../protocol/messages/00-produce.ts';
import { fetchApi } from '../../protocol/messages/01-fetch.ts';
import { metadataApi } from '../../protocol/messages/03-metadata.ts';
import { createTopicsApi } from '../../protocol/messages/19-create-topics.ts';
import { incrementalAlterConfigsApi } from '../../protocol/messages/44-incremental-alter-configs.ts';
import * as RecordBatch from '../../protocol/record-batch.ts';
import { RecordCursor } from '../../protocol/record-cursor.ts';
import { RESOURCE } from '../config-resources.ts';
import { startTestBroker, type TestBroker } from '../testing/harness.ts';
import { RawClient } from '../testing/raw-client.ts';
import { batchOf, fetchRequest, produceRequest } from '../testing/requests.ts';

const clock = new ManualClock();
let test: TestBroker;
let client: RawClient;
let topic = '';
let count = 0;

beforeAll(async () => {
  test = await startTestBroker({ clock });
  client = await RawClient.connect(test.port);
});

afterAll(async () => {
  client.close();
  await test.stop();
});

beforeEach(async () => {
  topic = `t${count++}`;
  const wish = {
    name: topic,
    numPartitions: 1,
    replicationFactor: 1,
    assignments: [],
    configs: [],
  };
  await client.call(createTopicsApi, 7, { timeoutMs: 1_000, validateOnly: false, topics: [wish] });
});

/** Sets a config of the topic, or of all brokers; null removes it. */
async function set(of: 'topic' | 'broker', name: string, value: string | null): Promise<void> {
  const { responses } = await client.call(incrementalAlterConfigsApi, 1, {
    resources: [
      {
        resourceType: RESOURCE[of],
        resourceName: of === 'topic' ? topic : '',
        configs: [{ name, configOperation: value === null ? 1 : 0, value }],
      },
    ],
    validateOnly: false,
  });
  expect(responses[0]).toMatchObject({ errorCode: 0, errorMessage: null });
}

async function produce(...records: Parameters<typeof batchOf>[0]) {
  const { responses } = await client.call(produceApi, 9, produceRequest(topic, batchOf(records)));
  return responses[0]!.partitionResponses[0]!;
}

/** Sets it for the topic, asks, takes it back; then the same for the brokers. */
async function both(
  names: { readonly topic: string; readonly broker: string },
  value: string,
  ask: () => Promise<void>,
): Promise<void> {
  for (const of of ['topic', 'broker'] as const) {
    await set(of, names[of], value);
    await ask();
    await set(of, names[of], null);
  }
}

describe('while running', () => {
  it('max.message.bytes', async () => {
    const large = 'x'.repeat(2_000);
    await both({ topic: 'max.message.bytes', broker: 'message.max.bytes' }, '1000', async () => {
      expect(await produce(large)).toMatchObject({
        errorCode: ErrorCode.MESSAGE_TOO_LARGE,
        errorMessage: expect.stringMatching(/max\.message\.bytes is 1000/),
      });
    });
    expect((await produce(large)).errorCode).toBe(0);
  });

  it('message.timestamp.type: time and checksum are rewritten at admission', async () => {
    const names = { topic: 'message.timestamp.type', broker: 'log.message.timestamp.type' };
    let offset = 0;
    await both(names, 'LogAppendTime', async () => {
      await clock.advance(5);
      // Times far away are no mistake then.
      const reply = await produce({ value: 'a', timestamp: 1 }, { value: 'b', timestamp: 2 ** 45 });
      expect(reply).toMatchObject({ errorCode: 0, logAppendTimeMs: clock.now() });
      const read = await client.call(fetchApi, 12, fetchRequest([{ topic, offset }]));
      const batch = read.responses[0]!.partitions[0]!.records!;
      expect(RecordBatch.crcMatches(batch)).toBe(true);
      expect(RecordBatch.maxTimestamp(batch)).toBe(clock.now());
      const cursor = new RecordCursor();
      cursor.open(batch);
      while (cursor.next()) expect(cursor.timestamp).toBe(clock.now());
      offset += 2;
    });
    expect(await produce('c')).toMatchObject({ errorCode: 0, logAppendTimeMs: -1 });
  });

  it.each([
    ['before', -1],
    ['after', 1],
  ] as const)('message.timestamp.%s.max.ms, naming the records', async (side, sign) => {
    const at = (ms: number) => ({ value: 'v', timestamp: clock.now() + sign * ms });
    const names = {
      topic: `message.timestamp.${side}.max.ms`,
      broker: `log.message.timestamp.${side}.max.ms`,
    };
    await both(names, '1000', async () => {
      expect((await produce(at(1_000))).errorCode).toBe(0);
      const reply = await produce(at(0), at(1_001), at(5_000));
      expect(reply.errorCode).toBe(ErrorCode.INVALID_TIMESTAMP);
      expect(reply.recordErrors.map(({ batchIndex }) => batchIndex)).toEqual([1, 2]);
    });
    expect((await produce(at(5_000))).errorCode).toBe(0);
  });

  it('cleanup.policy: a compacted topic takes no record without a key', async () => {
    const names = { topic: 'cleanup.policy', broker: 'log.cleanup.policy' };
    await both(names, 'compact', async () => {
      const reply = await produce({ key: 'k', value: 'v' }, { value: 'v' });
      expect(reply.errorCode).toBe(ErrorCode.INVALID_RECORD);
      expect(reply.recordErrors.map(({ batchIndex }) => batchIndex)).toEqual([1]);
      expect((await produce({ key: 'k', value: 'v' })).errorCode).toBe(0);
    });
    expect((await produce('no key')).errorCode).toBe(0);
  });

  it.each([
    ['retention.ms', 'log.retention.ms', '1234'],
    ['retention.bytes', 'log.retention.bytes', '4321'],
    ['min.compaction.lag.ms', 'log.cleaner.min.compaction.lag.ms', '99'],
    ['max.compaction.lag.ms', 'log.cleaner.max.compaction.lag.ms', '9999'],
    ['delete.retention.ms', 'log.cleaner.delete.retention.ms', '77'],
    ['min.cleanable.dirty.ratio', 'log.cleaner.min.cleanable.ratio', '0.25'],
  ])('%s, as retention and compaction read it', async (ofTopic, ofBroker, value) => {
    const { topicConfigs } = test.broker;
    const inForce = () => topicConfigs.effective(test.directory.byName(topic)!.config, ofTopic);
    const before = inForce();
    await both({ topic: ofTopic, broker: ofBroker }, value, async () => {
      expect(inForce()).toBe(value);
    });
    expect(inForce()).toBe(before);
  });

  it.each(['gzip', 'uncompressed'])(
    'compression.type=%s leaves batches as they came',
    async (type) => {
      await set('topic', 'compression.type', type);
      const sent = batchOf(['x'.repeat(500)]);
      await client.call(produceApi, 9, produceRequest(topic, sent));
      const read = await client.call(fetchApi, 12, fetchRequest([{ topic }]));
      const got = read.responses[0]!.partitions[0]!.records!;
      expect(RecordBatch.compressionType(got)).toBe(0);
      // All but base offset and leader epoch, which lie before the magic.
      expect(Buffer.from(got).subarray(16)).toEqual(Buffer.from(sent).subarray(16));
    },
  );

  it('min.insync.replicas, segments and flushes change nothing', async () => {
    for (const [name, value] of [
      ['min.insync.replicas', '3'],
      ['segment.bytes', '1048576'],
      ['segment.ms', '1'],
      ['flush.messages', '1'],
      ['preallocate', 'true'],
      ['unclean.leader.election.enable', 'true'],
      ['index.interval.bytes', '1'],
    ] as const) {
      await set('topic', name, value);
    }
    expect((await produce('v')).errorCode).toBe(0);
  });

  it('connections.max.idle.ms', async () => {
    const idle = await RawClient.connect(test.port);
    const ask = () =>
      idle.call(metadataApi, 12, {
        topics: [],
        allowAutoTopicCreation: false,
        includeClusterAuthorizedOperations: false,
        includeTopicAuthorizedOperations: false,
      });
    await ask();
    await clock.advance(5_000);
    expect(idle.isClosed).toBe(false);
    await set('broker', 'connections.max.idle.ms', '3000');
    await clock.advance(5_000);
    await idle.closed;
    client = await RawClient.connect(test.port);
    await set('broker', 'connections.max.idle.ms', null);
  });
});
