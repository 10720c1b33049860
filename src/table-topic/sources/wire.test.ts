// Marks of Confluent's wire format, well-formed and not.
import { expect, test } from 'vitest';
import { readMessageIndexes, SchemaMark, sourceKey, splitKey } from './wire.ts';

const GUID = '89791762-2336-4186-9674-299b90a802e2';
const guidBytes = [1, ...Buffer.from(GUID.replaceAll('-', ''), 'hex')];

test('an id of four bytes, a GUID of sixteen, one after the other; anything else is none', () => {
  const mark = new SchemaMark();
  const read = (...bytes: number[]) => {
    const found = mark.read(Uint8Array.from([9, ...bytes, 9]), 1, 1 + bytes.length);
    return found ? [mark.schema, mark.id, mark.end] : undefined;
  };
  expect(read(0, 0, 0, 1, 2, 7)).toEqual(['258', 258, 6]);
  expect(read(...guidBytes, 7)).toEqual([GUID, -1, 18]);
  expect(read(0, 0, 0, 1, 2)).toEqual(['258', 258, 6]);
  expect(read(...guidBytes)).toEqual([GUID, -1, 18]);
  expect(read(...guidBytes.with(16, 0))).toEqual([`${GUID.slice(0, -2)}00`, -1, 18]);
  expect(read(0, 255, 255, 255, 255)).toEqual(['4294967295', 4294967295, 6]);
  for (const bad of [[], [0], [0, 1, 2, 3], guidBytes.slice(0, 16), [2, 0, 0, 0, 1]]) {
    expect(read(...bad)).toBeUndefined();
  }
});

test('message indexes: a single zero is the first; what can’t be them is none', () => {
  const read = (...bytes: number[]) => readMessageIndexes(Uint8Array.from(bytes), 0, bytes.length);
  expect(read(0, 9)).toEqual({ message: '0', end: 1 });
  expect(read(2, 2, 9)).toEqual({ message: '1', end: 2 });
  expect(read(4, 2, 0x80, 1, 9)).toEqual({ message: '1.64', end: 4 });
  for (const bad of [
    [],
    [2],
    [1],
    [2, 1],
    [0x80, 0x80, 0x80],
    [0x80, 0x80, 0x80, 1, 0],
    [200, 1],
  ]) {
    expect(read(...bad)).toBeUndefined();
  }
  expect(splitKey(sourceKey('5', '1.0'))).toEqual({ schema: '5', message: '1.0' });
  expect(splitKey('latest')).toEqual({ schema: 'latest', message: '' });
});
