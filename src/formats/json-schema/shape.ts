// JSON Schemas as plain shapes: what columns a value makes and how its text is read. One pass over the schema, used for
// proposing columns and for compiling the decoder, so that both agree.

import { MAX_COLUMN_DEPTH } from '../json/paths.ts';
import {
  isSchema,
  type JsonDocument,
  type JsonSchema,
  type Located,
  SchemaDocuments,
} from './documents.ts';
import { type Facts, factsOf, type JsonType } from './facts.ts';
import { numberShape, stringShape } from './scalar-shape.ts';
import type { Shape, ShapeOptions } from './shapes.ts';

/** Leaf shapes that one schema may make: parts used in several places multiply. */
export const MAX_SHAPES = 10_000;

/** The shape of a schema's values. @throws FloeError `invalid` when it can't be read or a reference leads nowhere. */
export function jsonSchemaShape(
  schema: string,
  references: readonly JsonDocument[],
  options: ShapeOptions,
): Shape {
  const documents = new SchemaDocuments(schema, references);
  const shaper = new Shaper(documents, options);
  return shaper.shape([documents.root], []);
}

type Ancestors = readonly ReadonlySet<JsonSchema>[];

class Shaper {
  readonly #documents: SchemaDocuments;
  readonly #options: ShapeOptions;
  #left = MAX_SHAPES;

  constructor(documents: SchemaDocuments, options: ShapeOptions) {
    this.#documents = documents;
    this.#options = options;
  }

  shape(said: readonly Located[], ancestors: Ancestors): Shape {
    const facts = factsOf(said, this.#documents);
    const shape = this.#shapeOf(facts, ancestors);
    const doc = facts.hints.get('description');
    return typeof doc === 'string' && shape.kind !== 'none' ? { ...shape, doc } : shape;
  }

  #shapeOf(facts: Facts, ancestors: Ancestors): Shape {
    if (facts.nothing) return { kind: 'none' };
    const again = [...facts.merged].some(
      (schema) => typeof schema === 'object' && ancestors.some((above) => above.has(schema)),
    );
    this.#left -= 1;
    if (again || ancestors.length >= MAX_COLUMN_DEPTH || this.#left < 0) return { kind: 'json' };
    const inside = [...ancestors, facts.merged];
    const types = typesOf(facts);
    if (types === undefined) return this.#chosen(facts, ancestors) ?? { kind: 'json' };
    const kinds = [...types].filter((type) => type !== 'null');
    if (kinds.length === 0) return { kind: 'none' };
    const numeric = kinds.every((type) => type === 'number' || type === 'integer');
    if (kinds.length > 1 && !numeric) return { kind: 'json' };
    switch (kinds.includes('number') ? 'number' : kinds[0]!) {
      case 'object':
        return this.#object(this.#withChoices(facts), inside);
      case 'array':
        return this.#array(facts, inside);
      case 'boolean':
        return { kind: 'scalar', type: 'boolean', reading: 'plain' };
      case 'string':
        return stringShape(facts.hints, this.#options);
      case 'integer':
        return numberShape(facts.hints, true);
      default:
        return numberShape(facts.hints, false);
    }
  }

  /** Of several choices the one that isn't null, or that all have in common; JSON text when they are mixed. */
  #chosen(facts: Facts, ancestors: Ancestors): Shape | undefined {
    const [group, ...more] = facts.choices;
    if (group === undefined) return undefined;
    if (more.length > 0) return { kind: 'json' };
    const inside = [...ancestors, facts.merged];
    const shapes = group
      .map((located) => this.shape([located], inside))
      .filter((shape) => shape.kind !== 'none');
    return common(shapes);
  }

  /** An object may be one of several: properties that only some of them have are there, too. */
  #withChoices(facts: Facts): Facts {
    if (facts.choices.length === 0) return facts;
    const properties = new Map(facts.properties);
    for (const located of facts.choices.flat()) {
      for (const [name, said] of factsOf([located], this.#documents).properties) {
        // Said by several of them with equal right: whatever it is.
        const choices = properties.get(name) ?? [];
        const base = located.base;
        const known = facts.properties.get(name);
        if (known !== undefined) continue;
        const before = choices.flatMap(({ schema }) =>
          typeof schema === 'object' && Array.isArray(schema['anyOf'])
            ? (schema['anyOf'] as JsonSchema[])
            : [schema],
        );
        const own = said.map(({ schema }) => schema);
        properties.set(name, [{ schema: { anyOf: [...before, ...own] }, base }]);
      }
    }
    return { ...facts, properties };
  }

  #object(facts: Facts, ancestors: Ancestors): Shape {
    const closed = facts.additional.some(({ schema }) => schema === false);
    const values = facts.additional.filter(({ schema }) => typeof schema === 'object');
    if (facts.properties.size === 0) {
      if (values.length > 0) {
        const value = common(values.map((located) => this.shape([located], ancestors)));
        return value.kind === 'none' ? { kind: 'json' } : { kind: 'map', value };
      }
      return ancestors.length === 1
        ? { kind: 'struct', fields: new Map(), open: !closed }
        : { kind: 'json' };
    }
    const fields = new Map<string, Shape>();
    for (const [name, said] of facts.properties) {
      const shape = this.shape(said, ancestors);
      if (shape.kind !== 'none') fields.set(name, shape);
    }
    if (fields.size === 0 && ancestors.length > 1) return { kind: 'json' };
    return { kind: 'struct', fields, open: !closed };
  }

  #array(facts: Facts, ancestors: Ancestors): Shape {
    const items = facts.items.filter(({ schema }) => isSchema(schema));
    if (items.length === 0) return { kind: 'json' };
    const element = common(items.map((located) => this.shape([located], ancestors)));
    return element.kind === 'none' ? { kind: 'json' } : { kind: 'list', element };
  }
}

/** The types a value may have, also where only its keywords or values tell. */
function typesOf(facts: Facts): ReadonlySet<JsonType> | undefined {
  if (facts.types !== undefined) return facts.types;
  if (facts.values !== undefined) return new Set(facts.values.map(typeOf));
  if (facts.properties.size > 0) return new Set(['object']);
  // A list of choices says more than what is said about additional properties.
  if (facts.choices.length > 0) return undefined;
  if (facts.additional.some(({ schema }) => typeof schema === 'object')) return new Set(['object']);
  if (facts.items.length > 0) return new Set(['array']);
  return undefined;
}

function typeOf(value: unknown): JsonType {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value as JsonType;
}

/** The one shape that all have, integers among numbers allowed; JSON text when there is none such. */
function common(shapes: readonly Shape[]): Shape {
  const [first] = shapes;
  if (first === undefined) return { kind: 'none' };
  const keys = new Set(shapes.map(shapeKey));
  if (keys.size === 1) return first;
  const numeric = shapes.every(
    (shape) => shape.kind === 'scalar' && (shape.type === 'long' || shape.type === 'double'),
  );
  if (numeric) return { kind: 'scalar', type: 'double', reading: 'number' };
  return { kind: 'json' };
}

/** Equal for shapes that read and store alike. */
function shapeKey(shape: Shape): string {
  switch (shape.kind) {
    case 'scalar':
      return `${shape.type}/${shape.reading}`;
    case 'list':
      return `[${shapeKey(shape.element)}]`;
    case 'map':
      return `{*:${shapeKey(shape.value)}}`;
    case 'struct': {
      const fields = [...shape.fields].map(
        ([name, inner]) => `${JSON.stringify(name)}:${shapeKey(inner)}`,
      );
      return `{${fields.sort().join(',')}${shape.open ? '…' : ''}}`;
    }
    default:
      return shape.kind;
  }
}
