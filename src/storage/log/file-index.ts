// The index of the WAL file that is being filled: the packed indexes of its flushes, merged into one when it is sealed.
import type { NewObjectEntry } from '../../metadata/log.ts';
import {
  allocateIndex,
  copyEntry,
  endOffset,
  isMarker,
  markerCount,
  openIndex,
  type PackedIndex,
} from '../../metadata/packed-index.ts';
import { BLOCK_HEADER_BYTES } from './wal-format.ts';

/** The file as the metadata store knows it. */
export interface IndexedFile {
  readonly objectId: number;
  readonly key: string;
  readonly generation: number;
}

export class FileIndex {
  readonly file: IndexedFile;
  readonly #indexes: PackedIndex[] = [];
  /** Of each of the indexes. */
  readonly #commitNumbers: number[] = [];
  #end = 0;
  /** Latest commit per partition. */
  readonly #commits = new Map<number, number>();

  constructor(file: IndexedFile) {
    this.file = file;
  }

  /** Position after the last accepted byte: where the footer goes. What lies beyond was never committed. */
  get end(): number {
    return this.#end;
  }

  /** Flush rows so far. */
  get commits(): number {
    return this.#indexes.length;
  }

  /** Adds a flush; in commit order. */
  add(packed: Uint8Array, commitNumber: number): void {
    const index = openIndex(packed);
    this.#indexes.push(index);
    this.#commitNumbers.push(commitNumber);
    for (let n = 0; n < index.count; n += 1) {
      this.#commits.set(index.partitionIds[n]!, commitNumber);
      if (isMarker(index.kinds[n]!)) continue;
      this.#end = Math.max(this.#end, index.positions[n]! + index.lengths[n]!);
    }
  }

  /** One index of all entries. Offsets ascend with flushes, so a counting sort by partition is all it takes. */
  merge(): PackedIndex {
    const counts = new Map<number, number>();
    /** Flushes that a partition is in, each a step of its commits. */
    const flushes = new Map<number, number>();
    let markers = 0;
    for (const index of this.#indexes) {
      const { count, partitionIds } = index;
      markers += markerCount(index);
      for (let n = 0; n < count; n += 1) {
        const partitionId = partitionIds[n]!;
        counts.set(partitionId, (counts.get(partitionId) ?? 0) + 1);
        if (n === 0 || partitionIds[n - 1] !== partitionId)
          flushes.set(partitionId, (flushes.get(partitionId) ?? 0) + 1);
      }
    }
    const next = startsOf(counts);
    const nextStep = startsOf(flushes);
    const merged = allocateIndex(sumOf(counts), markers, sumOf(flushes));
    for (const [flush, index] of this.#indexes.entries()) {
      for (let n = 0; n < index.count; n += 1) {
        const partitionId = index.partitionIds[n]!;
        const at = next.get(partitionId)!;
        next.set(partitionId, at + 1);
        copyEntry(merged, at, index, n);
        if (n > 0 && index.partitionIds[n - 1] === partitionId) continue;
        const step = nextStep.get(partitionId)!;
        nextStep.set(partitionId, step + 1);
        merged.steps.partitionIds[step] = partitionId;
        merged.steps.offsets[step] = index.baseOffsets[n]!;
        merged.steps.commitNumbers[step] = this.#commitNumbers[flush]!;
      }
    }
    return merged;
  }

  /** One entry per partition of `merged`, whose footer begins at `footerPosition`. */
  entries(merged: PackedIndex, footerPosition: number): NewObjectEntry[] {
    const entries: NewObjectEntry[] = [];
    for (let start = 0; start < merged.count; ) {
      let end = start + 1;
      while (end < merged.count && merged.partitionIds[end] === merged.partitionIds[start])
        end += 1;
      entries.push({
        partitionId: merged.partitionIds[start]!,
        baseOffset: merged.baseOffsets[start]!,
        endOffset: endOffset(merged, end - 1),
        indexPosition: footerPosition + BLOCK_HEADER_BYTES,
        indexLength: merged.bytes.length,
        bytes: total(merged.lengths, start, end),
        recordCount: total(merged.recordCounts, start, end),
        runCount: end - start,
        maxTimestamp: merged.maxTimestamps[end - 1]!,
        commitNumber: this.#commits.get(merged.partitionIds[start]!)!,
      });
      start = end;
    }
    return entries;
  }
}

/** Where each partition's part begins when parts lie by partition. */
function startsOf(counts: ReadonlyMap<number, number>): Map<number, number> {
  let total = 0;
  const starts = new Map<number, number>();
  for (const partitionId of [...counts.keys()].sort((a, b) => a - b)) {
    starts.set(partitionId, total);
    total += counts.get(partitionId)!;
  }
  return starts;
}

const sumOf = (counts: ReadonlyMap<number, number>): number =>
  [...counts.values()].reduce((sum, count) => sum + count, 0);

function total(column: Uint32Array, start: number, end: number): number {
  let sum = 0;
  for (let n = start; n < end; n += 1) sum += column[n]!;
  return sum;
}
