// Client-facing APIs that are not served, each with its reason. What is neither here nor in the router's table
// fails the test beside this file, so nothing is forgotten; what is here is not advertised by ApiVersions.
// Fields of served APIs that are never filled are here too. Not for: APIs between brokers and controllers, which have no clients.

export interface SkippedApi {
  readonly name: string;
  readonly reason: string;
}

const TOKENS =
  'delegation tokens are not built: short-lived credentials are OAuth tokens, made by whoever issues them';
const SHARE = 'share groups (KIP-932) are not built yet';
const STREAMS = 'Streams groups (KIP-1071) are not built yet; Streams falls back to classic groups';

/** By API key. */
export const SKIPPED: Readonly<Record<number, SkippedApi>> = {
  38: { name: 'CreateDelegationToken', reason: TOKENS },
  39: { name: 'RenewDelegationToken', reason: TOKENS },
  40: { name: 'ExpireDelegationToken', reason: TOKENS },
  41: { name: 'DescribeDelegationToken', reason: TOKENS },
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

/** Fields of served APIs that are always left at their defaults. */
export const SKIPPED_FIELDS: readonly SkippedApi[] = [
  {
    name: 'currentLeader and nodeEndpoints of Produce and Fetch (KIP-951)',
    reason:
      'hints of a new leader, which clients believe only under a newer leader epoch: ours is 0 for ever, as every broker serves every partition. NOT_LEADER_OR_FOLLOWER is answered by a broker that drains, and the metadata that clients then ask for names the others',
  },
];
