// Manual assignments, as Apache Kafka checks them.
import { expect, test } from 'vitest';
import { replicasFault } from './assignment.ts';

const brokers = new Set([1, 2, 3]);

test.each([
  [[[1]]],
  [
    [
      [1, 2, 3],
      [3, 1, 2],
    ],
  ],
])('%j can be assigned', (lists) => {
  expect(replicasFault(lists, brokers)).toBeUndefined();
});

test.each([
  [[[]], 'is empty'],
  [[[1, 4]], 'no broker 4, only 1, 2, 3'],
  [[[2, 1, 2]], 'broker 2 twice'],
  [[[1, 2], [3]], 'lists of 2 and 1'],
])('%j is refused', (lists, why) => {
  expect(replicasFault(lists, brokers)).toContain(why);
});
