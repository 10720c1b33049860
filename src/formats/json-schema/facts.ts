// What all keywords that hold for one value say together: `$ref`, `allOf` and the schema itself are merged, whatever
// says nothing about columns is left out. Not for: deciding on a column (shape.ts).
import { FloeError } from '../../base/error.ts';
import { isSchema, type JsonSchema, type Located, type SchemaDocuments } from './documents.ts';

export type JsonType = 'null' | 'boolean' | 'object' | 'array' | 'number' | 'string' | 'integer';

export interface Facts {
  /** Undefined: not said. */
  types: ReadonlySet<JsonType> | undefined;
  /** What is said about each property, in the order in which they are first named. */
  readonly properties: Map<string, Located[]>;
  /** About the values of properties that aren't named; false forbids them. */
  readonly additional: Located[];
  readonly items: Located[];
  /** Groups of which one (or any) holds. */
  readonly choices: Located[][];
  /** `enum` and `const`. */
  values: readonly unknown[] | undefined;
  /** The last said of format, contentEncoding, title, multipleOf, connect.type and the like. */
  readonly hints: Map<string, unknown>;
  /** Schema objects that were merged: one of them again, inside, is a recursion. */
  readonly merged: Set<JsonSchema>;
  /** Some part is `false`: no value can be there. */
  nothing: boolean;
}

const HINTS = [
  'format',
  'contentEncoding',
  'title',
  'multipleOf',
  'connect.type',
  'connect.parameters',
  'description',
];

/** Schemas merged for one value, at most. */
const MAX_MERGED = 1_000;

/** Everything said about one value. @throws FloeError `invalid` when a reference leads nowhere. */
export function factsOf(said: readonly Located[], documents: SchemaDocuments): Facts {
  const facts: Facts = {
    types: undefined,
    properties: new Map(),
    additional: [],
    items: [],
    choices: [],
    values: undefined,
    hints: new Map(),
    merged: new Set(),
    nothing: false,
  };
  for (const located of said) merge(facts, located, documents);
  return facts;
}

function merge(facts: Facts, { schema, base }: Located, documents: SchemaDocuments): void {
  if (typeof schema === 'boolean') {
    if (!schema) facts.nothing = true;
    return;
  }
  if (facts.merged.has(schema)) return;
  facts.merged.add(schema);
  if (facts.merged.size > MAX_MERGED) {
    throw new FloeError('invalid', `more than ${MAX_MERGED} schemas hold for one value`);
  }
  const at = (part: unknown): Located[] => (isSchema(part) ? [{ schema: part, base }] : []);
  for (const key of ['$ref', '$recursiveRef', '$dynamicRef']) {
    const ref = schema[key];
    if (typeof ref === 'string') merge(facts, documents.resolve(ref, base), documents);
  }
  for (const part of list(schema['allOf'])) {
    for (const located of at(part)) merge(facts, located, documents);
  }
  mergeTypes(facts, schema);
  mergeParts(facts, schema, at);
  for (const key of ['oneOf', 'anyOf']) {
    const group = list(schema[key]).flatMap(at);
    if (group.length > 0) facts.choices.push(group);
  }
  for (const key of HINTS) if (Object.hasOwn(schema, key)) facts.hints.set(key, schema[key]);
}

function mergeTypes(facts: Facts, schema: Readonly<Record<string, unknown>>): void {
  const given = schema['type'];
  if (given !== undefined) {
    const own = new Set((Array.isArray(given) ? given : [given]) as JsonType[]);
    // OpenAPI's way of saying it.
    if (schema['nullable'] === true) own.add('null');
    const { types } = facts;
    facts.types =
      types === undefined ? own : new Set([...own].filter((type) => allows(types, type)));
  }
  const values = 'const' in schema ? [schema['const']] : schema['enum'];
  if (Array.isArray(values)) facts.values = values;
}

const allows = (types: ReadonlySet<JsonType>, type: JsonType) =>
  types.has(type) || (type === 'integer' && types.has('number'));

function mergeParts(
  facts: Facts,
  schema: Readonly<Record<string, unknown>>,
  at: (part: unknown) => Located[],
): void {
  const name = (property: string, part: unknown) => {
    const known = facts.properties.get(property) ?? [];
    facts.properties.set(property, [...known, ...at(part)]);
  };
  for (const [property, part] of entries(schema['properties'])) name(property, part);
  // What holds under a condition may be there.
  const conditional = [schema['then'], schema['else']];
  conditional.push(...entries(schema['dependentSchemas']).map(([, part]) => part));
  for (const part of conditional) {
    if (typeof part !== 'object' || part === null) continue;
    const inner = (part as Record<string, unknown>)['properties'];
    for (const [property, said] of entries(inner)) {
      if (!facts.properties.has(property)) name(property, said);
    }
  }
  for (const [, part] of entries(schema['patternProperties'])) facts.additional.push(...at(part));
  const open = schema['additionalProperties'] ?? schema['unevaluatedProperties'];
  facts.additional.push(...at(open));
  const { items } = schema;
  facts.items.push(...(Array.isArray(items) ? items.flatMap(at) : at(items)));
  facts.items.push(...list(schema['prefixItems']).flatMap(at));
  facts.items.push(...at(schema['additionalItems']).filter(({ schema: one }) => one !== false));
}

const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

const entries = (value: unknown): [string, unknown][] =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : [];
