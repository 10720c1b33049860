// Byte strings end to end with their offsets, hashed and compared in place: far cheaper than a string per value.
// Shared by dictionaries (parquet/) and clustering by partition (arrow/).

interface ByteStrings {
  /** Value n is bytes `[offsets[n], offsets[n + 1])`. */
  readonly data: Uint8Array;
  readonly offsets: Int32Array;
}

/** A 32-bit hash (FNV-1a, seeded by the length) of a value, and whether two values are the same bytes. */
export function byteValues({ data, offsets }: ByteStrings) {
  return {
    hashOf: (slot: number) => {
      const end = offsets[slot + 1]!;
      let hash = end - offsets[slot]!;
      for (let at = offsets[slot]!; at < end; at++) hash = Math.imul(hash ^ data[at]!, 0x01000193);
      return hash ^ (hash >>> 15);
    },
    same: (a: number, b: number) => {
      const length = offsets[a + 1]! - offsets[a]!;
      if (offsets[b + 1]! - offsets[b]! !== length) return false;
      for (let i = 0, x = offsets[a]!, y = offsets[b]!; i < length; i++) {
        if (data[x + i] !== data[y + i]) return false;
      }
      return true;
    },
  };
}
