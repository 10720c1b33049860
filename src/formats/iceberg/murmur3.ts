// MurmurHash3, the 32-bit x86 variant with seed 0, as Iceberg's bucket transform uses it (appendix B).

const C1 = 0xcc9e2d51;
const C2 = 0x1b873593;

/** Signed 32-bit hash of `bytes`. */
export function murmur3(bytes: Uint8Array): number {
  let hash = 0;
  const whole = bytes.length & ~3;
  for (let index = 0; index < whole; index += 4) {
    const word =
      bytes[index]! |
      (bytes[index + 1]! << 8) |
      (bytes[index + 2]! << 16) |
      (bytes[index + 3]! << 24);
    hash ^= mix(word);
    hash = (hash << 13) | (hash >>> 19);
    hash = (Math.imul(hash, 5) + 0xe6546b64) | 0;
  }
  hash ^= mix(tail(bytes, whole));
  return finish(hash ^ bytes.length);
}

function tail(bytes: Uint8Array, from: number): number {
  let word = 0;
  for (let index = bytes.length - 1; index >= from; index -= 1) word = (word << 8) | bytes[index]!;
  return word;
}

function mix(word: number): number {
  const product = Math.imul(word, C1);
  return Math.imul((product << 15) | (product >>> 17), C2);
}

function finish(hash: number): number {
  let h = hash;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) | 0;
}
