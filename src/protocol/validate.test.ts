import { describe, expect, it } from 'vitest';
import { COMPRESSION_NAMES, Compression } from './codecs.ts';
import { ErrorCode } from './errors.ts';
import {
  Attribute,
  attributes,
  BATCH_HEADER_BYTES,
  type BatchHeader,
  crcMatches,
  maxTimestamp,
  patchMaxTimestamp,
  readBatchHeader,
  writeBatchHeader,
} from './record-batch.ts';
import { type BatchOptions, buildBatch, buildControlBatch } from './record-builder.ts';
import { readRecords } from './records.ts';
import {
  type BatchRules,
  isAccepted,
  MAX_RECORD_ERRORS,
  type RefusedBatch,
  validateBatches,
} from './validate.ts';

const NOW = 1_700_000_000_000;
const HOUR = 3_600_000;
const RULES: BatchRules = {
  maxMessageBytes: 1_048_588,
  maxDecompressedBytes: 10_000_000,
  keysRequired: false,
  timestampType: 'CreateTime',
  nowMs: NOW,
  timestampBeforeMaxMs: 2 ** 63,
  timestampAfterMaxMs: HOUR,
  produceVersion: 9,
};

const tenRecords = (options: BatchOptions = {}) =>
  buildBatch(
    Array.from({ length: 10 }, (_, i) => ({
      key: `k${i}`,
      value: 'value',
      timestamp: NOW + i,
      headers: i % 2 === 0 ? ([['h', 'x']] as const) : [],
    })),
    options,
  );

/** A batch with a header that was changed, and a right CRC. */
function withHeader(change: Partial<BatchHeader>, batch = tenRecords()): Buffer {
  writeBatchHeader(batch, { ...readBatchHeader(batch), ...change });
  return batch;
}

/** A batch with one byte of its records changed, and a right CRC. */
function withByte(at: number, value: number, batch = tenRecords()): Buffer {
  batch[BATCH_HEADER_BYTES + at] = value;
  return withHeader({}, batch);
}

function refusal(bytes: Uint8Array | null, rules: Partial<BatchRules> = {}): RefusedBatch {
  const check = validateBatches(bytes, { ...RULES, ...rules });
  expect(isAccepted(check)).toBe(false);
  const refused = check as RefusedBatch;
  expect(refused.errorMessage).not.toBe('');
  return refused;
}

const code = (bytes: Uint8Array | null, rules?: Partial<BatchRules>) =>
  refusal(bytes, rules).errorCode;

describe('a good batch', () => {
  it.each(COMPRESSION_NAMES.map((name, type) => [name, type] as const))(
    'of %s is accepted with its facts and unchanged bytes',
    (_name, compression) => {
      const batch = tenRecords({
        compression,
        producerId: 4,
        producerEpoch: 1,
        baseSequence: 20,
        transactional: true,
      });
      const before = Buffer.from(batch);
      expect(validateBatches(batch, RULES)).toEqual({
        errorCode: 0,
        bytes: batch,
        recordCount: 10,
        lastOffsetDelta: 9,
        producerId: 4,
        producerEpoch: 1,
        baseSequence: 20,
        maxTimestamp: NOW + 9,
        logAppendTimeMs: -1,
        transactional: true,
        compression,
      });
      expect(batch).toEqual(before);
    },
  );

  it('may come from shared memory', () => {
    const batch = tenRecords({ compression: Compression.LZ4 });
    const shared = new Uint8Array(new SharedArrayBuffer(batch.length));
    shared.set(batch);
    expect(isAccepted(validateBatches(shared, RULES))).toBe(true);
  });
});

// The codes are what Apache Kafka 4.3 answers to the same bytes.
describe('a refused batch', () => {
  it('of wrong frame', () => {
    const { INVALID_RECORD, CORRUPT_MESSAGE } = ErrorCode;
    expect(code(null)).toBe(INVALID_RECORD);
    expect(code(Buffer.alloc(0))).toBe(INVALID_RECORD);
    expect(code(tenRecords().subarray(0, -5))).toBe(INVALID_RECORD);
    expect(code(tenRecords().subarray(0, 14))).toBe(INVALID_RECORD);
    expect(code(Buffer.concat([tenRecords(), tenRecords()]))).toBe(INVALID_RECORD);
    expect(code(Buffer.alloc(80, 0xff))).toBe(CORRUPT_MESSAGE);
    const magic = (value: number) => {
      const batch = tenRecords();
      batch[16] = value;
      return batch;
    };
    expect(code(magic(0))).toBe(INVALID_RECORD);
    expect(code(magic(1))).toBe(INVALID_RECORD);
    expect(code(magic(3))).toBe(CORRUPT_MESSAGE);
    const crc = tenRecords();
    crc[17]! ^= 1;
    expect(code(crc)).toBe(CORRUPT_MESSAGE);
    const short = tenRecords().subarray(0, 60);
    short.writeInt32BE(48, 8);
    expect(code(short)).toBe(CORRUPT_MESSAGE);
  });

  it('that is too large', () => {
    const batch = tenRecords();
    const limit = { maxMessageBytes: batch.length - 1 };
    expect(code(batch, limit)).toBe(ErrorCode.MESSAGE_TOO_LARGE);
    expect(refusal(batch, limit).errorMessage).toContain(
      `max.message.bytes is ${batch.length - 1}`,
    );
    const bomb = tenRecords({ compression: Compression.ZSTD });
    expect(code(bomb, { maxDecompressedBytes: 50 })).toBe(ErrorCode.MESSAGE_TOO_LARGE);
  });

  it('of wrong header', () => {
    const { INVALID_RECORD, UNSUPPORTED_COMPRESSION_TYPE } = ErrorCode;
    expect(code(withHeader({ baseOffset: 1 }))).toBe(INVALID_RECORD);
    expect(code(withHeader({ recordCount: 11 }))).toBe(INVALID_RECORD);
    expect(code(withHeader({ recordCount: 9 }))).toBe(INVALID_RECORD);
    expect(code(withHeader({ recordCount: -1 }))).toBe(INVALID_RECORD);
    expect(code(withHeader({ lastOffsetDelta: 20 }))).toBe(INVALID_RECORD);
    expect(code(withHeader({ lastOffsetDelta: -1, recordCount: 0 }))).toBe(INVALID_RECORD);
    expect(code(withHeader({ attributes: Attribute.CONTROL }))).toBe(INVALID_RECORD);
    expect(code(withHeader({ attributes: Attribute.DELETE_HORIZON }))).toBe(INVALID_RECORD);
    expect(code(withHeader({ attributes: Attribute.TRANSACTIONAL }))).toBe(INVALID_RECORD);
    expect(code(withHeader({ producerId: 1, producerEpoch: 0 }))).toBe(INVALID_RECORD);
    expect(code(withHeader({ attributes: 5 }))).toBe(UNSUPPORTED_COMPRESSION_TYPE);
    const zstd = tenRecords({ compression: Compression.ZSTD });
    expect(code(zstd, { produceVersion: 6 })).toBe(UNSUPPORTED_COMPRESSION_TYPE);
    const marker = { type: 'abort', baseOffset: 0, leaderEpoch: 0, timestamp: NOW } as const;
    const control = { producerId: 1, producerEpoch: 0, coordinatorEpoch: 0 };
    expect(code(buildControlBatch({ ...marker, ...control }))).toBe(INVALID_RECORD);
  });

  it('whose records lie, compressed or not', () => {
    // Both count and last delta claim more or fewer records than there are.
    for (const compression of [Compression.NONE, Compression.GZIP, Compression.SNAPPY]) {
      for (const recordCount of [8, 12, 2 ** 31 - 1]) {
        const header = { recordCount, lastOffsetDelta: recordCount - 1 };
        expect(code(withHeader(header, tenRecords({ compression })))).toBe(
          ErrorCode.INVALID_RECORD,
        );
      }
    }
    const broken = withByte(0, 1, tenRecords({ compression: Compression.GZIP }));
    expect(code(broken)).toBe(ErrorCode.INVALID_RECORD);
    // The first record: length, attributes, time delta, offset delta, key length, …
    expect(code(withByte(0, 2))).toBe(ErrorCode.INVALID_RECORD);
    expect(code(withByte(3, 2))).toBe(ErrorCode.INVALID_RECORD);
    expect(code(withByte(4, 0x7e))).toBe(ErrorCode.INVALID_RECORD);
    // … its header count, and its header's key length.
    expect(code(withByte(13, 4))).toBe(ErrorCode.INVALID_RECORD);
    expect(code(withByte(14, 8))).toBe(ErrorCode.INVALID_RECORD);
  });

  it('without keys on a compacted topic, naming the records', () => {
    const batch = buildBatch([{ key: 'a' }, { value: 'b' }, { key: '', value: 'c' }, {}]);
    const { errorCode, recordErrors } = refusal(batch, { keysRequired: true });
    expect(errorCode).toBe(ErrorCode.INVALID_RECORD);
    expect(recordErrors.map((error) => error.batchIndex)).toEqual([1, 3]);
    const many = buildBatch(Array.from({ length: 300 }, () => ({ value: 'x' })));
    expect(refusal(many, { keysRequired: true }).recordErrors).toHaveLength(MAX_RECORD_ERRORS);
  });
});

describe('record times', () => {
  it('too far from now are refused, naming the records', () => {
    const batch = buildBatch([NOW, NOW + 2 * HOUR, NOW - 1].map((timestamp) => ({ timestamp })));
    const { errorCode, recordErrors } = refusal(batch);
    expect(errorCode).toBe(ErrorCode.INVALID_TIMESTAMP);
    expect(recordErrors.map((error) => error.batchIndex)).toEqual([1]);
    const old = buildBatch([{ timestamp: NOW - 2 * HOUR }]);
    expect(isAccepted(validateBatches(old, RULES))).toBe(true);
    expect(code(old, { timestampBeforeMaxMs: HOUR })).toBe(ErrorCode.INVALID_TIMESTAMP);
  });

  it('may be missing', () => {
    const batch = buildBatch([{ timestamp: -1 }, { timestamp: NOW }]);
    expect(isAccepted(validateBatches(batch, { ...RULES, timestampBeforeMaxMs: HOUR }))).toBe(true);
  });

  it('make the batch’s largest time, whatever the client wrote there', () => {
    const batch = tenRecords();
    patchMaxTimestamp(batch, 0, 5);
    expect(validateBatches(batch, RULES)).toMatchObject({ maxTimestamp: NOW + 9 });
    expect([maxTimestamp(batch), crcMatches(batch)]).toEqual([NOW + 9, true]);
  });

  it('become the log’s with LogAppendTime, which clients can not set themselves', () => {
    const rules = { ...RULES, timestampType: 'LogAppendTime' } as const;
    const batch = tenRecords();
    expect(validateBatches(batch, rules)).toMatchObject({
      maxTimestamp: NOW,
      logAppendTimeMs: NOW,
    });
    expect(attributes(batch) & Attribute.LOG_APPEND_TIME).not.toBe(0);
    expect(crcMatches(batch)).toBe(true);
    expect(readRecords(batch)[3]!.timestamp).toBe(NOW);
    expect(code(batch)).toBe(ErrorCode.INVALID_TIMESTAMP);
  });
});
