// Rows that a scan must leave out by their place (position deletes, deletion vectors, rows that the joined tail replaces) as
// a table of bitmaps, (chunk of a file, bits), made before the query. Bitmaps because a scan asks for every row: one that
// joins a few of them and looks at a bit pays half of what it pays to look each row up in a table of positions, and
// their memory is at most a bit for each row. Not for: which deletes apply to a file (the plan says), equality deletes (view.ts).
import { BIGINT, BIT, DuckDBBitValue, DuckDBDataChunk } from '@duckdb/node-api';
import { FloeError } from '../base/error.ts';
import {
  type FileReader,
  readDeletionVector,
  type ScanDelete,
  type ScanFile,
} from '../formats/iceberg/index.ts';
import { vectorBlob } from '../formats/iceberg/puffin.ts';
import type { Slot } from './engine.ts';
import { identifier, literal, pathLiteral, perFile } from './sql-text.ts';

/** Rows of a chunk: 2 ** 13, a KiB of bits. Smaller ones cost scans more, larger ones waste memory where deletes are few. */
const CHUNK_BITS = 13;
const CHUNK_ROWS = 2 ** CHUNK_BITS;

/** Rows that one deletion vector may delete. It takes eight bytes for each while it is unfolded. */
const MAX_POSITIONS = 20_000_000;

/** DuckDB's chunks hold at most this many rows. */
const BATCH = 2048;

/** Files of a plan, numbered by their place in it, and rows that don't count for other reasons than deletes, by URI. */
export interface DeletedRows {
  readonly files: readonly ScanFile[];
  readonly gone: ReadonlyMap<string, Float64Array>;
}

export interface DeletedRowsOptions {
  /** Reads Puffin files. */
  readonly io: FileReader;
  /** Where DuckDB finds a position delete file, by its URI. */
  readonly pathOf: (uri: string) => string;
  readonly table: DeletedTable;
}

export interface DeletedTable {
  readonly name: string;
  /** With its slot's database. */
  readonly qualified: string;
}

/** The names of a query's n-th table of deleted rows. */
export function deletedTable({ database }: Slot, n: number): DeletedTable {
  const name = `__floe_deleted${n}`;
  return { name, qualified: `${identifier(database)}.main.${identifier(name)}` };
}

/** Whether anything takes rows of the file out by their place. */
export const hasDeletedRows = ({ file, positionDeletes }: ScanFile, gone: DeletedRows['gone']) =>
  positionDeletes.length > 0 || gone.has(file.filePath);

/** A join that tells which rows of `t` were deleted, and the condition of the others. */
export function withoutDeleted({ qualified }: DeletedTable): {
  readonly join: string;
  readonly where: string;
} {
  return {
    join: `LEFT JOIN ${qualified} b ON b.chunk = ${chunkOf('t.__floe_file', 't.__floe_row')}`,
    where: `get_bit(b.bits, ${bitOf('t.__floe_row')}) IS DISTINCT FROM 1`,
  };
}

/** Above it a row's chunk would be another file's; no file has as many rows. */
const MAX_ROW = Number.MAX_SAFE_INTEGER;
const FILE_SHIFT = 53 - CHUNK_BITS;

const chunkOf = (file: string, row: string) =>
  `((${file}::BIGINT << ${FILE_SHIFT}) | (${row} >> ${CHUNK_BITS}))`;
const bitOf = (row: string) => `(${row} & ${CHUNK_ROWS - 1})::INTEGER`;

/**
 * Makes the table.
 * @throws FloeError `exhausted`, `corrupt`, `unsupported`, or the store's; DuckDB's own.
 */
export async function loadDeletedRows(
  { connection, database }: Slot,
  rows: DeletedRows,
  { io, pathOf, table }: DeletedRowsOptions,
): Promise<void> {
  const { name, qualified } = table;
  await connection.run(`CREATE OR REPLACE TABLE ${qualified} (chunk BIGINT, bits BIT)`);
  const appender = await connection.createAppender(name, 'main', database);
  for await (const bitmaps of readBitmaps(rows, io)) {
    const entries = [...bitmaps];
    for (let from = 0; from < entries.length; from += BATCH) {
      const batch = entries.slice(from, from + BATCH);
      const chunk = DuckDBDataChunk.create([BIGINT, BIT], batch.length);
      chunk.setColumnValues(
        0,
        batch.map(([key]) => key),
      );
      chunk.setColumnValues(
        1,
        batch.map(([, bits]) => new DuckDBBitValue(bits)),
      );
      appender.appendDataChunk(chunk);
    }
  }
  appender.closeSync();
  const listed = listedRows(rows.files, pathOf);
  // A scan joins the table: each chunk must be there once.
  const all = listed === undefined ? `FROM ${qualified}` : `FROM ${qualified} UNION ALL ${listed}`;
  try {
    await connection.run(
      `CREATE OR REPLACE TABLE ${qualified} AS SELECT chunk, bit_or(bits) AS bits FROM (${all}) GROUP BY chunk`,
    );
  } catch (caught) {
    throw notAsSpecified(caught, rows.files) ?? caught;
  }
}

/** Position delete files to be named in an error. */
const MAX_NAMED = 3;

/** The query isn't to blame when one of the files has not the columns that it should have. */
function notAsSpecified(caught: unknown, files: readonly ScanFile[]): FloeError | undefined {
  const text = caught instanceof Error ? caught.message : String(caught);
  if (!/^(Binder|Conversion) Error/.test(text)) return undefined;
  const uris = new Set(
    files.flatMap(({ positionDeletes }) =>
      positionDeletes.filter(isListed).map(({ file }) => file.filePath),
    ),
  );
  const named = [...uris].slice(0, MAX_NAMED).join(', ');
  const more = uris.size > MAX_NAMED ? ` and ${uris.size - MAX_NAMED} more` : '';
  const [what = text] = text.split('\n');
  return new FloeError(
    'corrupt',
    `a position delete file has no columns file_path (string) and pos (long): one of ${named}${more}; have its writer write it anew (${what})`,
    { cause: caught },
  );
}

const isListed = ({ file }: ScanDelete) => file.fileFormat !== 'PUFFIN';

type Bitmaps = ReadonlyMap<bigint, Uint8Array>;

/** Deletion vectors, one Puffin file after the other, each read once; then the rows that are gone. */
async function* readBitmaps({ files, gone }: DeletedRows, io: FileReader): AsyncGenerator<Bitmaps> {
  const vectors = files.flatMap(({ positionDeletes }, number) =>
    positionDeletes
      .filter(({ file }) => file.fileFormat === 'PUFFIN')
      .map(({ file }) => ({ file, number })),
  );
  for (const [uri, inside] of Map.groupBy(vectors, ({ file }) => file.filePath)) {
    const puffin = await io.read(uri);
    for (const { file, number } of inside)
      yield toBitmaps(number, await readDeletionVector(vectorBlob(puffin, file), MAX_POSITIONS));
  }
  for (const [number, { file }] of files.entries()) {
    const positions = gone.get(file.filePath);
    if (positions !== undefined) yield toBitmaps(number, positions);
  }
}

function toBitmaps(number: number, positions: Float64Array): Bitmaps {
  const bitmaps = new Map<number, Uint8Array>();
  for (const position of positions) {
    if (position > MAX_ROW) continue;
    const chunk = Math.floor(position / CHUNK_ROWS);
    let bits = bitmaps.get(chunk);
    if (bits === undefined) {
      // DuckDB's form: the number of unused bits, then the bits, the first one highest.
      bits = new Uint8Array(1 + CHUNK_ROWS / 8);
      bitmaps.set(chunk, bits);
    }
    const bit = position % CHUNK_ROWS;
    bits[1 + (bit >> 3)]! |= 0x80 >> (bit & 7);
  }
  const base = BigInt(number) << BigInt(FILE_SHIFT);
  return new Map([...bitmaps].map(([chunk, bits]) => [base | BigInt(chunk), bits]));
}

/** Bitmaps of position delete files, which name rows older than or as old as they are. Column names are the specification's. */
function listedRows(
  files: readonly ScanFile[],
  pathOf: (uri: string) => string,
): string | undefined {
  const listed = new Map<string, ScanDelete>();
  const concerned: string[] = [];
  for (const [number, { file, sequenceNumber, positionDeletes }] of files.entries()) {
    if (!positionDeletes.some(isListed)) continue;
    concerned.push(`(${literal(file.filePath)}, ${number}, ${sequenceNumber})`);
    for (const one of positionDeletes.filter(isListed)) listed.set(one.file.filePath, one);
  }
  if (listed.size === 0) return undefined;
  const deletes = [...listed.values()];
  const paths = deletes.map(({ file }) => pathLiteral(pathOf(parquetOnly(file).filePath)));
  const sequences = perFile(deletes.map((one) => one.sequenceNumber));
  return `SELECT ${chunkOf('f.file', 'd.pos')} AS chunk, bitstring_agg(${bitOf('d.pos')}, 0, ${CHUNK_ROWS - 1}) AS bits
    FROM (SELECT file_path, pos::BIGINT AS pos, ${sequences} AS seq
      FROM read_parquet([${paths.join(', ')}], hive_partitioning = false)) d
    JOIN (VALUES ${concerned.join(', ')}) f(uri, file, seq) ON d.file_path = f.uri AND d.seq >= f.seq
    WHERE d.pos BETWEEN 0 AND ${MAX_ROW} GROUP BY 1`;
}

/** @throws FloeError `unsupported` for delete files of other formats. */
export function parquetOnly(file: ScanDelete['file']): ScanDelete['file'] {
  if (file.fileFormat === 'PARQUET') return file;
  throw new FloeError(
    'unsupported',
    `${file.fileFormat} delete files can't be read here: ${file.filePath}`,
  );
}
