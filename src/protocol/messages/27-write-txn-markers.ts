// WriteTxnMarkers (27): ends transactions in partitions. Kafka's coordinators send it to each other; of clients only
// operators do, to abort a hanging transaction (KIP-664). v1 flexible, v2 the transaction version (KIP-1228).
import { api, type RequestOf } from '../api.ts';
import { array, bool, int8, int16, int32, int64, string } from '../fields.ts';

export const writeTxnMarkersApi = api({
  key: 27,
  name: 'WriteTxnMarkers',
  versions: '1-2',
  flexible: '1+',
  request: {
    markers: array({
      producerId: int64,
      producerEpoch: int16,
      // True: commit.
      transactionResult: bool,
      topics: array({
        name: string,
        partitionIndexes: array(int32),
      }),
      coordinatorEpoch: int32,
      transactionVersion: int8.since(2).default(0),
    }),
  },
  response: {
    markers: array({
      producerId: int64,
      topics: array({
        name: string,
        partitions: array({
          partitionIndex: int32,
          errorCode: int16,
        }),
      }),
    }),
  },
});

export interface WriteTxnMarkersRequest extends RequestOf<typeof writeTxnMarkersApi> {}
