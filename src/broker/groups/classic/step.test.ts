// SPEC.md's table of states and events is the one that the code asserts.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { GROUP_STATES } from './group.ts';
import { TRANSITIONS } from './step.ts';

const LETTERS = new Map(GROUP_STATES.map((state) => [state[0], state]));

test('the table of SPEC.md is the table of the code', () => {
  const spec = readFileSync(new URL('../SPEC.md', import.meta.url), 'utf8');
  const rows = spec
    .slice(0, spec.indexOf('# The consumer protocol'))
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map(cells);
  const events = rows.find((row) => row[1] === 'join')!.slice(1);
  expect(events.toSorted()).toEqual(Object.keys(TRANSITIONS.Empty).toSorted());
  for (const state of GROUP_STATES) {
    const row = rows.find(([name]) => name === `**${state}**`)!.slice(1);
    const written = row.map((cell) =>
      cell === '–' ? [] : cell.split(' ').map((letter) => LETTERS.get(letter)),
    );
    const coded = events.map(
      (event) => TRANSITIONS[state][event as keyof typeof TRANSITIONS.Empty],
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
