// The part of compaction by key that costs processor time, over a megabyte of stored bytes at a time: check every
// batch, note the keys of a range, keep what stays of a range. Plain data in, plain data out, so that it runs in a
// thread of its own in real life (range-cleaner-thread.ts) and in the caller's in tests and simulation.
// Not for: which ranges, in which order, and what becomes of the bytes (key-compactor.ts).
import { assert } from '../../base/assert.ts';
import type { AbortedTransaction } from '../../metadata/log.ts';
import type { Marker } from '../../metadata/packed-index.ts';
import {
  baseOffset,
  batchEnd,
  isControl,
  isTransactional,
  lastOffsetDelta,
  producerId,
  recordCount,
} from '../../protocol/record-batch.ts';
import { RecordCursor } from '../../protocol/record-cursor.ts';
import { BatchCleaner, type CleanRules } from './batch-cleaner.ts';
import { checkEntries } from './block-check.ts';
import { controlBatch } from './control-batch.ts';
import type { ObjectRef } from './entries.ts';
import { KeyMap } from './key-map.ts';
import { TransactionPass } from './transaction-pass.ts';

/** The end of a transaction, which lies in an index and has no bytes. */
export interface StoredMarker {
  readonly offset: number;
  readonly marker: Marker;
}

/** Bytes of an object that hold some entries of one partition whole, and the markers among them. */
export interface StoredRange {
  readonly object: ObjectRef;
  readonly partitionId: number;
  /** Of the first byte, within the object. */
  readonly position: number;
  /** In shared memory where another thread works on them. */
  readonly bytes: Uint8Array;
  readonly positions: Uint32Array;
  readonly lengths: Uint32Array;
  readonly blockPositions: Uint32Array;
  readonly baseOffsets: Float64Array;
  /** 1 where the batches of an entry say their own base offsets (EntryKind.PLACED). */
  readonly placed: Uint8Array;
  /** By offset. */
  readonly markers: readonly StoredMarker[];
}

export interface KeysRequest {
  readonly range: StoredRange;
  /** Keys of records from here on. */
  readonly fromOffset: number;
  /** And below this. */
  readonly endOffset: number;
}

export interface KeysReply {
  /** True when the map has room for no more keys: it knows all below `nextOffset`. */
  readonly full: boolean;
  readonly nextOffset: number;
  readonly keys: number;
}

export interface CleanRequest {
  readonly range: StoredRange;
  /** The keys of all records below it are in the map. */
  readonly mapEnd: number;
  readonly nowMs: number;
  readonly deleteRetentionMs: number;
  /** Batches that end at or below it are left out: the log starts there. */
  readonly logStart: number;
  /** The batch that ends here stays, if only as a header: offsets up to here can be read on from. */
  readonly keepEnd: number;
}

/** Batches that stay, end to end, at their places. Element n of each column is batch n. */
export interface CleanedRange {
  readonly bytes: Uint8Array;
  readonly count: number;
  readonly lengths: Uint32Array;
  readonly baseOffsets: Float64Array;
  readonly endOffsets: Float64Array;
  readonly records: Uint32Array;
  readonly maxTimestamps: Float64Array;
  /** True when anything but places was changed. */
  readonly changed: boolean;
  readonly tombstoneBytes: number;
  /** Offsets of markers of aborted transactions that are left out. */
  readonly goneAborts: readonly number[];
}

/** The same in this thread and in another. One map at a time. */
export interface RangeCleaner {
  /** Forgets all keys; the map may take `maxBytes`. */
  begin(seed: Uint8Array, maxBytes: number): Promise<void>;
  /** What follows goes through a partition in order of its offsets, over which these transactions were aborted. */
  pass(aborted: readonly AbortedTransaction[]): Promise<void>;
  addKeys(request: KeysRequest): Promise<KeysReply>;
  clean(request: CleanRequest): Promise<CleanedRange>;
  /** Lets go of the map's memory. */
  end(): Promise<void>;
  stop(): Promise<void>;
}

/** Does the work in the caller's thread. */
export class LocalRangeCleaner implements RangeCleaner {
  readonly #clusterTag: Uint8Array;
  readonly #maxDecompressedBytes: number;
  readonly #batches = new BatchCleaner();
  readonly #cursor = new RecordCursor();
  #keys: KeyMap | undefined;
  #pass = new TransactionPass([]);

  constructor(clusterTag: Uint8Array, maxDecompressedBytes: number) {
    this.#clusterTag = clusterTag;
    this.#maxDecompressedBytes = maxDecompressedBytes;
  }

  async begin(seed: Uint8Array, maxBytes: number): Promise<void> {
    this.#keys = new KeyMap(maxBytes, seed);
  }

  async pass(aborted: readonly AbortedTransaction[]): Promise<void> {
    this.#pass = new TransactionPass(aborted);
  }

  async end(): Promise<void> {
    this.#keys = undefined;
  }

  async stop(): Promise<void> {
    this.#keys = undefined;
  }

  async addKeys(request: KeysRequest): Promise<KeysReply> {
    this.#check(request.range);
    const keys = this.#map;
    let nextOffset = request.fromOffset;
    for (const batch of batchesOf(request.range)) {
      if (batch.baseOffset >= request.endOffset) break;
      if (batch.endOffset <= request.fromOffset) continue;
      if (isControl(batch.bytes, batch.at)) this.#isIdle(batch);
      else if (!this.#isAborted(batch)) {
        const refused = this.#addBatch(batch, request);
        if (refused !== -1) return { full: true, nextOffset: refused, keys: keys.size };
      }
      nextOffset = Math.min(batch.endOffset, request.endOffset);
    }
    return { full: false, nextOffset, keys: keys.size };
  }

  /** The offset of the first record that found no room, −1 when all did. */
  #addBatch(batch: StoredBatch, { fromOffset, endOffset }: KeysRequest): number {
    const cursor = this.#cursor;
    const { baseOffset: base } = batch;
    const maxDecompressedBytes = this.#maxDecompressedBytes;
    cursor.open(batch.bytes, batch.at, { baseOffset: base, maxDecompressedBytes });
    try {
      while (cursor.next()) {
        const { offset, keyLength } = cursor;
        if (keyLength < 0 || offset < fromOffset || offset >= endOffset) continue;
        if (!this.#map.put(cursor.bytes, cursor.keyStart, keyLength, offset)) return offset;
      }
      return -1;
    } finally {
      cursor.close();
    }
  }

  async clean(request: CleanRequest): Promise<CleanedRange> {
    const { range, mapEnd, nowMs, deleteRetentionMs, logStart, keepEnd } = request;
    this.#check(range);
    const rules = {
      keys: this.#map,
      mapEnd,
      nowMs,
      deleteRetentionMs,
      maxDecompressedBytes: this.#maxDecompressedBytes,
    };
    const sink = new Sink(range);
    for (const batch of batchesOf(range)) {
      if (batch.endOffset <= logStart) continue;
      const keepEmpty = batch.endOffset === keepEnd;
      if (isControl(batch.bytes, batch.at)) this.#cleanMarker(batch, { keepEmpty, rules, sink });
      else {
        // What lies past the map is left to a later round, aborted or not.
        const aborted = this.#isAborted(batch) && batch.baseOffset < mapEnd;
        sink.add(batch, this.#batches.clean({ ...batch, aborted, keepEmpty }, rules));
      }
    }
    return sink.finish();
  }

  #cleanMarker(
    batch: StoredBatch,
    how: { readonly keepEmpty: boolean; readonly rules: CleanRules; readonly sink: Sink },
  ): void {
    const { keepEmpty, rules, sink } = how;
    const idle = this.#isIdle(batch) && batch.baseOffset < rules.mapEnd;
    const kept = this.#batches.cleanMarker({ ...batch, idle, keepEmpty }, rules);
    if ((kept?.records ?? 0) === 0) sink.gone(batch.baseOffset);
    sink.add(batch, kept);
  }

  #isAborted({ bytes, at, baseOffset: base }: StoredBatch): boolean {
    // An empty header, which stands for offsets only, holds no marker back.
    if (!isTransactional(bytes, at) || recordCount(bytes, at) === 0) return false;
    return this.#pass.batch(producerId(bytes, at), base);
  }

  /** True when nothing is left that the marker could be about. */
  #isIdle({ bytes, at, baseOffset: base }: StoredBatch): boolean {
    if (recordCount(bytes, at) === 0) return true;
    this.#cursor.open(bytes, at);
    this.#cursor.next();
    const { bytes: records, keyStart } = this.#cursor;
    // The key: version and type (0 abort, 1 commit), each of 16 bits.
    const committed = records[keyStart + 3] === 1;
    this.#cursor.close();
    return this.#pass.marker(producerId(bytes, at), base, committed);
  }

  get #map(): KeyMap {
    assert(this.#keys !== undefined, 'a range is cleaned with a map');
    return this.#keys;
  }

  /** Damage must not spread: every header and every CRC. */
  #check(range: StoredRange): void {
    const { object, position, bytes, partitionId } = range;
    const columns = { ...range, offsetSpans: [], maxTimestamps: [], kinds: [] };
    const end = range.positions.length;
    const partitionOf = () => partitionId;
    const read = { object, position, bytes, clusterTag: this.#clusterTag };
    checkEntries(read, { columns, start: 0, end, partitionOf, deep: true });
  }
}

interface StoredBatch {
  readonly bytes: Uint8Array;
  readonly at: number;
  readonly end: number;
  readonly baseOffset: number;
  readonly endOffset: number;
}

/** Batches and markers by offset; a marker takes the form of its control batch. */
function* batchesOf(range: StoredRange): Generator<StoredBatch> {
  const { bytes, positions, lengths, baseOffsets, placed, position, markers } = range;
  let m = 0;
  for (let n = 0; n < positions.length; n += 1) {
    const limit = positions[n]! - position + lengths[n]!;
    let base = baseOffsets[n]!;
    for (; m < markers.length && markers[m]!.offset < base; m += 1) yield markerBatch(markers[m]!);
    for (let at = positions[n]! - position; at < limit; ) {
      const end = batchEnd(bytes, at);
      assert(end !== -1 && end <= limit, 'a checked entry holds whole batches');
      if (placed[n] === 1) base = baseOffset(bytes, at);
      const endOffset = base + lastOffsetDelta(bytes, at) + 1;
      yield { bytes, at, end, baseOffset: base, endOffset };
      base = endOffset;
      at = end;
    }
  }
  for (; m < markers.length; m += 1) yield markerBatch(markers[m]!);
}

function markerBatch({ offset, marker }: StoredMarker): StoredBatch {
  const bytes = controlBatch(marker, offset);
  return { bytes, at: 0, end: bytes.length, baseOffset: offset, endOffset: offset + 1 };
}

/** Collects what stays. Survivors never take more room than all batches of their range and a horizon for each. */
class Sink {
  #bytes: Uint8Array;
  #length = 0;
  readonly #lengths: number[] = [];
  readonly #baseOffsets: number[] = [];
  readonly #endOffsets: number[] = [];
  readonly #records: number[] = [];
  readonly #maxTimestamps: number[] = [];
  #changed = false;
  #tombstoneBytes = 0;
  readonly #goneAborts: number[] = [];

  constructor({ bytes }: StoredRange) {
    this.#bytes = new Uint8Array(bytes.length);
  }

  /** A marker goes. Which transactions it might have ended is not asked: most were committed and are in no list. */
  gone(offset: number): void {
    this.#goneAborts.push(offset);
  }

  add(batch: StoredBatch, kept: ReturnType<BatchCleaner['clean']>): void {
    if (kept === undefined) {
      this.#changed = true;
      return;
    }
    const { bytes } = kept;
    if (this.#length + bytes.length > this.#bytes.length) this.#grow(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
    this.#lengths.push(bytes.length);
    this.#baseOffsets.push(batch.baseOffset);
    this.#endOffsets.push(batch.endOffset);
    this.#records.push(kept.records);
    this.#maxTimestamps.push(kept.maxTimestamp);
    this.#changed ||= kept.changed;
    this.#tombstoneBytes += kept.tombstoneBytes;
  }

  #grow(bytes: number): void {
    const grown = new Uint8Array(Math.max(this.#length + bytes, this.#bytes.length * 2));
    grown.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = grown;
  }

  finish(): CleanedRange {
    return {
      bytes: this.#bytes.subarray(0, this.#length),
      count: this.#lengths.length,
      lengths: Uint32Array.from(this.#lengths),
      baseOffsets: Float64Array.from(this.#baseOffsets),
      endOffsets: Float64Array.from(this.#endOffsets),
      records: Uint32Array.from(this.#records),
      maxTimestamps: Float64Array.from(this.#maxTimestamps),
      changed: this.#changed,
      tombstoneBytes: this.#tombstoneBytes,
      goneAborts: this.#goneAborts,
    };
  }
}
