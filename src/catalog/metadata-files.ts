// Metadata files of tables or views: read (plain or gzipped) through a cache, written under names that every engine
// accepts. A metadata file never changes once written, so a cached one is never stale.
import { gunzipSync } from 'node:zlib';
import type { IdSource } from '../base/prng.ts';
import { SingleFlight } from '../base/queue.ts';
import {
  metadataFolder,
  parseTableMetadata,
  parseViewMetadata,
  serialiseTableMetadata,
  serialiseViewMetadata,
  type TableMetadata,
  type ViewMetadata,
} from '../formats/iceberg/index.ts';
import { catalogError } from './errors.ts';
import { isMissing, type Warehouse } from './warehouse.ts';

export interface Stored<T> {
  readonly metadata: T;
  readonly location: string;
  /** The metadata as JSON text. */
  readonly text: string;
}

export type StoredMetadata = Stored<TableMetadata>;
export type StoredView = Stored<ViewMetadata>;

/** How one kind of metadata becomes a file and is read back. */
export interface MetadataFormat<T> {
  /** For messages: `table`, `view`. */
  readonly thing: string;
  parse(text: string): T;
  serialise(metadata: T): string;
  /** The folder of the metadata files, an absolute URI without trailing slash. */
  folder(metadata: T): string;
}

export const TABLE_FORMAT: MetadataFormat<TableMetadata> = {
  thing: 'table',
  parse: parseTableMetadata,
  serialise: serialiseTableMetadata,
  folder: metadataFolder,
};

export const VIEW_FORMAT: MetadataFormat<ViewMetadata> = {
  thing: 'view',
  parse: parseViewMetadata,
  serialise: serialiseViewMetadata,
  folder: ({ location, properties }) =>
    (properties['write.metadata.path'] ?? `${location}/metadata`).replace(/\/+$/, ''),
};

/** Metadata text past this (characters) is refused: nobody could work with such a table. */
const MAX_METADATA_LENGTH = 512 * 1024 * 1024;

export interface MetadataFilesOptions<T> {
  readonly format: MetadataFormat<T>;
  readonly warehouse: Warehouse;
  readonly ids: IdSource;
  /** Characters of text kept parsed. */
  readonly cacheLimit: number;
}

export class MetadataFiles<T> {
  readonly #options: MetadataFilesOptions<T>;
  readonly #cache = new Map<string, Stored<T>>();
  readonly #reads = new SingleFlight<string, Stored<T>>();
  #cached = 0;

  constructor(options: MetadataFilesOptions<T>) {
    this.#options = options;
  }

  /** @throws FloeError `corrupt` (not metadata, or gone), `invalid` (outside the warehouse), or the store's. */
  read(location: string): Promise<Stored<T>> {
    const cached = this.#cache.get(location);
    if (cached !== undefined) {
      // Last used goes last: the first is what is forgotten.
      this.#cache.delete(location);
      this.#cache.set(location, cached);
      return Promise.resolve(cached);
    }
    return this.#reads.run(location, async () => this.#keep(await this.#load(location)));
  }

  async #load(location: string): Promise<Stored<T>> {
    const { warehouse, format } = this.#options;
    let bytes: Uint8Array;
    try {
      bytes = await warehouse.read(location);
    } catch (caught) {
      if (!isMissing(caught)) throw caught;
      // The table is there, its file is not: clients tell the two apart by the type.
      throw catalogError(
        'corrupt',
        'NotFoundException',
        `Failed to open input stream for file: ${location} (the ${format.thing}'s metadata file is gone)`,
      );
    }
    const plain = /\.gz\.metadata\.json$|\.metadata\.json\.gz$/.test(location)
      ? gunzipSync(bytes, { maxOutputLength: MAX_METADATA_LENGTH })
      : bytes;
    const metadata = format.parse(new TextDecoder().decode(plain));
    return { metadata, location, text: format.serialise(metadata) };
  }

  /** Writes a new version's file; `version` counts from 0. */
  async write(metadata: T, version: number): Promise<Stored<T>> {
    const { warehouse, format, ids } = this.#options;
    const name = `${String(version).padStart(5, '0')}-${ids.uuid()}.metadata.json`;
    const location = `${format.folder(metadata)}/${name}`;
    const text = format.serialise(metadata);
    await warehouse.write(location, new TextEncoder().encode(text));
    return { metadata, location, text };
  }

  /** Remembers what was written, once it is the table's. */
  keep(stored: Stored<T>): Stored<T> {
    return this.#keep(stored);
  }

  #keep(stored: Stored<T>): Stored<T> {
    if (stored.text.length > this.#options.cacheLimit || this.#cache.has(stored.location))
      return stored;
    this.#cache.set(stored.location, stored);
    this.#cached += stored.text.length;
    for (const [location, oldest] of this.#cache) {
      if (this.#cached <= this.#options.cacheLimit) break;
      this.#cache.delete(location);
      this.#cached -= oldest.text.length;
    }
    return stored;
  }
}

/** The number in a metadata file's name (`00012-…`, `v12…`); -1 when there is none. */
export function versionOf(location: string): number {
  const name = location.slice(location.lastIndexOf('/') + 1);
  const match = /^v?(\d{1,9})[-.]/.exec(name);
  return match === null ? -1 : Number(match[1]);
}
