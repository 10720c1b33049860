// What history proves about a request that asserted an earlier snapshot (T5).
import { expect, test } from 'vitest';
import type { TableMetadata } from '../formats/iceberg/types.ts';
import { assertedMain, movedPastAsserted } from './watermark.ts';

/** A table whose snapshots are `[id, parent]`, numbered from `first` on; `main` is the last unless said otherwise. */
function table(
  snapshots: readonly (readonly [number, number?])[],
  { first = 1, main = snapshots.at(-1)?.[0] }: { first?: number; main?: number | undefined } = {},
): TableMetadata {
  return {
    snapshots: snapshots.map(([id, parent], n) => ({
      'snapshot-id': BigInt(id),
      ...(parent === undefined ? {} : { 'parent-snapshot-id': BigInt(parent) }),
      'sequence-number': first + n,
    })),
    ...(main === undefined ? {} : { 'current-snapshot-id': BigInt(main) }),
  } as unknown as TableMetadata;
}

test('what a request asserts is told with its number', () => {
  expect(assertedMain(table([]))).toBe('');
  expect(assertedMain(table([[7], [8, 7]]))).toBe('8@2');
});

test.each<[name: string, metadata: TableMetadata, asserted: string, proven: boolean]>([
  ['main is what was asserted', table([[7]]), '7@1', false],
  ['main has moved on', table([[7], [8, 7]]), '7@1', true],
  ['a first snapshot has come', table([[7]]), '', true],
  ['nothing has come', table([]), '', false],
  ['it has expired meanwhile', table([[9, 8]], { first: 3 }), '7@1', true],
  ['it is newer than what the catalog shows', table([[7]]), '8@2', false],
  [
    'it was rolled back, and may be rolled forward again',
    table([[7], [8, 7]], { main: 7 }),
    '8@2',
    false,
  ],
  ['without a number an expired one proves nothing', table([[9, 8]], { first: 3 }), '7', false],
  ['a word of an older release', table([[7]]), 'whatever', false],
])('a request is out for good: %s', (_name, metadata, asserted, proven) => {
  expect(movedPastAsserted(metadata, asserted)).toBe(proven);
});
