import { expect, test } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import { silentLogger } from '../../base/log.ts';
import type { GroupsMetadata } from '../../metadata/groups.ts';
import { openSqliteMetadata } from '../../metadata/sqlite/index.ts';
import { CoordinatorLease } from './lease.ts';

async function world() {
  const clock = new ManualClock();
  const { groups } = openSqliteMetadata(':memory:');
  const store = {
    away: false,
    acquireLease: () => groups.acquireLease(),
    async holdsLease(lease) {
      if (store.away) throw new FloeError('unavailable', 'the store is away');
      return groups.holdsLease(lease);
    },
  } as Partial<GroupsMetadata> & { away: boolean };
  const options = { metadata: store as GroupsMetadata, clock, logger: silentLogger };
  const lease = await CoordinatorLease.acquire({ ...options, durationMs: 1_000 });
  return { clock, store, groups, lease };
}

test('renews itself as long as the store answers', async () => {
  const { clock, lease } = await world();
  await clock.advance(60_000);
  expect(lease.held).toBe(true);
  lease.stop();
  expect(lease.held).toBe(false);
});

test('without an answer it ends a tenth before its time, and comes back with the store', async () => {
  const { clock, store, lease } = await world();
  await clock.advance(400);
  store.away = true;
  // Asked last at 334: good until 1,234.
  await clock.advance(800);
  expect(lease.held).toBe(true);
  await clock.advance(100);
  expect(lease.held).toBe(false);
  store.away = false;
  await clock.advance(400);
  expect(lease.held).toBe(true);
});

test('taken by another it never comes back', async () => {
  const { clock, groups, lease } = await world();
  await groups.acquireLease();
  await clock.advance(400);
  expect(lease.held).toBe(false);
  await clock.advance(10_000);
  expect(lease.held).toBe(false);
});
