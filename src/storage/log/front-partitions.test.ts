// Sizes that a front is told of and those it counts by itself.
import { expect, test } from 'vitest';
import type { PartitionLog } from '../../metadata/log.ts';
import { EntryKind, type PackedIndex } from '../../metadata/packed-index.ts';
import { FrontPartitions } from './front-partitions.ts';

const state = (highWatermark: number, sizeBytes: number): PartitionLog => ({
  partitionId: 1,
  logStartOffset: 0,
  highWatermark,
  lastStableOffset: highWatermark,
  maxTimestamp: -1,
  sizeBytes,
});

/** A commit of `records` records of ten bytes each. */
const commit = (baseOffset: number, records: number) =>
  ({
    count: 1,
    partitionIds: [1],
    baseOffsets: [baseOffset],
    offsetSpans: [records],
    lengths: [records * 10],
    kinds: [EntryKind.BATCHES],
  }) as unknown as PackedIndex;

test('what others free comes off, and what is in the answer already is not counted again', () => {
  const partitions = new FrontPartitions({} as never, [state(4, 40)]);
  const size = () => partitions.get(1)!.sizeBytes;
  partitions.advance(commit(4, 2));
  expect(size()).toBe(60);
  // Three more are committed that aren't applied here yet; 50 bytes have gone.
  expect(partitions.moveLogStarts([state(9, 40)])).toEqual([]);
  partitions.advance(commit(6, 3));
  expect(size()).toBe(40);
  partitions.advance(commit(9, 1));
  expect(size()).toBe(50);
  // An answer that is older than what is applied here: to be asked again.
  expect(partitions.moveLogStarts([state(9, 40)])).toEqual([1]);
  expect(partitions.moveLogStarts([state(10, 50)])).toEqual([]);
  expect(size()).toBe(50);
});
