// DeleteRecords (21): moves the log start up. v2 flexible.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, int16, int32, int64, string } from '../fields.ts';

export const deleteRecordsApi = api({
  key: 21,
  name: 'DeleteRecords',
  versions: '0-2',
  flexible: '2+',
  request: {
    topics: array({
      name: string,
      partitions: array({
        partitionIndex: int32,
        // −1: the high watermark.
        offset: int64,
      }),
    }),
    timeoutMs: int32,
  },
  response: {
    throttleTimeMs: int32.default(0),
    topics: array({
      name: string,
      partitions: array({
        partitionIndex: int32,
        lowWatermark: int64,
        errorCode: int16,
      }),
    }),
  },
});

export interface DeleteRecordsRequest extends RequestOf<typeof deleteRecordsApi> {}
export interface DeleteRecordsResponse extends ResponseOf<typeof deleteRecordsApi> {}
export type DeleteRecordsReply = ReplyOf<typeof deleteRecordsApi>;
