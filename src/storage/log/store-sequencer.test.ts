// What a commit's failure means, and what is never done after it. The real store is asked in contract and simulation.
import { expect, test } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { type ErrorCode, FloeError } from '../../base/error.ts';
import { silentLogger } from '../../base/log.ts';
import type { CommittedFlush, FlushCommit } from '../../metadata/log.ts';
import { openSqliteMetadata } from '../../metadata/sqlite/index.ts';
import { walKey } from '../paths.ts';
import { OpenFlush } from './open-flush.ts';
import { SlabPool } from './slab.ts';
import { StoreSequencer } from './store-sequencer.ts';
import { testItem } from './test-items.ts';

const CLUSTER = 'AAECAwQFBgcICQoLDA0ODw';
const GIVE_UP_MS = 2_000;
const HORIZON_MS = 60_000;

/** What a call of `commit` meets; `lost`: it happens, and nobody hears of it; `late`: the process stands still first. */
type Fate = ErrorCode | 'lost' | 'late' | 'ok';

async function setUp() {
  const clock = new ManualClock();
  const metadata = openSqliteMetadata(':memory:');
  const request = { topicId: '00000000-0000-0000-0000-000000000001', name: 't' };
  await metadata.topics.create({ ...request, partitionCount: 1, config: {}, nowMs: 0 });
  const fates: Fate[] = [];
  const groups: number[] = [];
  let poisoned: string | undefined;
  const hooks = { committed: () => {} };
  const commit = async (flushes: readonly FlushCommit[]): Promise<readonly CommittedFlush[]> => {
    groups.push(flushes.length);
    const fate = fates.shift() ?? 'ok';
    if (flushes.some(({ object }) => object.key === poisoned))
      throw new FloeError('conflict', 'the object is being deleted');
    if (fate === 'late') await clock.sleep(HORIZON_MS + 1);
    else if (fate !== 'ok' && fate !== 'lost') throw new FloeError(fate, `${fate} (injected)`);
    const committed = await metadata.log.commit(
      flushes.map((flush) => ({ ...flush, nowMs: clock.now() })),
    );
    if (fate === 'lost') throw new FloeError('timeout', 'lost (injected)');
    hooks.committed();
    return committed;
  };
  const options = { clock, logger: silentLogger, giveUpMs: GIVE_UP_MS, horizonMs: HORIZON_MS };
  const sequencer = new StoreSequencer({ metadata: { commit }, ...options });
  const slabs = SlabPool.create(65_536, 3);
  let count = 0;
  const submit = async () => {
    count += 1;
    const item = testItem({ partitionId: 1, records: 1 });
    const flush = new OpenFlush(slabs.slab(0), 0, 0);
    flush.add(item, { items: [item], outcomes: [], remaining: 1, resolve: () => {} }, 0);
    const key = walKey(CLUSTER, { timeMs: clock.now(), id: String(count) });
    const outcome = await sequencer
      .submit({
        flushId: new Uint8Array(16).fill(count),
        columns: flush.take(),
        slab: 0,
        object: { key, kind: 'object', generation: 0, bytes: 100 },
      })
      .then(({ commitNumber, baseOffsets }) => `${commitNumber}@${baseOffsets[0]}`)
      .catch((caught: FloeError) => caught.code);
    return outcome;
  };
  const poison = (n: number) => {
    poisoned = walKey(CLUSTER, { timeMs: clock.now(), id: String(n) });
  };
  return { clock, metadata, sequencer, fates, groups, hooks, submit, poison };
}

async function settle(clock: ManualClock, byMs: number): Promise<void> {
  for (let passed = 0; passed < byMs; passed += 100) await clock.advance(100);
}

test('what waits is committed together, in order', async () => {
  const { submit, groups } = await setUp();
  expect(await Promise.all([submit(), submit(), submit()])).toEqual(['1@0', '2@1', '3@2']);
  expect(groups).toEqual([1, 2]);
});

test.each(Array.from({ length: 12 }, (_, turns) => turns))(
  'what comes just as nothing is left is committed too: %i turns after the last commit',
  async (turns) => {
    const { clock, submit, hooks } = await setUp();
    let next: Promise<string> | undefined;
    hooks.committed = () => {
      hooks.committed = () => {};
      const after = async () => {
        for (let n = 0; n < turns; n += 1) await undefined;
        next = submit();
      };
      void after();
    };
    await submit();
    for (let n = 0; n < turns; n += 1) await undefined;
    const late = clock.sleep(1_000).then(() => 'never');
    await settle(clock, 1_000);
    expect(await Promise.race([next, late])).toBe('2@1');
  },
);

test('a store that is away for a moment costs a moment', async () => {
  const { clock, submit, fates } = await setUp();
  fates.push('unavailable', 'exhausted', 'unavailable');
  const outcome = submit();
  await settle(clock, 1_000);
  expect(await outcome).toBe('1@0');
});

test('a store that stays away fails the flush, which is then committed by nobody (L9)', async () => {
  const { clock, submit, fates, groups, metadata } = await setUp();
  fates.push(...Array<Fate>(50).fill('unavailable'));
  const outcomes = [submit(), submit()];
  await settle(clock, GIVE_UP_MS + 2_000);
  expect(await Promise.all(outcomes)).toEqual(['unavailable', 'unavailable']);
  fates.length = 0;
  const attempts = groups.length;
  await settle(clock, 10_000);
  expect(groups.length).toBe(attempts);
  expect(await metadata.log.lastCommitNumber()).toBe(0);
  expect(await submit()).toBe('1@0');
});

test('an unknown outcome is asked for until it is known, however long that takes (L5)', async () => {
  const { clock, submit, fates, metadata } = await setUp();
  fates.push('lost', ...Array<Fate>(10).fill('unavailable'));
  const outcomes = [submit(), submit()];
  await settle(clock, 15_000);
  expect(await Promise.all(outcomes)).toEqual(['1@0', '2@1']);
  expect(await metadata.log.lastCommitNumber()).toBe(2);
});

test('a flush whose object is being deleted fails alone', async () => {
  const { submit, poison, groups } = await setUp();
  poison(3);
  expect(await Promise.all([submit(), submit(), submit(), submit()])).toEqual([
    '1@0',
    '2@1',
    'conflict',
    '3@2',
  ]);
  expect(groups).toEqual([1, 3, 1, 1, 1]);
});

test('what comes to its commit after the horizon is refused, what was committed before is told (L10)', async () => {
  const { clock, submit, fates, metadata } = await setUp();
  fates.push('lost', 'late', 'late');
  const outcomes = [submit(), submit()];
  await settle(clock, 2 * HORIZON_MS + 5_000);
  expect(await Promise.all(outcomes)).toEqual(['1@0', 'conflict']);
  expect(await metadata.log.lastCommitNumber()).toBe(1);
});

test('stop waits for what was submitted, and for what is in doubt no longer than its time', async () => {
  const { clock, submit, fates, sequencer } = await setUp();
  fates.push('timeout', ...Array<Fate>(1_000).fill('unavailable'));
  const outcome = submit();
  await clock.advance(0);
  const stopped = sequencer.stop();
  await settle(clock, GIVE_UP_MS + 1_000);
  await stopped;
  expect(await outcome).toBe('unavailable');
});
