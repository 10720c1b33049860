import { expect, test } from 'vitest';
import { retentionPin } from './retention.ts';

test('a table holds retention back up to its bytes, and not while the disk is nearly full', () => {
  const tables = {
    retentionPin: (partitionId: number) => (partitionId === 1 ? 500 : undefined),
    retentionHoldBytes: () => 1_000,
  };
  let size = 900;
  let room = true;
  const pin = retentionPin(tables, { log: { sizeOf: () => size }, hasRoom: () => room });
  expect([pin(1), pin(2)]).toEqual([500, Infinity]);
  room = false;
  expect(pin(1)).toBe(Infinity);
  room = true;
  size = 1_001;
  expect(pin(1)).toBe(Infinity);
});
