// Avro schemas as data: what parse.ts makes, text.ts writes and compatibility.ts compares.
// Recursive schemas are cyclic graphs: a named schema refers to the very same object wherever it occurs.
import type { Json, JsonObject } from '../json.ts';

const PRIMITIVES = [
  'null',
  'boolean',
  'int',
  'long',
  'float',
  'double',
  'bytes',
  'string',
] as const;
export type PrimitiveType = (typeof PRIMITIVES)[number];

/** Attributes that Avro doesn't define for the place, logical types included; kept in their order. */
interface WithProperties {
  readonly properties: JsonObject;
}

interface PrimitiveSchema extends WithProperties {
  readonly type: PrimitiveType;
}

export interface NamedSchema extends WithProperties {
  /** Without namespace. */
  readonly name: string;
  /** '' when there is none. */
  readonly namespace: string;
  readonly fullName: string;
  /** Full names. */
  readonly aliases: readonly string[];
  readonly doc: string | undefined;
}

export interface Field extends WithProperties {
  readonly name: string;
  readonly schema: AvroSchema;
  readonly aliases: readonly string[];
  readonly doc: string | undefined;
  /** Undefined when there is none; null is a default like any other. */
  readonly default: Json | undefined;
  readonly order: 'ascending' | 'descending' | 'ignore';
}

export interface RecordSchema extends NamedSchema {
  readonly type: 'record' | 'error';
  readonly fields: readonly Field[];
}

export interface EnumSchema extends NamedSchema {
  readonly type: 'enum';
  readonly symbols: readonly string[];
  readonly default: string | undefined;
}

export interface FixedSchema extends NamedSchema {
  readonly type: 'fixed';
  readonly size: number;
}

interface ArraySchema extends WithProperties {
  readonly type: 'array';
  readonly items: AvroSchema;
}

interface MapSchema extends WithProperties {
  readonly type: 'map';
  readonly values: AvroSchema;
}

export interface UnionSchema {
  readonly type: 'union';
  readonly branches: readonly AvroSchema[];
}

export type AvroSchema =
  | PrimitiveSchema
  | RecordSchema
  | EnumSchema
  | FixedSchema
  | ArraySchema
  | MapSchema
  | UnionSchema;

export type AnyNamedSchema = RecordSchema | EnumSchema | FixedSchema;

/** Known named schemas by full name. */
export type Names = ReadonlyMap<string, AnyNamedSchema>;

export function isNamed(schema: AvroSchema): schema is AnyNamedSchema {
  return 'fullName' in schema;
}

export function isPrimitiveName(name: string): name is PrimitiveType {
  return (PRIMITIVES as readonly string[]).includes(name);
}
