// DeleteShareGroupOffsets (92): forgets a share group's topics.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, int16, int32, string, uuid } from '../fields.ts';

export const deleteShareGroupOffsetsApi = api({
  key: 92,
  name: 'DeleteShareGroupOffsets',
  versions: '0',
  flexible: '0+',
  request: {
    groupId: string,
    topics: array({
      topicName: string,
    }),
  },
  response: {
    throttleTimeMs: int32.default(0),
    errorCode: int16,
    errorMessage: string.nullable().default(null),
    responses: array({
      topicName: string,
      topicId: uuid,
      errorCode: int16,
      errorMessage: string.nullable().default(null),
    }),
  },
});

export interface DeleteShareGroupOffsetsRequest
  extends RequestOf<typeof deleteShareGroupOffsetsApi> {}
export interface DeleteShareGroupOffsetsResponse
  extends ResponseOf<typeof deleteShareGroupOffsetsApi> {}
export type DeleteShareGroupOffsetsReply = ReplyOf<typeof deleteShareGroupOffsetsApi>;
