// Walks the records of one batch without making an object per record: after `next()` the fields say where key,
// value and headers lie in `bytes`. Table workers read millions of records a second through it.
// Not for: trust. It throws when the framing lies, but whether offsets ascend is validate.ts's question.
import { FloeError } from '../base/error.ts';
import { decompress } from './codecs.ts';
import {
  Attribute,
  attributes,
  BATCH_HEADER_BYTES,
  baseOffset,
  baseTimestamp,
  batchEnd,
  maxTimestamp,
  recordCount,
} from './record-batch.ts';
import { protocolSettings } from './settings.ts';

const EMPTY = new Uint8Array(0);

export interface OpenOptions {
  /** Offset of the batch's first record where the header doesn't say it (raw stored bytes). */
  readonly baseOffset?: number;
  /** Most bytes that a compressed batch may unfold into; by default the setting's default. */
  readonly maxDecompressedBytes?: number;
}

/** Reusable: `open` a batch, then `next()` until it returns false. All positions point into {@link bytes}. */
export class RecordCursor {
  /** The batch, or its decompressed records. */
  bytes: Uint8Array = EMPTY;
  /** Records of the batch, by its header. */
  count = 0;
  baseOffset = 0;
  offsetDelta = 0;
  timestampDelta = 0;
  /** −1 for null, also below. */
  keyLength = -1;
  keyStart = 0;
  valueLength = -1;
  valueStart = 0;
  headerCount = 0;
  headerKeyStart = 0;
  headerKeyLength = 0;
  headerValueStart = 0;
  headerValueLength = -1;
  /** First and last byte (exclusive) of the record in `bytes`, without its length prefix. */
  recordStart = 0;
  recordEnd = 0;
  #baseTimestamp = 0;
  #logAppendTime = false;
  #position = 0;
  #end = 0;
  #left = 0;
  #headersLeft = 0;
  /** Where the last slowly read varint ended. */
  #after = 0;

  /**
   * Starts at the first record of the batch at `at`. Decompresses if needed.
   * @throws FloeError `corrupt` when there is no whole batch or it can't be decompressed, `exhausted` beyond the bound.
   */
  open(batch: Uint8Array, at = 0, options: OpenOptions = {}): void {
    const end = batchEnd(batch, at);
    if (end === -1) throw new FloeError('corrupt', `no whole record batch at ${at}`);
    const flags = attributes(batch, at);
    const type = flags & Attribute.COMPRESSION;
    this.#logAppendTime = (flags & Attribute.LOG_APPEND_TIME) !== 0;
    this.#baseTimestamp = this.#logAppendTime ? maxTimestamp(batch, at) : baseTimestamp(batch, at);
    this.baseOffset = options.baseOffset ?? baseOffset(batch, at);
    this.count = recordCount(batch, at);
    this.#left = this.count;
    if (type === 0) {
      this.bytes = batch;
      this.#position = at + BATCH_HEADER_BYTES;
      this.#end = end;
      return;
    }
    const limit =
      options.maxDecompressedBytes ?? protocolSettings['batch.decompressed.max.bytes'].default;
    this.bytes = decompress(type, batch.subarray(at + BATCH_HEADER_BYTES, end), limit);
    this.#position = 0;
    this.#end = this.bytes.length;
  }

  /** Lets go of the batch's bytes. */
  close(): void {
    this.bytes = EMPTY;
    this.count = 0;
    this.#left = 0;
  }

  /** Offset of the current record. */
  get offset(): number {
    return this.baseOffset + this.offsetDelta;
  }

  /** Milliseconds; −1 for none. */
  get timestamp(): number {
    return this.#logAppendTime ? this.#baseTimestamp : this.#baseTimestamp + this.timestampDelta;
  }

  /** Bytes after the last record read: 0 at the end of an honest batch. */
  get rest(): number {
    return this.#end - this.#position;
  }

  /** Moves to the next record. @throws FloeError `corrupt` when its framing lies. */
  next(): boolean {
    if (this.#left <= 0) return false;
    this.#left -= 1;
    const bytes = this.bytes;
    let at = this.#position;
    // Reads past the end yield undefined, which counts as 0 here; the checks below catch it.
    let byte = bytes[at++]!;
    let raw = byte;
    if (byte >= 0x80) {
      byte = bytes[at++]!;
      raw = (raw & 0x7f) | (byte << 7);
      if (byte >= 0x80) {
        raw = this.#varint(at - 2);
        at = this.#after;
      }
    }
    const length = (raw >>> 1) ^ -(raw & 1);
    const end = at + length;
    // Attributes, three varints of deltas and lengths, a header count: no record is shorter than 6 bytes.
    if (length < 6 || end > this.#end) throw lying('length', length, this.#position);
    this.recordStart = at;
    this.recordEnd = end;
    this.#position = end;
    at += 1;

    byte = bytes[at++]!;
    if (byte < 0x80) {
      this.timestampDelta = (byte >>> 1) ^ -(byte & 1);
    } else {
      this.timestampDelta = this.#varlong(at - 1);
      at = this.#after;
    }

    raw = byte = bytes[at++]!;
    if (byte >= 0x80) {
      byte = bytes[at++]!;
      raw = (raw & 0x7f) | (byte << 7);
      if (byte >= 0x80) {
        raw = this.#varint(at - 2);
        at = this.#after;
      }
    }
    this.offsetDelta = (raw >>> 1) ^ -(raw & 1);

    raw = byte = bytes[at++]!;
    if (byte >= 0x80) {
      raw = this.#varint(at - 1);
      at = this.#after;
    }
    const keyLength = (raw >>> 1) ^ -(raw & 1);
    if (keyLength < -1 || keyLength > end - at) throw lying('key length', keyLength, at);
    this.keyLength = keyLength;
    this.keyStart = at;
    if (keyLength > 0) at += keyLength;

    raw = byte = bytes[at++]!;
    if (byte >= 0x80) {
      byte = bytes[at++]!;
      raw = (raw & 0x7f) | (byte << 7);
      if (byte >= 0x80) {
        raw = this.#varint(at - 2);
        at = this.#after;
      }
    }
    const valueLength = (raw >>> 1) ^ -(raw & 1);
    if (valueLength < -1 || valueLength > end - at) throw lying('value length', valueLength, at);
    this.valueLength = valueLength;
    this.valueStart = at;
    if (valueLength > 0) at += valueLength;

    raw = byte = bytes[at++]!;
    if (byte >= 0x80) {
      raw = this.#varint(at - 1);
      at = this.#after;
    }
    const headerCount = (raw >>> 1) ^ -(raw & 1);
    // A header takes two bytes at least; without headers the record must end here.
    if (headerCount === 0 ? at !== end : headerCount < 0 || headerCount * 2 > end - at) {
      throw lying('header count', headerCount, at);
    }
    this.headerCount = headerCount;
    this.#headersLeft = headerCount;
    this.headerValueStart = at;
    this.headerValueLength = 0;
    return true;
  }

  /** Moves to the next header of the current record; false after the last. Headers may be left unread. */
  nextHeader(): boolean {
    const end = this.recordEnd;
    let at = this.headerValueStart + Math.max(this.headerValueLength, 0);
    if (this.#headersLeft === 0) {
      if (at !== end) throw lying('rest after headers', end - at, at);
      return false;
    }
    this.#headersLeft -= 1;
    const keyLength = this.#zigzag(at);
    at = this.#after;
    if (keyLength < 0 || keyLength > end - at) throw lying('header key length', keyLength, at);
    this.headerKeyStart = at;
    this.headerKeyLength = keyLength;
    at += keyLength;
    const valueLength = this.#zigzag(at);
    at = this.#after;
    if (valueLength < -1 || valueLength > end - at) {
      throw lying('header value length', valueLength, at);
    }
    this.headerValueStart = at;
    this.headerValueLength = valueLength;
    return true;
  }

  /** Goes back before the first header of the current record: somebody may have read them already. */
  restartHeaders(): void {
    // The count lies behind the value; it was checked when the record was opened.
    this.#zigzag(this.valueStart + Math.max(this.valueLength, 0));
    this.#headersLeft = this.headerCount;
    this.headerValueStart = this.#after;
    this.headerValueLength = 0;
  }

  #zigzag(at: number): number {
    const raw = this.#varint(at);
    return (raw >>> 1) ^ -(raw & 1);
  }

  /** An unsigned varint of at most 5 bytes as 32 bits; leaves its end in `#after`. */
  #varint(at: number): number {
    const bytes = this.bytes;
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = bytes[at++]!;
      value |= (byte & 0x7f) << shift;
      if (!(byte >= 0x80)) {
        this.#after = at;
        return value;
      }
    }
    throw lying('varint longer than bytes', 5, at);
  }

  /** A zigzag varint of at most 10 bytes, rounded beyond 2^53; leaves its end in `#after`. */
  #varlong(at: number): number {
    const bytes = this.bytes;
    let low = 0;
    let shift = 0;
    for (; shift < 28; shift += 7) {
      const byte = bytes[at++]!;
      low |= (byte & 0x7f) << shift;
      if (!(byte >= 0x80)) {
        this.#after = at;
        return (low >>> 1) ^ -(low & 1);
      }
    }
    let scale = 2 ** 28;
    let value = low;
    for (; shift < 70; shift += 7) {
      const byte = bytes[at++]!;
      value += (byte & 0x7f) * scale;
      scale *= 128;
      if (!(byte >= 0x80)) {
        this.#after = at;
        return (low & 1) === 0 ? value / 2 : -(value + 1) / 2;
      }
    }
    throw lying('varint longer than bytes', 10, at);
  }
}

function lying(what: string, value: number, at: number): FloeError {
  return new FloeError('corrupt', `malformed record: ${what} ${value} at ${at}`);
}
