// Evolution under any sequence of sources: what holds whatever comes, in whatever order.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  elementPath,
  fieldPath,
  keyPath,
  type ProposedField,
  type ProposedType,
  valuePath,
} from '../formats/arrow/proposed-schema.ts';
import { findField, isPromotionAllowed, walkFields } from '../formats/iceberg/schema.ts';
import type { IcebergType, Schema } from '../formats/iceberg/types.ts';
import { type Evolution, type EvolveRequest, evolve } from './evolve.ts';

const start: Evolution = {
  schema: { type: 'struct', 'schema-id': 0, fields: [] },
  lastColumnId: 0,
  fields: new Map(),
  bindings: new Map(),
  conflicts: [],
};

const step = (before: Evolution, fields: ProposedField[], over: Partial<EvolveRequest> = {}) =>
  evolve({
    schema: before.schema,
    lastColumnId: before.lastColumnId,
    fields: before.fields,
    newColumns: true,
    mayRename: false,
    ...over,
    proposed: { type: 'struct', fields },
  });

/** A type before it has paths. */
type Shape =
  | { readonly kind: 'scalar'; readonly type: ProposedType & string }
  | { readonly kind: 'struct'; readonly fields: readonly ShapeField[] }
  | { readonly kind: 'list'; readonly element: Shape }
  | { readonly kind: 'map'; readonly value: Shape };
type ShapeField = {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly shape: Shape;
};

const NAMES = ['a', 'b', 'c', 'A', 'x.y', 'd~'];
const SCALARS = [
  'int',
  'long',
  'float',
  'double',
  'string',
  'decimal(5, 2)',
  'decimal(9, 2)',
  'date',
] as const;

const { fields: shapes } = fc.letrec<{ shape: Shape; fields: ShapeField[] }>((tie) => ({
  shape: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.record({ kind: fc.constant('scalar' as const), type: fc.constantFrom(...SCALARS) }),
    fc.record({ kind: fc.constant('struct' as const), fields: tie('fields') }),
    fc.record({ kind: fc.constant('list' as const), element: tie('shape') }),
    fc.record({ kind: fc.constant('map' as const), value: tie('shape') }),
  ),
  fields: fc.uniqueArray(
    fc.record({
      name: fc.constantFrom(...NAMES),
      aliases: fc.subarray(NAMES, { maxLength: 2 }),
      shape: tie('shape'),
    }),
    { minLength: 1, maxLength: 4, selector: (field) => field.name },
  ),
}));

function placed(fields: readonly ShapeField[], parent = ''): ProposedField[] {
  return fields.map(({ name, aliases, shape }) => {
    const path = fieldPath(parent, name);
    return { name, aliases, path, type: typed(shape, path) };
  });
}

function typed(shape: Shape, path: string): ProposedType {
  switch (shape.kind) {
    case 'scalar':
      return shape.type;
    case 'struct':
      return { type: 'struct', fields: placed(shape.fields, path) };
    case 'list': {
      const inside = elementPath(path);
      return { type: 'list', elementPath: inside, element: typed(shape.element, inside) };
    }
    case 'map': {
      const inside = valuePath(path);
      const keys = { keyPath: keyPath(path), key: 'string' } as const;
      return { type: 'map', ...keys, valuePath: inside, value: typed(shape.value, inside) };
    }
  }
}

/** The type of every path of a source. */
function* leaves(fields: readonly ProposedField[]): Generator<readonly [string, ProposedType]> {
  for (const { path, type } of fields) yield* inside(path, type);
}

function* inside(path: string, type: ProposedType): Generator<readonly [string, ProposedType]> {
  yield [path, type];
  if (typeof type === 'string') return;
  if (type.type === 'struct') yield* leaves(type.fields);
  else if (type.type === 'list') yield* inside(type.elementPath, type.element);
  else {
    yield [type.keyPath, type.key];
    yield* inside(type.valuePath, type.value);
  }
}

const kindOf = (type: IcebergType | ProposedType) =>
  typeof type === 'string' ? 'scalar' : type.type;

/** Every path of the source has a column of its own which takes its values. */
function expectRoom({ schema, bindings }: Evolution, fields: readonly ProposedField[]) {
  const used = new Set<number>();
  for (const [path, type] of leaves(fields)) {
    const id = bindings.get(path);
    expect(id, path).toBeDefined();
    expect(used.has(id!), `${path} shares its column`).toBe(false);
    used.add(id!);
    const column = findField(schema, id!)!;
    expect(kindOf(column.type)).toBe(kindOf(type));
    if (typeof type === 'string') expect(isPromotionAllowed(type, column.type)).toBe(true);
  }
}

/** Nothing was dropped, moved or narrowed. */
function expectGrown(before: Schema, after: Schema) {
  for (const field of walkFields(before)) {
    const now = findField(after, field.id);
    expect(now).toBeDefined();
    expect(now!.parentId).toBe(field.parentId);
    expect(kindOf(now!.type)).toBe(kindOf(field.type));
    if (typeof field.type === 'string')
      expect(isPromotionAllowed(field.type, now!.type)).toBe(true);
  }
}

function expectWhole({ schema, lastColumnId }: Evolution) {
  const all = walkFields(schema);
  const ids = all.map((field) => field.id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(Math.max(0, ...ids)).toBeLessThanOrEqual(lastColumnId);
  const names = all.map((field) => field.fullName.toLowerCase());
  expect(new Set(names).size).toBe(names.length);
}

const RUNS = { numRuns: 120, seed: 5 };

describe('whatever sources come', () => {
  test('all find columns of their own; columns only grow; nothing moves back and forth', () => {
    fc.assert(
      fc.property(fc.array(shapes, { minLength: 1, maxLength: 4 }), (sources) => {
        const versions = sources.map((source) => placed(source));
        let table = start;
        for (let newest = 0; newest < versions.length; newest++) {
          // Interleaved as records of all versions come, the newest registered one renaming.
          for (let i = newest; i >= 0; i--) {
            const next = step(table, versions[i]!, { mayRename: i === newest });
            expectGrown(table.schema, next.schema);
            expectWhole(next);
            expectRoom(next, versions[i]!);
            table = next;
          }
          for (let i = newest; i >= 0; i--) {
            const again = step(table, versions[i]!, { mayRename: i === newest });
            expect(again.schema).toBe(table.schema);
            table = again;
          }
        }
      }),
      RUNS,
    );
  });

  test('a source that came before comes again: not a change, and the map alone says where it goes', () => {
    fc.assert(
      fc.property(fc.array(shapes, { minLength: 1, maxLength: 3 }), (sources) => {
        // Without former names: two that exchange names are two readings of one record.
        const versions = sources.map((source) => placed(withoutAliases(source)));
        let table = start;
        for (const fields of versions) table = step(table, fields, { mayRename: true });
        const text = JSON.stringify(Object.fromEntries(table.fields));
        const fields = new Map(Object.entries(JSON.parse(text) as Record<string, number>));
        for (const version of versions) {
          const again = step({ ...table, fields }, version, { mayRename: true });
          expect(again.schema).toBe(table.schema);
          expect(again.fields).toBe(fields);
          expectRoom(again, version);
        }
      }),
      RUNS,
    );
  });

  test('without new columns, conflicts are told and nothing else is lost', () => {
    fc.assert(
      fc.property(shapes, shapes, (first, second) => {
        const before = step(start, placed(first));
        const fields = placed(withoutAliases(second));
        const next = step(before, fields, { newColumns: false });
        expectGrown(before.schema, next.schema);
        const refused = next.conflicts.map((conflict) => conflict.path);
        for (const [path] of leaves(fields)) {
          const below = refused.some((one) => path === one || isInside(path, one));
          expect(next.bindings.has(path), path).toBe(!below);
        }
      }),
      RUNS,
    );
  });
});

const isInside = (path: string, parent: string) =>
  path.startsWith(parent) && /^[.[{]/.test(path.slice(parent.length));

function withoutAliases(fields: readonly ShapeField[]): ShapeField[] {
  return fields.map(({ name, shape }) => ({ name, aliases: [], shape: plain(shape) }));
}

function plain(shape: Shape): Shape {
  switch (shape.kind) {
    case 'scalar':
      return shape;
    case 'struct':
      return { ...shape, fields: withoutAliases(shape.fields) };
    case 'list':
      return { ...shape, element: plain(shape.element) };
    case 'map':
      return { ...shape, value: plain(shape.value) };
  }
}
