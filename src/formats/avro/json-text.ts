// Avro values as JSON text: what stands in a column from the point of recursion on.
// Plain JSON as people expect it (no type tags around union values): longs as exact digits, bytes and fixed as
// base64, decimals, dates and timestamps as text, NaN and infinities as text since JSON has no number for them.
// Not for: columns with a type of their own (decoder.ts).
import { RowFailure } from '../arrow/row-failure.ts';
import { bigintFromBytes, decimalText, singleValueToJson } from '../iceberg/value.ts';
import type { AvroCursor } from './cursor.ts';
import type { AvroLogical } from './logical-type.ts';
import type { AvroRecord, AvroSchema } from './schema.ts';
import { forEachItem, MAX_DEPTH } from './skip.ts';

type Text = (cursor: AvroCursor) => string;

/** A reader that renders the value at the cursor. */
export function compileJsonText(schema: AvroSchema): Text {
  return compile(schema, new Map());
}

function compile(schema: AvroSchema, known: Map<AvroRecord, Text>): Text {
  if ('logical' in schema && schema.logical !== undefined) {
    const size = schema.kind === 'fixed' ? schema.size : undefined;
    return logicalText(schema.logical, schema.kind, size);
  }
  switch (schema.kind) {
    case 'null':
      return () => 'null';
    case 'boolean':
      return (cursor) => String(cursor.readBoolean());
    case 'int':
      return (cursor) => String(cursor.readInt());
    case 'long':
      return (cursor) => String(readBigInt(cursor));
    case 'float':
    case 'double':
      return (cursor) => numberText(readFloat(cursor, schema.kind as 'float' | 'double'));
    case 'string':
      return (cursor) => JSON.stringify(cursor.readText());
    case 'bytes':
      return (cursor) => base64(cursor, cursor.readLength());
    case 'fixed':
      return (cursor) => base64(cursor, schema.size);
    case 'enum':
      return (cursor) => {
        const index = cursor.readInt();
        const symbol = schema.symbols[index];
        if (symbol === undefined) RowFailure.raise(`symbol ${index} of enum ${schema.name}`);
        return JSON.stringify(symbol);
      };
    case 'array': {
      const item = compile(schema.items, known);
      return (cursor) => `[${items(cursor, item).join(',')}]`;
    }
    case 'map': {
      const value = compile(schema.values, known);
      const entry: Text = (cursor) => `${JSON.stringify(cursor.readText())}:${value(cursor)}`;
      return (cursor) => `{${items(cursor, entry).join(',')}}`;
    }
    case 'union': {
      const texts = schema.branches.map((branch) => compile(branch, known));
      return (cursor) => {
        const index = cursor.readInt();
        const text = texts[index];
        if (text === undefined) RowFailure.raise(`union branch ${index} of ${texts.length}`);
        return text(cursor);
      };
    }
    case 'record':
      return recordText(schema, known);
  }
}

function items(cursor: AvroCursor, item: Text): string[] {
  const texts: string[] = [];
  forEachItem(cursor, (at) => {
    texts.push(item(at));
  });
  return texts;
}

function recordText(schema: AvroRecord, known: Map<AvroRecord, Text>): Text {
  const found = known.get(schema);
  if (found !== undefined) return found;
  const fields: [string, Text][] = [];
  const text: Text = (cursor) => {
    if (++cursor.depth > MAX_DEPTH) RowFailure.raise(`nested deeper than ${MAX_DEPTH} levels`);
    const parts = fields.map(([key, value]) => key + value(cursor));
    cursor.depth--;
    return `{${parts.join(',')}}`;
  };
  known.set(schema, text);
  for (const field of schema.fields) {
    fields.push([`${JSON.stringify(field.name)}:`, compile(field.type, known)]);
  }
  return text;
}

function readBigInt(cursor: AvroCursor): bigint {
  cursor.readLong();
  return (BigInt(cursor.high) << 32n) | BigInt(cursor.low >>> 0);
}

function readFloat(cursor: AvroCursor, kind: 'float' | 'double'): number {
  const width = kind === 'float' ? 4 : 8;
  const at = cursor.take(width);
  const { buffer, byteOffset } = cursor.bytes;
  const view = new DataView(buffer, byteOffset + at, width);
  return width === 4 ? view.getFloat32(0, true) : view.getFloat64(0, true);
}

const numberText = (value: number) => (Number.isFinite(value) ? String(value) : `"${value}"`);

function base64(cursor: AvroCursor, length: number): string {
  return `"${Buffer.from(takeBytes(cursor, length)).toString('base64')}"`;
}

function takeBytes(cursor: AvroCursor, length: number): Uint8Array {
  const start = cursor.take(length);
  return cursor.bytes.subarray(start, start + length);
}

function logicalText(logical: AvroLogical, kind: string, size: number | undefined): Text {
  const quoted = (type: string, read: (cursor: AvroCursor) => bigint): Text => {
    return (cursor) => JSON.stringify(singleValueToJson(type, read(cursor)));
  };
  switch (logical.kind) {
    case 'decimal':
      return (cursor) => {
        const bytes = takeBytes(cursor, size ?? cursor.readLength());
        return decimalText(bigintFromBytes(bytes), logical.scale);
      };
    case 'uuid':
      if (kind === 'string') return (cursor) => JSON.stringify(cursor.readText());
      return (cursor) => JSON.stringify(singleValueToJson('uuid', takeBytes(cursor, 16).slice()));
    case 'duration':
      return (cursor) => base64(cursor, 12);
    case 'date':
      return quoted('date', (cursor) => BigInt(cursor.readInt()));
    case 'time-millis':
      return quoted('time', (cursor) => BigInt(cursor.readInt()) * 1000n);
    case 'time-micros':
      return quoted('time', readBigInt);
    case 'time-nanos':
      return quoted('time', (cursor) => readBigInt(cursor) / 1000n);
    // Perhaps no time of a day: the number says what it is.
    case 'wide-time-millis':
    case 'wide-time-micros':
      return (cursor) => String(readBigInt(cursor));
    case 'zoned-timestamp':
      return (cursor) => JSON.stringify(cursor.readText());
    case 'timestamp-millis':
      return quoted('timestamptz', (cursor) => readBigInt(cursor) * 1000n);
    case 'timestamp-micros':
      return quoted('timestamptz', readBigInt);
    case 'timestamp-nanos':
      return quoted('timestamptz_ns', readBigInt);
    case 'local-timestamp-millis':
      return quoted('timestamp', (cursor) => readBigInt(cursor) * 1000n);
    case 'local-timestamp-micros':
      return quoted('timestamp', readBigInt);
    case 'local-timestamp-nanos':
      return quoted('timestamp_ns', readBigInt);
  }
}
