// SPEC.md's table of states and events is the one that the code asserts.
import { expect, test } from 'vitest';
import { expectSpecTable } from '../testing/spec-table.ts';
import { GROUP_STATES } from './group.ts';
import { TRANSITIONS } from './step.ts';

test('the table of SPEC.md is the table of the code', () => {
  expect(Object.keys(TRANSITIONS).toSorted()).toEqual(GROUP_STATES.toSorted());
  const part = (spec: string) => spec.slice(0, spec.indexOf('# The consumer protocol'));
  expectSpecTable(part, 'join', TRANSITIONS);
});
