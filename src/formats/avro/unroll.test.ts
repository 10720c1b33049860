import fc from 'fast-check';
import { expect, it } from 'vitest';
import { TableColumns } from '../arrow/table-columns.ts';
import { commitForTest } from '../arrow/testing.ts';
import { compileAvroParts, rowDecoder } from './decoder.ts';
import { type AvroRecord, parseAvroSchema } from './schema.ts';
import { avroToProposed } from './to-iceberg.ts';
import { unroll } from './unroll.ts';

const SCALARS = ['boolean', 'int', 'long', 'float', 'double', 'string', 'bytes'];

/** A scalar, alone or in a union with null on either side. */
const anyType = fc
  .tuple(fc.constantFrom(...SCALARS), fc.constantFrom('plain', 'null first', 'null last'))
  .map(([type, how]) =>
    how === 'plain' ? type : how === 'null first' ? ['null', type] : [type, 'null'],
  );

/** Bytes of values as they come, and what can be wrong with them. */
const anyPart = fc.oneof(
  { arbitrary: fc.constantFrom([0], [2], [4], [1]), weight: 6 },
  fc.uint8Array({ minLength: 1, maxLength: 12 }).map((bytes) => [...bytes]),
  fc.constantFrom([0xff], [0xff, 0x7f], [0x80, 0x80, 0x01], [0xfe, 0xff, 0xff, 0xff, 0x0f]),
  // Text of up to three bytes of length, some of it no UTF-8.
  fc
    .tuple(fc.constantFrom(0, 3, 24, 25, 63, 64, 200, 8191, 8192), fc.constantFrom(0x61, 0x80))
    .map(([length, byte]) => [...varint(length * 2), ...Array<number>(length).fill(byte)]),
);

function varint(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(value >>> 7)];
}

function decodeAll(schema: object, records: readonly Uint8Array[], written: boolean) {
  const parsed = parseAvroSchema(JSON.stringify(schema)) as AvroRecord;
  const committed = commitForTest(avroToProposed(parsed));
  const columns = new TableColumns(committed.schema);
  const children = compileAvroParts(columns, committed.bindings)
    .fields(parsed)
    .map((child) => (written ? child : { step: child.step, column: child.column }));
  const decoder = rowDecoder(unroll(children, columns), columns);
  const reasons = records.map((bytes) => {
    const reason = decoder.decode(bytes, 1, bytes.length - 1);
    if (reason === undefined) columns.endRow();
    return reason;
  });
  columns.align();
  const rows = columns.columns.map((column) =>
    Array.from({ length: columns.rowCount }, (_, row) => column.valueAt(row)),
  );
  return { reasons, rows, nulls: columns.columns.map((column) => column.nullCount) };
}

it('reads in place what the steps read, and refuses what they refuse', () => {
  const types = fc.array(anyType, { minLength: 1, maxLength: 8 });
  const bytes = fc
    .array(anyPart, { maxLength: 10 })
    .map((parts) => Uint8Array.from([7, ...parts.flat(), 7]));
  fc.assert(
    fc.property(types, fc.array(bytes, { minLength: 1, maxLength: 8 }), (fields, records) => {
      const schema = {
        type: 'record',
        name: 'R',
        fields: fields.map((type, i) => ({ name: `f${i}`, type })),
      };
      expect(decodeAll(schema, records, true)).toEqual(decodeAll(schema, records, false));
    }),
    { numRuns: 300, seed: 11 },
  );
});

it('reads the same past the first buffers, nulls included', () => {
  const schema = {
    type: 'record',
    name: 'R',
    fields: SCALARS.map((type) => ({ name: type, type: ['null', type] })),
  };
  const value = [
    2, 1, 2, 0x80, 1, 2, 0xff, 0x7f, 2, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 1, 2, 2, 97, 2, 4, 1, 2,
  ];
  const empty = SCALARS.map(() => 0);
  const records = Array.from({ length: 2_500 }, (_, n) =>
    Uint8Array.from([9, ...(n % 3 === 1 ? empty : value), 9]),
  );
  const read = decodeAll(schema, records, true);
  expect(read).toEqual(decodeAll(schema, records, false));
  expect(read.reasons.every((reason) => reason === undefined)).toBe(true);
});
