// Cases in which a file's own layout decides: nested renames, names that writers escape, files without ids.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { mappingOf, NAME_MAPPING, type Schema } from '../formats/iceberg/index.ts';
import { SqlFixture } from './testing.ts';

const schema: Schema = {
  type: 'struct',
  'schema-id': 0,
  fields: [
    { id: 1, name: 'id', required: false, type: 'long' },
    {
      id: 2,
      name: 'who',
      required: false,
      type: {
        type: 'struct',
        fields: [
          { id: 4, name: 'first', required: false, type: 'string' },
          { id: 5, name: 'odd name', required: false, type: 'int' },
        ],
      },
    },
    {
      id: 3,
      name: 'tags',
      required: false,
      type: {
        type: 'list',
        'element-id': 6,
        'element-required': false,
        element: {
          type: 'struct',
          fields: [{ id: 7, name: 'key', required: false, type: 'string' }],
        },
      },
    },
  ],
};

let fixture: SqlFixture;

beforeEach(() => {
  fixture = new SqlFixture({ schema });
});

afterEach(() => fixture.stop());

test('nested fields are found by id, at every depth, nulls staying null', async () => {
  const file = await fixture.write(
    `SELECT 1 AS id, {a: 'x', odd_x20name: 7} AS w, [{k: 'p'}, NULL] AS t
     UNION ALL SELECT 2, NULL, NULL`,
    {
      fieldIds:
        '{id: 1, w: {__duckdb_field_id: 2, a: 4, odd_x20name: 5}, t: {__duckdb_field_id: 3, element: {__duckdb_field_id: 6, k: 7}}}',
    },
  );
  await fixture.table.commit({ added: [file] });
  expect(await fixture.rows('SELECT * FROM people ORDER BY id')).toEqual([
    [1, { first: 'x', 'odd name': 7 }, [{ key: 'p' }, null]],
    [2, null, null],
  ]);
  expect(await fixture.rows(`SELECT who."odd name" FROM people WHERE who.first = 'x'`)).toEqual([
    [7],
  ]);
});

test('a file without ids is read by the table’s name mapping', async () => {
  const mapping = [
    { 'field-id': 1, names: ['ID', 'id'] },
    { 'field-id': 2, names: ['who'], fields: [{ 'field-id': 4, names: ['first_name'] }] },
  ];
  fixture.table.update({
    action: 'set-properties',
    updates: { 'schema.name-mapping.default': JSON.stringify(mapping) },
  });
  const file = await fixture.write('SELECT 1 AS "ID", {first_name: \'x\'} AS who, 5 AS other');
  await fixture.table.commit({ added: [file] });
  expect(await fixture.rows('SELECT id, who.first, tags FROM people')).toEqual([[1, 'x', null]]);
});

test('a name mapping goes into lists and not into columns that it doesn’t name', async () => {
  const mapping = mappingOf(schema);
  fixture.table.update({
    action: 'set-properties',
    updates: { [NAME_MAPPING]: JSON.stringify(mapping) },
  });
  const file = await fixture.write("SELECT 1 AS id, [{key: 'p'}] AS tags, {id: 7} AS other");
  await fixture.table.commit({ added: [file] });
  expect(await fixture.rows('SELECT id, tags, who FROM people')).toEqual([
    [1, [{ key: 'p' }], null],
  ]);
});

test('an identity partition column that is not in the file comes from the partition', async () => {
  await fixture.stop();
  fixture = new SqlFixture({
    partitionFields: [{ 'source-id': 2, name: 'name', transform: 'identity' }],
  });
  const files = [];
  for (const partition of [['a'], [null], ["it's"]])
    files.push(await fixture.write('SELECT 1 AS id', { fieldIds: '{id: 1}', partition }));
  await fixture.table.commit({ added: files });
  expect(await fixture.rows('SELECT id, name FROM people ORDER BY name')).toEqual([
    [1, 'a'],
    [1, "it's"],
    [1, null],
  ]);
  expect(await fixture.rows("SELECT count(*) FROM people WHERE name = 'a'")).toEqual([[1]]);
});
