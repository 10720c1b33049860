import { expect, test } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { silentLogger } from '../../base/log.ts';
import type { PartitionLog } from '../../metadata/log.ts';
import { openSqliteMetadata } from '../../metadata/sqlite/index.ts';
import { SqliteVersions } from '../../metadata/sqlite/versions.ts';
import { TRACED_VERSIONS } from '../../metadata/versions.ts';
import { LogStarts } from './log-starts.ts';

const EVERY_MS = 2_000;

/** A store with a topic of `partitionCount`, and a node that follows its log starts. */
async function setUp(partitionCount: number) {
  const metadata = openSqliteMetadata(':memory:');
  const { topics, versions } = metadata;
  const { partitions } = await topics.create({
    topicId: 't',
    name: 't',
    partitionCount,
    config: {},
    nowMs: 1,
  });
  const clock = new ManualClock();
  const behind: number[] = [];
  const asked: (readonly number[] | undefined)[] = [];
  let told: ((moved: readonly PartitionLog[]) => void) | undefined;
  const starts = new LogStarts({
    log: {
      logStartsMoved(moved) {
        told?.(moved);
        return behind.splice(0);
      },
    },
    metadata: {
      versions,
      log: {
        partitions(ids) {
          asked.push(ids);
          return metadata.log.partitions(ids);
        },
      },
    },
    clock,
    logger: silentLogger,
    versions: await versions.current(),
    everyMs: EVERY_MS,
  });
  /** The next answer to the follower has come; what the node then hears. */
  const heard = async (): Promise<readonly number[]> => {
    const moved = new Promise<readonly PartitionLog[]>((resolve) => {
      told = resolve;
    });
    await clock.advance(EVERY_MS);
    starts.seen(await versions.current());
    return (await moved).map(({ partitionId }) => partitionId);
  };
  /** `log-starts` rises, as when the log had records. */
  const move = (...ids: readonly number[]) =>
    new SqliteVersions(metadata.database).raiseTraced('log-starts', ids);
  return { partitions, asked, heard, move, behind, starts, current: () => versions.current() };
}

test('of many partitions those are read whose logs begin elsewhere now', async () => {
  const { partitions, asked, heard, move } = await setUp(100);
  const [a, b, c] = partitions as [number, number, number];
  move(a);
  move(b, a);
  expect(await heard()).toEqual([a, b]);
  move(c);
  expect(await heard()).toEqual([c]);
  expect(asked).toEqual([[a, b], [c]]);
});

test('all are read when it is not known any more which', async () => {
  const { partitions, asked, heard, move } = await setUp(3);
  for (let n = 0; n <= TRACED_VERSIONS; n += 1) move(partitions[0]!);
  expect(await heard()).toEqual(partitions);
  expect(asked).toEqual([undefined]);
});

test('partitions that were written to meanwhile are read again', async () => {
  const { partitions, asked, heard, move, behind } = await setUp(3);
  const [a, b, c] = partitions as [number, number, number];
  move(a, b);
  behind.push(b);
  expect(await heard()).toEqual([a, b]);
  behind.push(b);
  expect(await heard()).toEqual([b]);
  move(c);
  expect(await heard()).toEqual([c, b]);
  expect(asked).toEqual([[a, b], [b], [c, b]]);
});

test('who must not be answered from a stale copy has log starts asked at once, in common', async () => {
  const { partitions, asked, move, starts, current } = await setUp(3);
  const [a, b] = partitions as [number, number];
  move(a);
  starts.seen(await current());
  move(b);
  const versions = await current();
  await Promise.all([starts.caughtUp(versions), starts.caughtUp(versions)]);
  expect(new Set(asked.flat())).toEqual(new Set([a, b]));
  const questions = asked.length;
  await starts.caughtUp(versions);
  expect(asked).toHaveLength(questions);
});
