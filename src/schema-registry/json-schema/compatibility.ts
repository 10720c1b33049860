// Which changes of a JSON Schema break those who read: `original` was written by, `update` reads. The rules and names of
// Confluent's registry (documentation, "JSON Schema compatibility rules", strict policy). Only what breaks is
// reported. Pure. Not here: objects and arrays (containers.ts), the sentences (messages.ts).
import { FloeError } from '../../base/error.ts';
import { compareArrays, compareObjects } from './containers.ts';
import {
  bound,
  COMPATIBLE,
  type Comparer,
  type Differences,
  type JsonDifference,
} from './difference.ts';
import { matching } from './matching.ts';
import type {
  CombinedNode,
  JsonSchemaNode,
  NumberNode,
  Restriction,
  StringNode,
  ValuesNode,
} from './schema.ts';

/** Pairs that are compared, over all rounds; real schemas have some hundreds. */
const MAX_PAIRS = 50_000;
/** Nesting, through references too. */
const MAX_DEPTH = 400;
/** Differences that are kept of a pair: the verdict needs one. */
const MAX_DIFFERENCES = 100;

/** What of `original`'s data `update` can't read; empty when all of it. @throws FloeError `invalid` when too large. */
export function jsonDifferences(update: JsonSchemaNode, original: JsonSchemaNode): Differences {
  let known: Verdicts = new Map();
  let pairs = 0;
  // A pair met again inside itself passes as compatible; when it turns out not to be, what was concluded from it falls.
  // So the comparison is repeated with what is known to differ, until nothing new does.
  for (;;) {
    const round = new Comparison(known, pairs);
    const found = round.compare(original, update, []);
    const refuted = round.refuted();
    if (!round.assumed || refuted.size === known.size) return found;
    known = refuted;
    pairs = round.pairs;
  }
}

/** By `original id:update id`. */
type Verdicts = ReadonlyMap<string, Differences>;

class Comparison implements Comparer {
  /** Whether a pair passed because it was under way. */
  assumed = false;
  pairs: number;
  readonly #known: Verdicts;
  readonly #done = new Map<string, Differences>();
  readonly #underWay = new Set<string>();
  static readonly #ids = new WeakMap<object, number>();
  static #nextId = 0;

  constructor(known: Verdicts, pairs: number) {
    this.#known = known;
    this.pairs = pairs;
  }

  /** Pairs found to differ in this round. */
  refuted(): Verdicts {
    return new Map([...this.#done].filter(([, found]) => found.length > 0));
  }

  /** Absent schemas restrict nothing. */
  compare(
    original: JsonSchemaNode | undefined,
    update: JsonSchemaNode | undefined,
    path: readonly string[],
  ): Differences {
    if (update === undefined) return COMPATIBLE;
    if (original === undefined) return [{ type: 'SCHEMA_ADDED', path }];
    const found = this.#pair(followed(original), followed(update));
    return found.map((item) => ({ type: item.type, path: [...path, ...item.path] }));
  }

  /** Differences with paths from the pair on. */
  #pair(original: Restriction, update: Restriction): Differences {
    const key = `${Comparison.#id(original)}:${Comparison.#id(update)}`;
    const done = this.#done.get(key);
    if (done !== undefined) return done;
    if (this.#underWay.has(key)) {
      const known = this.#known.get(key);
      this.assumed ||= known === undefined;
      return known ?? COMPATIBLE;
    }
    this.pairs += 1;
    if (this.pairs > MAX_PAIRS)
      throw new FloeError('invalid', `comparing takes more than ${MAX_PAIRS} steps`);
    if (this.#underWay.size >= MAX_DEPTH)
      throw new FloeError('invalid', `schemas are nested deeper than ${MAX_DEPTH} levels`);
    this.#underWay.add(key);
    const found = this.#types(original, update).slice(0, MAX_DIFFERENCES);
    this.#underWay.delete(key);
    this.#done.set(key, found);
    return found;
  }

  static #id(node: object): number {
    const known = Comparison.#ids.get(node);
    if (known !== undefined) return known;
    Comparison.#nextId += 1;
    Comparison.#ids.set(node, Comparison.#nextId);
    return Comparison.#nextId;
  }

  #types(original: Restriction, update: Restriction): Differences {
    if (original.kind !== 'combined' && update.kind === 'combined') {
      if (this.#someReads(original, update)) return COMPATIBLE;
    } else if (original.kind === 'combined' && update.kind !== 'combined') {
      if (this.#someIsRead(original, update)) return COMPATIBLE;
    }
    if (original.kind !== update.kind) return changedType(original, update);
    return this.#sameKind(original, update);
  }

  /** One alternative of the update takes it all. */
  #someReads(original: Restriction, update: CombinedNode): boolean {
    if (update.criterion === 'allOf' && update.schemas.length > 1) return false;
    return update.schemas.some((one) => this.compare(original, one, []).length === 0);
  }

  /** One of several demands of the original is enough for the update. */
  #someIsRead(original: CombinedNode, update: Restriction): boolean {
    if (original.criterion !== 'allOf' && original.schemas.length > 1) return false;
    return original.schemas.some((one) => this.compare(one, update, []).length === 0);
  }

  #sameKind(original: Restriction, update: Restriction): Differences {
    switch (original.kind) {
      case 'string':
        return strings(original, update as StringNode);
      case 'number':
        return numbers(original, update as NumberNode);
      case 'enum':
        return values(original, update as ValuesNode, 'enum');
      case 'const':
        return values(original, update as ValuesNode, 'const');
      case 'combined':
        return this.#combined(original, update as CombinedNode);
      case 'not': {
        const inner = (update as typeof original).schema;
        const reversed = this.compare(inner, original.schema, []);
        return reversed.length === 0 ? COMPATIBLE : [{ type: 'NOT_TYPE_EXTENDED', path: ['not'] }];
      }
      case 'object':
        return compareObjects(this, original, update as typeof original);
      case 'array':
        return compareArrays(this, original, update as typeof original);
      default:
        return COMPATIBLE;
    }
  }

  #combined(original: CombinedNode, update: CombinedNode): Differences {
    if (!mayBecome(original, update)) return [{ type: 'COMBINED_TYPE_CHANGED', path: [] }];
    const [before, after] = [original.schemas, update.schemas];
    const found: JsonDifference[] = [];
    if (before.length < after.length && update.criterion === 'allOf')
      found.push({ type: 'PRODUCT_TYPE_EXTENDED', path: [] });
    if (before.length > after.length && original.criterion !== 'allOf')
      found.push({ type: 'SUM_TYPE_NARROWED', path: [] });
    const edges = before.map((one) =>
      after.flatMap((other, at) => (this.compare(one, other, []).length === 0 ? at : [])),
    );
    if (matching(edges) < Math.min(before.length, after.length))
      found.push({ type: 'COMBINED_TYPE_SUBSCHEMAS_CHANGED', path: [] });
    return found;
  }
}

function followed(node: JsonSchemaNode): Restriction {
  let at = node;
  const seen = new Set<JsonSchemaNode>();
  while (at.kind === 'ref') {
    if (seen.has(at) || at.target === undefined)
      throw new FloeError('invalid', 'a $ref leads back to itself');
    seen.add(at);
    at = at.target;
  }
  return at;
}

function changedType(original: Restriction, update: Restriction): Differences {
  if (original.kind === 'never' || update.kind === 'any') return COMPATIBLE;
  // Decimals moved between two forms in Kafka Connect's converter; both are bytes to it.
  if (original.connectType === 'bytes' && update.connectType === 'bytes') return COMPATIBLE;
  return [{ type: 'TYPE_CHANGED', path: [] }];
}

/** Whether one way of combining accepts what the other did. */
function mayBecome(original: CombinedNode, update: CombinedNode): boolean {
  const single = (node: CombinedNode) => node.schemas.length === 1;
  return (
    original.criterion === update.criterion ||
    update.criterion === 'anyOf' ||
    (single(original) && (single(update) || update.criterion === 'oneOf')) ||
    (single(update) && original.criterion === 'allOf')
  );
}

function strings(original: StringNode, update: StringNode): Differences {
  const pattern = ['pattern'];
  return [
    ...bound('maxLength', [original.maxLength, update.maxLength], {
      added: 'MAX_LENGTH_ADDED',
      tightened: 'MAX_LENGTH_DECREASED',
    }),
    ...bound('minLength', [original.minLength, update.minLength], {
      added: 'MIN_LENGTH_ADDED',
      tightened: 'MIN_LENGTH_INCREASED',
      lower: true,
    }),
    ...(update.pattern === undefined || update.pattern === original.pattern
      ? []
      : original.pattern === undefined
        ? [{ type: 'PATTERN_ADDED', path: pattern } as const]
        : [{ type: 'PATTERN_CHANGED', path: pattern } as const]),
  ];
}

function numbers(original: NumberNode, update: NumberNode): Differences {
  return [
    ...bound('maximum', [original.maximum, update.maximum], {
      added: 'MAXIMUM_ADDED',
      tightened: 'MAXIMUM_DECREASED',
    }),
    ...bound('minimum', [original.minimum, update.minimum], {
      added: 'MINIMUM_ADDED',
      tightened: 'MINIMUM_INCREASED',
      lower: true,
    }),
    ...bound('exclusiveMaximum', [original.exclusiveMaximum, update.exclusiveMaximum], {
      added: 'EXCLUSIVE_MAXIMUM_ADDED',
      tightened: 'EXCLUSIVE_MAXIMUM_DECREASED',
    }),
    ...bound('exclusiveMinimum', [original.exclusiveMinimum, update.exclusiveMinimum], {
      added: 'EXCLUSIVE_MINIMUM_ADDED',
      tightened: 'EXCLUSIVE_MINIMUM_INCREASED',
      lower: true,
    }),
    ...multiples(original.multipleOf, update.multipleOf),
    ...(update.integer && !original.integer ? [{ type: 'TYPE_NARROWED', path: [] } as const] : []),
  ];
}

function multiples(original: number | undefined, update: number | undefined): Differences {
  const path = ['multipleOf'];
  if (update === undefined || original === update) return COMPATIBLE;
  if (original === undefined) return [{ type: 'MULTIPLE_OF_ADDED', path }];
  if (divides(original, update)) return [{ type: 'MULTIPLE_OF_EXPANDED', path }];
  return divides(update, original) ? COMPATIBLE : [{ type: 'MULTIPLE_OF_CHANGED', path }];
}

/** Whether `whole` is a multiple of `part`, in decimal: 0.3 is one of 0.1. */
function divides(part: number, whole: number): boolean {
  const quotient = whole / part;
  return part !== 0 && Math.abs(quotient - Math.round(quotient)) < 1e-9;
}

function values(original: ValuesNode, update: ValuesNode, keyword: string): Differences {
  const [before, after] = [original.values, update.values];
  if (before.isSubsetOf(after)) return COMPATIBLE;
  const type = after.isSubsetOf(before) ? 'ENUM_ARRAY_NARROWED' : 'ENUM_ARRAY_CHANGED';
  return [{ type, path: [keyword] }];
}
