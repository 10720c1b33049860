// Table topics' public face: the service for the composition root, its settings and configs, its routes.
import { availableParallelism } from 'node:os';
import type { Clock } from '../base/clock.ts';
import type { Component } from '../base/lifecycle.ts';
import type { Logger } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { IdSource, Prng } from '../base/prng.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { Warehouse } from '../catalog/index.ts';
import type { Metadata } from '../metadata/metadata.ts';
import type { TopicDirectory } from '../metadata/topic-directory.ts';
import type { SchemaSource } from '../schema-registry/schema-source.ts';
import type { Log } from '../storage/log/log.ts';
import type { JobRunner } from './job.ts';
import type { LaneDeps } from './lane.ts';
import type { MaintenanceTasks } from './maintenance/task.ts';
import { MaintenanceThread } from './maintenance/thread-client.ts';
import { MaintenanceWorker } from './maintenance/worker.ts';
import { clusterPlacement, type SharedTables } from './placement.ts';
import { WorkerPool } from './pool.ts';
import type { TableSettings } from './settings/index.ts';
import { TableTopics } from './table-topics.ts';
import { type KeyIndexes, KeyIndexHost } from './upsert/key-index.ts';
import { KeyIndexClient } from './upsert/key-index-client.ts';
import { MemoryRunFiles } from './upsert/run-files.ts';
import { TableWorker } from './worker.ts';

export { tableRoutes } from './routes.ts';
export {
  isEnabled,
  isTableTopicConfig,
  parseTopicConfig,
  resolveTopicConfigs,
  type TableSettings,
  tableIdentifier,
  tableSettings,
  topicConfigs,
  unservedConfigs,
} from './settings/index.ts';
export type { TableStatus } from './table-status.ts';
export type { TableTopics } from './table-topics.ts';
export { createTopicConfigValidator, type TopicConfigValidator } from './validate.ts';

export interface TableTopicsDeps {
  /** See {@link TableTopicsOptions}. */
  readonly mayDelete?: () => Promise<boolean>;
  /** See {@link LaneDeps}: asked before dead letters are appended to a topic. */
  readonly writeStop?: LaneDeps['writeStop'];
  readonly log: Log;
  readonly directory: TopicDirectory;
  readonly metadata: Pick<Metadata, 'tables'>;
  /** The other nodes; missing: there are none, and none will come. */
  readonly shared?: SharedTables;
  readonly catalog: Catalog;
  readonly schemas: SchemaSource;
  /** The catalog's: table files are read and written through it. */
  readonly warehouse: Warehouse;
  readonly settings: TableSettings;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly ids: IdSource;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /**
   * How worker threads open the warehouse's store for themselves (`uri` and settings of storage/objects).
   * Undefined: jobs run in this thread, for tests and simulation.
   */
  readonly threads?: {
    readonly storeUri: string;
    readonly storeSettings: Readonly<Record<string, unknown>>;
    /** Local folder of this node's key indexes (upsert tables). */
    readonly keyFolder: string;
  };
  /** Key indexes of upsert tables, when they outlive this process (simulation). */
  readonly keys?: KeyIndexes;
}

/** Starts the table work of this process. `stop()` commits or leaves staged, then ends the workers. */
export function startTableTopics(deps: TableTopicsDeps): TableTopics {
  const { settings } = deps;
  const threads = settings['table.threads'] || Math.max(2, availableParallelism() - 1);
  const runner = makeRunner(deps, threads);
  const upkeep = makeUpkeep(deps);
  const keys = makeKeys(deps);
  const { metadata, threads: _threads, shared, ...rest } = deps;
  const service = new TableTopics({
    ...rest,
    tables: metadata.tables,
    ...(shared === undefined ? {} : { placement: clusterPlacement(shared) }),
    runner,
    keys,
    lanes: deps.threads === undefined ? 1 : threads,
    jobsUnderWay: new Set(),
    maintenanceWorkers: upkeep,
  });
  return stoppingAlso(service, [runner, keys, ...upkeep]);
}

function makeKeys({ threads, logger, warehouse, ids, keys }: TableTopicsDeps): KeyIndexes {
  if (keys !== undefined) return keys;
  if (threads !== undefined) {
    return new KeyIndexClient({ ...threads, folder: threads.keyFolder }, logger);
  }
  return new KeyIndexHost({
    io: warehouse,
    ids,
    place: () => ({ database: ':memory:', runs: new MemoryRunFiles() }),
  });
}

function makeUpkeep(deps: TableTopicsDeps): (MaintenanceTasks & Partial<Component>)[] {
  const { threads, logger, settings, warehouse } = deps;
  if (threads === undefined) return [new MaintenanceWorker(warehouse)];
  const count = settings['table.compact.threads'];
  return Array.from({ length: count }, () => new MaintenanceThread(threads, logger));
}

function makeRunner(deps: TableTopicsDeps, threads: number): JobRunner & Partial<Component> {
  if (deps.threads !== undefined) {
    return new WorkerPool({ threads, worker: deps.threads, logger: deps.logger });
  }
  return new TableWorker((uri, parts) => deps.warehouse.write(uri, parts));
}

/** The workers end with the service, after it. */
function stoppingAlso(service: TableTopics, workers: readonly Partial<Component>[]): TableTopics {
  const stop = service.stop.bind(service);
  service.stop = async () => {
    await stop();
    await Promise.all(workers.map((worker) => worker.stop?.()));
  };
  return service;
}
