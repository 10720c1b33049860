// SPEC.md's table of states and events is the one that the code asserts.
import { expect, test } from 'vitest';
import { expectSpecTable } from '../testing/spec-table.ts';
import { CONSUMER_GROUP_STATES } from './group.ts';
import { CONSUMER_TRANSITIONS } from './step.ts';

test('the table of SPEC.md is the table of the code', () => {
  expect(Object.keys(CONSUMER_TRANSITIONS).toSorted()).toEqual(CONSUMER_GROUP_STATES.toSorted());
  const part = (spec: string) => spec.slice(spec.indexOf('# The consumer protocol'));
  expectSpecTable(part, 'heartbeat', CONSUMER_TRANSITIONS);
});
