import { describe, expect, it } from 'vitest';
import {
  apiByKey,
  apiVersionsApi,
  buildBatch,
  decodeResponse,
  encodeRequest,
  encodeResponse,
  FrameDecoder,
  fetchApi,
  openRequest,
  produceApi,
} from './index.ts';

function onlyFrame(pieces: Uint8Array[]): Buffer {
  const frames = new FrameDecoder().push(Buffer.concat(pieces));
  expect(frames).toHaveLength(1);
  return frames[0]!;
}

describe('a request', () => {
  it('arrives as it was sent, by topic name or topic id', () => {
    const records = buildBatch([{ key: 'k', value: 'v' }]);
    for (const version of [3, 9, 13]) {
      const topicId = '6ba7b810-9dad-11d1-80b4-00c04fd430c8';
      const partitionData = [{ index: 4, records }];
      const pieces = encodeRequest({
        api: produceApi,
        version,
        correlationId: -5,
        clientId: version === 9 ? null : 'me',
        request: { acks: -1, timeoutMs: 9, topicData: [{ name: 't', topicId, partitionData }] },
      });
      const opened = openRequest(onlyFrame(pieces));
      expect(opened.api).toBe(produceApi);
      expect(opened).toMatchObject({ version, readable: true, correlationId: -5 });
      const request = produceApi.request.decode(opened.body, opened.version);
      expect(request.topicData[0]!.partitionData[0]!.records).toEqual(records);
      expect(request.topicData[0]!.name).toBe(version < 13 ? 't' : '');
      expect(opened.body.remaining).toBe(0);
    }
  });

  it('of an unknown API is refused, of an unknown version marked', () => {
    const unknown = Buffer.from([0x27, 0x0f, 0, 0, 0, 0, 0, 1, 0xff, 0xff]);
    expect(() => openRequest(unknown)).toThrow('unknown API key 9999');
    const future = Buffer.from([0, 18, 0, 99, 0, 0, 0, 1, 0xff, 0xff, 0]);
    expect(openRequest(future)).toMatchObject({ readable: false, correlationId: 1 });
    expect(() => openRequest(Buffer.alloc(0))).toThrow('malformed');
  });
});

describe('a response', () => {
  it('passes large record sets through without copying and joins small ones', () => {
    const small = Buffer.alloc(100, 1);
    const large: Uint8Array[] = [Buffer.alloc(5_000, 2), Buffer.alloc(6_000, 3)];
    const partition = { errorCode: 0, highWatermark: 9, abortedTransactions: null };
    const pieces = encodeResponse({
      api: fetchApi,
      version: 17,
      correlationId: 3,
      response: {
        errorCode: 0,
        responses: [
          {
            topic: '',
            topicId: '6ba7b810-9dad-11d1-80b4-00c04fd430c8',
            partitions: [
              { ...partition, partitionIndex: 0, records: small },
              { ...partition, partitionIndex: 1, records: large },
            ],
          },
        ],
      },
    });
    expect(pieces.filter((piece) => large.includes(piece))).toEqual(large);
    const { correlationId, response } = decodeResponse(fetchApi, 17, onlyFrame(pieces));
    expect(correlationId).toBe(3);
    const [first, second] = response.responses[0]!.partitions;
    expect(first!.records).toEqual(small);
    expect(second!.records).toEqual(Buffer.concat(large));
    expect(second!.currentLeader).toEqual({ leaderId: -1, leaderEpoch: -1 });
  });

  it('to ApiVersions has header 0 in every version', () => {
    const response = { errorCode: 0, apiKeys: [{ apiKey: 18, minVersion: 0, maxVersion: 4 }] };
    for (const version of [0, 3, 4]) {
      const frame = onlyFrame(
        encodeResponse({
          api: apiVersionsApi,
          version,
          correlationId: 1,
          response: { ...response, supportedFeatures: [], finalizedFeatures: [] },
        }),
      );
      // Correlation id, then the error code at once: no tagged fields in between.
      expect(frame.subarray(0, 6)).toEqual(Buffer.from([0, 0, 0, 1, 0, 0]));
    }
    expect(apiByKey(18)).toBe(apiVersionsApi);
  });
});
