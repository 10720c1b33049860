// Each way to break a promise is found, and an honest history is not.
import { expect, test } from 'vitest';
import { check, type Evidence } from './check.ts';
import type { Entry } from './history.ts';

const scan = (records: Record<number, string>) =>
  new Map([
    [0, new Map(Object.entries(records).map(([offset, value]) => [Number(offset), value]))],
  ]);

const honest: readonly Entry[] = [
  { op: 'send', partition: 0, values: ['a', 'b'] },
  { op: 'acked', partition: 0, values: ['a', 'b'], offset: 0 },
  { op: 'send', txn: 't1', partition: 0, values: ['c'] },
  { op: 'acked', partition: 0, values: ['c'], offset: 2 },
  { op: 'committing', txn: 't1' },
  { op: 'committed', txn: 't1' },
  { op: 'send', txn: 't2', partition: 0, values: ['d'] },
  { op: 'acked', partition: 0, values: ['d'], offset: 4 },
  { op: 'aborted', txn: 't2' },
  { op: 'send', partition: 0, values: ['e'] },
  {
    op: 'polled',
    partition: 0,
    records: [
      [0, 'a'],
      [1, 'b'],
      [2, 'c'],
    ],
  },
];
const records: Record<number, string> = { 0: 'a', 1: 'b', 2: 'c' };

function findings(more: readonly Entry[], over: Partial<Evidence> = {}, visible = records) {
  const table = Object.entries(visible).map(
    ([offset, value]) => [0, Number(offset), value] as const,
  );
  const committed = scan(visible);
  const histories = [{ who: 'w', entries: [...honest, ...more] }];
  return check({ histories, committed, uncommitted: committed, table, ...over }).faults;
}

test('an honest history, unknown outcomes included', () => {
  expect(findings([])).toEqual([]);
  expect(findings([], {}, { ...records, 6: 'e' })).toEqual([]);
});

test.each<[string, readonly Entry[], RegExp, Record<number, string>?]>([
  ['a lost write', [], /^I1: b /, { 0: 'a', 2: 'c' }],
  ['a write twice', [], /^I2: a is at 0@0 and at 0@7/, { ...records, 7: 'a' }],
  [
    'a write elsewhere',
    [],
    /^I2: c was acknowledged at 0@2 and is at 0@3/,
    { 0: 'a', 1: 'b', 3: 'c' },
  ],
  ['an aborted record', [], /^I7: d /, { ...records, 4: 'd' }],
  ['nobody’s record', [], /^I11: z /, { ...records, 9: 'z' }],
  ['an aborted poll', [{ op: 'polled', partition: 0, records: [[4, 'd']] }], /^I8: w polled d|^I7/],
  [
    'a skip',
    [
      { op: 'joined' },
      {
        op: 'polled',
        partition: 0,
        records: [
          [0, 'a'],
          [2, 'c'],
        ],
      },
    ],
    /^I12: w skipped 0@1/,
  ],
  [
    'going back',
    [{ op: 'polled', partition: 0, records: [[1, 'b']] }],
    /^I12: w polled 0@1 after 2/,
  ],
  [
    'another value',
    [{ op: 'joined' }, { op: 'polled', partition: 0, records: [[0, 'b']] }],
    /^I8: w polled b at 0@0, where a/,
  ],
  ['an unhelpful error', [{ op: 'error', doing: 'sent', type: 'UNKNOWN', message: '' }], /^I9/],
  [
    'a torn transaction',
    [
      { op: 'send', txn: 't3', partition: 0, values: ['f', 'g'] },
      { op: 'acked', partition: 0, values: ['f', 'g'], offset: 8 },
      { op: 'committing', txn: 't3' },
    ],
    /^torn: t3/,
    { ...records, 8: 'f' },
  ],
])('%s', (_, more, expected, visible) => {
  const found = findings(more, {}, visible ?? records);
  expect(found.length).toBeGreaterThan(0);
  expect(found[0]).toMatch(expected);
});

test('a reader that was killed begins at the start', () => {
  const polled = { op: 'polled', partition: 0, records: [[0, 'a']] } as const;
  expect(findings([polled])[0]).toMatch(/^I12: w polled 0@0 after 2/);
  expect(findings([{ op: 'began' }, polled], {}, records)).toEqual([]);
});

test('a table that differs', () => {
  const table = [
    [0, 0, 'a'],
    [0, 0, 'a'],
    [0, 2, 'x'],
  ] as const;
  expect(findings([], { table })).toEqual([
    'table: 0@0 is a row twice',
    'table: 0@2 is x, in the log c',
    'table: 0@1 has no row',
  ]);
});
