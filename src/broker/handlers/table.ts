// Every handler that needs nothing but the broker's services, by API key. Group handlers join in index.ts.
import type { AnyHandler } from '../handler.ts';
import { produceHandler } from './00-produce.ts';
import { fetchHandler } from './01-fetch.ts';
import { listOffsetsHandler } from './02-list-offsets.ts';
import { metadataHandler } from './03-metadata.ts';
import { saslHandshakeHandler } from './17-sasl-handshake.ts';
import { apiVersionsHandler } from './18-api-versions.ts';
import { createTopicsHandler } from './19-create-topics.ts';
import { deleteTopicsHandler } from './20-delete-topics.ts';
import { deleteRecordsHandler } from './21-delete-records.ts';
import { initProducerIdHandler } from './22-init-producer-id.ts';
import { offsetForLeaderEpochHandler } from './23-offset-for-leader-epoch.ts';
import { describeAclsHandler } from './29-describe-acls.ts';
import { createAclsHandler } from './30-create-acls.ts';
import { deleteAclsHandler } from './31-delete-acls.ts';
import { describeConfigsHandler } from './32-describe-configs.ts';
import { alterConfigsHandler } from './33-alter-configs.ts';
import { alterReplicaLogDirsHandler } from './34-alter-replica-log-dirs.ts';
import { describeLogDirsHandler } from './35-describe-log-dirs.ts';
import { saslAuthenticateHandler } from './36-sasl-authenticate.ts';
import { createPartitionsHandler } from './37-create-partitions.ts';
import { electLeadersHandler } from './43-elect-leaders.ts';
import { incrementalAlterConfigsHandler } from './44-incremental-alter-configs.ts';
import { alterPartitionReassignmentsHandler } from './45-alter-partition-reassignments.ts';
import { listPartitionReassignmentsHandler } from './46-list-partition-reassignments.ts';
import { describeClientQuotasHandler } from './48-describe-client-quotas.ts';
import { alterClientQuotasHandler } from './49-alter-client-quotas.ts';
import { describeUserScramCredentialsHandler } from './50-describe-user-scram-credentials.ts';
import { alterUserScramCredentialsHandler } from './51-alter-user-scram-credentials.ts';
import { describeQuorumHandler } from './55-describe-quorum.ts';
import { updateFeaturesHandler } from './57-update-features.ts';
import { describeClusterHandler } from './60-describe-cluster.ts';
import { getTelemetrySubscriptionsHandler } from './71-get-telemetry-subscriptions.ts';
import { pushTelemetryHandler } from './72-push-telemetry.ts';
import { listConfigResourcesHandler } from './74-list-config-resources.ts';
import { describeTopicPartitionsHandler } from './75-describe-topic-partitions.ts';

export const HANDLERS: readonly AnyHandler[] = [
  produceHandler,
  fetchHandler,
  listOffsetsHandler,
  metadataHandler,
  saslHandshakeHandler,
  apiVersionsHandler,
  createTopicsHandler,
  deleteTopicsHandler,
  deleteRecordsHandler,
  initProducerIdHandler,
  offsetForLeaderEpochHandler,
  describeAclsHandler,
  createAclsHandler,
  deleteAclsHandler,
  describeConfigsHandler,
  alterConfigsHandler,
  alterReplicaLogDirsHandler,
  describeLogDirsHandler,
  saslAuthenticateHandler,
  createPartitionsHandler,
  electLeadersHandler,
  incrementalAlterConfigsHandler,
  alterPartitionReassignmentsHandler,
  listPartitionReassignmentsHandler,
  describeClientQuotasHandler,
  alterClientQuotasHandler,
  describeUserScramCredentialsHandler,
  alterUserScramCredentialsHandler,
  describeQuorumHandler,
  updateFeaturesHandler,
  describeClusterHandler,
  getTelemetrySubscriptionsHandler,
  pushTelemetryHandler,
  listConfigResourcesHandler,
  describeTopicPartitionsHandler,
];
