// Connect's JSON of a value with a known schema → the Avro bytes of the same value, so that one decoder serves both.
// Bytes go from cursor to buffer; values are made only where JSON has no form of its own (base64, decimals as numbers).
// Connect writes the members of a struct in the schema's order; others are found all the same.
// Source: Kafka Connect, JsonConverter. Not for: JSON without a schema (plain-envelope.ts).
import { RowFailure } from '../../formats/arrow/row-failure.ts';
import type { AvroRecord, AvroSchema, AvroUnion } from '../../formats/avro/schema.ts';
import { bigintToBytes, parseDecimal } from '../../formats/iceberg/value.ts';
import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  type JsonCursor,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from '../../formats/json/cursor.ts';
import { FieldTable } from '../../formats/json/field-table.ts';
import type { AvroSink } from './avro-sink.ts';

/** Moves one value from the cursor to the sink. @throws RowFailure when it isn't of the schema. */
export type Transcode = (cursor: JsonCursor, sink: AvroSink) => void;

/** A transcoder for values of `schema`, as connect-schema.ts makes them: no recursion, no enums, no fixed. */
export function compileTranscode(schema: AvroSchema): Transcode {
  return compile(schema, new Map());
}

function compile(schema: AvroSchema, known: Map<AvroRecord, Transcode>): Transcode {
  switch (schema.kind) {
    case 'union':
      return optional(schema, known);
    case 'record': {
      const found = known.get(schema) ?? struct(schema, known);
      known.set(schema, found);
      return found;
    }
    case 'array':
      return array(compile(schema.items, known));
    case 'map':
      return map(compile(schema.values, known));
    case 'bytes':
      return schema.logical?.kind === 'decimal' ? decimal(schema.logical.scale) : base64;
    case 'string':
      return text;
    case 'boolean':
      return boolean;
    case 'int':
    case 'long':
      return integer(schema.kind === 'int');
    case 'float':
    case 'double':
      return floating(schema.kind);
    default:
      return () => RowFailure.raise(`a ${schema.kind} in Connect’s JSON`);
  }
}

/** Connect's optional: null, or the one type. */
function optional({ branches }: AvroUnion, known: Map<AvroRecord, Transcode>): Transcode {
  const inner = compile(branches[1]!, known);
  return (cursor, sink) => {
    const isNull = cursor.peek() === 0x6e;
    sink.writeByte(isNull ? 0 : 2);
    if (isNull) cursor.literal();
    else inner(cursor, sink);
  };
}

function struct(schema: AvroRecord, known: Map<AvroRecord, Transcode>): Transcode {
  const parts = schema.fields.map((field) => compile(field.type, known));
  const names = new FieldTable(new Map(schema.fields.map((field, i) => [field.name, i])));
  return (cursor, sink) => {
    if (cursor.peek() !== OPEN_BRACE) RowFailure.raise(`${schema.name} is no object`);
    const start = cursor.pos;
    const { length } = sink;
    cursor.pos++;
    if (inOrder(cursor, sink, { names, parts })) return;
    cursor.pos = start;
    sink.length = length;
    anyOrder(cursor, sink, { names, parts, schema });
  };
}

interface Members {
  readonly names: FieldTable<number>;
  readonly parts: readonly Transcode[];
}

/** The members as the schema has them. False when they come otherwise; cursor and sink are then anywhere. */
function inOrder(cursor: JsonCursor, sink: AvroSink, { names, parts }: Members): boolean {
  if (parts.length === 0 || cursor.peek() === CLOSE_BRACE) return false;
  let next = 0;
  do {
    if (cursor.peek() !== QUOTE) cursor.fail('a key expected');
    if (next >= parts.length || names.take(cursor, next) !== next) return false;
    parts[next]!(cursor, sink);
    next++;
  } while (cursor.more(CLOSE_BRACE));
  return next === parts.length;
}

/** Finds each member first, the last of duplicates; what is missing is null. */
function anyOrder(
  cursor: JsonCursor,
  sink: AvroSink,
  { names, parts, schema }: Members & { readonly schema: AvroRecord },
): void {
  const at = new Array<number>(parts.length).fill(-1);
  cursor.pos++;
  if (cursor.peek() === CLOSE_BRACE) cursor.pos++;
  else {
    do {
      if (cursor.peek() !== QUOTE) cursor.fail('a key expected');
      const index = names.take(cursor, parts.length);
      if (index < 0) {
        RowFailure.raise(
          `${schema.name} has a member "${cursor.stringText()}" and its schema has not`,
        );
      }
      at[index] = cursor.pos;
      cursor.skipValue();
    } while (cursor.more(CLOSE_BRACE));
  }
  const end = cursor.pos;
  for (let i = 0; i < parts.length; i++) {
    if (at[i]! >= 0) {
      cursor.pos = at[i]!;
      parts[i]!(cursor, sink);
    } else if (schema.fields[i]!.type.kind === 'union') sink.writeByte(0);
    else RowFailure.raise(`${schema.name} lacks "${schema.fields[i]!.name}", which is required`);
  }
  cursor.pos = end;
}

/** A block of one item each: how many will come isn't known before. */
const ONE_ITEM = 2;
const NO_MORE = 0;

function array(item: Transcode): Transcode {
  return (cursor, sink) => {
    if (cursor.peek() !== OPEN_BRACKET) RowFailure.raise('an array expected');
    cursor.pos++;
    if (cursor.peek() === CLOSE_BRACKET) cursor.pos++;
    else {
      do {
        sink.writeByte(ONE_ITEM);
        item(cursor, sink);
      } while (cursor.more(CLOSE_BRACKET));
    }
    sink.writeByte(NO_MORE);
  };
}

function map(value: Transcode): Transcode {
  return (cursor, sink) => {
    if (cursor.peek() !== OPEN_BRACE) RowFailure.raise('an object expected');
    cursor.pos++;
    if (cursor.peek() === CLOSE_BRACE) cursor.pos++;
    else {
      do {
        cursor.key();
        sink.writeByte(ONE_ITEM);
        sink.writeBytes(cursor.text, cursor.textStart, cursor.textEnd);
        value(cursor, sink);
      } while (cursor.more(CLOSE_BRACE));
    }
    sink.writeByte(NO_MORE);
  };
}

const boolean: Transcode = (cursor, sink) => {
  const byte = cursor.peek();
  const value = byte === 0x74 || byte === 0x66 ? cursor.literal() : null;
  if (value === null) RowFailure.raise('a boolean expected');
  sink.writeByte(value ? 1 : 0);
};

const text: Transcode = (cursor, sink) => {
  readText(cursor);
  sink.writeBytes(cursor.text, cursor.textStart, cursor.textEnd);
};

function readText(cursor: JsonCursor): void {
  if (cursor.peek() !== QUOTE) RowFailure.raise('text expected');
  cursor.readString();
}

const isNumber = (byte: number) => byte === 0x2d || (byte >= 0x30 && byte <= 0x39);

function integer(narrow: boolean): Transcode {
  return (cursor, sink) => {
    if (!isNumber(cursor.peek())) RowFailure.raise('a whole number expected');
    if (cursor.readNumber() !== 'long') RowFailure.raise('a whole number of 64 bits expected');
    const { low, high } = cursor;
    if (narrow && high !== low >> 31) RowFailure.raise('a whole number of 32 bits expected');
    sink.writeLong(low, high);
  };
}

/** What JSON has no numbers for, Connect writes as text. */
const SPECIAL: Readonly<Record<string, number>> = {
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  '-Infinity': Number.NEGATIVE_INFINITY,
};

function floating(kind: 'float' | 'double'): Transcode {
  return (cursor, sink) => {
    const value = readFloating(cursor);
    if (kind === 'float') sink.writeFloat(value);
    else sink.writeDouble(value);
  };
}

function readFloating(cursor: JsonCursor): number {
  const byte = cursor.peek();
  if (isNumber(byte)) {
    cursor.readNumber();
    return cursor.double;
  }
  if (byte !== QUOTE) RowFailure.raise('a number expected');
  cursor.readString();
  const value = SPECIAL[cursor.stringText()];
  if (value === undefined) RowFailure.raise('a number expected');
  return value;
}

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

const base64: Transcode = (cursor, sink) => {
  readText(cursor);
  const source = cursor.stringText();
  if (!BASE64.test(source)) RowFailure.raise('bytes are not base64');
  const bytes = Buffer.from(source, 'base64');
  sink.writeBytes(bytes, 0, bytes.length);
};

/** Base64 of the unscaled value, or a number where the converter says `decimal.format=NUMERIC`. */
function decimal(scale: number): Transcode {
  return (cursor, sink) => {
    if (!isNumber(cursor.peek())) {
      base64(cursor, sink);
      return;
    }
    const start = cursor.pos;
    cursor.readNumber();
    const digits = Buffer.from(cursor.bytes.subarray(start, cursor.pos)).toString('latin1');
    const unscaled = parseDecimal(digits, scale);
    if (unscaled === undefined) RowFailure.raise(`no decimal of ${scale} places`);
    const bytes = bigintToBytes(unscaled);
    sink.writeBytes(bytes, 0, bytes.length);
  };
}
