// Kafka's error codes: what goes into replies when a client's request can't be done, as a table of
// name, code, whether clients retry by themselves, and a short description that serves as error text.
// Not for: errors inside Floe (base/error.ts).

const RETRY = true;
const FINAL = false;

const TABLE = {
  UNKNOWN_SERVER_ERROR: [-1, FINAL, 'the broker failed in a way it did not foresee'],
  NONE: [0, FINAL, 'no error'],
  OFFSET_OUT_OF_RANGE: [1, FINAL, 'the offset lies outside the log of this partition'],
  CORRUPT_MESSAGE: [2, RETRY, 'the batch fails its checksum, or its size or magic is wrong'],
  UNKNOWN_TOPIC_OR_PARTITION: [3, RETRY, 'there is no such topic or partition here'],
  INVALID_FETCH_SIZE: [4, FINAL, 'the wanted fetch size is not valid'],
  LEADER_NOT_AVAILABLE: [5, RETRY, 'the partition has no leader for now'],
  NOT_LEADER_OR_FOLLOWER: [6, RETRY, 'this broker does not serve the partition: refresh metadata'],
  REQUEST_TIMED_OUT: [7, RETRY, 'the request was not finished in its time'],
  BROKER_NOT_AVAILABLE: [8, FINAL, 'the broker is not available'],
  REPLICA_NOT_AVAILABLE: [9, RETRY, 'the replica is not available'],
  MESSAGE_TOO_LARGE: [10, FINAL, 'the batch is larger than max.message.bytes allows'],
  STALE_CONTROLLER_EPOCH: [11, FINAL, 'the controller epoch is an old one'],
  OFFSET_METADATA_TOO_LARGE: [12, FINAL, 'the text beside a committed offset is too long'],
  NETWORK_EXCEPTION: [13, RETRY, 'the connection broke before the answer'],
  COORDINATOR_LOAD_IN_PROGRESS: [14, RETRY, 'the coordinator is loading and can not answer yet'],
  COORDINATOR_NOT_AVAILABLE: [15, RETRY, 'the coordinator is not available'],
  NOT_COORDINATOR: [16, RETRY, 'this broker is not the coordinator: look it up again'],
  INVALID_TOPIC_EXCEPTION: [17, FINAL, 'the topic name is not allowed'],
  RECORD_LIST_TOO_LARGE: [18, FINAL, 'more record bytes than a segment may hold'],
  NOT_ENOUGH_REPLICAS: [19, RETRY, 'fewer replicas in sync than required'],
  NOT_ENOUGH_REPLICAS_AFTER_APPEND: [20, RETRY, 'written, but to fewer replicas than required'],
  INVALID_REQUIRED_ACKS: [21, FINAL, 'acks is neither 0 nor 1 nor -1'],
  ILLEGAL_GENERATION: [22, FINAL, 'the generation is not the current one of the group'],
  INCONSISTENT_GROUP_PROTOCOL: [
    23,
    FINAL,
    'the member shares no protocol with the group, or has another protocol type',
  ],
  INVALID_GROUP_ID: [24, FINAL, 'the group id is not allowed'],
  UNKNOWN_MEMBER_ID: [25, FINAL, 'the group has no such member'],
  INVALID_SESSION_TIMEOUT: [26, FINAL, 'the session timeout lies outside the allowed range'],
  REBALANCE_IN_PROGRESS: [27, FINAL, 'the group rebalances: join again'],
  INVALID_COMMIT_OFFSET_SIZE: [28, FINAL, 'the committed offsets are too large to store'],
  TOPIC_AUTHORIZATION_FAILED: [29, FINAL, 'not allowed on this topic'],
  GROUP_AUTHORIZATION_FAILED: [30, FINAL, 'not allowed on this group'],
  CLUSTER_AUTHORIZATION_FAILED: [31, FINAL, 'not allowed on the cluster'],
  INVALID_TIMESTAMP: [32, FINAL, 'a record time is outside the allowed range'],
  UNSUPPORTED_SASL_MECHANISM: [33, FINAL, 'the SASL mechanism is not enabled'],
  ILLEGAL_SASL_STATE: [34, FINAL, 'not allowed at this point of the SASL exchange'],
  UNSUPPORTED_VERSION: [35, FINAL, 'the version of the API is not served'],
  TOPIC_ALREADY_EXISTS: [36, FINAL, 'a topic of this name exists'],
  INVALID_PARTITIONS: [37, FINAL, 'the number of partitions is not allowed'],
  INVALID_REPLICATION_FACTOR: [38, FINAL, 'the replication factor is not possible'],
  INVALID_REPLICA_ASSIGNMENT: [39, FINAL, 'the replica assignment is not possible'],
  INVALID_CONFIG: [40, FINAL, 'the configuration is not valid'],
  NOT_CONTROLLER: [41, RETRY, 'this broker is not the controller'],
  INVALID_REQUEST: [42, FINAL, 'the request contradicts itself or the protocol'],
  UNSUPPORTED_FOR_MESSAGE_FORMAT: [43, FINAL, 'the message format has no room for what was asked'],
  POLICY_VIOLATION: [44, FINAL, 'refused by policy'],
  OUT_OF_ORDER_SEQUENCE_NUMBER: [
    45,
    FINAL,
    'the sequence does not follow the last one of this producer',
  ],
  DUPLICATE_SEQUENCE_NUMBER: [
    46,
    FINAL,
    'the sequence was written before and is no longer remembered exactly',
  ],
  INVALID_PRODUCER_EPOCH: [47, FINAL, 'a newer instance of the producer has written since'],
  INVALID_TXN_STATE: [48, FINAL, 'not allowed in the present state of the transaction'],
  INVALID_PRODUCER_ID_MAPPING: [
    49,
    FINAL,
    'the producer id does not belong to this transactional id',
  ],
  INVALID_TRANSACTION_TIMEOUT: [
    50,
    FINAL,
    'the transaction timeout exceeds what the broker allows',
  ],
  CONCURRENT_TRANSACTIONS: [
    51,
    RETRY,
    'the previous transaction of this producer is still being ended',
  ],
  TRANSACTION_COORDINATOR_FENCED: [52, FINAL, 'the transaction coordinator was replaced'],
  TRANSACTIONAL_ID_AUTHORIZATION_FAILED: [53, FINAL, 'not allowed on this transactional id'],
  SECURITY_DISABLED: [54, FINAL, 'security features are switched off'],
  OPERATION_NOT_ATTEMPTED: [55, FINAL, 'left undone because another part of the request failed'],
  KAFKA_STORAGE_ERROR: [56, RETRY, 'storage failed for now'],
  LOG_DIR_NOT_FOUND: [57, FINAL, 'there is no such log directory'],
  SASL_AUTHENTICATION_FAILED: [58, FINAL, 'authentication failed'],
  UNKNOWN_PRODUCER_ID: [59, FINAL, 'nothing is remembered of this producer'],
  REASSIGNMENT_IN_PROGRESS: [60, FINAL, 'a reassignment of the partition is under way'],
  DELEGATION_TOKEN_AUTH_DISABLED: [61, FINAL, 'delegation tokens are switched off'],
  DELEGATION_TOKEN_NOT_FOUND: [62, FINAL, 'there is no such delegation token'],
  DELEGATION_TOKEN_OWNER_MISMATCH: [
    63,
    FINAL,
    'the principal is neither owner nor renewer of the token',
  ],
  DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: [
    64,
    FINAL,
    'delegation token requests are not allowed on this connection',
  ],
  DELEGATION_TOKEN_AUTHORIZATION_FAILED: [65, FINAL, 'not allowed on this delegation token'],
  DELEGATION_TOKEN_EXPIRED: [66, FINAL, 'the delegation token has expired'],
  INVALID_PRINCIPAL_TYPE: [67, FINAL, 'principals of this type are not supported'],
  NON_EMPTY_GROUP: [68, FINAL, 'the group still has members'],
  GROUP_ID_NOT_FOUND: [69, FINAL, 'there is no such group'],
  FETCH_SESSION_ID_NOT_FOUND: [70, RETRY, 'the fetch session is gone: start a new one'],
  INVALID_FETCH_SESSION_EPOCH: [71, RETRY, 'the fetch session epoch is not the next one'],
  LISTENER_NOT_FOUND: [72, RETRY, 'the leader has no listener of this name'],
  TOPIC_DELETION_DISABLED: [73, FINAL, 'deleting topics is switched off'],
  FENCED_LEADER_EPOCH: [74, RETRY, "the leader epoch is older than the broker's"],
  UNKNOWN_LEADER_EPOCH: [75, RETRY, "the leader epoch is newer than the broker's"],
  UNSUPPORTED_COMPRESSION_TYPE: [
    76,
    FINAL,
    'the compression is unknown, or too new for this version of the request',
  ],
  STALE_BROKER_EPOCH: [77, FINAL, 'the broker epoch is an old one'],
  OFFSET_NOT_AVAILABLE: [78, RETRY, 'the leader has not caught up enough to tell'],
  MEMBER_ID_REQUIRED: [79, FINAL, 'join again with the member id that was given'],
  PREFERRED_LEADER_NOT_AVAILABLE: [80, RETRY, 'the preferred leader is not available'],
  GROUP_MAX_SIZE_REACHED: [81, FINAL, 'the group is full'],
  FENCED_INSTANCE_ID: [82, FINAL, 'another member has taken over this static instance id'],
  ELIGIBLE_LEADERS_NOT_AVAILABLE: [83, RETRY, 'no replica may become leader'],
  ELECTION_NOT_NEEDED: [84, RETRY, 'the partition has the wanted leader already'],
  NO_REASSIGNMENT_IN_PROGRESS: [85, FINAL, 'no reassignment of the partition is under way'],
  GROUP_SUBSCRIBED_TO_TOPIC: [86, FINAL, 'the group subscribes to this topic, so its offsets stay'],
  INVALID_RECORD: [87, FINAL, 'a record or its batch breaks a rule of the topic or the format'],
  UNSTABLE_OFFSET_COMMIT: [88, RETRY, 'a transaction has offsets pending for this partition'],
  THROTTLING_QUOTA_EXCEEDED: [89, RETRY, 'the quota of such operations is used up for now'],
  PRODUCER_FENCED: [90, FINAL, 'a newer producer has the same transactional id'],
  RESOURCE_NOT_FOUND: [91, FINAL, 'there is no such resource'],
  DUPLICATE_RESOURCE: [92, FINAL, 'the resource is named twice'],
  UNACCEPTABLE_CREDENTIAL: [93, FINAL, 'the credential breaks the rules'],
  INCONSISTENT_VOTER_SET: [94, FINAL, 'the voter sets differ'],
  INVALID_UPDATE_VERSION: [95, FINAL, 'the update version is not the next one'],
  FEATURE_UPDATE_FAILED: [96, FINAL, 'the feature level can not be changed so'],
  PRINCIPAL_DESERIALIZATION_FAILURE: [97, FINAL, 'the forwarded principal can not be read'],
  SNAPSHOT_NOT_FOUND: [98, FINAL, 'there is no such snapshot'],
  POSITION_OUT_OF_RANGE: [99, FINAL, 'the position lies outside the snapshot'],
  UNKNOWN_TOPIC_ID: [100, RETRY, 'there is no topic of this id here'],
  DUPLICATE_BROKER_REGISTRATION: [101, FINAL, 'a broker of this id is registered already'],
  BROKER_ID_NOT_REGISTERED: [102, FINAL, 'no broker of this id is registered'],
  INCONSISTENT_TOPIC_ID: [103, RETRY, 'the topic id is another than the one on record'],
  INCONSISTENT_CLUSTER_ID: [104, FINAL, 'the cluster id is another than ours'],
  TRANSACTIONAL_ID_NOT_FOUND: [105, FINAL, 'nothing is known of this transactional id'],
  FETCH_SESSION_TOPIC_ID_ERROR: [106, RETRY, 'the fetch session mixes topic names and topic ids'],
  INELIGIBLE_REPLICA: [107, FINAL, 'the replica may not join the in-sync set'],
  NEW_LEADER_ELECTED: [108, FINAL, 'the partition change chose another leader'],
  OFFSET_MOVED_TO_TIERED_STORAGE: [109, FINAL, 'the offset is in tiered storage only'],
  FENCED_MEMBER_EPOCH: [110, FINAL, 'the member epoch is not the one on record: join again'],
  UNRELEASED_INSTANCE_ID: [111, FINAL, 'another member still uses this static instance id'],
  UNSUPPORTED_ASSIGNOR: [112, FINAL, 'the assignor is not one the group can use'],
  STALE_MEMBER_EPOCH: [113, FINAL, 'the member epoch is old: heartbeat first, then retry'],
  MISMATCHED_ENDPOINT_TYPE: [114, FINAL, 'the request went to the wrong kind of endpoint'],
  UNSUPPORTED_ENDPOINT_TYPE: [115, FINAL, 'endpoints of this type are not supported'],
  UNKNOWN_CONTROLLER_ID: [116, FINAL, 'there is no such controller'],
  UNKNOWN_SUBSCRIPTION_ID: [117, FINAL, 'the telemetry subscription is not the current one'],
  TELEMETRY_TOO_LARGE: [118, FINAL, 'the telemetry push is too large'],
  INVALID_REGISTRATION: [119, FINAL, 'the registration is not valid'],
  TRANSACTION_ABORTABLE: [120, FINAL, 'the transaction can go on only by aborting it'],
  INVALID_RECORD_STATE: [
    121,
    FINAL,
    'the record is not in a state that allows this acknowledgement',
  ],
  SHARE_SESSION_NOT_FOUND: [122, RETRY, 'the share session is gone: start a new one'],
  INVALID_SHARE_SESSION_EPOCH: [123, RETRY, 'the share session epoch is not the next one'],
  FENCED_STATE_EPOCH: [124, FINAL, 'the share state epoch is an old one'],
  INVALID_VOTER_KEY: [125, FINAL, "the voter key is not the receiver's"],
  DUPLICATE_VOTER: [126, FINAL, 'the voter is in the set already'],
  VOTER_NOT_FOUND: [127, FINAL, 'the voter is not in the set'],
  INVALID_REGULAR_EXPRESSION: [128, FINAL, 'the regular expression can not be compiled'],
  REBOOTSTRAP_REQUIRED: [129, FINAL, 'the client should start again from its bootstrap servers'],
  STREAMS_INVALID_TOPOLOGY: [130, FINAL, 'the topology is not valid'],
  STREAMS_INVALID_TOPOLOGY_EPOCH: [131, FINAL, 'the topology epoch is not valid'],
  STREAMS_TOPOLOGY_FENCED: [132, FINAL, 'the topology epoch is an old one'],
  SHARE_SESSION_LIMIT_REACHED: [133, RETRY, 'no more share sessions for now'],
} as const satisfies Record<string, readonly [number, boolean, string]>;

/** The name of a Kafka error, e.g. "MESSAGE_TOO_LARGE". */
export type KafkaErrorName = keyof typeof TABLE;

/** Codes by name: `ErrorCode.NONE` is 0. */
export const ErrorCode = Object.fromEntries(
  Object.entries(TABLE).map(([name, [code]]) => [name, code]),
) as { readonly [Name in KafkaErrorName]: (typeof TABLE)[Name][0] };

/** One row of the table. */
export interface KafkaError {
  readonly name: KafkaErrorName;
  readonly code: number;
  /** Whether clients try again by themselves. */
  readonly retriable: boolean;
  readonly description: string;
}

/** Every error by ascending code. */
export const KAFKA_ERRORS: readonly KafkaError[] = Object.entries(TABLE).map(
  ([name, [code, retriable, description]]) => ({
    name: name as KafkaErrorName,
    code,
    retriable,
    description,
  }),
);

const BY_CODE = new Map(KAFKA_ERRORS.map((error) => [error.code, error]));

/** The error of a code; a code that nobody has defined counts as UNKNOWN_SERVER_ERROR, as in Kafka's clients. */
export function kafkaError(code: number): KafkaError {
  return BY_CODE.get(code) ?? BY_CODE.get(ErrorCode.UNKNOWN_SERVER_ERROR)!;
}
