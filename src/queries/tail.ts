// Rows that a topic's log has and the snapshot hasn't, joined to a scan (rule K6): the source gives them as Parquet
// bytes, here they become local files that DuckDB reads beside the table's own, and rows of the snapshot that the tail
// replaces or deletes are left out by position. Each record is seen once: both sides split at the snapshot's offsets.
// Not for: decoding records (table-topic/ does, behind TailSource).
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../base/clock.ts';
import type { LoadedTable, TableIdentifier } from '../catalog/catalog.ts';
import type { DataFile, ScanFile, TableMetadata } from '../formats/iceberg/index.ts';

export interface Tail {
  readonly files: readonly { readonly file: DataFile; readonly bytes: Uint8Array }[];
  /** Positions that don't count, by path of a data file or of one of `files`. */
  readonly gone: ReadonlyMap<string, Float64Array>;
}

export interface TailSource {
  /** `behind`: load the table anew and ask again. Undefined: nobody here fills that table. */
  read(identifier: TableIdentifier, metadata: TableMetadata): Promise<Tail | 'behind' | undefined>;
}

/** Times that a table which moves on is loaded anew for its tail; then the query sees what is committed. */
const ATTEMPTS = 10;
const RETRY_MS = 20;

/** The table and the tail that belongs to exactly its snapshot. */
export async function loadWithTail(
  load: () => Promise<LoadedTable>,
  source: TailSource | undefined,
  clock: Clock,
): Promise<{ readonly table: LoadedTable; readonly tail: Tail | undefined }> {
  let table = await load();
  for (let attempt = 1; source !== undefined; attempt += 1) {
    const tail = await source.read(table.identifier, table.metadata);
    if (tail !== 'behind') return { table, tail };
    if (attempt === ATTEMPTS) break;
    await clock.sleep(RETRY_MS);
    table = await load();
  }
  return { table, tail: undefined };
}

/** A tail on the disk for as long as one query runs. */
export interface PlacedTail {
  readonly files: readonly ScanFile[];
  /** Undefined for a file that isn't the tail's. */
  pathOf(uri: string): string | undefined;
  close(): Promise<void>;
}

/** Later than any sequence number: no delete of the table concerns the tail. */
const NEWEST = Number.MAX_SAFE_INTEGER;

/** Writes the tail's files below `folder`, where DuckDB may read. */
export async function placeTail(tail: Tail, folder: string): Promise<PlacedTail> {
  await mkdir(folder, { recursive: true });
  const paths = new Map<string, string>();
  for (const { file, bytes } of tail.files) {
    const path = join(folder, file.filePath.replaceAll(/[^A-Za-z0-9.-]/g, '_'));
    paths.set(file.filePath, path);
    await writeFile(path, bytes);
  }
  return {
    files: tail.files.map(({ file }) => ({
      file,
      sequenceNumber: NEWEST,
      positionDeletes: [],
      equalityDeletes: [],
    })),
    pathOf: (uri) => paths.get(uri),
    close: async () => {
      for (const path of paths.values()) await rm(path, { force: true });
    },
  };
}
