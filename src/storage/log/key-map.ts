// Which offset holds the newest record of a key: an open-addressing table of 128-bit keyed hashes in flat memory, 24
// bytes a key whatever its length, bounded. Hashes stand for keys, as in Kafka's cleaner; Kafka's are MD5, for which
// anybody can make two keys that collide and so have another's record compacted away. Ours are HalfSipHash-2-4 twice,
// under keys drawn anew for each map: nobody outside can aim, and by chance a billion keys collide once in 10^20.
import { assert } from '../../base/assert.ts';

/** Bytes of memory per slot: four words of hash, one double for the offset. */
export const KEY_SLOT_BYTES = 24;
/** Bytes of seed: two independent keys of 64 bits. */
export const KEY_SEED_BYTES = 16;

const FIRST_SLOTS = 1_024;
/** Fuller than this, probing takes long; Kafka's log.cleaner.io.buffer.load.factor is 0.9. */
const LOAD_FACTOR = 0.8;

export class KeyMap {
  readonly #maxSlots: number;
  readonly #seed: Int32Array;
  readonly #hash = new Int32Array(4);
  #slots = 0;
  #hashes = new Int32Array(0);
  /** Offset + 1; 0: the slot is free. */
  #offsets = new Float64Array(0);
  #size = 0;

  /** Never takes more than `maxBytes`, cut to a power of two of slots. `seed` has {@link KEY_SEED_BYTES}. */
  constructor(maxBytes: number, seed: Uint8Array) {
    assert(seed.length === KEY_SEED_BYTES, 'a key map is seeded with 16 bytes');
    const slots = Math.floor(maxBytes / KEY_SLOT_BYTES);
    this.#maxSlots = 2 ** Math.floor(Math.log2(Math.max(slots, 2)));
    this.#seed = new Int32Array(seed.slice().buffer);
  }

  /** Keys in the map. */
  get size(): number {
    return this.#size;
  }

  /** Memory in use. */
  get bytes(): number {
    return this.#slots * KEY_SLOT_BYTES;
  }

  /** True when no further key may be added; those that are here may still be raised. */
  get full(): boolean {
    return this.#size >= Math.floor(this.#maxSlots * LOAD_FACTOR);
  }

  /** Says that the key in `bytes[start, start + length)` is at `offset`. @returns false when the map is full. */
  put(bytes: Uint8Array, start: number, length: number, offset: number): boolean {
    hashKey(bytes, start, length, this.#seed, this.#hash);
    if (this.#size + 1 > this.#slots * LOAD_FACTOR && !this.#grow() && this.#find() < 0)
      return false;
    let slot = this.#find();
    if (slot < 0) {
      if (this.full) return false;
      slot = -slot - 1;
      for (let n = 0; n < 4; n += 1) this.#hashes[slot * 4 + n] = this.#hash[n]!;
      this.#size += 1;
    }
    this.#offsets[slot] = offset + 1;
    return true;
  }

  /** The newest offset of the key, −1 when it isn't here. */
  get(bytes: Uint8Array, start: number, length: number): number {
    if (this.#size === 0) return -1;
    hashKey(bytes, start, length, this.#seed, this.#hash);
    const slot = this.#find();
    return slot < 0 ? -1 : this.#offsets[slot]! - 1;
  }

  /** The slot of the present hash, or −1 minus the free slot where it would go. */
  #find(): number {
    const hashes = this.#hashes;
    const hash = this.#hash;
    const a = hash[0]!;
    const mask = this.#slots - 1;
    let slot = a & mask;
    for (;;) {
      if (this.#offsets[slot] === 0) return -slot - 1;
      const at = slot * 4;
      if (hashes[at] === a && hashes[at + 1] === hash[1] && hashes[at + 2] === hash[2])
        if (hashes[at + 3] === hash[3]) return slot;
      slot = (slot + 1) & mask;
    }
  }

  /** Doubles the table. @returns false at its bound. */
  #grow(): boolean {
    const slots = this.#slots === 0 ? Math.min(FIRST_SLOTS, this.#maxSlots) : this.#slots * 2;
    if (slots > this.#maxSlots) return false;
    const [hashes, offsets, mask] = [this.#hashes, this.#offsets, slots - 1];
    this.#hashes = new Int32Array(slots * 4);
    this.#offsets = new Float64Array(slots);
    for (let n = 0; n < this.#slots; n += 1) {
      if (offsets[n] === 0) continue;
      let slot = hashes[n * 4]! & mask;
      while (this.#offsets[slot] !== 0) slot = (slot + 1) & mask;
      this.#hashes.set(hashes.subarray(n * 4, n * 4 + 4), slot * 4);
      this.#offsets[slot] = offsets[n]!;
    }
    this.#slots = slots;
    return true;
  }
}

/**
 * HalfSipHash-2-4 with 64 bits of output (Aumasson, Bernstein), once under each half of `seed`, into `into`.
 * On words of 32 bits, which JavaScript's integers are; SipHash itself would need words of 64.
 */
export function hashKey(
  bytes: Uint8Array,
  start: number,
  length: number,
  seed: Int32Array,
  into: Int32Array,
): void {
  halfSipHash(bytes, start, length, seed, into, 0);
  halfSipHash(bytes, start, length, seed, into, 2);
}

/** One loop for all phases, since a closure over the state costs five times as much: words, then two of finalisation. */
function halfSipHash(
  bytes: Uint8Array,
  start: number,
  length: number,
  seed: Int32Array,
  into: Int32Array,
  at: number,
): void {
  let v0 = seed[at]!;
  let v1 = seed[at + 1]! ^ 0xee;
  let v2 = 0x6c796765 ^ v0;
  let v3 = 0x74656462 ^ seed[at + 1]!;
  const words = length >>> 2;
  for (let n = 0; n <= words + 2; n += 1) {
    let word = 0;
    let rounds = 2;
    if (n < words) {
      const from = start + n * 4;
      word =
        bytes[from]! |
        (bytes[from + 1]! << 8) |
        (bytes[from + 2]! << 16) |
        (bytes[from + 3]! << 24);
    } else if (n === words) word = lastWord(bytes, start, length);
    else {
      rounds = 4;
      if (n === words + 1) v2 ^= 0xee;
      else v1 ^= 0xdd;
    }
    v3 ^= word;
    for (; rounds > 0; rounds -= 1) {
      v0 = (v0 + v1) | 0;
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
      v0 = (v0 << 16) | (v0 >>> 16);
      v2 = (v2 + v3) | 0;
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
      v0 = (v0 + v3) | 0;
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
      v2 = (v2 + v1) | 0;
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
      v2 = (v2 << 16) | (v2 >>> 16);
    }
    v0 ^= word;
    if (n === words + 1) into[at] = v1 ^ v3;
  }
  into[at + 1] = v1 ^ v3;
}

/** The bytes after the last whole word, and the length in the highest byte. */
function lastWord(bytes: Uint8Array, start: number, length: number): number {
  const end = start + length;
  let word = length << 24;
  for (let n = end - (length & 3), shift = 0; n < end; n += 1, shift += 8)
    word |= bytes[n]! << shift;
  return word;
}
