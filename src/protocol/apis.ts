// All APIs by key: the one list that the router, ApiVersions and the tests go by.
import type { AnyApi } from './api.ts';
import { produceApi } from './messages/00-produce.ts';
import { fetchApi } from './messages/01-fetch.ts';
import { listOffsetsApi } from './messages/02-list-offsets.ts';
import { metadataApi } from './messages/03-metadata.ts';
import { offsetCommitApi } from './messages/08-offset-commit.ts';
import { offsetFetchApi } from './messages/09-offset-fetch.ts';
import { findCoordinatorApi } from './messages/10-find-coordinator.ts';
import { joinGroupApi } from './messages/11-join-group.ts';
import { heartbeatApi } from './messages/12-heartbeat.ts';
import { leaveGroupApi } from './messages/13-leave-group.ts';
import { syncGroupApi } from './messages/14-sync-group.ts';
import { describeGroupsApi } from './messages/15-describe-groups.ts';
import { listGroupsApi } from './messages/16-list-groups.ts';
import { saslHandshakeApi } from './messages/17-sasl-handshake.ts';
import { apiVersionsApi } from './messages/18-api-versions.ts';
import { createTopicsApi } from './messages/19-create-topics.ts';
import { deleteTopicsApi } from './messages/20-delete-topics.ts';
import { deleteRecordsApi } from './messages/21-delete-records.ts';
import { initProducerIdApi } from './messages/22-init-producer-id.ts';
import { offsetForLeaderEpochApi } from './messages/23-offset-for-leader-epoch.ts';
import { addPartitionsToTxnApi } from './messages/24-add-partitions-to-txn.ts';
import { addOffsetsToTxnApi } from './messages/25-add-offsets-to-txn.ts';
import { endTxnApi } from './messages/26-end-txn.ts';
import { writeTxnMarkersApi } from './messages/27-write-txn-markers.ts';
import { txnOffsetCommitApi } from './messages/28-txn-offset-commit.ts';
import { describeAclsApi } from './messages/29-describe-acls.ts';
import { createAclsApi } from './messages/30-create-acls.ts';
import { deleteAclsApi } from './messages/31-delete-acls.ts';
import { describeConfigsApi } from './messages/32-describe-configs.ts';
import { alterConfigsApi } from './messages/33-alter-configs.ts';
import { alterReplicaLogDirsApi } from './messages/34-alter-replica-log-dirs.ts';
import { describeLogDirsApi } from './messages/35-describe-log-dirs.ts';
import { saslAuthenticateApi } from './messages/36-sasl-authenticate.ts';
import { createPartitionsApi } from './messages/37-create-partitions.ts';
import { createDelegationTokenApi } from './messages/38-create-delegation-token.ts';
import { renewDelegationTokenApi } from './messages/39-renew-delegation-token.ts';
import { expireDelegationTokenApi } from './messages/40-expire-delegation-token.ts';
import { describeDelegationTokenApi } from './messages/41-describe-delegation-token.ts';
import { deleteGroupsApi } from './messages/42-delete-groups.ts';
import { electLeadersApi } from './messages/43-elect-leaders.ts';
import { incrementalAlterConfigsApi } from './messages/44-incremental-alter-configs.ts';
import { alterPartitionReassignmentsApi } from './messages/45-alter-partition-reassignments.ts';
import { listPartitionReassignmentsApi } from './messages/46-list-partition-reassignments.ts';
import { offsetDeleteApi } from './messages/47-offset-delete.ts';
import { describeClientQuotasApi } from './messages/48-describe-client-quotas.ts';
import { alterClientQuotasApi } from './messages/49-alter-client-quotas.ts';
import { describeUserScramCredentialsApi } from './messages/50-describe-user-scram-credentials.ts';
import { alterUserScramCredentialsApi } from './messages/51-alter-user-scram-credentials.ts';
import { describeQuorumApi } from './messages/55-describe-quorum.ts';
import { updateFeaturesApi } from './messages/57-update-features.ts';
import { describeClusterApi } from './messages/60-describe-cluster.ts';
import { describeProducersApi } from './messages/61-describe-producers.ts';
import { describeTransactionsApi } from './messages/65-describe-transactions.ts';
import { listTransactionsApi } from './messages/66-list-transactions.ts';
import { consumerGroupHeartbeatApi } from './messages/68-consumer-group-heartbeat.ts';
import { consumerGroupDescribeApi } from './messages/69-consumer-group-describe.ts';
import { getTelemetrySubscriptionsApi } from './messages/71-get-telemetry-subscriptions.ts';
import { pushTelemetryApi } from './messages/72-push-telemetry.ts';
import { listConfigResourcesApi } from './messages/74-list-config-resources.ts';
import { describeTopicPartitionsApi } from './messages/75-describe-topic-partitions.ts';
import { shareGroupHeartbeatApi } from './messages/76-share-group-heartbeat.ts';
import { shareGroupDescribeApi } from './messages/77-share-group-describe.ts';
import { shareFetchApi } from './messages/78-share-fetch.ts';
import { shareAcknowledgeApi } from './messages/79-share-acknowledge.ts';
import { streamsGroupHeartbeatApi } from './messages/88-streams-group-heartbeat.ts';
import { streamsGroupDescribeApi } from './messages/89-streams-group-describe.ts';
import { describeShareGroupOffsetsApi } from './messages/90-describe-share-group-offsets.ts';
import { alterShareGroupOffsetsApi } from './messages/91-alter-share-group-offsets.ts';
import { deleteShareGroupOffsetsApi } from './messages/92-delete-share-group-offsets.ts';

/** Every API whose messages we know, served or not, by ascending key. */
export const ALL_APIS: readonly AnyApi[] = [
  produceApi,
  fetchApi,
  listOffsetsApi,
  metadataApi,
  offsetCommitApi,
  offsetFetchApi,
  findCoordinatorApi,
  joinGroupApi,
  heartbeatApi,
  leaveGroupApi,
  syncGroupApi,
  describeGroupsApi,
  listGroupsApi,
  saslHandshakeApi,
  apiVersionsApi,
  createTopicsApi,
  deleteTopicsApi,
  deleteRecordsApi,
  initProducerIdApi,
  offsetForLeaderEpochApi,
  addPartitionsToTxnApi,
  addOffsetsToTxnApi,
  endTxnApi,
  writeTxnMarkersApi,
  txnOffsetCommitApi,
  describeAclsApi,
  createAclsApi,
  deleteAclsApi,
  describeConfigsApi,
  alterConfigsApi,
  alterReplicaLogDirsApi,
  describeLogDirsApi,
  saslAuthenticateApi,
  createPartitionsApi,
  createDelegationTokenApi,
  renewDelegationTokenApi,
  expireDelegationTokenApi,
  describeDelegationTokenApi,
  deleteGroupsApi,
  electLeadersApi,
  incrementalAlterConfigsApi,
  alterPartitionReassignmentsApi,
  listPartitionReassignmentsApi,
  offsetDeleteApi,
  describeClientQuotasApi,
  alterClientQuotasApi,
  describeUserScramCredentialsApi,
  alterUserScramCredentialsApi,
  describeQuorumApi,
  updateFeaturesApi,
  describeClusterApi,
  describeProducersApi,
  describeTransactionsApi,
  listTransactionsApi,
  consumerGroupHeartbeatApi,
  consumerGroupDescribeApi,
  getTelemetrySubscriptionsApi,
  pushTelemetryApi,
  listConfigResourcesApi,
  describeTopicPartitionsApi,
  shareGroupHeartbeatApi,
  shareGroupDescribeApi,
  shareFetchApi,
  shareAcknowledgeApi,
  streamsGroupHeartbeatApi,
  streamsGroupDescribeApi,
  describeShareGroupOffsetsApi,
  alterShareGroupOffsetsApi,
  deleteShareGroupOffsetsApi,
];

const BY_KEY = new Map(ALL_APIS.map((known) => [known.key, known]));

/** The API of a key; undefined when it is unknown. */
export function apiByKey(key: number): AnyApi | undefined {
  return BY_KEY.get(key);
}
