// Metadata files: read (plain or gzipped) through a cache, written under names that every engine accepts.
// A metadata file never changes once written, so a cached one is never stale.
import { gunzipSync } from 'node:zlib';
import { FloeError } from '../base/error.ts';
import type { IdSource } from '../base/prng.ts';
import { SingleFlight } from '../base/queue.ts';
import {
  metadataFolder,
  parseTableMetadata,
  serialiseTableMetadata,
  type TableMetadata,
} from '../formats/iceberg/index.ts';
import { isMissing, type Warehouse } from './warehouse.ts';

export interface StoredMetadata {
  readonly metadata: TableMetadata;
  readonly location: string;
  /** The metadata as JSON text. */
  readonly text: string;
}

/** Metadata text past this (characters) is refused: nobody could work with such a table. */
const MAX_METADATA_LENGTH = 512 * 1024 * 1024;

export class MetadataFiles {
  readonly #warehouse: Warehouse;
  readonly #ids: IdSource;
  readonly #cacheLimit: number;
  readonly #cache = new Map<string, StoredMetadata>();
  readonly #reads = new SingleFlight<string, StoredMetadata>();
  #cached = 0;

  constructor(warehouse: Warehouse, ids: IdSource, cacheBytes: number) {
    this.#warehouse = warehouse;
    this.#ids = ids;
    this.#cacheLimit = cacheBytes;
  }

  /** @throws FloeError `corrupt` (not metadata, or gone), `invalid` (outside the warehouse), or the store's. */
  read(location: string): Promise<StoredMetadata> {
    const cached = this.#cache.get(location);
    if (cached !== undefined) {
      // Last used goes last: the first is what is forgotten.
      this.#cache.delete(location);
      this.#cache.set(location, cached);
      return Promise.resolve(cached);
    }
    return this.#reads.run(location, async () => this.#keep(await this.#load(location)));
  }

  async #load(location: string): Promise<StoredMetadata> {
    let bytes: Uint8Array;
    try {
      bytes = await this.#warehouse.read(location);
    } catch (caught) {
      if (!isMissing(caught)) throw caught;
      throw new FloeError('corrupt', `the table's metadata file ${location} is gone`, {
        cause: caught,
      });
    }
    const plain = /\.gz\.metadata\.json$|\.metadata\.json\.gz$/.test(location)
      ? gunzipSync(bytes, { maxOutputLength: MAX_METADATA_LENGTH })
      : bytes;
    const metadata = parseTableMetadata(new TextDecoder().decode(plain));
    return { metadata, location, text: serialiseTableMetadata(metadata) };
  }

  /** Writes a new version's file; `version` counts from 0. */
  async write(metadata: TableMetadata, version: number): Promise<StoredMetadata> {
    const name = `${String(version).padStart(5, '0')}-${this.#ids.uuid()}.metadata.json`;
    const location = `${metadataFolder(metadata)}/${name}`;
    const text = serialiseTableMetadata(metadata);
    await this.#warehouse.write(location, new TextEncoder().encode(text));
    return { metadata, location, text };
  }

  /** Remembers what was written, once it is the table's. */
  keep(stored: StoredMetadata): StoredMetadata {
    return this.#keep(stored);
  }

  #keep(stored: StoredMetadata): StoredMetadata {
    if (stored.text.length > this.#cacheLimit || this.#cache.has(stored.location)) return stored;
    this.#cache.set(stored.location, stored);
    this.#cached += stored.text.length;
    for (const [location, oldest] of this.#cache) {
      if (this.#cached <= this.#cacheLimit) break;
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
