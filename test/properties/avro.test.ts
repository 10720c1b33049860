// Random Avro schemas and values: encoded by avsc, decoded by us straight into columns, written to Parquet, read by
// hyparquet; equal to what avsc decodes, cell for cell.
import avsc from 'avsc';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TableColumns } from '../../src/formats/arrow/table-columns.ts';
import { commitForTest } from '../../src/formats/arrow/testing.ts';
import { compileAvroDecoder } from '../../src/formats/avro/decoder.ts';
import { type AvroSchema, branchName, parseAvroSchema } from '../../src/formats/avro/schema.ts';
import { avroToProposed } from '../../src/formats/avro/to-iceberg.ts';
import {
  bytesCell,
  type Cell,
  decimalCell,
  mapCell,
  numberCell,
  rowsThroughParquet,
} from './parquet-cells.ts';

type Json = Record<string, unknown> | string | readonly Json[];

const NAMES = ['a', 'b', 'c', 'd', 'e'];

const SCALARS: readonly Json[] = [
  'boolean',
  'int',
  'long',
  'float',
  'double',
  'string',
  'bytes',
  { type: 'int', logicalType: 'date' },
  { type: 'int', logicalType: 'time-millis' },
  { type: 'long', logicalType: 'time-micros' },
  { type: 'long', logicalType: 'timestamp-millis' },
  { type: 'long', logicalType: 'timestamp-micros' },
  { type: 'long', logicalType: 'local-timestamp-micros' },
  { type: 'long', logicalType: 'timestamp-nanos' },
  { type: 'string', logicalType: 'uuid' },
  { type: 'bytes', logicalType: 'decimal', precision: 12, scale: 3 },
];

/** Schemas whose named types have no names yet. */
const { root } = fc.letrec<{ root: Json; type: Json; record: Json; simple: Json }>((tie) => ({
  simple: fc.oneof(
    fc.constantFrom(...SCALARS),
    fc.constant<Json>({ type: 'enum', symbols: ['A', 'B', 'C'] }),
    fc.constant<Json>({ type: 'fixed', size: 5 }),
    tie('record'),
  ),
  type: fc.oneof(
    { depthSize: 'small' },
    tie('simple'),
    tie('simple').map((inner): Json => ['null', inner]),
    fc.constant<Json>(['int', 'null', 'string', 'boolean']),
    tie('type').map((items): Json => ({ type: 'array', items })),
    tie('type').map((values): Json => ({ type: 'map', values })),
  ),
  record: fc.array(tie('type'), { minLength: 1, maxLength: 4 }).map(
    (types): Json => ({
      type: 'record',
      fields: types.map((type, i) => ({ name: NAMES[i]!, type })),
    }),
  ),
  root: tie('record'),
}));

/** Gives each named type a name of its own. */
function named(schema: Json): Json {
  let count = 0;
  const walk = (node: Json): Json => {
    if (typeof node === 'string') return node;
    if (Array.isArray(node)) return node.map(walk);
    const json = { ...(node as Record<string, unknown>) };
    if (['record', 'enum', 'fixed'].includes(json['type'] as string)) json['name'] = `N${count++}`;
    for (const key of ['items', 'values']) if (key in json) json[key] = walk(json[key] as Json);
    if ('fields' in json) {
      json['fields'] = (json['fields'] as { name: string; type: Json }[]).map((field) => ({
        ...field,
        type: walk(field.type),
      }));
    }
    return json;
  };
  return walk(schema);
}

const big = (bits: number) =>
  fc.bigInt({ min: -(2n ** BigInt(bits - 1)), max: 2n ** BigInt(bits - 1) - 1n });

/** Values as avsc takes them: unions wrapped, longs as bigints. */
function arbitraryOf(schema: AvroSchema): fc.Arbitrary<unknown> {
  if ('logical' in schema && schema.logical !== undefined) {
    switch (schema.logical.kind) {
      case 'date':
        return fc.integer();
      case 'time-millis':
        return fc.integer({ min: 0, max: 86_399_999 });
      case 'time-micros':
        return fc.bigInt({ min: 0n, max: 86_399_999_999n });
      case 'timestamp-millis':
        return big(50);
      case 'uuid':
        return fc.uuid();
      case 'decimal':
        return fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }).map((value) => {
          const bytes = Buffer.alloc(4);
          bytes.writeInt32BE(value);
          return bytes;
        });
      default:
        return big(64);
    }
  }
  switch (schema.kind) {
    case 'null':
      return fc.constant(null);
    case 'boolean':
      return fc.boolean();
    case 'int':
      return fc.integer();
    case 'long':
      return big(64);
    case 'float':
      return fc.float();
    case 'double':
      return fc.double();
    case 'string':
      return fc.string({ unit: 'grapheme', maxLength: 8 });
    case 'bytes':
      return fc.uint8Array({ maxLength: 8 }).map((bytes) => Buffer.from(bytes));
    case 'fixed':
      return fc
        .uint8Array({ minLength: schema.size, maxLength: schema.size })
        .map((bytes) => Buffer.from(bytes));
    case 'enum':
      return fc.constantFrom(...schema.symbols);
    case 'array':
      return fc.array(arbitraryOf(schema.items), { maxLength: 4 });
    case 'map':
      return fc.dictionary(fc.constantFrom('k', 'ключ', '', 'z'), arbitraryOf(schema.values), {
        noNullPrototype: true,
      });
    case 'union':
      return fc.oneof(
        ...schema.branches.map((branch) =>
          branch.kind === 'null'
            ? fc.constant(null)
            : arbitraryOf(branch).map((value) => ({ [branchName(branch)]: value })),
        ),
      );
    case 'record':
      return fc.record(
        Object.fromEntries(schema.fields.map((field) => [field.name, arbitraryOf(field.type)])),
      );
  }
}

const longs = avsc.types.LongType.__with({
  fromBuffer: (buffer: Buffer) => buffer.readBigInt64LE(),
  toBuffer: (value: bigint) => {
    const buffer = Buffer.alloc(8);
    buffer.writeBigInt64LE(value);
    return buffer;
  },
  fromJSON: BigInt,
  toJSON: Number,
  isValid: (value: unknown) => typeof value === 'bigint',
  compare: (a: bigint, b: bigint) => (a === b ? 0 : a < b ? -1 : 1),
});

/** avsc would make types of its own of annotated ones, not taking the registry's. */
const withoutLogical = (_key: string, value: unknown) =>
  (value as { logicalType?: string } | null)?.logicalType === undefined
    ? value
    : (value as { type: unknown }).type;

const pad = (value: bigint, width: number) => String(value).padStart(width, '0');

function timeText(micros: bigint): string {
  const seconds = micros / 1_000_000n;
  const parts = [seconds / 3_600n, (seconds / 60n) % 60n, seconds % 60n].map((part) =>
    pad(part, 2),
  );
  return `${parts.join(':')}.${pad(micros % 1_000_000n, 6)}`;
}

const floorDiv = (a: bigint, b: bigint) => (a % b !== 0n && a < 0n ? a / b - 1n : a / b);

/** What avsc decoded, in our plain form: DESIGN's type table said a second time. */
function expected(schema: AvroSchema, value: unknown): Cell {
  if ('logical' in schema && schema.logical !== undefined) {
    switch (schema.logical.kind) {
      case 'time-millis':
        return timeText(BigInt(value as number) * 1_000n);
      case 'time-micros':
        return timeText(value as bigint);
      case 'timestamp-millis':
        return String((value as bigint) * 1_000n);
      case 'timestamp-nanos':
        return String(floorDiv(value as bigint, 1_000n));
      case 'decimal':
        return decimalCell((value as Buffer).readInt32BE() / 10 ** schema.logical.scale);
      default:
        return String(value);
    }
  }
  switch (schema.kind) {
    case 'null':
      return null;
    case 'boolean':
      return value as boolean;
    case 'float':
    case 'double':
      return numberCell(value as number);
    case 'bytes':
    case 'fixed':
      return bytesCell(value as Uint8Array);
    case 'array':
      return (value as unknown[]).map((item) => expected(schema.items, item));
    case 'map':
      return mapCell(
        Object.entries(value as object).map(
          ([key, inner]) => [key, expected(schema.values, inner)] as const,
        ),
      );
    case 'union':
      return expectedUnion(schema.branches, value as Record<string, unknown> | null);
    case 'record':
      return Object.fromEntries(
        schema.fields.map((field) => [
          field.name,
          expected(field.type, (value as Record<string, unknown>)[field.name]),
        ]),
      );
    default:
      return String(value);
  }
}

/** One branch besides null is that type; several are a struct with the branch's field filled. */
function expectedUnion(
  branches: readonly AvroSchema[],
  value: Record<string, unknown> | null,
): Cell {
  if (value === null) return null;
  const [name, inner] = Object.entries(value)[0]!;
  const branch = branches.find((one) => branchName(one) === name)!;
  const filled = branches.filter((one) => one.kind !== 'null');
  if (filled.length === 1) return expected(branch, inner);
  return Object.fromEntries(
    filled.map((one) => [branchName(one), one === branch ? expected(one, inner) : null]),
  );
}

const cases = root.chain((json) => {
  const text = JSON.stringify(named(json));
  const schema = parseAvroSchema(text);
  return fc.record({
    text: fc.constant(text),
    schema: fc.constant(schema),
    values: fc.array(arbitraryOf(schema), { minLength: 1, maxLength: 5 }),
  });
});

test('Avro: our columns through Parquet are what avsc reads', async () => {
  await fc.assert(
    fc.asyncProperty(cases, async ({ text, schema, values }) => {
      const type = avsc.Type.forSchema(JSON.parse(text, withoutLogical) as avsc.Schema, {
        wrapUnions: 'always',
        registry: { long: longs },
      });
      const { schema: table, bindings } = commitForTest(avroToProposed(schema));
      const columns = new TableColumns(table);
      const decoder = compileAvroDecoder(schema, columns, bindings);
      const encoded = values.map((value) => type.toBuffer(value));
      for (const bytes of encoded) {
        expect(decoder.decode(bytes, 0, bytes.length)).toBeUndefined();
        columns.endRow();
      }
      const rows = await rowsThroughParquet(columns);
      const reference = encoded.map((bytes) => expected(schema, type.fromBuffer(bytes)));
      expect(rows).toEqual(reference);
    }),
    { numRuns: 80, seed: 11 },
  );
});
