import { expect, test } from 'vitest';
import { SlabPool } from './slab.ts';

test('a slab is free when its last holder lets go, in whatever thread', () => {
  const pool = SlabPool.create(1024, 2);
  const other = SlabPool.attach(pool.shared);
  const first = pool.acquire()!;
  other.retain(first.number);
  expect(pool.acquire()?.number).toBe(1);
  expect(pool.acquire()).toBeUndefined();
  pool.release(first.number);
  expect(pool.free).toBe(0);
  other.release(first.number);
  expect(pool.free).toBe(1);
  expect(pool.acquire()?.number).toBe(first.number);
});

test('both ends see the same bytes', () => {
  const pool = SlabPool.create(16, 1);
  pool.acquire()!.bytes[3] = 9;
  expect(SlabPool.attach(pool.shared).slab(0).bytes[3]).toBe(9);
});

test('letting go too often, or holding what is free, is a bug', () => {
  const pool = SlabPool.create(16, 1);
  expect(() => pool.release(0)).toThrow('released as often');
  expect(() => pool.retain(0)).toThrow('retained only by a holder');
});
