// The rows of a snapshot with its deletes applied, by a Parquet reader that isn't ours. For tests of what rewrites tables.
import { readDeletionVector } from '../../formats/iceberg/deletion-vector.ts';
import {
  type FileReader,
  manifestSource,
  planScan,
  type ScanFile,
  type Snapshot,
  type TableMetadata,
} from '../../formats/iceberg/index.ts';
import { vectorBlob } from '../../formats/iceberg/puffin.ts';
import { parquetObjects } from './parquet-rows.ts';

export interface LiveRow {
  readonly filePath: string;
  readonly position: number;
  readonly values: Readonly<Record<string, unknown>>;
}

/** Every live row of `snapshot`, by default the current one. */
export async function liveRows(
  io: FileReader,
  metadata: TableMetadata,
  snapshot?: Snapshot,
): Promise<LiveRow[]> {
  const source = manifestSource(io);
  const { files } = await planScan({
    metadata,
    source,
    ...(snapshot === undefined ? {} : { snapshot }),
  });
  const rows: LiveRow[] = [];
  for (const scan of files) rows.push(...(await rowsOf(io, scan, metadata)));
  return rows;
}

async function rowsOf(io: FileReader, scan: ScanFile, metadata: TableMetadata): Promise<LiveRow[]> {
  const { filePath } = scan.file;
  const all = await parquetObjects(await io.read(filePath));
  const gone = await deletedPositions(io, scan);
  const equality = await equalityTests(io, scan, metadata);
  return all
    .map((values, position) => ({ filePath, position, values }))
    .filter(
      ({ position, values }) => !gone.has(position) && !equality.some((test) => test(values)),
    );
}

async function deletedPositions(io: FileReader, scan: ScanFile): Promise<Set<number>> {
  const gone = new Set<number>();
  for (const { file } of scan.positionDeletes) {
    const bytes = await io.read(file.filePath);
    if (file.fileFormat === 'PUFFIN') {
      for (const position of await readDeletionVector(vectorBlob(bytes, file), 1e6))
        gone.add(position);
    } else {
      for (const { file_path, pos } of await parquetObjects(bytes))
        if (file_path === scan.file.filePath) gone.add(Number(pos));
    }
  }
  return gone;
}

async function equalityTests(io: FileReader, scan: ScanFile, metadata: TableMetadata) {
  const schema = metadata.schemas.find(
    (one) => one['schema-id'] === metadata['current-schema-id'],
  )!;
  const tests: ((values: Readonly<Record<string, unknown>>) => boolean)[] = [];
  for (const { file } of scan.equalityDeletes) {
    const names = (file.equalityIds ?? []).map(
      (id) => schema.fields.find((f) => f.id === id)!.name,
    );
    const keyOf = (row: Readonly<Record<string, unknown>>) =>
      names.map((name) => String(row[name] ?? null)).join('|');
    const keys = new Set((await parquetObjects(await io.read(file.filePath))).map(keyOf));
    tests.push((values) => keys.has(keyOf(values)));
  }
  return tests;
}
