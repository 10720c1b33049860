// What a broker checks of a produced batch before it takes it: all that Kafka 4 checks, in its order, with its error
// codes. A client's mistake is a value, never an exception. Cost per record matters: see bench/protocol.ts.
// Not for: sequence numbers, epochs and transaction state, which the sequencer decides at commit.
import { isFloeError } from '../base/error.ts';
import { readInt32 } from './bytes.ts';
import { Compression, isCompressionType } from './codecs.ts';
import { ErrorCode } from './errors.ts';
import {
  Attribute,
  attributes,
  BATCH_HEADER_BYTES,
  BATCH_PREFIX_BYTES,
  baseOffset,
  baseSequence,
  baseTimestamp,
  crcMatches,
  lastOffsetDelta,
  MAGIC,
  magic,
  maxTimestamp,
  NO_TIMESTAMP,
  patchLogAppendTime,
  patchMaxTimestamp,
  producerEpoch,
  producerId,
  recordCount,
} from './record-batch.ts';
import { RecordCursor } from './record-cursor.ts';

/** Rules of the topic and the request for its batches. */
export interface BatchRules {
  /** `max.message.bytes`: largest batch as sent. */
  readonly maxMessageBytes: number;
  /** Most bytes a compressed batch may unfold into. */
  readonly maxDecompressedBytes: number;
  /** The topic is compacted: every record needs a key. */
  readonly keysRequired: boolean;
  /** `message.timestamp.type`. */
  readonly timestampType: 'CreateTime' | 'LogAppendTime';
  readonly nowMs: number;
  /** `message.timestamp.before.max.ms` and `.after.max.ms`: how far record times may be from now. */
  readonly timestampBeforeMaxMs: number;
  readonly timestampAfterMaxMs: number;
  /** Of the Produce request: zstd is known from 7 on. */
  readonly produceVersion: number;
}

/** A good batch: the facts that the log's AppendItem wants, and what admission looks at. */
export interface AcceptedBatch {
  readonly errorCode: 0;
  readonly bytes: Uint8Array;
  readonly recordCount: number;
  readonly lastOffsetDelta: number;
  readonly producerId: number;
  readonly producerEpoch: number;
  readonly baseSequence: number;
  readonly maxTimestamp: number;
  /** −1 unless the topic uses LogAppendTime. */
  readonly logAppendTimeMs: number;
  readonly transactional: boolean;
  readonly compression: number;
}

/** A record that made us refuse its batch. */
export interface RecordError {
  readonly batchIndex: number;
  readonly batchIndexErrorMessage: string;
}

/** A refused batch, as Produce answers it. */
export interface RefusedBatch {
  readonly errorCode: number;
  readonly errorMessage: string;
  /** At most {@link MAX_RECORD_ERRORS}. */
  readonly recordErrors: readonly RecordError[];
}

export type BatchCheck = AcceptedBatch | RefusedBatch;

/** Narrows a check to a good batch. */
export function isAccepted(check: BatchCheck): check is AcceptedBatch {
  return check.errorCode === ErrorCode.NONE;
}

/** Most records that one refusal names. */
export const MAX_RECORD_ERRORS = 100;

/** Bytes up to and including the magic. */
const PREFIX_WITH_MAGIC_BYTES = 17;
/** Kafka's smallest record of any format; a length below it can't even be an old batch. */
const SMALLEST_LEGACY_BYTES = 14;

/** Shared: validation never yields. */
const cursor = new RecordCursor();

/**
 * Checks the records of one partition of a Produce request: exactly one batch, good in itself and by `rules`.
 * Corrects in place, CRC included, what Kafka corrects: a largest timestamp that isn't, and LogAppendTime.
 */
export function validateBatches(bytes: Uint8Array | null, rules: BatchRules): BatchCheck {
  if (bytes === null) return invalid('there are no records');
  return checkFrame(bytes, rules) ?? checkHeader(bytes) ?? checkRecords(bytes, rules);
}

/** One batch of magic 2, whole, in size, unharmed. */
function checkFrame(bytes: Uint8Array, rules: BatchRules): RefusedBatch | undefined {
  if (bytes.length < BATCH_PREFIX_BYTES) return invalid(`${bytes.length} bytes hold no batch`);
  const length = readInt32(bytes, 8);
  if (length < SMALLEST_LEGACY_BYTES) return corrupt(`batch length ${length} is too small`);
  if (bytes.length < PREFIX_WITH_MAGIC_BYTES) return invalid('the batch is cut off');
  const format = magic(bytes);
  if (format > MAGIC) return corrupt(`unknown magic ${format}`);
  const size = length + BATCH_PREFIX_BYTES;
  if (size > bytes.length) return invalid(`the batch has ${bytes.length} of its ${size} bytes`);
  if (format !== MAGIC) {
    return invalid(`magic ${format} is too old: batches of magic ${MAGIC} (Kafka 0.11) are taken`);
  }
  if (size < BATCH_HEADER_BYTES) return corrupt(`batch length ${length} is less than a header`);
  if (size < bytes.length) {
    return invalid(`${bytes.length - size} bytes after the batch: a partition takes one batch`);
  }
  const type = attributes(bytes) & Attribute.COMPRESSION;
  if (!isCompressionType(type))
    return unsupportedCompression(`compression type ${type} is unknown`);
  if (type === Compression.ZSTD && rules.produceVersion < 7) {
    return unsupportedCompression(`zstd needs Produce 7, not ${rules.produceVersion} (KIP-110)`);
  }
  if (baseOffset(bytes) !== 0) return invalid(`base offset ${baseOffset(bytes)} is not 0`);
  if (size > rules.maxMessageBytes) {
    return refuse(
      ErrorCode.MESSAGE_TOO_LARGE,
      `the batch has ${size} bytes, max.message.bytes is ${rules.maxMessageBytes}`,
    );
  }
  return crcMatches(bytes) ? undefined : corrupt('the CRC32C does not match');
}

/** What the header says about itself. */
function checkHeader(bytes: Uint8Array): RefusedBatch | undefined {
  const flags = attributes(bytes);
  if ((flags & Attribute.CONTROL) !== 0) return invalid('clients write no control batches');
  if ((flags & Attribute.DELETE_HORIZON) !== 0) return invalid('clients set no delete horizon');
  const offsets = lastOffsetDelta(bytes) + 1;
  const count = recordCount(bytes);
  if (offsets < 1) return invalid(`last offset delta ${offsets - 1} is negative`);
  if (count !== offsets) return invalid(`${count} records in a batch of ${offsets} offsets`);
  const hasProducer = producerId(bytes) >= 0;
  if (hasProducer && (baseSequence(bytes) < 0 || producerEpoch(bytes) < 0)) {
    return invalid(
      `producer ${producerId(bytes)} with sequence ${baseSequence(bytes)}, epoch ${producerEpoch(bytes)}`,
    );
  }
  if (!hasProducer && (flags & Attribute.TRANSACTIONAL) !== 0) {
    return invalid('a transactional batch has a producer id');
  }
  return undefined;
}

/** Framing, offsets, keys and times of all records in one walk; the facts when all is well. */
function checkRecords(bytes: Uint8Array, rules: BatchRules): BatchCheck {
  const count = recordCount(bytes);
  let minDelta = Number.POSITIVE_INFINITY;
  let maxDelta = Number.NEGATIVE_INFINITY;
  let keyless = false;
  try {
    cursor.open(bytes, 0, { baseOffset: 0, maxDecompressedBytes: rules.maxDecompressedBytes });
    for (let index = 0; index < count; index += 1) {
      cursor.next();
      if (cursor.offsetDelta !== index) {
        return invalid(`record ${index} has offset delta ${cursor.offsetDelta}`);
      }
      const delta = cursor.timestampDelta;
      if (delta < minDelta) minDelta = delta;
      if (delta > maxDelta) maxDelta = delta;
      if (cursor.keyLength < 0) keyless = true;
      if (cursor.headerCount > 0) while (cursor.nextHeader());
    }
    if (cursor.rest !== 0) return invalid(`${cursor.rest} bytes after the last record`);
  } catch (caught) {
    return refusalOf(caught);
  } finally {
    // Drops the reference to decompressed records or to the request.
    cursor.close();
  }
  if (keyless && rules.keysRequired) {
    return refuseRecords(bytes, rules, ErrorCode.INVALID_RECORD, 'a compacted topic needs keys');
  }
  return checkTimes(bytes, rules, baseTimestamp(bytes) + minDelta, baseTimestamp(bytes) + maxDelta);
}

function checkTimes(
  bytes: Uint8Array,
  rules: BatchRules,
  earliest: number,
  latest: number,
): BatchCheck {
  if ((attributes(bytes) & Attribute.LOG_APPEND_TIME) !== 0) {
    return refuse(ErrorCode.INVALID_TIMESTAMP, 'clients do not set LogAppendTime');
  }
  if (rules.timestampType === 'LogAppendTime') {
    patchLogAppendTime(bytes, 0, rules.nowMs);
    return accepted(bytes, rules.nowMs);
  }
  if (timeIsOff(earliest, rules) || timeIsOff(latest, rules)) {
    const refusal = refuseRecords(
      bytes,
      rules,
      ErrorCode.INVALID_TIMESTAMP,
      'the time is outside message.timestamp.before.max.ms or .after.max.ms',
    );
    // The earliest may have been "no time", which is never off.
    if (refusal.recordErrors.length > 0) return refusal;
  }
  if (maxTimestamp(bytes) !== latest) patchMaxTimestamp(bytes, 0, latest);
  return accepted(bytes, -1);
}

function timeIsOff(timestamp: number, rules: BatchRules): boolean {
  return (
    timestamp !== NO_TIMESTAMP &&
    (timestamp < rules.nowMs - rules.timestampBeforeMaxMs ||
      timestamp > rules.nowMs + rules.timestampAfterMaxMs)
  );
}

function accepted(bytes: Uint8Array, logAppendTimeMs: number): AcceptedBatch {
  const flags = attributes(bytes);
  return {
    errorCode: ErrorCode.NONE,
    bytes,
    recordCount: recordCount(bytes),
    lastOffsetDelta: lastOffsetDelta(bytes),
    producerId: Math.max(producerId(bytes), -1),
    producerEpoch: producerEpoch(bytes),
    baseSequence: baseSequence(bytes),
    maxTimestamp: maxTimestamp(bytes),
    logAppendTimeMs,
    transactional: (flags & Attribute.TRANSACTIONAL) !== 0,
    compression: flags & Attribute.COMPRESSION,
  };
}

/** Walks again, rarely, to name the records that are to blame. */
function refuseRecords(
  bytes: Uint8Array,
  rules: BatchRules,
  errorCode: number,
  errorMessage: string,
): RefusedBatch {
  const recordErrors: RecordError[] = [];
  cursor.open(bytes, 0, { maxDecompressedBytes: rules.maxDecompressedBytes });
  while (recordErrors.length < MAX_RECORD_ERRORS && cursor.next()) {
    const guilty =
      errorCode === ErrorCode.INVALID_RECORD
        ? cursor.keyLength < 0
        : timeIsOff(cursor.timestamp, rules);
    if (guilty) {
      recordErrors.push({
        batchIndex: cursor.offsetDelta,
        batchIndexErrorMessage: errorMessage,
      });
    }
  }
  cursor.close();
  return { errorCode, errorMessage, recordErrors };
}

function refusalOf(caught: unknown): RefusedBatch {
  if (!isFloeError(caught, 'corrupt', 'exhausted', 'unsupported')) throw caught;
  // Kafka's clients split a batch that is too large and send it again.
  return caught.code === 'exhausted'
    ? refuse(ErrorCode.MESSAGE_TOO_LARGE, caught.message)
    : invalid(caught.message);
}

function refuse(errorCode: number, errorMessage: string): RefusedBatch {
  return { errorCode, errorMessage, recordErrors: [] };
}

const invalid = (message: string) => refuse(ErrorCode.INVALID_RECORD, message);
const corrupt = (message: string) => refuse(ErrorCode.CORRUPT_MESSAGE, message);
const unsupportedCompression = (message: string) =>
  refuse(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, message);
