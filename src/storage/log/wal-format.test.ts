import fc from 'fast-check';
import { expect, test } from 'vitest';
import { groupByPartition } from '../../metadata/batch-columns.ts';
import { allocateIndex } from '../../metadata/packed-index.ts';
import { readUint32 } from '../../protocol/bytes.ts';
import { layoutFlush } from './layout.ts';
import type { AppendRequest } from './open-flush.ts';
import { OpenFlush } from './open-flush.ts';
import { columnsOf } from './sequencer-port.ts';
import { SlabPool } from './slab.ts';
import { testItem } from './test-items.ts';
import {
  BLOCK_HEADER_BYTES,
  buildFooter,
  checkBlock,
  clusterTag,
  footerIndex,
  readBlockHeader,
  readTrailer,
  TRAILER_BYTES,
} from './wal-format.ts';

const tag = clusterTag('test');
const nobody: AppendRequest = { items: [], outcomes: [], remaining: 0, resolve: () => {} };

test('a flush lies grouped by partition, every batch whole where its columns say', () => {
  const batch = fc.record({
    partitionId: fc.constantFrom(3, 7, 1_000),
    bytes: fc.constantFrom(1, 50, 4_000, 4_100, 9_000),
  });
  fc.assert(
    fc.property(
      fc.array(batch, { minLength: 1, maxLength: 12 }),
      fc.nat(5_000),
      (drawn, position) => {
        const slab = SlabPool.create(131_072, 1).acquire()!;
        const flush = new OpenFlush(slab, 100, 0);
        const items = drawn.map((b, n) => testItem({ ...b, fill: n + 1 }));
        for (const [n, item] of items.entries()) flush.add(item, nobody, n);
        const batches = columnsOf(flush.take());
        const flushId = new Uint8Array(16).fill(5);
        const order = groupByPartition(batches);
        const layout = layoutFlush({
          batches,
          order,
          slab: slab.bytes,
          position,
          clusterTag: tag,
          generation: 4,
          flushId,
        });
        const written = Buffer.concat(layout.parts);
        expect(written.length).toBe(layout.bytes);
        for (const [n, item] of items.entries()) {
          const at = batches.positions[n]! - position;
          expect(written.subarray(at, at + item.bytes.length).equals(item.bytes)).toBe(true);
          const block = batches.blockPositions[n]!;
          const { partitionId } = item;
          const expected = { clusterId: tag, generation: 4, partitionId, position: block };
          const header = checkBlock(written, block - position, expected);
          const count = drawn.filter((b) => b.partitionId === partitionId).length;
          expect(header).toMatchObject({ batchCount: count, flushId });
          expect(batches.positions[n]! + item.bytes.length).toBeLessThanOrEqual(
            block + BLOCK_HEADER_BYTES + header.payloadLength,
          );
        }
        expect([...order].map((n) => batches.positions[n]!)).toEqual(
          [...batches.positions].sort((a, b) => a - b),
        );
      },
    ),
    { seed: 7, numRuns: 60 },
  );
});

test('a header that is damaged, stale or of another partition is noticed', () => {
  const bytes = Buffer.alloc(200);
  const slab = SlabPool.create(1024, 1).acquire()!;
  const flush = new OpenFlush(slab, 0, 0);
  flush.add(testItem({ partitionId: 9 }), nobody, 0);
  const batches = columnsOf(flush.take());
  const order = groupByPartition(batches);
  const flushId = new Uint8Array(16);
  const options = { batches, order, slab: slab.bytes, clusterTag: tag, generation: 2, flushId };
  Buffer.concat(layoutFlush({ ...options, position: 0 }).parts).copy(bytes);
  const right = { clusterId: tag, generation: 2, partitionId: 9, position: 0 };
  expect(checkBlock(bytes, 0, right).batchCount).toBe(1);
  for (const wrong of [
    { generation: 3 },
    { partitionId: 8 },
    { position: 64 },
    { clusterId: clusterTag('other') },
  ])
    expect(() => checkBlock(bytes, 0, { ...right, ...wrong })).toThrow('no block of partition');
  for (let at = 0; at < BLOCK_HEADER_BYTES; at += 1) {
    bytes[at]! ^= 1;
    expect(readBlockHeader(bytes), `byte ${at}`).toBeUndefined();
    bytes[at]! ^= 1;
  }
  expect(readBlockHeader(bytes.subarray(0, 63))).toBeUndefined();
});

test('a footer is found from the end and gives its index back', () => {
  const index = allocateIndex(2);
  index.partitionIds.set([1, 2]);
  const footer = buildFooter(4_096, index.bytes, { clusterId: tag, generation: 1 });
  expect(readTrailer(footer)).toEqual({ position: 4_096, length: footer.length });
  expect(readTrailer(footer.subarray(0, footer.length - 1))).toBeUndefined();
  expect(Buffer.compare(footerIndex(footer), index.bytes)).toBe(0);
  footer[BLOCK_HEADER_BYTES + 3]! ^= 1;
  expect(() => footerIndex(footer)).toThrow('damaged');
  expect(readUint32(footer, footer.length - TRAILER_BYTES)).toBeGreaterThan(0);
});
