// Where the newest batches lie: the entries of flushes whose objects aren't sealed, in memory, by partition.
// Fed at each commit and loaded at start; a look-up is a binary search. Entries of sealed and compacted objects are
// looked up in the metadata store and the objects' own indexes (object-entries.ts).
// Columns per partition in growing typed arrays: adding a flush on the produce path makes no objects.
import { assert } from '../../base/assert.ts';
import { isMarker, type Marker, type PackedIndex } from '../../metadata/packed-index.ts';
import { type EntryColumns, entryAt, entryEnd, type ObjectRef, type Segment } from './entries.ts';

/** Bytes of one entry over all columns. */
export const CACHED_ENTRY_BYTES = 4 * 8 + 4 * 4 + 1;
const FIRST_CAPACITY = 8;

/** What a commit adds. */
export interface CommittedEntries {
  readonly object: ObjectRef;
  readonly commitNumber: number;
  readonly index: PackedIndex;
}

/** The entries of one partition, oldest first; `[first, count)` are in use. */
class PartitionEntries implements EntryColumns {
  baseOffsets = new Float64Array(FIRST_CAPACITY);
  maxTimestamps = new Float64Array(FIRST_CAPACITY);
  objectIds = new Float64Array(FIRST_CAPACITY);
  commitNumbers = new Float64Array(FIRST_CAPACITY);
  offsetSpans = new Uint32Array(FIRST_CAPACITY);
  positions = new Uint32Array(FIRST_CAPACITY);
  lengths = new Uint32Array(FIRST_CAPACITY);
  blockPositions = new Uint32Array(FIRST_CAPACITY);
  kinds = new Uint8Array(FIRST_CAPACITY);
  /** By entry; undefined until the first marker comes. */
  markers: (Marker | undefined)[] | undefined;
  first = 0;
  count = 0;

  add({ object, commitNumber, index }: CommittedEntries, n: number): void {
    if (this.count === this.baseOffsets.length) this.#grow();
    const to = this.count;
    assert(
      to === this.first || entryEnd(this, to - 1) <= index.baseOffsets[n]!,
      'L2: entries of a partition ascend',
    );
    this.baseOffsets[to] = index.baseOffsets[n]!;
    this.maxTimestamps[to] = index.maxTimestamps[n]!;
    this.objectIds[to] = object.objectId;
    this.commitNumbers[to] = commitNumber;
    this.offsetSpans[to] = index.offsetSpans[n]!;
    this.positions[to] = index.positions[n]!;
    this.lengths[to] = index.lengths[n]!;
    this.blockPositions[to] = index.blockPositions[n]!;
    this.kinds[to] = index.kinds[n]!;
    if (isMarker(index.kinds[n]!)) {
      this.markers ??= [];
      this.markers[to] = index.marker(n);
    }
    this.count += 1;
  }

  /** Offset after the last entry; undefined when there is none. */
  get end(): number | undefined {
    return this.count === this.first ? undefined : entryEnd(this, this.count - 1);
  }

  /** Twice what is in use; the arrays that segments point into are left as they are. */
  #grow(): void {
    const used = this.count - this.first;
    const capacity = Math.max(FIRST_CAPACITY, used * 2);
    const move = <T extends Float64Array | Uint32Array | Uint8Array>(from: T, to: T): T => {
      to.set(from.subarray(this.first, this.count));
      return to;
    };
    this.baseOffsets = move(this.baseOffsets, new Float64Array(capacity));
    this.maxTimestamps = move(this.maxTimestamps, new Float64Array(capacity));
    this.objectIds = move(this.objectIds, new Float64Array(capacity));
    this.commitNumbers = move(this.commitNumbers, new Float64Array(capacity));
    this.offsetSpans = move(this.offsetSpans, new Uint32Array(capacity));
    this.positions = move(this.positions, new Uint32Array(capacity));
    this.lengths = move(this.lengths, new Uint32Array(capacity));
    this.blockPositions = move(this.blockPositions, new Uint32Array(capacity));
    this.kinds = move(this.kinds, new Uint8Array(capacity));
    this.markers = this.markers?.slice(this.first, this.count);
    this.first = 0;
    this.count = used;
  }

  /** The columns as they are now: growing later replaces arrays, it never changes entries. */
  columns(): EntryColumns {
    const { baseOffsets, maxTimestamps, offsetSpans, positions, lengths, blockPositions, kinds } =
      this;
    const { markers } = this;
    const marker = (n: number) => markers![n]!;
    return {
      baseOffsets,
      maxTimestamps,
      offsetSpans,
      positions,
      lengths,
      blockPositions,
      kinds,
      marker,
    };
  }

  marker(n: number): Marker {
    return this.markers![n]!;
  }
}

/** An object that entries here point at. */
interface KnownObject {
  readonly ref: ObjectRef;
  /** Entries here that lie in it. */
  entries: number;
  /** Its entries are in the metadata store too: ours go as soon as they are the oldest of their partition. */
  sealed: boolean;
}

export class IndexCache {
  readonly #maxEntries: number;
  readonly #partitions = new Map<number, PartitionEntries>();
  readonly #objects = new Map<number, KnownObject>();
  /** Objects of which entries had to go before they were sealed. */
  readonly #lost = new Set<number>();
  #entries = 0;

  /** Above `maxBytes` the oldest entries go; they are then read from the metadata store. */
  constructor(maxBytes: number) {
    this.#maxEntries = Math.floor(maxBytes / CACHED_ENTRY_BYTES);
  }

  get entryCount(): number {
    return this.#entries;
  }

  /** True while entries that had no room here are in no other index than the flush rows. */
  get incomplete(): boolean {
    return this.#lost.size > 0;
  }

  /** Adds a committed flush; flushes come in commit order. */
  add(flush: CommittedEntries): void {
    const { object, index } = flush;
    const known = this.#object(object);
    for (let n = 0; n < index.count; n += 1) {
      const partitionId = index.partitionIds[n]!;
      let entries = this.#partitions.get(partitionId);
      if (entries === undefined) {
        entries = new PartitionEntries();
        this.#partitions.set(partitionId, entries);
      }
      // Something between was sealed before it came here: what lies before it is read from the metadata store.
      if ((entries.end ?? Infinity) < index.baseOffsets[n]!) this.#lose(entries);
      entries.add(flush, n);
      known.entries += 1;
      this.#entries += 1;
    }
    if (this.#entries > this.#maxEntries) this.#shrink();
  }

  #object(ref: ObjectRef): KnownObject {
    let known = this.#objects.get(ref.objectId);
    if (known === undefined) {
      known = { ref, entries: 0, sealed: false };
      this.#objects.set(ref.objectId, known);
    }
    return known;
  }

  /** First offset whose entry is here; Infinity when there is none. */
  firstOffset(partitionId: number): number {
    const entries = this.#partitions.get(partitionId);
    if (entries === undefined || entries.first === entries.count) return Infinity;
    return entries.baseOffsets[entries.first]!;
  }

  /**
   * The entries from the one that holds `offset` on, cut by object, at most `maxSegments`.
   * Undefined when older entries than those here are needed.
   */
  segments(partitionId: number, offset: number, maxSegments: number): Segment[] | undefined {
    const entries = this.#partitions.get(partitionId);
    if (entries === undefined || offset < this.firstOffset(partitionId)) return undefined;
    return this.#cut(
      entries,
      entryAt(entries, [entries.first, entries.count], offset),
      maxSegments,
    );
  }

  /** Calls back for each entry from the one that holds `offset` on, with its first offset and its commit's number. */
  eachCommit(
    partitionId: number,
    offset: number,
    visit: (offset: number, commitNumber: number) => void,
  ): void {
    const entries = this.#partitions.get(partitionId);
    if (entries === undefined) return;
    const from = entryAt(entries, [entries.first, entries.count], offset);
    for (let n = from; n < entries.count; n += 1)
      visit(entries.baseOffsets[n]!, entries.commitNumbers[n]!);
  }

  /** Offset of the first entry here whose running maximum timestamp is at least `timestampMs`. */
  firstReaching(partitionId: number, timestampMs: number): number | undefined {
    const entries = this.#partitions.get(partitionId);
    if (entries === undefined) return undefined;
    let [n, high] = [entries.first, entries.count];
    while (n < high) {
      const middle = (n + high) >>> 1;
      if (entries.maxTimestamps[middle]! >= timestampMs) high = middle;
      else n = middle + 1;
    }
    return n === entries.count ? undefined : entries.baseOffsets[n]!;
  }

  #cut(entries: PartitionEntries, from: number, maxSegments: number): Segment[] {
    const columns = entries.columns();
    const segments: Segment[] = [];
    for (let n = from; n < entries.count && segments.length < maxSegments; ) {
      const objectId = entries.objectIds[n]!;
      let end = n + 1;
      while (end < entries.count && entries.objectIds[end] === objectId) end += 1;
      segments.push({ object: this.#objects.get(objectId)!.ref, columns, start: n, end });
      n = end;
    }
    return segments;
  }

  /** Objects whose entries are nowhere but here and in flush rows, as far as was told. */
  openObjects(): readonly number[] {
    const open = [...this.#objects].filter(([, { sealed }]) => !sealed);
    return [...open.map(([objectId]) => objectId), ...this.#lost];
  }

  /** The objects' entries are in the metadata store now, one per partition (sealed or compacted). */
  sealed(objectIds: readonly number[]): void {
    const found: KnownObject[] = [];
    for (const objectId of objectIds) {
      this.#lost.delete(objectId);
      const known = this.#objects.get(objectId);
      if (known === undefined) continue;
      known.sealed = true;
      found.push(known);
    }
    if (found.length === 0) return;
    for (const entries of this.#partitions.values()) {
      // Only from the front: what is kept must reach to the end without a hole.
      while (entries.first < entries.count && this.#isSealed(entries.objectIds[entries.first]!))
        this.#dropFirst(entries);
    }
    for (const { ref, entries } of found) if (entries === 0) this.#objects.delete(ref.objectId);
  }

  #isSealed(objectId: number): boolean {
    return this.#objects.get(objectId)!.sealed;
  }

  /** Ends a deleted partition. */
  removePartition(partitionId: number): void {
    const entries = this.#partitions.get(partitionId);
    if (entries === undefined) return;
    while (entries.first < entries.count) this.#dropFirst(entries);
    this.#partitions.delete(partitionId);
  }

  /** Gives up all entries of a partition before they were sealed. */
  #lose(entries: PartitionEntries): void {
    while (entries.first < entries.count) {
      const objectId = entries.objectIds[entries.first]!;
      if (!this.#isSealed(objectId)) this.#lost.add(objectId);
      this.#dropFirst(entries);
    }
  }

  #dropFirst(entries: PartitionEntries): void {
    const objectId = entries.objectIds[entries.first]!;
    const known = this.#objects.get(objectId)!;
    known.entries -= 1;
    if (known.entries === 0 && known.sealed) this.#objects.delete(objectId);
    entries.first += 1;
    this.#entries -= 1;
  }

  /** Drops the oldest quarter of every partition: seldom, so its cost spreads over many commits. */
  #shrink(): void {
    for (const entries of this.#partitions.values()) {
      for (let drop = Math.ceil((entries.count - entries.first) / 4); drop > 0; drop -= 1) {
        const objectId = entries.objectIds[entries.first]!;
        if (!this.#isSealed(objectId)) this.#lost.add(objectId);
        this.#dropFirst(entries);
      }
    }
  }
}
