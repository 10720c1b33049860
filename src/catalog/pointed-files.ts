// What tables and views of the embedded catalog have in common, whatever their metadata says: a pointer in the metadata
// store and a metadata file that it points at. A file is written first, then the pointer moves by compare-and-set; the
// file of a move that was provably refused is deleted, one whose outcome is unknown is left.
// Not for: what is in the metadata (embedded.ts, views.ts).
import { FloeError, isFloeError } from '../base/error.ts';
import type { Logger } from '../base/log.ts';
import type { IdSource } from '../base/prng.ts';
import type { Values } from '../base/settings.ts';
import type {
  CatalogMetadata,
  PageRequest,
  PointerKind,
  PointerName,
} from '../metadata/catalog.ts';
import type { TableIdentifier } from './catalog.ts';
import { nameTaken, noNamespace } from './errors.ts';
import { MetadataFiles, type MetadataFormat, type Stored } from './metadata-files.ts';
import { NameLocks } from './name-locks.ts';
import { checkName, namespaceKey } from './names.ts';
import type { catalogSettings } from './settings.ts';
import type { Warehouse } from './warehouse.ts';

export interface PointedFilesOptions {
  readonly metadata: CatalogMetadata;
  readonly warehouse: Warehouse;
  readonly ids: IdSource;
  readonly logger: Logger;
  readonly settings: Values<typeof catalogSettings>;
}

/** A pointer that is to move. */
export interface PointedMove<T> {
  readonly identifier: TableIdentifier;
  /** Where it was seen; undefined for what doesn't exist yet. */
  readonly from: string | undefined;
  readonly to: Stored<T>;
}

export class PointedFiles<T> {
  readonly #kind: PointerKind;
  readonly #options: PointedFilesOptions;
  readonly #files: MetadataFiles<T>;
  readonly #locks = new NameLocks();

  constructor(kind: PointerKind, format: MetadataFormat<T>, options: PointedFilesOptions) {
    this.#kind = kind;
    this.#options = options;
    const cacheLimit = options.settings['catalog.metadata.cache.bytes'];
    this.#files = new MetadataFiles({ ...options, format, cacheLimit });
  }

  /** @throws FloeError `not-found` without the namespace. */
  async list(namespace: readonly string[], page?: PageRequest): Promise<TableIdentifier[]> {
    const { metadata } = this.#options;
    const names = await metadata.listPointers(this.#kind, namespaceKey(namespace), page);
    return names.map((name) => ({ namespace, name }));
  }

  /** The present file's URI without reading it; undefined when there is none of this kind. */
  async location(identifier: TableIdentifier): Promise<string | undefined> {
    const { namespace, name } = this.#pointer(identifier);
    const pointer = await this.#options.metadata.pointer(namespace, name);
    return pointer?.kind === this.#kind ? pointer.metadataLocation : undefined;
  }

  /** @throws FloeError as {@link MetadataFiles.read}. */
  read(location: string): Promise<Stored<T>> {
    return this.#files.read(location);
  }

  /** A file of somebody else's, to be registered. @throws FloeError `invalid` when it isn't readable metadata. */
  async readForeign(location: string): Promise<Stored<T>> {
    try {
      return await this.#files.read(location);
    } catch (caught) {
      if (!isFloeError(caught, 'corrupt', 'invalid', 'unsupported')) throw caught;
      throw new FloeError('invalid', `can't register ${location}: ${caught.message}`, {
        cause: caught,
      });
    }
  }

  /** @throws FloeError `conflict` when a table or view has the name, `not-found` without the namespace, `invalid`. */
  async checkFree(identifier: TableIdentifier): Promise<void> {
    const { metadata } = this.#options;
    checkName(identifier.name, `a ${this.#kind} name`);
    const { namespace, name } = this.#pointer(identifier);
    if ((await metadata.namespaceProperties(namespace)) === undefined)
      throw noNamespace(identifier.namespace);
    const present = await metadata.pointer(namespace, name);
    if (present !== undefined) throw nameTaken(this.#kind, present.kind, identifier);
  }

  /** Writes a version's file, which nothing points at yet. `version` counts from 0. */
  write(metadata: T, version: number): Promise<Stored<T>> {
    return this.#files.write(metadata, version);
  }

  /** Moves pointers to files written here: all or none. @throws FloeError as `movePointers`. */
  async move(moves: readonly PointedMove<T>[]): Promise<void> {
    try {
      await this.point(moves);
    } catch (caught) {
      if (isFloeError(caught, 'conflict', 'not-found', 'invalid'))
        await this.deleteQuietly(moves.map(({ to }) => to.location));
      throw caught;
    }
    for (const { to } of moves) this.#files.keep(to);
  }

  /** Moves pointers to files that are somebody else's, too: none is deleted whatever comes of it. */
  async point(moves: readonly PointedMove<T>[]): Promise<void> {
    await this.#options.metadata.movePointers(
      moves.map(({ identifier, from, to }) => ({
        ...this.#pointer(identifier),
        from,
        to: to.location,
      })),
    );
  }

  /**
   * Attempts of a commit to these, one commit at a time, each made afresh until none of their pointers moved meanwhile.
   * @throws FloeError `invalid` when one is named twice; `conflict` when others were faster every time; the attempt's.
   */
  commit<R>(identifiers: readonly TableIdentifier[], attempt: () => Promise<R>): Promise<R> {
    const names = identifiers.map((one) => JSON.stringify(this.#pointer(one)));
    if (new Set(names).size < names.length)
      throw new FloeError('invalid', `a commit names the same ${this.#kind} twice`);
    const attempts = this.#options.settings['catalog.commit.attempts'];
    return this.#locks.run(names, async () => {
      for (let made = 1; ; made += 1) {
        try {
          return await attempt();
        } catch (caught) {
          const moved = isFloeError(caught, 'conflict') && caught.details['reason'] === 'moved';
          if (!moved || made >= attempts) throw caught;
        }
      }
    });
  }

  async rename(from: TableIdentifier, to: TableIdentifier): Promise<void> {
    checkName(to.name, `a ${this.#kind} name`);
    await this.#options.metadata.renamePointer(this.#pointer(from), this.#pointer(to));
  }

  /** Forgets it; returns where its file is. @throws FloeError `not-found`. */
  async drop(identifier: TableIdentifier): Promise<string> {
    const dropped = await this.#options.metadata.dropPointer(this.#pointer(identifier));
    return dropped.metadataLocation;
  }

  /** A file that stays behind costs space, not truth: it is reported and nothing else. */
  async deleteQuietly(files: readonly string[]): Promise<void> {
    const { warehouse, logger } = this.#options;
    try {
      await warehouse.delete(files);
    } catch (caught) {
      const { message } = FloeError.from(caught);
      logger.warn({ files, error: message }, `metadata files of a ${this.#kind} left behind`);
    }
  }

  #pointer({ namespace, name }: TableIdentifier): PointerName {
    return { kind: this.#kind, namespace: namespaceKey(namespace), name };
  }
}
