// Messages as JSON text: what stands in a column for recursive messages and for Struct, Value, ListValue and Any.
// Plain JSON under the fields' own names: 64-bit integers as exact digits, bytes as base64, timestamps as ISO text,
// NaN and infinities as text since JSON has no number for them. Of an Any the message itself where its type is known,
// else its bytes. Off the hot path: values are made as objects first, so that what comes twice is merged.
import { RowFailure } from '../arrow/row-failure.ts';
import { isUtf8Range } from '../arrow/utf8.ts';
import { singleValueToJson } from '../iceberg/value.ts';
import { DELIMITED, ProtoCursor } from './cursor.ts';
import { MAX_DEPTH, messageShape } from './paths.ts';
import { wireType } from './scalar-steps.ts';
import {
  type ProtoDefault,
  type ProtoEnum,
  type ProtoField,
  type ProtoMessage,
  type ProtoScalar,
  zeroOf,
} from './schema.ts';

/** Number of Value's field that says null. */
const NULL_VALUE = 1;

export type FindMessage = (name: string) => ProtoMessage | undefined;

/** Renders the message at the cursor, up to `cursor.end`. */
export function jsonText(cursor: ProtoCursor, message: ProtoMessage, find: FindMessage): string {
  return new Renderer(find).message(cursor, message, 1);
}

class Renderer {
  readonly #find: FindMessage;

  constructor(find: FindMessage) {
    this.#find = find;
  }

  message(cursor: ProtoCursor, message: ProtoMessage, depth: number): string {
    if (depth > MAX_DEPTH) RowFailure.raise(`nested deeper than ${MAX_DEPTH} levels`);
    const values = this.#values(cursor, message, depth);
    const text = this.#wellKnown(message, values, depth);
    if (text !== undefined) return text;
    const members: string[] = [];
    for (const field of message.fields) {
      const value = values.get(field.number);
      if (value !== undefined) {
        members.push(`${JSON.stringify(field.name)}:${this.#field(field, value, depth)}`);
      }
    }
    return `{${members.join(',')}}`;
  }

  /** By field number what was written: of single fields the last value, of messages all parts, of lists all items. */
  #values(cursor: ProtoCursor, message: ProtoMessage, depth: number): Map<number, Written> {
    const fields = new Map(message.fields.map((field) => [field.number, field]));
    const values = new Map<number, Written>();
    for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
      const field = fields.get(tag >>> 3);
      if (field === undefined || !fits(field, tag & 7)) {
        cursor.skip(tag);
        continue;
      }
      for (const rival of message.fields) {
        const other = rival.oneof !== undefined && rival.oneof === field.oneof && rival !== field;
        if (other) values.delete(rival.number);
      }
      this.#read(cursor, { field, packed: (tag & 7) === DELIMITED, values, depth });
    }
    return values;
  }

  #read(
    cursor: ProtoCursor,
    {
      field,
      packed,
      values,
    }: { field: ProtoField; packed: boolean; values: Map<number, Written>; depth: number },
  ): void {
    const { type, cardinality } = field;
    const many = cardinality === 'repeated' || cardinality === 'map';
    const items = values.get(field.number) ?? [];
    values.set(field.number, items);
    if (type.kind === 'message' || cardinality === 'map') {
      const length = cursor.readLength();
      const start = cursor.take(length);
      items.push(cursor.bytes.subarray(start, start + length));
      return;
    }
    const scalar = type.kind === 'enum' ? 'int32' : type.scalar;
    if (!many) items.length = 0;
    if (!packed || wireType(scalar) === DELIMITED) {
      items.push(readScalar(cursor, scalar));
      return;
    }
    const outer = cursor.end;
    const length = cursor.readLength();
    cursor.end = cursor.pos + length;
    while (cursor.pos < cursor.end) items.push(readScalar(cursor, scalar));
    cursor.end = outer;
  }

  #field(field: ProtoField, written: Written, depth: number): string {
    const { type } = field;
    if (field.cardinality === 'map') return this.#map(field, written as Uint8Array[], depth);
    if (type.kind === 'message') {
      if (field.cardinality !== 'repeated') {
        return this.#inner(Buffer.concat(written as Uint8Array[]), type, depth);
      }
      return `[${(written as Uint8Array[]).map((bytes) => this.#inner(bytes, type, depth)).join(',')}]`;
    }
    const texts = written.map((value) => scalarText(value, type));
    return field.cardinality === 'repeated' ? `[${texts.join(',')}]` : texts.at(-1)!;
  }

  #inner(bytes: Uint8Array, type: ProtoMessage, depth: number): string {
    const cursor = new ProtoCursor();
    cursor.reset(bytes, 0, bytes.length);
    return this.message(cursor, type, depth + 1);
  }

  #map(field: ProtoField, entries: readonly Uint8Array[], depth: number): string {
    const key: ProtoField = {
      name: 'key',
      number: 1,
      cardinality: 'implicit',
      type: { kind: 'scalar', scalar: field.key! },
    };
    const value: ProtoField = {
      name: 'value',
      number: 2,
      cardinality: 'optional',
      type: field.type,
    };
    const entry: ProtoMessage = { kind: 'message', name: '', fields: [key, value] };
    const members = new Map<string, string>();
    for (const bytes of entries) {
      const cursor = new ProtoCursor();
      cursor.reset(bytes, 0, bytes.length);
      const values = this.#values(cursor, entry, depth);
      const zero = zeroOf({ kind: 'scalar', scalar: field.key! });
      const name = JSON.stringify(String(values.get(1)?.at(-1) ?? zero));
      const given = values.get(2);
      members.set(
        name,
        given === undefined ? this.#absent(field, depth) : this.#field(value, given, depth),
      );
    }
    return `{${[...members].map(([name, text]) => `${name}:${text}`).join(',')}}`;
  }

  #absent({ type }: ProtoField, depth: number): string {
    if (type.kind === 'message') return this.#inner(new Uint8Array(0), type, depth);
    return scalarText(zeroOf(type), type);
  }

  #wellKnown(
    message: ProtoMessage,
    values: ReadonlyMap<number, Written>,
    depth: number,
  ): string | undefined {
    if (!message.name.startsWith('google.protobuf.')) return undefined;
    const shape = messageShape(message, []);
    const first = values.get(1);
    switch (shape.kind) {
      case 'timestamp': {
        const nanos = BigInt((values.get(2)?.at(-1) as number | undefined) ?? 0);
        const seconds = (first?.at(-1) as bigint | undefined) ?? 0n;
        return JSON.stringify(timestampText(seconds, nanos));
      }
      case 'wrapper': {
        const type = { kind: 'scalar', scalar: shape.scalar } as const;
        return scalarText((first?.at(-1) as ProtoDefault | undefined) ?? zeroOf(type), type);
      }
      case 'json':
        return this.#dynamic(message, values, depth);
      default:
        return undefined;
    }
  }

  /** Struct is its one map, ListValue its one list, Value whichever of its fields is set. */
  #dynamic(message: ProtoMessage, values: ReadonlyMap<number, Written>, depth: number): string {
    if (message.name.endsWith('.Any')) return this.#any(values, depth);
    if (!message.name.endsWith('.Value')) {
      const [field] = message.fields;
      const written = field === undefined ? undefined : values.get(field.number);
      if (field === undefined || written === undefined) {
        return message.name.endsWith('.Struct') ? '{}' : '[]';
      }
      return this.#field(field, written, depth);
    }
    for (const field of message.fields) {
      const written = values.get(field.number);
      if (written === undefined) continue;
      return field.number === NULL_VALUE ? 'null' : this.#field(field, written, depth);
    }
    return 'null';
  }

  #any(values: ReadonlyMap<number, Written>, depth: number): string {
    const url = String(values.get(1)?.at(-1) ?? '');
    const bytes = (values.get(2)?.at(-1) as Uint8Array | undefined) ?? new Uint8Array(0);
    const type = url === '' ? undefined : this.#find(url.slice(url.lastIndexOf('/') + 1));
    const head = `"@type":${JSON.stringify(url)}`;
    if (type === undefined) {
      return `{${head},"value":"${Buffer.from(bytes).toString('base64')}"}`;
    }
    const inner = this.#inner(bytes, type, depth);
    if (messageShape(type, []).kind !== 'struct') return `{${head},"value":${inner}}`;
    return inner === '{}' ? `{${head}}` : `{${head},${inner.slice(1)}`;
  }
}

/** Values of one field in the order they came: scalars, or the bytes of messages. */
type Written = (number | bigint | boolean | string | Uint8Array)[];

function fits({ type, cardinality }: ProtoField, wire: number): boolean {
  if (type.kind === 'message' || cardinality === 'map') return wire === DELIMITED;
  const own = wireType(type.kind === 'enum' ? 'int32' : type.scalar);
  return wire === own || (cardinality === 'repeated' && wire === DELIMITED);
}

function readScalar(cursor: ProtoCursor, scalar: ProtoScalar): Written[number] {
  switch (scalar) {
    case 'string':
    case 'bytes': {
      const length = cursor.readLength();
      const start = cursor.take(length);
      const bytes = cursor.bytes.subarray(start, start + length);
      if (scalar === 'bytes') return bytes;
      if (!isUtf8Range(cursor.bytes, start, start + length)) RowFailure.raise('invalid UTF-8');
      return Buffer.from(bytes).toString('utf8');
    }
    case 'float':
    case 'double': {
      const width = scalar === 'float' ? 4 : 8;
      const at = cursor.take(width);
      const view = new DataView(cursor.bytes.buffer, cursor.bytes.byteOffset + at, width);
      return scalar === 'float' ? view.getFloat32(0, true) : view.getFloat64(0, true);
    }
    case 'fixed32':
      return cursor.readFixed32() >>> 0;
    case 'sfixed32':
      return cursor.readFixed32();
    case 'fixed64':
      cursor.readFixed64();
      return BigInt.asUintN(64, cursor.bigint());
    case 'sfixed64':
      cursor.readFixed64();
      return cursor.bigint();
    default:
      cursor.readVarint();
      return varintValue(cursor, scalar);
  }
}

function varintValue(cursor: ProtoCursor, scalar: ProtoScalar): Written[number] {
  switch (scalar) {
    case 'bool':
      return (cursor.low | cursor.high) !== 0;
    case 'uint32':
      return cursor.low >>> 0;
    case 'sint32':
      return (cursor.low >>> 1) ^ -(cursor.low & 1);
    case 'int32':
      return cursor.low;
    case 'sint64':
      cursor.unzigzag();
      return cursor.bigint();
    case 'uint64':
      return BigInt.asUintN(64, cursor.bigint());
    default:
      return cursor.bigint();
  }
}

function scalarText(value: Written[number], type: ProtoEnum | { readonly kind: 'scalar' }): string {
  if (type.kind === 'enum') {
    return JSON.stringify(type.symbols.get(value as number) ?? String(value));
  }
  if (value instanceof Uint8Array) return `"${Buffer.from(value).toString('base64')}"`;
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'number' && !Number.isFinite(value)) return `"${value}"`;
  return String(value);
}

const MILLION = 1_000_000n;

/** ISO text with the digits it needs: micros where they say all. */
function timestampText(seconds: bigint, nanos: bigint): string {
  const fine = nanos % 1000n !== 0n;
  const value = fine ? seconds * 1000n * MILLION + nanos : seconds * MILLION + nanos / 1000n;
  return String(singleValueToJson(fine ? 'timestamptz_ns' : 'timestamptz', value));
}
