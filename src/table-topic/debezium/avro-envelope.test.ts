// What an envelope's decoder says beside the cells, which upserts resolve by.
import avsc from 'avsc';
import { expect, test } from 'vitest';
import { TableColumns } from '../../formats/arrow/table-columns.ts';
import { commitForTest } from '../../formats/arrow/testing.ts';
import { parseAvroSchema } from '../../formats/avro/schema.ts';
import { DEFAULT_TYPE_OPTIONS } from '../../formats/avro/to-iceberg.ts';
import { CHANGE, RowChange } from '../change.ts';
import { compileAvroEnvelope } from './avro-envelope.ts';
import { envelopeOf, proposedEnvelope } from './envelope.ts';
import { UNAVAILABLE } from './unavailable.ts';

const schema = {
  type: 'record',
  name: 'Envelope',
  fields: [
    {
      name: 'before',
      type: [
        'null',
        {
          type: 'record',
          name: 'Value',
          fields: [
            { name: 'id', type: 'int' },
            { name: 'big', type: ['null', 'string'] },
            { name: 'blob', type: ['null', 'bytes'] },
          ],
        },
      ],
    },
    { name: 'after', type: ['null', 'Value'] },
    { name: 'op', type: 'string' },
  ],
};

const type = avsc.Type.forSchema(schema as avsc.Schema, { wrapUnions: false });
const envelope = envelopeOf(parseAvroSchema(JSON.stringify(schema)));
const committed = commitForTest(proposedEnvelope(envelope, DEFAULT_TYPE_OPTIONS));

test('operation, image and the cells that the source didn’t send', () => {
  const columns = new TableColumns(committed.schema);
  const change = new RowChange();
  const decoder = compileAvroEnvelope(envelope, { columns, bindings: committed.bindings, change });
  const decode = (value: object) => {
    const bytes = type.toBuffer(value);
    const reason = decoder.decode(bytes, 0, bytes.length);
    if (reason === undefined) columns.endRow();
    return reason ?? [change.kind, change.hasImage, ...change.unavailable];
  };
  const id = (name: string) => committed.bindings.get(name)!;
  const row = { id: 1, big: 'x', blob: null };
  expect(decode({ before: null, after: row, op: 'r' })).toEqual([CHANGE.insert, true]);
  const unsent = { id: 1, big: UNAVAILABLE, blob: Buffer.from(UNAVAILABLE) };
  expect(decode({ before: row, after: unsent, op: 'u' })).toEqual([
    CHANGE.update,
    true,
    id('big'),
    id('blob'),
  ]);
  expect(decode({ before: row, after: null, op: 'd' })).toEqual([CHANGE.delete, true]);
  expect(decode({ before: null, after: null, op: 'd' })).toEqual([CHANGE.delete, false]);
  expect(decode({ before: null, after: null, op: 't' })).toEqual([CHANGE.truncate, false]);
  expect(decode({ before: null, after: null, op: 'u' })).toContain('without "after"');
  columns.align();
  // Nothing is lost: the cell says what came.
  expect(columns.byId(id('big'))!.valueAt(1)).toBe(UNAVAILABLE);
  expect(columns.rowCount).toBe(5);
});

test('every cut and every flipped byte is refused or decoded, never thrown', () => {
  const columns = new TableColumns(committed.schema);
  const target = { columns, bindings: committed.bindings, change: new RowChange() };
  const decoder = compileAvroEnvelope(envelope, target);
  const whole = type.toBuffer({
    before: { id: 5, big: 'former', blob: null },
    after: { id: 5, big: 'text', blob: Buffer.from([1, 2]) },
    op: 'u',
  });
  for (let end = 0; end < whole.length; end++) {
    expect(decoder.decode(whole, 0, end)).toBeTypeOf('string');
    expect(columns.rowCount).toBe(0);
  }
  for (let at = 0; at < whole.length; at++) {
    const bytes = Uint8Array.from(whole);
    bytes[at]! ^= 0xff;
    decoder.decode(bytes, 0, bytes.length);
    columns.rollback();
  }
  expect(decoder.decode(whole, 0, whole.length)).toBeUndefined();
});
