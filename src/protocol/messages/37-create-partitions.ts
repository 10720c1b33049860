// CreatePartitions (37): raises a topic's partition count. v2 flexible, v3 throttling error.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, bool, int16, int32, string } from '../fields.ts';

export const createPartitionsApi = api({
  key: 37,
  name: 'CreatePartitions',
  versions: '0-3',
  flexible: '2+',
  request: {
    topics: array({
      name: string,
      count: int32,
      assignments: array({
        brokerIds: array(int32),
      }).nullable(),
    }),
    timeoutMs: int32,
    validateOnly: bool,
  },
  response: {
    throttleTimeMs: int32.default(0),
    results: array({
      name: string,
      errorCode: int16,
      errorMessage: string.nullable().default(null),
    }),
  },
});

export interface CreatePartitionsRequest extends RequestOf<typeof createPartitionsApi> {}
export interface CreatePartitionsResponse extends ResponseOf<typeof createPartitionsApi> {}
export type CreatePartitionsReply = ReplyOf<typeof createPartitionsApi>;
