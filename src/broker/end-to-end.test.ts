// An unmodified client (kafkajs) against the broker: topics, every codec, fetch, offsets.

import { promisify } from 'node:util';
import { zstdCompress, zstdDecompress } from 'node:zlib';
import { CompressionCodecs, CompressionTypes, Kafka, logLevel } from 'kafkajs';
import lz4 from 'lz4-napi';
import snappy from 'snappy';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestBroker, type TestBroker } from './testing/harness.ts';

let test: TestBroker;
let kafka: Kafka;

beforeAll(async () => {
  CompressionCodecs[CompressionTypes.Snappy] = () => ({
    compress: async ({ buffer }: { buffer: Buffer }) => snappy.compress(buffer),
    decompress: async (buffer: Buffer) => (await snappy.uncompress(buffer)) as Buffer,
  });
  CompressionCodecs[CompressionTypes.LZ4] = () => ({
    compress: async ({ buffer }: { buffer: Buffer }) => lz4.compressFrame(buffer),
    decompress: async (buffer: Buffer) => lz4.decompressFrame(buffer),
  });
  CompressionCodecs[CompressionTypes.ZSTD] = () => ({
    compress: async ({ buffer }: { buffer: Buffer }) => promisify(zstdCompress)(buffer),
    decompress: async (buffer: Buffer) => promisify(zstdDecompress)(buffer),
  });
  test = await startTestBroker();
  kafka = new Kafka({ brokers: [test.address], logLevel: logLevel.NOTHING, clientId: 'e2e' });
});

afterAll(() => test.stop());

describe('kafkajs', () => {
  it('creates, describes and deletes topics', async () => {
    const admin = kafka.admin();
    await admin.connect();
    await admin.createTopics({
      topics: [
        {
          topic: 'made',
          numPartitions: 3,
          configEntries: [{ name: 'retention.ms', value: '1000' }],
        },
      ],
    });
    const { topics } = await admin.fetchTopicMetadata({ topics: ['made'] });
    expect(topics[0]!.partitions.map(({ leader }) => leader)).toEqual([0, 0, 0]);
    await admin.deleteTopics({ topics: ['made'] });
    expect(await admin.listTopics()).not.toContain('made');
    await admin.disconnect();
  });

  for (const [name, compression] of Object.entries(CompressionTypes).filter(([key]) =>
    Number.isNaN(Number(key)),
  )) {
    it(`produces and reads back ${name}`, async () => {
      const producer = kafka.producer({ allowAutoTopicCreation: true });
      await producer.connect();
      const messages = Array.from({ length: 20 }, (_, i) => ({
        key: `k${i}`,
        value: `v${i}`,
        partition: 0,
      }));
      const topic = `codec-${name}`;
      const [sent] = await producer.send({
        topic,
        compression: compression as CompressionTypes,
        messages,
      });
      expect(sent).toMatchObject({ errorCode: 0, baseOffset: '0' });
      await producer.disconnect();
      const admin = kafka.admin();
      await admin.connect();
      const offsets = await admin.fetchTopicOffsets(topic);
      expect(offsets.find(({ partition }) => partition === 0)).toMatchObject({
        high: '20',
        low: '0',
      });
      await admin.disconnect();
      const id = test.directory.byName(topic)!.partitions[0]!;
      expect((await test.log.maxTimestamp(id))?.offset).toBeGreaterThanOrEqual(0);
    });
  }
});
