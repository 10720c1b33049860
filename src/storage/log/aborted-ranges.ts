// Aborted transactions as readers of committed records ask for them: the newest in memory, by partition, fed by the
// commits of markers; older ones from the metadata store. Most partitions never have any, and pay a look-up for that.
// Not for: open transactions (front-partitions.ts).
import type { AbortedTransaction, LogMetadata } from '../../metadata/log.ts';
import type { AbortedRange } from '../../metadata/markers.ts';

export interface AbortedRangesOptions {
  readonly metadata: Pick<LogMetadata, 'abortedTransactions' | 'partitions'>;
  /** Ranges kept in memory at most, over all partitions. */
  readonly maxRanges?: number;
}

/** About 5 MB. */
const MAX_RANGES = 65_536;
const NONE: readonly AbortedTransaction[] = [];

interface PartitionRanges {
  /** Ranges whose marker lies at or above it are here. */
  coveredFrom: number;
  /** By the offset of their markers. */
  ranges: AbortedRange[];
  /** Marker of the newest. */
  lastOffset: number;
}

export class AbortedRanges {
  readonly #options: AbortedRangesOptions;
  readonly #partitions = new Map<number, PartitionRanges>();
  readonly #maxRanges: number;
  #count = 0;

  constructor(options: AbortedRangesOptions) {
    this.#options = options;
    this.#maxRanges = options.maxRanges ?? MAX_RANGES;
  }

  /** Of an earlier life: the ranges are in the metadata store only. */
  load(partitionId: number, lastOffset: number): void {
    if (lastOffset < 0) return;
    this.#partitions.set(partitionId, { coveredFrom: lastOffset + 1, ranges: [], lastOffset });
  }

  /** A transaction was aborted; in commit order. */
  add(range: AbortedRange): void {
    const { partitionId, lastOffset } = range;
    let known = this.#partitions.get(partitionId);
    if (known === undefined) {
      known = { coveredFrom: 0, ranges: [], lastOffset };
      this.#partitions.set(partitionId, known);
    }
    known.ranges.push(range);
    known.lastOffset = lastOffset;
    this.#count += 1;
    if (this.#count > this.#maxRanges) this.#shrink();
  }

  /** Lets go of the older half everywhere: seldom, so its cost spreads. */
  #shrink(): void {
    this.#count = 0;
    for (const known of this.#partitions.values()) {
      const dropped = known.ranges.splice(0, Math.ceil(known.ranges.length / 2)).at(-1);
      if (dropped !== undefined) known.coveredFrom = dropped.lastOffset + 1;
      this.#count += known.ranges.length;
    }
  }

  /** Compaction by key has removed the records of the transactions with these markers, and takes the markers next. */
  forget(partitionId: number, markerOffsets: readonly number[]): void {
    const known = this.#partitions.get(partitionId);
    if (known === undefined) return;
    const gone = new Set(markerOffsets);
    const before = known.ranges.length;
    known.ranges = known.ranges.filter(({ lastOffset }) => !gone.has(lastOffset));
    this.#count -= before - known.ranges.length;
  }

  remove(partitionId: number): void {
    this.#count -= this.#partitions.get(partitionId)?.ranges.length ?? 0;
    this.#partitions.delete(partitionId);
  }

  /** False when a reader from `offset` on has nothing to leave out. */
  has(partitionId: number, offset: number): boolean {
    const known = this.#partitions.get(partitionId);
    return known !== undefined && known.lastOffset >= offset;
  }

  /**
   * What a reader of `[offset, endOffset)`, whole below the last stable offset, leaves out. Undefined when the log no
   * longer holds `offset`: ranges go with their records, and what was read before can't be told apart any more (L7).
   * `stored`: what was read may have been compacted by key by another broker, which takes markers along with their
   * ranges; memory may still have those, and a range without its marker would hide what its producer wrote later.
   */
  find(
    partitionId: number,
    offset: number,
    endOffset: number,
    stored = false,
  ): readonly AbortedTransaction[] | Promise<readonly AbortedTransaction[] | undefined> {
    const known = this.#partitions.get(partitionId);
    if (known === undefined || known.lastOffset < offset) return NONE;
    if (stored || offset < known.coveredFrom) return this.#ask(partitionId, offset, endOffset);
    const found: AbortedTransaction[] = [];
    for (let n = firstFrom(known.ranges, offset); n < known.ranges.length; n += 1) {
      const { producerId, firstOffset, stableOffset } = known.ranges[n]!;
      if (firstOffset < endOffset) found.push({ producerId, firstOffset });
      if (stableOffset >= endOffset) break;
    }
    return found;
  }

  async #ask(partitionId: number, offset: number, endOffset: number) {
    const { metadata } = this.#options;
    const found = await metadata.abortedTransactions(partitionId, offset, endOffset);
    // Asked after it: if the start had moved by then, it shows.
    const [log] = await metadata.partitions([partitionId]);
    return log === undefined || log.logStartOffset > offset ? undefined : found;
  }
}

/** The first range whose marker lies at or above `offset`. */
function firstFrom(ranges: readonly AbortedRange[], offset: number): number {
  let [low, high] = [0, ranges.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (ranges[middle]!.lastOffset >= offset) high = middle;
    else low = middle + 1;
  }
  return low;
}
