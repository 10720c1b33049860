// Random JSON Schemas and values of them: decoded by us straight into columns, written to Parquet, read by hyparquet;
// equal to what JSON.parse reads, cell for cell.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TableColumns } from '../../src/formats/arrow/table-columns.ts';
import { commitForTest } from '../../src/formats/arrow/testing.ts';
import { compileJsonSchemaDecoder } from '../../src/formats/json-schema/decoder.ts';
import { jsonSchemaShape } from '../../src/formats/json-schema/shape.ts';
import type { Shape } from '../../src/formats/json-schema/shapes.ts';
import { shapeToProposed } from '../../src/formats/json-schema/to-iceberg.ts';
import { type Cell, mapCell, numberCell, rowsThroughParquet } from './parquet-cells.ts';

type Schema =
  | { readonly type: 'integer' | 'number' | 'boolean' | 'string' }
  | { readonly type: 'array'; readonly items: Schema }
  | { readonly type: 'object'; readonly additionalProperties: Schema }
  | {
      readonly type: 'object';
      readonly properties: Readonly<Record<string, Schema>>;
      readonly additionalProperties: false;
    };

const { root } = fc.letrec<{ schema: Schema; root: Schema }>((tie) => ({
  schema: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom<Schema>(
      { type: 'integer' },
      { type: 'number' },
      { type: 'boolean' },
      { type: 'string' },
    ),
    tie('root'),
    tie('schema').map((items): Schema => ({ type: 'array', items })),
    tie('schema').map((additionalProperties): Schema => ({ type: 'object', additionalProperties })),
  ),
  root: fc
    .dictionary(fc.constantFrom('a', 'b', 'c.d', 'ключ'), tie('schema'), {
      minKeys: 1,
      noNullPrototype: true,
    })
    .map((properties): Schema => ({ type: 'object', properties, additionalProperties: false })),
}));

/** Values as JSON text holds them, properties left out at times. */
function arbitraryOf(schema: Schema): fc.Arbitrary<unknown> {
  switch (schema.type) {
    case 'integer':
      return fc.maxSafeInteger();
    case 'number':
      return fc.double({ noNaN: true, noDefaultInfinity: true });
    case 'boolean':
      return fc.boolean();
    case 'string':
      return fc.string({ unit: 'grapheme', maxLength: 6 });
    case 'array':
      return fc.array(arbitraryOf(schema.items), { maxLength: 3 });
    case 'object':
      if (!('properties' in schema)) {
        const value = arbitraryOf(schema.additionalProperties);
        return fc.dictionary(fc.constantFrom('k', '', 'x y'), value, { noNullPrototype: true });
      }
      return fc.record(
        Object.fromEntries(
          Object.entries(schema.properties).map(([name, inner]) => [name, arbitraryOf(inner)]),
        ),
        { requiredKeys: [], noNullPrototype: true },
      );
  }
}

/** What JSON.parse read, in our plain form: DESIGN's type table said a second time. */
function expected(schema: Schema, value: unknown): Cell {
  if (value === undefined || value === null) return null;
  switch (schema.type) {
    case 'number':
      return numberCell(value as number);
    case 'boolean':
      return value as boolean;
    case 'array':
      return (value as unknown[]).map((item) => expected(schema.items, item));
    case 'object': {
      const object = value as Record<string, unknown>;
      if (!('properties' in schema)) {
        const inner = schema.additionalProperties;
        return mapCell(Object.entries(object).map(([key, one]) => [key, expected(inner, one)]));
      }
      return Object.fromEntries(
        Object.entries(schema.properties).map(([name, inner]) => [
          name,
          expected(inner, Object.hasOwn(object, name) ? object[name] : null),
        ]),
      );
    }
    default:
      return String(value);
  }
}

const cases = root.chain((schema) =>
  fc.record({
    schema: fc.constant(schema),
    values: fc.array(arbitraryOf(schema), { minLength: 1, maxLength: 4 }),
  }),
);

test('JSON Schema: our columns through Parquet are what JSON.parse reads', async () => {
  await fc.assert(
    fc.asyncProperty(cases, async ({ schema, values }) => {
      const shape = jsonSchemaShape(JSON.stringify(schema), [], { time: 'string' });
      const proposed = shapeToProposed(shape as Extract<Shape, { kind: 'struct' }>);
      const { schema: table, bindings } = commitForTest(proposed);
      const columns = new TableColumns(table);
      const decoder = compileJsonSchemaDecoder({ shape }, columns, bindings);
      const texts = values.map((value) => JSON.stringify(value));
      for (const text of texts) {
        const bytes = new TextEncoder().encode(text);
        expect(decoder.decode(bytes, 0, bytes.length), text).toBeUndefined();
        columns.endRow();
      }
      const rows = await rowsThroughParquet(columns);
      expect(rows).toEqual(texts.map((text) => expected(schema, JSON.parse(text))));
    }),
    { numRuns: 100, seed: 17 },
  );
});
