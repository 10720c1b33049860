import { expect, test } from 'vitest';
import { answerTable, textTable } from './text-table.ts';

test('numbers stand to the right, nothing is an empty cell', () => {
  expect(
    textTable(
      ['n', 'name'],
      [
        [7, 'ä'],
        [1234, undefined],
        [null, 'x'],
      ],
    ),
  ).toBe('   n  name\n   7  ä\n1234\n      x\n');
  expect(textTable(['a', 'b'], [])).toBe('a  b\n');
});

test('an answer tells NULL from empty, sides by type, and keeps a row on its line', () => {
  const columns = [
    { name: 'n', type: 'BIGINT' },
    { name: 'text', type: 'VARCHAR' },
    { name: 's', type: 'STRUCT(a INTEGER)' },
  ];
  const rows = [
    ['9007199254740993', 'two\nlines', { a: 1 }],
    [7, '', null],
  ];
  expect(answerTable({ columns, rows })).toBe(
    [
      '               n  text       s',
      '9007199254740993  two lines  {"a":1}',
      '               7             NULL',
      '(2 rows)',
      '',
    ].join('\n'),
  );
});

test('a value that is too long ends in …, characters whole', () => {
  const answer = { columns: [{ name: 'x', type: 'VARCHAR' }], rows: [['雪'.repeat(100)]] };
  expect(answerTable(answer)).toBe(`x\n${'雪'.repeat(59)}…\n(1 row)\n`);
});
