// The embedded catalog: pointers in the metadata store, metadata files in the warehouse. A commit writes its metadata
// file first and then moves the pointer by compare-and-set; a file whose move was provably refused is deleted, one
// whose outcome is unknown is left. Not for: HTTP (http/routes.ts).
import type { Clock } from '../base/clock.ts';
import { FloeError, isFloeError } from '../base/error.ts';
import type { Logger } from '../base/log.ts';
import type { IdSource } from '../base/prng.ts';
import type { Values } from '../base/settings.ts';
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
import type { CatalogMetadata, PageRequest, PointerMove } from '../metadata/catalog.ts';
import type {
  Catalog,
  CommitTableRequest,
  CreateTableRequest,
  LoadedTable,
  ProposedTable,
  TableIdentifier,
} from './catalog.ts';
import { catalogError, nameTaken, noNamespace } from './errors.ts';
import { MetadataFiles, type StoredMetadata, TABLE_FORMAT, versionOf } from './metadata-files.ts';
import { NameLocks } from './name-locks.ts';
import { checkName, namespaceKey, namespaceLevels, ownLocation, shownTable } from './names.ts';
import { purgeTable } from './purge.ts';
import type { catalogSettings } from './settings.ts';
import { EmbeddedViews } from './views.ts';
import type { Warehouse } from './warehouse.ts';

export interface EmbeddedCatalogOptions {
  readonly metadata: CatalogMetadata;
  readonly warehouse: Warehouse;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly logger: Logger;
  readonly settings: Values<typeof catalogSettings>;
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
  readonly #files: MetadataFiles<TableMetadata>;
  readonly #options: EmbeddedCatalogOptions;
  readonly #locks = new NameLocks();

  constructor(options: EmbeddedCatalogOptions) {
    this.#options = options;
    this.#pointers = options.metadata;
    this.warehouse = options.warehouse;
    this.views = new EmbeddedViews(options);
    this.#files = new MetadataFiles({
      ...options,
      format: TABLE_FORMAT,
      cacheLimit: options.settings['catalog.metadata.cache.bytes'],
    });
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

  async listTables(
    namespace: readonly string[],
    page?: PageRequest,
  ): Promise<readonly TableIdentifier[]> {
    const names = await this.#pointers.listPointers('table', namespaceKey(namespace), page);
    return names.map((name) => ({ namespace, name }));
  }

  async tableExists(identifier: TableIdentifier): Promise<boolean> {
    return (await this.#pointer(identifier)) !== undefined;
  }

  async loadTable(identifier: TableIdentifier): Promise<StoredTable> {
    const pointer = await this.#pointer(identifier);
    if (pointer === undefined) throw noTable(identifier);
    return loaded(identifier, await this.#files.read(pointer.metadataLocation));
  }

  /** The present metadata file's URI without reading it; undefined when there is no such table. */
  async metadataLocation(identifier: TableIdentifier): Promise<string | undefined> {
    return (await this.#pointer(identifier))?.metadataLocation;
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
    await this.#checkFree(identifier);
    const stored = await this.#files.write(this.#newMetadata(namespace, request), 0);
    await this.#settle([{ ...pointerName(identifier), from: undefined, to: stored.location }]);
    return loaded(identifier, this.#files.keep(stored));
  }

  /** The metadata that a create would make. Nothing is kept: the client commits it with `assert-create`. */
  async stageTable(namespace: readonly string[], request: TableRequest): Promise<TableMetadata> {
    await this.#checkFree({ namespace, name: request.name });
    return this.#newMetadata(namespace, request);
  }

  async #checkFree(identifier: TableIdentifier): Promise<void> {
    checkName(identifier.name);
    await this.namespaceProperties(identifier.namespace);
    const { namespace, name } = pointerName(identifier);
    const present = await this.#pointers.pointer(namespace, name);
    if (present !== undefined) throw nameTaken('table', present.kind, identifier);
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
    const names = changes.map((change) => JSON.stringify(pointerName(change.identifier)));
    if (new Set(names).size < names.length)
      throw new FloeError('invalid', 'a commit names the same table twice');
    return this.#locks.run(names, async () => {
      const attempts = this.#options.settings['catalog.commit.attempts'];
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await this.#attempt(changes);
        } catch (caught) {
          const moved = isFloeError(caught, 'conflict') && caught.details['reason'] === 'moved';
          if (!moved || attempt >= attempts) throw caught;
        }
      }
    });
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
    await this.#settle(
      moves.map(({ change, before, stored }) => ({
        ...pointerName(change.identifier),
        from: before?.location,
        to: stored.location,
      })),
    );
    await this.#forget(prepared);
    return prepared.map(({ change, stored }) =>
      loaded(change.identifier, this.#files.keep(stored)),
    );
  }

  async #next(change: TableChange): Promise<NextState> {
    const { identifier, requirements, updates } = change;
    const pointer = await this.#pointer(identifier);
    const creates = requirements.some((one) => one.type === 'assert-create');
    if (pointer === undefined && !creates) throw noTable(identifier);
    if (pointer === undefined) await this.#checkFree(identifier);
    const before =
      pointer === undefined ? undefined : await this.#files.read(pointer.metadataLocation);
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
    return { ...next, stored: await this.#files.write(metadata, version) };
  }

  /** Moves the pointers; the files of a move that was provably refused go. */
  async #settle(moves: readonly PointerMove[]): Promise<void> {
    try {
      await this.#pointers.movePointers(moves);
    } catch (caught) {
      if (isFloeError(caught, 'conflict', 'not-found', 'invalid'))
        await this.#deleteQuietly(moves.map((move) => move.to));
      throw caught;
    }
  }

  async #discard(prepared: readonly PreparedChange[]): Promise<void> {
    await this.#deleteQuietly(
      prepared
        .filter((one) => one.stored.location !== one.before?.location)
        .map((one) => one.stored.location),
    );
  }

  /** Deletes metadata files that left the log, for tables that ask for it. */
  async #forget(prepared: readonly PreparedChange[]): Promise<void> {
    for (const { metadata, forgotten } of prepared) {
      if (metadata.properties?.['write.metadata.delete-after-commit.enabled'] === 'true')
        await this.#deleteQuietly(forgotten);
    }
  }

  /** A file that stays behind costs space, not truth: it is reported and nothing else. */
  async #deleteQuietly(uris: readonly string[]): Promise<void> {
    try {
      await this.warehouse.delete(uris);
    } catch (caught) {
      const { message } = FloeError.from(caught);
      this.#options.logger.warn({ files: uris, error: message }, 'metadata files left behind');
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
      from = (await this.#pointer(identifier))?.metadataLocation;
    } else {
      await this.#checkFree(identifier);
    }
    let stored: StoredMetadata;
    try {
      stored = await this.#files.read(metadataLocation);
    } catch (caught) {
      if (!isFloeError(caught, 'corrupt', 'invalid', 'unsupported')) throw caught;
      throw new FloeError('invalid', `can't register ${metadataLocation}: ${caught.message}`, {
        cause: caught,
      });
    }
    this.#checkLocation(stored.metadata);
    await this.#pointers.movePointers([{ ...pointerName(identifier), from, to: stored.location }]);
    return loaded(identifier, stored);
  }

  /** Forgets a table and leaves every file of it; returns it as it was last. */
  async unregisterTable(identifier: TableIdentifier): Promise<StoredTable> {
    // Read before it is dropped: what can't be read stays registered.
    await this.loadTable(identifier);
    const pointer = await this.#pointers.dropPointer(pointerName(identifier));
    return loaded(identifier, await this.#files.read(pointer.metadataLocation));
  }

  async renameTable(from: TableIdentifier, to: TableIdentifier): Promise<void> {
    checkName(to.name);
    await this.#pointers.renamePointer(pointerName(from), pointerName(to));
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
    const pointer = await this.#pointers.dropPointer(pointerName(identifier));
    if (!purge) return;
    try {
      const stored = await this.#files.read(pointer.metadataLocation);
      await purgeTable(this.warehouse, stored, this.#options.logger);
    } catch (caught) {
      const { message } = FloeError.from(caught);
      this.#options.logger.warn(
        { table: shownTable(identifier), metadata: pointer.metadataLocation, error: message },
        'purge stopped: files of the dropped table are left',
      );
    }
  }

  /** Undefined when there is no table of that name. */
  async #pointer(identifier: TableIdentifier) {
    const { namespace, name } = pointerName(identifier);
    const pointer = await this.#pointers.pointer(namespace, name);
    return pointer?.kind === 'table' ? pointer : undefined;
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

const pointerName = ({ namespace, name }: TableIdentifier) => ({
  kind: 'table' as const,
  namespace: namespaceKey(namespace),
  name,
});

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
