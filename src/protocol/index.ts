// The Kafka wire, sans I/O: bytes in, values out. Imported by everything that speaks Kafka.

export {
  ACL_OPERATION,
  ACL_PATTERN,
  ACL_PERMISSION,
  ACL_RESOURCE,
  CLUSTER_NAME,
} from './acls.ts';
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
// Messages: for each API `xApi`, the decoded `XRequest` and `XResponse`, and `XReply`, what a handler returns.
export * from './messages/00-produce.ts';
export * from './messages/01-fetch.ts';
export * from './messages/02-list-offsets.ts';
export * from './messages/03-metadata.ts';
export * from './messages/08-offset-commit.ts';
export * from './messages/09-offset-fetch.ts';
export * from './messages/10-find-coordinator.ts';
export * from './messages/11-join-group.ts';
export * from './messages/12-heartbeat.ts';
export * from './messages/13-leave-group.ts';
export * from './messages/14-sync-group.ts';
export * from './messages/15-describe-groups.ts';
export * from './messages/16-list-groups.ts';
export * from './messages/17-sasl-handshake.ts';
export * from './messages/18-api-versions.ts';
export * from './messages/19-create-topics.ts';
export * from './messages/20-delete-topics.ts';
export * from './messages/21-delete-records.ts';
export * from './messages/22-init-producer-id.ts';
export * from './messages/23-offset-for-leader-epoch.ts';
export * from './messages/24-add-partitions-to-txn.ts';
export * from './messages/25-add-offsets-to-txn.ts';
export * from './messages/26-end-txn.ts';
export * from './messages/28-txn-offset-commit.ts';
export * from './messages/29-describe-acls.ts';
export * from './messages/30-create-acls.ts';
export * from './messages/31-delete-acls.ts';
export * from './messages/32-describe-configs.ts';
export * from './messages/33-alter-configs.ts';
export * from './messages/34-alter-replica-log-dirs.ts';
export * from './messages/35-describe-log-dirs.ts';
export * from './messages/36-sasl-authenticate.ts';
export * from './messages/37-create-partitions.ts';
export * from './messages/38-create-delegation-token.ts';
export * from './messages/39-renew-delegation-token.ts';
export * from './messages/40-expire-delegation-token.ts';
export * from './messages/41-describe-delegation-token.ts';
export * from './messages/42-delete-groups.ts';
export * from './messages/43-elect-leaders.ts';
export * from './messages/44-incremental-alter-configs.ts';
export * from './messages/45-alter-partition-reassignments.ts';
export * from './messages/46-list-partition-reassignments.ts';
export * from './messages/47-offset-delete.ts';
export * from './messages/48-describe-client-quotas.ts';
export * from './messages/49-alter-client-quotas.ts';
export * from './messages/50-describe-user-scram-credentials.ts';
export * from './messages/51-alter-user-scram-credentials.ts';
export * from './messages/55-describe-quorum.ts';
export * from './messages/57-update-features.ts';
export * from './messages/60-describe-cluster.ts';
export * from './messages/61-describe-producers.ts';
export * from './messages/65-describe-transactions.ts';
export * from './messages/66-list-transactions.ts';
export * from './messages/68-consumer-group-heartbeat.ts';
export * from './messages/69-consumer-group-describe.ts';
export * from './messages/71-get-telemetry-subscriptions.ts';
export * from './messages/72-push-telemetry.ts';
export * from './messages/74-list-config-resources.ts';
export * from './messages/75-describe-topic-partitions.ts';
export * from './messages/76-share-group-heartbeat.ts';
export * from './messages/77-share-group-describe.ts';
export * from './messages/78-share-fetch.ts';
export * from './messages/79-share-acknowledge.ts';
export * from './messages/88-streams-group-heartbeat.ts';
export * from './messages/89-streams-group-describe.ts';
export * from './messages/90-describe-share-group-offsets.ts';
export * from './messages/91-alter-share-group-offsets.ts';
export * from './messages/92-delete-share-group-offsets.ts';
export * from './messages/consumer-protocol.ts';
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
