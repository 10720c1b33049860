// Avro schemas as a checked tree: names resolved, logical types understood, recursion allowed.
// Source: Avro specification 1.12, "Schema Declaration" and "Logical Types". An unknown or malformed logical type
// is ignored, as the specification asks; everything else that is wrong is refused with its place.
// Kafka Connect's name of a type (`connect.name`) counts as a logical type too: connect-types.ts.
// Not for: compatibility rules (schema-registry/) or reading values (decoder.ts).
import { FloeError } from '../../base/error.ts';
import { connectLogical, withConnectPrecision } from './connect-types.ts';
import type { AvroLogical } from './logical-type.ts';

export type AvroPrimitive =
  | 'null'
  | 'boolean'
  | 'int'
  | 'long'
  | 'float'
  | 'double'
  | 'bytes'
  | 'string';

export interface AvroScalar {
  readonly kind: AvroPrimitive;
  readonly logical?: AvroLogical;
}

interface Named {
  /** Full name: namespace and name. */
  readonly name: string;
  /** Full names. */
  readonly aliases: readonly string[];
}

export interface AvroFixed extends Named {
  readonly kind: 'fixed';
  readonly size: number;
  readonly logical?: AvroLogical;
}

export interface AvroEnum extends Named {
  readonly kind: 'enum';
  readonly symbols: readonly string[];
  readonly default?: string;
}

export interface AvroField {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly type: AvroSchema;
  readonly doc?: string;
  /** Present when the schema has one, `null` included. */
  readonly default?: unknown;
}

export interface AvroRecord extends Named {
  readonly kind: 'record';
  /** May reach the record itself again. */
  readonly fields: readonly AvroField[];
  readonly doc?: string;
}

export interface AvroArray {
  readonly kind: 'array';
  readonly items: AvroSchema;
}

export interface AvroMap {
  readonly kind: 'map';
  readonly values: AvroSchema;
}

export interface AvroUnion {
  readonly kind: 'union';
  readonly branches: readonly AvroSchema[];
}

export type AvroSchema =
  | AvroScalar
  | AvroFixed
  | AvroEnum
  | AvroRecord
  | AvroArray
  | AvroMap
  | AvroUnion;

/** Levels of a schema's text; deeper ones are refused rather than overflowing the stack. */
export const MAX_SCHEMA_DEPTH = 256;

const PRIMITIVES: ReadonlySet<string> = new Set([
  'null',
  'boolean',
  'int',
  'long',
  'float',
  'double',
  'bytes',
  'string',
]);
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

interface Scope {
  readonly names: Map<string, AvroSchema>;
  readonly namespace: string;
  readonly path: string;
  readonly depth: number;
}

/**
 * Parses a schema's JSON text. `references` are the texts of schemas whose named types it uses, in an order in
 * which each needs only those before it.
 * @throws FloeError `invalid`, naming the place and what is wrong there.
 */
export function parseAvroSchema(text: string, references: readonly string[] = []): AvroSchema {
  const names = new Map<string, AvroSchema>();
  const parseOne = (source: string) =>
    parseNode(readJson(source), { names, namespace: '', path: '', depth: 0 });
  for (const reference of references) parseOne(reference);
  return parseOne(text);
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    // A bare primitive name is accepted by every registry although it is not JSON.
    if (PRIMITIVES.has(text.trim())) return text.trim();
    const { message } = FloeError.from(cause);
    throw new FloeError('invalid', `Avro schema is not JSON: ${message}`, { cause });
  }
}

function fail(scope: Scope, what: string): never {
  const place = scope.path === '' ? 'at its root' : `at ${scope.path}`;
  throw new FloeError('invalid', `Avro schema ${place}: ${what}`);
}

function within(scope: Scope, segment: string, namespace = scope.namespace): Scope {
  const path = scope.path === '' ? segment : `${scope.path}.${segment}`;
  if (scope.depth >= MAX_SCHEMA_DEPTH) fail(scope, `nested deeper than ${MAX_SCHEMA_DEPTH} levels`);
  return { names: scope.names, namespace, path, depth: scope.depth + 1 };
}

function parseNode(node: unknown, scope: Scope): AvroSchema {
  if (typeof node === 'string') return resolveName(node, scope);
  if (Array.isArray(node)) return parseUnion(node, scope);
  if (typeof node !== 'object' || node === null) {
    return fail(scope, `a schema is a name, an object or an array, not ${JSON.stringify(node)}`);
  }
  const json = node as Record<string, unknown>;
  const type = json['type'];
  switch (type) {
    case 'record':
    case 'error':
      return parseRecord(json, scope);
    case 'enum':
      return parseEnum(json, scope);
    case 'fixed':
      return parseFixed(json, scope);
    case 'array':
      return { kind: 'array', items: parseNode(json['items'], within(scope, 'items')) };
    case 'map':
      return { kind: 'map', values: parseNode(json['values'], within(scope, 'values')) };
    case undefined:
      return fail(scope, '"type" is missing');
  }
  if (typeof type !== 'string' || !PRIMITIVES.has(type))
    return parseNode(type, within(scope, 'type'));
  const kind = type as AvroPrimitive;
  const logical = parseLogical(json, kind, undefined);
  return logical === undefined ? { kind } : { kind, logical };
}

function resolveName(name: string, scope: Scope): AvroSchema {
  if (PRIMITIVES.has(name)) return { kind: name as AvroPrimitive };
  const known = scope.names.get(fullName(name, scope.namespace)) ?? scope.names.get(name);
  return known ?? fail(scope, `type "${name}" is not defined`);
}

const fullName = (name: string, namespace: string) =>
  name.includes('.') || namespace === '' ? name : `${namespace}.${name}`;

function parseUnion(nodes: readonly unknown[], scope: Scope): AvroUnion {
  const branches = nodes.map((node, i) => parseNode(node, within(scope, `[${i}]`)));
  const seen = new Set<string>();
  for (const branch of branches) {
    if (branch.kind === 'union') fail(scope, 'a union directly inside a union');
    const key = branchName(branch);
    if (seen.has(key)) fail(scope, `the union has two branches of type ${key}`);
    seen.add(key);
  }
  return { kind: 'union', branches };
}

/** What tells a branch of a union apart: its full name, or its kind. */
export function branchName(schema: AvroSchema): string {
  return 'name' in schema ? schema.name : schema.kind;
}

function text(json: Record<string, unknown>, key: string): string | undefined {
  const value = json[key];
  return typeof value === 'string' ? value : undefined;
}

function stringList(json: Record<string, unknown>, key: string): string[] {
  const value = json[key];
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

/** Reads name, namespace and aliases, and the namespace for what is inside. */
function parseNamed(json: Record<string, unknown>, scope: Scope): Named & { namespace: string } {
  const given = text(json, 'name');
  if (given === undefined || given === '') fail(scope, `a ${json['type']} needs a "name"`);
  const dot = given.lastIndexOf('.');
  const namespace = dot >= 0 ? given.slice(0, dot) : (text(json, 'namespace') ?? scope.namespace);
  const name = fullName(given.slice(dot + 1), namespace);
  for (const part of name.split('.')) {
    if (!NAME.test(part)) fail(scope, `"${name}" is not an Avro name`);
  }
  const aliases = stringList(json, 'aliases').map((alias) => fullName(alias, namespace));
  return { name, aliases, namespace };
}

function define(schema: AvroSchema & Named, scope: Scope): void {
  if (scope.names.has(schema.name)) fail(scope, `type "${schema.name}" is defined twice`);
  scope.names.set(schema.name, schema);
}

function parseRecord(json: Record<string, unknown>, scope: Scope): AvroRecord {
  const { name, aliases, namespace } = parseNamed(json, scope);
  const nodes = json['fields'];
  if (!Array.isArray(nodes)) fail(scope, `record ${name} needs "fields", an array`);
  const fields: AvroField[] = [];
  const doc = text(json, 'doc');
  const record: AvroRecord = { kind: 'record', name, aliases, fields, ...optional('doc', doc) };
  define(record, scope); // before its fields: they may refer to it
  const seen = new Set<string>();
  nodes.forEach((node: unknown, i) => {
    const field = parseField(node, within(scope, `${name}.fields[${i}]`, namespace));
    if (seen.has(field.name)) fail(scope, `record ${name} has two fields "${field.name}"`);
    seen.add(field.name);
    fields.push(field);
  });
  return record;
}

function parseField(node: unknown, scope: Scope): AvroField {
  if (typeof node !== 'object' || node === null) return fail(scope, 'a field is an object');
  const json = node as Record<string, unknown>;
  const name = text(json, 'name');
  if (name === undefined || name === '') return fail(scope, 'a field needs a "name"');
  const doc = text(json, 'doc');
  return {
    name,
    aliases: stringList(json, 'aliases'),
    type: parseNode(json['type'], within(scope, name)),
    ...optional('doc', doc),
    ...('default' in json ? { default: json['default'] } : {}),
  };
}

function optional<K extends string>(key: K, value: string | undefined): { [P in K]?: string } {
  return (value === undefined ? {} : { [key]: value }) as { [P in K]?: string };
}

function parseEnum(json: Record<string, unknown>, scope: Scope): AvroEnum {
  const { name, aliases } = parseNamed(json, scope);
  const symbols = json['symbols'];
  if (!Array.isArray(symbols) || symbols.length === 0) {
    return fail(scope, `enum ${name} needs "symbols", an array of names`);
  }
  const seen = new Set<unknown>();
  for (const symbol of symbols) {
    if (typeof symbol !== 'string')
      fail(scope, `enum ${name}: ${JSON.stringify(symbol)} is no name`);
    if (seen.has(symbol)) fail(scope, `enum ${name} has the symbol "${symbol}" twice`);
    seen.add(symbol);
  }
  const fallback = text(json, 'default');
  if (fallback !== undefined && !seen.has(fallback)) {
    fail(scope, `enum ${name}: default "${fallback}" is not one of its symbols`);
  }
  const schema: AvroEnum = {
    kind: 'enum',
    name,
    aliases,
    symbols,
    ...optional('default', fallback),
  };
  define(schema, scope);
  return schema;
}

function parseFixed(json: Record<string, unknown>, scope: Scope): AvroFixed {
  const { name, aliases } = parseNamed(json, scope);
  const size = json['size'];
  if (typeof size !== 'number' || !Number.isInteger(size) || size < 0 || size > 0x7fffffff) {
    return fail(scope, `fixed ${name} needs "size", a whole number`);
  }
  const logical = parseLogical(json, 'fixed', size);
  const schema: AvroFixed = {
    kind: 'fixed',
    name,
    aliases,
    size,
    ...(logical === undefined ? {} : { logical }),
  };
  define(schema, scope);
  return schema;
}

/** Which kinds each plain logical type annotates; `fixed:N` with that size. */
const LOGICAL_ON: Readonly<Record<string, readonly string[]>> = {
  uuid: ['string', 'fixed:16'],
  date: ['int'],
  duration: ['fixed:12'],
  'time-millis': ['int'],
  'time-micros': ['long'],
  'timestamp-millis': ['long'],
  'timestamp-micros': ['long'],
  'timestamp-nanos': ['long'],
  'local-timestamp-millis': ['long'],
  'local-timestamp-micros': ['long'],
  'local-timestamp-nanos': ['long'],
};

function parseLogical(
  json: Record<string, unknown>,
  kind: string,
  size: number | undefined,
): AvroLogical | undefined {
  const name = text(json, 'logicalType');
  if (name === undefined) return connectLogical(json['connect.name'], kind);
  if (name === 'decimal') return parseDecimal(withConnectPrecision(json), kind, size);
  const on = Object.hasOwn(LOGICAL_ON, name) ? LOGICAL_ON[name]! : [];
  const fits = on.includes(kind) || on.includes(`${kind}:${size}`);
  return fits ? ({ kind: name } as AvroLogical) : undefined;
}

function parseDecimal(
  json: Record<string, unknown>,
  kind: string,
  size: number | undefined,
): AvroLogical | undefined {
  if (kind !== 'bytes' && kind !== 'fixed') return undefined;
  const precision = json['precision'];
  const scale = json['scale'] ?? 0;
  if (typeof precision !== 'number' || !Number.isInteger(precision) || precision < 1)
    return undefined;
  if (typeof scale !== 'number' || !Number.isInteger(scale) || scale < 0 || scale > precision) {
    return undefined;
  }
  if (size !== undefined && precision > Math.floor(Math.log10(2) * (8 * size - 1)))
    return undefined;
  return { kind: 'decimal', precision, scale };
}
