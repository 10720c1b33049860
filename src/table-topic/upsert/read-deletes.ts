// What a position delete file names: positions by data file. Whoever wrote it.
import type { BytesColumn } from '../../formats/arrow/byte-columns.ts';
import type { Int64Column } from '../../formats/arrow/scalar-columns.ts';
import { DELETE_FILE_PATH_ID, DELETE_POSITION_ID } from '../../formats/iceberg/position-deletes.ts';
import { readColumns } from '../../formats/parquet/read-columns.ts';

const COLUMNS = [
  { fieldId: DELETE_FILE_PATH_ID, path: ['file_path'], type: 'string' as const },
  { fieldId: DELETE_POSITION_ID, path: ['pos'], type: 'long' as const },
];

const TWO_32 = 4_294_967_296;

/** Positions by data file, ascending. @throws FloeError `corrupt`. */
export async function readPositionDeletes(
  bytes: Uint8Array,
  name: string,
): Promise<Map<string, Float64Array>> {
  const lists = new Map<string, number[]>();
  const file = {
    name,
    bytes: bytes.length,
    read: async (start: number, end: number) => bytes.subarray(start, end),
  };
  for await (const { rowCount, columns } of readColumns(file, COLUMNS)) {
    const [paths, positions] = columns as [BytesColumn, Int64Column];
    let last = '';
    let list: number[] = [];
    for (let row = 0; row < rowCount; row += 1) {
      const path = Buffer.from(paths.bytesAt(row)).toString();
      if (path !== last || row === 0) {
        last = path;
        list = lists.get(path) ?? [];
        lists.set(path, list);
      }
      list.push(positions.halves[2 * row + 1]! * TWO_32 + (positions.halves[2 * row]! >>> 0));
    }
  }
  return new Map([...lists].map(([path, list]) => [path, Float64Array.from(list).sort()]));
}
