// The placeholder in each of its forms, and what only looks like it.
import { expect, test } from 'vitest';
import type { BytesColumn } from '../../formats/arrow/byte-columns.ts';
import type { ListColumn, MapColumn } from '../../formats/arrow/nested-columns.ts';
import type { Int32Column, Int64Column } from '../../formats/arrow/scalar-columns.ts';
import { createColumn } from '../../formats/arrow/table-columns.ts';
import { RowChange } from '../change.ts';
import {
  holdsPlaceholder,
  noteUnavailable,
  type PlaceholderColumn,
  UNAVAILABLE,
} from './unavailable.ts';

const bytes = [...Buffer.from(UNAVAILABLE)];
const list = (element: 'int' | 'long' | 'string' | 'double') =>
  createColumn({ type: 'list', 'element-id': 2, element, 'element-required': false });

function noted(column: PlaceholderColumn): boolean {
  const change = new RowChange();
  noteUnavailable(column, 7, change);
  return change.unavailable.includes(7);
}

test('text, arrays of text and of numbers, maps', () => {
  const text = createColumn('string') as BytesColumn;
  for (const [value, is] of [
    [UNAVAILABLE, true],
    [`${UNAVAILABLE}!`, false],
    ['__debezium_unavailable_valuE', false],
    ['', false],
  ] as const) {
    text.appendText(value);
    expect(noted(text), value).toBe(is);
  }
  const texts = list('string') as ListColumn;
  for (const [values, is] of [
    [[UNAVAILABLE], true],
    [[UNAVAILABLE, UNAVAILABLE], false],
    [[], false],
  ] as const) {
    for (const value of values) (texts.element as BytesColumn).appendText(value);
    texts.end();
    expect(noted(texts)).toBe(is);
  }
  for (const [type, high] of [
    ['int', undefined],
    ['long', 1],
  ] as const) {
    const numbers = list(type) as ListColumn;
    const element = numbers.element as Int32Column | Int64Column;
    for (const byte of bytes) element.append(byte);
    numbers.end();
    expect(noted(numbers)).toBe(true);
    for (const byte of bytes.toReversed()) element.append(byte);
    numbers.end();
    expect(noted(numbers)).toBe(false);
    if (high === undefined) continue;
    for (const byte of bytes) (element as Int64Column).append(byte + high * 2 ** 32);
    numbers.end();
    expect(noted(numbers)).toBe(false);
  }
  const map = createColumn({
    type: 'map',
    'key-id': 2,
    key: 'string',
    'value-id': 3,
    value: 'string',
    'value-required': false,
  }) as MapColumn;
  (map.key as BytesColumn).appendText(UNAVAILABLE);
  (map.value as BytesColumn).appendText(UNAVAILABLE);
  map.end();
  expect(noted(map)).toBe(true);
  expect(holdsPlaceholder(list('double'))).toBe(false);
  expect(holdsPlaceholder(createColumn('int'))).toBe(false);
  expect(holdsPlaceholder(undefined)).toBe(false);
});
