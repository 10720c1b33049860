// Source paths of Protobuf fields, the limits of reading, and the types that have columns of their own.
import { fieldPath } from '../arrow/proposed-schema.ts';
import type { ProtoMessage, ProtoScalar } from './schema.ts';

/**
 * The path of a field by its number, since that is what stays when a field is renamed. Names are escaped in paths, so
 * `\#` never comes from one.
 */
export const numberPath = (parent: string, number: number): string => `${parent}.\\#${number}`;

/**
 * Where the fields of a whole value start. Numbers mean something within their message only, and records of one table
 * may be of several.
 */
export const rootPath = (path: string, message: ProtoMessage): string =>
  fieldPath(path, message.name);

/** Leaf columns that one schema may ask for: messages used in several places multiply. */
export const MAX_COLUMNS = 10_000;

/** Levels of messages that make columns; deeper ones are JSON text. Also the levels of one value. */
export const MAX_DEPTH = 100;

/** Present in a struct that has no fields of its own, since Parquet has no empty groups. */
export const PRESENT_FIELD = '_present';

const WRAPPERS: Readonly<Record<string, ProtoScalar>> = {
  DoubleValue: 'double',
  FloatValue: 'float',
  Int64Value: 'int64',
  UInt64Value: 'uint64',
  Int32Value: 'int32',
  UInt32Value: 'uint32',
  BoolValue: 'bool',
  StringValue: 'string',
  BytesValue: 'bytes',
};

const JSON_TYPES = ['Struct', 'Value', 'ListValue', 'Any'];

/** How messages of a type stand in a column. */
export type MessageShape =
  | { readonly kind: 'struct' }
  | { readonly kind: 'timestamp' }
  | { readonly kind: 'wrapper'; readonly scalar: ProtoScalar }
  | { readonly kind: 'json' };

/** `ancestors`: the messages around it, for recursion. */
export function messageShape(
  message: ProtoMessage,
  ancestors: readonly ProtoMessage[],
): MessageShape {
  if (message.name.startsWith('google.protobuf.')) {
    const name = message.name.slice('google.protobuf.'.length);
    const scalar = Object.hasOwn(WRAPPERS, name) ? WRAPPERS[name] : undefined;
    if (scalar !== undefined) return { kind: 'wrapper', scalar };
    if (name === 'Timestamp') return { kind: 'timestamp' };
    if (JSON_TYPES.includes(name)) return { kind: 'json' };
  }
  if (ancestors.includes(message) || ancestors.length >= MAX_DEPTH) return { kind: 'json' };
  return { kind: 'struct' };
}
