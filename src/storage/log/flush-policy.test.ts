import { expect, test } from 'vitest';
import { type FlushPolicy, type FlushState, flushDueIn } from './flush-policy.ts';

const at: FlushState = {
  nowMs: 1000,
  openBytes: 10,
  openedMs: 990,
  lastAppendMs: 995,
  lastFlushMs: 0,
  inFlight: 0,
};
const objects: FlushPolicy = {
  kind: 'object',
  flushBytes: 100,
  ageMs: 250,
  idleMs: 20,
  rate: 4,
  parallel: 2,
};

const cases: readonly [string, FlushPolicy, Partial<FlushState>, number][] = [
  ['nothing open', objects, { openBytes: 0 }, Infinity],
  ['locally at once', { kind: 'group' }, {}, 0],
  ['locally never two', { kind: 'group' }, { inFlight: 1 }, Infinity],
  ['at size', objects, { openBytes: 100 }, 0],
  ['at size, but all PUTs busy', objects, { openBytes: 100, inFlight: 2 }, Infinity],
  ['after the idle gap', objects, { lastAppendMs: 980 }, 0],
  ['the idle gap not yet', objects, {}, 15],
  [
    'the rate at rest holds the idle gap back',
    objects,
    { lastFlushMs: 900, lastAppendMs: 900 },
    150,
  ],
  ['age ends any wait', objects, { openedMs: 750, lastFlushMs: 999 }, 0],
];

test.each(cases)('%s', (_name, policy, state, expected) => {
  expect(flushDueIn(policy, { ...at, ...state })).toBe(expected);
});
