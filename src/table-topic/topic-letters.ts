// Dead letters of one job as records for a topic of their own: original key, value, headers and timestamp, and behind
// those headers what Kafka Connect's dead letters carry, under its names, so that tools for those read these.
// Not for: appending them (lane.ts), the topic itself (letter-topics.ts), dead letters in a table (dead-letters.ts).
import { Compression } from '../protocol/codecs.ts';
import { BATCH_HEADER_BYTES } from '../protocol/record-batch.ts';
import { RecordBatchBuilder, type RecordInput } from '../protocol/record-builder.ts';
import type { RecordCursor } from '../protocol/record-cursor.ts';
import type { Fault } from './converter.ts';
import {
  type DeadLetterContext,
  type LetterCoordinates,
  type LetterSink,
  MAX_ERROR_CHARS,
} from './dead-letters.ts';
import type { LetterBatch } from './job.ts';
import type { DeadLetterStage } from './system-columns.ts';

/** Marks a record as a dead letter of ours: one is never sent on a second time. */
export const LETTER_MARK = '__floe.error.table';

/** Names that Kafka Connect's DeadLetterQueueReporter gives its headers (KIP-298). */
const CONNECT = '__connect.errors.';

/** Connect's names of the stages (ErrorHandling `Stage`). */
const CONNECT_STAGES: Readonly<Record<DeadLetterStage, string>> = {
  batch: 'KAFKA_CONSUME',
  key: 'KEY_CONVERTER',
  value: 'VALUE_CONVERTER',
  writer: 'TASK_PUT',
};

/** Batches stay within what consumers fetch at once by default (max.message.bytes). */
const BATCH_BYTES = 1_000_000;
/** What the framing of one record may take beside its parts. */
const RECORD_OVERHEAD = 128;

interface Letter {
  readonly partition: number;
  readonly record: RecordInput;
  readonly bytes: number;
}

export class TopicLetters implements LetterSink {
  readonly #context: DeadLetterContext;
  readonly #maxBytes: number;
  readonly #letters: Letter[] = [];
  byteSize = 0;

  /** `maxBytes`: what one append takes; a value that alone exceeds it, compressed too, is left out. */
  constructor(context: DeadLetterContext, maxBytes: number) {
    this.#context = context;
    this.#maxBytes = maxBytes;
  }

  add(cursor: RecordCursor, at: LetterCoordinates, fault: Fault): void {
    const { bytes } = cursor;
    const key = part(bytes, cursor.keyStart, cursor.keyLength);
    const value = part(bytes, cursor.valueStart, cursor.valueLength);
    const headers = [...originalHeaders(cursor), ...this.#errorHeaders(at, fault)];
    this.#keep(at.partition, { key, value, timestamp: cursor.timestamp, headers });
  }

  addBatch(batch: Uint8Array, at: LetterCoordinates, fault: Fault): void {
    const value = part(batch, 0, batch.length);
    this.#keep(at.partition, { value, headers: this.#errorHeaders(at, fault) });
  }

  /** Batches of the letters at these places, in the order of their coming. */
  take(places: readonly number[]): LetterBatch[] {
    const batches: LetterBatch[] = [];
    let open: RecordBatchBuilder | undefined;
    let partition = -1;
    let maxTimestamp = -1;
    const close = () => {
      if (open === undefined) return;
      batches.push({ partition, bytes: this.#build(open), recordCount: open.count, maxTimestamp });
      open = undefined;
      maxTimestamp = -1;
    };
    for (const place of places) {
      const letter = this.#letters[place]!;
      if (letter.partition !== partition || (open?.bytes ?? 0) + letter.bytes > BATCH_BYTES)
        close();
      partition = letter.partition;
      open ??= new RecordBatchBuilder();
      open.add(this.#fitting(letter));
      maxTimestamp = Math.max(maxTimestamp, letter.record.timestamp ?? -1);
    }
    close();
    return batches;
  }

  #keep(partition: number, record: RecordInput): void {
    const bytes = recordBytes(record);
    this.#letters.push({ partition, record, bytes });
    this.byteSize += bytes;
  }

  /** As it is, as long as it can be appended; what can't is told of without its value. */
  #fitting({ record, bytes }: Letter): RecordInput {
    if (bytes + BATCH_HEADER_BYTES <= this.#maxBytes) return record;
    const compressed = new RecordBatchBuilder({ compression: Compression.GZIP })
      .add(record)
      .build();
    if (compressed.length <= this.#maxBytes) return record;
    const headers = [
      ...(record.headers ?? []),
      ['__floe.error.value.bytes', String(record.value?.length ?? 0)] as const,
    ];
    return { ...record, value: null, headers };
  }

  #build(open: RecordBatchBuilder): Uint8Array {
    const batch = open.build();
    return batch.length <= this.#maxBytes ? batch : open.build(Compression.GZIP);
  }

  #errorHeaders(at: LetterCoordinates, fault: Fault): (readonly [string, string])[] {
    const { topic, table, nowMs } = this.#context;
    return [
      [`${CONNECT}topic`, topic],
      [`${CONNECT}partition`, String(at.partition)],
      [`${CONNECT}offset`, String(at.offset)],
      [`${CONNECT}connector.name`, table],
      [`${CONNECT}stage`, CONNECT_STAGES[fault.stage]],
      [`${CONNECT}exception.class.name`, fault.reason],
      [`${CONNECT}exception.message`, fault.error.slice(0, MAX_ERROR_CHARS)],
      [LETTER_MARK, table],
      ['__floe.error.reason', fault.reason],
      ['__floe.error.failed_at', String(nowMs)],
      ...(fault.schemaId < 0 ? [] : [['__floe.error.schema_id', String(fault.schemaId)] as const]),
    ];
  }
}

/** True when the record the cursor stands at is a dead letter that Floe wrote. */
export function isLetter(cursor: RecordCursor): boolean {
  cursor.restartHeaders();
  while (cursor.nextHeader()) {
    if (cursor.headerKeyLength !== LETTER_MARK.length) continue;
    const name = part(cursor.bytes, cursor.headerKeyStart, cursor.headerKeyLength)!;
    if (Buffer.from(name).toString('latin1') === LETTER_MARK) return true;
  }
  return false;
}

function originalHeaders(cursor: RecordCursor): (readonly [string, Uint8Array | null])[] {
  const headers: (readonly [string, Uint8Array | null])[] = [];
  cursor.restartHeaders();
  while (cursor.nextHeader()) {
    const name = part(cursor.bytes, cursor.headerKeyStart, cursor.headerKeyLength)!;
    const value = part(cursor.bytes, cursor.headerValueStart, cursor.headerValueLength);
    headers.push([Buffer.from(name).toString('utf8'), value]);
  }
  return headers;
}

/** A copy: the cursor's bytes are the next batch's soon. */
function part(bytes: Uint8Array, start: number, length: number): Uint8Array | null {
  return length < 0 ? null : Uint8Array.prototype.slice.call(bytes, start, start + length);
}

function recordBytes({ key, value, headers = [] }: RecordInput): number {
  let bytes = RECORD_OVERHEAD + (key?.length ?? 0) + (value?.length ?? 0);
  // Text as UTF-8 takes three bytes a unit at most.
  for (const [name, content] of headers) bytes += 10 + 3 * name.length + 3 * (content?.length ?? 0);
  return bytes;
}
