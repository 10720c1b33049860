// CreateTopics (19). v4 counts of −1 take the broker's defaults (KIP-464), v5 flexible with the
// configs in the answer (KIP-525), v6 throttling error, v7 the topic's id.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, bool, int8, int16, int32, string, uuid } from '../fields.ts';

export const createTopicsApi = api({
  key: 19,
  name: 'CreateTopics',
  versions: '2-7',
  flexible: '5+',
  request: {
    topics: array({
      name: string,
      // −1 with assignments, or for the default.
      numPartitions: int32,
      replicationFactor: int16,
      // Replica placement by hand; we check it and keep nothing of it.
      assignments: array({
        partitionIndex: int32,
        brokerIds: array(int32),
      }),
      configs: array({
        name: string,
        value: string.nullable(),
      }),
    }),
    timeoutMs: int32.default(60000),
    validateOnly: bool.default(false),
  },
  response: {
    throttleTimeMs: int32.default(0),
    topics: array({
      name: string,
      topicId: uuid.since(7),
      errorCode: int16,
      errorMessage: string.nullable(),
      // Why `configs` is null.
      topicConfigErrorCode: int16.since(5).tag(0),
      numPartitions: int32.since(5).default(-1),
      replicationFactor: int16.since(5).default(-1),
      configs: array({
        name: string,
        value: string.nullable(),
        readOnly: bool,
        configSource: int8.default(-1),
        isSensitive: bool,
      })
        .since(5)
        .nullable(),
    }),
  },
});

export interface CreateTopicsRequest extends RequestOf<typeof createTopicsApi> {}
export interface CreateTopicsResponse extends ResponseOf<typeof createTopicsApi> {}
export type CreateTopicsReply = ReplyOf<typeof createTopicsApi>;
