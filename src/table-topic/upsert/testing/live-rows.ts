// Rows of a table's newest snapshot with its deletes applied: files by our scan planner, rows by a Parquet reader that
// isn't ours, equality deletes refused (tests of those compare with DuckDB).
import { zstdDecompressSync } from 'node:zlib';
import { parquetReadObjects } from 'hyparquet';
import { readDeletionVector } from '../../../formats/iceberg/deletion-vector.ts';
import { type FileReader, manifestSource, planScan } from '../../../formats/iceberg/index.ts';
import { vectorBlob } from '../../../formats/iceberg/puffin.ts';
import type { TableMetadata } from '../../../formats/iceberg/types.ts';

async function objects(io: FileReader, uri: string): Promise<Record<string, unknown>[]> {
  const bytes = await io.read(uri);
  return parquetReadObjects({
    file: bytes.slice().buffer as ArrayBuffer,
    compressors: { ZSTD: (input: Uint8Array) => zstdDecompressSync(input) },
  });
}

export async function liveRows(
  io: FileReader,
  metadata: TableMetadata,
): Promise<Record<string, unknown>[]> {
  const { files } = await planScan({ metadata, source: manifestSource(io) });
  const rows: Record<string, unknown>[] = [];
  for (const { file, positionDeletes, equalityDeletes } of files) {
    if (equalityDeletes.length > 0) throw new Error('equality deletes are not read here');
    const gone = new Set<number>();
    for (const { file: one } of positionDeletes) {
      if (one.fileFormat === 'PUFFIN') {
        const blob = vectorBlob(await io.read(one.filePath), one);
        for (const position of await readDeletionVector(blob, 1e6)) gone.add(position);
        continue;
      }
      for (const { file_path, pos } of await objects(io, one.filePath))
        if (file_path === file.filePath) gone.add(Number(pos));
    }
    const all = await objects(io, file.filePath);
    rows.push(...all.filter((_, position) => !gone.has(position)));
  }
  return rows;
}
