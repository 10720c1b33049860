// Field ids of files that have none, by a table's name mapping.
import { expect, test } from 'vitest';
import type { MappedField } from '../../iceberg/projection.ts';
import { type FileNode, fileTree } from './tree.ts';

const named = (name: string, id: number, fields: MappedField[] = []): MappedField => ({
  'field-id': id,
  names: [name],
  ...(fields.length === 0 ? {} : { fields }),
});

const ids = (nodes: readonly FileNode[]): unknown[] =>
  nodes.map(({ element, fieldId, children }) => [element.name, fieldId, ...ids(children)]);

const root = { name: 'root', num_children: 1 };
const repeated = { repetition_type: 'REPEATED' as const };

test('parts of lists and maps are known by their place, whatever their writer called them', () => {
  const hive = [
    root,
    { name: 'tags', num_children: 1 },
    { name: 'bag', num_children: 1, ...repeated },
    { name: 'array_element', num_children: 1 },
    { name: 'key' },
  ];
  const list = [named('tags', 1, [named('element', 2, [named('key', 3)])])];
  expect(ids(fileTree(hive, list))).toEqual([
    ['tags', 1, ['bag', undefined, ['array_element', 2, ['key', 3]]]],
  ]);
  const avro = [root, { name: 'counts', num_children: 1 }, { name: 'array', ...repeated }];
  expect(ids(fileTree(avro, [named('counts', 1, [named('element', 2)])]))).toEqual([
    ['counts', 1, ['array', 2]],
  ]);
  const map = [
    root,
    { name: 'names', num_children: 1 },
    { name: 'map', num_children: 2, ...repeated },
    { name: 'k' },
    { name: 'v' },
  ];
  expect(ids(fileTree(map, [named('names', 1, [named('key', 2), named('value', 3)])]))).toEqual([
    ['names', 1, ['map', undefined, ['k', 2], ['v', 3]]],
  ]);
});

test('a file with an id anywhere is known by its ids; inside an unknown column nothing is known', () => {
  const some = [{ ...root, num_children: 2 }, { name: 'a', field_id: 7 }, { name: 'b' }];
  expect(ids(fileTree(some, [named('b', 1)]))).toEqual([
    ['a', 7],
    ['b', undefined],
  ]);
  const other = [root, { name: 'other', num_children: 1 }, { name: 'a' }];
  expect(ids(fileTree(other, [named('a', 1)]))).toEqual([['other', undefined, ['a', undefined]]]);
});
