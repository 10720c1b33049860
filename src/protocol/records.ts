// Records as objects, for tools, tests and other places where convenience matters more than speed.
// Not for: data paths, which use RecordCursor.
import { FloeError } from '../base/error.ts';
import { asBuffer } from './bytes.ts';
import { batchEnd } from './record-batch.ts';
import { type OpenOptions, RecordCursor } from './record-cursor.ts';

/** A record as an object; bytes are views. */
export interface KafkaRecord {
  readonly offset: number;
  /** Milliseconds, −1 for none. */
  readonly timestamp: number;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers: readonly (readonly [name: string, value: Buffer | null])[];
}

/**
 * All records of the batches that lie end to end in `bytes`, control records included.
 * @throws FloeError `corrupt` when the bytes are not whole batches.
 */
export function readRecords(bytes: Uint8Array, options: OpenOptions = {}): KafkaRecord[] {
  const records: KafkaRecord[] = [];
  const cursor = new RecordCursor();
  for (let at = 0, end = 0; at < bytes.length; at = end) {
    end = batchEnd(bytes, at);
    if (end === -1) throw new FloeError('corrupt', `no whole record batch at ${at}`);
    cursor.open(bytes, at, options);
    while (cursor.next()) records.push(currentRecord(cursor));
  }
  return records;
}

/** The cursor's record as an object. Reads its headers. */
export function currentRecord(cursor: RecordCursor): KafkaRecord {
  const { offset, timestamp, keyStart, keyLength, valueStart, valueLength } = cursor;
  const bytes = asBuffer(cursor.bytes);
  const slice = (start: number, length: number) =>
    length < 0 ? null : bytes.subarray(start, start + length);
  const headers: [string, Buffer | null][] = [];
  while (cursor.nextHeader()) {
    const nameEnd = cursor.headerKeyStart + cursor.headerKeyLength;
    headers.push([
      bytes.toString('utf8', cursor.headerKeyStart, nameEnd),
      slice(cursor.headerValueStart, cursor.headerValueLength),
    ]);
  }
  return {
    offset,
    timestamp,
    key: slice(keyStart, keyLength),
    value: slice(valueStart, valueLength),
    headers,
  };
}
