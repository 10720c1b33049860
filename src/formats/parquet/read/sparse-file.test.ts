// Only the wanted chunks of the wanted row groups are fetched, and they read as the whole file does.
import { expect, test } from 'vitest';
import type { BytesColumn } from '../../arrow/byte-columns.ts';
import type { Int64Column } from '../../arrow/scalar-columns.ts';
import { TableColumns } from '../../arrow/table-columns.ts';
import type { Schema } from '../../iceberg/types.ts';
import { createChunkEncoder, ParquetWriter } from '../writer.ts';
import { SparseParquet } from './sparse-file.ts';

const schema: Schema = {
  type: 'struct',
  'schema-id': 0,
  fields: [
    { id: 1, name: 'n', required: false, type: 'long' },
    { id: 2, name: 'text', required: false, type: 'string' },
    { id: 3, name: 'other', required: false, type: 'string' },
  ],
};
const ROWS = 2_000;

function file(): Uint8Array {
  const writer = new ParquetWriter({ schema }, createChunkEncoder());
  for (let group = 0; group < 3; group += 1) {
    const columns = new TableColumns(schema);
    const [n, text, other] = columns.columns as [Int64Column, BytesColumn, BytesColumn];
    for (let row = 0; row < ROWS; row += 1) {
      n.append(group * ROWS + row);
      text.appendText(`text ${group} ${row}`);
      // Incompressible, so that reading it would show.
      other.appendText(
        Buffer.from(`${group}${row}${row * 7919}`)
          .toString('base64')
          .repeat(20),
      );
      columns.endRow();
    }
    writer.writeRowGroup(columns);
  }
  return new Uint8Array(Buffer.concat(writer.finish().parts));
}

test('one column of one row group', async () => {
  const whole = file();
  let fetched = 0;
  const sparse = await SparseParquet.open(whole.length, async (start, end) => {
    fetched += end - start;
    return whole.subarray(start, end);
  });
  const wanted = (id: number) => id === 2;
  await sparse.fetch(1, wanted);
  const columns = new TableColumns(schema);
  sparse.reader.readRowGroup(1, columns, wanted);
  columns.align();
  expect(columns.rowCount).toBe(ROWS);
  expect(columns.byId(2)!.valueAt(17)).toBe('text 1 17');
  expect(columns.byId(1)!.valueAt(17)).toBeNull();
  expect(fetched).toBeLessThan(100 * 2 ** 10);
});

test('a file cut short is corrupt, and so is a store that gives less', async () => {
  const whole = file();
  const cut = whole.subarray(0, whole.length - 5);
  const read = async (start: number, end: number) => cut.subarray(start, end);
  await expect(SparseParquet.open(cut.length, read)).rejects.toMatchObject({ code: 'corrupt' });
  await expect(SparseParquet.open(whole.length, read)).rejects.toMatchObject({ code: 'corrupt' });
  const tiny = async () => new Uint8Array(3);
  await expect(SparseParquet.open(3, tiny)).rejects.toMatchObject({ code: 'corrupt' });
});
