// Which bytes a read loads. Where a partition lies together, or alone is wanted, the ranges of its own entries (plan.ts).
// Where partitions lie mixed in a file and most of them are being read, whole aligned stretches of the file: each read
// call then serves all of them. The first reader of a partition of a thousand must not read the other 999.
// Not for: what happens with the bytes (reader.ts), how long they stay (block-cache.ts).

import { isMarker } from '../../metadata/packed-index.ts';
import type { Block, BlockCache, LoadReason } from './block-cache.ts';
import type { ByteSource, ReadPurpose } from './byte-source.ts';
import {
  type EntryColumns,
  entryEndByte,
  entryStartByte,
  type Segment,
  withBytes,
} from './entries.ts';
import { entriesFor, growRange, type PlanLimits } from './plan.ts';

/** Entries `[start, end)` of a segment, in one pinned block; without one when all of them are markers. */
export interface Piece {
  readonly segment: Segment;
  readonly start: number;
  readonly end: number;
  readonly block: Block | undefined;
}

export interface LoadRequest {
  readonly partitionId: number;
  readonly purpose: ReadPurpose;
  /** Bytes of batches that the read may still return. */
  readonly maxBytes: number;
  readonly why: LoadReason;
  /** Entries that begin at or above it aren't needed. */
  readonly endOffset: number;
}

const MIN_RANGE_BYTES = 256 * 1024;
/** Entries this long are worth a read call of their own; stretches would be read again by partitions that lag. */
const LONG_BYTES = 128 * 1024;
/** Whole stretches are loaded once the partitions being read make up this share of the bytes. */
const DENSE_SHARE = 0.5;
/** From this share on a partition lies together: its own range is as good, and cuts no entry in two. */
const ALONE_SHARE = 0.9;
/** Entries that tell how dense a partition lies. */
const MAX_SAMPLED = 64;
/** Loads after which it is asked anew who reads an object. */
const READERS_EPOCH = 2_000;
/** Objects whose readers are remembered. */
const MAX_OBJECTS = 1_024;
const MAX_PARTITIONS = 10_000;

/** Partitions that load from an object. */
interface ObjectReaders {
  readonly now: Set<number>;
  /** How many did in the epoch before, or from the object before. */
  readonly before: number;
  /** Count of loads when the epoch began. */
  readonly since: number;
}

export class BlockLoader {
  readonly #cache: BlockCache;
  readonly #source: ByteSource;
  readonly #limits: PlanLimits;
  readonly #minRange: number;
  readonly #readers = new Map<number, ObjectReaders>();
  /** Where a partition was last read: who reads there will come along to the next object. */
  readonly #lastObject = new Map<number, number>();
  #loads = 0;

  constructor(cache: BlockCache, source: ByteSource, limits: PlanLimits) {
    this.#cache = cache;
    this.#source = source;
    this.#limits = limits;
    this.#minRange = limits.minRange ?? MIN_RANGE_BYTES;
  }

  get cache(): BlockCache {
    return this.#cache;
  }

  /** The entries from `n` on that one block holds, which is loaded if need be; undefined when memory is short. */
  piece(request: LoadRequest, segment: Segment, n: number): Piece | undefined {
    const { columns, object } = segment;
    const first = withBytes(columns, n, segment.end);
    if (first === segment.end || columns.baseOffsets[first]! >= request.endOffset)
      return first === n ? undefined : { segment, start: n, end: first, block: undefined };
    const from = entryStartByte(columns, first);
    const to = entryEndByte(columns, first);
    const block =
      this.#cache.find(object.objectId, from, to) ?? this.#load(request, segment, first);
    return block && { segment, start: n, end: coveredEnd(segment, first, block), block };
  }

  #load(request: Omit<LoadRequest, 'endOffset'>, segment: Segment, n: number): Block | undefined {
    const { object } = segment;
    const range =
      this.#stretch(request.partitionId, segment, n) ?? this.#range(request, segment, n);
    const alignment = this.#source.alignment ?? 1;
    const position = Math.floor(range.position / alignment) * alignment;
    const length = range.position + range.length - position;
    const { purpose, why } = request;
    return this.#cache.load(
      { objectId: object.objectId, position, length },
      (room) => {
        const into = alignment === 1 ? room.subarray(0, length) : room;
        return this.#source.read(object, [{ position, into, need: length }], { purpose });
      },
      why,
    );
  }

  #range({ maxBytes }: Pick<LoadRequest, 'maxBytes'>, { columns, end }: Segment, n: number) {
    const { maxGap, maxRange, restShare = 0 } = this.#limits;
    if (restShare > 0) {
      const rest = growRange(columns, [n, end], { maxGap, maxRange: maxRange * (1 + restShare) });
      if (rest.end === end) return rest;
    }
    const wanted = entriesFor(columns, [n, end], Math.max(maxBytes, this.#minRange));
    return growRange(columns, [n, wanted.end], this.#limits);
  }

  /** The aligned stretch around entry `n`, if most of it is being read; undefined otherwise. */
  #stretch(partitionId: number, { object, columns, end: entriesEnd }: Segment, n: number) {
    if (entryEndByte(columns, n) - entryStartByte(columns, n) >= LONG_BYTES) return undefined;
    let end = entriesEnd;
    while (isMarker(columns.kinds[end - 1]!)) end -= 1;
    const readers = this.#noteReader(object.objectId, partitionId);
    const size = this.#limits.maxRange;
    const share = shareAfter(columns, [n, end], size);
    if (readers < 2 || share >= ALONE_SHARE || readers * share < DENSE_SHARE) return undefined;
    const position = Math.floor(entryStartByte(columns, n) / size) * size;
    // An entry that reaches over the border of two stretches is read alone.
    if (entryEndByte(columns, n) > position + size)
      return growRange(columns, [n, n + 1], this.#limits);
    // What lies beyond the partition's last known entry may not be written yet.
    return { position, length: Math.min(size, entryEndByte(columns, end - 1) - position) };
  }

  /** Notes that the partition loads from the object; returns how many partitions do. */
  #noteReader(objectId: number, partitionId: number): number {
    this.#loads += 1;
    let readers = this.#readers.get(objectId);
    if (readers === undefined || this.#loads - readers.since >= READERS_EPOCH) {
      const before = readers ?? this.#readers.get(this.#lastObject.get(partitionId) ?? -1);
      readers = { now: new Set(), before: before?.now.size ?? 0, since: this.#loads };
      this.#readers.set(objectId, readers);
      if (this.#readers.size > MAX_OBJECTS)
        this.#readers.delete(this.#readers.keys().next().value!);
    }
    readers.now.add(partitionId);
    this.#lastObject.delete(partitionId);
    this.#lastObject.set(partitionId, objectId);
    if (this.#lastObject.size > MAX_PARTITIONS)
      this.#lastObject.delete(this.#lastObject.keys().next().value!);
    return Math.max(readers.now.size, readers.before);
  }

  forget(objectId: number): void {
    this.#readers.delete(objectId);
    this.#cache.forget(objectId);
  }

  /** Notes that a read has used these to their end. */
  spent(pieces: readonly Piece[]): void {
    for (const { block } of pieces) if (block !== undefined) this.#cache.spent(block);
  }

  release(pieces: readonly Piece[]): void {
    for (const { block } of pieces) if (block !== undefined) this.#cache.unpin(block);
  }

  /**
   * Loads what comes next, up to `distance` bytes of blocks, as soon as a whole read call is missing.
   * Takes only memory that nobody holds, and pins nothing.
   */
  ahead(
    request: Omit<LoadRequest, 'why' | 'maxBytes' | 'endOffset'>,
    next: Iterable<readonly [segment: Segment, n: number]>,
    { from, distance }: { readonly from: number; readonly distance: number },
  ): void {
    let ahead = 0;
    // Of the block that the reader is in, only what is left counts.
    let read = from;
    let block: Block | undefined;
    for (const [segment, n] of next) {
      const { columns, object } = segment;
      if (isMarker(columns.kinds[n]!)) continue;
      if (block !== undefined && covers(block, object.objectId, columns, n)) continue;
      block = this.#cache.peek(
        object.objectId,
        entryStartByte(columns, n),
        entryEndByte(columns, n),
      );
      if (block === undefined) {
        if (distance - ahead < this.#minRange) return;
        block = this.#load({ ...request, why: 'ahead', maxBytes: distance - ahead }, segment, n);
        if (block === undefined) return;
        this.#cache.unpin(block);
      }
      ahead += block.length - Math.min(Math.max(read - block.position, 0), block.length);
      read = 0;
      if (ahead >= distance) return;
    }
  }
}

function covers(block: Block, objectId: number, columns: EntryColumns, n: number): boolean {
  return (
    block.objectId === objectId &&
    entryStartByte(columns, n) >= block.position &&
    entryEndByte(columns, n) <= block.position + block.length
  );
}

/** The partition's share of the next `window` bytes of its object, 0 when too little is known. */
function shareAfter(
  columns: EntryColumns,
  [n, end]: readonly [number, number],
  window: number,
): number {
  const start = entryStartByte(columns, n);
  let bytes = 0;
  let m = n;
  while (m < end - 1 && m - n < MAX_SAMPLED && entryStartByte(columns, m) < start + window) {
    bytes += columns.lengths[m]!;
    m = withBytes(columns, m + 1, end);
  }
  return m === n ? 0 : bytes / (entryStartByte(columns, m) - start);
}

/** The end of the entries from `n` on that lie whole in a block. */
function coveredEnd({ object, columns, end }: Segment, n: number, block: Block): number {
  let to = n + 1;
  while (to < end && (isMarker(columns.kinds[to]!) || covers(block, object.objectId, columns, to)))
    to += 1;
  return to;
}
