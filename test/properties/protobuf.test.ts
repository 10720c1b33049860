// Random Protobuf schemas and messages: encoded by protobufjs, decoded by us straight into columns, written to Parquet,
// read by hyparquet; equal to what protobufjs decodes, cell for cell.
import fc from 'fast-check';
import protobuf from 'protobufjs';
import { expect, test } from 'vitest';
import { TableColumns } from '../../src/formats/arrow/table-columns.ts';
import { commitForTest } from '../../src/formats/arrow/testing.ts';
import { compileProtobufDecoder } from '../../src/formats/protobuf/decoder.ts';
import { parseProtobuf } from '../../src/formats/protobuf/schema.ts';
import { protobufToProposed } from '../../src/formats/protobuf/to-iceberg.ts';
import { bytesCell, type Cell, mapCell, numberCell, rowsThroughParquet } from './parquet-cells.ts';

const SCALARS = [
  'int32',
  'sint32',
  'sfixed32',
  'uint32',
  'fixed32',
  'int64',
  'sint64',
  'sfixed64',
  'bool',
  'float',
  'double',
  'string',
  'bytes',
] as const;

/** protobufjs's 64-bit integers. */
const Long = protobuf.util.Long as unknown as { fromString(text: string): unknown };

/** A field before it has name and number. */
interface Draft {
  readonly label: '' | 'optional ' | 'repeated ' | 'map' | 'oneof';
  /** A scalar, the enum, or the number of a message further down. */
  readonly type: (typeof SCALARS)[number] | 'E' | number;
  /** What is added to the number before: gaps, and numbers of several bytes. */
  readonly gap: number;
}

const MESSAGES = 3;

const draft = (level: number): fc.Arbitrary<Draft> =>
  fc.record({
    label: fc.constantFrom('', 'optional ', 'repeated ', 'map', 'oneof'),
    type: fc.oneof(
      { weight: 5, arbitrary: fc.constantFrom(...SCALARS, 'E' as const) },
      ...(level + 1 < MESSAGES
        ? [{ weight: 2, arbitrary: fc.integer({ min: level + 1, max: MESSAGES - 1 }) }]
        : []),
    ),
    gap: fc.constantFrom(1, 1, 1, 15, 2_047),
  });

function messageText(level: number, drafts: readonly Draft[]): string {
  let number = 0;
  const lines = drafts.map(({ label, type, gap }, i) => {
    number += gap;
    const name = typeof type === 'number' ? `M${type}` : type;
    if (label === 'map') return `map<string, ${name}> f${i} = ${number};`;
    if (label === 'oneof')
      return `oneof o${i} { ${name} f${i} = ${number}; string g${i} = ${++number}; }`;
    return `${label}${name} f${i} = ${number};`;
  });
  return `message M${level} { ${lines.join(' ')} }`;
}

const schemas = fc
  .tuple(
    ...Array.from({ length: MESSAGES }, (_, level) =>
      fc.array(draft(level), { minLength: 1, maxLength: 5 }),
    ),
  )
  .map((messages) =>
    [
      'syntax = "proto3";',
      'enum E { ZERO = 0; ONE = 1; FAR = 300; }',
      ...messages.map((drafts, level) => messageText(level, drafts)),
    ].join('\n'),
  );

const long = (unsigned: boolean) =>
  fc.bigInt(
    unsigned ? { min: 0n, max: 2n ** 64n - 1n } : { min: -(2n ** 63n), max: 2n ** 63n - 1n },
  );

function scalarOf(type: string): fc.Arbitrary<unknown> {
  switch (type) {
    case 'bool':
      return fc.boolean();
    case 'float':
      return fc.float();
    case 'double':
      return fc.double();
    case 'string':
      return fc.string({ unit: 'grapheme', maxLength: 6 });
    case 'bytes':
      return fc.uint8Array({ maxLength: 6 });
    case 'uint32':
    case 'fixed32':
      return fc.nat({ max: 2 ** 32 - 1 });
    case 'int64':
    case 'sint64':
    case 'sfixed64':
      return long(false).map((value) => Long.fromString(String(value)));
    default:
      return fc.integer();
  }
}

/** Values as protobufjs takes them; enum numbers may be unknown ones. */
function valueOfField(field: protobuf.Field): fc.Arbitrary<unknown> {
  const type = field.resolvedType;
  const single =
    type instanceof protobuf.Type
      ? messageOf(type)
      : type === null
        ? scalarOf(field.type)
        : fc.constantFrom(0, 1, 300, 7);
  if (field instanceof protobuf.MapField) {
    return fc.dictionary(fc.constantFrom('k', 'ключ', ''), single, { noNullPrototype: true });
  }
  return field.repeated ? fc.array(single, { maxLength: 4 }) : single;
}

function messageOf(type: protobuf.Type): fc.Arbitrary<Record<string, unknown>> {
  const fields = Object.fromEntries(
    type.fieldsArray.map((field) => [field.name, valueOfField(field)]),
  );
  return fc.record(fields, { requiredKeys: [], noNullPrototype: true }).map((message) => {
    // One of each group.
    for (const group of type.oneofsArray.filter((one) => one.oneof.length > 1)) {
      const [, ...rest] = group.oneof.filter((name) => name in message);
      for (const name of rest) delete message[name];
    }
    return message;
  });
}

/** What protobufjs decoded, in our plain form: DESIGN's type table said a second time. */
function expectedMessage(
  type: protobuf.Type,
  message: Record<string, unknown>,
): { [name: string]: Cell } {
  return Object.fromEntries(
    type.fieldsArray.map((field) => [field.name, expectedField(field, message)] as const),
  );
}

function expectedField(field: protobuf.Field, message: Record<string, unknown>): Cell {
  const value = Object.hasOwn(message, field.name) ? message[field.name] : undefined;
  if (field instanceof protobuf.MapField) {
    const entries = Object.entries((value ?? {}) as object);
    return mapCell(entries.map(([key, inner]) => [key, expectedValue(field, inner)] as const));
  }
  if (field.repeated) return ((value ?? []) as unknown[]).map((item) => expectedValue(field, item));
  if (value !== undefined && value !== null) return expectedValue(field, value);
  // Fields without presence are their default when they don't come.
  const hasPresence = field.partOf !== null || field.resolvedType instanceof protobuf.Type;
  return hasPresence ? null : expectedValue(field, field.typeDefault);
}

function expectedValue(field: protobuf.Field, value: unknown): Cell {
  const type = field.resolvedType;
  if (type instanceof protobuf.Type) return expectedMessage(type, value as Record<string, unknown>);
  if (type !== null) return type.valuesById[value as number] ?? String(value);
  switch (field.type) {
    case 'bool':
      return value as boolean;
    case 'float':
    case 'double':
      return numberCell(value as number);
    case 'bytes':
      return bytesCell(Uint8Array.from(value as Uint8Array));
    default:
      return String(value);
  }
}

const cases = schemas.chain((text) => {
  const type = protobuf.parse(text, { keepCase: true }).root.resolveAll().lookupType('M0');
  return fc.record({
    text: fc.constant(text),
    type: fc.constant(type),
    messages: fc.array(messageOf(type), { minLength: 1, maxLength: 4 }),
  });
});

test('Protobuf: our columns through Parquet are what protobufjs reads', async () => {
  await fc.assert(
    fc.asyncProperty(cases, async ({ text, type, messages }) => {
      const schema = parseProtobuf(text);
      const message = schema.find('M0')!;
      const { schema: table, bindings } = commitForTest(
        protobufToProposed(message, { nanos: false }),
      );
      const columns = new TableColumns(table);
      const decoder = compileProtobufDecoder(
        { message, find: (name) => schema.find(name) },
        columns,
        bindings,
      );
      const encoded = messages.map((value) => type.encode(value).finish());
      for (const bytes of encoded) {
        expect(decoder.decode(bytes, 0, bytes.length)).toBeUndefined();
        columns.endRow();
      }
      const rows = await rowsThroughParquet(columns);
      expect(rows).toEqual(
        encoded.map((bytes) =>
          expectedMessage(type, type.decode(bytes) as unknown as Record<string, unknown>),
        ),
      );
    }),
    { numRuns: 100, seed: 13 },
  );
});
