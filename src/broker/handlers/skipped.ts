// Client-facing APIs that are not served, each with its reason. What is neither here nor in the router's table
// fails the test beside this file, so nothing is forgotten; what is here is not advertised by ApiVersions.
// Not for: APIs between brokers and controllers, which have no clients.

export interface SkippedApi {
  readonly name: string;
  readonly reason: string;
}

const SASL = 'listeners are not authenticated yet';
const TOKENS = 'delegation tokens need SASL, which is not served yet';
const REPLICAS =
  'a partition has no replicas to move or elect: every broker serves every partition';
const SHARE = 'share groups (KIP-932) are not built yet';
const STREAMS = 'Streams groups (KIP-1071) are not built yet; Streams falls back to classic groups';
const TELEMETRY = 'client metrics (KIP-714) are optional; clients carry on without';

/** By API key. */
export const SKIPPED: Readonly<Record<number, SkippedApi>> = {
  34: { name: 'AlterReplicaLogDirs', reason: REPLICAS },
  36: { name: 'SaslAuthenticate', reason: SASL },
  38: { name: 'CreateDelegationToken', reason: TOKENS },
  39: { name: 'RenewDelegationToken', reason: TOKENS },
  40: { name: 'ExpireDelegationToken', reason: TOKENS },
  41: { name: 'DescribeDelegationToken', reason: TOKENS },
  43: { name: 'ElectLeaders', reason: REPLICAS },
  45: { name: 'AlterPartitionReassignments', reason: REPLICAS },
  46: { name: 'ListPartitionReassignments', reason: REPLICAS },
  50: { name: 'DescribeUserScramCredentials', reason: SASL },
  51: { name: 'AlterUserScramCredentials', reason: SASL },
  55: {
    name: 'DescribeQuorum',
    reason: 'there is no quorum: metadata lies in a transactional store',
  },
  57: { name: 'UpdateFeatures', reason: 'no feature has levels to be raised by clients' },
  71: { name: 'GetTelemetrySubscriptions', reason: TELEMETRY },
  72: { name: 'PushTelemetry', reason: TELEMETRY },
  76: { name: 'ShareGroupHeartbeat', reason: SHARE },
  77: { name: 'ShareGroupDescribe', reason: SHARE },
  78: { name: 'ShareFetch', reason: SHARE },
  79: { name: 'ShareAcknowledge', reason: SHARE },
  88: { name: 'StreamsGroupHeartbeat', reason: STREAMS },
  89: { name: 'StreamsGroupDescribe', reason: STREAMS },
  90: { name: 'DescribeShareGroupOffsets', reason: SHARE },
  91: { name: 'AlterShareGroupOffsets', reason: SHARE },
  92: { name: 'DeleteShareGroupOffsets', reason: SHARE },
};
