// The tail cache: the newest committed batches, still in the slabs they were admitted to. Consumers that keep up
// never touch a disk. Bounded in bytes; the oldest slab goes as a whole. Batches of a partition lie scattered in
// arrival order, so a read returns slices of slabs, short ones joined by copying. What other brokers commit between is
// not here: a partition then has holes, where a read ends and the next one goes to storage.
// Not for: what is visible (the caller cuts at the watermark) and older data (cold-reader.ts).
import { assert } from '../../base/assert.ts';
import type { BatchColumns } from '../../metadata/batch-columns.ts';
import { endOffset, type PackedIndex } from '../../metadata/packed-index.ts';
import { CONTROL_BATCH_BYTES, controlBatch } from './control-batch.ts';
import type { ReadRun } from './log.ts';
import type { Slab, SlabPool } from './slab.ts';

/** A committed flush, its accepted batches sorted by (partition, offset); or the markers of one commit. */
interface FlushTail {
  /** What holds `bytes`; undefined for markers, whose control batches are a few bytes of their own. */
  readonly slab: Slab | undefined;
  readonly bytes: Uint8Array;
  /** True once base offsets and leader epochs are right in the slab. */
  patched: boolean;
  readonly partitionIds: Uint32Array;
  readonly baseOffsets: Float64Array;
  readonly endOffsets: Float64Array;
  /** Places in `bytes`. */
  readonly slabOffsets: Uint32Array;
  readonly lengths: Uint32Array;
}

/** A committed flush as it enters the cache. */
export interface TailFlush {
  readonly slab: Slab;
  readonly batches: BatchColumns;
  readonly order: Uint32Array;
  readonly errorCodes: Int16Array;
  readonly duplicates: Uint8Array;
  readonly baseOffsets: Float64Array;
  readonly patched: boolean;
}

/** The entries `[start, end)` of one flush that are of one partition. */
interface Stretch {
  readonly flush: FlushTail;
  readonly start: number;
  readonly end: number;
}

interface TailSlab {
  readonly slab: Slab;
  readonly flushes: FlushTail[];
  bytes: number;
  /** Held along with it. */
  markers: number;
}

export interface TailRead {
  readonly runs: readonly ReadRun[];
  readonly bytes: number;
  /** Slabs that were retained for this read, to be released one by one. */
  readonly slabs: readonly number[];
}

/** Slices below this are joined by copying: a socket write of its own costs more. */
const JOIN_BELOW_BYTES = 4096;

/** A marker is about a kilobyte of objects, and a slab that nobody fills is never let go of. */
const MAX_MARKERS_PER_SLAB = 65_536;

export class TailCache {
  readonly #pool: SlabPool;
  readonly #maxBytes: number;
  readonly #maxMarkers: number;
  readonly #partitions = new Map<number, Stretch[]>();
  readonly #slabs: TailSlab[] = [];
  #bytes = 0;

  /** Holds at most `maxBytes` of slabs, counted whole, and `maxMarkers` with each. */
  constructor(pool: SlabPool, maxBytes: number, maxMarkers = MAX_MARKERS_PER_SLAB) {
    this.#pool = pool;
    this.#maxBytes = maxBytes;
    this.#maxMarkers = maxMarkers;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Adds a committed flush, in commit order; returns what marks it patched later, when it isn't yet. */
  add(input: TailFlush): () => void {
    const flush = toTail(input);
    this.#keep(flush, input.slab);
    this.#pushAll(flush);
    return () => {
      flush.patched = true;
    };
  }

  /** Adds the markers of a commit, in its turn. They go with the slab that was filled before them. */
  addMarkers(index: PackedIndex): void {
    const newest = this.#slabs.at(-1);
    // Nothing is held: readers find them in the index.
    if (newest === undefined) return;
    newest.markers += index.count;
    if (newest.markers > this.#maxMarkers) {
      // Nor here; what these partitions have before the hole would end a read.
      for (const partitionId of index.partitionIds) this.#partitions.delete(partitionId);
      return;
    }
    const flush = toMarkers(index);
    newest.flushes.push(flush);
    this.#pushAll(flush);
  }

  #pushAll(flush: FlushTail): void {
    for (let start = 0; start < flush.partitionIds.length; ) {
      const partitionId = flush.partitionIds[start]!;
      let end = start + 1;
      while (flush.partitionIds[end] === partitionId) end += 1;
      this.#push(partitionId, { flush, start, end });
      start = end;
    }
  }

  #keep(flush: FlushTail, slab: Slab): void {
    let held = this.#slabs.at(-1);
    if (held?.slab !== slab) {
      this.#pool.retain(slab.number);
      held = { slab, flushes: [], bytes: this.#pool.slabBytes, markers: 0 };
      this.#slabs.push(held);
      this.#bytes += held.bytes;
    }
    held.flushes.push(flush);
    while (this.#bytes > this.#maxBytes && this.#slabs.length > 1) this.evictOldest();
  }

  #push(partitionId: number, stretch: Stretch): void {
    const stretches = this.#partitions.get(partitionId);
    if (stretches === undefined) this.#partitions.set(partitionId, [stretch]);
    else stretches.push(stretch);
  }

  /** Lets go of the oldest slab. Returns false when none is held but the newest. */
  evictOldest(): boolean {
    if (this.#slabs.length <= 1) return false;
    const { slab, flushes, bytes } = this.#slabs.shift()!;
    const gone = new Set(flushes);
    for (const flush of flushes) {
      for (const partitionId of new Set(flush.partitionIds)) this.#dropFrom(partitionId, gone);
    }
    this.#bytes -= bytes;
    this.#pool.release(slab.number);
    return true;
  }

  #dropFrom(partitionId: number, gone: ReadonlySet<FlushTail>): void {
    const stretches = this.#partitions.get(partitionId);
    if (stretches === undefined) return;
    let keep = 0;
    while (keep < stretches.length && gone.has(stretches[keep]!.flush)) keep += 1;
    if (keep === stretches.length) this.#partitions.delete(partitionId);
    else if (keep > 0) stretches.splice(0, keep);
  }

  /** Batches of the partition below `endOffset` were compacted by key: what is stored takes their place. */
  dropBelow(partitionId: number, endOffset: number): void {
    const stretches = this.#partitions.get(partitionId);
    if (stretches === undefined) return;
    let keep = 0;
    while (keep < stretches.length && startOffset(stretches[keep]!) < endOffset) keep += 1;
    if (keep === stretches.length) this.#partitions.delete(partitionId);
    else stretches.splice(0, keep);
  }

  /** Ends a deleted partition. */
  removePartition(partitionId: number): void {
    this.#partitions.delete(partitionId);
  }

  /** True when a read from `offset` on finds something here. */
  holds(partitionId: number, offset: number): boolean {
    const stretches = this.#partitions.get(partitionId);
    return stretches !== undefined && from(stretches, offset) < stretches.length;
  }

  /**
   * Batches from the one that holds `offset` on, up to `endOffset` and about `maxBytes` (at least one batch).
   * Undefined when the cache doesn't hold `offset`.
   */
  read(
    partitionId: number,
    offset: number,
    limits: { readonly endOffset: number; readonly maxBytes: number },
  ): TailRead | undefined {
    const stretches = this.#partitions.get(partitionId);
    if (stretches === undefined) return undefined;
    let s = from(stretches, offset);
    if (s === stretches.length) return undefined;
    const collector = new Collector(this.#pool, limits.maxBytes);
    for (let next = -1; s < stretches.length; s += 1) {
      const { flush, start, end } = stretches[s]!;
      if (next !== -1 && flush.baseOffsets[start] !== next) break;
      for (let n = entryOf(flush, start, end, offset); n < end; n += 1) {
        if (flush.baseOffsets[n]! >= limits.endOffset || !collector.add(flush, n))
          return collector.finish();
      }
      next = lastOffset(stretches[s]!);
    }
    return collector.finish();
  }

  /** Releases every slab. */
  clear(): void {
    this.#partitions.clear();
    for (const { slab } of this.#slabs.splice(0)) this.#pool.release(slab.number);
    this.#bytes = 0;
  }
}

/** Turns batches into as few runs as they allow, holding the slabs that runs point into. */
class Collector {
  readonly #pool: SlabPool;
  readonly #maxBytes: number;
  readonly #runs: ReadRun[] = [];
  readonly #slabs: number[] = [];
  #bytes = 0;
  /** The slice that grows while batches are adjacent in the slab. */
  #flush: FlushTail | undefined;
  #from = 0;
  #to = 0;
  #baseOffset = 0;
  #nextOffset = 0;
  /** Short slices that wait to be joined. */
  #short: Uint8Array[] = [];
  #shortBytes = 0;
  #shortBase = 0;
  #shortPatched = true;

  constructor(pool: SlabPool, maxBytes: number) {
    this.#pool = pool;
    this.#maxBytes = maxBytes;
  }

  add(flush: FlushTail, n: number): boolean {
    const length = flush.lengths[n]!;
    if (this.#bytes > 0 && this.#bytes + length > this.#maxBytes) return false;
    const at = flush.slabOffsets[n]!;
    this.#bytes += length;
    if (this.#flush !== flush || this.#to !== at) {
      this.#close();
      this.#flush = flush;
      this.#from = at;
      this.#to = at;
      this.#baseOffset = flush.baseOffsets[n]!;
    }
    this.#to += length;
    this.#nextOffset = flush.endOffsets[n]!;
    return true;
  }

  #close(): void {
    const flush = this.#flush;
    if (flush === undefined) return;
    this.#flush = undefined;
    const slice = flush.bytes.subarray(this.#from, this.#to);
    if (slice.length < JOIN_BELOW_BYTES) {
      if (this.#short.length > 0 && this.#shortPatched !== flush.patched) this.#joinShort();
      if (this.#short.length === 0) this.#shortBase = this.#baseOffset;
      this.#shortPatched = flush.patched;
      this.#short.push(slice);
      this.#shortBytes += slice.length;
      return;
    }
    this.#joinShort();
    const number = flush.slab?.number;
    if (number !== undefined && !this.#slabs.includes(number)) {
      this.#pool.retain(number);
      this.#slabs.push(number);
    }
    this.#runs.push({ baseOffset: this.#baseOffset, bytes: slice, patched: flush.patched });
  }

  #joinShort(): void {
    if (this.#short.length === 0) return;
    const bytes = Buffer.concat(this.#short, this.#shortBytes);
    this.#runs.push({ baseOffset: this.#shortBase, bytes, patched: this.#shortPatched });
    this.#short = [];
    this.#shortBytes = 0;
  }

  finish(): TailRead {
    this.#close();
    this.#joinShort();
    assert(this.#bytes === 0 || this.#nextOffset > 0, 'L4: a read that returns batches advances');
    return { runs: this.#runs, bytes: this.#bytes, slabs: this.#slabs };
  }
}

function toTail(input: TailFlush): FlushTail {
  const { batches, order, errorCodes, duplicates } = input;
  const kept = order.filter((n) => errorCodes[n] === 0 && duplicates[n] === 0);
  const count = kept.length;
  const flush: FlushTail = {
    slab: input.slab,
    bytes: input.slab.bytes,
    patched: input.patched,
    partitionIds: new Uint32Array(count),
    baseOffsets: new Float64Array(count),
    endOffsets: new Float64Array(count),
    slabOffsets: new Uint32Array(count),
    lengths: new Uint32Array(count),
  };
  for (let to = 0; to < count; to += 1) {
    const n = kept[to]!;
    flush.partitionIds[to] = batches.partitionIds[n]!;
    flush.baseOffsets[to] = input.baseOffsets[n]!;
    flush.endOffsets[to] = input.baseOffsets[n]! + batches.lastOffsetDeltas[n]! + 1;
    flush.slabOffsets[to] = batches.slabOffsets[n]!;
    flush.lengths[to] = batches.lengths[n]!;
  }
  return flush;
}

function toMarkers(index: PackedIndex): FlushTail {
  const { count, baseOffsets, partitionIds } = index;
  const bytes = new Uint8Array(count * CONTROL_BATCH_BYTES);
  const flush: FlushTail = {
    slab: undefined,
    bytes,
    patched: true,
    partitionIds,
    baseOffsets,
    endOffsets: new Float64Array(count),
    slabOffsets: new Uint32Array(count),
    lengths: new Uint32Array(count).fill(CONTROL_BATCH_BYTES),
  };
  for (let n = 0; n < count; n += 1) {
    const at = n * CONTROL_BATCH_BYTES;
    bytes.set(controlBatch(index.marker(n), baseOffsets[n]!), at);
    flush.endOffsets[n] = endOffset(index, n);
    flush.slabOffsets[n] = at;
  }
  return flush;
}

function startOffset({ flush, start }: Stretch): number {
  return flush.baseOffsets[start]!;
}

function lastOffset({ flush, end }: Stretch): number {
  return flush.endOffsets[end - 1]!;
}

/** The first stretch that ends above `offset`. */
function stretchOf(stretches: readonly Stretch[], offset: number): number {
  let low = 0;
  let high = stretches.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (lastOffset(stretches[middle]!) > offset) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The stretch that holds `offset`, `stretches.length` when none does. */
function from(stretches: readonly Stretch[], offset: number): number {
  const s = stretchOf(stretches, offset);
  return s < stretches.length && startOffset(stretches[s]!) <= offset ? s : stretches.length;
}

/** The first entry of `[start, end)` that ends above `offset`. */
function entryOf(flush: FlushTail, start: number, end: number, offset: number): number {
  let low = start;
  let high = end;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (flush.endOffsets[middle]! > offset) high = middle;
    else low = middle + 1;
  }
  return low;
}
