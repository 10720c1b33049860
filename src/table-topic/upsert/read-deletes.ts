// What a position delete file names: positions by data file, ascending. Whoever wrote it.
import type { BytesColumn } from '../../formats/arrow/byte-columns.ts';
import type { Int64Column } from '../../formats/arrow/scalar-columns.ts';
import { DELETE_FILE_PATH_ID, DELETE_POSITION_ID } from '../../formats/iceberg/position-deletes.ts';
import { mappingOf, WHOLE_FILE } from '../../formats/iceberg/projection.ts';
import type { Schema } from '../../formats/iceberg/types.ts';
import { type KeyRequest, readKeyColumns } from './read-keys.ts';

const SCHEMA: Schema = {
  type: 'struct',
  'schema-id': 0,
  fields: [
    { id: DELETE_FILE_PATH_ID, name: 'file_path', required: true, type: 'string' },
    { id: DELETE_POSITION_ID, name: 'pos', required: true, type: 'long' },
  ],
};

const REQUEST: KeyRequest = {
  schema: SCHEMA,
  wanted: [
    { fieldId: DELETE_FILE_PATH_ID, type: 'string' },
    { fieldId: DELETE_POSITION_ID, type: 'long' },
  ],
  projection: { ...WHOLE_FILE, mapping: mappingOf(SCHEMA) },
};

const TWO_32 = 4_294_967_296;

/** Positions by data file, ascending. @throws FloeError `corrupt`. */
export async function readPositionDeletes(
  bytes: Uint8Array,
  name: string,
): Promise<Map<string, Float64Array>> {
  const lists = new Map<string, number[]>();
  for await (const { rowCount, columns } of readKeyColumns(bytes, name, REQUEST)) {
    const [paths, positions] = columns as readonly [BytesColumn, Int64Column];
    let last: Buffer | undefined;
    let list: number[] = [];
    for (let row = 0; row < rowCount; row += 1) {
      const path = paths.bytesAt(row);
      if (last === undefined || last.compare(path) !== 0) {
        last = Buffer.from(path);
        const text = last.toString();
        list = lists.get(text) ?? [];
        lists.set(text, list);
      }
      list.push(positions.halves[2 * row + 1]! * TWO_32 + (positions.halves[2 * row]! >>> 0));
    }
  }
  return new Map([...lists].map(([path, list]) => [path, Float64Array.from(list).sort()]));
}
