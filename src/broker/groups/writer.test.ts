import { expect, test } from 'vitest';
import { FloeError } from '../../base/error.ts';
import type { GroupChange } from '../../metadata/groups.ts';
import type { HeldShard } from '../shards.ts';
import { GroupWriter } from './writer.ts';

const change = (groupId: string, epoch: number, whole = false): GroupChange => ({
  kind: 'consumer-group',
  group: { kind: 'consumer', groupId, epoch, assignmentEpoch: epoch, stateSinceMs: 0, members: [] },
  whole,
  gone: [],
});

const heldShard = (shard: number): HeldShard => ({
  shard,
  token: { name: `groups/${shard}`, epoch: 1 },
  loaded: true,
  dropped: false,
});
const HELD = heldShard(0);

function world() {
  const written: (readonly GroupChange[])[] = [];
  const lost: string[] = [];
  const store = {
    error: undefined as FloeError | undefined,
    async write(changes: readonly GroupChange[]) {
      await Promise.resolve();
      if (store.error !== undefined) throw store.error;
      written.push(changes);
      return [];
    },
  };
  const writer = new GroupWriter(store, ({ name }) => void lost.push(name));
  return { written, lost, store, writer };
}

test('changes of one turn share a transaction, in order', async () => {
  const { written, writer } = world();
  await Promise.all([1, 2, 3].map((epoch) => writer.write(HELD, change('g', epoch))));
  expect(written).toEqual([[change('g', 1), change('g', 2), change('g', 3)]]);
});

test('what builds on a change that failed fails too, until all is written anew; others go on', async () => {
  const { written, store, writer } = world();
  store.error = new FloeError('unavailable', 'away');
  const first = writer.write(HELD, change('g', 1));
  await Promise.resolve();
  await Promise.resolve();
  const second = writer.write(HELD, change('g', 2));
  const other = writer.write(HELD, change('h', 1));
  expect((await first).error?.code).toBe('unavailable');
  store.error = undefined;
  expect((await second).error?.code).toBe('unavailable');
  expect((await other).error).toBeUndefined();
  expect((await writer.write(HELD, change('g', 3))).error?.code).toBe('unavailable');
  expect((await writer.write(HELD, change('g', 3, true))).error).toBeUndefined();
  expect((await writer.write(HELD, change('g', 4))).error).toBeUndefined();
  expect(written.flat()).toEqual([change('h', 1), change('g', 3, true), change('g', 4)]);
});

test('a lease that is another’s is lost', async () => {
  const { lost, store, writer } = world();
  store.error = new FloeError('conflict', 'another');
  expect((await writer.write(HELD, change('g', 1))).error?.code).toBe('conflict');
  expect(lost).toEqual(['groups/0']);
});
