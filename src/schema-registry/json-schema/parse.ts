// JSON Schema text → nodes that can be compared (schema.ts). Drafts 4, 6, 7, 2019-09 and 2020-12, by what the keywords
// mean where they differ. Refused: text that is no schema (a keyword's value of the wrong type, an unknown type name)
// and references that lead nowhere.
import { FloeError } from '../../base/error.ts';
import { formatJson, isObject, type Json, type JsonObject, parseJson, toNumber } from '../json.ts';
import { Documents } from './documents.ts';
import type {
  ArrayNode,
  Beyond,
  CombinedNode,
  JsonSchemaNode,
  ObjectNode,
  RefNode,
  Restriction,
} from './schema.ts';

export interface ParsedJsonSchema {
  readonly json: Json;
  readonly root: JsonSchemaNode;
}

/** `dependencies`: texts by the names that references have. @throws FloeError `invalid` with the reason. */
export function parseJsonSchema(
  text: string,
  dependencies: ReadonlyMap<string, string>,
): ParsedJsonSchema {
  const json = read(text);
  if (!isObject(json) && typeof json !== 'boolean')
    throw invalid('a schema is an object, true or false');
  const others = new Map([...dependencies].map(([name, other]) => [name, read(other)]));
  return { json, root: new Loader(json, new Documents(json, others)).load() };
}

function read(text: string): Json {
  try {
    return parseJson(text);
  } catch (caught) {
    throw invalid(`not JSON: ${FloeError.from(caught).message}`);
  }
}

const invalid = (message: string) => new FloeError('invalid', message);

const KEYWORDS_OF_TYPE: Readonly<Record<string, readonly string[]>> = {
  string: ['minLength', 'maxLength', 'pattern', 'format', 'contentEncoding', 'contentMediaType'],
  number: ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  object: [
    'properties',
    'patternProperties',
    'additionalProperties',
    'unevaluatedProperties',
    'required',
    'minProperties',
    'maxProperties',
    'propertyNames',
    'dependencies',
    'dependentRequired',
    'dependentSchemas',
  ],
  array: [
    'items',
    'prefixItems',
    'additionalItems',
    'unevaluatedItems',
    'minItems',
    'maxItems',
    'uniqueItems',
    'contains',
    'minContains',
    'maxContains',
  ],
};
const TYPES = new Set(['null', 'boolean', 'integer', ...Object.keys(KEYWORDS_OF_TYPE)]);

class Loader {
  readonly #root: Json;
  readonly #documents: Documents;
  readonly #nodes = new Map<JsonObject, JsonSchemaNode>();
  readonly #pending: (() => void)[] = [];
  readonly #draft: string;

  constructor(root: Json, documents: Documents) {
    this.#root = root;
    this.#documents = documents;
    this.#draft = isObject(root) ? String(root['$schema'] ?? '') : '';
  }

  load(): JsonSchemaNode {
    const root = this.#schema(this.#root, '#');
    // Following references only now is what lets schemas refer to themselves.
    for (let next = this.#pending.pop(); next !== undefined; next = this.#pending.pop()) next();
    return root;
  }

  #schema(json: Json, path: string): JsonSchemaNode {
    if (typeof json === 'boolean')
      return { kind: json ? 'any' : 'never', hasDefault: false, connectType: undefined };
    if (!isObject(json)) throw invalid(`${path} is no schema: an object, true or false`);
    const known = this.#nodes.get(json);
    if (known !== undefined) return known;
    const node = this.#object(json, path);
    this.#nodes.set(json, node);
    return node;
  }

  #object(json: JsonObject, path: string): JsonSchemaNode {
    const modern = /draft\/20\d\d-\d\d/.test(this.#draft);
    const ref = json['$ref'] ?? json['$dynamicRef'] ?? json['$recursiveRef'];
    if (typeof ref === 'string' && !modern) return this.#ref(ref, json, path);
    const parts: JsonSchemaNode[] = typeof ref === 'string' ? [this.#ref(ref, json, path)] : [];
    parts.push(...this.#values(json, path), ...this.#combinations(json, path));
    const { not } = json;
    if (not !== undefined)
      parts.push({ kind: 'not', schema: this.#schema(not, `${path}/not`), ...common(json) });
    parts.push(...this.#typed(json, path));
    if (parts.length === 1) return parts[0]!;
    if (parts.length > 1) return combined('allOf', parts, json);
    const kind = json['if'] === undefined ? 'any' : 'other';
    return { kind, ...common(json) };
  }

  #ref(ref: string, owner: JsonObject, path: string): RefNode {
    const node: RefNode = { kind: 'ref', target: undefined };
    this.#pending.push(() => {
      node.target = this.#schema(this.#documents.find(ref, owner), `${path}/$ref`);
    });
    return node;
  }

  #values(json: JsonObject, path: string): Restriction[] {
    const { const: constant, enum: list } = json;
    const found: Restriction[] = [];
    if (list !== undefined) {
      if (!Array.isArray(list)) throw invalid(`${path}/enum is not a list`);
      const values = new Set((list as readonly Json[]).map(valueText));
      found.push({ kind: 'enum', values, ...common(json) });
    }
    if (constant !== undefined)
      found.push({ kind: 'const', values: new Set([valueText(constant)]), ...common(json) });
    return found;
  }

  #combinations(json: JsonObject, path: string): CombinedNode[] {
    return (['allOf', 'anyOf', 'oneOf'] as const).flatMap((criterion) => {
      const list = json[criterion];
      if (list === undefined) return [];
      if (!Array.isArray(list) || list.length === 0)
        throw invalid(`${path}/${criterion} is not a list of schemas`);
      // Equal members count once.
      const members = new Map((list as readonly Json[]).map((one) => [valueText(one), one]));
      const schemas = [...members.values()].map((one, at) =>
        this.#schema(one, `${path}/${criterion}/${at}`),
      );
      return combined(criterion, schemas, json);
    });
  }

  /** By `type`; without it, by the keywords that are there. */
  #typed(json: JsonObject, path: string): Restriction[] {
    const { type } = json;
    if (Array.isArray(type)) {
      if (type.length === 0) throw invalid(`${path}/type is an empty list`);
      const list = (type as readonly Json[]).map((one) => this.#ofType(one, json, path));
      return list.length === 1 ? list : [combined('anyOf', list, json)];
    }
    if (type !== undefined) return [this.#ofType(type, json, path)];
    return Object.entries(KEYWORDS_OF_TYPE)
      .filter(([, keywords]) => keywords.some((keyword) => json[keyword] !== undefined))
      .map(([name]) => this.#ofType(name, json, path));
  }

  #ofType(type: Json, json: JsonObject, path: string): Restriction {
    if (typeof type !== 'string' || !TYPES.has(type))
      throw invalid(`${path}/type: ${formatJson(type)} is none of ${[...TYPES].join(', ')}`);
    switch (type) {
      case 'string':
        return {
          kind: 'string',
          ...numbers(json, path, 'maxLength', 'minLength'),
          pattern: textOf(json, 'pattern', path),
          ...common(json),
        };
      case 'number':
      case 'integer':
        return {
          kind: 'number',
          integer: type === 'integer',
          ...limits(json, path),
          ...common(json),
        };
      case 'object':
        return this.#objectNode(json, path);
      case 'array':
        return this.#arrayNode(json, path);
      default:
        return { kind: type as 'boolean' | 'null', ...common(json) };
    }
  }

  #objectNode(json: JsonObject, path: string): ObjectNode {
    const dependencies = Object.entries(objectOf(json, 'dependencies', path));
    const lists = [
      ...dependencies.filter(([, value]) => Array.isArray(value)),
      ...Object.entries(objectOf(json, 'dependentRequired', path)),
    ];
    const schemas = dependencies.filter(([, value]) => !Array.isArray(value));
    return {
      kind: 'object',
      properties: this.#schemas(json, 'properties', path),
      patterns: [...this.#schemas(json, 'patternProperties', path)],
      required: names(json['required'], `${path}/required`),
      additional: this.#beyond(json, 'additionalProperties', path),
      unevaluated: this.#optional(json, 'unevaluatedProperties', path),
      dependentRequired: new Map(
        lists.map(([key, value]) => [key, names(value, `${path}/dependencies/${key}`)]),
      ),
      dependentSchemas: new Map([
        ...schemas.map(
          ([key, value]) => [key, this.#schema(value, `${path}/dependencies`)] as const,
        ),
        ...this.#schemas(json, 'dependentSchemas', path),
      ]),
      ...numbers(json, path, 'maxProperties', 'minProperties'),
      ...common(json),
    };
  }

  #arrayNode(json: JsonObject, path: string): ArrayNode {
    const { items, prefixItems } = json;
    const list = Array.isArray(items) ? items : prefixItems;
    const tuple = Array.isArray(list)
      ? (list as readonly Json[]).map((one, at) => this.#schema(one, `${path}/items/${at}`))
      : [];
    // After `prefixItems`, `items` is of the rest; before 2020-12 that is `additionalItems`.
    const rest = prefixItems !== undefined && !Array.isArray(items) ? 'items' : 'additionalItems';
    return {
      kind: 'array',
      items:
        Array.isArray(items) || rest === 'items' ? undefined : this.#optional(json, 'items', path),
      tuple,
      additional: this.#beyond(json, rest, path),
      unevaluated: this.#optional(json, 'unevaluatedItems', path),
      ...numbers(json, path, 'maxItems', 'minItems'),
      ...numbers(json, path, 'maxContains', 'minContains'),
      uniqueItems: json['uniqueItems'] === true,
      ...common(json),
    };
  }

  #schemas(json: JsonObject, keyword: string, path: string): Map<string, JsonSchemaNode> {
    return new Map(
      Object.entries(objectOf(json, keyword, path)).map(([name, one]) => [
        name,
        this.#schema(one, `${path}/${keyword}/${name}`),
      ]),
    );
  }

  #optional(json: JsonObject, keyword: string, path: string): JsonSchemaNode | undefined {
    const value = json[keyword];
    return value === undefined ? undefined : this.#schema(value, `${path}/${keyword}`);
  }

  #beyond(json: JsonObject, keyword: string, path: string): Beyond {
    const value = json[keyword];
    return value === undefined || typeof value === 'boolean'
      ? (value ?? true)
      : this.#schema(value, `${path}/${keyword}`);
  }
}

function common(json: JsonObject) {
  const connectType = json['connect.type'];
  return {
    hasDefault: json['default'] !== undefined,
    connectType: typeof connectType === 'string' ? connectType : undefined,
  };
}

function combined(
  criterion: CombinedNode['criterion'],
  schemas: readonly JsonSchemaNode[],
  json: JsonObject,
): CombinedNode {
  return { kind: 'combined', criterion, schemas, ...common(json) };
}

/** Equal values have equal texts: members of objects sorted, numbers by value. */
export function valueText(value: Json): string {
  const number = toNumber(value);
  if (number !== undefined && Number.isSafeInteger(number)) return String(number);
  if (Array.isArray(value)) return `[${value.map(valueText).join(',')}]`;
  if (!isObject(value)) return formatJson(value);
  const members = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${valueText(value[key]!)}`);
  return `{${members.join(',')}}`;
}

function numberOf(json: JsonObject, keyword: string, path: string): number | undefined {
  const value = json[keyword];
  if (value === undefined) return undefined;
  const number = toNumber(value);
  if (number === undefined) throw invalid(`${path}/${keyword} is not a number`);
  return number;
}

function numbers<A extends string, B extends string>(json: JsonObject, path: string, a: A, b: B) {
  return { [a]: numberOf(json, a, path), [b]: numberOf(json, b, path) } as Record<
    A | B,
    number | undefined
  >;
}

/** Draft 4's exclusive limits say of `minimum` and `maximum` that they don't belong to the range. */
function limits(json: JsonObject, path: string) {
  const bound = (limit: string, exclusive: string) => {
    const flagged = json[exclusive];
    const value = numberOf(json, limit, path);
    if (typeof flagged === 'boolean')
      return flagged ? { out: value, in: undefined } : { out: undefined, in: value };
    return { out: numberOf(json, exclusive, path), in: value };
  };
  const [low, high] = [bound('minimum', 'exclusiveMinimum'), bound('maximum', 'exclusiveMaximum')];
  return {
    minimum: low.in,
    maximum: high.in,
    exclusiveMinimum: low.out,
    exclusiveMaximum: high.out,
    multipleOf: numberOf(json, 'multipleOf', path),
  };
}

function textOf(json: JsonObject, keyword: string, path: string): string | undefined {
  const value = json[keyword];
  if (value !== undefined && typeof value !== 'string')
    throw invalid(`${path}/${keyword} is not a string`);
  return value;
}

function objectOf(json: JsonObject, keyword: string, path: string): JsonObject {
  const value = json[keyword] ?? {};
  if (!isObject(value)) throw invalid(`${path}/${keyword} is not an object`);
  return value;
}

/** A list of names. Draft 3's `required: true` on a property says nothing here, as in later drafts. */
function names(value: Json | undefined, path: string): ReadonlySet<string> {
  if (value === undefined || typeof value === 'boolean') return new Set();
  if (!Array.isArray(value) || !value.every((one) => typeof one === 'string'))
    throw invalid(`${path} is not a list of names`);
  return new Set(value as string[]);
}
