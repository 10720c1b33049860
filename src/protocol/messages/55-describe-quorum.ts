// DescribeQuorum (55): the KRaft quorum. Floe has none; tools that show it get an answer.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, int16, int32, int64, string, uint16, uuid } from '../fields.ts';

const replicaState = {
  replicaId: int32,
  replicaDirectoryId: uuid.since(2),
  logEndOffset: int64,
  lastFetchTimestamp: int64.since(1).default(-1),
  lastCaughtUpTimestamp: int64.since(1).default(-1),
};

export const describeQuorumApi = api({
  key: 55,
  name: 'DescribeQuorum',
  versions: '0-2',
  flexible: '0+',
  request: {
    topics: array({
      topicName: string,
      partitions: array({
        partitionIndex: int32,
      }),
    }),
  },
  response: {
    errorCode: int16,
    errorMessage: string.since(2).nullable(),
    topics: array({
      topicName: string,
      partitions: array({
        partitionIndex: int32,
        errorCode: int16,
        errorMessage: string.since(2).nullable(),
        leaderId: int32,
        leaderEpoch: int32,
        highWatermark: int64,
        currentVoters: array(replicaState),
        observers: array(replicaState),
      }),
    }),
    nodes: array({
      nodeId: int32,
      listeners: array({
        name: string,
        host: string,
        port: uint16,
      }),
    }).since(2),
  },
});

export interface DescribeQuorumRequest extends RequestOf<typeof describeQuorumApi> {}
export interface DescribeQuorumResponse extends ResponseOf<typeof describeQuorumApi> {}
export type DescribeQuorumReply = ReplyOf<typeof describeQuorumApi>;
