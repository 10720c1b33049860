import { expect, test } from 'vitest';
import { groupByPartition } from '../../metadata/batch-columns.ts';
import { allocateIndex, setMarker } from '../../metadata/packed-index.ts';
import { type AppendRequest, OpenFlush } from './open-flush.ts';
import { columnsOf } from './sequencer-port.ts';
import { SlabPool } from './slab.ts';
import { TailCache } from './tail.ts';
import { type ItemOptions, testItem } from './test-items.ts';

const nobody: AppendRequest = { items: [], outcomes: [], remaining: 0, resolve: () => {} };

/** Fills flushes and gives them to a cache as if each had been committed; batches with `refuse` were not accepted. */
class Feeder {
  readonly pool = SlabPool.create(32_768, 4);
  readonly tail: TailCache;
  readonly #ends = new Map<number, number>();

  constructor(maxBytes = 65_536, maxMarkers?: number) {
    this.tail = new TailCache(this.pool, maxBytes, maxMarkers);
  }

  marker(partitionId: number): void {
    const index = allocateIndex(1, 1);
    const base = this.#ends.get(partitionId) ?? 0;
    this.#ends.set(partitionId, base + 1);
    index.partitionIds[0] = partitionId;
    index.baseOffsets[0] = base;
    const by = { producerId: 1, producerEpoch: 0, coordinatorEpoch: 0, timestampMs: 1 };
    setMarker(index, 0, { committed: true, ...by });
    this.tail.addMarkers(index);
  }

  /** Somebody else's records. */
  skip(partitionId: number, records: number): void {
    this.#ends.set(partitionId, (this.#ends.get(partitionId) ?? 0) + records);
  }

  flush(items: readonly (ItemOptions & { refuse?: boolean })[]): void {
    const slab = this.pool.acquire()!;
    const open = new OpenFlush(slab, 0, 0);
    for (const [n, item] of items.entries()) open.add(testItem(item), nobody, n);
    const batches = columnsOf(open.take());
    const baseOffsets = Float64Array.from(items, ({ partitionId, records = 1, refuse }) => {
      if (refuse === true) return -1;
      const base = this.#ends.get(partitionId) ?? 0;
      this.#ends.set(partitionId, base + records);
      return base;
    });
    this.tail.add({
      slab,
      batches,
      order: groupByPartition(batches),
      errorCodes: Int16Array.from(items, ({ refuse }) => (refuse === true ? 45 : 0)),
      duplicates: new Uint8Array(items.length),
      baseOffsets,
      patched: true,
    });
    this.pool.release(slab.number);
  }

  /** [base offset, bytes] of each run. */
  read(partitionId: number, offset: number, maxBytes = 1e9, endOffset = Infinity) {
    const found = this.tail.read(partitionId, offset, { maxBytes, endOffset });
    for (const number of found?.slabs ?? []) this.pool.release(number);
    return found?.runs.map((run) => [run.baseOffset, run.bytes.length]);
  }
}

test('large batches are slices, short ones are joined, refused ones are left out', () => {
  const feeder = new Feeder();
  feeder.flush([
    { partitionId: 1, bytes: 6_000 },
    { partitionId: 2, bytes: 100 },
    { partitionId: 1, bytes: 39, records: 3 },
    { partitionId: 1, bytes: 39, refuse: true },
    { partitionId: 2, bytes: 100 },
    { partitionId: 1, bytes: 39 },
  ]);
  expect(feeder.read(1, 0)).toEqual([
    [0, 6_061],
    [1, 200],
  ]);
  expect(feeder.read(1, 2)).toEqual([[1, 200]]);
  expect(feeder.read(1, 4)).toEqual([[4, 100]]);
  expect(feeder.read(2, 0)).toEqual([[0, 322]]);
  expect(feeder.read(1, 0, 6_100)).toEqual([[0, 6_061]]);
  expect(feeder.read(1, 0, 1)).toEqual([[0, 6_061]]);
  expect(feeder.read(1, 0, 1e9, 1)).toEqual([[0, 6_061]]);
  expect(feeder.read(3, 0)).toBeUndefined();
});

test('adjacent batches are one slice without a copy', () => {
  const feeder = new Feeder();
  feeder.flush([
    { partitionId: 1, bytes: 3_000 },
    { partitionId: 1, bytes: 3_000 },
  ]);
  const found = feeder.tail.read(1, 0, { maxBytes: 1e9, endOffset: 2 })!;
  expect(found.runs).toHaveLength(1);
  expect(found.runs[0]!.bytes.buffer).toBe(feeder.pool.slab(0).bytes.buffer);
  expect(found.slabs).toEqual([0]);
});

test('the oldest slab goes first, and stays in memory while a reader holds it', () => {
  const feeder = new Feeder();
  for (let n = 0; n < 2; n += 1) feeder.flush([{ partitionId: 1, bytes: 9_000 }]);
  const held = feeder.tail.read(1, 0, { maxBytes: 1, endOffset: 9 })!;
  feeder.flush([{ partitionId: 1, bytes: 9_000 }]);
  expect(feeder.tail.holds(1, 0)).toBe(false);
  expect(feeder.tail.holds(1, 1)).toBe(true);
  expect(feeder.read(1, 0)).toBeUndefined();
  expect(feeder.pool.references(0)).toBe(1);
  for (const number of held.slabs) feeder.pool.release(number);
  expect(feeder.pool.references(0)).toBe(0);
  expect(feeder.read(1, 1)).toHaveLength(2);
  expect(feeder.tail.bytes).toBe(65_536);
  feeder.tail.clear();
  expect(feeder.pool.free).toBe(4);
});

test('what others wrote between is a hole: a read ends before it, and finds what comes after', () => {
  const feeder = new Feeder(98_304);
  feeder.flush([{ partitionId: 1, bytes: 39 }]);
  feeder.skip(1, 2);
  feeder.flush([{ partitionId: 1, bytes: 39 }]);
  feeder.flush([{ partitionId: 1, bytes: 39 }]);
  expect(feeder.read(1, 0)).toEqual([[0, 100]]);
  for (const offset of [1, 2]) {
    expect(feeder.tail.holds(1, offset)).toBe(false);
    expect(feeder.read(1, offset)).toBeUndefined();
  }
  expect(feeder.read(1, 3)!.map(([, bytes]) => bytes)).toEqual([200]);
  expect(feeder.read(1, 5)).toBeUndefined();
});

test('a deleted partition is gone at once', () => {
  const feeder = new Feeder();
  feeder.flush([{ partitionId: 1 }, { partitionId: 2 }]);
  feeder.tail.removePartition(1);
  expect(feeder.read(1, 0)).toBeUndefined();
  expect(feeder.read(2, 0)).toHaveLength(1);
});

test('markers that nobody writes records between are held up to a bound, past it storage is asked', () => {
  const feeder = new Feeder(65_536, 3);
  feeder.flush([
    { partitionId: 1, bytes: 39 },
    { partitionId: 2, bytes: 39 },
  ]);
  for (let n = 0; n < 3; n += 1) feeder.marker(1);
  expect(feeder.read(1, 1)).toEqual([[1, 3 * 78]]);
  feeder.marker(1);
  // Not a read that ends before the newest marker: its reader would ask for ever.
  expect(feeder.read(1, 0)).toBeUndefined();
  expect(feeder.read(1, 4)).toBeUndefined();
  expect(feeder.read(2, 0)).toEqual([[0, 100]]);
  feeder.flush([{ partitionId: 1, bytes: 39 }]);
  expect(feeder.read(1, 4)).toBeUndefined();
  expect(feeder.read(1, 5)).toEqual([[5, 100]]);
  feeder.marker(1);
  expect(feeder.read(1, 6)).toEqual([[6, 78]]);
});
