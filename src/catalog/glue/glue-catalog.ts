// AWS Glue as catalog: Glue keeps a pointer to a table's metadata file, with a version that each update must name; the
// files are ours to write. What a table is stands in its metadata file alone.
// An update of unknown outcome is looked up: by the pointer, then by the log of metadata files behind it (rule T5).
import {
  CreateDatabaseCommand,
  CreateTableCommand,
  DeleteTableCommand,
  GetDatabaseCommand,
  GetDatabasesCommand,
  GetTableCommand,
  GetTablesCommand,
  type GlueClient,
  type Table,
  UpdateTableCommand,
} from '@aws-sdk/client-glue';
import type { Clock } from '../../base/clock.ts';
import { FloeError, isFloeError } from '../../base/error.ts';
import type { Logger } from '../../base/log.ts';
import type { IdSource, Prng } from '../../base/prng.ts';
import { retry } from '../../base/retry.ts';
import {
  applyUpdates,
  checkRequirements,
  logPreviousMetadata,
  newTableMetadata,
  type TableMetadata,
} from '../../formats/iceberg/index.ts';
import type {
  Catalog,
  CommitTableRequest,
  CreateTableRequest,
  LoadedTable,
  ProposedTable,
  TableIdentifier,
} from '../catalog.ts';
import { Freshness } from '../freshness.ts';
import { MetadataFiles, type StoredMetadata, TABLE_FORMAT, versionOf } from '../metadata-files.ts';
import { ownLocation, shownTable } from '../names.ts';
import { purgeTable } from '../purge.ts';
import type { Warehouse } from '../warehouse.ts';
import type { GlueApi } from './glue-api.ts';
import { checkGlueTable, databaseOf, glueName } from './limits.ts';
import { isIceberg, METADATA_LOCATION, tableInput } from './table-input.ts';

export interface GlueCatalogOptions {
  readonly api: GlueApi;
  /** Where metadata files are written and tables lie. */
  readonly warehouse: Warehouse;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly ids: IdSource;
  readonly logger: Logger;
  /** AWS account of the Data Catalog; empty: the caller's own. */
  readonly catalogId: string;
  /** Glue keeps every version of a table unless told not to, and has a quota of them. */
  readonly skipArchive: boolean;
  readonly cacheBytes: number;
  readonly readAttempts: number;
  /** Attempts of a commit whose requirements still hold but whose table moved meanwhile. */
  readonly commitAttempts: number;
  readonly staleMs: number;
}

/** A table as Glue points to it, and what it points to. */
interface Found {
  readonly table: Table;
  readonly stored: StoredMetadata;
}

export class GlueCatalog implements Catalog {
  readonly #options: GlueCatalogOptions;
  readonly #files: MetadataFiles<TableMetadata>;
  readonly #fresh: Freshness;
  /** Of every request. */
  readonly #account: { readonly CatalogId?: string };

  constructor(options: GlueCatalogOptions) {
    this.#options = options;
    this.#fresh = new Freshness(options.clock, options.staleMs);
    this.#files = new MetadataFiles({
      ...options,
      format: TABLE_FORMAT,
      cacheLimit: options.cacheBytes,
    });
    this.#account = options.catalogId === '' ? {} : { CatalogId: options.catalogId };
  }

  checkTable(table: ProposedTable): void {
    checkGlueTable(table);
  }

  async ensureNamespace(
    namespace: readonly string[],
    properties: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    const name = databaseOf(namespace);
    if (await this.#databaseExists(name)) return;
    const { comment, location, ...parameters } = properties;
    const input = {
      ...this.#account,
      DatabaseInput: {
        Name: name,
        Parameters: parameters,
        ...(comment === undefined ? {} : { Description: comment }),
        ...(location === undefined ? {} : { LocationUri: location }),
      },
    };
    try {
      await this.#options.api.ask({ name: 'CreateDatabase', changes: true }, (client, signal) =>
        client.send(new CreateDatabaseCommand(input), { abortSignal: signal }),
      );
    } catch (caught) {
      // Somebody else made it meanwhile: it is there, which is all that was asked.
      if (!isFloeError(caught, 'conflict')) throw caught;
    }
  }

  async #databaseExists(name: string): Promise<boolean> {
    try {
      await this.#read('GetDatabase', (client, signal) =>
        client.send(new GetDatabaseCommand({ ...this.#account, Name: name }), {
          abortSignal: signal,
        }),
      );
      return true;
    } catch (caught) {
      if (isFloeError(caught, 'not-found')) return false;
      throw caught;
    }
  }

  /** Glue's databases have no databases below them. */
  async listNamespaces(parent: readonly string[]): Promise<string[][]> {
    if (parent.length > 0) return [];
    const found: string[][] = [];
    let next: string | undefined;
    do {
      const input = { ...this.#account, ...(next === undefined ? {} : { NextToken: next }) };
      const page = await this.#read('GetDatabases', (client, signal) =>
        client.send(new GetDatabasesCommand(input), { abortSignal: signal }),
      );
      found.push(...(page.DatabaseList ?? []).map(({ Name }) => [Name!]));
      next = page.NextToken === '' ? undefined : page.NextToken;
    } while (next !== undefined);
    return found;
  }

  async listTables(namespace: readonly string[]): Promise<TableIdentifier[]> {
    const DatabaseName = databaseOf(namespace);
    const found: TableIdentifier[] = [];
    let next: string | undefined;
    do {
      const token = next === undefined ? {} : { NextToken: next };
      const page = await this.#read('GetTables', (client, signal) =>
        client.send(new GetTablesCommand({ ...this.#account, DatabaseName, ...token }), {
          abortSignal: signal,
        }),
      );
      for (const table of page.TableList ?? [])
        if (isIceberg(table)) found.push({ namespace, name: table.Name! });
      next = page.NextToken === '' ? undefined : page.NextToken;
    } while (next !== undefined);
    return found;
  }

  async tableExists(identifier: TableIdentifier): Promise<boolean> {
    return (await this.#glueTable(identifier)) !== undefined;
  }

  async loadTable(identifier: TableIdentifier): Promise<LoadedTable> {
    return loaded(identifier, (await this.#find(identifier)).stored);
  }

  async createTable(
    namespace: readonly string[],
    { partitionSpec, writeOrder, ...request }: CreateTableRequest,
  ): Promise<LoadedTable> {
    const { api, ids, clock, warehouse } = this.#options;
    const identifier = { namespace, name: request.name };
    const name = glueName(identifier);
    const uuid = ids.uuid();
    const metadata = newTableMetadata({
      ...request,
      uuid,
      location: request.location ?? ownLocation(warehouse.uri, identifier, uuid),
      partitionFields: partitionSpec?.fields ?? [],
      sortFields: writeOrder?.fields ?? [],
      nowMs: clock.now(),
    });
    const stored = await this.#files.write(metadata, 0);
    const input = {
      ...this.#account,
      DatabaseName: name.DatabaseName,
      TableInput: tableInput({
        name: name.Name,
        metadata,
        location: stored.location,
        before: undefined,
      }),
    };
    try {
      await api.ask({ name: 'CreateTable', changes: true }, (client, signal) =>
        client.send(new CreateTableCommand(input), { abortSignal: signal }),
      );
    } catch (caught) {
      await this.#settleCreate(identifier, stored, FloeError.from(caught));
    }
    this.#fresh.forget(identifier);
    return loaded(identifier, this.#files.keep(stored));
  }

  /** Returns when the table was created after all. */
  async #settleCreate(
    identifier: TableIdentifier,
    stored: StoredMetadata,
    error: FloeError,
  ): Promise<void> {
    if (error.details['refused'] === true) {
      await this.#discard(stored);
      throw error;
    }
    const now = await this.#glueTable(identifier).catch(() => undefined);
    if (now === undefined) throw error;
    if (locationIn(now) === stored.location) return;
    // Ours may have been created, changed by others, or never have arrived: the caller looks at what is there.
    throw new FloeError(
      'timeout',
      `${error.message}; ${shownTable(identifier)} exists now, made by this call or by somebody else`,
      { cause: error },
    );
  }

  /** @throws FloeError as {@link Catalog} says; `conflict` only when Glue refused, or the log proves it. */
  async commitTable(
    identifier: TableIdentifier,
    request: CommitTableRequest,
  ): Promise<LoadedTable> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#attempt(identifier, request);
      } catch (caught) {
        // Glue said "somebody else was faster": whether the requirements still hold is another question.
        const raced = isFloeError(caught, 'conflict') && caught.details['raced'] === true;
        if (!raced || attempt >= this.#options.commitAttempts) throw caught;
      }
    }
  }

  async #attempt(
    identifier: TableIdentifier,
    { requirements, updates }: CommitTableRequest,
  ): Promise<LoadedTable> {
    const found = await this.#find(identifier);
    const { metadata: before } = found.stored;
    checkRequirements(before, requirements);
    if (updates.length === 0) return loaded(identifier, found.stored);
    const applied = applyUpdates(before, updates, this.#options.clock.now());
    const { metadata, forgotten } = logPreviousMetadata(applied, found.stored);
    const stored = await this.#files.write(metadata, versionOf(found.stored.location) + 1);
    await this.#update(identifier, found, stored);
    this.#fresh.note(identifier, metadata);
    if (metadata.properties?.['write.metadata.delete-after-commit.enabled'] === 'true')
      await this.#deleteQuietly(forgotten);
    return loaded(identifier, this.#files.keep(stored));
  }

  /** Moves Glue's pointer from `found` to `stored`, or says what became of it. */
  async #update(identifier: TableIdentifier, found: Found, stored: StoredMetadata): Promise<void> {
    const { api, skipArchive } = this.#options;
    const { DatabaseName, Name } = glueName(identifier);
    const { metadata, location } = stored;
    const input = {
      ...this.#account,
      DatabaseName,
      TableInput: tableInput({ name: Name, metadata, location, before: found.table }),
      SkipArchive: skipArchive,
      ...(found.table.VersionId === undefined ? {} : { VersionId: found.table.VersionId }),
    };
    try {
      await api.ask({ name: 'UpdateTable', changes: true }, (client, signal) =>
        client.send(new UpdateTableCommand(input), { abortSignal: signal }),
      );
    } catch (caught) {
      const error = FloeError.from(caught);
      if (error.details['refused'] !== true)
        return this.#settleUpdate(identifier, { found, stored, error });
      await this.#discard(stored);
      const raced = error.code === 'conflict';
      throw new FloeError(error.code, error.message, { cause: error, details: { raced } });
    }
  }

  /** Nobody knows whether an update was made: the table tells, if it can. Returns when it was. */
  async #settleUpdate(
    identifier: TableIdentifier,
    { found, stored, error }: { found: Found; stored: StoredMetadata; error: FloeError },
  ): Promise<void> {
    let now: Found;
    try {
      now = await this.#find(identifier);
    } catch {
      throw error;
    }
    if (now.stored.location === stored.location) return;
    const log = new Set(now.stored.metadata['metadata-log']?.map((one) => one['metadata-file']));
    if (log.has(stored.location)) return;
    // The log reaches back to where we started and passed us by: the version we named is gone for good.
    if (!log.has(found.stored.location)) throw error;
    await this.#discard(stored);
    throw new FloeError(
      'conflict',
      `${shownTable(identifier)} was changed by somebody else meanwhile: reload it and decide afresh`,
      { cause: error, details: { raced: true } },
    );
  }

  async dropTable(
    identifier: TableIdentifier,
    { purge }: { readonly purge: boolean },
  ): Promise<void> {
    const { api, warehouse, logger } = this.#options;
    const found = purge ? await this.#find(identifier) : undefined;
    const input = { ...this.#account, ...glueName(identifier) };
    await api.ask({ name: 'DeleteTable', changes: true }, (client, signal) =>
      client.send(new DeleteTableCommand(input), { abortSignal: signal }),
    );
    this.#fresh.forget(identifier);
    if (found !== undefined) await purgeTable(warehouse, found.stored, logger);
  }

  /** @throws FloeError `not-found`; `invalid` for a table of another kind; `unavailable` for a stale answer. */
  async #find(identifier: TableIdentifier): Promise<Found> {
    const table = await this.#glueTable(identifier);
    if (table === undefined) {
      throw new FloeError('not-found', `Table does not exist: ${shownTable(identifier)}`, {
        details: { type: 'NoSuchTableException' },
      });
    }
    const location = locationIn(table);
    if (!isIceberg(table) || location === undefined) {
      throw new FloeError(
        'invalid',
        `${shownTable(identifier)} is in Glue, but no Iceberg table: choose another name (table.topic.name)`,
      );
    }
    const stored = await this.#files.read(location);
    this.#fresh.check(identifier, stored.metadata);
    return { table, stored };
  }

  async #glueTable(identifier: TableIdentifier): Promise<Table | undefined> {
    const input = { ...this.#account, ...glueName(identifier) };
    try {
      const { Table: table } = await this.#read('GetTable', (client, signal) =>
        client.send(new GetTableCommand(input), { abortSignal: signal }),
      );
      return table;
    } catch (caught) {
      if (isFloeError(caught, 'not-found')) return undefined;
      throw caught;
    }
  }

  /** Repeated while Glue is away or throttles. */
  #read<T>(
    name: string,
    send: (client: GlueClient, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { api, clock, prng, readAttempts } = this.#options;
    return retry(
      { clock, prng, attempts: readAttempts, firstDelayMs: 100, maxDelayMs: 5_000 },
      () => api.ask({ name, changes: false }, send),
    );
  }

  #discard(stored: StoredMetadata): Promise<void> {
    return this.#deleteQuietly([stored.location]);
  }

  /** A file that stays behind costs space, not truth. */
  async #deleteQuietly(uris: readonly string[]): Promise<void> {
    const { warehouse, logger } = this.#options;
    try {
      await warehouse.delete(uris);
    } catch (caught) {
      const { message } = FloeError.from(caught);
      logger.warn({ files: uris, error: message }, 'metadata files left behind');
    }
  }
}

const locationIn = (table: Table) => table.Parameters?.[METADATA_LOCATION];

const loaded = (identifier: TableIdentifier, stored: StoredMetadata): LoadedTable => ({
  identifier,
  metadata: stored.metadata,
  metadataLocation: stored.location,
});
