// Views of the embedded catalog: a pointer and a metadata file each, as tables have, under the same names. What a view
// says in SQL is for the engines that know its dialect; nothing here reads it.
import type { Clock } from '../base/clock.ts';
import { FloeError, isFloeError } from '../base/error.ts';
import type { Logger } from '../base/log.ts';
import type { IdSource } from '../base/prng.ts';
import type { Values } from '../base/settings.ts';
import {
  applyViewUpdates,
  checkViewRequirements,
  newViewMetadata,
  type Schema,
  type ViewMetadata,
  type ViewVersion,
} from '../formats/iceberg/index.ts';
import type { CatalogMetadata, PageRequest } from '../metadata/catalog.ts';
import type { CommitTableRequest, TableIdentifier } from './catalog.ts';
import { catalogError, nameTaken, noNamespace } from './errors.ts';
import { MetadataFiles, type StoredView, VIEW_FORMAT, versionOf } from './metadata-files.ts';
import { NameLocks } from './name-locks.ts';
import { checkName, namespaceKey, ownLocation, shownTable } from './names.ts';
import type { catalogSettings } from './settings.ts';
import type { Warehouse } from './warehouse.ts';

export interface EmbeddedViewsOptions {
  readonly metadata: CatalogMetadata;
  readonly warehouse: Warehouse;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly logger: Logger;
  readonly settings: Values<typeof catalogSettings>;
}

/** What a view is made from. */
export interface ViewRequest {
  readonly name: string;
  readonly location?: string;
  readonly schema: Schema;
  readonly version: ViewVersion;
  readonly properties: Readonly<Record<string, string>>;
}

export class EmbeddedViews {
  readonly #options: EmbeddedViewsOptions;
  readonly #files: MetadataFiles<ViewMetadata>;
  readonly #locks = new NameLocks();

  constructor(options: EmbeddedViewsOptions) {
    this.#options = options;
    this.#files = new MetadataFiles({
      ...options,
      format: VIEW_FORMAT,
      cacheLimit: options.settings['catalog.metadata.cache.bytes'],
    });
  }

  /** @throws FloeError `not-found` without the namespace. */
  async list(namespace: readonly string[], page?: PageRequest): Promise<TableIdentifier[]> {
    const { metadata } = this.#options;
    const names = await metadata.listPointers('view', namespaceKey(namespace), page);
    return names.map((name) => ({ namespace, name }));
  }

  async exists(identifier: TableIdentifier): Promise<boolean> {
    return (await this.#location(identifier)) !== undefined;
  }

  /** @throws FloeError `not-found`. */
  async load(identifier: TableIdentifier): Promise<StoredView> {
    const location = await this.#location(identifier);
    if (location === undefined) throw noView(identifier);
    return this.#files.read(location);
  }

  /** @throws FloeError `conflict` when a table or view has the name, `not-found` without the namespace, `invalid`. */
  async create(namespace: readonly string[], request: ViewRequest): Promise<StoredView> {
    const identifier = { namespace, name: request.name };
    await this.#checkFree(identifier);
    const { ids, clock, warehouse } = this.#options;
    const uuid = ids.uuid();
    const location = request.location ?? ownLocation(warehouse.uri, identifier, uuid);
    const metadata = checked(() =>
      newViewMetadata({ ...request, uuid, location, nowMs: clock.now() }),
    );
    this.#checkLocation(metadata);
    return this.#move(identifier, undefined, await this.#files.write(metadata, 0));
  }

  /**
   * Applies updates to a view.
   * @throws FloeError `not-found`, `conflict` (a requirement doesn't hold, or others were faster every time),
   *   `invalid`, `timeout` (outcome unknown).
   */
  commit(identifier: TableIdentifier, request: CommitTableRequest): Promise<StoredView> {
    const attempts = this.#options.settings['catalog.commit.attempts'];
    return this.#locks.run([JSON.stringify(pointerName(identifier))], async () => {
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await this.#attempt(identifier, request);
        } catch (caught) {
          const moved = isFloeError(caught, 'conflict') && caught.details['reason'] === 'moved';
          if (!moved || attempt >= attempts) throw caught;
        }
      }
    });
  }

  async #attempt(identifier: TableIdentifier, request: CommitTableRequest): Promise<StoredView> {
    const before = await this.load(identifier);
    checkViewRequirements(before.metadata, request.requirements);
    if (request.updates.length === 0) return before;
    const now = this.#options.clock.now();
    const metadata = checked(() => applyViewUpdates(before.metadata, request.updates, now));
    this.#checkLocation(metadata);
    const stored = await this.#files.write(metadata, versionOf(before.location) + 1);
    return this.#move(identifier, before.location, stored);
  }

  /** Makes a view of an existing metadata file. @throws FloeError `invalid` when it isn't readable metadata. */
  async register(identifier: TableIdentifier, metadataLocation: string): Promise<StoredView> {
    await this.#checkFree(identifier);
    let stored: StoredView;
    try {
      stored = await this.#files.read(metadataLocation);
    } catch (caught) {
      if (!isFloeError(caught, 'corrupt', 'invalid', 'unsupported')) throw caught;
      throw new FloeError('invalid', `can't register ${metadataLocation}: ${caught.message}`, {
        cause: caught,
      });
    }
    this.#checkLocation(stored.metadata);
    const name = pointerName(identifier);
    await this.#options.metadata.movePointers([{ ...name, from: undefined, to: stored.location }]);
    return stored;
  }

  async rename(from: TableIdentifier, to: TableIdentifier): Promise<void> {
    checkName(to.name, 'a view name');
    await this.#options.metadata.renamePointer(pointerName(from), pointerName(to));
  }

  /** Its metadata files stay, as the specification has no purge of views: they can be registered again. */
  async drop(identifier: TableIdentifier): Promise<void> {
    await this.#options.metadata.dropPointer(pointerName(identifier));
  }

  async #checkFree(identifier: TableIdentifier): Promise<void> {
    const { metadata } = this.#options;
    checkName(identifier.name, 'a view name');
    const { namespace, name } = pointerName(identifier);
    if ((await metadata.namespaceProperties(namespace)) === undefined)
      throw noNamespace(identifier.namespace);
    const present = await metadata.pointer(namespace, name);
    if (present !== undefined) throw nameTaken('view', present.kind, identifier);
  }

  #checkLocation(metadata: ViewMetadata): void {
    this.#options.warehouse.keyOf(`${VIEW_FORMAT.folder(metadata)}/x`);
  }

  /** Moves the pointer; the file of a move that was provably refused goes. */
  async #move(
    identifier: TableIdentifier,
    from: string | undefined,
    stored: StoredView,
  ): Promise<StoredView> {
    try {
      await this.#options.metadata.movePointers([
        { ...pointerName(identifier), from, to: stored.location },
      ]);
    } catch (caught) {
      if (isFloeError(caught, 'conflict', 'not-found', 'invalid'))
        await this.#deleteQuietly([stored.location]);
      throw caught;
    }
    return this.#files.keep(stored);
  }

  async #deleteQuietly(files: readonly string[]): Promise<void> {
    try {
      await this.#options.warehouse.delete(files);
    } catch (caught) {
      const { message } = FloeError.from(caught);
      this.#options.logger.warn({ files, error: message }, 'metadata files of a view left behind');
    }
  }

  async #location(identifier: TableIdentifier): Promise<string | undefined> {
    const { namespace, name } = pointerName(identifier);
    const pointer = await this.#options.metadata.pointer(namespace, name);
    return pointer?.kind === 'view' ? pointer.metadataLocation : undefined;
  }
}

/** What is wrong with a view is told as Java clients tell it when they see it themselves. */
function checked<T>(make: () => T): T {
  try {
    return make();
  } catch (caught) {
    if (!isFloeError(caught, 'invalid')) throw caught;
    throw catalogError('invalid', 'IllegalArgumentException', caught.message);
  }
}

const pointerName = ({ namespace, name }: TableIdentifier) => ({
  kind: 'view' as const,
  namespace: namespaceKey(namespace),
  name,
});

const noView = (identifier: TableIdentifier) =>
  catalogError(
    'not-found',
    'NoSuchViewException',
    `View does not exist: ${shownTable(identifier)}`,
  );
