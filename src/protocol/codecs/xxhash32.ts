// xxHash32 with seed 0: the checksum inside LZ4 frames.

const P1 = 0x9e3779b1;
const P2 = 0x85ebca77;
const P3 = 0xc2b2ae3d;
const P4 = 0x27d4eb2f;
const P5 = 0x165667b1;

const rotate = (value: number, bits: number) => (value << bits) | (value >>> (32 - bits));
const round = (lane: number, word: number) =>
  Math.imul(rotate((lane + Math.imul(word, P2)) | 0, 13), P1);
const word = (b: Uint8Array, at: number) =>
  b[at]! | (b[at + 1]! << 8) | (b[at + 2]! << 16) | (b[at + 3]! << 24);

/** The hash of `bytes[from…to)`, unsigned. */
export function xxhash32(bytes: Uint8Array, from: number, to: number): number {
  let at = from;
  let hash = P5;
  if (to - from >= 16) {
    let [a, b, c, d] = [(P1 + P2) | 0, P2, 0, -P1 | 0];
    for (; at <= to - 16; at += 16) {
      a = round(a, word(bytes, at));
      b = round(b, word(bytes, at + 4));
      c = round(c, word(bytes, at + 8));
      d = round(d, word(bytes, at + 12));
    }
    hash = (rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18)) | 0;
  }
  hash = (hash + to - from) | 0;
  for (; at <= to - 4; at += 4) {
    hash = Math.imul(rotate((hash + Math.imul(word(bytes, at), P3)) | 0, 17), P4);
  }
  for (; at < to; at += 1) {
    hash = Math.imul(rotate((hash + Math.imul(bytes[at]!, P5)) | 0, 11), P1);
  }
  hash = Math.imul(hash ^ (hash >>> 15), P2);
  hash = Math.imul(hash ^ (hash >>> 13), P3);
  return (hash ^ (hash >>> 16)) >>> 0;
}
