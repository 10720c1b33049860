// Builds record batches: for `floe produce`, tests, and the control batches that end transactions at fetch.
// Not for the broker's data path, which never takes a batch apart.
import { assert } from '../base/assert.ts';
import { varintBytes, writeInt16, writeInt32, writeVarint } from './bytes.ts';
import { Compression, compress } from './codecs.ts';
import {
  Attribute,
  BATCH_HEADER_BYTES,
  NO_PRODUCER_ID,
  NO_SEQUENCE,
  NO_TIMESTAMP,
  writeBatchHeader,
} from './record-batch.ts';

/** A record to be written; text is taken as UTF-8. */
export interface RecordInput {
  readonly key?: Uint8Array | string | null;
  readonly value?: Uint8Array | string | null;
  /** Milliseconds; −1, none, by default. */
  readonly timestamp?: number;
  /** In order; names may repeat. */
  readonly headers?: readonly (readonly [name: string, value: Uint8Array | string | null])[];
}

export interface BatchOptions {
  /** One of {@link Compression}. */
  readonly compression?: number;
  readonly baseOffset?: number;
  readonly leaderEpoch?: number;
  readonly producerId?: number;
  readonly producerEpoch?: number;
  readonly baseSequence?: number;
  readonly transactional?: boolean;
  readonly control?: boolean;
  /** Given: the batch has LogAppendTime, this one. */
  readonly logAppendTime?: number;
}

/** Collects records; {@link build} makes the batch of them. */
export class RecordBatchBuilder {
  readonly #options: BatchOptions;
  #buffer = Buffer.allocUnsafe(1_024);
  #length = 0;
  #count = 0;
  #baseTimestamp = NO_TIMESTAMP;
  #maxTimestamp = NO_TIMESTAMP;

  constructor(options: BatchOptions = {}) {
    this.#options = options;
  }

  get count(): number {
    return this.#count;
  }

  /** Uncompressed bytes of the batch so far. */
  get bytes(): number {
    return BATCH_HEADER_BYTES + this.#length;
  }

  add(record: RecordInput): this {
    const key = toBytes(record.key);
    const value = toBytes(record.value);
    const headers = (record.headers ?? []).map(
      ([name, content]) => [Buffer.from(name), toBytes(content)] as const,
    );
    const timestamp = record.timestamp ?? NO_TIMESTAMP;
    if (this.#count === 0) this.#baseTimestamp = timestamp;
    this.#maxTimestamp = Math.max(this.#maxTimestamp, timestamp);
    const timestampDelta = timestamp - this.#baseTimestamp;
    let size =
      1 + varintBytes(timestampDelta) + varintBytes(this.#count) + varintBytes(headers.length);
    size += sizedBytes(key) + sizedBytes(value);
    for (const [name, content] of headers) size += sizedBytes(name) + sizedBytes(content);

    this.#grow(varintBytes(size) + size);
    const buffer = this.#buffer;
    let at = writeVarint(buffer, this.#length, size);
    buffer[at++] = 0;
    at = writeVarint(buffer, at, timestampDelta);
    at = writeVarint(buffer, at, this.#count);
    at = writeSized(buffer, at, key);
    at = writeSized(buffer, at, value);
    at = writeVarint(buffer, at, headers.length);
    for (const [name, content] of headers) {
      at = writeSized(buffer, writeSized(buffer, at, name), content);
    }
    this.#length = at;
    this.#count += 1;
    return this;
  }

  /** May be called again, to see what another compression makes of it. */
  build(compression = this.#options.compression ?? Compression.NONE): Buffer {
    assert(this.#count > 0, 'a record batch has at least one record');
    const options = this.#options;
    const records = compress(compression, this.#buffer.subarray(0, this.#length));
    const batch = Buffer.allocUnsafe(BATCH_HEADER_BYTES + records.length);
    batch.set(records, BATCH_HEADER_BYTES);
    writeBatchHeader(batch, {
      baseOffset: options.baseOffset ?? 0,
      leaderEpoch: options.leaderEpoch ?? -1,
      attributes:
        compression |
        (options.logAppendTime === undefined ? 0 : Attribute.LOG_APPEND_TIME) |
        (options.transactional === true ? Attribute.TRANSACTIONAL : 0) |
        (options.control === true ? Attribute.CONTROL : 0),
      lastOffsetDelta: this.#count - 1,
      baseTimestamp: this.#baseTimestamp,
      maxTimestamp: options.logAppendTime ?? this.#maxTimestamp,
      producerId: options.producerId ?? NO_PRODUCER_ID,
      producerEpoch: options.producerEpoch ?? -1,
      baseSequence: options.baseSequence ?? NO_SEQUENCE,
      recordCount: this.#count,
    });
    return batch;
  }

  #grow(bytes: number): void {
    if (this.#length + bytes <= this.#buffer.length) return;
    const grown = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.#length + bytes));
    grown.set(this.#buffer.subarray(0, this.#length));
    this.#buffer = grown;
  }
}

/** One batch of `records`. */
export function buildBatch(records: readonly RecordInput[], options: BatchOptions = {}): Buffer {
  const builder = new RecordBatchBuilder(options);
  for (const record of records) builder.add(record);
  return builder.build();
}

/** Key of an end-of-transaction marker: version i16, type i16. */
const MARKER_TYPE = { abort: 0, commit: 1 } as const;

export interface ControlBatchOptions {
  readonly type: keyof typeof MARKER_TYPE;
  readonly baseOffset: number;
  readonly leaderEpoch: number;
  readonly producerId: number;
  readonly producerEpoch: number;
  readonly coordinatorEpoch: number;
  readonly timestamp: number;
}

/** The marker that ends a transaction, as Kafka writes it: identical for identical options. */
export function buildControlBatch(options: ControlBatchOptions): Buffer {
  const key = Buffer.alloc(4);
  writeInt16(key, 2, MARKER_TYPE[options.type]);
  const value = Buffer.alloc(6);
  writeInt32(value, 2, options.coordinatorEpoch);
  return buildBatch([{ key, value, timestamp: options.timestamp }], {
    baseOffset: options.baseOffset,
    leaderEpoch: options.leaderEpoch,
    producerId: options.producerId,
    producerEpoch: options.producerEpoch,
    transactional: true,
    control: true,
  });
}

function toBytes(value: Uint8Array | string | null | undefined): Uint8Array | null {
  if (value === null || value === undefined) return null;
  return typeof value === 'string' ? Buffer.from(value) : value;
}

function sizedBytes(value: Uint8Array | null): number {
  return value === null ? 1 : varintBytes(value.length) + value.length;
}

function writeSized(buffer: Buffer, at: number, value: Uint8Array | null): number {
  if (value === null) return writeVarint(buffer, at, -1);
  const start = writeVarint(buffer, at, value.length);
  buffer.set(value, start);
  return start + value.length;
}
