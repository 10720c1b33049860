import { beforeEach, describe, expect, test } from 'vitest';
import { COORDINATOR_SHARDS, shardOf } from '../metadata/shards.ts';
import { openSqliteMetadata } from '../metadata/sqlite/index.ts';
import { ErrorCode } from '../protocol/errors.ts';
import { type HeldShard, numbersOf, Shards } from './shards.ts';
import { allLeases, allOf, leaseBoard, type TestLeases } from './testing/leases.ts';

let leases: TestLeases;
let shards: Shards;
/** Shards of each load, and what was dropped, in order. */
let loads: (readonly number[])[];
let drops: number[];
let load: (held: readonly HeldShard[]) => Promise<void>;

beforeEach(async () => {
  [leases] = leaseBoard(openSqliteMetadata(':memory:').leases, 1) as [TestLeases];
  loads = [];
  drops = [];
  load = async () => {};
  shards = new Shards({
    kind: 'groups',
    leases,
    async load(held) {
      loads.push(held.map(({ shard }) => shard));
      await load(held);
    },
    drop: ({ shard }) => void drops.push(shard),
    settled: async () => {},
  });
  await shards.start();
});

test('what is gained in one turn is loaded together, and what is gained meanwhile after it', async () => {
  let go = () => {};
  load = () =>
    new Promise((resolve) => {
      go = resolve;
    });
  const first = leases.take('groups/1', 'groups/2');
  await expect.poll(() => loads.length).toBe(1);
  const second = leases.take('groups/3');
  const third = leases.take('groups/4');
  await Promise.resolve();
  go();
  await first;
  await expect.poll(() => loads.length).toBe(2);
  go();
  await Promise.all([second, third]);
  expect(loads).toEqual([
    [1, 2],
    [3, 4],
  ]);
  expect(shards.count).toBe(4);
});

test('whoever asks for what is being loaded can wait for it, however it ends', async () => {
  const key = 'g';
  const name = `groups/${shardOf(key)}`;
  expect(shards.loading(key)).toBeUndefined();
  for (const fails of [false, true]) {
    let end = () => {};
    load = () =>
      new Promise((resolve, reject) => {
        end = () => (fails ? reject(new Error('the store is away')) : resolve());
      });
    const before = loads.length;
    const taken = leases.take(name).catch(() => {});
    await expect.poll(() => loads.length).toBe(before + 1);
    const waiting = shards.loading(key);
    expect(shards.faultOf(key)).toBe(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS);
    end();
    await waiting;
    expect(shards.faultOf(key)).toBe(fails ? ErrorCode.NOT_COORDINATOR : 0);
    expect(shards.loading(key)).toBeUndefined();
    await taken;
  }
});

test('one node alone has everything loaded, at once and as a whole, when it starts', async () => {
  const seen: (readonly number[] | undefined)[] = [];
  const alone = new Shards({
    kind: 'transactions',
    leases: allLeases(),
    load: async (held) => void seen.push(numbersOf(held)),
    drop: () => {},
    settled: async () => {},
  });
  await alone.start();
  expect(seen).toEqual([undefined]);
  expect(alone.count).toBe(COORDINATOR_SHARDS);
  expect(alone.faultOf('anything')).toBe(0);
  alone.close();
  expect(alone.faultOf('anything')).toBe(ErrorCode.NOT_COORDINATOR);
  await alone.stop();
});

test('a load that fails gives its shards up, and no others', async () => {
  await leases.take('groups/1');
  load = async () => {
    throw new Error('not now');
  };
  await expect(leases.take('groups/2', 'groups/3')).rejects.toThrow('not now');
  expect(drops).toEqual([2, 3]);
  expect(shards.held().map(({ shard }) => shard)).toEqual([1]);
  load = async () => {};
  await leases.take('groups/2');
  expect(shards.count).toBe(2);
});

describe('a shard', () => {
  const key = 'g';
  const name = `groups/${shardOf(key)}`;

  test('is another one when it is gained again', async () => {
    await leases.take(name);
    const first = shards.of(key)!;
    await leases.take(name);
    expect(shards.of(key)).not.toBe(first);
    // The board's store gives the same node the next epoch, since its time was up.
    expect(shards.of(key)!.token.epoch).toBe(first.token.epoch + 1);
    expect(first.dropped).toBe(true);
    expect(shards.fault(first)).toBe(ErrorCode.NOT_COORDINATOR);
    expect(shards.faultOf(key)).toBe(0);
  });

  test('past its deadline is spoken for by nobody, and again when the lease is renewed', async () => {
    await leases.take(name);
    leases.isLate = true;
    expect(shards.faultOf(key)).toBe(ErrorCode.NOT_COORDINATOR);
    expect(shards.held()).toEqual([]);
    leases.isLate = false;
    expect(shards.faultOf(key)).toBe(0);
  });

  test('that the store has refused is over; a refusal of an earlier epoch means nothing', async () => {
    await leases.take(name);
    const { token } = shards.of(key)!;
    await leases.take(name);
    shards.refused(token);
    expect(shards.faultOf(key)).toBe(0);
    shards.refused(shards.of(key)!.token);
    expect(shards.faultOf(key)).toBe(ErrorCode.NOT_COORDINATOR);
  });
});

test('all are given back at the end', async () => {
  await leases.take(...allOf('groups'));
  await shards.stop();
  expect(drops).toHaveLength(COORDINATOR_SHARDS);
});
