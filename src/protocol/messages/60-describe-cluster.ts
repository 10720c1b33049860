// DescribeCluster (60): brokers and cluster id for admin clients (KIP-700). v1 endpoint type, v2
// fenced brokers.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, bool, int8, int16, int32, string } from '../fields.ts';

export const describeClusterApi = api({
  key: 60,
  name: 'DescribeCluster',
  versions: '0-2',
  flexible: '0+',
  request: {
    includeClusterAuthorizedOperations: bool,
    endpointType: int8.since(1).default(1),
    includeFencedBrokers: bool.since(2),
  },
  response: {
    throttleTimeMs: int32.default(0),
    errorCode: int16,
    errorMessage: string.nullable().default(null),
    endpointType: int8.since(1).default(1),
    clusterId: string,
    controllerId: int32.default(-1),
    brokers: array({
      brokerId: int32,
      host: string,
      port: int32,
      rack: string.nullable().default(null),
      isFenced: bool.since(2),
    }),
    clusterAuthorizedOperations: int32.default(-2147483648),
  },
});

export interface DescribeClusterRequest extends RequestOf<typeof describeClusterApi> {}
export interface DescribeClusterResponse extends ResponseOf<typeof describeClusterApi> {}
export type DescribeClusterReply = ReplyOf<typeof describeClusterApi>;
