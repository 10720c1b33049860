// Finds the known fields of an object by the bytes of their keys. Keys mostly come in the same order in every
// record, so the field after the last one is tried first; otherwise a hash of the key decides.
import { type JsonCursor, QUOTE } from './cursor.ts';

export class FieldTable<T> {
  readonly entries: readonly T[];
  readonly #keys: readonly Uint8Array[];
  /** The keys as they are mostly written: only what must be escaped is. */
  readonly #written: readonly Uint8Array[];
  /** Open addressing: entry number + 1, 0 for none. */
  readonly #slots: Int32Array;

  constructor(fields: ReadonlyMap<string, T>) {
    this.entries = [...fields.values()];
    const encoder = new TextEncoder();
    const names = [...fields.keys()];
    this.#keys = names.map((name) => encoder.encode(name));
    this.#written = names.map((name) => encoder.encode(JSON.stringify(name).slice(1, -1)));
    let size = 8;
    while (size < fields.size * 2) size *= 2;
    this.#slots = new Int32Array(size);
    this.#keys.forEach((key, i) => {
      let slot = hash(key, 0, key.length) & (size - 1);
      while (this.#slots[slot] !== 0) slot = (slot + 1) & (size - 1);
      this.#slots[slot] = i + 1;
    });
  }

  /** Takes the key at the cursor's quote, and the colon. The entry's number, `expected` if it is that; −1 if unknown. */
  take(cursor: JsonCursor, expected: number): number {
    if (expected < this.#written.length && this.#isNext(cursor, this.#written[expected]!)) {
      return expected;
    }
    cursor.key();
    const { text, textStart, textEnd } = cursor;
    const mask = this.#slots.length - 1;
    let slot = hash(text, textStart, textEnd) & mask;
    for (let found = this.#slots[slot]!; found !== 0; found = this.#slots[slot]!) {
      if (equal(this.#keys[found - 1]!, text, textStart, textEnd)) return found - 1;
      slot = (slot + 1) & mask;
    }
    return -1;
  }

  /** Takes a key written so when it is what comes next, quotes and all. */
  #isNext(cursor: JsonCursor, key: Uint8Array): boolean {
    const { bytes } = cursor;
    const start = cursor.pos + 1;
    const end = start + key.length;
    if (end >= cursor.end || bytes[end] !== QUOTE) return false;
    for (let i = 0; i < key.length; i++) if (bytes[start + i] !== key[i]) return false;
    cursor.pos = end + 1;
    cursor.expect(0x3a);
    return true;
  }
}

function hash(bytes: Uint8Array, start: number, end: number): number {
  let value = end - start;
  for (let i = start; i < end; i++) value = Math.imul(value ^ bytes[i]!, 0x01000193);
  return value ^ (value >>> 15);
}

function equal(key: Uint8Array, bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start !== key.length) return false;
  for (let i = 0; i < key.length; i++) if (bytes[start + i] !== key[i]) return false;
  return true;
}
