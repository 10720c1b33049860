// The numbers that ACL messages carry for operations, resource types, pattern types and permissions.
// Not for: what they mean to a request (broker/auth/).

/** Kafka's AclOperation. `unknown` and `any` occur in requests only. */
export const ACL_OPERATION = {
  unknown: 0,
  any: 1,
  all: 2,
  read: 3,
  write: 4,
  create: 5,
  delete: 6,
  alter: 7,
  describe: 8,
  clusterAction: 9,
  describeConfigs: 10,
  alterConfigs: 11,
  idempotentWrite: 12,
  createTokens: 13,
  describeTokens: 14,
  twoPhaseCommit: 15,
} as const;

/** Kafka's ResourceType. `unknown` and `any` occur in requests only. */
export const ACL_RESOURCE = {
  unknown: 0,
  any: 1,
  topic: 2,
  group: 3,
  cluster: 4,
  transactionalId: 5,
  delegationToken: 6,
  user: 7,
} as const;

/** Kafka's PatternType (KIP-290). `any` and `match` occur in filters only. */
export const ACL_PATTERN = { unknown: 0, any: 1, match: 2, literal: 3, prefixed: 4 } as const;

/** Kafka's AclPermissionType. `unknown` and `any` occur in requests only. */
export const ACL_PERMISSION = { unknown: 0, any: 1, deny: 2, allow: 3 } as const;

/** The only name of a resource of type cluster. */
export const CLUSTER_NAME = 'kafka-cluster';

/** As a resource's name: all of them; as a principal's name or a host: anybody, anywhere. */
export const WILDCARD = '*';
