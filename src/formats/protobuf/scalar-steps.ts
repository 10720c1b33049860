// Steps that read one scalar into one column, chosen once per schema: each pair of Protobuf type and Iceberg type
// that DESIGN's table and Iceberg's promotions allow. Undefined for a pair that isn't allowed.
import type { BytesColumn, FixedColumn } from '../arrow/byte-columns.ts';
import type { Column } from '../arrow/column.ts';
import { RowFailure } from '../arrow/row-failure.ts';
import type {
  BooleanColumn,
  FloatColumn,
  Int32Column,
  Int64Column,
} from '../arrow/scalar-columns.ts';
import { isUtf8Range } from '../arrow/utf8.ts';
import { parsePrimitive } from '../iceberg/primitive.ts';
import { DELIMITED, FIXED32, FIXED64, type ProtoCursor, type Step, VARINT } from './cursor.ts';
import type { ProtoDefault, ProtoEnum, ProtoScalar, ProtoScalarType } from './schema.ts';

/** The wire type that a scalar is written with, when it isn't packed. */
export function wireType(scalar: ProtoScalar): number {
  switch (scalar) {
    case 'double':
    case 'fixed64':
    case 'sfixed64':
      return FIXED64;
    case 'float':
    case 'fixed32':
    case 'sfixed32':
      return FIXED32;
    case 'string':
    case 'bytes':
      return DELIMITED;
    default:
      return VARINT;
  }
}

/** The step for a scalar into `column`, or undefined when the column can't take it. */
export function scalarStep(scalar: ProtoScalar, column: Column): Step | undefined {
  const { type } = column;
  switch (scalar) {
    case 'bool': {
      if (type !== 'boolean') return undefined;
      const target = column as BooleanColumn;
      return (cursor) => {
        cursor.readVarint();
        target.append((cursor.low | cursor.high) !== 0);
      };
    }
    case 'string':
      return type === 'string' ? textStep(column as BytesColumn) : undefined;
    case 'bytes':
      return type === 'binary' ? bytesStep(column as BytesColumn) : undefined;
    case 'float':
    case 'double':
      return floatStep(scalar, column);
    case 'int32':
    case 'sint32':
    case 'sfixed32':
      return int32Step(scalar, column);
    case 'uint32':
    case 'fixed32':
      return type === 'long' ? uint32Step(scalar, column as Int64Column) : undefined;
    case 'int64':
    case 'sint64':
    case 'sfixed64':
      return type === 'long' ? int64Step(scalar, column as Int64Column) : undefined;
    default:
      return uint64Step(scalar, column);
  }
}

function textStep(target: BytesColumn): Step {
  return (cursor) => {
    const length = cursor.readLength();
    const start = cursor.pos;
    const end = start + length;
    if (!isUtf8Range(cursor.bytes, start, end)) RowFailure.raise('invalid UTF-8');
    cursor.pos = end;
    target.append(cursor.bytes, start, end);
  };
}

function bytesStep(target: BytesColumn): Step {
  return (cursor) => {
    const length = cursor.readLength();
    const start = cursor.take(length);
    target.append(cursor.bytes, start, start + length);
  };
}

const floatBits = new DataView(new ArrayBuffer(8));

/** Through a small view, since the source is rarely aligned. */
function floatStep(scalar: 'float' | 'double', column: Column): Step | undefined {
  const { type } = column;
  if (type !== 'double' && (type !== 'float' || scalar !== 'float')) return undefined;
  const target = column as FloatColumn;
  if (scalar === 'float') {
    return (cursor) => {
      floatBits.setInt32(0, cursor.readFixed32(), true);
      target.append(floatBits.getFloat32(0, true));
    };
  }
  return (cursor) => {
    floatBits.setInt32(0, cursor.readFixed32(), true);
    floatBits.setInt32(4, cursor.readFixed32(), true);
    target.append(floatBits.getFloat64(0, true));
  };
}

function readInt32(scalar: ProtoScalar): (cursor: ProtoCursor) => number {
  if (scalar === 'sfixed32') return (cursor) => cursor.readFixed32();
  if (scalar === 'sint32') {
    return (cursor) => {
      cursor.readVarint();
      return (cursor.low >>> 1) ^ -(cursor.low & 1);
    };
  }
  return (cursor) => {
    cursor.readVarint();
    return cursor.low;
  };
}

/** Into an int column, or one that was promoted to long. */
function int32Step(scalar: ProtoScalar, column: Column): Step | undefined {
  const read = readInt32(scalar);
  if (column.type === 'int') {
    const target = column as Int32Column;
    return (cursor) => target.append(read(cursor));
  }
  if (column.type !== 'long') return undefined;
  const target = column as Int64Column;
  return (cursor) => {
    const value = read(cursor);
    target.appendHalves(value, value >> 31);
  };
}

function uint32Step(scalar: ProtoScalar, target: Int64Column): Step {
  if (scalar === 'fixed32') return (cursor) => target.appendHalves(cursor.readFixed32(), 0);
  return (cursor) => {
    cursor.readVarint();
    target.appendHalves(cursor.low, 0);
  };
}

function int64Step(scalar: ProtoScalar, target: Int64Column): Step {
  if (scalar === 'sfixed64') {
    return (cursor) => {
      cursor.readFixed64();
      target.appendHalves(cursor.low, cursor.high);
    };
  }
  const zigzag = scalar === 'sint64';
  return (cursor) => {
    cursor.readVarint();
    if (zigzag) cursor.unzigzag();
    target.appendHalves(cursor.low, cursor.high);
  };
}

const bigEndian = new Uint8Array(9);

/** Into decimal(20, 0) or wider: the eight bytes after a zero, so that the sign bit is no sign. */
function uint64Step(scalar: ProtoScalar, column: Column): Step | undefined {
  if (typeof column.type !== 'string') return undefined;
  const type = parsePrimitive(column.type);
  if (type.kind !== 'decimal' || type.scale !== 0 || type.precision < 20) return undefined;
  const target = column as FixedColumn;
  const fixed = scalar === 'fixed64';
  return (cursor) => {
    if (fixed) cursor.readFixed64();
    else cursor.readVarint();
    const { low, high } = cursor;
    for (let i = 0; i < 4; i++) {
      bigEndian[4 - i] = high >>> (8 * i);
      bigEndian[8 - i] = low >>> (8 * i);
    }
    target.appendSigned(bigEndian, 0, 9);
  };
}

const encoder = new TextEncoder();

/** Symbols as text; a number without a symbol as its digits. */
export function enumStep({ symbols }: ProtoEnum, target: BytesColumn): Step {
  const encoded = new Map([...symbols].map(([number, name]) => [number, encoder.encode(name)]));
  const dense: (Uint8Array | undefined)[] = [];
  for (let number = 0; number < 256; number++) dense.push(encoded.get(number));
  return (cursor) => {
    cursor.readVarint();
    const number = cursor.low;
    const symbol = number >= 0 && number < 256 ? dense[number] : encoded.get(number);
    if (symbol !== undefined) target.append(symbol, 0, symbol.length);
    else target.appendText(String(number));
  };
}

/** Appends a value that isn't in the record. `column` takes `type`, as the step for it does. */
export function defaultStep(
  type: ProtoScalarType | ProtoEnum,
  value: ProtoDefault,
  column: Column,
): () => void {
  if (type.kind === 'enum') {
    const text = encoder.encode(type.symbols.get(value as number) ?? String(value));
    return () => (column as BytesColumn).append(text, 0, text.length);
  }
  if (typeof value === 'string' || value instanceof Uint8Array) {
    const bytes = typeof value === 'string' ? encoder.encode(value) : value;
    return () => (column as BytesColumn).append(bytes, 0, bytes.length);
  }
  if (typeof value === 'boolean') return () => (column as BooleanColumn).append(value);
  if (type.scalar === 'float' || type.scalar === 'double') {
    return () => (column as FloatColumn).append(value as number);
  }
  if (column.type === 'int') return () => (column as Int32Column).append(Number(value));
  const whole = BigInt(value);
  if (column.type === 'long') {
    const low = Number(whole & 0xffffffffn) | 0;
    const high = Number(whole >> 32n);
    return () => (column as Int64Column).appendHalves(low, high);
  }
  return () => (column as FixedColumn).appendBigInt(whole);
}
