// Deletion vectors as a table that a query can join: (uri of the data file, position).
import { BIGINT, DuckDBDataChunk, VARCHAR } from '@duckdb/node-api';
import { FloeError } from '../base/error.ts';
import {
  type FileReader,
  readDeletionVector,
  type ScanDelete,
  type ScanFile,
} from '../formats/iceberg/index.ts';
import type { Slot } from './engine.ts';
import { identifier } from './sql-text.ts';

const TABLE = '__floe_vectors';

/** Deleted rows that one query may have to know by position; each takes some 50 bytes. */
const MAX_POSITIONS = 20_000_000;

/** First bytes of a Puffin file. */
const PUFFIN_MAGIC = 'PFA1';

/** DuckDB's chunks hold this many rows. */
const CHUNK_ROWS = 2048;

/**
 * Loads the vectors of a plan's files. Returns the table's name, or undefined when there are none.
 * @throws FloeError `exhausted`, `corrupt`, or the store's.
 */
export async function loadVectors(
  slot: Slot,
  files: readonly ScanFile[],
  io: FileReader,
  suffix: string,
): Promise<string | undefined> {
  const vectors = files.flatMap(({ file, positionDeletes }) =>
    positionDeletes
      .filter((one) => one.file.fileFormat === 'PUFFIN')
      .map((one) => ({ uri: file.filePath, vector: one })),
  );
  if (vectors.length === 0) return undefined;
  const name = TABLE + suffix;
  const table = `${identifier(slot.database)}.main.${identifier(name)}`;
  await slot.connection.run(`CREATE OR REPLACE TABLE ${table} (uri VARCHAR, pos BIGINT)`);
  const appender = await slot.connection.createAppender(name, 'main', slot.database);
  let total = 0;
  for (const { uri, vector } of vectors) {
    const positions = await readVector(vector, io);
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
  const { contentOffset: start, contentSizeInBytes: size } = file;
  if (start === undefined || size === undefined)
    throw new FloeError('corrupt', `deletion vector in ${file.filePath} without offset or size`);
  const puffin = await io.read(file.filePath);
  if (Buffer.from(puffin.subarray(0, 4)).toString('latin1') !== PUFFIN_MAGIC)
    throw new FloeError('corrupt', `${file.filePath} is no Puffin file`);
  return readDeletionVector(puffin.subarray(start, start + size), MAX_POSITIONS);
}
