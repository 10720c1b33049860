// How records name the schema they were written with: Confluent's wire format, before the value or in a header.
// A mark is magic 0 and an id of four bytes, or magic 1 and a GUID of sixteen; Protobuf's is followed by the indexes
// of the message within its file. A header's mark wins over what the value may start with, as in the clients.
// Source: Confluent documentation, "Wire format"; the clients' `SchemaId`.
import { uuidToText } from '../../base/prng.ts';
import type { RecordCursor } from '../../protocol/record-cursor.ts';

/** Magic 0 and an id. */
export const ID_BYTES = 5;
/** Magic 1 and a GUID. */
export const GUID_BYTES = 17;

/** Headers that carry marks. */
const VALUE_HEADER = Buffer.from('__value_schema_id');
const KEY_HEADER = Buffer.from('__key_schema_id');

/** The subject's newest version, for values that carry no mark. */
export const LATEST_KEY = 'latest';

/** A schema (`17`, a GUID, `latest`) and, after a slash, the message of a Protobuf file by its indexes (`0`, `1.0`). */
export type SourceKey = string;

export const sourceKey = (schema: string, message: string): SourceKey => `${schema}/${message}`;

/** The inverse of {@link sourceKey}; an empty message where none is named. */
export function splitKey(key: SourceKey): { readonly schema: string; readonly message: string } {
  const at = key.indexOf('/');
  return at < 0
    ? { schema: key, message: '' }
    : { schema: key.slice(0, at), message: key.slice(at + 1) };
}

/** The marks in a record's headers: start −1 when there is none. */
export class HeaderMarks {
  valueStart = -1;
  valueLength = 0;
  keyStart = -1;
  keyLength = 0;

  lengthOf(side: 'key' | 'value'): number {
    return side === 'key' ? this.keyLength : this.valueLength;
  }

  startOf(side: 'key' | 'value'): number {
    return side === 'key' ? this.keyStart : this.valueStart;
  }

  /** Looks through the headers of the record at the cursor, and leaves them unread. */
  scan(cursor: RecordCursor): void {
    this.valueStart = -1;
    this.keyStart = -1;
    if (cursor.headerCount === 0) return;
    while (cursor.nextHeader()) {
      if (cursor.headerValueLength < 0) continue;
      if (isNamed(cursor, VALUE_HEADER)) {
        this.valueStart = cursor.headerValueStart;
        this.valueLength = cursor.headerValueLength;
      } else if (isNamed(cursor, KEY_HEADER)) {
        this.keyStart = cursor.headerValueStart;
        this.keyLength = cursor.headerValueLength;
      }
    }
    cursor.restartHeaders();
  }
}

function isNamed({ bytes, headerKeyStart, headerKeyLength }: RecordCursor, name: Buffer): boolean {
  if (headerKeyLength !== name.length) return false;
  for (let i = 0; i < name.length; i++) if (bytes[headerKeyStart + i] !== name[i]) return false;
  return true;
}

/** Reads the mark at a place; what it says stays in the fields until the next one. */
export class SchemaMark {
  /** Schema part of a source key; '' when there is no mark. */
  schema = '';
  /** The id, −1 for a GUID or none. */
  id = -1;
  /** First byte after the mark, before a message's indexes. */
  end = 0;
  readonly #guid = new Uint8Array(16);
  #guidText = '';

  /** False: no mark is there. A mark equal to the last one costs no text. */
  read(bytes: Uint8Array, start: number, limit: number): boolean {
    const length = limit - start;
    if (length >= ID_BYTES && bytes[start] === 0) {
      const id =
        ((bytes[start + 1]! << 24) |
          (bytes[start + 2]! << 16) |
          (bytes[start + 3]! << 8) |
          bytes[start + 4]!) >>>
        0;
      if (id !== this.id) {
        this.id = id;
        this.schema = String(id);
      }
      this.end = start + ID_BYTES;
      return true;
    }
    if (length < GUID_BYTES || bytes[start] !== 1) return false;
    this.end = start + GUID_BYTES;
    let same = this.#guidText !== '';
    for (let i = 0; i < 16; i++) {
      const byte = bytes[start + 1 + i]!;
      if (this.#guid[i] !== byte) {
        this.#guid[i] = byte;
        same = false;
      }
    }
    if (!same) this.#guidText = uuidToText(this.#guid);
    this.id = -1;
    this.schema = this.#guidText;
    return true;
  }
}

/** Nested messages that indexes may lead through, and the largest index taken for one. */
const MAX_INDEXES = 32;
const MAX_INDEX = 10_000;

/** The indexes of a message: their text and where they end; undefined when that isn't what stands there. */
export function readMessageIndexes(
  bytes: Uint8Array,
  start: number,
  limit: number,
): { readonly message: string; readonly end: number } | undefined {
  const varint = new ZigZag(bytes, start, limit);
  const count = varint.next();
  // A single zero stands for [0], the first message of the file.
  if (count === 0) return { message: '0', end: varint.at };
  if (count < 0 || count > MAX_INDEXES) return undefined;
  const indexes: number[] = [];
  for (let i = 0; i < count; i++) {
    const index = varint.next();
    if (index < 0 || index > MAX_INDEX) return undefined;
    indexes.push(index);
  }
  return { message: indexes.join('.'), end: varint.at };
}

class ZigZag {
  readonly #bytes: Uint8Array;
  readonly #limit: number;
  at: number;

  constructor(bytes: Uint8Array, at: number, limit: number) {
    this.#bytes = bytes;
    this.#limit = limit;
    this.at = at;
  }

  /** −1 when there is no number of at most three bytes. */
  next(): number {
    let value = 0;
    for (let shift = 0; shift < 21; shift += 7) {
      if (this.at >= this.#limit) return -1;
      const byte = this.#bytes[this.at++]!;
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return (value >>> 1) ^ -(value & 1);
    }
    return -1;
  }
}
