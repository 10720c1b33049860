// The names that a table's columns have in files without field ids, as its schema changes.
import { expect, test } from 'vitest';
import {
  mappingOf,
  mappingOfTable,
  mappingProperty,
  NAME_MAPPING,
  nameMapping,
} from './projection.ts';
import { TestTable } from './test-table.ts';
import type { NestedField, Schema } from './types.ts';

const schemaOf = (...fields: NestedField[]): Schema => ({
  type: 'struct',
  'schema-id': 0,
  fields,
});
const text = (id: number, name: string): NestedField => ({
  id,
  name,
  required: false,
  type: 'string',
});

test('a column keeps its former names, at every depth', () => {
  const tags = (name: string, inner: string): NestedField => ({
    ...text(1, name),
    type: {
      type: 'list',
      'element-id': 2,
      'element-required': false,
      element: { type: 'struct', fields: [text(3, inner)] },
    },
  });
  const before = mappingOf(schemaOf(tags('tags', 'key')));
  expect(mappingOf(schemaOf(tags('labels', 'name')), before)).toEqual([
    {
      'field-id': 1,
      names: ['labels', 'tags'],
      fields: [
        {
          'field-id': 2,
          names: ['element'],
          fields: [{ 'field-id': 3, names: ['name', 'key'] }],
        },
      ],
    },
  ]);
});

test('a name that another column took is that one’s alone; dropped columns stay', () => {
  const before = mappingOf(schemaOf(text(1, 'a'), text(2, 'b')));
  expect(mappingOf(schemaOf(text(1, 'c'), text(3, 'a')), before)).toEqual([
    { 'field-id': 1, names: ['c'] },
    { 'field-id': 3, names: ['a'] },
    { 'field-id': 2, names: ['b'] },
  ]);
});

test('a table’s history of names; only a table that has a mapping changes it', () => {
  const table = new TestTable({ schema: schemaOf(text(1, 'a')) });
  const renamed = { ...schemaOf(text(1, 'b')), 'schema-id': 1 };
  table.update(
    { action: 'add-schema', schema: renamed },
    { action: 'set-current-schema', 'schema-id': -1 },
  );
  expect(mappingOfTable(table.metadata)).toEqual([{ 'field-id': 1, names: ['b', 'a'] }]);
  expect(mappingProperty(table.metadata, renamed)).toEqual({});
  const updates = { [NAME_MAPPING]: JSON.stringify([{ 'field-id': 1, names: ['a'] }]) };
  table.update({ action: 'set-properties', updates });
  expect(JSON.parse(mappingProperty(table.metadata, renamed)[NAME_MAPPING]!)).toEqual([
    { 'field-id': 1, names: ['b', 'a'] },
  ]);
});

test.each([
  ['{', /is not JSON/],
  ['null', /no name mapping.*not null/],
  ['[null]', /no name mapping.*not \[null\]/],
  ['[{"field-id":1}]', /no name mapping/],
  ['[{"field-id":1,"names":[2]}]', /no name mapping/],
  ['[{"field-id":1,"names":["a"],"fields":[5]}]', /no name mapping/],
])('a property that is no mapping is named: %s', (property, says) => {
  const table = new TestTable({ schema: schemaOf(text(1, 'a')) });
  table.update({ action: 'set-properties', updates: { [NAME_MAPPING]: property } });
  expect(() => nameMapping(table.metadata)).toThrow(
    expect.objectContaining({ code: 'corrupt', message: expect.stringMatching(says) }),
  );
});
