// AddPartitionsToTxn (24): partitions join a transaction. v3 flexible; v4 and v5 are for brokers
// (many transactions, verify only), clients stay at v3.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, bool, int16, int32, int64, string } from '../fields.ts';

const addPartitionsToTxnTopic = {
  name: string,
  partitions: array(int32),
};

const addPartitionsToTxnPartitionResult = {
  partitionIndex: int32,
  partitionErrorCode: int16,
};

const addPartitionsToTxnTopicResult = {
  name: string,
  resultsByPartition: array(addPartitionsToTxnPartitionResult),
};

export const addPartitionsToTxnApi = api({
  key: 24,
  name: 'AddPartitionsToTxn',
  versions: '0-5',
  flexible: '3+',
  request: {
    transactions: array({
      transactionalId: string,
      producerId: int64,
      producerEpoch: int16,
      verifyOnly: bool.default(false),
      topics: array(addPartitionsToTxnTopic),
    }).since(4),
    v3AndBelowTransactionalId: string.in('0-3'),
    v3AndBelowProducerId: int64.in('0-3'),
    v3AndBelowProducerEpoch: int16.in('0-3'),
    v3AndBelowTopics: array(addPartitionsToTxnTopic).in('0-3'),
  },
  response: {
    throttleTimeMs: int32.default(0),
    errorCode: int16.since(4),
    resultsByTransaction: array({
      transactionalId: string,
      topicResults: array(addPartitionsToTxnTopicResult),
    }).since(4),
    resultsByTopicV3AndBelow: array(addPartitionsToTxnTopicResult).in('0-3'),
  },
});

export interface AddPartitionsToTxnRequest extends RequestOf<typeof addPartitionsToTxnApi> {}
export interface AddPartitionsToTxnResponse extends ResponseOf<typeof addPartitionsToTxnApi> {}
export type AddPartitionsToTxnReply = ReplyOf<typeof addPartitionsToTxnApi>;
