// A snapshot's live files as the index compares them: data files by path, delete files by path and offset.
// Manifests never change, so those that were read stay known in bounds. Not for: scans of queries (formats/iceberg/scan.ts).
import {
  bindTableSpec,
  type FileReader,
  type ManifestEntry,
  type ManifestFile,
  manifestsOf,
  readManifest,
  STATUS_DELETED,
} from '../../formats/iceberg/index.ts';
import type { Snapshot, TableMetadata } from '../../formats/iceberg/types.ts';
import { deleteKey, type IndexedDelete } from './key-store.ts';

export interface LiveFiles {
  readonly data: ReadonlyMap<string, IndexedDelete>;
  readonly deletes: ReadonlyMap<string, IndexedDelete>;
}

/** Entries kept over all manifests. */
const MAX_CACHED_ENTRIES = 100_000;

export class ManifestReader {
  readonly #io: FileReader;
  readonly #cache = new Map<string, readonly ManifestEntry[]>();
  #entries = 0;

  constructor(io: FileReader) {
    this.#io = io;
  }

  async live(metadata: TableMetadata, snapshot: Snapshot | undefined): Promise<LiveFiles> {
    const data = new Map<string, IndexedDelete>();
    const deletes = new Map<string, IndexedDelete>();
    for (const manifest of await manifestsOf(this.#io, snapshot)) {
      for (const { status, file, sequenceNumber = 0 } of await this.#read(metadata, manifest)) {
        if (status === STATUS_DELETED) continue;
        if (file.content === 0) data.set(file.filePath, { file, sequenceNumber });
        else deletes.set(deleteKey(file), { file, sequenceNumber });
      }
    }
    return { data, deletes };
  }

  async #read(metadata: TableMetadata, manifest: ManifestFile): Promise<readonly ManifestEntry[]> {
    const path = manifest.manifestPath;
    const known = this.#cache.get(path);
    if (known !== undefined) {
      this.#cache.delete(path);
      this.#cache.set(path, known);
      return known;
    }
    const spec = bindTableSpec(metadata, manifest.partitionSpecId);
    const entries = readManifest(await this.#io.read(path), manifest, spec);
    this.#cache.set(path, entries);
    this.#entries += entries.length;
    for (const [oldest, dropped] of this.#cache) {
      if (this.#entries <= MAX_CACHED_ENTRIES || oldest === path) break;
      this.#cache.delete(oldest);
      this.#entries -= dropped.length;
    }
    return entries;
  }
}
