// The same messages through the codecs of two independent clients: kafkajs (classic versions) and @platformatic/kafka
// (flexible ones). What they write we read, and the other way round.
import { createRequire } from 'node:module';
import { describe, expect, it } from 'vitest';
import {
  apiVersionsApi,
  fetchApi,
  joinGroupApi,
  type MetadataReply,
  metadataApi,
  Reader,
  Writer,
} from './index.ts';

const require = createRequire(import.meta.url);
const kafkajs = (path: string) => require(`kafkajs/src/protocol/requests/${path}`);
const platformatic = (path: string) =>
  import(new URL(`../../node_modules/@platformatic/kafka/dist/${path}.js`, import.meta.url).href);

type Encodes = { encode(writer: Writer, value: never, version: number): void };

function encoded(message: Encodes, value: unknown, version: number): Buffer {
  const writer = new Writer();
  message.encode(writer, value as never, version);
  return Buffer.concat(writer.finish());
}

const topicId = '6ba7b810-9dad-11d1-80b4-00c04fd430c8';
const metadata: MetadataReply = {
  brokers: [{ nodeId: 1, host: 'localhost', port: 9092, rack: 'a' }],
  clusterId: 'floe',
  controllerId: 1,
  topics: [
    {
      errorCode: 0,
      name: 'flights',
      topicId,
      isInternal: false,
      topicAuthorizedOperations: 7,
      partitions: [
        {
          errorCode: 0,
          partitionIndex: 2,
          leaderId: 1,
          leaderEpoch: 5,
          replicaNodes: [1, 2],
          isrNodes: [1],
          offlineReplicas: [],
        },
      ],
    },
  ],
  errorCode: 0,
};

describe('kafkajs', () => {
  it('writes Metadata v6 and JoinGroup v5 that we read', async () => {
    const request = kafkajs('metadata/v6/request')({ topics: ['a', 'b'] });
    const { buffer } = await request.encode();
    expect(metadataApi.request.decode(new Reader(buffer), 6)).toMatchObject({
      topics: [{ name: 'a' }, { name: 'b' }],
      allowAutoTopicCreation: true,
    });
    const join = await kafkajs('joinGroup/v5/request')({
      groupId: 'g',
      sessionTimeout: 10,
      rebalanceTimeout: 20,
      memberId: '',
      groupInstanceId: null,
      protocolType: 'consumer',
      groupProtocols: [{ name: 'range', metadata: Buffer.from('xyz') }],
    }).encode();
    expect(joinGroupApi.request.decode(new Reader(join.buffer), 5)).toEqual({
      groupId: 'g',
      sessionTimeoutMs: 10,
      rebalanceTimeoutMs: 20,
      memberId: '',
      groupInstanceId: null,
      protocolType: 'consumer',
      protocols: [{ name: 'range', metadata: Buffer.from('xyz') }],
      reason: null,
    });
  });

  it('reads our Metadata v6 and ApiVersions v2', async () => {
    const read = await kafkajs('metadata/v6/response').decode(
      encoded(metadataApi.response, metadata, 6),
    );
    expect(read).toMatchObject({
      brokers: [{ nodeId: 1, host: 'localhost', port: 9092, rack: 'a' }],
      clusterId: 'floe',
      topicMetadata: [
        { topic: 'flights', partitionMetadata: [{ partitionId: 2, leader: 1, replicas: [1, 2] }] },
      ],
    });
    const versions = { errorCode: 0, apiKeys: [{ apiKey: 3, minVersion: 0, maxVersion: 13 }] };
    expect(
      await kafkajs('apiVersions/v2/response').decode(
        encoded(apiVersionsApi.response, versions, 2),
      ),
    ).toMatchObject({ apiVersions: [{ apiKey: 3, minVersion: 0, maxVersion: 13 }] });
  });
});

describe('@platformatic/kafka', () => {
  it('writes Metadata v12 and Fetch v17 that we read', async () => {
    const { createRequest } = await platformatic('apis/metadata/metadata-v12');
    const bytes = createRequest(['a', { topicId }], false, true).buffer;
    expect(metadataApi.request.decode(new Reader(bytes), 12)).toMatchObject({
      topics: [
        { name: 'a', topicId: '00000000-0000-0000-0000-000000000000' },
        { name: null, topicId },
      ],
      allowAutoTopicCreation: false,
      includeTopicAuthorizedOperations: true,
    });
    const fetch = await platformatic('apis/consumer/fetch-v17');
    const partition = {
      partition: 3,
      currentLeaderEpoch: 1,
      fetchOffset: 70n,
      partitionMaxBytes: 9,
    };
    const topics = [{ topicId, partitions: [{ ...partition, lastFetchedEpoch: -1 }] }];
    const fetchBytes = fetch.createRequest(100, 1, 50, 1, 0, -1, topics, [], 'rack').buffer;
    expect(fetchApi.request.decode(new Reader(fetchBytes), 17)).toMatchObject({
      maxWaitMs: 100,
      isolationLevel: 1,
      sessionEpoch: -1,
      topics: [{ topicId, partitions: [{ partition: 3, fetchOffset: 70, logStartOffset: -1 }] }],
      rackId: 'rack',
    });
  });

  it('reads our Metadata v12', async () => {
    const { parseResponse } = await platformatic('apis/metadata/metadata-v12');
    const { Reader: Theirs } = await platformatic('protocol/reader');
    const bytes = encoded(metadataApi.response, metadata, 12);
    const { errorCode: _notYet, ...expected } = metadata as Record<string, unknown>;
    expect(parseResponse(1, 3, 12, Theirs.from(bytes))).toEqual({ throttleTimeMs: 0, ...expected });
  });
});
