// The schema that Kafka Connect's JSON converter sends along with each value, as an Avro tree: so that JSON and Avro of
// one source make the same columns. Field names may be anything; nothing here has Avro's limits on names.
// Source: Kafka Connect, JsonConverter and JsonSchema ("type", "optional", "name", "parameters", "items", "keys",
// "values", "fields", "field").
import { FloeError } from '../../base/error.ts';
import {
  CONNECT_DECIMAL,
  connectLogical,
  connectPrecision,
} from '../../formats/avro/connect-types.ts';
import {
  type AvroField,
  type AvroPrimitive,
  type AvroRecord,
  type AvroSchema,
  MAX_SCHEMA_DEPTH,
} from '../../formats/avro/schema.ts';

/** Connect's name of a primitive → Avro's. */
const PRIMITIVES: Readonly<Record<string, AvroPrimitive>> = {
  int8: 'int',
  int16: 'int',
  int32: 'int',
  int64: 'long',
  float: 'float',
  float32: 'float',
  double: 'double',
  float64: 'double',
  boolean: 'boolean',
  string: 'string',
  bytes: 'bytes',
};

type Json = Readonly<Record<string, unknown>>;

interface Scope {
  readonly path: string;
  readonly depth: number;
  /** Structs by their text: Debezium sends one type twice, as `before` and `after`. */
  readonly known: Map<string, AvroRecord>;
}

/**
 * Parses a schema's JSON value.
 * @throws FloeError `invalid`, naming the place and what is wrong there.
 */
export function parseConnectSchema(json: unknown): AvroSchema {
  return parse(json, { path: '', depth: 0, known: new Map() });
}

function fail({ path }: Scope, what: string): never {
  const place = path === '' ? 'at its root' : `at "${path}"`;
  throw new FloeError('invalid', `Connect schema ${place}: ${what}`);
}

function inside(scope: Scope, segment: string): Scope {
  if (scope.depth >= MAX_SCHEMA_DEPTH) fail(scope, `nested deeper than ${MAX_SCHEMA_DEPTH} levels`);
  const path = scope.path === '' ? segment : `${scope.path}.${segment}`;
  return { ...scope, path, depth: scope.depth + 1 };
}

function parse(node: unknown, scope: Scope): AvroSchema {
  if (typeof node !== 'object' || node === null || Array.isArray(node)) {
    return fail(scope, 'a schema is an object');
  }
  const json = node as Json;
  const type = parseType(json, scope);
  if (json['optional'] !== true) return type;
  return { kind: 'union', branches: [{ kind: 'null' }, type] };
}

function parseType(json: Json, scope: Scope): AvroSchema {
  const { type } = json;
  switch (type) {
    case 'struct':
      return parseStruct(json, scope);
    case 'array':
      return { kind: 'array', items: parse(json['items'], inside(scope, '[]')) };
    case 'map':
      return parseMap(json, scope);
  }
  if (typeof type !== 'string' || !Object.hasOwn(PRIMITIVES, type)) {
    return fail(scope, `${JSON.stringify(type)} is no type of Connect`);
  }
  const kind = PRIMITIVES[type]!;
  const logical =
    json['name'] === CONNECT_DECIMAL ? decimal(json, kind) : connectLogical(json['name'], kind);
  return logical === undefined ? { kind } : { kind, logical };
}

function decimal({ parameters }: Json, kind: AvroPrimitive) {
  if (kind !== 'bytes') return undefined;
  const scale = Number((parameters as Json | undefined)?.['scale']);
  if (!Number.isInteger(scale) || scale < 0) return undefined;
  const precision = Math.max(scale, connectPrecision(parameters, scale) ?? scale);
  return { kind: 'decimal', precision, scale } as const;
}

function parseStruct(json: Json, scope: Scope): AvroRecord {
  const nodes = json['fields'];
  if (!Array.isArray(nodes)) return fail(scope, 'a struct needs "fields", an array');
  const text = JSON.stringify([json['name'], nodes]);
  const known = scope.known.get(text);
  if (known !== undefined) return known;
  const fields: AvroField[] = nodes.map((node: unknown) => {
    const name = (node as Json | null)?.['field'];
    if (typeof name !== 'string') return fail(scope, 'a field of a struct needs "field", its name');
    return { name, aliases: [], type: parse(node, inside(scope, name)) };
  });
  const name = typeof json['name'] === 'string' ? json['name'] : `struct.${scope.known.size}`;
  const record: AvroRecord = { kind: 'record', name, aliases: [], fields };
  scope.known.set(text, record);
  return record;
}

/** Connect writes maps of text keys as objects, others as arrays of pairs, which have no Avro form. */
function parseMap(json: Json, scope: Scope): AvroSchema {
  const keys = json['keys'] as Json | undefined;
  if (keys?.['type'] !== 'string') return fail(scope, 'a map whose keys are no text');
  return { kind: 'map', values: parse(json['values'], inside(scope, '{}')) };
}
