// OffsetCommit (8): a group's positions. v5 drops the retention time, v6 leader epochs, v7 static
// members, v8 flexible, v9 KIP-848 members (the generation is then the member epoch), v10 topic ids
// (KIP-848).
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, int16, int32, int64, string, uuid } from '../fields.ts';

export const offsetCommitApi = api({
  key: 8,
  name: 'OffsetCommit',
  versions: '2-10',
  flexible: '8+',
  request: {
    groupId: string,
    // −1 with an empty member id: a commit from outside the group.
    generationIdOrMemberEpoch: int32.default(-1),
    memberId: string,
    groupInstanceId: string.since(7).nullable().default(null),
    // −1: the broker's setting.
    retentionTimeMs: int64.in('2-4').default(-1),
    topics: array({
      name: string.in('2-9'),
      topicId: uuid.since(10),
      partitions: array({
        partitionIndex: int32,
        committedOffset: int64,
        committedLeaderEpoch: int32.since(6).default(-1),
        committedMetadata: string.nullable(),
      }),
    }),
  },
  response: {
    throttleTimeMs: int32.since(3).default(0),
    topics: array({
      name: string.in('2-9'),
      topicId: uuid.since(10),
      partitions: array({
        partitionIndex: int32,
        errorCode: int16,
      }),
    }),
  },
});

export interface OffsetCommitRequest extends RequestOf<typeof offsetCommitApi> {}
export interface OffsetCommitResponse extends ResponseOf<typeof offsetCommitApi> {}
export type OffsetCommitReply = ReplyOf<typeof offsetCommitApi>;
