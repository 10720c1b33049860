// Avro JSON text → schema, as strict as Apache Avro's Java parser (what Confluent's registry accepts): names,
// duplicates, unions, sizes. Defaults are checked by defaults.ts, and only on request, as there.
import { FloeError } from '../../base/error.ts';
import { isObject, type Json, type JsonObject, parseJson, toNumber } from '../json.ts';
import {
  type AnyNamedSchema,
  type AvroSchema,
  type Field,
  isNamed,
  isPrimitiveName,
  type NamedSchema,
  type Names,
} from './schema.ts';

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;
const NAMESPACE = /^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$/;
const SCHEMA_ATTRIBUTES = new Set(
  'type name namespace doc fields items values size symbols aliases'.split(' '),
);
const ENUM_ATTRIBUTES = new Set([...SCHEMA_ATTRIBUTES, 'default']);
const FIELD_ATTRIBUTES = new Set('name type doc default order aliases'.split(' '));

export interface ParsedAvro {
  readonly schema: AvroSchema;
  /** The given names and those that the text defines. */
  readonly names: Names;
}

/**
 * Parses a schema; `known` are the named schemas it may refer to without defining them.
 * @throws FloeError `invalid` with the reason.
 */
export function parseAvro(text: string, known: Names = new Map()): ParsedAvro {
  const names = new Map(known);
  return { schema: new Parser(names).parse(read(text), ''), names };
}

function read(text: string): Json {
  try {
    return parseJson(text);
  } catch (caught) {
    throw new FloeError('invalid', `not JSON: ${FloeError.from(caught).message}`);
  }
}

const invalid = (message: string) => new FloeError('invalid', message);

class Parser {
  readonly #names: Map<string, AnyNamedSchema>;

  constructor(names: Map<string, AnyNamedSchema>) {
    this.#names = names;
  }

  parse(json: Json, namespace: string): AvroSchema {
    if (typeof json === 'string') return this.#byName(json, namespace);
    if (Array.isArray(json)) return this.#union(json, namespace);
    if (isObject(json)) return this.#object(json, namespace);
    throw invalid(`a schema is a name, an object or a list, not ${JSON.stringify(json)}`);
  }

  #byName(name: string, namespace: string): AvroSchema {
    if (isPrimitiveName(name)) return { type: name, properties: {} };
    const found = this.#find(name, namespace);
    if (found === undefined)
      throw invalid(`undefined name: "${qualify(name, namespace).fullName}"`);
    return found;
  }

  /** A simple name is looked for in the enclosing namespace, then without one. */
  #find(name: string, namespace: string): AnyNamedSchema | undefined {
    return this.#names.get(qualify(name, namespace).fullName) ?? this.#names.get(name);
  }

  #object(json: JsonObject, namespace: string): AvroSchema {
    const { type } = json;
    if (typeof type !== 'string') throw invalid(`no type in ${brief(json)}`);
    if (isPrimitiveName(type)) return { type, properties: rest(json, SCHEMA_ATTRIBUTES) };
    switch (type) {
      case 'record':
      case 'error':
        return this.#record(json, type, namespace);
      case 'enum':
        return this.#enum(json, namespace);
      case 'fixed':
        return this.#fixed(json, namespace);
      case 'array':
        return {
          type,
          items: this.parse(required(json, 'items'), namespace),
          properties: rest(json, SCHEMA_ATTRIBUTES),
        };
      case 'map':
        return {
          type,
          values: this.parse(required(json, 'values'), namespace),
          properties: rest(json, SCHEMA_ATTRIBUTES),
        };
      default: {
        const named = this.#find(type, namespace);
        if (named === undefined) throw invalid(`unknown type "${type}"`);
        return named;
      }
    }
  }

  #record(json: JsonObject, type: 'record' | 'error', namespace: string): AvroSchema {
    const fields: Field[] = [];
    const schema = { type, ...named(json, namespace), fields };
    // Before its fields, so that they can refer to it.
    this.#define(schema);
    const { fields: list } = json;
    if (!Array.isArray(list)) throw invalid(`record ${schema.fullName} has no fields`);
    const seen = new Set<string>();
    for (const item of list as readonly Json[]) {
      const field = this.#field(item, schema);
      if (seen.has(field.name))
        throw invalid(`duplicate field "${field.name}" in record ${schema.fullName}`);
      seen.add(field.name);
      fields.push(field);
    }
    return schema;
  }

  #field(json: Json, record: NamedSchema): Field {
    if (!isObject(json)) throw invalid(`a field of record ${record.fullName} is not an object`);
    const name = simpleName(json, `a field of record ${record.fullName}`);
    const { type, order = 'ascending' } = json;
    if (type === undefined)
      throw invalid(`field "${name}" of record ${record.fullName} has no type`);
    if (order !== 'ascending' && order !== 'descending' && order !== 'ignore')
      throw invalid(`order of field "${name}" is ascending, descending or ignore`);
    return {
      name,
      schema: this.parse(type, record.namespace),
      aliases: strings(json, 'aliases'),
      doc: optionalText(json, 'doc'),
      default: json['default'],
      order,
      properties: rest(json, FIELD_ATTRIBUTES),
    };
  }

  #enum(json: JsonObject, namespace: string): AvroSchema {
    const base = named(json, namespace, ENUM_ATTRIBUTES);
    const { symbols, default: byDefault } = json;
    if (!Array.isArray(symbols)) throw invalid(`enum ${base.fullName} has no symbols`);
    const list = strings(json, 'symbols');
    for (const [index, symbol] of list.entries()) {
      if (!NAME.test(symbol)) throw invalid(`illegal symbol "${symbol}" in enum ${base.fullName}`);
      if (list.indexOf(symbol) !== index)
        throw invalid(`duplicate symbol "${symbol}" in enum ${base.fullName}`);
    }
    if (byDefault !== undefined && !list.includes(byDefault as string))
      throw invalid(`the default of enum ${base.fullName} is none of its symbols`);
    const schema = {
      type: 'enum',
      ...base,
      symbols: list,
      default: byDefault as string | undefined,
    } as const;
    this.#define(schema);
    return schema;
  }

  #fixed(json: JsonObject, namespace: string): AvroSchema {
    const base = named(json, namespace);
    const size = toNumber(json['size']);
    if (size === undefined || !Number.isInteger(size) || size < 0 || size > 2 ** 31 - 1)
      throw invalid(`fixed ${base.fullName} has no valid size`);
    const schema = { type: 'fixed', ...base, size } as const;
    this.#define(schema);
    return schema;
  }

  #union(json: readonly Json[], namespace: string): AvroSchema {
    const branches = json.map((branch) => this.parse(branch, namespace));
    const seen = new Set<string>();
    for (const branch of branches) {
      if (branch.type === 'union') throw invalid('a union holds no union');
      const key = isNamed(branch) ? branch.fullName : branch.type;
      if (seen.has(key)) throw invalid(`duplicate in union: ${key}`);
      seen.add(key);
    }
    return { type: 'union', branches };
  }

  #define(schema: AnyNamedSchema): void {
    if (this.#names.has(schema.fullName)) throw invalid(`can't redefine ${schema.fullName}`);
    this.#names.set(schema.fullName, schema);
  }
}

/** A name as written → its parts; dots in it win over the enclosing namespace. */
function qualify(written: string, namespace: string) {
  const dot = written.lastIndexOf('.');
  const space = dot < 0 ? namespace : written.slice(0, dot);
  const name = written.slice(dot + 1);
  return { name, namespace: space, fullName: space === '' ? name : `${space}.${name}` };
}

function named(json: JsonObject, enclosing: string, attributes = SCHEMA_ATTRIBUTES): NamedSchema {
  const { name: written } = json;
  if (typeof written !== 'string' || written === '') throw invalid(`no name in ${brief(json)}`);
  const given = optionalText(json, 'namespace');
  const { name, namespace, fullName } = qualify(written, given ?? enclosing);
  if (!NAME.test(name)) throw invalid(`illegal name "${written}"`);
  if (namespace !== '' && !NAMESPACE.test(namespace))
    throw invalid(`illegal namespace "${namespace}"`);
  if (isPrimitiveName(fullName)) throw invalid(`"${fullName}" is the name of a primitive type`);
  const aliases = strings(json, 'aliases').map((alias) => qualify(alias, namespace).fullName);
  const doc = optionalText(json, 'doc');
  return { name, namespace, fullName, aliases, doc, properties: rest(json, attributes) };
}

function simpleName(json: JsonObject, what: string): string {
  const { name } = json;
  if (typeof name !== 'string') throw invalid(`${what} has no name`);
  if (!NAME.test(name)) throw invalid(`illegal name "${name}" of ${what}`);
  return name;
}

function required(json: JsonObject, key: string): Json {
  const value = json[key];
  if (value === undefined) throw invalid(`no ${key} in ${brief(json)}`);
  return value;
}

function optionalText(json: JsonObject, key: string): string | undefined {
  const value = json[key];
  return typeof value === 'string' ? value : undefined;
}

function strings(json: JsonObject, key: string): readonly string[] {
  const value = json[key];
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || !value.every((item) => typeof item === 'string'))
    throw invalid(`${key} is not a list of strings in ${brief(json)}`);
  return value;
}

function rest(json: JsonObject, attributes: ReadonlySet<string>): JsonObject {
  return Object.fromEntries(Object.entries(json).filter(([key]) => !attributes.has(key)));
}

function brief(json: JsonObject): string {
  const text = JSON.stringify(json);
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
