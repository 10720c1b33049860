// The table that a Protobuf message asks for: DESIGN's type table as code. All columns are optional, since records of
// older and newer schemas must still land; paths go by field number.
// Not for: reading values (decoder.ts walks the same message by the same paths).
import { FloeError } from '../../base/error.ts';
import {
  ColumnNames,
  elementPath,
  fieldPath,
  keyPath,
  type ProposedField,
  type ProposedStruct,
  type ProposedType,
  valuePath,
} from '../arrow/proposed-schema.ts';
import type { PrimitiveTypeName } from '../iceberg/types.ts';
import { MAX_COLUMNS, messageShape, numberPath, PRESENT_FIELD, rootPath } from './paths.ts';
import type { ProtoField, ProtoMessage, ProtoScalar, ProtoType } from './schema.ts';

export interface ProtoTypeOptions {
  /** Timestamps as `timestamptz_ns` of format v3; otherwise microseconds by floor. */
  readonly nanos: boolean;
}

/** The columns for the fields of `message`. @throws FloeError `invalid` when they are too many. */
export function protobufToProposed(
  message: ProtoMessage,
  options: ProtoTypeOptions,
): ProposedStruct {
  const context = { options, ancestors: [message], budget: { left: MAX_COLUMNS } };
  return { type: 'struct', fields: messageFields(message, '', context) };
}

/** The type of one column that holds whole messages. @throws as {@link protobufToProposed}. */
export function protobufToType(
  message: ProtoMessage,
  path: string,
  options: ProtoTypeOptions,
): ProposedType {
  return proposedType(message, path, { options, ancestors: [], budget: { left: MAX_COLUMNS } });
}

interface Context {
  readonly options: ProtoTypeOptions;
  readonly ancestors: readonly ProtoMessage[];
  readonly budget: { left: number };
}

/** `context.ancestors` ends with the message itself. */
function messageFields(message: ProtoMessage, path: string, context: Context): ProposedField[] {
  const names = new ColumnNames(path === '');
  const base = context.ancestors.length === 1 ? rootPath(path, message) : path;
  if (message.fields.length === 0) {
    spend(context);
    const own = fieldPath(base, PRESENT_FIELD);
    return [{ name: PRESENT_FIELD, aliases: [], path: own, type: 'boolean' }];
  }
  return message.fields.map((field) => {
    const own = numberPath(base, field.number);
    return {
      name: names.take(field.name),
      aliases: [],
      path: own,
      type: fieldType(field, own, context),
      ...(field.doc === undefined ? {} : { doc: field.doc }),
    };
  });
}

function fieldType(field: ProtoField, path: string, context: Context): ProposedType {
  switch (field.cardinality) {
    case 'repeated': {
      const element = proposedType(field.type, elementPath(path), context);
      return { type: 'list', elementPath: elementPath(path), element };
    }
    case 'map': {
      spend(context);
      const value = proposedType(field.type, valuePath(path), context);
      const key = scalarType(field.key!);
      return { type: 'map', keyPath: keyPath(path), key, valuePath: valuePath(path), value };
    }
    default:
      return proposedType(field.type, path, context);
  }
}

function proposedType(type: ProtoType, path: string, context: Context): ProposedType {
  if (type.kind === 'message') {
    const shape = messageShape(type, context.ancestors);
    if (shape.kind === 'struct') {
      const ancestors = [...context.ancestors, type];
      return { type: 'struct', fields: messageFields(type, path, { ...context, ancestors }) };
    }
    spend(context);
    if (shape.kind === 'wrapper') return scalarType(shape.scalar);
    if (shape.kind === 'json') return 'string';
    return context.options.nanos ? 'timestamptz_ns' : 'timestamptz';
  }
  spend(context);
  return type.kind === 'enum' ? 'string' : scalarType(type.scalar);
}

function spend({ budget, ancestors }: Context): void {
  budget.left -= 1;
  if (budget.left >= 0) return;
  const name = ancestors[0]?.name ?? 'the message';
  throw new FloeError(
    'invalid',
    `${name} makes more than ${MAX_COLUMNS} columns: messages used in several places multiply`,
  );
}

/** Unsigned 64-bit integers exceed long, so they are decimals of 20 digits. */
export function scalarType(scalar: ProtoScalar): PrimitiveTypeName {
  switch (scalar) {
    case 'int32':
    case 'sint32':
    case 'sfixed32':
      return 'int';
    case 'uint32':
    case 'fixed32':
    case 'int64':
    case 'sint64':
    case 'sfixed64':
      return 'long';
    case 'uint64':
    case 'fixed64':
      return 'decimal(20, 0)';
    case 'bool':
      return 'boolean';
    case 'bytes':
      return 'binary';
    default:
      return scalar;
  }
}
