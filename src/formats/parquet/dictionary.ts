// Dictionary encoding of one chunk: distinct values by first occurrence, and for each value its index.
// Given up when the values hardly repeat, so that it costs little where it gains nothing.
// Source: parquet-format, Encodings.md, "Dictionary Encoding".
import type { ByteValues, WordValues } from './values.ts';

/** Entries and bytes of a dictionary at most: what readers keep in cache, and indices stay narrow. */
export const MAX_ENTRIES = 1 << 16;
export const MAX_BYTES = 1 << 20;

/** After this many values, distinct ones must be fewer than 3 of 4. */
const TRIAL_VALUES = 4096;

export interface Dictionary {
  /** The slots whose values are the entries, in order. */
  readonly entries: Int32Array;
  /** For each value its entry. Valid until the next dictionary is built with the same builder. */
  readonly indices: Int32Array;
}

/** Open-addressing hash table over slots of a column. Its arrays are kept from chunk to chunk. */
export class DictionaryBuilder {
  #indices = new Int32Array(1 << 16);
  #entries = new Int32Array(1 << 10);
  #table = new Int32Array(1 << 12);
  #mask = 0;
  #count = 0;

  /** The dictionary of all values, or null when it would be too large or gain too little. */
  build(values: ByteValues | WordValues): Dictionary | null {
    if (values.count === 0) return null;
    if (this.#indices.length < values.count) this.#indices = new Int32Array(values.count * 2);
    this.#count = 0;
    this.#resetTable(1 << 12);
    const done = values.kind === 'bytes' ? this.#addBytes(values) : this.#addWords(values);
    if (!done || this.#count > values.count * 0.75) return null;
    const entries = this.#entries.slice(0, this.#count);
    return { entries, indices: this.#indices };
  }

  #resetTable(size: number): void {
    if (this.#table.length < size) this.#table = new Int32Array(size);
    this.#table.fill(0, 0, size);
    this.#mask = size - 1;
  }

  /** Appends `slot` as an entry. False when the dictionary has become useless. */
  #addEntry(slot: number, seen: number): boolean {
    if (this.#count === MAX_ENTRIES) return false;
    if (seen >= TRIAL_VALUES && this.#count > seen * 0.75) return false;
    if (this.#count === this.#entries.length) {
      const larger = new Int32Array(this.#entries.length * 2);
      larger.set(this.#entries);
      this.#entries = larger;
    }
    this.#entries[this.#count++] = slot;
    return true;
  }

  /** 32-bit, 64-bit and fixed-width values as words of 32 bits. */
  #addWords(values: WordValues): boolean {
    const { words, perValue } = values;
    const hashOf = (slot: number) => {
      let hash = 0;
      for (let i = 0, at = slot * perValue; i < perValue; i++) {
        hash = Math.imul(hash ^ words[at + i]!, 0x9e3779b1);
        hash ^= hash >>> 15;
      }
      return hash;
    };
    const same = (a: number, b: number) => {
      for (let i = 0; i < perValue; i++) {
        if (words[a * perValue + i] !== words[b * perValue + i]) return false;
      }
      return true;
    };
    for (let i = 0; i < values.count; i++) {
      const slot = values.slots === null ? i : values.slots[i]!;
      let probe = hashOf(slot) & this.#mask;
      let found = this.#table[probe]!;
      while (found !== 0 && !same(slot, this.#entries[found - 1]!)) {
        probe = (probe + 1) & this.#mask;
        found = this.#table[probe]!;
      }
      if (found === 0) {
        if (!this.#addEntry(slot, i)) return false;
        found = this.#count;
        this.#table[probe] = found;
        if (this.#count * 2 > this.#mask) this.#rehash(hashOf);
      }
      this.#indices[i] = found - 1;
    }
    return this.#count * perValue * 4 <= MAX_BYTES;
  }

  #addBytes(values: ByteValues): boolean {
    const { data, offsets } = values;
    const hashOf = (slot: number) => {
      const end = offsets[slot + 1]!;
      let hash = end - offsets[slot]!;
      for (let at = offsets[slot]!; at < end; at++) hash = Math.imul(hash ^ data[at]!, 0x01000193);
      return hash ^ (hash >>> 15);
    };
    const same = (a: number, b: number) => {
      const length = offsets[a + 1]! - offsets[a]!;
      if (offsets[b + 1]! - offsets[b]! !== length) return false;
      for (let i = 0, x = offsets[a]!, y = offsets[b]!; i < length; i++) {
        if (data[x + i] !== data[y + i]) return false;
      }
      return true;
    };
    let bytes = 0;
    for (let i = 0; i < values.count; i++) {
      const slot = values.slots === null ? i : values.slots[i]!;
      let probe = hashOf(slot) & this.#mask;
      let found = this.#table[probe]!;
      while (found !== 0 && !same(slot, this.#entries[found - 1]!)) {
        probe = (probe + 1) & this.#mask;
        found = this.#table[probe]!;
      }
      if (found === 0) {
        bytes += offsets[slot + 1]! - offsets[slot]! + 4;
        if (bytes > MAX_BYTES || !this.#addEntry(slot, i)) return false;
        found = this.#count;
        this.#table[probe] = found;
        if (this.#count * 2 > this.#mask) this.#rehash(hashOf);
      }
      this.#indices[i] = found - 1;
    }
    return true;
  }

  #rehash(hashOf: (slot: number) => number): void {
    this.#resetTable((this.#mask + 1) * 4);
    for (let entry = 0; entry < this.#count; entry++) {
      let probe = hashOf(this.#entries[entry]!) & this.#mask;
      while (this.#table[probe] !== 0) probe = (probe + 1) & this.#mask;
      this.#table[probe] = entry + 1;
    }
  }
}
