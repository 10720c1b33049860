// Which rows of a data file are deleted: by position delete files (v2), deletion vectors (v3) and other writers'
// equality deletes. Delete files are read once for all data files of a job.
// Source: Iceberg table spec, "Delete Formats", "Scan Planning".
import { FloeError } from '../../base/error.ts';
import type { BytesColumn } from '../../formats/arrow/byte-columns.ts';
import type { Int64Column } from '../../formats/arrow/scalar-columns.ts';
import { TableColumns } from '../../formats/arrow/table-columns.ts';
import { readDeletionVector } from '../../formats/iceberg/deletion-vector.ts';
import { DELETE_FILE_PATH_ID, DELETE_POSITION_ID } from '../../formats/iceberg/position-deletes.ts';
import { vectorBlob } from '../../formats/iceberg/puffin.ts';
import type { ScanDelete, ScanFile } from '../../formats/iceberg/scan.ts';
import { findField } from '../../formats/iceberg/schema.ts';
import type { FileReader } from '../../formats/iceberg/table-files.ts';
import type { DataFile, NestedField, Schema } from '../../formats/iceberg/types.ts';
import { ParquetReader } from '../../formats/parquet/read/reader.ts';

const TWO_32 = 4_294_967_296;

const POSITION_SCHEMA: Schema = {
  type: 'struct',
  'schema-id': 0,
  fields: [
    { id: DELETE_FILE_PATH_ID, name: 'file_path', required: true, type: 'string' },
    { id: DELETE_POSITION_ID, name: 'pos', required: true, type: 'long' },
  ],
};

/** Positions by data file, in the order found. @throws FloeError `corrupt`, `unsupported`. */
export function readPositionDeletes(bytes: Uint8Array): Map<string, Float64Array> {
  const reader = new ParquetReader(bytes);
  const lists = new Map<string, number[]>();
  const columns = new TableColumns(POSITION_SCHEMA);
  for (const index of reader.rowGroups.keys()) {
    columns.clear();
    reader.readRowGroup(index, columns);
    const [paths, positions] = columns.columns as readonly [BytesColumn, Int64Column];
    let last: Buffer | undefined;
    let list: number[] = [];
    for (let row = 0; row < columns.rowCount; row += 1) {
      const path = paths.bytesAt(row);
      if (last === undefined || last.compare(path) !== 0) {
        last = Buffer.from(path);
        const name = last.toString();
        list = lists.get(name) ?? [];
        lists.set(name, list);
      }
      list.push(positions.halves[2 * row + 1]! * TWO_32 + (positions.halves[2 * row]! >>> 0));
    }
  }
  return new Map([...lists].map(([path, list]) => [path, Float64Array.from(list)]));
}

/** Delete files of one job; each is read once. */
export class DeleteFiles {
  readonly #io: FileReader;
  readonly #positions = new Map<string, Promise<Map<string, Float64Array>>>();
  readonly #puffins = new Map<string, Promise<Uint8Array>>();
  readonly #equality = new Map<string, Promise<EqualityKeys>>();

  constructor(io: FileReader) {
    this.#io = io;
  }

  /** Positions of `dataFile` that these delete files name, in any order, maybe more than once. */
  async positions(dataFile: DataFile, deletes: readonly ScanDelete[]): Promise<Float64Array[]> {
    const found: Float64Array[] = [];
    for (const { file } of deletes) {
      if (file.fileFormat === 'PUFFIN') {
        const puffin = await once(this.#puffins, file.filePath, () => this.#io.read(file.filePath));
        found.push(await readDeletionVector(vectorBlob(puffin, file), dataFile.recordCount));
      } else {
        const positions = (await this.byFile(file)).get(dataFile.filePath);
        if (positions !== undefined) found.push(positions);
      }
    }
    return found;
  }

  /** All that a position delete file names. */
  byFile(file: DataFile): Promise<Map<string, Float64Array>> {
    return once(this.#positions, file.filePath, async () =>
      readPositionDeletes(await this.#io.read(file.filePath)),
    );
  }

  /** What tells the rows of `scan` that equality deletes take; undefined when there are none. */
  async equality(scan: ScanFile, schema: Schema): Promise<readonly EqualityKeys[] | undefined> {
    if (scan.equalityDeletes.length === 0) return undefined;
    const keys: EqualityKeys[] = [];
    for (const { file } of scan.equalityDeletes) {
      keys.push(
        await once(this.#equality, file.filePath, async () =>
          EqualityKeys.read(await this.#io.read(file.filePath), file, schema),
        ),
      );
    }
    return keys;
  }
}

function once<T>(map: Map<string, Promise<T>>, key: string, make: () => Promise<T>): Promise<T> {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}

/** The values of one equality delete file. */
export class EqualityKeys {
  readonly #ids: readonly number[];
  readonly #keys = new Set<string>();

  private constructor(ids: readonly number[]) {
    this.#ids = ids;
  }

  /** @throws FloeError `unsupported` when a column isn't in the present schema. */
  static read(bytes: Uint8Array, file: DataFile, schema: Schema): EqualityKeys {
    const ids = file.equalityIds ?? [];
    const fields = ids.map((id): NestedField => {
      const field = findField(schema, id);
      const top = schema.fields.find((one) => one.id === id);
      if (field === undefined || top === undefined || typeof top.type !== 'string') {
        throw new FloeError('unsupported', `equality deletes by column ${id}`, {
          details: { file: file.filePath },
        });
      }
      return { ...top, required: false };
    });
    const keys = new EqualityKeys(ids);
    const columns = new TableColumns({ type: 'struct', 'schema-id': 0, fields });
    const reader = new ParquetReader(bytes);
    for (const index of reader.rowGroups.keys()) {
      columns.clear();
      reader.readRowGroup(index, columns);
      columns.align();
      for (let row = 0; row < columns.rowCount; row += 1) keys.#keys.add(keyOf(columns, ids, row));
    }
    return keys;
  }

  has(columns: TableColumns, row: number): boolean {
    return this.#keys.has(keyOf(columns, this.#ids, row));
  }
}

/** A text that is equal exactly for equal values; null equals null (spec, "Equality Delete Files"). */
function keyOf(columns: TableColumns, ids: readonly number[], row: number): string {
  let key = '';
  for (const id of ids) {
    const value = columns.byId(id)!.valueAt(row);
    if (value === null) key += 'n,';
    else if (value instanceof Uint8Array) key += `b${Buffer.from(value).toString('base64')},`;
    else if (typeof value === 'string') key += `${JSON.stringify(value)},`;
    else key += `${Object.is(value, -0) ? 0 : String(value)},`;
  }
  return key;
}
