// DescribeQuorum (55), versions 0–2: tools ask it for the state of KRaft's metadata log. Metadata lies in a transactional
// store: a quorum of one, shown as led by the broker that Metadata calls the controller. There is no metadata log, hence offsets
// of 0; any other partition than that of `__cluster_metadata` is unknown. v1 times of voters, v2 nodes and messages.
import { ErrorCode } from '../../protocol/errors.ts';
import { ZERO_UUID } from '../../protocol/fields.ts';
import {
  type DescribeQuorumReply,
  describeQuorumApi,
} from '../../protocol/messages/55-describe-quorum.ts';
import type { Handler, RequestContext } from '../handler.ts';

type PartitionReply = DescribeQuorumReply['topics'][number]['partitions'][number];

/** The topic of KRaft's metadata, by which tools ask. */
const METADATA_TOPIC = '__cluster_metadata';

export const describeQuorumHandler: Handler<typeof describeQuorumApi> = {
  api: describeQuorumApi,
  versions: { min: 0, max: 2 },
  handle({ topics }, context) {
    if (!context.access.allows('describe', 'cluster')) {
      const errorCode = ErrorCode.CLUSTER_AUTHORIZATION_FAILED;
      context.countError(errorCode);
      const errorMessage = 'Describe on the cluster is not allowed';
      return { errorCode, errorMessage, topics: [], nodes: [] };
    }
    const { cluster } = context.services;
    const { listener } = context.connection;
    const controller = cluster.brokers(listener)[0]!;
    const described = topics.map(({ topicName, partitions }) => ({
      topicName,
      partitions: partitions.map(({ partitionIndex }) =>
        topicName === METADATA_TOPIC && partitionIndex === 0
          ? quorum(context, controller.nodeId)
          : unknown(context, partitionIndex),
      ),
    }));
    const { nodeId, host, port } = controller;
    const nodes = [{ nodeId, listeners: [{ name: listener, host, port }] }];
    return { errorCode: 0, errorMessage: null, topics: described, nodes };
  },
};

function quorum({ services }: RequestContext, nodeId: number): PartitionReply {
  const nowMs = services.clock.now();
  return {
    partitionIndex: 0,
    errorCode: 0,
    errorMessage: null,
    leaderId: nodeId,
    leaderEpoch: 0,
    highWatermark: 0,
    currentVoters: [
      {
        replicaId: nodeId,
        replicaDirectoryId: ZERO_UUID,
        logEndOffset: 0,
        lastFetchTimestamp: nowMs,
        lastCaughtUpTimestamp: nowMs,
      },
    ],
    observers: [],
  };
}

function unknown(context: RequestContext, partitionIndex: number): PartitionReply {
  const errorCode = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
  context.countError(errorCode);
  return {
    partitionIndex,
    errorCode,
    errorMessage: `only ${METADATA_TOPIC}-0 has a quorum`,
    leaderId: 0,
    leaderEpoch: 0,
    highWatermark: 0,
    currentVoters: [],
    observers: [],
  };
}
