// A partition as Metadata and DescribeTopicPartitions show it: whoever leads it is its only replica and in sync, since what
// it holds lies in the store.
import { LEADER_EPOCH } from '../fetch-read.ts';

export function ledPartition(partitionIndex: number, leaderId: number) {
  const nodes = [leaderId];
  return {
    errorCode: 0,
    partitionIndex,
    leaderId,
    leaderEpoch: LEADER_EPOCH,
    replicaNodes: nodes,
    isrNodes: nodes,
    offlineReplicas: [],
  };
}
