// AlterShareGroupOffsets (91): resets start offsets of an empty share group.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, int16, int32, int64, string, uuid } from '../fields.ts';

export const alterShareGroupOffsetsApi = api({
  key: 91,
  name: 'AlterShareGroupOffsets',
  versions: '0',
  flexible: '0+',
  request: {
    groupId: string,
    topics: array({
      topicName: string,
      partitions: array({
        partitionIndex: int32,
        startOffset: int64,
      }),
    }),
  },
  response: {
    throttleTimeMs: int32.default(0),
    errorCode: int16,
    errorMessage: string.nullable().default(null),
    responses: array({
      topicName: string,
      topicId: uuid,
      partitions: array({
        partitionIndex: int32,
        errorCode: int16,
        errorMessage: string.nullable().default(null),
      }),
    }),
  },
});

export interface AlterShareGroupOffsetsRequest
  extends RequestOf<typeof alterShareGroupOffsetsApi> {}
export interface AlterShareGroupOffsetsResponse
  extends ResponseOf<typeof alterShareGroupOffsetsApi> {}
export type AlterShareGroupOffsetsReply = ReplyOf<typeof alterShareGroupOffsetsApi>;
