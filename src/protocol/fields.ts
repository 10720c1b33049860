// The words in which messages are defined: a message is a plain object of named fields, a field is a type
// with, where they matter, its versions, nullability, default and tag. Nothing here touches bytes: see
// compile.ts. The TypeScript types of decoded and of encodable messages follow from the definition.
//
//   { topics: array({ name: string, topicId: uuid.since(13) }).nullable('1+'), timeoutMs: int32 }
import { ALL_VERSIONS, NO_VERSIONS, parseVersions, type VersionRange } from './versions.ts';

export type FieldKind =
  | 'bool'
  | 'int8'
  | 'int16'
  | 'uint16'
  | 'int32'
  | 'int64'
  | 'float64'
  | 'string'
  | 'uuid'
  | 'bytes'
  | 'records'
  | 'array'
  | 'struct';

/** One field as data. */
export interface FieldData {
  readonly kind: FieldKind;
  /** Versions whose bytes hold the field; elsewhere a decoded message has `fallback`. */
  readonly versions: VersionRange;
  /** Versions in which null may be written. */
  readonly nullVersions: VersionRange;
  /** Set for a tagged field (KIP-482): optional on the wire, omitted when it equals `fallback`. */
  readonly tagNumber: number | undefined;
  /** The value where the field is absent; undefined for a struct, whose fields have their own. */
  readonly fallback: unknown;
  /** Of an array. */
  readonly element: FieldData | undefined;
  /** Of a struct. */
  readonly fields: Schema | undefined;
  /** Keeps the classic length prefix in flexible versions (only the request header's client id). */
  readonly neverCompact: boolean;
}

/**
 * A field that decodes to `Out`, accepts `In` when encoded, and may be left out of what is encoded if
 * `Optional`. Each method returns a changed copy.
 */
export interface Field<Out, In = Out, Optional extends boolean = false> extends FieldData {
  /** Present from `version` on. */
  since(version: number): Field<Out, In, Optional>;
  /** Present in `range` only ("0-12"). */
  in(range: string): Field<Out, In, Optional>;
  /** May be null: in every version, or in `range` only. */
  nullable(range?: string): Field<Out | null, In | null, Optional>;
  /** The value where the field is absent or left out. */
  default(value: Out): Field<Out, In, true>;
  /** Travels as a tagged field. */
  tag(tag: number): Field<Out, In, true>;
  /** See {@link FieldData.neverCompact}. */
  classicLength(): Field<Out, In, Optional>;
  /** Exists in types only. */
  readonly types?: { readonly out: Out; readonly in: In; readonly optional: Optional };
}

// biome-ignore lint/suspicious/noExplicitAny: the types of fields are invariant; `unknown` would refuse all.
export type AnyField = Field<any, any, boolean>;

/** Fields in their order on the wire. */
export type Schema = Readonly<Record<string, AnyField>>;

/** What decoding yields: every field is there in every version. */
export type Decoded<S extends Schema> = {
  readonly [K in keyof S]: S[K] extends Field<infer Out, infer _In, infer _Optional> ? Out : never;
};

type OptionalKeys<S extends Schema> = {
  [K in keyof S]: S[K] extends Field<infer _Out, infer _In, infer O>
    ? O extends true
      ? K
      : never
    : never;
}[keyof S];

type InOf<F> = F extends Field<infer _Out, infer In, infer _Optional> ? In : never;

/** What encoding takes: tagged fields and those with a stated default may be left out. */
export type Encodable<S extends Schema> = {
  readonly [K in Exclude<keyof S, OptionalKeys<S>>]: InOf<S[K]>;
} & { readonly [K in OptionalKeys<S>]?: InOf<S[K]> | undefined };

/** The UUID that stands for "none". */
export const ZERO_UUID = '00000000-0000-0000-0000-000000000000';

/** Kafka's Long.MAX as the nearest double; written as Long.MAX again. */
export const INT64_MAX = 2 ** 63;

const EMPTY_BYTES = new Uint8Array(0);
const EMPTY_ARRAY: readonly never[] = Object.freeze([]);

function make<Out, In, Optional extends boolean>(data: FieldData): Field<Out, In, Optional> {
  const changed = (change: Partial<FieldData>) => make<never, never, never>({ ...data, ...change });
  const field: Field<never, never, never> = {
    ...data,
    since: (version) => changed({ versions: { min: version, max: ALL_VERSIONS.max } }),
    in: (range) => changed({ versions: parseVersions(range) }),
    nullable: (range) =>
      changed({ nullVersions: range === undefined ? ALL_VERSIONS : parseVersions(range) }),
    default: (value) => changed({ fallback: value }),
    tag: (tag) => changed({ tagNumber: tag }),
    classicLength: () => changed({ neverCompact: true }),
  };
  return field as unknown as Field<Out, In, Optional>;
}

function plain<Out, In = Out>(kind: FieldKind, fallback: Out | undefined): Field<Out, In> {
  return make<Out, In, false>({
    kind,
    versions: ALL_VERSIONS,
    nullVersions: NO_VERSIONS,
    tagNumber: undefined,
    fallback,
    element: undefined,
    fields: undefined,
    neverCompact: false,
  });
}

/** Encodable bytes: one piece or several that follow one another. */
export type BytesIn = Uint8Array | readonly Uint8Array[];

export const bool = plain<boolean>('bool', false);
export const int8 = plain<number>('int8', 0);
export const int16 = plain<number>('int16', 0);
export const uint16 = plain<number>('uint16', 0);
export const int32 = plain<number>('int32', 0);
/** A `number`: beyond 2^53 rounded to the nearest double when read, clamped to 64 bits when written. */
export const int64 = plain<number>('int64', 0);
export const float64 = plain<number>('float64', 0);
/** At most 32,767 bytes of UTF-8. */
export const string = plain<string>('string', '');
/** Canonical text, e.g. {@link ZERO_UUID}. */
export const uuid = plain<string>('uuid', ZERO_UUID);
/** A view into the message, valid as long as the frame is. */
export const bytes = plain<Uint8Array>('bytes', EMPTY_BYTES);
/** Record batches: a view when decoded; when encoded large pieces are passed through, never copied. */
export const records = plain<Uint8Array, BytesIn>('records', EMPTY_BYTES);

/** A struct of its own fields. Where it may be null, one byte says whether it is there. */
export function struct<const S extends Schema>(schema: S): Field<Decoded<S>, Encodable<S>> {
  return make({ ...plain('struct', undefined), fields: schema });
}

/** An array of simple values or of structs. */
export function array<const S extends Schema>(
  schema: S,
): Field<readonly Decoded<S>[], readonly Encodable<S>[]>;
export function array<Out, In, Optional extends boolean>(
  element: Field<Out, In, Optional>,
): Field<readonly Out[], readonly In[]>;
export function array(of: Schema | AnyField): AnyField {
  const element = isField(of) ? of : struct(of);
  return make({ ...plain('array', EMPTY_ARRAY), element });
}

function isField(value: Schema | AnyField): value is AnyField {
  return typeof (value as AnyField).kind === 'string';
}
