// OffsetFetch (9): a group's committed positions. v2 null topics = all, v3 throttle, v5 leader
// epochs, v6 flexible, v7 require stable (KIP-447), v8 several groups a request (the single-group
// fields end there), v9 member epochs (KIP-848), v10 topic ids.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, bool, int16, int32, int64, string, uuid } from '../fields.ts';

export const offsetFetchApi = api({
  key: 9,
  name: 'OffsetFetch',
  versions: '1-10',
  flexible: '6+',
  request: {
    groupId: string.in('1-7'),
    topics: array({
      name: string,
      partitionIndexes: array(int32),
    })
      .in('1-7')
      .nullable('2-7'),
    groups: array({
      groupId: string,
      memberId: string.since(9).nullable().default(null),
      memberEpoch: int32.since(9).default(-1),
      // Null: all topics.
      topics: array({
        name: string.in('8-9'),
        topicId: uuid.since(10),
        partitionIndexes: array(int32),
      }).nullable(),
    }).since(8),
    // Answer UNSTABLE_OFFSET_COMMIT while a transaction has offsets pending.
    requireStable: bool.since(7).default(false),
  },
  response: {
    throttleTimeMs: int32.since(3).default(0),
    topics: array({
      name: string,
      partitions: array({
        partitionIndex: int32,
        committedOffset: int64,
        committedLeaderEpoch: int32.since(5).default(-1),
        metadata: string.nullable(),
        errorCode: int16,
      }),
    }).in('1-7'),
    errorCode: int16.in('2-7').default(0),
    groups: array({
      groupId: string,
      topics: array({
        name: string.in('8-9'),
        topicId: uuid.since(10),
        partitions: array({
          partitionIndex: int32,
          committedOffset: int64,
          committedLeaderEpoch: int32.default(-1),
          metadata: string.nullable(),
          errorCode: int16,
        }),
      }),
      errorCode: int16.default(0),
    }).since(8),
  },
});

export interface OffsetFetchRequest extends RequestOf<typeof offsetFetchApi> {}
export interface OffsetFetchResponse extends ResponseOf<typeof offsetFetchApi> {}
export type OffsetFetchReply = ReplyOf<typeof offsetFetchApi>;
