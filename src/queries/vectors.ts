// Deletion vectors as a table that a query can join: (uri of the data file, position).
import { BIGINT, DuckDBDataChunk, VARCHAR } from '@duckdb/node-api';
import { FloeError } from '../base/error.ts';
import {
  type FileReader,
  readDeletionVector,
  type ScanDelete,
  type ScanFile,
} from '../formats/iceberg/index.ts';
import { vectorBlob } from '../formats/iceberg/puffin.ts';
import type { Slot } from './engine.ts';
import { identifier } from './sql-text.ts';

const TABLE = '__floe_vectors';

/** Deleted rows that one query may have to know by position; each takes some 50 bytes. */
const MAX_POSITIONS = 20_000_000;

/** DuckDB's chunks hold this many rows. */
const CHUNK_ROWS = 2048;

/** Files of a plan, and rows that don't count for other reasons than deletes, by URI. */
export interface DeletedRows {
  readonly files: readonly ScanFile[];
  readonly gone: ReadonlyMap<string, Float64Array>;
}

/**
 * Loads the vectors of a plan's files. Returns the table's name, or undefined when there are none.
 * @throws FloeError `exhausted`, `corrupt`, or the store's.
 */
export async function loadVectors(
  slot: Slot,
  { files, gone }: DeletedRows,
  { io, suffix }: { readonly io: FileReader; readonly suffix: string },
): Promise<string | undefined> {
  const vectors: { readonly uri: string; readonly read: () => Promise<Float64Array> }[] =
    files.flatMap(({ file, positionDeletes }) =>
      positionDeletes
        .filter((one) => one.file.fileFormat === 'PUFFIN')
        .map((one) => ({ uri: file.filePath, read: () => readVector(one, io) })),
    );
  for (const [uri, rows] of gone) vectors.push({ uri, read: async () => rows });
  if (vectors.length === 0) return undefined;
  const name = TABLE + suffix;
  const table = `${identifier(slot.database)}.main.${identifier(name)}`;
  await slot.connection.run(`CREATE OR REPLACE TABLE ${table} (uri VARCHAR, pos BIGINT)`);
  const appender = await slot.connection.createAppender(name, 'main', slot.database);
  let total = 0;
  for (const { uri, read } of vectors) {
    const positions = await read();
    total += positions.length;
    if (total > MAX_POSITIONS) {
      throw new FloeError(
        'exhausted',
        `the query needs more than ${MAX_POSITIONS} deleted positions: add conditions, or compact the table`,
      );
    }
    for (let from = 0; from < positions.length; from += CHUNK_ROWS) {
      const part = positions.subarray(from, from + CHUNK_ROWS);
      const chunk = DuckDBDataChunk.create([VARCHAR, BIGINT], part.length);
      chunk.setColumnValues(0, new Array<string>(part.length).fill(uri));
      chunk.setColumnValues(1, Array.from(part, BigInt));
      appender.appendDataChunk(chunk);
    }
  }
  appender.closeSync();
  return table;
}

async function readVector({ file }: ScanDelete, io: FileReader): Promise<Float64Array> {
  return readDeletionVector(vectorBlob(await io.read(file.filePath), file), MAX_POSITIONS);
}
