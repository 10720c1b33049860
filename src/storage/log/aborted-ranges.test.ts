import { expect, test } from 'vitest';
import type { PartitionLog } from '../../metadata/log.ts';
import { AbortedRanges } from './aborted-ranges.ts';

/** Four transactions of one record each, aborted at once: records at 0, 2, 4, 6, markers behind them. */
const range = (n: number) => ({
  partitionId: 1,
  producerId: 7,
  firstOffset: 2 * n,
  lastOffset: 2 * n + 1,
  stableOffset: 2 * n + 2,
});

function ranges(maxRanges: number, logStartOffset = 0) {
  const asked: [number, number][] = [];
  const metadata = {
    async abortedTransactions(_partitionId: number, offset: number, endOffset: number) {
      asked.push([offset, endOffset]);
      return [{ producerId: 7, firstOffset: 0 }];
    },
    async partitions() {
      return logStartOffset < 0 ? [] : [{ logStartOffset } as PartitionLog];
    },
  };
  return { aborted: new AbortedRanges({ metadata, maxRanges }), asked };
}

test('the newest are known, older ones are asked for', async () => {
  const { aborted, asked } = ranges(3);
  expect(aborted.has(1, 0)).toBe(false);
  for (let n = 0; n < 3; n += 1) aborted.add(range(n));
  expect(aborted.has(1, 5)).toBe(true);
  expect(aborted.has(1, 6)).toBe(false);
  expect(aborted.find(1, 1, 3)).toEqual(
    [range(0), range(1)].map(({ producerId, firstOffset }) => ({ producerId, firstOffset })),
  );
  aborted.add(range(3));
  expect(aborted.find(1, 4, 8)).toEqual([
    { producerId: 7, firstOffset: 4 },
    { producerId: 7, firstOffset: 6 },
  ]);
  expect(await aborted.find(1, 3, 8)).toHaveLength(1);
  expect(asked).toEqual([[3, 8]]);
  aborted.remove(1);
  expect(aborted.has(1, 0)).toBe(false);
});

test('a start finds only the newest marker, the rest is asked for', async () => {
  const { aborted, asked } = ranges(3);
  aborted.load(1, -1);
  expect(aborted.has(1, 0)).toBe(false);
  aborted.load(1, 3);
  expect(aborted.has(1, 4)).toBe(false);
  await aborted.find(1, 2, 4);
  aborted.add(range(2));
  expect(aborted.find(1, 4, 6)).toEqual([{ producerId: 7, firstOffset: 4 }]);
  expect(asked).toEqual([[2, 4]]);
});

test('what went with the records can not be told any more (L7)', async () => {
  for (const logStart of [3, -1]) {
    const { aborted } = ranges(3, logStart);
    aborted.load(1, 3);
    expect(await aborted.find(1, 2, 4)).toBeUndefined();
  }
});
