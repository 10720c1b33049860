import { expect, test } from 'vitest';
import { parseIcebergJson, parseTableMetadata, serialiseTableMetadata } from './json.ts';
import { newTableMetadata } from './metadata-builder.ts';
import { applyUpdates, logPreviousMetadata } from './metadata-update.ts';
import { checkRequirements } from './requirements.ts';
import { TEST_SCHEMA, TestTable } from './test-table.ts';
import type { Schema } from './types.ts';

const NESTED: Schema = {
  type: 'struct',
  'schema-id': 7,
  'identifier-field-ids': [77],
  fields: [
    { id: 77, name: 'id', required: true, type: 'long' },
    {
      id: 50,
      name: 'list',
      required: false,
      type: { type: 'list', 'element-id': 51, 'element-required': false, element: 'string' },
    },
    { id: 10, name: 'day', required: false, type: 'date' },
  ],
};

test('a new table numbers its fields afresh and remaps what refers to them', () => {
  const metadata = newTableMetadata({
    uuid: 'u',
    location: 'file:///t/',
    schema: NESTED,
    partitionFields: [{ 'source-id': 10, 'field-id': 2000, name: 'month', transform: 'month' }],
    sortFields: [
      { 'source-id': 77, transform: 'identity', direction: 'asc', 'null-order': 'nulls-first' },
    ],
    properties: { a: 'b', 'format-version': '2' },
    nowMs: 5,
  });
  expect(metadata.location).toBe('file:///t');
  expect(metadata['last-column-id']).toBe(4);
  expect(metadata.schemas[0]!['identifier-field-ids']).toEqual([1]);
  expect(metadata['partition-specs'][0]!.fields).toEqual([
    { 'source-id': 3, 'field-id': 1000, name: 'month', transform: 'month' },
  ]);
  expect(metadata['sort-orders']).toMatchObject([{ 'order-id': 1, fields: [{ 'source-id': 1 }] }]);
  expect(metadata.properties).toEqual({ a: 'b' });
});

test.each([
  ['a name twice', { fields: [TEST_SCHEMA.fields[0]!, { ...TEST_SCHEMA.fields[0]!, id: 9 }] }],
  ['a v3 type in v2', { fields: [{ id: 1, name: 'x', required: false, type: 'timestamptz_ns' }] }],
  ['an optional identifier', { 'identifier-field-ids': [2], fields: TEST_SCHEMA.fields }],
] as const)('a schema with %s is refused', (_name, part) => {
  const schema = { ...TEST_SCHEMA, ...part } as Schema;
  expect(() => newTableMetadata({ uuid: 'u', location: 'file:///t', schema, nowMs: 0 })).toThrow();
});

test.each([
  [{ action: 'do-magic' }, /unknown update/],
  [{ action: 'set-current-schema', 'schema-id': 9 }, /no schema 9/],
  [{ action: 'set-current-schema', 'schema-id': -1 }, /adds none/],
  [{ action: 'upgrade-format-version', 'format-version': 1 }, /can't go back/],
  [{ action: 'assign-uuid', uuid: 'other' }, /can't become/],
  [{ action: 'remove-schemas', 'schema-ids': [0] }, /current schema/],
  [{ action: 'remove-partition-specs', 'spec-ids': [0] }, /default partition spec/],
  [{ action: 'set-location', location: 'relative/path' }, /absolute/],
  [
    { action: 'set-snapshot-ref', 'ref-name': 'main', type: 'branch', 'snapshot-id': 4n },
    /no snap/,
  ],
  [
    { action: 'add-spec', spec: { fields: [{ 'source-id': 2, name: 'd', transform: 'day' }] } },
    /day/,
  ],
  [
    {
      action: 'add-spec',
      spec: { fields: [{ 'source-id': 1, name: 'at', transform: 'identity' }] },
    },
    /name of a column/,
  ],
  [{ action: 'add-schema', schema: { fields: [{ id: 1 }] } }, /name/],
])('an impossible update is refused: %o', (update, reason) => {
  const table = new TestTable();
  expect(() => table.update(update)).toThrow(reason);
});

test('equal schemas and specs are reused, sources must stay', () => {
  const table = new TestTable();
  const spec = { fields: [{ 'source-id': 3, name: 'at_day', transform: 'day' }] };
  table.update({ action: 'add-spec', spec }, { action: 'set-default-spec', 'spec-id': -1 });
  table.update({ action: 'add-spec', spec });
  expect(table.metadata['partition-specs']).toHaveLength(2);
  expect(table.metadata['last-partition-id']).toBe(1000);
  table.update({ action: 'add-schema', schema: table.metadata.schemas[0]! });
  expect(table.metadata.schemas).toHaveLength(1);
  const schema = { ...TEST_SCHEMA, fields: TEST_SCHEMA.fields.slice(0, 2) };
  expect(() =>
    table.update(
      { action: 'add-schema', schema },
      { action: 'set-current-schema', 'schema-id': -1 },
    ),
  ).toThrow(/at_day/);
});

test('expiry: refs, history and statistics of removed snapshots go with them', async () => {
  const table = new TestTable();
  for (let n = 0; n < 3; n += 1) await table.commit({ added: [table.file()] });
  const ids = table.metadata.snapshots!.map((snapshot) => snapshot['snapshot-id']);
  table.update(
    { action: 'set-snapshot-ref', 'ref-name': 'v1', type: 'tag', 'snapshot-id': ids[0] },
    { action: 'set-statistics', statistics: { 'snapshot-id': ids[1], 'statistics-path': 'x' } },
    { action: 'remove-snapshots', 'snapshot-ids': [ids[0], ids[1]] },
  );
  expect(Object.keys(table.metadata.refs!)).toEqual(['main']);
  expect(table.metadata.statistics).toEqual([]);
  expect(table.metadata['snapshot-log']!.map((entry) => entry['snapshot-id'])).toEqual([ids[2]]);
});

test('requirements: unknown ones are invalid, failed ones conflicts, create needs no table', () => {
  const { metadata } = new TestTable();
  expect(() => checkRequirements(metadata, [{ type: 'assert-magic' }])).toThrow(/unknown/);
  expect(() => checkRequirements(metadata, [{ type: 'assert-create' }])).toThrow(/already exists/);
  checkRequirements(undefined, [{ type: 'assert-create' }]);
  checkRequirements(metadata, [
    { type: 'assert-table-uuid', uuid: metadata['table-uuid'].toUpperCase() },
    { type: 'assert-ref-snapshot-id', ref: 'main', 'snapshot-id': null },
    { type: 'assert-last-assigned-field-id', 'last-assigned-field-id': 3 },
  ]);
  expect(() =>
    checkRequirements(metadata, [{ type: 'assert-default-spec-id', 'default-spec-id': 3 }]),
  ).toThrow(/default partition spec changed: expected 3, is 0/);
});

test('a table can be made by updates alone, as a staged create is', () => {
  const metadata = applyUpdates(
    undefined,
    [
      { action: 'assign-uuid', uuid: 'u' },
      { action: 'upgrade-format-version', 'format-version': 2 },
      { action: 'add-schema', schema: TEST_SCHEMA, 'last-column-id': 3 },
      { action: 'set-current-schema', 'schema-id': -1 },
      { action: 'add-spec', spec: { 'spec-id': 0, fields: [] } },
      { action: 'set-default-spec', 'spec-id': -1 },
      { action: 'add-sort-order', 'sort-order': { 'order-id': 0, fields: [] } },
      { action: 'set-default-sort-order', 'sort-order-id': -1 },
      { action: 'set-location', location: 's3://bucket/t' },
    ],
    9,
  );
  expect(metadata).toMatchObject({ 'current-schema-id': 0, 'default-spec-id': 0 });
  expect(parseTableMetadata(serialiseTableMetadata(metadata))).toEqual(metadata);
});

test('64-bit ids are exact in both directions', () => {
  const text = '{"snapshot-id":9223372036854775807,"snapshot-ids":[5,9007199254740993],"n":1.5}';
  const parsed = parseIcebergJson(text);
  expect(parsed).toEqual({
    'snapshot-id': 9223372036854775807n,
    'snapshot-ids': [5n, 9007199254740993n],
    n: 1.5,
  });
});

test('the metadata log keeps what the property says and names what it forgets', () => {
  const { metadata } = new TestTable({
    properties: { 'write.metadata.previous-versions-max': '2' },
  });
  let state = metadata;
  const forgotten: string[] = [];
  for (let n = 0; n < 4; n += 1) {
    const logged = logPreviousMetadata(state, { metadata: state, location: `m${n}` });
    state = logged.metadata;
    forgotten.push(...logged.forgotten);
  }
  expect(state['metadata-log']!.map((entry) => entry['metadata-file'])).toEqual(['m2', 'm3']);
  expect(forgotten).toEqual(['m0', 'm1']);
});

test('row lineage is a matter of the format version', () => {
  const lineage = [{ action: 'enable-row-lineage' }];
  const { metadata } = new TestTable();
  expect(() => applyUpdates(metadata, lineage, 9)).toThrow(/needs format version 3/);
  const upgraded = applyUpdates(
    metadata,
    [{ action: 'upgrade-format-version', 'format-version': 3 }, ...lineage],
    9,
  );
  expect(upgraded['next-row-id']).toBe(0);
});
