// Puts the query service together over a catalog: files where they are for a local warehouse, copies for
// a remote one.
import { join } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { isFloeError } from '../base/error.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Values } from '../base/settings.ts';
import type { Catalog, TableIdentifier } from '../catalog/catalog.ts';
import type { Warehouse } from '../catalog/warehouse.ts';
import { CopiedFiles, LocalFiles } from './file-access.ts';
import type { TableDirectory } from './resolve.ts';
import { QueryService } from './service.ts';
import type { querySettings } from './settings.ts';
import type { TailSource } from './tail.ts';

export interface OpenQueryOptions {
  readonly catalog: Catalog;
  /** Reads the files of its tables. */
  readonly warehouse: Warehouse;
  /** Spilled results and copies of remote files go below it. */
  readonly dataDir: string;
  readonly settings: Values<typeof querySettings>;
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** The table of a topic, if it is a table topic; without it, topics answer by their table's name only. */
  readonly tableOfTopic?: (topic: string) => TableIdentifier | undefined;
  /** Rows of topics that aren't committed yet. */
  readonly tail?: TailSource;
}

/** Nothing of DuckDB is started before the first query. */
export async function openQueries(options: OpenQueryOptions): Promise<QueryService> {
  const { catalog, warehouse, dataDir, settings, clock, metrics } = options;
  const files = warehouse.uri.startsWith('file:')
    ? new LocalFiles(warehouse.uri)
    : await CopiedFiles.create(join(dataDir, 'sql-cache'), warehouse, settings['sql.cache.bytes']);
  return new QueryService({
    tables: directoryOf(catalog, options.tableOfTopic ?? (() => undefined)),
    loadTable: (identifier) => catalog.loadTable(identifier),
    io: warehouse,
    files,
    ...(options.tail === undefined ? {} : { tail: options.tail }),
    tailFolder: join(dataDir, 'sql-tail'),
    tempFolder: join(dataDir, 'sql-temp'),
    settings,
    clock,
    metrics,
  });
}

function directoryOf(
  catalog: Catalog,
  ofTopic: (topic: string) => TableIdentifier | undefined,
): TableDirectory {
  return {
    ofTopic,
    async exists(identifier) {
      try {
        return await catalog.tableExists(identifier);
      } catch (caught) {
        // A name that no table can have is simply not there.
        if (isFloeError(caught, 'invalid')) return false;
        throw caught;
      }
    },
    names: () => tablesBelow(catalog, []),
  };
}

async function tablesBelow(
  catalog: Catalog,
  parent: readonly string[],
): Promise<TableIdentifier[]> {
  const found: TableIdentifier[] = [];
  for (const namespace of await catalog.listNamespaces(parent)) {
    found.push(...(await catalog.listTables(namespace)));
    found.push(...(await tablesBelow(catalog, namespace)));
  }
  return found;
}
