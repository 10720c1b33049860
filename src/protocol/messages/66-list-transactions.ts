// ListTransactions (66): transactions coordinated by this broker. v1 by duration, v2 by id pattern.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, int16, int32, int64, string } from '../fields.ts';

export const listTransactionsApi = api({
  key: 66,
  name: 'ListTransactions',
  versions: '0-2',
  flexible: '0+',
  request: {
    stateFilters: array(string),
    producerIdFilters: array(int64),
    durationFilter: int64.since(1).default(-1),
    transactionalIdPattern: string.since(2).nullable().default(null),
  },
  response: {
    throttleTimeMs: int32.default(0),
    errorCode: int16,
    unknownStateFilters: array(string),
    transactionStates: array({
      transactionalId: string,
      producerId: int64,
      transactionState: string,
    }),
  },
});

export interface ListTransactionsRequest extends RequestOf<typeof listTransactionsApi> {}
export interface ListTransactionsResponse extends ResponseOf<typeof listTransactionsApi> {}
export type ListTransactionsReply = ReplyOf<typeof listTransactionsApi>;
