// JSON Schemas as data, for comparison: one kind of node for each way a schema restricts values, the same for all drafts.
// A schema that restricts in several ways at once is `combined` of them. Keywords that Confluent's registry doesn't
// compare (format, contains, propertyNames, if/then/else and annotations) are not kept.

interface Common {
  readonly hasDefault: boolean;
  /** Kafka Connect's `connect.type`, e.g. `bytes`. */
  readonly connectType: string | undefined;
}

interface Plain extends Common {
  /** `any` and `never` are `true` and `false`; `other` is what isn't compared, e.g. if/then/else alone. */
  readonly kind: 'any' | 'never' | 'boolean' | 'null' | 'other';
}

export interface StringNode extends Common {
  readonly kind: 'string';
  readonly maxLength: number | undefined;
  readonly minLength: number | undefined;
  readonly pattern: string | undefined;
}

export interface NumberNode extends Common {
  readonly kind: 'number';
  readonly integer: boolean;
  readonly maximum: number | undefined;
  readonly minimum: number | undefined;
  readonly exclusiveMaximum: number | undefined;
  readonly exclusiveMinimum: number | undefined;
  readonly multipleOf: number | undefined;
}

export interface ValuesNode extends Common {
  readonly kind: 'enum' | 'const';
  /** JSON texts of the values. */
  readonly values: ReadonlySet<string>;
}

export interface CombinedNode extends Common {
  readonly kind: 'combined';
  readonly criterion: 'allOf' | 'anyOf' | 'oneOf';
  readonly schemas: readonly JsonSchemaNode[];
}

export interface NotNode extends Common {
  readonly kind: 'not';
  readonly schema: JsonSchemaNode;
}

/** What may come beyond what is listed: anything, nothing, or values of a schema. */
export type Beyond = true | false | JsonSchemaNode;

export interface ObjectNode extends Common {
  readonly kind: 'object';
  readonly properties: ReadonlyMap<string, JsonSchemaNode>;
  readonly patterns: readonly (readonly [pattern: string, schema: JsonSchemaNode])[];
  readonly required: ReadonlySet<string>;
  readonly additional: Beyond;
  /** Undefined when the keyword is absent. */
  readonly unevaluated: JsonSchemaNode | undefined;
  readonly dependentRequired: ReadonlyMap<string, ReadonlySet<string>>;
  readonly dependentSchemas: ReadonlyMap<string, JsonSchemaNode>;
  readonly maxProperties: number | undefined;
  readonly minProperties: number | undefined;
}

export interface ArrayNode extends Common {
  readonly kind: 'array';
  /** Of every item. */
  readonly items: JsonSchemaNode | undefined;
  /** Of the first items, one by one. */
  readonly tuple: readonly JsonSchemaNode[];
  /** After the tuple. */
  readonly additional: Beyond;
  readonly unevaluated: JsonSchemaNode | undefined;
  readonly maxItems: number | undefined;
  readonly minItems: number | undefined;
  readonly maxContains: number | undefined;
  readonly minContains: number | undefined;
  readonly uniqueItems: boolean;
}

/** Set once, when everything is loaded: schemas may refer to themselves. */
export interface RefNode {
  readonly kind: 'ref';
  target: JsonSchemaNode | undefined;
}

/** What restricts values. */
export type Restriction =
  | Plain
  | StringNode
  | NumberNode
  | ValuesNode
  | CombinedNode
  | NotNode
  | ObjectNode
  | ArrayNode;
export type JsonSchemaNode = Restriction | RefNode;
