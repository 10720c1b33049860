// DeleteTopics (20). v4 flexible, v5 error texts, v6 by name or id.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, int16, int32, string, uuid } from '../fields.ts';

export const deleteTopicsApi = api({
  key: 20,
  name: 'DeleteTopics',
  versions: '1-6',
  flexible: '4+',
  request: {
    topics: array({
      name: string.nullable().default(null),
      topicId: uuid,
    }).since(6),
    topicNames: array(string).in('1-5'),
    timeoutMs: int32,
  },
  response: {
    throttleTimeMs: int32.default(0),
    responses: array({
      name: string.nullable('6+'),
      topicId: uuid.since(6),
      errorCode: int16,
      errorMessage: string.since(5).nullable().default(null),
    }),
  },
});

export interface DeleteTopicsRequest extends RequestOf<typeof deleteTopicsApi> {}
export interface DeleteTopicsResponse extends ResponseOf<typeof deleteTopicsApi> {}
export type DeleteTopicsReply = ReplyOf<typeof deleteTopicsApi>;
