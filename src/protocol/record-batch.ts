// The header of a record batch (magic 2), read and patched in place: functions over bytes and the position of a
// batch in them, so that looking through a run of batches makes no objects. Records: record-cursor.ts.
//
//   0 base offset i64    8 length i32 (of what follows)   12 leader epoch i32   16 magic i8   17 CRC32C u32
//  21 attributes i16    23 last offset delta i32          27 base timestamp i64  35 max timestamp i64
//  43 producer id i64   51 producer epoch i16             53 base sequence i32   57 record count i32   61 records
//
// The CRC covers everything from the attributes on: base offset and leader epoch may change freely.
import { crc32c } from '@node-rs/crc32';
import {
  readInt16,
  readInt32,
  readInt64,
  readUint32,
  writeInt16,
  writeInt32,
  writeInt64,
} from './bytes.ts';

/** Bytes of a batch header; the records follow. */
export const BATCH_HEADER_BYTES = 61;
/** Bytes before those that the length field counts. */
export const BATCH_PREFIX_BYTES = 12;
/** The only format that is written or served. */
export const MAGIC = 2;
/** Time of a record without one. */
export const NO_TIMESTAMP = -1;
/** Producer id and sequence of a batch without idempotence. */
export const NO_PRODUCER_ID = -1;
export const NO_SEQUENCE = -1;

const LENGTH_AT = 8;
const LEADER_EPOCH_AT = 12;
const MAGIC_AT = 16;
const CRC_AT = 17;
const ATTRIBUTES_AT = 21;
const LAST_OFFSET_DELTA_AT = 23;
const BASE_TIMESTAMP_AT = 27;
const MAX_TIMESTAMP_AT = 35;
const PRODUCER_ID_AT = 43;
const PRODUCER_EPOCH_AT = 51;
const BASE_SEQUENCE_AT = 53;
const RECORD_COUNT_AT = 57;

/** Bits of the attributes. */
export const Attribute = {
  COMPRESSION: 0x07,
  LOG_APPEND_TIME: 0x08,
  TRANSACTIONAL: 0x10,
  CONTROL: 0x20,
  /** KIP-534: the base timestamp is the time after which tombstones may go. */
  DELETE_HORIZON: 0x40,
} as const;

/** Offset of the first record, as far as the header knows it. */
export const baseOffset = (bytes: Uint8Array, at = 0) => readInt64(bytes, at);
/** Leader epoch, −1 as clients send it. */
export const leaderEpoch = (bytes: Uint8Array, at = 0) => readInt32(bytes, at + LEADER_EPOCH_AT);
/** Format of the batch: 2, or the old 0 and 1. */
export const magic = (bytes: Uint8Array, at = 0) => bytes[at + MAGIC_AT]!;
/** CRC32C as written, unsigned. */
export const storedCrc = (bytes: Uint8Array, at = 0) => readUint32(bytes, at + CRC_AT);
/** See {@link Attribute}. */
export const attributes = (bytes: Uint8Array, at = 0) => readInt16(bytes, at + ATTRIBUTES_AT);
/** The batch takes this many offsets, and one more. */
export const lastOffsetDelta = (bytes: Uint8Array, at = 0) =>
  readInt32(bytes, at + LAST_OFFSET_DELTA_AT);
/** What the records’ time deltas start from, in milliseconds. */
export const baseTimestamp = (bytes: Uint8Array, at = 0) =>
  readInt64(bytes, at + BASE_TIMESTAMP_AT);
/** Largest record time; with LogAppendTime the time of all records. −1 for none. */
export const maxTimestamp = (bytes: Uint8Array, at = 0) => readInt64(bytes, at + MAX_TIMESTAMP_AT);
/** −1 without idempotence. */
export const producerId = (bytes: Uint8Array, at = 0) => readInt64(bytes, at + PRODUCER_ID_AT);
/** Epoch of the producer id. */
export const producerEpoch = (bytes: Uint8Array, at = 0) =>
  readInt16(bytes, at + PRODUCER_EPOCH_AT);
/** Sequence of the first record, −1 without idempotence. */
export const baseSequence = (bytes: Uint8Array, at = 0) => readInt32(bytes, at + BASE_SEQUENCE_AT);
/** Records in the batch: fewer than its offsets after compaction. */
export const recordCount = (bytes: Uint8Array, at = 0) => readInt32(bytes, at + RECORD_COUNT_AT);
/** Number of the codec (codecs.ts). */
export const compressionType = (bytes: Uint8Array, at = 0) =>
  attributes(bytes, at) & Attribute.COMPRESSION;
/** Whether the batch belongs to a transaction. */
export const isTransactional = (bytes: Uint8Array, at = 0) =>
  (attributes(bytes, at) & Attribute.TRANSACTIONAL) !== 0;
/** Whether its records are markers, not data. */
export const isControl = (bytes: Uint8Array, at = 0) =>
  (attributes(bytes, at) & Attribute.CONTROL) !== 0;

/** Whole length of the batch at `at`, its first byte to its last record's; needs its first 12 bytes. */
export const batchBytes = (bytes: Uint8Array, at = 0) =>
  readInt32(bytes, at + LENGTH_AT) + BATCH_PREFIX_BYTES;

/**
 * Position after the batch at `at`, or −1 when `bytes` doesn't hold it whole (or a lie about its length):
 * `for (let at = 0, end; (end = batchEnd(bytes, at)) !== -1; at = end)`.
 */
export function batchEnd(bytes: Uint8Array, at: number): number {
  if (bytes.length - at < BATCH_HEADER_BYTES) return -1;
  const length = batchBytes(bytes, at);
  if (length < BATCH_HEADER_BYTES || length > bytes.length - at) return -1;
  return at + length;
}

/** Whether the bytes of the batch are those that its CRC was made of. */
export function crcMatches(bytes: Uint8Array, at = 0): boolean {
  return computeCrc(bytes, at) === storedCrc(bytes, at);
}

/** Says where the batch stands in its partition. Outside the CRC: nothing else changes. */
export function patchBaseOffset(bytes: Uint8Array, at: number, offset: number): void {
  writeInt64(bytes, at, offset);
}

/** As {@link patchBaseOffset}, for the leader epoch. */
export function patchLeaderEpoch(bytes: Uint8Array, at: number, epoch: number): void {
  writeInt32(bytes, at + LEADER_EPOCH_AT, epoch);
}

/** Corrects the largest timestamp, and the CRC. */
export function patchMaxTimestamp(bytes: Uint8Array, at: number, timestampMs: number): void {
  writeInt64(bytes, at + MAX_TIMESTAMP_AT, timestampMs);
  patchCrc(bytes, at);
}

/** Makes `timestampMs` the time of all records (`message.timestamp.type=LogAppendTime`), and corrects the CRC. */
export function patchLogAppendTime(bytes: Uint8Array, at: number, timestampMs: number): void {
  writeInt16(bytes, at + ATTRIBUTES_AT, attributes(bytes, at) | Attribute.LOG_APPEND_TIME);
  patchMaxTimestamp(bytes, at, timestampMs);
}

/** Everything of a header at once, for tests, tools and the builder. */
export interface BatchHeader {
  readonly baseOffset: number;
  readonly leaderEpoch: number;
  readonly attributes: number;
  readonly lastOffsetDelta: number;
  readonly baseTimestamp: number;
  readonly maxTimestamp: number;
  readonly producerId: number;
  readonly producerEpoch: number;
  readonly baseSequence: number;
  readonly recordCount: number;
}

/** Reads all fields of the batch at `at`. */
export function readBatchHeader(bytes: Uint8Array, at = 0): BatchHeader {
  return {
    baseOffset: baseOffset(bytes, at),
    leaderEpoch: leaderEpoch(bytes, at),
    attributes: attributes(bytes, at),
    lastOffsetDelta: lastOffsetDelta(bytes, at),
    baseTimestamp: baseTimestamp(bytes, at),
    maxTimestamp: maxTimestamp(bytes, at),
    producerId: producerId(bytes, at),
    producerEpoch: producerEpoch(bytes, at),
    baseSequence: baseSequence(bytes, at),
    recordCount: recordCount(bytes, at),
  };
}

/** Writes length, magic, `header` and CRC in front of the records that fill `bytes` from {@link BATCH_HEADER_BYTES} on. */
export function writeBatchHeader(bytes: Uint8Array, header: BatchHeader): void {
  writeInt64(bytes, 0, header.baseOffset);
  writeInt32(bytes, LENGTH_AT, bytes.length - BATCH_PREFIX_BYTES);
  writeInt32(bytes, LEADER_EPOCH_AT, header.leaderEpoch);
  bytes[MAGIC_AT] = MAGIC;
  writeInt16(bytes, ATTRIBUTES_AT, header.attributes);
  writeInt32(bytes, LAST_OFFSET_DELTA_AT, header.lastOffsetDelta);
  writeInt64(bytes, BASE_TIMESTAMP_AT, header.baseTimestamp);
  writeInt64(bytes, MAX_TIMESTAMP_AT, header.maxTimestamp);
  writeInt64(bytes, PRODUCER_ID_AT, header.producerId);
  writeInt16(bytes, PRODUCER_EPOCH_AT, header.producerEpoch);
  writeInt32(bytes, BASE_SEQUENCE_AT, header.baseSequence);
  writeInt32(bytes, RECORD_COUNT_AT, header.recordCount);
  patchCrc(bytes, 0);
}

function patchCrc(bytes: Uint8Array, at: number): void {
  writeInt32(bytes, at + CRC_AT, computeCrc(bytes, at) | 0);
}

function computeCrc(bytes: Uint8Array, at: number): number {
  return crc32c(bytes.subarray(at + ATTRIBUTES_AT, at + batchBytes(bytes, at)));
}
