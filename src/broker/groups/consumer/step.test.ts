import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { CONSUMER_GROUP_STATES } from './group.ts';
import { CONSUMER_TRANSITIONS } from './step.ts';

const LETTERS = new Map(CONSUMER_GROUP_STATES.map((state) => [state[0]!, state]));

test('the table of SPEC.md is the table of the code', () => {
  const spec = readFileSync(new URL('../SPEC.md', import.meta.url), 'utf8');
  const rows = spec.slice(spec.indexOf('# The consumer protocol')).split('\n');
  const table = rows.filter((line) => line.startsWith('|')).map(cells);
  const events = table[0]!.slice(1);
  expect(events.toSorted()).toEqual(Object.keys(CONSUMER_TRANSITIONS.Empty).toSorted());
  for (const state of CONSUMER_GROUP_STATES) {
    const row = table.find(([name]) => name === `**${state}**`)!.slice(1);
    const written = row.map((cell) =>
      cell === '–' ? [] : cell.split(' ').map((letter) => LETTERS.get(letter)),
    );
    const coded = events.map(
      (event) => CONSUMER_TRANSITIONS[state][event as keyof typeof CONSUMER_TRANSITIONS.Empty],
    );
    expect(
      written.map((cell) => cell.toSorted()),
      state,
    ).toEqual(coded.map((cell) => cell.toSorted()));
  }
});

/** The texts between the bars of a table's line. */
function cells(line: string): string[] {
  return line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());
}
