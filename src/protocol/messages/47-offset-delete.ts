// OffsetDelete (47): forgets a group's positions of topics it does not subscribe to (KIP-496).
// Never flexible.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, int16, int32, string } from '../fields.ts';

export const offsetDeleteApi = api({
  key: 47,
  name: 'OffsetDelete',
  versions: '0',
  flexible: 'none',
  request: {
    groupId: string,
    topics: array({
      name: string,
      partitions: array({
        partitionIndex: int32,
      }),
    }),
  },
  response: {
    errorCode: int16,
    throttleTimeMs: int32.default(0),
    topics: array({
      name: string,
      partitions: array({
        partitionIndex: int32,
        errorCode: int16,
      }),
    }),
  },
});

export interface OffsetDeleteRequest extends RequestOf<typeof offsetDeleteApi> {}
export interface OffsetDeleteResponse extends ResponseOf<typeof offsetDeleteApi> {}
export type OffsetDeleteReply = ReplyOf<typeof offsetDeleteApi>;
