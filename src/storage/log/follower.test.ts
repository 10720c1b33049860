import { expect, test } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import { silentLogger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import type { FollowedCommit, Following } from '../../metadata/log.ts';
import { allocateIndex } from '../../metadata/packed-index.ts';
import { noVersions } from '../../metadata/versions.ts';
import { CommitOrder } from './commit-order.ts';
import { Follower } from './follower.ts';

const POLL_MS = 100;
const IDLE_MS = 1_000;

function commit(commitNumber: number, partitionId: number): FollowedCommit {
  const index = allocateIndex(1);
  index.partitionIds[0] = partitionId;
  const flushId = new Uint8Array(16).fill(commitNumber % 256);
  const place = { objectId: 1, objectKey: '', generation: 0, committedMs: 0 };
  return { commitNumber, flushId, ...place, index: index.bytes, begun: [] };
}

/** A store with `commits` commits, a front that applies what comes, and what was asked. */
function setUp() {
  const clock = new ManualClock();
  const store = {
    commits: 0,
    topics: [1],
    partition: 1,
    failing: undefined as FloeError | undefined,
  };
  const asked: number[] = [];
  const applied: number[] = [];
  const fatal: string[] = [];
  /** Versions as of which log starts had to be here. */
  const started: number[] = [];
  let known = [1];
  let refreshes = 0;
  let awaited = false;
  let hold: Promise<void> | undefined;
  const order = new CommitOrder<FollowedCommit>({
    applied: 0,
    apply: ({ commitNumber }) => void applied.push(commitNumber),
    onMissing: (commitNumber) => follower.wanted(commitNumber),
    onLanded: () => {},
  });
  const follow = async (after: number, limit: number): Promise<Following> => {
    asked.push(after);
    await hold;
    if (store.failing !== undefined) throw store.failing;
    const count = Math.min(limit, store.commits - after);
    const rows = Array.from({ length: count }, (_, n) => commit(after + 1 + n, store.partition));
    return { rows, versions: { ...noVersions, topics: store.commits }, lastCommit: store.commits };
  };
  const follower: Follower = new Follower({
    metadata: { follow },
    front: {
      committed: (rows) => order.take(rows as FollowedCommit[]),
      whenApplied: (commitNumber) => order.whenApplied(commitNumber),
      get lastCommitNumber() {
        return order.applied;
      },
      get waitingCommits() {
        return order.waitingRows;
      },
      get awaited() {
        return awaited || order.awaited;
      },
    },
    topics: {
      byPartition: (id) => (known.includes(id) ? ({ index: 0 } as never) : undefined),
      refresh: async () => {
        refreshes += 1;
        known = store.topics;
      },
    },
    starts: {
      seen() {},
      caughtUp: async (versions) => void started.push(versions.topics),
    },
    versions: noVersions,
    clock,
    logger: silentLogger,
    metrics: noMetrics,
    pollMs: POLL_MS,
    idleMs: IDLE_MS,
    isCurrent: () => true,
    onFatal: ({ message }) => void fatal.push(message),
  });
  return {
    clock,
    store,
    asked,
    applied,
    fatal,
    started,
    order,
    follower,
    refreshes: () => refreshes,
    wait: (waiting: boolean) => {
      awaited = waiting;
      if (waiting) follower.awaited();
    },
    hold: (until: Promise<void> | undefined) => {
      hold = until;
    },
  };
}

test('asks every second while nobody waits, every tenth of one while somebody does', async () => {
  const { clock, asked, wait, applied, store } = setUp();
  await clock.advance(IDLE_MS * 3);
  expect(asked.length).toBe(3);
  store.commits = 2;
  await clock.advance(IDLE_MS / 2);
  expect(applied).toEqual([]);
  // Whoever begins to wait has it asked at once, as the last answer is old.
  wait(true);
  await clock.advance(0);
  expect(applied).toEqual([1, 2]);
  asked.length = 0;
  await clock.advance(POLL_MS * 5);
  expect(asked).toEqual([2, 2, 2, 2, 2]);
  wait(false);
  await clock.advance(POLL_MS);
  asked.length = 0;
  await clock.advance(IDLE_MS);
  expect(asked.length).toBe(1);
});

test('a hint is asked for at once; one that comes while a question is under way, right after it', async () => {
  const { clock, asked, store, applied, follower, hold } = setUp();
  let release = () => {};
  hold(
    new Promise<void>((resolve) => {
      release = resolve;
    }),
  );
  store.commits = 1;
  follower.hinted(1);
  follower.hinted(1);
  store.commits = 3;
  follower.hinted(3);
  expect(asked).toEqual([0]);
  hold(undefined);
  release();
  await clock.advance(0);
  expect(applied).toEqual([1, 2, 3]);
  asked.length = 0;
  // What is here already is not asked for.
  follower.hinted(2);
  await clock.advance(0);
  expect(asked).toEqual([]);
});

test('many commits come in several answers, one right after the other', async () => {
  const { clock, asked, store, applied, follower } = setUp();
  store.commits = 1_200;
  follower.hinted(1_200);
  await clock.advance(0);
  expect(applied.length).toBe(1_200);
  expect(asked).toEqual([0, 500, 1_000]);
});

test('caughtUp is answered by a question that began after it, and shares it', async () => {
  const { clock, asked, store, order, follower, hold, started } = setUp();
  let release = () => {};
  hold(
    new Promise<void>((resolve) => {
      release = resolve;
    }),
  );
  follower.hinted(1);
  const caughtUp = [follower.caughtUp(), follower.caughtUp()].map(async (promise) => {
    await promise;
    return order.applied;
  });
  hold(undefined);
  // The question under way was answered from before this.
  const before = store.commits;
  release();
  store.commits = before + 5;
  expect(await Promise.all(caughtUp)).toEqual([5, 5]);
  expect(asked.length).toBe(2);
  expect(started).toEqual([5, 5]);
  await clock.advance(0);
});

test('a store that is away fails who waits, and is asked again without being pressed', async () => {
  const { clock, asked, store, applied, follower } = setUp();
  store.failing = new FloeError('unavailable', 'no connection');
  store.commits = 1;
  await expect(follower.caughtUp()).rejects.toThrow('no connection');
  follower.hinted(1);
  await clock.advance(1_000);
  expect(asked.length).toBeLessThanOrEqual(11);
  store.failing = undefined;
  await clock.advance(POLL_MS);
  expect(applied).toEqual([1]);
});

test('topics of others are read before their commits are applied', async () => {
  const { clock, store, applied, follower, refreshes } = setUp();
  store.topics = [1, 7];
  store.partition = 7;
  store.commits = 1;
  follower.hinted(1);
  await clock.advance(0);
  expect(applied).toEqual([1]);
  expect(refreshes()).toBe(1);
});

test('commits to topics that nobody knows any more are applied, and ask for topics no more', async () => {
  const { clock, store, applied, follower, refreshes } = setUp();
  store.partition = 9;
  for (store.commits = 1; store.commits <= 3; store.commits += 1) {
    follower.hinted(store.commits);
    await clock.advance(0);
  }
  expect(applied).toEqual([1, 2, 3]);
  // Twice: the first may have been shared with a question from before the topic was there.
  expect(refreshes()).toBe(2);
});

test('who is behind what the store keeps ends with a clear error, once', async () => {
  const { clock, store, fatal, asked, follower } = setUp();
  store.failing = new FloeError('not-found', 'start over');
  follower.hinted(1);
  await clock.advance(5_000);
  expect(fatal).toEqual([expect.stringContaining('it must start again')]);
  expect(asked.length).toBe(1);
  await expect(follower.caughtUp()).rejects.toThrow('stopping');
});

test('a store that contradicts what is known here ends this broker, with its own words', async () => {
  const { clock, store, fatal, asked } = setUp();
  store.failing = new FloeError('corrupt', 'the database was put back');
  await clock.advance(IDLE_MS);
  expect(fatal).toEqual(['the database was put back']);
  const questions = asked.length;
  await clock.advance(10 * IDLE_MS);
  expect(asked.length).toBe(questions);
});

test('nothing is asked after a stop', async () => {
  const { clock, asked, follower } = setUp();
  const waiting = follower.caughtUp();
  const stopped = follower.stop();
  await Promise.allSettled([waiting, stopped]);
  asked.length = 0;
  await clock.advance(10_000);
  expect(asked).toEqual([]);
});
