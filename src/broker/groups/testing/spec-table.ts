// Holds a table of SPEC.md against the one that the code asserts.
import { readFileSync } from 'node:fs';
import { expect } from 'vitest';

/** By state and event, the states it may lead to. */
type Transitions = Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;

/**
 * In the part of SPEC.md that `part` cuts out, the table whose first event is `firstEvent` says what `transitions`
 * does. Its cells hold the first letters of states.
 */
export function expectSpecTable(
  part: (spec: string) => string,
  firstEvent: string,
  transitions: Transitions,
): void {
  const states = Object.keys(transitions);
  const letters = new Map(states.map((state) => [state[0]!, state]));
  const spec = readFileSync(new URL('../SPEC.md', import.meta.url), 'utf8');
  const lines = part(spec).split('\n');
  const rows = lines.filter((line) => line.startsWith('|')).map(cells);
  const events = rows.find((row) => row[1] === firstEvent)!.slice(1);
  for (const state of states) {
    expect(events.toSorted()).toEqual(Object.keys(transitions[state]!).toSorted());
    const row = rows.find(([name]) => name === `**${state}**`)!.slice(1);
    const written = row.map((cell) =>
      cell === '–' ? [] : cell.split(' ').map((letter) => letters.get(letter)),
    );
    const coded = events.map((event) => transitions[state]![event]!);
    expect(
      written.map((cell) => cell.toSorted()),
      state,
    ).toEqual(coded.map((cell) => cell.toSorted()));
  }
}

/** The texts between the bars of a table's line. */
function cells(line: string): string[] {
  return line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());
}
