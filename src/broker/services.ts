// What handlers may use, built once by startBroker and handed to each through its RequestContext.
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { IdSource, Prng } from '../base/prng.ts';
import type { Metadata } from '../metadata/metadata.ts';
import type { TopicDirectory } from '../metadata/topic-directory.ts';
import type { Log } from '../storage/log/log.ts';
import type { Authorizer } from './auth/authorizer.ts';
import type { Security } from './auth/security.ts';
import type { BrokerConfig } from './broker-config.ts';
import type { ClusterView } from './cluster-view.ts';
import type { FetchSessions } from './fetch-sessions.ts';
import type { FetchWaits } from './fetch-wait.ts';
import type { LoggerLevels } from './logger-levels.ts';
import type { ClientQuotas } from './quotas/index.ts';
import type { ResourceConfigs } from './resource-configs.ts';
import type { Router } from './router.ts';
import type { ClientTelemetry } from './telemetry/client-telemetry.ts';
import type { TopicConfigs } from './topic-configs.ts';
import type { TransactionCoordinator } from './transactions/coordinator.ts';

export interface BrokerServices {
  readonly log: Log;
  readonly directory: TopicDirectory;
  readonly metadata: Metadata;
  readonly config: BrokerConfig;
  readonly topicConfigs: TopicConfigs;
  readonly cluster: ClusterView;
  readonly authorizer: Authorizer;
  readonly security: Security;
  readonly quotas: ClientQuotas;
  readonly resourceConfigs: ResourceConfigs;
  readonly telemetry: ClientTelemetry;
  readonly loggers: LoggerLevels;
  /** Undefined where transactions aren't served: transactional ids and batches are refused. */
  readonly transactions: TransactionCoordinator | undefined;
  readonly fetchSessions: FetchSessions;
  readonly fetchWaits: FetchWaits;
  readonly router: Router;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly ids: IdSource;
  readonly logger: Logger;
  readonly metrics: Metrics;
}
