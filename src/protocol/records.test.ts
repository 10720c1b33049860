import { createRequire } from 'node:module';
import { describe, expect, it } from 'vitest';
import { COMPRESSION_NAMES, Compression } from './codecs.ts';
import {
  Attribute,
  attributes,
  BATCH_HEADER_BYTES,
  baseOffset,
  batchEnd,
  crcMatches,
  leaderEpoch,
  maxTimestamp,
  patchBaseOffset,
  patchLeaderEpoch,
  patchLogAppendTime,
  patchMaxTimestamp,
  readBatchHeader,
} from './record-batch.ts';
import { buildBatch, buildControlBatch, type RecordInput } from './record-builder.ts';
import { RecordCursor } from './record-cursor.ts';
import { readRecords } from './records.ts';

const NOW = 1_700_000_000_000;
const RECORDS: RecordInput[] = [
  { key: 'k', value: 'v', timestamp: NOW },
  { key: null, value: null, timestamp: NOW + 7 },
  { key: '', value: '', timestamp: NOW - 100_000 },
  {
    key: Buffer.alloc(200, 1),
    value: Buffer.alloc(70_000, 2),
    timestamp: NOW + 2 ** 33,
    headers: [
      ['h', 'x'],
      ['h', null],
      ['', ''],
    ],
  },
];

function expectedRecords(offset: number) {
  const bytes = (value: Uint8Array | string | null | undefined) =>
    value === null || value === undefined ? null : Buffer.from(value as string);
  return RECORDS.map((record, index) => ({
    offset: offset + index,
    timestamp: record.timestamp,
    key: bytes(record.key),
    value: bytes(record.value),
    headers: (record.headers ?? []).map(([name, value]) => [name, bytes(value)]),
  }));
}

describe('a batch', () => {
  it.each(COMPRESSION_NAMES.map((name, type) => [name, type] as const))(
    'of %s gives back its records, one after another batch',
    (_name, compression) => {
      const first = buildBatch(RECORDS, { compression, baseOffset: 10 });
      const second = buildBatch(RECORDS, { compression, baseOffset: 90 });
      expect(readRecords(Buffer.concat([first, second]))).toEqual([
        ...expectedRecords(10),
        ...expectedRecords(90),
      ]);
    },
  );

  it('has a header of what it was built from', () => {
    const batch = buildBatch(RECORDS, {
      baseOffset: 2 ** 40 + 1,
      leaderEpoch: 3,
      producerId: 2 ** 35,
      producerEpoch: 4,
      baseSequence: 5,
      transactional: true,
      compression: Compression.ZSTD,
    });
    expect(readBatchHeader(batch)).toEqual({
      baseOffset: 2 ** 40 + 1,
      leaderEpoch: 3,
      attributes: Compression.ZSTD | Attribute.TRANSACTIONAL,
      lastOffsetDelta: 3,
      baseTimestamp: NOW,
      maxTimestamp: NOW + 2 ** 33,
      producerId: 2 ** 35,
      producerEpoch: 4,
      baseSequence: 5,
      recordCount: 4,
    });
    expect(crcMatches(batch)).toBe(true);
  });

  it('takes offset and epoch without touching its CRC, times with it', () => {
    const batch = buildBatch(RECORDS);
    patchBaseOffset(batch, 0, 2 ** 33 + 7);
    patchLeaderEpoch(batch, 0, 12);
    expect([baseOffset(batch), leaderEpoch(batch), crcMatches(batch)]).toEqual([
      2 ** 33 + 7,
      12,
      true,
    ]);
    patchMaxTimestamp(batch, 0, NOW + 1);
    expect([maxTimestamp(batch), crcMatches(batch)]).toEqual([NOW + 1, true]);
    patchLogAppendTime(batch, 0, NOW + 2);
    expect(attributes(batch)).toBe(Attribute.LOG_APPEND_TIME);
    expect([maxTimestamp(batch), crcMatches(batch)]).toEqual([NOW + 2, true]);
    expect(readRecords(batch).map((record) => record.timestamp)).toEqual(
      RECORDS.map(() => NOW + 2),
    );
  });

  it('is found only whole', () => {
    const batch = buildBatch(RECORDS);
    const run = Buffer.concat([batch, batch]);
    expect(batchEnd(run, 0)).toBe(batch.length);
    expect(batchEnd(run, batch.length)).toBe(run.length);
    expect(batchEnd(run, run.length)).toBe(-1);
    expect(batchEnd(run.subarray(0, run.length - 1), batch.length)).toBe(-1);
    run.writeInt32BE(-5, 8);
    expect(batchEnd(run, 0)).toBe(-1);
  });
});

describe('RecordCursor', () => {
  it('points into the bytes that it was given, at any position, with another base offset', () => {
    const batch = buildBatch([{ key: 'key', value: 'value', timestamp: NOW }]);
    const run = Buffer.concat([Buffer.alloc(13), batch]);
    const cursor = new RecordCursor();
    cursor.open(run, 13, { baseOffset: 500 });
    expect(cursor.next()).toBe(true);
    expect(cursor.bytes).toBe(run);
    const slice = (start: number, length: number) => run.toString('utf8', start, start + length);
    expect(slice(cursor.keyStart, cursor.keyLength)).toBe('key');
    expect(slice(cursor.valueStart, cursor.valueLength)).toBe('value');
    expect([cursor.offset, cursor.timestamp, cursor.rest]).toEqual([500, NOW, 0]);
    expect(cursor.next()).toBe(false);
  });

  it('reads times far apart to the millisecond', () => {
    const deltas = [0, 63, -64, 64, 8_191, 2 ** 27, -(2 ** 27), 2 ** 31, 2 ** 40, -(2 ** 40) - 1];
    const batch = buildBatch(deltas.map((delta) => ({ timestamp: 2 ** 41 + delta })));
    expect(readRecords(batch).map((record) => record.timestamp - 2 ** 41)).toEqual(deltas);
  });

  it('throws for records that are not what they claim, and keeps within the batch', () => {
    const good = buildBatch([{ key: 'k', value: 'v', headers: [['h', 'x']] }]);
    for (let at = BATCH_HEADER_BYTES; at < good.length; at += 1) {
      for (const byte of [0x00, 0x01, 0x7f, 0x80, 0xff]) {
        const bad = Buffer.concat([good, Buffer.alloc(40, 0x22)]);
        bad[at] = byte;
        try {
          for (const record of readRecords(bad.subarray(0, good.length))) {
            expect((record.key?.length ?? 0) + (record.value?.length ?? 0)).toBeLessThan(12);
          }
        } catch (caught) {
          expect(caught).toMatchObject({ code: 'corrupt' });
        }
      }
    }
  });
});

describe('a control batch', () => {
  it('is the marker that Kafka writes', () => {
    const options = { baseOffset: 8, leaderEpoch: 0, producerId: 3, producerEpoch: 1 };
    const batch = buildControlBatch({
      ...options,
      type: 'commit',
      coordinatorEpoch: 9,
      timestamp: NOW,
    });
    expect(attributes(batch)).toBe(Attribute.TRANSACTIONAL | Attribute.CONTROL);
    expect(readBatchHeader(batch)).toMatchObject({ ...options, baseSequence: -1, recordCount: 1 });
    expect(readRecords(batch)).toEqual([
      {
        offset: 8,
        timestamp: NOW,
        key: Buffer.from('00000001', 'hex'),
        value: Buffer.from('000000000009', 'hex'),
        headers: [],
      },
    ]);
  });
});

describe('kafkajs, an independent implementation,', () => {
  const require = createRequire(import.meta.url);
  const Decoder = require('kafkajs/src/protocol/decoder');
  const readBatch = require('kafkajs/src/protocol/recordBatch/v0/decoder');
  const { RecordBatch } = require('kafkajs/src/protocol/recordBatch/v0');
  const Record = require('kafkajs/src/protocol/recordBatch/record/v0');

  it('reads our batches', async () => {
    for (const compression of [Compression.NONE, Compression.GZIP]) {
      const { records } = await readBatch(new Decoder(buildBatch(RECORDS, { compression })));
      const read = records.map((record: { offset: string; timestamp: string; key: Buffer }) => [
        Number(record.offset),
        Number(record.timestamp),
        record.key,
      ]);
      expect(read).toEqual(expectedRecords(0).map((r) => [r.offset, r.timestamp, r.key]));
    }
  });

  it('writes batches that we read', async () => {
    const records = expectedRecords(0)
      .slice(0, 2)
      .map((record, index) =>
        Record({
          offsetDelta: index,
          timestampDelta: record.timestamp! - NOW,
          key: record.key,
          value: record.value,
          headers: { name: 'x' },
        }),
      );
    const { buffer } = await RecordBatch({ records, firstTimestamp: NOW, lastOffsetDelta: 1 });
    expect(crcMatches(buffer)).toBe(true);
    expect(readRecords(buffer)).toEqual(
      expectedRecords(0)
        .slice(0, 2)
        .map((record) => ({ ...record, headers: [['name', Buffer.from('x')]] })),
    );
  });
});
