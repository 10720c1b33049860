// Opens the metadata store of a cluster: PostgreSQL, checked and migrated, every domain on it.
import type { Clock } from '../../base/clock.ts';
import type { Prng } from '../../base/prng.ts';
import type { Metadata } from '../metadata.ts';
import { catalogMigrations, PostgresCatalog } from './catalog.ts';
import { assertServer, type Finding } from './check-server.ts';
import { clusterMigrations, PostgresCluster } from './cluster.ts';
import { Database } from './database.ts';
import { ensureFlushRanges } from './flush-ranges.ts';
import { groupsMigrations, PostgresGroups } from './groups.ts';
import { leasesMigrations, PostgresLeases } from './leases.ts';
import { lineageMigrations } from './lineage-rows.ts';
import { PostgresLog } from './log.ts';
import { logMigrations } from './log-rows.ts';
import { type Migration, migrate } from './migrations.ts';
import { nodesMigrations, PostgresNodes } from './nodes.ts';
import { objectsMigrations, PostgresObjects } from './objects.ts';
import { PostgresProducers, ProducerAges, producersMigrations } from './producers.ts';
import { PostgresQuotas, quotasMigrations } from './quotas.ts';
import { PostgresRegistry, registryMigrations } from './registry.ts';
import { PostgresResourceConfigs, resourceConfigsMigrations } from './resource-configs.ts';
import { PostgresSecurity, securityMigrations } from './security.ts';
import type { PostgresSettings } from './settings.ts';
import { PostgresTableLanes, tableLanesMigrations } from './table-lanes.ts';
import { tablesMigrations } from './table-rows.ts';
import { PostgresTables } from './tables.ts';
import { PostgresTopics, topicsMigrations } from './topics.ts';
import { transactionRangesMigrations } from './transaction-ranges.ts';
import { transactionsMigrations } from './transaction-rows.ts';
import { PostgresTransactions } from './transactions.ts';
import { PostgresVersions, versionsMigrations } from './versions.ts';

export interface PostgresMetadataOptions {
  /** `postgres://user:password@host:port/database`. */
  readonly url: string;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly settings: PostgresSettings;
  /** Shown by pg_stat_activity, with the purpose of the connection behind it. */
  readonly applicationName: string;
  /** Kafka's `producer.id.expiration.ms`; its default unless given. */
  readonly producerExpirationMs?: number;
  /** True for tests: a server that would lose acked commits on power failure (fsync=off) is taken. */
  readonly unsafeServer?: boolean;
}

export interface PostgresMetadata extends Metadata {
  readonly database: Database;
  /** The log with what its maintenance calls (`upkeep`). */
  readonly log: PostgresLog;
  /** What is worth an operator's while about the server (`floe doctor`). */
  readonly findings: readonly Finding[];
  /** Waits for what is under way. */
  close(): Promise<void>;
}

/** Kafka's default of `producer.id.expiration.ms`. */
const PRODUCER_EXPIRATION_MS = 86_400_000;

/** Of every domain, in the order in which they refer to each other. */
export const postgresMigrations: readonly Migration[] = [
  ...versionsMigrations,
  ...clusterMigrations,
  ...nodesMigrations,
  ...leasesMigrations,
  ...topicsMigrations,
  ...producersMigrations,
  ...logMigrations,
  ...objectsMigrations,
  ...transactionsMigrations,
  ...transactionRangesMigrations,
  ...groupsMigrations,
  ...securityMigrations,
  ...registryMigrations,
  ...tablesMigrations,
  ...tableLanesMigrations,
  ...catalogMigrations,
  ...quotasMigrations,
  ...resourceConfigsMigrations,
  ...lineageMigrations,
];

/**
 * Connects, checks the server, applies what migrations are new.
 * @throws FloeError `unavailable`: it can't be reached; `unsupported`: it is no server to keep a cluster's metadata on
 * (the text names every remedy); `unauthorized`.
 */
export async function openPostgresMetadata(
  options: PostgresMetadataOptions,
): Promise<PostgresMetadata> {
  const { url, clock, prng, settings, applicationName } = options;
  const database = new Database({ url, clock, prng, settings, applicationName });
  try {
    const findings = await assertServer(database, options.unsafeServer ?? false);
    await migrate(database, postgresMigrations);
    await ensureFlushRanges(database);
    return metadataOn(database, { ...options, findings });
  } catch (caught) {
    await database.close();
    throw caught;
  }
}

function metadataOn(
  database: Database,
  options: Pick<PostgresMetadataOptions, 'producerExpirationMs'> & {
    readonly findings: readonly Finding[];
  },
): PostgresMetadata {
  const ages = new ProducerAges(options.producerExpirationMs ?? PRODUCER_EXPIRATION_MS);
  const tables = new PostgresTables(database);
  const transactions = new PostgresTransactions(database, ages);
  return {
    database,
    findings: options.findings,
    cluster: new PostgresCluster(database),
    versions: new PostgresVersions(database),
    nodes: new PostgresNodes(database),
    leases: new PostgresLeases(database),
    topics: new PostgresTopics(database, [tables]),
    log: new PostgresLog(database, { ages, stages: tables }),
    objects: new PostgresObjects(database),
    producers: new PostgresProducers(database),
    transactions,
    groups: new PostgresGroups(database, transactions),
    security: new PostgresSecurity(database),
    registry: new PostgresRegistry(database),
    tables,
    tableLanes: new PostgresTableLanes(database),
    catalog: new PostgresCatalog(database),
    quotas: new PostgresQuotas(database),
    resourceConfigs: new PostgresResourceConfigs(database),
    close: () => database.close(),
  };
}
