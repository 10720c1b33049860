// Produce (0): record batches for many partitions, each exactly one batch of magic 2 each (versions
// before 3 carried older formats and are gone). v9 flexible, v10 adds the new leader to a refusal
// (KIP-951), v11 and v12 let a transactional producer skip AddPartitionsToTxn (KIP-890), v13 names
// topics by id (KIP-516). ApiVersions advertises it from 0, or librdkafka takes us for a broker
// without idempotence (KAFKA-18659).
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, int16, int32, int64, records, string, struct, uuid } from '../fields.ts';

export const produceApi = api({
  key: 0,
  name: 'Produce',
  versions: '3-13',
  flexible: '9+',
  request: {
    // Null unless the batches are transactional.
    transactionalId: string.nullable().default(null),
    // No reply at all for 0; −1 waits for durability; anything else than 0, 1, −1 is
    // INVALID_REQUIRED_ACKS.
    acks: int16,
    timeoutMs: int32,
    topicData: array({
      name: string.in('3-12'),
      topicId: uuid.since(13),
      partitionData: array({
        index: int32,
        records: records.nullable(),
      }),
    }),
  },
  response: {
    responses: array({
      name: string.in('3-12'),
      topicId: uuid.since(13),
      partitionResponses: array({
        index: int32,
        errorCode: int16,
        baseOffset: int64,
        // −1 unless the topic uses LogAppendTime.
        logAppendTimeMs: int64.default(-1),
        logStartOffset: int64.since(5).default(-1),
        // Which records made us refuse the batch (KIP-467).
        recordErrors: array({
          batchIndex: int32,
          batchIndexErrorMessage: string.nullable().default(null),
        }).since(8),
        errorMessage: string.since(8).nullable().default(null),
        currentLeader: struct({
          leaderId: int32.default(-1),
          leaderEpoch: int32.default(-1),
        })
          .since(10)
          .tag(0),
      }),
    }),
    throttleTimeMs: int32.default(0),
    // Addresses of the leaders named above (KIP-951).
    nodeEndpoints: array({
      nodeId: int32,
      host: string,
      port: int32,
      rack: string.nullable().default(null),
    })
      .since(10)
      .tag(0),
  },
});

export interface ProduceRequest extends RequestOf<typeof produceApi> {}
export interface ProduceResponse extends ResponseOf<typeof produceApi> {}
export type ProduceReply = ReplyOf<typeof produceApi>;
