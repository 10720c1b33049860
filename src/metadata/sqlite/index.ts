// Builds the embedded metadata store: one SQLite database, every domain on it.
import { type Clock, systemClock } from '../../base/clock.ts';
import type { Metadata } from '../metadata.ts';
import { catalogMigrations, SqliteCatalog } from './catalog.ts';
import {
  clusterMigrations,
  clusterMoveMigrations,
  clusterSecretMigrations,
  SqliteCluster,
} from './cluster.ts';
import { Database } from './database.ts';
import { groupsMigrations, SqliteGroups } from './groups.ts';
import { leasesMigrations, SqliteLeases } from './leases.ts';
import { SqliteLog } from './log.ts';
import { logMigrations } from './log-rows.ts';
import { nodesMigrations, SqliteNodes } from './nodes.ts';
import { objectsMigrations, SqliteObjects } from './objects.ts';
import { ProducerAges, producersMigrations, SqliteProducers } from './producers.ts';
import { quotasMigrations, SqliteQuotas } from './quotas.ts';
import { RecentCommits } from './recent-commits.ts';
import { registryMigrations, SqliteRegistry } from './registry.ts';
import { resourceConfigsMigrations, SqliteResourceConfigs } from './resource-configs.ts';
import { SqliteSecurity, securityMigrations } from './security.ts';
import { SqliteTableLanes, tableLanesMigrations } from './table-lanes.ts';
import { SqliteTables, tablesMigrations } from './tables.ts';
import { SqliteTopics, topicsMigrations } from './topics.ts';
import { transactionRangesMigrations } from './transaction-ranges.ts';
import { SqliteTransactions, TransactionStates, transactionsMigrations } from './transactions.ts';
import { SqliteVersions, versionsMigrations } from './versions.ts';

export interface SqliteMetadata extends Metadata {
  readonly database: Database;
  /** The log with what only its own thread may call: synchronous commits, checkpoints. */
  readonly log: SqliteLog;
  close(): void;
}

export interface SqliteMetadataOptions {
  /** Kafka's `producer.id.expiration.ms`. */
  readonly producerExpirationMs?: number;
  /** So many of the newest commits are kept in memory for `log.follow`; 0: none, it is not served. */
  readonly followedCommits?: number;
  /** By which leases and nodes live; the machine's unless given. */
  readonly clock?: Clock;
}

/** Kafka's default of `producer.id.expiration.ms`. */
const PRODUCER_EXPIRATION_MS = 86_400_000;

/** `:memory:` or the database file's path. */
export function openSqliteMetadata(
  path: string,
  options: SqliteMetadataOptions = {},
): SqliteMetadata {
  return metadataOn(openDatabase(path), options);
}

/** The database with every domain's tables. */
export function openDatabase(path: string): Database {
  return new Database(path, [
    ...clusterMigrations,
    ...topicsMigrations,
    ...producersMigrations,
    ...logMigrations,
    ...objectsMigrations,
    ...groupsMigrations,
    ...securityMigrations,
    ...registryMigrations,
    ...tablesMigrations,
    ...catalogMigrations,
    ...quotasMigrations,
    ...resourceConfigsMigrations,
    ...transactionsMigrations,
    ...transactionRangesMigrations,
    ...tableLanesMigrations,
    ...versionsMigrations,
    ...leasesMigrations,
    ...nodesMigrations,
    ...clusterSecretMigrations,
    ...clusterMoveMigrations,
  ]);
}

/** All domains on an open database; state that they keep in memory is read from it (a restart, in simulation). */
export function metadataOn(
  database: Database,
  options: SqliteMetadataOptions = {},
): SqliteMetadata {
  const { producerExpirationMs = PRODUCER_EXPIRATION_MS, followedCommits = 0 } = options;
  const { clock = systemClock } = options;
  const versions = new SqliteVersions(database);
  const tables = new SqliteTables(database, versions);
  const ages = new ProducerAges(database, producerExpirationMs);
  const states = new TransactionStates(database);
  const leases = new SqliteLeases(database, clock);
  const log = new SqliteLog(database, {
    ages,
    transactions: states,
    stages: tables,
    versions,
    recent: followedCommits > 0 ? new RecentCommits(followedCommits) : undefined,
  });
  return {
    database,
    topics: new SqliteTopics(database, [log, states, tables.hooks()], versions),
    groups: new SqliteGroups(database, states, leases),
    security: new SqliteSecurity(database, versions),
    registry: new SqliteRegistry(database),
    tables,
    tableLanes: new SqliteTableLanes(database, tables),
    catalog: new SqliteCatalog(database),
    quotas: new SqliteQuotas(database, versions),
    resourceConfigs: new SqliteResourceConfigs(database, versions),
    log,
    objects: new SqliteObjects(database, { log, leases, versions }),
    cluster: new SqliteCluster(database, clock),
    producers: new SqliteProducers(ages, log),
    transactions: new SqliteTransactions(database, { states, log, ages, leases }),
    versions,
    leases,
    nodes: new SqliteNodes(database, clock, versions),
    close: () => database.close(),
  };
}
