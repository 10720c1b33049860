// Views of the embedded catalog: a pointer and a metadata file each, as tables have, under the same names. What a view
// says in SQL is for the engines that know its dialect; nothing here reads it.
import type { Clock } from '../base/clock.ts';
import { isFloeError } from '../base/error.ts';
import {
  applyViewUpdates,
  checkViewRequirements,
  newViewMetadata,
  type Schema,
  type ViewMetadata,
  type ViewVersion,
} from '../formats/iceberg/index.ts';
import type { PageRequest } from '../metadata/catalog.ts';
import type { CommitTableRequest, TableIdentifier } from './catalog.ts';
import { catalogError } from './errors.ts';
import { type StoredView, VIEW_FORMAT, versionOf } from './metadata-files.ts';
import { ownLocation, shownTable } from './names.ts';
import { PointedFiles, type PointedFilesOptions } from './pointed-files.ts';

export interface EmbeddedViewsOptions extends PointedFilesOptions {
  readonly clock: Clock;
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
  readonly #pointed: PointedFiles<ViewMetadata>;

  constructor(options: EmbeddedViewsOptions) {
    this.#options = options;
    this.#pointed = new PointedFiles('view', VIEW_FORMAT, options);
  }

  /** @throws FloeError `not-found` without the namespace. */
  list(namespace: readonly string[], page?: PageRequest): Promise<TableIdentifier[]> {
    return this.#pointed.list(namespace, page);
  }

  async exists(identifier: TableIdentifier): Promise<boolean> {
    return (await this.#pointed.location(identifier)) !== undefined;
  }

  /** @throws FloeError `not-found`. */
  async load(identifier: TableIdentifier): Promise<StoredView> {
    const location = await this.#pointed.location(identifier);
    if (location === undefined) throw noView(identifier);
    return this.#pointed.read(location);
  }

  /** @throws FloeError `conflict` when a table or view has the name, `not-found` without the namespace, `invalid`. */
  async create(namespace: readonly string[], request: ViewRequest): Promise<StoredView> {
    const identifier = { namespace, name: request.name };
    await this.#pointed.checkFree(identifier);
    const { ids, clock, warehouse } = this.#options;
    const uuid = ids.uuid();
    const location = request.location ?? ownLocation(warehouse.uri, identifier, uuid);
    const metadata = checked(() =>
      newViewMetadata({ ...request, uuid, location, nowMs: clock.now() }),
    );
    this.#checkLocation(metadata);
    const to = await this.#pointed.write(metadata, 0);
    await this.#pointed.move([{ identifier, from: undefined, to }]);
    return to;
  }

  /**
   * Applies updates to a view.
   * @throws FloeError `not-found`, `conflict` (a requirement doesn't hold, or others were faster every time),
   *   `invalid`, `timeout` (outcome unknown).
   */
  commit(identifier: TableIdentifier, request: CommitTableRequest): Promise<StoredView> {
    return this.#pointed.commit([identifier], () => this.#attempt(identifier, request));
  }

  async #attempt(identifier: TableIdentifier, request: CommitTableRequest): Promise<StoredView> {
    const before = await this.load(identifier);
    checkViewRequirements(before.metadata, request.requirements);
    if (request.updates.length === 0) return before;
    const now = this.#options.clock.now();
    const metadata = checked(() => applyViewUpdates(before.metadata, request.updates, now));
    this.#checkLocation(metadata);
    const to = await this.#pointed.write(metadata, versionOf(before.location) + 1);
    await this.#pointed.move([{ identifier, from: before.location, to }]);
    return to;
  }

  /** Makes a view of an existing metadata file. @throws FloeError `invalid` when it isn't readable metadata. */
  async register(identifier: TableIdentifier, metadataLocation: string): Promise<StoredView> {
    await this.#pointed.checkFree(identifier);
    const to = await this.#pointed.readForeign(metadataLocation);
    this.#checkLocation(to.metadata);
    await this.#pointed.point([{ identifier, from: undefined, to }]);
    return to;
  }

  rename(from: TableIdentifier, to: TableIdentifier): Promise<void> {
    return this.#pointed.rename(from, to);
  }

  /** Its metadata files stay, as the specification has no purge of views: they can be registered again. */
  async drop(identifier: TableIdentifier): Promise<void> {
    await this.#pointed.drop(identifier);
  }

  #checkLocation(metadata: ViewMetadata): void {
    this.#options.warehouse.keyOf(`${VIEW_FORMAT.folder(metadata)}/x`);
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

const noView = (identifier: TableIdentifier) =>
  catalogError(
    'not-found',
    'NoSuchViewException',
    `View does not exist: ${shownTable(identifier)}`,
  );
