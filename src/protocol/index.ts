// The Kafka wire, sans I/O: bytes in, values out. Imported by everything that speaks Kafka.
export {
  type AnyApi,
  type Api,
  advertisedMinVersion,
  type ReplyOf,
  type RequestOf,
  type ResponseOf,
  requestHeaderVersion,
  responseHeaderVersion,
} from './api.ts';
export { ALL_APIS, apiByKey } from './apis.ts';
export { asBuffer } from './bytes.ts';
export {
  COMPRESSION_NAMES,
  Compression,
  type CompressionName,
  compress,
  decompress,
  isCompressionType,
} from './codecs.ts';
export type { Message } from './compile.ts';
export {
  decodeResponse,
  encodeRequest,
  encodeResponse,
  openRequest,
  type RequestEnvelope,
  type RequestOptions,
  type ResponseOptions,
} from './envelope.ts';
export {
  ErrorCode,
  KAFKA_ERRORS,
  type KafkaError,
  type KafkaErrorName,
  kafkaError,
} from './errors.ts';
export { type BytesIn, type Decoded, type Encodable, INT64_MAX, ZERO_UUID } from './fields.ts';
export { FrameDecoder } from './frame-decoder.ts';
export {
  type ProduceReply,
  type ProduceRequest,
  type ProduceResponse,
  produceApi,
} from './messages/00-produce.ts';
export {
  type FetchReply,
  type FetchRequest,
  type FetchResponse,
  fetchApi,
} from './messages/01-fetch.ts';
export {
  type ListOffsetsReply,
  type ListOffsetsRequest,
  type ListOffsetsResponse,
  listOffsetsApi,
} from './messages/02-list-offsets.ts';
export {
  type MetadataReply,
  type MetadataRequest,
  type MetadataResponse,
  metadataApi,
} from './messages/03-metadata.ts';
export {
  type OffsetCommitReply,
  type OffsetCommitRequest,
  type OffsetCommitResponse,
  offsetCommitApi,
} from './messages/08-offset-commit.ts';
export {
  type OffsetFetchReply,
  type OffsetFetchRequest,
  type OffsetFetchResponse,
  offsetFetchApi,
} from './messages/09-offset-fetch.ts';
export {
  type FindCoordinatorReply,
  type FindCoordinatorRequest,
  type FindCoordinatorResponse,
  findCoordinatorApi,
} from './messages/10-find-coordinator.ts';
export {
  type JoinGroupReply,
  type JoinGroupRequest,
  type JoinGroupResponse,
  joinGroupApi,
} from './messages/11-join-group.ts';
export {
  type HeartbeatReply,
  type HeartbeatRequest,
  type HeartbeatResponse,
  heartbeatApi,
} from './messages/12-heartbeat.ts';
export {
  type LeaveGroupReply,
  type LeaveGroupRequest,
  type LeaveGroupResponse,
  leaveGroupApi,
} from './messages/13-leave-group.ts';
export {
  type SyncGroupReply,
  type SyncGroupRequest,
  type SyncGroupResponse,
  syncGroupApi,
} from './messages/14-sync-group.ts';
export {
  type DescribeGroupsReply,
  type DescribeGroupsRequest,
  type DescribeGroupsResponse,
  describeGroupsApi,
} from './messages/15-describe-groups.ts';
export {
  type ListGroupsReply,
  type ListGroupsRequest,
  type ListGroupsResponse,
  listGroupsApi,
} from './messages/16-list-groups.ts';
export {
  type SaslHandshakeReply,
  type SaslHandshakeRequest,
  type SaslHandshakeResponse,
  saslHandshakeApi,
} from './messages/17-sasl-handshake.ts';
export {
  type ApiVersionsReply,
  type ApiVersionsRequest,
  type ApiVersionsResponse,
  apiVersionsApi,
} from './messages/18-api-versions.ts';
export {
  type CreateTopicsReply,
  type CreateTopicsRequest,
  type CreateTopicsResponse,
  createTopicsApi,
} from './messages/19-create-topics.ts';
export {
  type DeleteTopicsReply,
  type DeleteTopicsRequest,
  type DeleteTopicsResponse,
  deleteTopicsApi,
} from './messages/20-delete-topics.ts';
export {
  type DeleteRecordsReply,
  type DeleteRecordsRequest,
  type DeleteRecordsResponse,
  deleteRecordsApi,
} from './messages/21-delete-records.ts';
export {
  type InitProducerIdReply,
  type InitProducerIdRequest,
  type InitProducerIdResponse,
  initProducerIdApi,
} from './messages/22-init-producer-id.ts';
export {
  type OffsetForLeaderEpochReply,
  type OffsetForLeaderEpochRequest,
  type OffsetForLeaderEpochResponse,
  offsetForLeaderEpochApi,
} from './messages/23-offset-for-leader-epoch.ts';
export {
  type AddPartitionsToTxnReply,
  type AddPartitionsToTxnRequest,
  type AddPartitionsToTxnResponse,
  addPartitionsToTxnApi,
} from './messages/24-add-partitions-to-txn.ts';
export {
  type AddOffsetsToTxnReply,
  type AddOffsetsToTxnRequest,
  type AddOffsetsToTxnResponse,
  addOffsetsToTxnApi,
} from './messages/25-add-offsets-to-txn.ts';
export {
  type EndTxnReply,
  type EndTxnRequest,
  type EndTxnResponse,
  endTxnApi,
} from './messages/26-end-txn.ts';
export {
  type TxnOffsetCommitReply,
  type TxnOffsetCommitRequest,
  type TxnOffsetCommitResponse,
  txnOffsetCommitApi,
} from './messages/28-txn-offset-commit.ts';
export {
  type DescribeAclsReply,
  type DescribeAclsRequest,
  type DescribeAclsResponse,
  describeAclsApi,
} from './messages/29-describe-acls.ts';
export {
  type CreateAclsReply,
  type CreateAclsRequest,
  type CreateAclsResponse,
  createAclsApi,
} from './messages/30-create-acls.ts';
export {
  type DeleteAclsReply,
  type DeleteAclsRequest,
  type DeleteAclsResponse,
  deleteAclsApi,
} from './messages/31-delete-acls.ts';
export {
  type DescribeConfigsReply,
  type DescribeConfigsRequest,
  type DescribeConfigsResponse,
  describeConfigsApi,
} from './messages/32-describe-configs.ts';
export {
  type AlterConfigsReply,
  type AlterConfigsRequest,
  type AlterConfigsResponse,
  alterConfigsApi,
} from './messages/33-alter-configs.ts';
export {
  type AlterReplicaLogDirsReply,
  type AlterReplicaLogDirsRequest,
  type AlterReplicaLogDirsResponse,
  alterReplicaLogDirsApi,
} from './messages/34-alter-replica-log-dirs.ts';
export {
  type DescribeLogDirsReply,
  type DescribeLogDirsRequest,
  type DescribeLogDirsResponse,
  describeLogDirsApi,
} from './messages/35-describe-log-dirs.ts';
export {
  type SaslAuthenticateReply,
  type SaslAuthenticateRequest,
  type SaslAuthenticateResponse,
  saslAuthenticateApi,
} from './messages/36-sasl-authenticate.ts';
export {
  type CreatePartitionsReply,
  type CreatePartitionsRequest,
  type CreatePartitionsResponse,
  createPartitionsApi,
} from './messages/37-create-partitions.ts';
export {
  type CreateDelegationTokenReply,
  type CreateDelegationTokenRequest,
  type CreateDelegationTokenResponse,
  createDelegationTokenApi,
} from './messages/38-create-delegation-token.ts';
export {
  type RenewDelegationTokenReply,
  type RenewDelegationTokenRequest,
  type RenewDelegationTokenResponse,
  renewDelegationTokenApi,
} from './messages/39-renew-delegation-token.ts';
export {
  type ExpireDelegationTokenReply,
  type ExpireDelegationTokenRequest,
  type ExpireDelegationTokenResponse,
  expireDelegationTokenApi,
} from './messages/40-expire-delegation-token.ts';
export {
  type DescribeDelegationTokenReply,
  type DescribeDelegationTokenRequest,
  type DescribeDelegationTokenResponse,
  describeDelegationTokenApi,
} from './messages/41-describe-delegation-token.ts';
export {
  type DeleteGroupsReply,
  type DeleteGroupsRequest,
  type DeleteGroupsResponse,
  deleteGroupsApi,
} from './messages/42-delete-groups.ts';
export {
  type ElectLeadersReply,
  type ElectLeadersRequest,
  type ElectLeadersResponse,
  electLeadersApi,
} from './messages/43-elect-leaders.ts';
export {
  type IncrementalAlterConfigsReply,
  type IncrementalAlterConfigsRequest,
  type IncrementalAlterConfigsResponse,
  incrementalAlterConfigsApi,
} from './messages/44-incremental-alter-configs.ts';
export {
  type AlterPartitionReassignmentsReply,
  type AlterPartitionReassignmentsRequest,
  type AlterPartitionReassignmentsResponse,
  alterPartitionReassignmentsApi,
} from './messages/45-alter-partition-reassignments.ts';
export {
  type ListPartitionReassignmentsReply,
  type ListPartitionReassignmentsRequest,
  type ListPartitionReassignmentsResponse,
  listPartitionReassignmentsApi,
} from './messages/46-list-partition-reassignments.ts';
export {
  type OffsetDeleteReply,
  type OffsetDeleteRequest,
  type OffsetDeleteResponse,
  offsetDeleteApi,
} from './messages/47-offset-delete.ts';
export {
  type DescribeClientQuotasReply,
  type DescribeClientQuotasRequest,
  type DescribeClientQuotasResponse,
  describeClientQuotasApi,
} from './messages/48-describe-client-quotas.ts';
export {
  type AlterClientQuotasReply,
  type AlterClientQuotasRequest,
  type AlterClientQuotasResponse,
  alterClientQuotasApi,
} from './messages/49-alter-client-quotas.ts';
export {
  type DescribeUserScramCredentialsReply,
  type DescribeUserScramCredentialsRequest,
  type DescribeUserScramCredentialsResponse,
  describeUserScramCredentialsApi,
} from './messages/50-describe-user-scram-credentials.ts';
export {
  type AlterUserScramCredentialsReply,
  type AlterUserScramCredentialsRequest,
  type AlterUserScramCredentialsResponse,
  alterUserScramCredentialsApi,
} from './messages/51-alter-user-scram-credentials.ts';
export {
  type DescribeQuorumReply,
  type DescribeQuorumRequest,
  type DescribeQuorumResponse,
  describeQuorumApi,
} from './messages/55-describe-quorum.ts';
export {
  type UpdateFeaturesReply,
  type UpdateFeaturesRequest,
  type UpdateFeaturesResponse,
  updateFeaturesApi,
} from './messages/57-update-features.ts';
export {
  type DescribeClusterReply,
  type DescribeClusterRequest,
  type DescribeClusterResponse,
  describeClusterApi,
} from './messages/60-describe-cluster.ts';
export {
  type DescribeProducersReply,
  type DescribeProducersRequest,
  type DescribeProducersResponse,
  describeProducersApi,
} from './messages/61-describe-producers.ts';
export {
  type DescribeTransactionsReply,
  type DescribeTransactionsRequest,
  type DescribeTransactionsResponse,
  describeTransactionsApi,
} from './messages/65-describe-transactions.ts';
export {
  type ListTransactionsReply,
  type ListTransactionsRequest,
  type ListTransactionsResponse,
  listTransactionsApi,
} from './messages/66-list-transactions.ts';
export {
  type ConsumerGroupHeartbeatReply,
  type ConsumerGroupHeartbeatRequest,
  type ConsumerGroupHeartbeatResponse,
  consumerGroupHeartbeatApi,
} from './messages/68-consumer-group-heartbeat.ts';
export {
  type ConsumerGroupDescribeReply,
  type ConsumerGroupDescribeRequest,
  type ConsumerGroupDescribeResponse,
  consumerGroupDescribeApi,
} from './messages/69-consumer-group-describe.ts';
export {
  type GetTelemetrySubscriptionsReply,
  type GetTelemetrySubscriptionsRequest,
  type GetTelemetrySubscriptionsResponse,
  getTelemetrySubscriptionsApi,
} from './messages/71-get-telemetry-subscriptions.ts';
export {
  type PushTelemetryReply,
  type PushTelemetryRequest,
  type PushTelemetryResponse,
  pushTelemetryApi,
} from './messages/72-push-telemetry.ts';
export {
  type ListConfigResourcesReply,
  type ListConfigResourcesRequest,
  type ListConfigResourcesResponse,
  listConfigResourcesApi,
} from './messages/74-list-config-resources.ts';
export {
  type DescribeTopicPartitionsReply,
  type DescribeTopicPartitionsRequest,
  type DescribeTopicPartitionsResponse,
  describeTopicPartitionsApi,
} from './messages/75-describe-topic-partitions.ts';
export {
  type ShareGroupHeartbeatReply,
  type ShareGroupHeartbeatRequest,
  type ShareGroupHeartbeatResponse,
  shareGroupHeartbeatApi,
} from './messages/76-share-group-heartbeat.ts';
export {
  type ShareGroupDescribeReply,
  type ShareGroupDescribeRequest,
  type ShareGroupDescribeResponse,
  shareGroupDescribeApi,
} from './messages/77-share-group-describe.ts';
export {
  type ShareFetchReply,
  type ShareFetchRequest,
  type ShareFetchResponse,
  shareFetchApi,
} from './messages/78-share-fetch.ts';
export {
  type ShareAcknowledgeReply,
  type ShareAcknowledgeRequest,
  type ShareAcknowledgeResponse,
  shareAcknowledgeApi,
} from './messages/79-share-acknowledge.ts';
export {
  type StreamsGroupHeartbeatReply,
  type StreamsGroupHeartbeatRequest,
  type StreamsGroupHeartbeatResponse,
  streamsGroupHeartbeatApi,
} from './messages/88-streams-group-heartbeat.ts';
export {
  type StreamsGroupDescribeReply,
  type StreamsGroupDescribeRequest,
  type StreamsGroupDescribeResponse,
  streamsGroupDescribeApi,
} from './messages/89-streams-group-describe.ts';
export {
  type DescribeShareGroupOffsetsReply,
  type DescribeShareGroupOffsetsRequest,
  type DescribeShareGroupOffsetsResponse,
  describeShareGroupOffsetsApi,
} from './messages/90-describe-share-group-offsets.ts';
export {
  type AlterShareGroupOffsetsReply,
  type AlterShareGroupOffsetsRequest,
  type AlterShareGroupOffsetsResponse,
  alterShareGroupOffsetsApi,
} from './messages/91-alter-share-group-offsets.ts';
export {
  type DeleteShareGroupOffsetsReply,
  type DeleteShareGroupOffsetsRequest,
  type DeleteShareGroupOffsetsResponse,
  deleteShareGroupOffsetsApi,
} from './messages/92-delete-share-group-offsets.ts';
export {
  type ConsumerAssignment,
  type ConsumerSubscription,
  decodeAssignment,
  decodeSubscription,
  encodeAssignment,
  encodeSubscription,
} from './messages/consumer-protocol.ts';
export { Reader } from './reader.ts';
/** Batch headers: `RecordBatch.baseOffset(bytes, at)`, `RecordBatch.batchEnd(…)`, `RecordBatch.patchBaseOffset(…)`. */
export * as RecordBatch from './record-batch.ts';
export {
  type BatchOptions,
  buildBatch,
  buildControlBatch,
  type ControlBatchOptions,
  RecordBatchBuilder,
  type RecordInput,
} from './record-builder.ts';
export { type OpenOptions, RecordCursor } from './record-cursor.ts';
export { currentRecord, type KafkaRecord, readRecords } from './records.ts';
export { protocolSettings } from './settings.ts';
export {
  type AcceptedBatch,
  type BatchCheck,
  type BatchRules,
  isAccepted,
  type RecordError,
  type RefusedBatch,
  validateBatches,
} from './validate.ts';
export { Writer } from './writer.ts';
