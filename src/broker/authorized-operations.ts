// What a client may do, as the bit sets that Metadata and describe APIs carry (KIP-430): one bit per ACL operation.
// Without ACLs everything that exists for the kind of resource, as an unsecured Kafka answers.

const OPERATION = {
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
} as const;

function bits(...operations: readonly number[]): number {
  return operations.reduce((set, operation) => set | (1 << operation), 0);
}

/** Sent when the client didn't ask. */
export const NOT_ASKED = -(2 ** 31);

export const TOPIC_OPERATIONS = bits(
  OPERATION.read,
  OPERATION.write,
  OPERATION.create,
  OPERATION.delete,
  OPERATION.alter,
  OPERATION.describe,
  OPERATION.describeConfigs,
  OPERATION.alterConfigs,
);

export const CLUSTER_OPERATIONS = bits(
  OPERATION.create,
  OPERATION.alter,
  OPERATION.describe,
  OPERATION.clusterAction,
  OPERATION.describeConfigs,
  OPERATION.alterConfigs,
  OPERATION.idempotentWrite,
);

export const GROUP_OPERATIONS = bits(
  OPERATION.read,
  OPERATION.delete,
  OPERATION.describe,
  OPERATION.describeConfigs,
  OPERATION.alterConfigs,
);
