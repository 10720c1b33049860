// Protobuf source as data: what parse.ts makes, text.ts writes, compatibility.ts compares. It keeps what the source says
// (names as written, quoted or bare option values, order), not what a compiler would make of it; resolve.ts finds types.

/** Bare: identifiers, numbers, `true`, `-inf`, as written. Quoted: the text between the quotes, escapes as written. */
export type OptionValue =
  | { readonly kind: 'bare' | 'quoted'; readonly text: string }
  | { readonly kind: 'message'; readonly fields: readonly OptionEntry[] }
  | { readonly kind: 'list'; readonly items: readonly OptionValue[] };

/** A field of an aggregate option value; `[a.b]` names an extension. */
export type OptionEntry = readonly [name: string, value: OptionValue];

export interface ProtoOption {
  /** As written, e.g. `deprecated` or `(acme.rule).min`. */
  readonly name: string;
  readonly value: OptionValue;
}

/** Both ends belong to it; `end` is {@link MAX_FIELD_NUMBER} (or 2^31−1 for enums) for `max`. */
export interface NumberRange {
  readonly start: number;
  readonly end: number;
}

export const MAX_FIELD_NUMBER = 536_870_911;
export const MAX_ENUM_NUMBER = 2_147_483_647;

/** One `reserved` statement: ranges or names. */
export type Reserved = readonly (NumberRange | string)[];

export type Label = 'optional' | 'required' | 'repeated';

export interface ProtoField {
  readonly label: Label | undefined;
  /** As written; a leading dot means a full name. Empty for maps. */
  readonly type: string;
  readonly map: { readonly key: string; readonly value: string } | undefined;
  readonly name: string;
  readonly number: number;
  readonly options: readonly ProtoOption[];
  /** The body of a proto2 group, whose name is `type`. */
  readonly group: ProtoMessage | undefined;
}

interface ProtoOneof {
  readonly name: string;
  readonly fields: readonly ProtoField[];
  readonly options: readonly ProtoOption[];
}

interface ProtoExtensions {
  readonly ranges: readonly NumberRange[];
  readonly options: readonly ProtoOption[];
}

export interface ProtoExtend {
  /** The extended message, as written. */
  readonly type: string;
  readonly fields: readonly ProtoField[];
}

/** Edition 2024's `export` or `local`. */
type Visibility = 'export' | 'local' | undefined;

export interface ProtoMessage {
  readonly kind: 'message';
  readonly name: string;
  readonly visibility: Visibility;
  readonly fields: readonly ProtoField[];
  readonly oneofs: readonly ProtoOneof[];
  readonly types: readonly ProtoType[];
  readonly options: readonly ProtoOption[];
  readonly reserved: readonly Reserved[];
  readonly extensions: readonly ProtoExtensions[];
  readonly extends: readonly ProtoExtend[];
}

interface ProtoEnumValue {
  readonly name: string;
  readonly number: number;
  readonly options: readonly ProtoOption[];
}

export interface ProtoEnum {
  readonly kind: 'enum';
  readonly name: string;
  readonly visibility: Visibility;
  readonly values: readonly ProtoEnumValue[];
  readonly options: readonly ProtoOption[];
  readonly reserved: readonly Reserved[];
}

export type ProtoType = ProtoMessage | ProtoEnum;

export interface ProtoRpc {
  readonly name: string;
  readonly request: { readonly type: string; readonly stream: boolean };
  readonly response: { readonly type: string; readonly stream: boolean };
  readonly options: readonly ProtoOption[];
}

export interface ProtoService {
  readonly name: string;
  readonly rpcs: readonly ProtoRpc[];
  readonly options: readonly ProtoOption[];
}

export interface ProtoImport {
  readonly path: string;
  readonly kind: 'plain' | 'public' | 'weak' | 'option';
}

export interface ProtoFile {
  /** `proto2` where the source says nothing; else proto2, proto3 or an edition's year. */
  readonly syntax: string;
  /** False when `syntax` was not written. */
  readonly syntaxWritten: boolean;
  /** '' when there is none. */
  readonly package: string;
  readonly imports: readonly ProtoImport[];
  readonly options: readonly ProtoOption[];
  readonly types: readonly ProtoType[];
  readonly extends: readonly ProtoExtend[];
  readonly services: readonly ProtoService[];
}

const SCALARS = new Set(
  'double float int32 int64 uint32 uint64 sint32 sint64 fixed32 fixed64 sfixed32 sfixed64 bool string bytes'.split(
    ' ',
  ),
);

/** True for the names of scalar types. */
export function isScalar(type: string): boolean {
  return SCALARS.has(type);
}

/** All fields of a message with the oneof they are in, in order of the source's sections. */
export function allFields(
  message: ProtoMessage,
): readonly { readonly field: ProtoField; readonly oneof: string | undefined }[] {
  return [
    ...message.fields.map((field) => ({ field, oneof: undefined })),
    ...message.oneofs.flatMap(({ name, fields }) =>
      fields.map((field) => ({ field, oneof: name })),
    ),
  ];
}

/** True for the nested message that stands for a map's entries, as descriptors have it. */
export function isMapEntry(type: ProtoType): boolean {
  return type.kind === 'message' && optionText(type.options, 'map_entry') === 'true';
}

/** The bare or quoted text of an option; undefined when it isn't set. */
export function optionText(options: readonly ProtoOption[], name: string): string | undefined {
  const value = options.find((option) => option.name === name)?.value;
  return value !== undefined && 'text' in value ? value.text : undefined;
}
