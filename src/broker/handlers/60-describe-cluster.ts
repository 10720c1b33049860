// DescribeCluster (60), versions 0–2: the living brokers; the controller is the lowest id. v1 asks for brokers or controllers
// (KIP-919): there is no controller endpoint here, MISMATCHED_ENDPOINT_TYPE. v2 fenced brokers: none.
import { ErrorCode } from '../../protocol/errors.ts';
import { describeClusterApi } from '../../protocol/messages/60-describe-cluster.ts';
import { clusterOperations } from '../auth/access.ts';
import { NOT_ASKED } from '../auth/authorizer.ts';
import type { Handler } from '../handler.ts';

const BROKERS = 1;

export const describeClusterHandler: Handler<typeof describeClusterApi> = {
  api: describeClusterApi,
  versions: { min: 0, max: 2 },
  handle({ endpointType, includeClusterAuthorizedOperations }, { access, connection, services }) {
    const { cluster } = services;
    const { listener } = connection;
    if (endpointType !== BROKERS) {
      const errorMessage = 'this is a broker endpoint: only brokers can be described';
      const errorCode = ErrorCode.MISMATCHED_ENDPOINT_TYPE;
      return { errorCode, errorMessage, endpointType, clusterId: '', brokers: [] };
    }
    return {
      errorCode: 0,
      endpointType,
      clusterId: cluster.clusterId,
      controllerId: cluster.controllerId(listener),
      brokers: cluster
        .brokers(listener)
        .map(({ nodeId, ...broker }) => ({ brokerId: nodeId, ...broker, isFenced: false })),
      clusterAuthorizedOperations: includeClusterAuthorizedOperations
        ? clusterOperations(access)
        : NOT_ASKED,
    };
  },
};
