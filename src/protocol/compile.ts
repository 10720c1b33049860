// Turns a message definition (fields.ts) into a decoder and an encoder per version, once, at first use: a tree
// of small closures, each knowing its version's shape, so that no version is looked at while bytes flow.
import { assert } from '../base/assert.ts';
import { FloeError } from '../base/error.ts';
import {
  type AnyField,
  type Decoded,
  type Encodable,
  type FieldData,
  type Schema,
  ZERO_UUID,
} from './fields.ts';
import { malformed, type Reader } from './reader.ts';
import { structDecoder, structEncoder } from './struct-codec.ts';
import { inVersions, parseVersions, type VersionRange } from './versions.ts';
import { Writer } from './writer.ts';

/** A message: its definition, and how its bytes are read and written. */
export interface Message<S extends Schema> {
  readonly name: string;
  readonly versions: VersionRange;
  /** Versions with compact lengths and tagged fields (KIP-482). */
  readonly flexibleVersions: VersionRange;
  readonly schema: S;
  /** @throws FloeError `invalid` or `exhausted` naming the message, when the bytes are not one of it. */
  decode(reader: Reader, version: number): Decoded<S>;
  encode(writer: Writer, value: Encodable<S>, version: number): void;
}

export interface MessageOptions<S extends Schema> {
  readonly name: string;
  /** In Kafka's notation, e.g. "3-13". */
  readonly versions: string;
  /** "9+", or "none". */
  readonly flexible: string;
  readonly schema: S;
}

type Decode = (reader: Reader) => unknown;
type Encode = (writer: Writer, value: never) => void;

interface Codec {
  readonly decode: Decode;
  readonly encode: Encode;
  /** The fewest bytes a value takes. */
  readonly minimumBytes: number;
}

/** Defines a message; its versions are compiled when first used. */
export function message<const S extends Schema>(options: MessageOptions<S>): Message<S> {
  const { name, schema } = options;
  const versions = parseVersions(options.versions);
  const flexibleVersions = parseVersions(options.flexible);
  const compiled = new Map<number, Codec>();
  const codecOf = (version: number): Codec => {
    let codec = compiled.get(version);
    if (codec === undefined) {
      assert(inVersions(versions, version), `${name} has no version ${version}`);
      codec = structCodec(schema, { version, flexible: inVersions(flexibleVersions, version) });
      compiled.set(version, codec);
    }
    return codec;
  };
  return {
    name,
    versions,
    flexibleVersions,
    schema,
    decode(reader, version) {
      const codec = codecOf(version);
      try {
        return codec.decode(reader) as Decoded<S>;
      } catch (caught) {
        throw inMessage(caught, `${name} v${version}`);
      }
    },
    encode: (writer, value, version) => codecOf(version).encode(writer, value as never),
  };
}

function inMessage(caught: unknown, what: string): unknown {
  if (!(caught instanceof FloeError)) return caught;
  return new FloeError(caught.code, `${what}: ${caught.message}`, { cause: caught });
}

interface Shape {
  readonly version: number;
  readonly flexible: boolean;
}

/** The value of an absent field. */
function fallbackOf(field: FieldData): unknown {
  if (field.fields === undefined || field.fallback !== undefined) return field.fallback;
  return Object.freeze(fallbacks(field.fields));
}

function fallbacks(schema: Schema): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(schema).map(([name, field]) => [name, fallbackOf(field)]),
  );
}

function structCodec(schema: Schema, shape: Shape): Codec {
  const present = Object.entries(schema).filter(([, field]) =>
    inVersions(field.versions, shape.version),
  );
  const plain = present.filter(([, field]) => field.tagNumber === undefined);
  const tagged = present.filter(([, field]) => field.tagNumber !== undefined);
  assert(tagged.length === 0 || shape.flexible, 'only flexible versions have tagged fields');
  const fields = plain.map(([name, field]) => ({
    name,
    fallback: fallbackOf(field),
    ...fieldCodec(field, shape),
  }));
  const tags = shape.flexible ? tagsCodec(tagged, shape) : undefined;
  const decode = structDecoder(fallbacks(schema), fields);
  const encode = structEncoder(fields);
  const minimumBytes = fields.reduce(
    (sum, field) => sum + field.minimumBytes,
    shape.flexible ? 1 : 0,
  );
  if (tags === undefined) return { minimumBytes, decode, encode };
  return {
    minimumBytes,
    decode(reader) {
      const value = decode(reader) as Record<string, unknown>;
      tags.decode(reader, value);
      return value;
    },
    encode(writer, value: never) {
      encode(writer, value);
      tags.encode(writer, value);
    },
  };
}

/** Tagged fields at the end of a struct. Unknown ones are skipped, as KIP-482 asks. */
function tagsCodec(tagged: [string, AnyField][], shape: Shape) {
  const known = tagged
    .map(([name, field]) => ({ name, field, codec: fieldCodec(field, shape) }))
    .sort((a, b) => a.field.tagNumber! - b.field.tagNumber!);
  const byTag = new Map(known.map((entry) => [entry.field.tagNumber!, entry]));
  return {
    decode(reader: Reader, value: Record<string, unknown>): void {
      const count = reader.tagCount();
      for (let i = 0; i < count; i += 1) {
        const entry = byTag.get(reader.uvarint());
        const size = reader.uvarint();
        if (entry === undefined) reader.skip(size);
        else value[entry.name] = decodeSized(reader, size, entry.codec);
      }
    },
    encode(writer: Writer, value: Record<string, unknown>): void {
      if (known.every(({ name }) => value[name] === undefined)) {
        writer.uvarint(0);
        return;
      }
      const given = known.filter(({ name, field }) => !isFallback(value[name], field));
      writer.uvarint(given.length);
      for (const { name, field, codec } of given) {
        const body = new Writer();
        codec.encode(body, value[name] as never);
        writer.uvarint(field.tagNumber!);
        writer.uvarint(body.length);
        writer.append(body);
      }
    },
  };
}

function decodeSized(reader: Reader, size: number, codec: Codec): unknown {
  const { end } = reader;
  const start = reader.skip(size);
  reader.position = start;
  reader.end = start + size;
  const value = codec.decode(reader);
  if (reader.position !== reader.end) throw malformed(`tagged field of ${size} bytes has a rest`);
  reader.end = end;
  return value;
}

/** Whether a tagged value may be left out. */
function isFallback(value: unknown, field: FieldData): boolean {
  if (value === undefined) return true;
  if (field.fields !== undefined && field.fallback === undefined && value !== null) {
    const struct = value as Record<string, unknown>;
    return Object.entries(field.fields).every(([name, inner]) => isFallback(struct[name], inner));
  }
  if (Array.isArray(value) || value instanceof Uint8Array) {
    return value.length === 0 && field.fallback !== null;
  }
  return value === field.fallback;
}

function fieldCodec(field: FieldData, shape: Shape): Codec {
  const compact = shape.flexible && !field.neverCompact;
  const nullable = inVersions(field.nullVersions, shape.version);
  switch (field.kind) {
    case 'string':
      return stringCodec(compact, nullable);
    case 'bytes':
    case 'records':
      return blobCodec(compact, nullable);
    case 'array':
      return arrayCodec(fieldCodec(field.element!, shape), compact, nullable);
    case 'struct':
      return nullable
        ? nullableStructCodec(structCodec(field.fields!, shape))
        : structCodec(field.fields!, shape);
    default:
      return PRIMITIVES[field.kind];
  }
}

const PRIMITIVES: Readonly<
  Record<Exclude<FieldData['kind'], 'string' | 'bytes' | 'records' | 'array' | 'struct'>, Codec>
> = {
  bool: { decode: (r) => r.bool(), encode: (w, v: boolean) => w.bool(v), minimumBytes: 1 },
  int8: { decode: (r) => r.int8(), encode: (w, v: number) => w.int8(v), minimumBytes: 1 },
  int16: { decode: (r) => r.int16(), encode: (w, v: number) => w.int16(v), minimumBytes: 2 },
  uint16: { decode: (r) => r.uint16(), encode: (w, v: number) => w.uint16(v), minimumBytes: 2 },
  int32: { decode: (r) => r.int32(), encode: (w, v: number) => w.int32(v), minimumBytes: 4 },
  int64: { decode: (r) => r.int64(), encode: (w, v: number) => w.int64(v), minimumBytes: 8 },
  float64: { decode: (r) => r.float64(), encode: (w, v: number) => w.float64(v), minimumBytes: 8 },
  uuid: {
    decode: (r) => r.uuid(),
    encode: (w, v: string | null) => w.uuid(v ?? ZERO_UUID),
    minimumBytes: 16,
  },
};

// Null in a version that doesn't know it is written as the empty value: fields that became nullable later meant
// "none" by empty before. When read, null where it isn't allowed is malformed.

function stringCodec(compact: boolean, nullable: boolean): Codec {
  return {
    decode(reader) {
      const value = reader.string(compact);
      if (value === null && !nullable) throw malformed('null in a string that can not be null');
      return value;
    },
    encode: (writer, value: string | null) =>
      writer.string(value === null && !nullable ? '' : value, compact),
    minimumBytes: compact ? 1 : 2,
  };
}

function blobCodec(compact: boolean, nullable: boolean): Codec {
  return {
    decode(reader) {
      const value = reader.blob(compact);
      if (value === null && !nullable) throw malformed('null in bytes that can not be null');
      return value;
    },
    encode: (writer, value: Uint8Array | readonly Uint8Array[] | null) =>
      writer.blob(value === null && !nullable ? [] : value, compact),
    minimumBytes: compact ? 1 : 4,
  };
}

function arrayCodec(element: Codec, compact: boolean, nullable: boolean): Codec {
  // No element of the protocol is empty in a version that has its array; were one, a count would be free.
  const minimumElementBytes = Math.max(element.minimumBytes, 1);
  return {
    decode(reader) {
      const count = reader.count(compact, minimumElementBytes);
      if (count === -1) {
        if (!nullable) throw malformed('null in an array that can not be null');
        return null;
      }
      const values: unknown[] = [];
      for (let i = 0; i < count; i += 1) values.push(element.decode(reader));
      return values;
    },
    encode(writer, value: readonly never[] | null) {
      if (value === null) {
        writer.prefix(nullable ? -1 : 0, compact);
        return;
      }
      writer.prefix(value.length, compact);
      for (const item of value) element.encode(writer, item);
    },
    minimumBytes: compact ? 1 : 4,
  };
}

function nullableStructCodec(inner: Codec): Codec {
  return {
    decode: (reader) => (reader.int8() < 0 ? null : inner.decode(reader)),
    encode(writer, value: never) {
      writer.int8(value === null ? -1 : 1);
      if (value !== null) inner.encode(writer, value);
    },
    minimumBytes: 1,
  };
}
