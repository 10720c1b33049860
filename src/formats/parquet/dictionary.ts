// Dictionary encoding of one chunk: distinct values by first occurrence, and for each value its index.
// Given up when the values hardly repeat, so that it costs little where it gains nothing.
// Source: parquet-format, Encodings.md, "Dictionary Encoding".
import type { ValueCodes } from '../arrow/value-codes.ts';
import { byteValues } from '../byte-values.ts';
import type { ByteValues, WordValues } from './values.ts';

/** Entries of a dictionary at most: indices stay narrow. */
const MAX_ENTRIES = 1 << 16;

/** After this many values, distinct ones must be fewer than 3 of 4. */
const TRIAL_VALUES = 4096;

/** Integers that lie this close together are told apart by a table instead of a hash. */
const NARROW_RANGE = 1 << 14;

/** Places of the table at first: few where there are few values. */
const tableFor = (values: number) => (values < 1 << 9 ? 1 << 10 : 1 << 12);

const mixPair = (a: number, b: number) => {
  const hash = Math.imul(a ^ Math.imul(b, 0x85ebca6b), 0x9e3779b1);
  return hash ^ (hash >>> 15);
};

/** As `byteValues`, of values of whole words. */
function wordValues({ words, perValue }: WordValues) {
  return {
    hashOf: (slot: number) => {
      let hash = 0;
      for (let i = 0, at = slot * perValue; i < perValue; i++) hash = mixPair(hash, words[at + i]!);
      return hash;
    },
    same: (a: number, b: number) => {
      for (let i = 0; i < perValue; i++) {
        if (words[a * perValue + i] !== words[b * perValue + i]) return false;
      }
      return true;
    },
  };
}

/** Bytes that a value takes in a dictionary, as its size is limited. */
function plainSizeOf(values: ByteValues | WordValues): (slot: number) => number {
  if (values.kind === 'words') return () => values.perValue * 4;
  const { offsets } = values;
  return (slot) => offsets[slot + 1]! - offsets[slot]! + 4;
}

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
  /** Entries by the codes of their values. */
  #byCode = new Int32Array(0);
  #mask = 0;
  #count = 0;
  #maxBytes = 0;

  /** The dictionary of all values, or null when it would take more than `maxBytes` or gain too little. */
  build(values: ByteValues | WordValues, maxBytes: number): Dictionary | null {
    if (values.count === 0 || maxBytes === 0) return null;
    this.#maxBytes = maxBytes;
    if (this.#indices.length < values.count) this.#indices = new Int32Array(values.count * 2);
    this.#count = 0;
    this.#resetTable(tableFor(values.count));
    const done = this.#addAll(values);
    if (!done || this.#count > values.count * 0.75) return null;
    const entries = this.#entries.slice(0, this.#count);
    return { entries, indices: this.#indices };
  }

  #addAll(values: ByteValues | WordValues): boolean {
    const { codes } = values;
    if (codes !== null && codes.rows > 0) return this.#addCoded(values, codes);
    return values.kind === 'bytes' ? this.#addBytes(values) : this.#addNumbers(values);
  }

  #addNumbers(values: WordValues): boolean {
    if (values.perValue <= 2 && values.width % 4 === 0) {
      const narrow = this.#addNarrow(values);
      if (narrow !== undefined) return narrow;
      this.#resetTable(tableFor(values.count));
    }
    return values.perValue === 2 ? this.#addPairs(values) : this.#addWords(values);
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

  /** Integers of a narrow range by a table of that range: no hashing. Undefined when the range is wide. */
  #addNarrow({ words, perValue, slots, count }: WordValues): boolean | undefined {
    const first = words[slots === null ? 0 : slots[0]! * perValue]!;
    let low = first;
    let high = first;
    for (let i = 0; i < count; i++) {
      const at = (slots === null ? i : slots[i]!) * perValue;
      const value = words[at]!;
      if (perValue === 2 && words[at + 1] !== value >> 31) return undefined;
      if (value < low) low = value;
      if (value > high) high = value;
      if (high - low >= NARROW_RANGE) return undefined;
    }
    this.#resetTable(NARROW_RANGE);
    const table = this.#table;
    for (let i = 0; i < count; i++) {
      const slot = slots === null ? i : slots[i]!;
      const key = words[slot * perValue]! - low;
      let found = table[key]!;
      if (found === 0) {
        if (!this.#addEntry(slot, i)) return false;
        found = table[key] = this.#count;
      }
      this.#indices[i] = found - 1;
    }
    return this.#count * perValue * 4 <= this.#maxBytes;
  }

  /** 64-bit values by hash. */
  #addPairs({ words, slots, count }: WordValues): boolean {
    const hashOf = (slot: number) => mixPair(words[2 * slot]!, words[2 * slot + 1]!);
    for (let i = 0; i < count; i++) {
      const slot = slots === null ? i : slots[i]!;
      const low = words[2 * slot]!;
      const high = words[2 * slot + 1]!;
      let probe = mixPair(low, high) & this.#mask;
      let found = this.#table[probe]!;
      while (found !== 0) {
        const other = this.#entries[found - 1]! * 2;
        if (words[other] === low && words[other + 1] === high) break;
        probe = (probe + 1) & this.#mask;
        found = this.#table[probe]!;
      }
      if (found === 0) {
        found = this.#insert(slot, probe, i);
        if (found === 0) return false;
        if (this.#count * 2 > this.#mask) this.#rehash(hashOf);
      }
      this.#indices[i] = found - 1;
    }
    return this.#count * 8 <= this.#maxBytes;
  }

  /** Values of any fixed width, as words of 32 bits, by hash. */
  #addWords(values: WordValues): boolean {
    const { perValue, slots, count } = values;
    const { hashOf, same } = wordValues(values);
    for (let i = 0; i < count; i++) {
      const slot = slots === null ? i : slots[i]!;
      let probe = hashOf(slot) & this.#mask;
      let found = this.#table[probe]!;
      while (found !== 0 && !same(slot, this.#entries[found - 1]!)) {
        probe = (probe + 1) & this.#mask;
        found = this.#table[probe]!;
      }
      if (found === 0) {
        found = this.#insert(slot, probe, i);
        if (found === 0) return false;
        if (this.#count * 2 > this.#mask) this.#rehash(hashOf);
      }
      this.#indices[i] = found - 1;
    }
    return this.#count * perValue * 4 <= this.#maxBytes;
  }

  /** A new entry at an empty place of the table: its number from 1, or 0 when the dictionary is given up. */
  #insert(slot: number, probe: number, seen: number): number {
    if (!this.#addEntry(slot, seen)) return 0;
    this.#table[probe] = this.#count;
    return this.#count;
  }

  #addBytes(values: ByteValues): boolean {
    const { offsets } = values;
    const { hashOf, same } = byteValues(values);
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
        if (bytes > this.#maxBytes) return false;
        found = this.#insert(slot, probe, i);
        if (found === 0) return false;
        if (this.#count * 2 > this.#mask) this.#rehash(hashOf);
      }
      this.#indices[i] = found - 1;
    }
    return true;
  }

  /** Values that mostly have codes: by a table of those, and by hash where a code is new to it or there is none. */
  #addCoded(values: ByteValues | WordValues, codes: ValueCodes): boolean {
    const { slots, count } = values;
    const { hashOf, same } = values.kind === 'bytes' ? byteValues(values) : wordValues(values);
    const sizeOf = plainSizeOf(values);
    const { array, rows, size } = codes;
    if (this.#byCode.length < size) this.#byCode = new Int32Array(size);
    const byCode = this.#byCode.fill(0, 0, size);
    let bytes = 0;
    for (let i = 0; i < count; i++) {
      const slot = slots === null ? i : slots[i]!;
      const code = slot < rows ? array[slot]! : -1;
      let found = code < 0 ? 0 : byCode[code]!;
      if (found === 0) {
        let probe = hashOf(slot) & this.#mask;
        found = this.#table[probe]!;
        while (found !== 0 && !same(slot, this.#entries[found - 1]!)) {
          probe = (probe + 1) & this.#mask;
          found = this.#table[probe]!;
        }
        if (found === 0) {
          bytes += sizeOf(slot);
          if (bytes > this.#maxBytes) return false;
          found = this.#insert(slot, probe, i);
          if (found === 0) return false;
          if (this.#count * 2 > this.#mask) this.#rehash(hashOf);
        }
        if (code >= 0) byCode[code] = found;
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
