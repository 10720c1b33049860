// Avro's binary encoding between bytes and plain values, by a schema compiled to closures. For files of few,
// wide records: Iceberg manifests. Not for Kafka messages (they go straight into columns, see this folder's other files).
// Values: null, boolean, number (long: bigint past 2^53), bytes and fixed as views of the input, arrays, records
// as objects, maps as Map, unions as the bare value, enums as text. Source: Avro 1.12, "Binary Encoding".
import { FloeError } from '../../base/error.ts';

export type AvroSchema = string | AvroObject | readonly AvroSchema[];

export interface AvroField {
  readonly name: string;
  readonly type: AvroSchema;
  readonly [attribute: string]: unknown;
}

export interface AvroObject {
  readonly type: AvroSchema;
  readonly name?: string;
  readonly namespace?: string;
  readonly fields?: readonly AvroField[];
  readonly items?: AvroSchema;
  readonly values?: AvroSchema;
  readonly symbols?: readonly string[];
  readonly size?: number;
  readonly [attribute: string]: unknown;
}

/** A position in bytes; readers move it. */
export class AvroInput {
  readonly bytes: Uint8Array;
  position: number;

  constructor(bytes: Uint8Array, position = 0) {
    // Plain views: a Buffer's subarrays would be Buffers, which compare and print differently.
    this.bytes = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);
    this.position = position;
  }

  /** @throws FloeError `corrupt` past the end. */
  take(length: number): Uint8Array {
    const end = this.position + length;
    if (!(length >= 0) || end > this.bytes.length) throw truncated();
    const part = this.bytes.subarray(this.position, end);
    this.position = end;
    return part;
  }

  /** Zigzag varint of up to 64 bits; a bigint only past 2^53. */
  long(): number | bigint {
    let low = 0;
    let shift = 0;
    for (;;) {
      if (this.position >= this.bytes.length) throw truncated();
      const byte = this.bytes[this.position]!;
      if (shift === 28) return this.#bigLong(low);
      this.position += 1;
      low |= (byte & 0x7f) << shift;
      if (byte < 0x80) return (low >>> 1) ^ -(low & 1);
      shift += 7;
    }
  }

  #bigLong(low: number): number | bigint {
    let value = BigInt(low);
    for (let shift = 28n; shift < 70n; shift += 7n) {
      const byte = this.take(1)[0]!;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) {
        const signed = BigInt.asIntN(64, (value >> 1n) ^ -(value & 1n));
        const small = Number(signed);
        return Number.isSafeInteger(small) ? small : signed;
      }
    }
    throw new FloeError('corrupt', 'Avro: a number of more than ten bytes');
  }

  /** A length or count. @throws FloeError `corrupt` when it can't be one. */
  size(): number {
    const value = this.long();
    if (typeof value !== 'number' || value < 0)
      throw new FloeError('corrupt', `Avro: length ${value}`);
    return value;
  }
}

const truncated = () => new FloeError('corrupt', 'Avro: the bytes end too early');

export type AvroReader = (input: AvroInput) => unknown;

export interface ReaderOptions {
  /** The property a record's field goes to; undefined leaves it out. By default its name. */
  readonly key?: (field: AvroField) => string | undefined;
}

const text = new TextDecoder();

/** Compiles a schema. @throws FloeError `corrupt` when it isn't one. */
export function compileReader(schema: AvroSchema, options: ReaderOptions = {}): AvroReader {
  const named = new Map<string, AvroReader>();
  const keyOf = options.key ?? ((field: AvroField) => field.name);

  const compile = (part: AvroSchema, namespace: string): AvroReader => {
    if (typeof part === 'string') return primitive(part, namespace);
    if (Array.isArray(part)) return union(part as readonly AvroSchema[], namespace);
    return complex(part as AvroObject, namespace);
  };
  const primitive = (name: string, namespace: string): AvroReader => {
    const reader = PRIMITIVE_READERS[name];
    if (reader !== undefined) return reader;
    const full = fullName(name, namespace);
    // A recursive type is met again while its own reader is still being made.
    return (input) => {
      const found = named.get(full) ?? named.get(name);
      if (found === undefined) throw new FloeError('corrupt', `Avro: unknown type "${name}"`);
      return found(input);
    };
  };
  const union = (branches: readonly AvroSchema[], namespace: string): AvroReader => {
    const readers = branches.map((branch) => compile(branch, namespace));
    return (input) => {
      const reader = readers[input.size()];
      if (reader === undefined)
        throw new FloeError('corrupt', 'Avro: a union branch that does not exist');
      return reader(input);
    };
  };
  const complex = (part: AvroObject, namespace: string): AvroReader => {
    if (typeof part.type !== 'string') return compile(part.type, namespace);
    const full = part.name === undefined ? '' : fullName(part.name, part.namespace ?? namespace);
    const inner = full.includes('.') ? full.slice(0, full.lastIndexOf('.')) : namespace;
    const reader = ofKind(part, part.type, inner);
    if (full !== '') named.set(full, reader);
    return reader;
  };
  const ofKind = (part: AvroObject, kind: string, namespace: string): AvroReader => {
    switch (kind) {
      case 'record':
      case 'error':
        return record(part.fields ?? [], namespace);
      case 'array':
        return arrayReader(compile(part.items ?? 'null', namespace));
      case 'map':
        return mapReader(compile(part.values ?? 'null', namespace));
      case 'fixed': {
        const size = part.size ?? -1;
        return (input) => input.take(size);
      }
      case 'enum': {
        const symbols = part.symbols ?? [];
        return (input) => symbols[input.size()];
      }
      default:
        return primitive(kind, namespace);
    }
  };
  const record = (fields: readonly AvroField[], namespace: string): AvroReader => {
    const keys = fields.map(keyOf);
    const readers = fields.map((field) => compile(field.type, namespace));
    return (input) => {
      const value: Record<string, unknown> = {};
      for (let index = 0; index < readers.length; index += 1) {
        const item = readers[index]!(input);
        const key = keys[index];
        if (key !== undefined) value[key] = item;
      }
      return value;
    };
  };
  return compile(schema, '');
}

function fullName(name: string, namespace: string): string {
  return name.includes('.') || namespace === '' ? name : `${namespace}.${name}`;
}

const PRIMITIVE_READERS: Readonly<Record<string, AvroReader>> = {
  null: () => null,
  boolean: (input) => input.take(1)[0] !== 0,
  int: (input) => input.long(),
  long: (input) => input.long(),
  float: (input) => {
    const bytes = input.take(4);
    return new DataView(bytes.buffer, bytes.byteOffset, 4).getFloat32(0, true);
  },
  double: (input) => {
    const bytes = input.take(8);
    return new DataView(bytes.buffer, bytes.byteOffset, 8).getFloat64(0, true);
  },
  bytes: (input) => input.take(input.size()),
  string: (input) => text.decode(input.take(input.size())),
};

/** Blocks of a collection. A count beyond the bytes left is a lie: no element of our files is empty. */
function eachItem(input: AvroInput, read: () => void): void {
  for (;;) {
    let count = input.long();
    if (count === 0) return;
    if (count < 0) {
      count = -count;
      input.long();
    }
    if (typeof count !== 'number' || count > input.bytes.length - input.position) {
      throw new FloeError('corrupt', `Avro: ${count} elements in fewer bytes`);
    }
    for (let n = 0; n < count; n += 1) read();
  }
}

function arrayReader(item: AvroReader): AvroReader {
  return (input) => {
    const items: unknown[] = [];
    eachItem(input, () => items.push(item(input)));
    return items;
  };
}

function mapReader(value: AvroReader): AvroReader {
  return (input) => {
    const entries = new Map<string, unknown>();
    eachItem(input, () => {
      const key = text.decode(input.take(input.size()));
      entries.set(key, value(input));
    });
    return entries;
  };
}

/** Bytes that grow as they are written. */
export class AvroOutput {
  #bytes = new Uint8Array(1024);
  #length = 0;

  /** What was written so far, as a view. */
  get written(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  reserve(length: number): Uint8Array {
    const end = this.#length + length;
    if (end > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(end, this.#bytes.length * 2));
      larger.set(this.written);
      this.#bytes = larger;
    }
    const part = this.#bytes.subarray(this.#length, end);
    this.#length = end;
    return part;
  }

  raw(bytes: Uint8Array): void {
    this.reserve(bytes.length).set(bytes);
  }

  long(value: number | bigint): void {
    if (typeof value === 'number' && value >= -0x4000_0000 && value < 0x4000_0000) {
      this.#varint(((value << 1) ^ (value >> 31)) >>> 0);
      return;
    }
    let rest = BigInt.asUintN(64, (BigInt(value) << 1n) ^ (BigInt(value) >> 63n));
    while (rest >= 0x80n) {
      this.reserve(1)[0] = Number(rest & 0x7fn) | 0x80;
      rest >>= 7n;
    }
    this.reserve(1)[0] = Number(rest);
  }

  #varint(value: number): void {
    let rest = value;
    while (rest >= 0x80) {
      this.reserve(1)[0] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.reserve(1)[0] = rest;
  }

  bytes(value: Uint8Array): void {
    this.long(value.length);
    this.raw(value);
  }

  string(value: string): void {
    this.bytes(Buffer.from(value));
  }
}

export type AvroWriter = (output: AvroOutput, value: unknown) => void;

/**
 * Compiles a schema for writing values of the shapes above. Unions are `[null, T]` only: what our files need.
 * Records take their fields by name; an undefined field is null.
 */
export function compileWriter(schema: AvroSchema): AvroWriter {
  if (typeof schema === 'string') return primitiveWriter(schema);
  if (Array.isArray(schema)) return optionalWriter(schema as readonly AvroSchema[]);
  const part = schema as AvroObject;
  switch (part.type) {
    case 'record':
      return recordWriter(part.fields ?? []);
    case 'array':
      return arrayWriter(compileWriter(part.items!));
    case 'fixed':
      return (output, value) => output.raw(value as Uint8Array);
    default:
      return compileWriter(part.type);
  }
}

function recordWriter(fields: readonly AvroField[]): AvroWriter {
  const writers = fields.map((field) => [field.name, compileWriter(field.type)] as const);
  return (output, value) => {
    for (const [name, write] of writers) write(output, (value as Record<string, unknown>)[name]);
  };
}

function arrayWriter(item: AvroWriter): AvroWriter {
  return (output, value) => {
    const items = value as readonly unknown[];
    if (items.length > 0) output.long(items.length);
    for (const one of items) item(output, one);
    output.long(0);
  };
}

function optionalWriter(branches: readonly AvroSchema[]): AvroWriter {
  if (branches.length !== 2 || branches[0] !== 'null') {
    throw new FloeError('unsupported', 'Avro: only [null, T] unions are written here');
  }
  const write = compileWriter(branches[1]!);
  return (output, value) => {
    const isNull = value === null || value === undefined;
    output.long(isNull ? 0 : 1);
    if (!isNull) write(output, value);
  };
}

function primitiveWriter(name: string): AvroWriter {
  switch (name) {
    case 'null':
      return () => {};
    case 'boolean':
      return (output, value) => output.raw(Uint8Array.of(value === true ? 1 : 0));
    case 'int':
    case 'long':
      return (output, value) => output.long(value as number | bigint);
    case 'float':
    case 'double': {
      const size = name === 'float' ? 4 : 8;
      return (output, value) => {
        const part = output.reserve(size);
        const view = new DataView(part.buffer, part.byteOffset, size);
        if (size === 4) view.setFloat32(0, value as number, true);
        else view.setFloat64(0, value as number, true);
      };
    }
    case 'bytes':
      return (output, value) => output.bytes(value as Uint8Array);
    case 'string':
      return (output, value) => output.string(value as string);
    default:
      throw new FloeError('unsupported', `Avro: type "${name}" is not written here`);
  }
}
