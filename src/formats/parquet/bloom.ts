// Split-block bloom filters of column chunks: with them a reader skips row groups that can't hold the one id it looks
// for. Distinct values are hashed once where a dictionary knows them.
// Source: parquet-format, BloomFilter.md.
import { serializeThrift } from './thrift.ts';
import type { ByteValues, WordValues } from './values.ts';
import { type Hash64, hashBytes, hashPair, hashWord } from './xxhash64.ts';

/** One odd multiplier per word of a block. */
const SALT = Int32Array.of(
  0x47b6137b,
  0x44974d91,
  0x8824ad5b,
  0xa2b7289d,
  0x705495c7,
  0x2df1424b,
  0x9efc4947,
  0x5c6bfb31,
);

/** A block is 8 words. */
const BLOCK_BYTES = 32;

export interface BloomOptions {
  /** Probability, above 0 and below 1, that a value which isn't there seems to be. */
  readonly falsePositives: number;
  /** Largest bitset in bytes; a chunk with more distinct values than fit gets more false positives. */
  readonly maxBytes: number;
}

/** Bytes of the bitset for `distinct` values: a power of two, as other writers have it. */
export function bloomBytes(
  distinct: number,
  { falsePositives, maxBytes }: Readonly<BloomOptions>,
): number {
  const bits = (-8 * distinct) / Math.log(1 - falsePositives ** (1 / 8));
  let bytes = BLOCK_BYTES;
  while (bytes * 8 < bits && bytes * 2 <= maxBytes) bytes *= 2;
  return bytes;
}

const hash: Hash64 = { high: 0, low: 0 };

/** Sets the hash's bits, one in each word of its block. */
function insert(words: Int32Array, { high, low }: Hash64): void {
  const blocks = words.length >>> 3;
  // The product of 32 bits and a block count stays below 2^53.
  const block = Math.floor(((high >>> 0) * blocks) / 2 ** 32) << 3;
  for (let i = 0; i < 8; i++) words[block + i]! |= 1 << (Math.imul(low, SALT[i]!) >>> 27);
}

/**
 * Header and bitset of a filter over the values at `entries` (slots of the dictionary's entries), or over all of them
 * when that is null.
 */
export function bloomFilter(
  values: ByteValues | WordValues,
  entries: Int32Array | null,
  options: BloomOptions,
): Uint8Array {
  const slots = entries ?? values.slots;
  const count = entries === null ? values.count : entries.length;
  const bytes = bloomBytes(count, options);
  const words = new Int32Array(bytes / 4);
  if (values.kind === 'bytes') insertBytes(words, values, { slots, count });
  else insertWords(words, values, { slots, count });
  const header = serializeThrift({
    field_1: bytes,
    field_2: { field_1: {} },
    field_3: { field_1: {} },
    field_4: { field_1: {} },
  });
  const filter = new Uint8Array(header.length + bytes);
  filter.set(header);
  filter.set(new Uint8Array(words.buffer), header.length);
  return filter;
}

interface Selected {
  readonly slots: Int32Array | null;
  readonly count: number;
}

function insertBytes(
  words: Int32Array,
  { data, offsets }: ByteValues,
  { slots, count }: Selected,
): void {
  for (let i = 0; i < count; i++) {
    const slot = slots === null ? i : slots[i]!;
    hashBytes(data, offsets[slot]!, offsets[slot + 1]!, hash);
    insert(words, hash);
  }
}

function insertWords(
  words: Int32Array,
  { words: values, perValue, width }: WordValues,
  { slots, count }: Selected,
): void {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  for (let i = 0; i < count; i++) {
    const at = (slots === null ? i : slots[i]!) * perValue;
    if (width === 4) hashWord(values[at]!, hash);
    else if (width === 8) hashPair(values[at]!, values[at + 1]!, hash);
    else hashBytes(bytes, at * 4, at * 4 + width, hash);
    insert(words, hash);
  }
}
