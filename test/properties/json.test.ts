// Random JSON: columns inferred and decoded by us, written to Parquet, read by hyparquet; the same content as JSON.parse
// gives, record by record: nothing lost, nothing made up, every value in a column of its type.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TableColumns } from '../../src/formats/arrow/table-columns.ts';
import { commitForTest } from '../../src/formats/arrow/testing.ts';
import { compileJsonDecoder } from '../../src/formats/json/decoder.ts';
import { JsonInference } from '../../src/formats/json/infer.ts';
import { type Cell, rowsThroughParquet } from './parquet-cells.ts';

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

const NAMES = ['a', 'b', 'C', 'x.y', 'n[0]', 'ключ'];

const { record } = fc.letrec<{ value: Json; record: Record<string, Json> }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.boolean(),
    fc.integer(),
    fc.maxSafeInteger(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.string({ unit: 'grapheme', maxLength: 6 }),
    fc.constant(null),
    tie('record'),
    fc.array(tie('value'), { maxLength: 3 }),
  ),
  record: fc.dictionary(fc.constantFrom(...NAMES), tie('value'), {
    maxKeys: 4,
    noNullPrototype: true,
  }),
}));

/** Scalars with the names on the way to them; types' suffixes and list positions aside, they must all be there. */
function contentOf(value: unknown, path = ''): string[] {
  if (value === null || value === undefined) return [];
  if (Array.isArray(value)) return value.flatMap((item) => contentOf(item, `${path}[]`));
  if (typeof value === 'string' && /^[[{]/.test(value)) return contentOf(parsed(value), path);
  if (typeof value === 'object') {
    return Object.entries(value).flatMap(([name, inner]) => contentOf(inner, `${path}/${name}`));
  }
  // −0 is written as 0, as JSON.stringify does.
  return [`${path}=${String(Object.is(value, -0) ? 0 : value)}`];
}

/** Lists whose elements disagree are kept as JSON text; so would text be that looks like it, on both sides. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return `text ${text}`;
  }
}

/** A cell as the value it was made from: variants under the field's own name. */
function contentOfRow(row: Record<string, Cell>): string[] {
  return contentOf(merged(row)).toSorted();
}

const VARIANT = /^(.*)__(boolean|long|double|number|string|struct|list|json)$/s;

function merged(cell: unknown): unknown {
  if (Array.isArray(cell)) return cell.map(merged);
  if (typeof cell !== 'object' || cell === null) return cell;
  const result: Record<string, unknown> = {};
  for (const [column, value] of Object.entries(cell)) {
    if (value === null) continue;
    const variant = VARIANT.exec(column);
    const name = variant?.[1] ?? column;
    result[name] =
      variant?.[2] === 'json' ? (JSON.parse(value as string) as unknown) : merged(value);
  }
  return result;
}

test('JSON: our columns through Parquet hold what JSON.parse reads', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(record, { minLength: 1, maxLength: 6 }), async (records) => {
      const texts = records.map((value) => new TextEncoder().encode(JSON.stringify(value)));
      const inference = new JsonInference();
      for (const bytes of texts) inference.add(bytes, 0, bytes.length);
      const { fields } = inference.proposed();
      // Parquet has no table without columns.
      fc.pre(fields.length > 0);
      const { schema, bindings } = commitForTest({ type: 'struct', fields });
      const columns = new TableColumns(schema);
      const decoder = compileJsonDecoder(columns, bindings);
      for (const bytes of texts) {
        expect(decoder.decode(bytes, 0, bytes.length)).toBeUndefined();
        columns.endRow();
      }
      const rows = await rowsThroughParquet(columns);
      const reference = texts.map((bytes) => JSON.parse(Buffer.from(bytes).toString()) as Json);
      expect(rows.map(contentOfRow)).toEqual(reference.map((value) => contentOf(value).toSorted()));
    }),
    { numRuns: 100, seed: 7 },
  );
});
