// Watermarks of all partitions in memory, and who waits for them to move. Moved only by commits, in their order, and by
// retention: exact where one process commits, else as of the newest commit that is applied here; they never go back.
// The last stable offset follows from the transactions that are open: the first of them to begin holds it.
import { assert } from '../../base/assert.ts';
import type { BegunTransaction } from '../../metadata/decide.ts';
import type { PartitionLog, PartitionTransactions } from '../../metadata/log.ts';
import { type AbortedRange, firstOpen, stableEnd } from '../../metadata/markers.ts';
import { endOffset, type PackedIndex } from '../../metadata/packed-index.ts';
import type { TopicDirectory } from '../../metadata/topic-directory.ts';
import type { Watermarks } from './log.ts';
import { columnsOf, type FlushReply } from './sequencer-port.ts';

interface FrontPartition {
  logStartOffset: number;
  highWatermark: number;
  sizeBytes: number;
  /** What lies below this offset is in the size already, though its commit may not be applied here yet. */
  sizedEnd: number;
  /** First offsets of open transactions by producer id, ascending; undefined where none is. */
  open: Map<number, number> | undefined;
}

export type Listener = (partitionId: number) => void;

export class FrontPartitions {
  readonly #topics: TopicDirectory;
  readonly #partitions = new Map<number, FrontPartition>();
  readonly #listeners = new Map<number, Set<Listener>>();

  constructor(
    topics: TopicDirectory,
    loaded: readonly PartitionLog[],
    transactions: readonly PartitionTransactions[] = [],
  ) {
    this.#topics = topics;
    for (const { partitionId, logStartOffset, highWatermark, sizeBytes } of loaded)
      this.#partitions.set(partitionId, {
        logStartOffset,
        highWatermark,
        sizeBytes,
        sizedEnd: highWatermark,
        open: undefined,
      });
    for (const { partitionId, open } of transactions) {
      const partition = this.#partitions.get(partitionId);
      if (partition !== undefined && open.size > 0) partition.open = new Map(open);
    }
  }

  /** Undefined when the partition doesn't exist; one that was never written is empty. */
  get(partitionId: number): Readonly<FrontPartition> | undefined {
    return this.#find(partitionId);
  }

  #find(partitionId: number): FrontPartition | undefined {
    const known = this.#partitions.get(partitionId);
    if (known !== undefined || this.#topics.byPartition(partitionId) === undefined) return known;
    const fresh = {
      logStartOffset: 0,
      highWatermark: 0,
      sizeBytes: 0,
      sizedEnd: 0,
      open: undefined,
    };
    this.#partitions.set(partitionId, fresh);
    return fresh;
  }

  watermarks(partitionId: number): Watermarks | undefined {
    const found = this.#find(partitionId);
    if (found === undefined) return undefined;
    const { highWatermark, open } = found;
    const stable = open === undefined ? highWatermark : firstOpen(open, highWatermark);
    // The store may have moved it past commits that aren't applied here yet.
    const logStartOffset = Math.min(found.logStartOffset, highWatermark);
    return { logStartOffset, lastStableOffset: Math.max(logStartOffset, stable), highWatermark };
  }

  /** Takes note of transactions that the flush began in a partition; before anybody reads of it. */
  begin({ columns, order, errorCodes, duplicates, baseOffsets }: FlushReply): void {
    const { transactions, partitionIds, producerIds } = columnsOf(columns);
    for (const n of order) {
      if (transactions[n] === 0 || errorCodes[n] !== 0 || duplicates[n] !== 0) continue;
      const partition = this.#find(partitionIds[n]!);
      if (partition === undefined || partition.open?.has(producerIds[n]!) === true) continue;
      partition.open ??= new Map();
      partition.open.set(producerIds[n]!, baseOffsets[n]!);
    }
  }

  #begin(begun: readonly BegunTransaction[]): void {
    for (const { partitionId, producerId, firstOffset } of begun) {
      const partition = this.#find(partitionId);
      if (partition === undefined) continue;
      partition.open ??= new Map();
      partition.open.set(producerId, firstOffset);
    }
  }

  /** Takes the markers of a commit in; tells of aborted ranges. Returns the partitions whose end moved. */
  end(index: PackedIndex, aborted: (range: AbortedRange) => void): readonly number[] {
    const moved: number[] = [];
    for (let n = 0; n < index.count; n += 1) {
      const partitionId = index.partitionIds[n]!;
      const partition = this.#find(partitionId);
      if (partition === undefined) continue;
      const { producerId, committed } = index.marker(n);
      const firstOffset = partition.open?.get(producerId);
      const lastOffset = index.baseOffsets[n]!;
      assert(lastOffset === partition.highWatermark, 'L4: a marker takes the next offset');
      partition.highWatermark = lastOffset + 1;
      if (moved.at(-1) !== partitionId) moved.push(partitionId);
      if (firstOffset === undefined) continue;
      partition.open!.delete(producerId);
      if (partition.open!.size === 0) partition.open = undefined;
      if (committed) continue;
      const { highWatermark: nextOffset, open } = partition;
      const stableOffset = stableEnd({ nextOffset, maxTimestamp: -1, open });
      aborted({ partitionId, producerId, firstOffset, lastOffset, stableOffset });
    }
    return moved;
  }

  /**
   * Takes a committed flush in, with the transactions that it began (else `begin` follows at once); returns the
   * partitions whose end moved.
   */
  advance(index: PackedIndex, begun: readonly BegunTransaction[] = []): readonly number[] {
    const moved: number[] = [];
    for (let n = 0; n < index.count; n += 1) {
      const partitionId = index.partitionIds[n]!;
      const partition = this.#find(partitionId);
      if (partition === undefined) continue;
      assert(
        index.baseOffsets[n] === partition.highWatermark,
        'L2, L4: a commit takes the offsets from the high watermark on',
      );
      partition.highWatermark = endOffset(index, n);
      if (index.baseOffsets[n]! >= partition.sizedEnd) partition.sizeBytes += index.lengths[n]!;
      if (moved.at(-1) !== partitionId) moved.push(partitionId);
    }
    this.#begin(begun);
    return moved;
  }

  /** @returns the partitions of which more is applied here than `moved` knew of: their sizes lack what came in between. */
  moveLogStarts(moved: readonly PartitionLog[]): readonly number[] {
    const behind: number[] = [];
    for (const { partitionId, logStartOffset, highWatermark, sizeBytes } of moved) {
      const partition = this.#partitions.get(partitionId);
      if (partition === undefined) continue;
      partition.logStartOffset = Math.max(partition.logStartOffset, logStartOffset);
      partition.sizeBytes = sizeBytes;
      partition.sizedEnd = highWatermark;
      if (highWatermark < partition.highWatermark) behind.push(partitionId);
    }
    return behind;
  }

  /** Bytes of each partition that has any. Called often enough to make nothing for it. */
  eachSize(visit: (partitionId: number, sizeBytes: number) => void): void {
    for (const [partitionId, { sizeBytes }] of this.#partitions)
      if (sizeBytes > 0) visit(partitionId, sizeBytes);
  }

  /** Records from last stable offset to high watermark, of the partition with most; only open transactions leave any. */
  get stableLag(): number {
    let most = 0;
    for (const [partitionId, { open }] of this.#partitions) {
      if (open === undefined) continue;
      const { highWatermark, lastStableOffset } = this.watermarks(partitionId)!;
      most = Math.max(most, highWatermark - lastStableOffset);
    }
    return most;
  }

  /** True while anybody waits for a partition to move. */
  get awaited(): boolean {
    return this.#listeners.size > 0;
  }

  /** Deleted: waiters are woken so that they find out. */
  remove(partitionIds: readonly number[]): void {
    for (const partitionId of partitionIds) this.#partitions.delete(partitionId);
    this.notify(partitionIds);
  }

  subscribe(partitionIds: readonly number[], listener: Listener): () => void {
    for (const partitionId of partitionIds) {
      const listeners = this.#listeners.get(partitionId);
      if (listeners === undefined) this.#listeners.set(partitionId, new Set([listener]));
      else listeners.add(listener);
    }
    return () => {
      for (const partitionId of partitionIds) {
        const listeners = this.#listeners.get(partitionId);
        listeners?.delete(listener);
        if (listeners?.size === 0) this.#listeners.delete(partitionId);
      }
    };
  }

  /** Once per partition and commit. */
  notify(partitionIds: readonly number[]): void {
    if (this.#listeners.size === 0) return;
    for (const partitionId of partitionIds) {
      const listeners = this.#listeners.get(partitionId);
      if (listeners === undefined) continue;
      for (const listener of [...listeners]) listener(partitionId);
    }
  }
}
