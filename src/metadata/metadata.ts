// The transactional store behind narrow interfaces, one per domain. `sqlite/` implements it (embedded), `postgres/`
// does (a cluster), under the same file names and the same contract suite (contract.ts).
// All methods are asynchronous, take and return plain data, and are set-based where sets occur.
import type { CatalogMetadata } from './catalog.ts';
import type { ClusterMetadata } from './cluster.ts';
import type { GroupsMetadata } from './groups.ts';
import type { LeasesMetadata } from './leases.ts';
import type { LogMetadata } from './log.ts';
import type { NodesMetadata } from './nodes.ts';
import type { ObjectsMetadata } from './objects.ts';
import type { ProducersMetadata } from './producers.ts';
import type { QuotasMetadata } from './quotas.ts';
import type { RegistryMetadata } from './registry.ts';
import type { ResourceConfigsMetadata } from './resource-configs.ts';
import type { SecurityMetadata } from './security.ts';
import type { TableLanesMetadata } from './table-lanes.ts';
import type { TablesMetadata } from './tables.ts';
import type { TopicsMetadata } from './topics.ts';
import type { TransactionsMetadata } from './transactions.ts';
import type { VersionsMetadata } from './versions.ts';

export interface Metadata {
  readonly cluster: ClusterMetadata;
  readonly topics: TopicsMetadata;
  readonly log: LogMetadata;
  readonly objects: ObjectsMetadata;
  readonly producers: ProducersMetadata;
  readonly transactions: TransactionsMetadata;
  readonly groups: GroupsMetadata;
  readonly security: SecurityMetadata;
  readonly registry: RegistryMetadata;
  readonly tables: TablesMetadata;
  readonly tableLanes: TableLanesMetadata;
  readonly catalog: CatalogMetadata;
  readonly quotas: QuotasMetadata;
  readonly resourceConfigs: ResourceConfigsMetadata;
  readonly versions: VersionsMetadata;
  readonly leases: LeasesMetadata;
  readonly nodes: NodesMetadata;
}
