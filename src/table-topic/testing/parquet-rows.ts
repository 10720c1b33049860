// Rows of a table's current snapshot, by a Parquet reader that isn't ours.
import { zstdDecompressSync } from 'node:zlib';
import { parquetReadObjects } from 'hyparquet';
import { type FileReader, manifestsOf, readManifests } from '../../formats/iceberg/index.ts';
import type { DataFile, TableMetadata } from '../../formats/iceberg/types.ts';

export async function liveFiles(io: FileReader, metadata: TableMetadata): Promise<DataFile[]> {
  const snapshot = metadata.snapshots?.find(
    (one) => one['snapshot-id'] === metadata['current-snapshot-id'],
  );
  const entries = await readManifests(io, metadata, await manifestsOf(io, snapshot));
  return entries
    .flat()
    .filter((entry) => entry.status !== 2)
    .map((entry) => entry.file);
}

/** URIs of data and delete files that some retained snapshot has live. */
export async function retainedFiles(io: FileReader, metadata: TableMetadata): Promise<Set<string>> {
  const found = new Set<string>();
  for (const snapshot of metadata.snapshots ?? []) {
    const entries = await readManifests(io, metadata, await manifestsOf(io, snapshot));
    for (const { status, file } of entries.flat()) if (status !== 2) found.add(file.filePath);
  }
  return found;
}

/** All rows of a Parquet file. */
export async function parquetObjects(bytes: Uint8Array): Promise<Record<string, unknown>[]> {
  return parquetReadObjects({
    file: bytes.slice().buffer as ArrayBuffer,
    compressors: { ZSTD: (input: Uint8Array) => zstdDecompressSync(input) },
  });
}

export async function readRows(
  io: FileReader,
  metadata: TableMetadata,
): Promise<Record<string, unknown>[]> {
  const rows: Record<string, unknown>[] = [];
  for (const file of await liveFiles(io, metadata)) {
    rows.push(...(await parquetObjects(await io.read(file.filePath))));
  }
  return rows;
}

/** `partition/offset` of every row, sorted. */
export async function coordinates(io: FileReader, metadata: TableMetadata): Promise<string[]> {
  const rows = await readRows(io, metadata);
  return rows.map((row) => `${row['_kafka_partition']}/${row['_kafka_offset']}`).toSorted();
}
