// Byte strings end to end with their offsets, hashed and compared in place: far cheaper than a string per value.
// Shared by dictionaries (parquet/) and clustering by partition (arrow/).

interface ByteStrings {
  /** Value n is bytes `[offsets[n], offsets[n + 1])`. */
  readonly data: Uint8Array;
  readonly offsets: Int32Array;
}

/**
 * A 32-bit hash of a value, and whether two values are the same bytes. Four bytes at a time: a step of the hash is a
 * multiplication that the next one waits for, whatever it takes in.
 */
export function byteValues({ data, offsets }: ByteStrings) {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const last = data.length - 4;
  /** One to four bytes as a word. */
  const tail = (at: number, end: number) => {
    if (at <= last) return view.getInt32(at, true) & (-1 >>> ((4 - (end - at)) * 8));
    let word = 0;
    for (let i = end - 1; i >= at; i--) word = (word << 8) | data[i]!;
    return word;
  };
  return {
    hashOf: (slot: number) => {
      const end = offsets[slot + 1]!;
      let at = offsets[slot]!;
      let hash = end - at;
      if (hash <= 4) {
        if (hash > 0) hash = Math.imul(hash ^ tail(at, end), 0x9e3779b1);
        return hash ^ (hash >>> 15) ^ (hash >>> 22);
      }
      for (; at + 4 <= end; at += 4) {
        hash = Math.imul(hash ^ view.getInt32(at, true), 0x9e3779b1);
        hash ^= hash >>> 15;
      }
      if (at < end) hash ^= tail(at, end);
      // Places of a table are low bits: the high ones, where the last bytes of a word are, must come down to them.
      hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
      hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
      return hash ^ (hash >>> 16);
    },
    same: (a: number, b: number) => {
      let x = offsets[a]!;
      let y = offsets[b]!;
      const end = offsets[a + 1]!;
      if (offsets[b + 1]! - y !== end - x) return false;
      for (; x + 4 <= end; x += 4, y += 4) {
        if (view.getInt32(x, true) !== view.getInt32(y, true)) return false;
      }
      return x === end || tail(x, end) === tail(y, y + end - x);
    },
  };
}
