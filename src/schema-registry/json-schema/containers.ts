// Changes of objects and arrays that break readers. A property may be added only where the original let nothing in under
// its name, and removed only where the update lets its values in.
import { RE2JS } from 're2js';
import {
  bound,
  COMPATIBLE,
  type Comparer,
  type Differences,
  type JsonDifference,
} from './difference.ts';
import type { JsonChange } from './messages.ts';
import type { ArrayNode, Beyond, JsonSchemaNode, ObjectNode } from './schema.ts';

type Path = readonly string[];

const breaks = (type: JsonChange, path: Path): Differences => [{ type, path }];
const isNever = (node: JsonSchemaNode) => node.kind === 'never';
const isAny = (node: JsonSchemaNode) => node.kind === 'any';

/** What an object or array takes beside what it lists. */
interface Content {
  readonly additional: Beyond;
  readonly unevaluated: JsonSchemaNode | undefined;
}

function isOpen({ additional, unevaluated }: Content): boolean {
  return additional === true && (unevaluated === undefined || isAny(unevaluated));
}

/** The schema of what isn't listed, where there is one. */
function partly({ additional, unevaluated }: Content): JsonSchemaNode | undefined {
  if (typeof additional !== 'boolean') return additional;
  if (!additional || unevaluated === undefined) return undefined;
  return isNever(unevaluated) || isAny(unevaluated) ? undefined : unevaluated;
}

/** Differences of two objects; paths are from them on. */
export function compareObjects(
  comparison: Comparer,
  original: ObjectNode,
  update: ObjectNode,
): Differences {
  return [
    ...required(original, update),
    ...properties(comparison, original, update),
    ...dependencies(comparison, original, update),
    ...beyond(comparison, 'additionalProperties', [original.additional, update.additional], {
      removed: 'ADDITIONAL_PROPERTIES_REMOVED',
      narrowed: 'ADDITIONAL_PROPERTIES_NARROWED',
    }),
    ...unevaluated(comparison, 'unevaluatedProperties', [original, update], {
      removed: 'UNEVALUATED_PROPERTIES_REMOVED',
      narrowed: 'UNEVALUATED_PROPERTIES_NARROWED',
    }),
    ...bound('maxProperties', [original.maxProperties, update.maxProperties], {
      added: 'MAX_PROPERTIES_ADDED',
      tightened: 'MAX_PROPERTIES_DECREASED',
    }),
    ...bound('minProperties', [original.minProperties, update.minProperties], {
      added: 'MIN_PROPERTIES_ADDED',
      tightened: 'MIN_PROPERTIES_INCREASED',
      lower: true,
    }),
  ];
}

/** A name that became required, where both know the property. */
function required(original: ObjectNode, update: ObjectNode): Differences {
  return [...update.required]
    .filter((name) => original.properties.has(name) && !original.required.has(name))
    .filter((name) => update.properties.get(name) !== undefined)
    .filter((name) => !hasDefault(update.properties.get(name)!))
    .map((name) => ({ type: 'REQUIRED_ATTRIBUTE_ADDED', path: ['required', name] }) as const);
}

const hasDefault = (node: JsonSchemaNode) => node.kind !== 'ref' && node.hasDefault;

function properties(comparison: Comparer, original: ObjectNode, update: ObjectNode): Differences {
  const names = new Set([...original.properties.keys(), ...update.properties.keys()]);
  const found: JsonDifference[] = [];
  for (const name of names) {
    const [before, after] = [original.properties.get(name), update.properties.get(name)];
    const path = ['properties', name];
    if (after === undefined) found.push(...removed(comparison, [name, before!], update, path));
    else if (before === undefined)
      found.push(...added(comparison, [name, after], [original, update], path));
    else found.push(...comparison.compare(before, after, path));
  }
  return found;
}

function removed(
  comparison: Comparer,
  [name, before]: readonly [string, JsonSchemaNode],
  update: ObjectNode,
  path: Path,
): Differences {
  if (update.patterns.length === 0 && isOpen(update)) return COMPATIBLE;
  const rest = ofPattern(update, name) ?? partly(update);
  if (rest !== undefined) {
    const inner = comparison.compare(before, rest, path);
    if (inner.length === 0) return COMPATIBLE;
    const type = 'PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL';
    return [...inner, { type, path }];
  }
  return isNever(before) ? COMPATIBLE : breaks('PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL', path);
}

function added(
  comparison: Comparer,
  [name, after]: readonly [string, JsonSchemaNode],
  [original, update]: readonly [ObjectNode, ObjectNode],
  path: Path,
): Differences {
  const isRequired = update.required.has(name);
  if (original.patterns.length === 0 && isOpen(original)) {
    if (isAny(after)) return COMPATIBLE;
    if (!isRequired) return breaks('OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL', path);
    return hasDefault(after)
      ? breaks('REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL', path)
      : breaks('REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL', path);
  }
  const found: JsonDifference[] = [];
  const rest = ofPattern(original, name) ?? partly(original);
  if (rest !== undefined) {
    const inner = comparison.compare(rest, after, path);
    const type = 'PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL';
    if (inner.length > 0) found.push(...inner, { type, path });
  }
  if (isRequired && !hasDefault(after))
    found.push({ type: 'REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL', path });
  return found;
}

/** The schema of the first pattern that the name has. RE2 takes linear time, whatever a client wrote. */
function ofPattern({ patterns }: ObjectNode, name: string): JsonSchemaNode | undefined {
  return patterns.find(([pattern]) => matches(pattern, name))?.[1];
}

function matches(pattern: string, name: string): boolean {
  try {
    return RE2JS.compile(pattern).matcher(name).find();
  } catch {
    // What RE2 doesn't have (back-references, lookaround): as if there were no such pattern.
    return false;
  }
}

function dependencies(comparison: Comparer, original: ObjectNode, update: ObjectNode): Differences {
  const found: JsonDifference[] = [];
  for (const [name, after] of update.dependentRequired) {
    const before = original.dependentRequired.get(name);
    const path = ['dependencies', name];
    if (before === undefined) found.push({ type: 'DEPENDENCY_ARRAY_ADDED', path });
    else if (!after.isSubsetOf(before)) {
      const grown = before.isSubsetOf(after);
      found.push({ type: grown ? 'DEPENDENCY_ARRAY_EXTENDED' : 'DEPENDENCY_ARRAY_CHANGED', path });
    }
  }
  for (const [name, after] of update.dependentSchemas) {
    const before = original.dependentSchemas.get(name);
    const path = ['dependencies', name];
    if (before === undefined) found.push({ type: 'DEPENDENCY_SCHEMA_ADDED', path });
    else found.push(...comparison.compare(before, after, path));
  }
  return found;
}

interface ContentChanges {
  readonly removed: JsonChange;
  readonly narrowed: JsonChange;
}

function beyond(
  comparison: Comparer,
  keyword: string,
  [original, update]: readonly [Beyond, Beyond],
  { removed: gone, narrowed }: ContentChanges,
): Differences {
  if (original === false || update === true) return COMPATIBLE;
  if (update === false) return breaks(gone, [keyword]);
  return original === true
    ? breaks(narrowed, [keyword])
    : comparison.compare(original, update, [keyword]);
}

function unevaluated(
  comparison: Comparer,
  keyword: string,
  [{ unevaluated: original }, { unevaluated: update }]: readonly [Content, Content],
  { removed: gone, narrowed }: ContentChanges,
): Differences {
  const path = [keyword];
  if (update === undefined) return COMPATIBLE;
  if (original === undefined) return breaks(isNever(update) ? gone : narrowed, path);
  if (isNever(original)) return COMPATIBLE;
  if (isNever(update)) return breaks(gone, path);
  if (isAny(original) && !isAny(update)) return breaks(narrowed, path);
  return comparison.compare(original, update, path);
}

/** Differences of two arrays; paths are from them on. */
export function compareArrays(
  comparison: Comparer,
  original: ArrayNode,
  update: ArrayNode,
): Differences {
  const least = {
    added: 'MIN_ITEMS_ADDED',
    tightened: 'MIN_ITEMS_INCREASED',
    lower: true,
  } as const;
  const leastContained = {
    added: 'MIN_CONTAINS_ADDED',
    tightened: 'MIN_CONTAINS_INCREASED',
    lower: true,
  } as const;
  return [
    ...comparison.compare(original.items, update.items, ['items']),
    ...tuples(comparison, original, update),
    ...beyond(comparison, 'additionalItems', [original.additional, update.additional], {
      removed: 'ADDITIONAL_ITEMS_REMOVED',
      narrowed: 'ADDITIONAL_ITEMS_NARROWED',
    }),
    ...unevaluated(comparison, 'unevaluatedItems', [original, update], {
      removed: 'UNEVALUATED_ITEMS_REMOVED',
      narrowed: 'UNEVALUATED_ITEMS_NARROWED',
    }),
    ...bound('maxItems', [original.maxItems, update.maxItems], {
      added: 'MAX_ITEMS_ADDED',
      tightened: 'MAX_ITEMS_DECREASED',
    }),
    ...bound('minItems', [original.minItems, update.minItems], least),
    ...(update.uniqueItems && !original.uniqueItems
      ? breaks('UNIQUE_ITEMS_ADDED', ['uniqueItems'])
      : []),
    ...bound('maxContains', [original.maxContains, update.maxContains], {
      added: 'MAX_CONTAINS_ADDED',
      tightened: 'MAX_CONTAINS_DECREASED',
    }),
    ...bound('minContains', [original.minContains, update.minContains], leastContained),
  ];
}

function tuples(comparison: Comparer, original: ArrayNode, update: ArrayNode): Differences {
  const length = Math.max(original.tuple.length, update.tuple.length);
  return Array.from({ length }, (_, at) => {
    const [before, after] = [original.tuple[at], update.tuple[at]];
    const path = ['items', String(at)];
    if (before !== undefined && after !== undefined) return comparison.compare(before, after, path);
    return after === undefined
      ? removedItem(comparison, before!, update, path)
      : addedItem(comparison, after, original, path);
  }).flat();
}

function removedItem(
  comparison: Comparer,
  before: JsonSchemaNode,
  update: ArrayNode,
  path: Path,
): Differences {
  if (isOpen(update)) return COMPATIBLE;
  const rest = partly(update);
  if (rest === undefined)
    return isNever(before) ? COMPATIBLE : breaks('ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL', path);
  const inner = comparison.compare(before, rest, path);
  const type = 'ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL';
  return inner.length === 0 ? COMPATIBLE : [...inner, { type, path }];
}

function addedItem(
  comparison: Comparer,
  after: JsonSchemaNode,
  original: ArrayNode,
  path: Path,
): Differences {
  if (isOpen(original))
    return isAny(after) ? COMPATIBLE : breaks('ITEM_ADDED_TO_OPEN_CONTENT_MODEL', path);
  const rest = partly(original);
  if (rest === undefined) return COMPATIBLE;
  const inner = comparison.compare(rest, after, path);
  const type = 'ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL';
  return inner.length === 0 ? COMPATIBLE : [...inner, { type, path }];
}
