// What compaction by key keeps of one record batch. Pure but for its scratch memory, which is reused from batch to
// batch; no object per record. Rules as Kafka's log cleaner: a record stays while its offset is the newest of its key
// or lies past the offsets that the map covers; a tombstone goes once the batch's delete horizon has passed, which is
// set when the batch is first cleaned (KIP-534: base timestamp and attribute bit 6); records without keys go.
// Batches keep their base offset, last offset delta, codec and producer fields, so offsets keep their places.
// Not for: where batches come from and go to (range-cleaner.ts, key-compactor.ts).
import { FloeError } from '../../base/error.ts';
import { varintBytes, writeVarint } from '../../protocol/bytes.ts';
import { compress } from '../../protocol/codecs.ts';
import {
  Attribute,
  BATCH_HEADER_BYTES,
  type BatchHeader,
  batchBytes,
  NO_TIMESTAMP,
  patchBaseOffset,
  patchLeaderEpoch,
  readBatchHeader,
  writeBatchHeader,
} from '../../protocol/record-batch.ts';
import { RecordCursor } from '../../protocol/record-cursor.ts';
import type { KeyMap } from './key-map.ts';
import { LEADER_EPOCH } from './patch.ts';

/** What decides about records. */
export interface CleanRules {
  readonly keys: Pick<KeyMap, 'get'>;
  /** The map knows the keys of all records below it; those at or above it stay. */
  readonly mapEnd: number;
  /** The store's time. */
  readonly nowMs: number;
  /** Kafka's `delete.retention.ms`. */
  readonly deleteRetentionMs: number;
  readonly maxDecompressedBytes: number;
}

/** A batch that is kept, at its place: base offset and leader epoch are right in `bytes`. */
export interface KeptBatch {
  /** Valid until the next call. */
  readonly bytes: Uint8Array;
  readonly records: number;
  /** Largest record time, −1 without one. */
  readonly maxTimestamp: number;
  /** Bytes that go with the tombstones in it once the horizon has passed, about; 0: there are none. */
  readonly tombstoneBytes: number;
  /** False when nothing but its place was written into it. */
  readonly changed: boolean;
}

/** Where a batch is. */
export interface BatchPlace {
  readonly bytes: Uint8Array;
  readonly at: number;
  readonly baseOffset: number;
  /** The batch stays even if no record of it does, as a header that keeps its offsets reachable. */
  readonly keepEmpty: boolean;
}

/** A batch of records; `aborted`: its transaction was, none of its records stays. */
export type DataPlace = BatchPlace & { readonly aborted: boolean };

/** A control batch; `idle`: no record of its transaction is left. */
export type MarkerPlace = BatchPlace & { readonly idle: boolean };

const FIRST_RECORDS = 256;

/**
 * An idle marker stays at least this long, whatever `delete.retention.ms` says: readers of committed records that met
 * its transaction have ended long before.
 */
const MARKER_RETENTION_MS = 60_000;

export class BatchCleaner {
  readonly #cursor = new RecordCursor();
  /** Per kept record: first byte (its length prefix), end, time delta. */
  #starts = new Uint32Array(FIRST_RECORDS);
  #ends = new Uint32Array(FIRST_RECORDS);
  #deltas = new Float64Array(FIRST_RECORDS);
  #scratch = new Uint8Array(0);

  /** @returns undefined when nothing of the batch stays. @throws FloeError `corrupt` when its inside lies. */
  clean(place: DataPlace, rules: CleanRules): KeptBatch | undefined {
    const header = { ...readBatchHeader(place.bytes, place.at), baseOffset: place.baseOffset };
    try {
      return this.#clean(place, header, rules);
    } finally {
      this.#cursor.close();
    }
  }

  /**
   * A marker goes as tombstones do: a horizon is set when it is first met idle, and once that has passed it is left out.
   * @returns undefined then. Its horizon counts as that of a tombstone.
   */
  cleanMarker(place: MarkerPlace, rules: CleanRules): KeptBatch | undefined {
    const { bytes, at, idle, keepEmpty, baseOffset } = place;
    const header = { ...readBatchHeader(bytes, at), baseOffset };
    const hasHorizon = (header.attributes & Attribute.DELETE_HORIZON) !== 0;
    const goes = header.recordCount === 0 || (hasHorizon && header.baseTimestamp <= rules.nowMs);
    if (idle && goes) return keepEmpty ? this.#empty(place, header) : undefined;
    const kept = {
      records: header.recordCount,
      bytes: batchBytes(bytes, at),
      tombstoneBytes: idle ? batchBytes(bytes, at) : 0,
      maxTimestamp: header.maxTimestamp,
    };
    if (!idle || hasHorizon) return this.#whole(place, header, kept);
    try {
      const whole = { ...rules, mapEnd: Number.NEGATIVE_INFINITY };
      const retentionMs = Math.max(rules.deleteRetentionMs, MARKER_RETENTION_MS);
      const { bytes: recordBytes } = this.#choose(place, header, whole);
      return this.#rebuild(header, { ...kept, bytes: recordBytes }, rules.nowMs + retentionMs);
    } finally {
      this.#cursor.close();
    }
  }

  #clean(place: DataPlace, header: BatchHeader, rules: CleanRules): KeptBatch | undefined {
    const kept = place.aborted ? NOTHING : this.#choose(place, header, rules);
    if (kept.records === 0) return place.keepEmpty ? this.#empty(place, header) : undefined;
    const horizonDue =
      kept.tombstoneBytes > 0 && (header.attributes & Attribute.DELETE_HORIZON) === 0;
    if (kept.records === header.recordCount && !horizonDue) return this.#whole(place, header, kept);
    const horizonMs = horizonDue ? rules.nowMs + rules.deleteRetentionMs : undefined;
    return this.#rebuild(header, kept, horizonMs);
  }

  /** Notes which records stay. */
  #choose(place: BatchPlace, header: BatchHeader, rules: CleanRules): Kept {
    const cursor = this.#cursor;
    const { keys, mapEnd, nowMs, maxDecompressedBytes } = rules;
    const { baseOffset } = header;
    this.#reserve(header.recordCount);
    cursor.open(place.bytes, place.at, { baseOffset, maxDecompressedBytes });
    const hasHorizon = (header.attributes & Attribute.DELETE_HORIZON) !== 0;
    const tombstonesGo = hasHorizon && header.baseTimestamp <= nowMs;
    // The time of a tombstone begins when what it deletes goes: not while the map ends before it (KIP-534).
    const covered = baseOffset + header.lastOffsetDelta < mapEnd;
    let end = cursor.bytes === place.bytes ? place.at + BATCH_HEADER_BYTES : 0;
    let records = 0;
    let bytes = 0;
    let tombstoneBytes = 0;
    let maxDelta = Number.NEGATIVE_INFINITY;
    while (cursor.next()) {
      const start = end;
      end = cursor.recordEnd;
      const offset = baseOffset + cursor.offsetDelta;
      if (offset < mapEnd) {
        if (cursor.keyLength < 0) continue;
        if (offset < keys.get(cursor.bytes, cursor.keyStart, cursor.keyLength)) continue;
        if (cursor.valueLength < 0 && tombstonesGo) continue;
      }
      if (cursor.valueLength < 0 && covered) tombstoneBytes += end - start;
      this.#starts[records] = start;
      this.#ends[records] = end;
      this.#deltas[records] = cursor.timestampDelta;
      if (cursor.timestampDelta > maxDelta) maxDelta = cursor.timestampDelta;
      records += 1;
      bytes += end - start;
    }
    if (cursor.rest !== 0)
      throw new FloeError('corrupt', `${cursor.rest} bytes after the last record of a batch`);
    const logAppendTime = (header.attributes & Attribute.LOG_APPEND_TIME) !== 0;
    const maxTimestamp = logAppendTime ? header.maxTimestamp : header.baseTimestamp + maxDelta;
    return { records, bytes, tombstoneBytes, maxTimestamp };
  }

  #reserve(records: number): void {
    if (records <= this.#starts.length) return;
    // A count that lies is found out by the cursor; no batch holds more records than a sixth of its bytes.
    const size = Math.max(records, this.#starts.length * 2);
    this.#starts = new Uint32Array(size);
    this.#ends = new Uint32Array(size);
    this.#deltas = new Float64Array(size);
  }

  #whole({ bytes, at }: BatchPlace, header: BatchHeader, kept: Kept): KeptBatch {
    const length = batchBytes(bytes, at);
    const copy = this.#room(length);
    copy.set(bytes.subarray(at, at + length));
    patchBaseOffset(copy, 0, header.baseOffset);
    patchLeaderEpoch(copy, 0, LEADER_EPOCH);
    const { records, maxTimestamp, tombstoneBytes } = kept;
    return { bytes: copy, records, maxTimestamp, tombstoneBytes, changed: false };
  }

  /** A header without records, as Kafka writes it. */
  #empty({ bytes, at }: BatchPlace, header: BatchHeader): KeptBatch {
    const was = header.recordCount === 0 && batchBytes(bytes, at) === BATCH_HEADER_BYTES;
    const empty = this.#room(BATCH_HEADER_BYTES);
    writeBatchHeader(empty, {
      ...header,
      leaderEpoch: LEADER_EPOCH,
      attributes: header.attributes & ~(Attribute.COMPRESSION | Attribute.DELETE_HORIZON),
      baseTimestamp: header.maxTimestamp,
      recordCount: 0,
    });
    const maxTimestamp = NO_TIMESTAMP;
    return { bytes: empty, records: 0, maxTimestamp, tombstoneBytes: 0, changed: !was };
  }

  #rebuild(header: BatchHeader, kept: Kept, horizonMs: number | undefined): KeptBatch {
    const baseTimestamp = horizonMs ?? header.baseTimestamp;
    const shift = header.baseTimestamp - baseTimestamp;
    // A time delta grows by nine bytes at most, and with it the length in front of the record by one.
    const room = BATCH_HEADER_BYTES + kept.bytes + (shift === 0 ? 0 : kept.records * 11);
    const to = this.#room(room);
    const end = shift === 0 ? this.#copyRecords(to, kept) : this.#moveRecords(to, kept, shift);
    const type = header.attributes & Attribute.COMPRESSION;
    const bytes = type === 0 ? to.subarray(0, end) : compressed(type, to.subarray(0, end));
    writeBatchHeader(bytes, {
      ...header,
      leaderEpoch: LEADER_EPOCH,
      attributes: header.attributes | (horizonMs === undefined ? 0 : Attribute.DELETE_HORIZON),
      baseTimestamp,
      maxTimestamp: kept.maxTimestamp,
      recordCount: kept.records,
    });
    const { records, maxTimestamp, tombstoneBytes } = kept;
    return { bytes, records, maxTimestamp, tombstoneBytes, changed: true };
  }

  /** Records as they are, stretches of neighbours at once. */
  #copyRecords(to: Uint8Array, { records }: Kept): number {
    const from = this.#cursor.bytes;
    let at = BATCH_HEADER_BYTES;
    for (let n = 0; n < records; ) {
      const start = this.#starts[n]!;
      let end = this.#ends[n]!;
      for (n += 1; n < records && this.#starts[n] === end; n += 1) end = this.#ends[n]!;
      to.set(from.subarray(start, end), at);
      at += end - start;
    }
    return at;
  }

  /** Records with their time deltas raised by `shift`: the batch has another base timestamp. */
  #moveRecords(to: Uint8Array, { records }: Kept, shift: number): number {
    const from = this.#cursor.bytes;
    let at = BATCH_HEADER_BYTES;
    for (let n = 0; n < records; n += 1) {
      const end = this.#ends[n]!;
      const attributesAt = afterVarint(from, this.#starts[n]!);
      const restAt = afterVarint(from, attributesAt + 1);
      const delta = this.#deltas[n]! + shift;
      at = writeVarint(to, at, 1 + varintBytes(delta) + end - restAt);
      to[at] = from[attributesAt]!;
      at = writeVarint(to, at + 1, delta);
      to.set(from.subarray(restAt, end), at);
      at += end - restAt;
    }
    return at;
  }

  #room(bytes: number): Uint8Array {
    if (this.#scratch.length < bytes)
      this.#scratch = new Uint8Array(Math.max(bytes, this.#scratch.length * 2));
    return this.#scratch.subarray(0, bytes);
  }
}

/** What stays of a batch. */
interface Kept {
  readonly records: number;
  /** Of the records, uncompressed. */
  readonly bytes: number;
  readonly tombstoneBytes: number;
  readonly maxTimestamp: number;
}

const NOTHING: Kept = { records: 0, bytes: 0, tombstoneBytes: 0, maxTimestamp: NO_TIMESTAMP };

function afterVarint(bytes: Uint8Array, at: number): number {
  while (bytes[at]! >= 0x80) at += 1;
  return at + 1;
}

/** The records of an uncompressed batch, compressed, with room for the header before them. */
function compressed(type: number, batch: Uint8Array): Uint8Array {
  const records = compress(type, batch.subarray(BATCH_HEADER_BYTES));
  const bytes = new Uint8Array(BATCH_HEADER_BYTES + records.length);
  bytes.set(records, BATCH_HEADER_BYTES);
  return bytes;
}
