// Does a default fit its type? Avro specification 1.12, "Complex Types": a union's default is one of its branches
// (Java and Confluent check the first only up to 1.11), bytes and fixed are strings of code points below 256.
import { isObject, type Json, JsonNumber, toNumber } from '../json.ts';
import type { AvroSchema, RecordSchema } from './schema.ts';

/** The first field whose default doesn't fit, as `record.field`; undefined when all do. */
export function badDefault(schema: AvroSchema): string | undefined {
  return find(schema, new Set());
}

function find(schema: AvroSchema, seen: Set<RecordSchema>): string | undefined {
  switch (schema.type) {
    case 'array':
      return find(schema.items, seen);
    case 'map':
      return find(schema.values, seen);
    case 'union':
      return first(schema.branches, (branch) => find(branch, seen));
    case 'record':
    case 'error':
      if (seen.has(schema)) return undefined;
      seen.add(schema);
      return first(schema.fields, (field) =>
        field.default !== undefined && !fits(field.default, field.schema)
          ? `${schema.fullName}.${field.name}`
          : find(field.schema, seen),
      );
    default:
      return undefined;
  }
}

function first<T>(items: readonly T[], look: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const found = look(item);
    if (found !== undefined) return found;
  }
  return undefined;
}

function fits(value: Json, schema: AvroSchema): boolean {
  switch (schema.type) {
    case 'null':
      return value === null;
    case 'boolean':
      return typeof value === 'boolean';
    case 'int':
      return isInteger(value, 31n);
    case 'long':
      return isInteger(value, 63n);
    case 'float':
    case 'double':
      return toNumber(value) !== undefined;
    case 'string':
      return typeof value === 'string';
    case 'bytes':
      return isBytes(value);
    case 'fixed':
      return isBytes(value) && value.length === schema.size;
    case 'enum':
      return typeof value === 'string' && schema.symbols.includes(value);
    case 'array':
      return Array.isArray(value) && value.every((item: Json) => fits(item, schema.items));
    case 'map':
      return isObject(value) && Object.values(value).every((item) => fits(item, schema.values));
    case 'union':
      return schema.branches.some((branch) => fits(value, branch));
    case 'record':
    case 'error':
      return (
        isObject(value) &&
        schema.fields.every(({ name, default: own, schema: type }) => {
          const given = value[name] ?? own;
          return given !== undefined && fits(given, type);
        })
      );
  }
}

function isInteger(value: Json, bits: bigint): boolean {
  const text =
    value instanceof JsonNumber ? value.text : typeof value === 'number' ? String(value) : '';
  if (!/^-?\d+$/.test(text)) return false;
  const whole = BigInt(text);
  return whole >= -(2n ** bits) && whole < 2n ** bits;
}

function isBytes(value: Json): value is string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: bytes are the code points 0 to 255
  return typeof value === 'string' && /^[\u0000-\u00ff]*$/.test(value);
}
