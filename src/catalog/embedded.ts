// The embedded catalog: pointers in the metadata store, metadata files in the warehouse. A commit writes its metadata
// file first and then moves the pointer by compare-and-set (pointed-files.ts). Not for: HTTP (http/routes.ts).
import type { Clock } from '../base/clock.ts';
import { FloeError, isFloeError } from '../base/error.ts';
import {
  applyUpdates,
  checkRequirements,
  logPreviousMetadata,
  newTableMetadata,
  type PartitionFieldRequest,
  type Schema,
  type SortField,
  type TableMetadata,
} from '../formats/iceberg/index.ts';
import type { CatalogMetadata, PageRequest } from '../metadata/catalog.ts';
import type {
  Catalog,
  CommitTableRequest,
  CreateTableRequest,
  LoadedTable,
  ProposedTable,
  TableIdentifier,
} from './catalog.ts';
import { catalogError, noNamespace } from './errors.ts';
import { type StoredMetadata, TABLE_FORMAT, versionOf } from './metadata-files.ts';
import { checkName, namespaceKey, namespaceLevels, ownLocation, shownTable } from './names.ts';
import { PointedFiles, type PointedFilesOptions } from './pointed-files.ts';
import { purgeTable } from './purge.ts';
import { EmbeddedViews } from './views.ts';
import type { Warehouse } from './warehouse.ts';

export interface EmbeddedCatalogOptions extends PointedFilesOptions {
  readonly clock: Clock;
}

/** What a table is made from; ids in it are suggestions, the table's own are assigned afresh. */
export interface TableRequest {
  readonly name: string;
  readonly location?: string;
  readonly schema: Schema;
  readonly partitionFields?: readonly PartitionFieldRequest[];
  readonly sortFields?: readonly SortField[];
  readonly properties?: Readonly<Record<string, string>>;
}

/** One table's part of a commit over several. */
export interface TableChange extends CommitTableRequest {
  readonly identifier: TableIdentifier;
}

/** A table as loaded, with its metadata as JSON text beside it. */
export interface StoredTable extends LoadedTable {
  readonly text: string;
}

export class EmbeddedCatalog implements Catalog {
  readonly warehouse: Warehouse;
  readonly views: EmbeddedViews;
  readonly #pointers: CatalogMetadata;
  readonly #pointed: PointedFiles<TableMetadata>;
  readonly #options: EmbeddedCatalogOptions;

  constructor(options: EmbeddedCatalogOptions) {
    this.#options = options;
    this.#pointers = options.metadata;
    this.warehouse = options.warehouse;
    this.views = new EmbeddedViews(options);
    this.#pointed = new PointedFiles('table', TABLE_FORMAT, options);
  }

  // --- namespaces

  async createNamespace(
    namespace: readonly string[],
    properties: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    await this.#pointers.createNamespace(namespaceKey(namespace), properties);
  }

  async ensureNamespace(
    namespace: readonly string[],
    properties: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    for (let depth = 1; depth <= namespace.length; depth += 1) {
      const level = namespace.slice(0, depth);
      if ((await this.#pointers.namespaceProperties(namespaceKey(level))) !== undefined) continue;
      try {
        await this.createNamespace(level, depth === namespace.length ? properties : {});
      } catch (caught) {
        // Somebody else made it meanwhile: it is there, which is all that was asked.
        if (!isFloeError(caught, 'conflict')) throw caught;
      }
    }
  }

  async namespaceProperties(namespace: readonly string[]) {
    const properties = await this.#pointers.namespaceProperties(namespaceKey(namespace));
    if (properties === undefined) throw noNamespace(namespace);
    return properties;
  }

  async alterNamespace(
    namespace: readonly string[],
    changes: {
      readonly updates: Readonly<Record<string, string>>;
      readonly removals: readonly string[];
    },
  ) {
    return this.#pointers.alterNamespace(namespaceKey(namespace), changes);
  }

  async dropNamespace(namespace: readonly string[]): Promise<void> {
    await this.#pointers.dropNamespace(namespaceKey(namespace));
  }

  /** Namespaces directly below `parent` ([] for the top), in order of their names. */
  async listNamespaces(parent: readonly string[], page?: PageRequest): Promise<string[][]> {
    const key = parent.length === 0 ? '' : namespaceKey(parent);
    return (await this.#pointers.listNamespaces(key, page)).map(namespaceLevels);
  }

  // --- tables

  listTables(
    namespace: readonly string[],
    page?: PageRequest,
  ): Promise<readonly TableIdentifier[]> {
    return this.#pointed.list(namespace, page);
  }

  async tableExists(identifier: TableIdentifier): Promise<boolean> {
    return (await this.#pointed.location(identifier)) !== undefined;
  }

  async loadTable(identifier: TableIdentifier): Promise<StoredTable> {
    const location = await this.#pointed.location(identifier);
    if (location === undefined) throw noTable(identifier);
    return loaded(identifier, await this.#pointed.read(location));
  }

  /** The present metadata file's URI without reading it; undefined when there is no such table. */
  metadataLocation(identifier: TableIdentifier): Promise<string | undefined> {
    return this.#pointed.location(identifier);
  }

  async createTable(
    namespace: readonly string[],
    { partitionSpec, writeOrder, ...request }: CreateTableRequest,
  ): Promise<StoredTable> {
    return this.create(namespace, {
      ...request,
      ...(partitionSpec === undefined ? {} : { partitionFields: partitionSpec.fields }),
      ...(writeOrder === undefined ? {} : { sortFields: writeOrder.fields }),
    });
  }

  /** @throws FloeError `conflict` when the name is taken, `not-found` without the namespace, `invalid`. */
  async create(namespace: readonly string[], request: TableRequest): Promise<StoredTable> {
    const identifier = { namespace, name: request.name };
    await this.#pointed.checkFree(identifier);
    const to = await this.#pointed.write(this.#newMetadata(namespace, request), 0);
    await this.#pointed.move([{ identifier, from: undefined, to }]);
    return loaded(identifier, to);
  }

  /** The metadata that a create would make. Nothing is kept: the client commits it with `assert-create`. */
  async stageTable(namespace: readonly string[], request: TableRequest): Promise<TableMetadata> {
    await this.#pointed.checkFree({ namespace, name: request.name });
    return this.#newMetadata(namespace, request);
  }

  #newMetadata(namespace: readonly string[], request: TableRequest): TableMetadata {
    const uuid = this.#options.ids.uuid();
    const identifier = { namespace, name: request.name };
    const location = request.location ?? ownLocation(this.warehouse.uri, identifier, uuid);
    const metadata = newTableMetadata({
      uuid,
      location,
      schema: request.schema,
      properties: request.properties ?? {},
      partitionFields: request.partitionFields ?? [],
      sortFields: request.sortFields ?? [],
      nowMs: this.#options.clock.now(),
    });
    this.#checkLocation(metadata);
    return metadata;
  }

  #checkLocation(metadata: TableMetadata): void {
    this.warehouse.keyOf(`${metadata.location}/metadata`);
    const other = metadata.properties?.['write.metadata.path'];
    if (other !== undefined) this.warehouse.keyOf(`${other}/metadata`);
  }

  async commitTable(
    identifier: TableIdentifier,
    request: CommitTableRequest,
  ): Promise<StoredTable> {
    const [table] = await this.commitTables([{ ...request, identifier }]);
    return table!;
  }

  /**
   * Commits to several tables: all or nothing.
   * @throws FloeError `conflict` (a requirement doesn't hold, or others were faster every time), `invalid`,
   *   `not-found`, `timeout` (outcome unknown).
   */
  async commitTables(changes: readonly TableChange[]): Promise<StoredTable[]> {
    const identifiers = changes.map(({ identifier }) => identifier);
    return this.#pointed.commit(identifiers, () => this.#attempt(changes));
  }

  async #attempt(changes: readonly TableChange[]): Promise<StoredTable[]> {
    const prepared: PreparedChange[] = [];
    try {
      // Every requirement and update is checked before the first file is written.
      const next = await Promise.all(changes.map((change) => this.#next(change)));
      for (const one of next) prepared.push(await this.#written(one));
    } catch (caught) {
      await this.#discard(prepared);
      throw caught;
    }
    const moves = prepared.filter((one) => one.stored.location !== one.before?.location);
    await this.#pointed.move(
      moves.map(({ change, before, stored }) => ({
        identifier: change.identifier,
        from: before?.location,
        to: stored,
      })),
    );
    await this.#forget(prepared);
    return prepared.map(({ change, stored }) => loaded(change.identifier, stored));
  }

  async #next(change: TableChange): Promise<NextState> {
    const { identifier, requirements, updates } = change;
    const location = await this.#pointed.location(identifier);
    const creates = requirements.some((one) => one.type === 'assert-create');
    if (location === undefined && !creates) throw noTable(identifier);
    if (location === undefined) await this.#pointed.checkFree(identifier);
    const before = location === undefined ? undefined : await this.#pointed.read(location);
    checkRequirements(before?.metadata, requirements);
    if (before !== undefined && updates.length === 0)
      return { change, before, metadata: before.metadata, forgotten: [] };
    const applied = applyUpdates(before?.metadata, updates, this.#options.clock.now());
    this.#checkLocation(applied);
    return before === undefined
      ? { change, before, metadata: applied, forgotten: [] }
      : { change, before, ...logPreviousMetadata(applied, before) };
  }

  async #written(next: NextState): Promise<PreparedChange> {
    const { before, metadata } = next;
    if (before !== undefined && metadata === before.metadata) return { ...next, stored: before };
    const version = before === undefined ? 0 : versionOf(before.location) + 1;
    return { ...next, stored: await this.#pointed.write(metadata, version) };
  }

  async #discard(prepared: readonly PreparedChange[]): Promise<void> {
    await this.#pointed.deleteQuietly(
      prepared
        .filter((one) => one.stored.location !== one.before?.location)
        .map((one) => one.stored.location),
    );
  }

  /** Deletes metadata files that left the log, for tables that ask for it. */
  async #forget(prepared: readonly PreparedChange[]): Promise<void> {
    for (const { metadata, forgotten } of prepared) {
      if (metadata.properties?.['write.metadata.delete-after-commit.enabled'] === 'true')
        await this.#pointed.deleteQuietly(forgotten);
    }
  }

  /** Makes a table of an existing metadata file. @throws FloeError `invalid` when it isn't readable metadata. */
  async registerTable(
    identifier: TableIdentifier,
    metadataLocation: string,
    options: { readonly overwrite?: boolean } = {},
  ): Promise<StoredTable> {
    let from: string | undefined;
    if (options.overwrite === true) {
      checkName(identifier.name);
      await this.namespaceProperties(identifier.namespace);
      from = await this.#pointed.location(identifier);
    } else {
      await this.#pointed.checkFree(identifier);
    }
    const to = await this.#pointed.readForeign(metadataLocation);
    this.#checkLocation(to.metadata);
    await this.#pointed.point([{ identifier, from, to }]);
    return loaded(identifier, to);
  }

  /** Forgets a table and leaves every file of it; returns it as it was last. */
  async unregisterTable(identifier: TableIdentifier): Promise<StoredTable> {
    // Read before it is dropped: what can't be read stays registered.
    await this.loadTable(identifier);
    const location = await this.#pointed.drop(identifier);
    return loaded(identifier, await this.#pointed.read(location));
  }

  renameTable(from: TableIdentifier, to: TableIdentifier): Promise<void> {
    return this.#pointed.rename(from, to);
  }

  /** @throws FloeError `invalid` for a name that no table can have. */
  checkTable({ identifier }: ProposedTable): void {
    namespaceKey(identifier.namespace);
    checkName(identifier.name);
  }

  /** Files are deleted after the pointer is gone; a purge cut short leaves files, never a broken table. */
  async dropTable(
    identifier: TableIdentifier,
    { purge }: { readonly purge: boolean },
  ): Promise<void> {
    const location = await this.#pointed.drop(identifier);
    if (!purge) return;
    try {
      const stored = await this.#pointed.read(location);
      await purgeTable(this.warehouse, stored, this.#options.logger);
    } catch (caught) {
      const { message } = FloeError.from(caught);
      this.#options.logger.warn(
        { table: shownTable(identifier), metadata: location, error: message },
        'purge stopped: files of the dropped table are left',
      );
    }
  }
}

interface NextState {
  readonly change: TableChange;
  readonly before: StoredMetadata | undefined;
  readonly metadata: TableMetadata;
  readonly forgotten: readonly string[];
}

interface PreparedChange extends NextState {
  readonly stored: StoredMetadata;
}

const loaded = (identifier: TableIdentifier, stored: StoredMetadata): StoredTable => ({
  identifier,
  metadata: stored.metadata,
  metadataLocation: stored.location,
  text: stored.text,
});

const noTable = (identifier: TableIdentifier) =>
  catalogError(
    'not-found',
    'NoSuchTableException',
    `Table does not exist: ${shownTable(identifier)}`,
  );
