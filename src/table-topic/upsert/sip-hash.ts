// SipHash-2-4 with 128 bits of output, in 32-bit halves so that no BigInt is made. Keys of upsert tables are told apart
// by it (rule K3): keyed by the table's uuid, so that nobody can prepare colliding keys for every table at once.
// Source: Aumasson and Bernstein, "SipHash"; the 128-bit variant of its reference code.

/** Little-endian words of a 16-byte key. */
export type HashKey = readonly [number, number, number, number];

export function hashKeyOf(bytes: Uint8Array): HashKey {
  const view = new DataView(bytes.buffer, bytes.byteOffset, 16);
  return [0, 4, 8, 12].map((at) => view.getInt32(at, true)) as unknown as HashKey;
}

/** Rounds behind the last block: 4, the second half's tweak, 4 more. */
const FINAL_ROUNDS = 8;

export class SipHash128 {
  /** The hash of the last call, as signed 32-bit words in little-endian order. */
  h0 = 0;
  h1 = 0;
  h2 = 0;
  h3 = 0;
  readonly #key: HashKey;

  constructor(key: HashKey) {
    this.#key = key;
  }

  /** Hashes `bytes[0, length)`. */
  hash(bytes: Uint8Array, length: number): void {
    const [k0, k1, k2, k3] = this.#key;
    let v0l = k0 ^ 0x70736575;
    let v0h = k1 ^ 0x736f6d65;
    let v1l = k2 ^ 0x6e646f6d ^ 0xee;
    let v1h = k3 ^ 0x646f7261;
    let v2l = k0 ^ 0x6e657261;
    let v2h = k1 ^ 0x6c796765;
    let v3l = k2 ^ 0x79746573;
    let v3h = k3 ^ 0x74656462;
    const blocks = (length >>> 3) + 1;
    const rounds = blocks * 2 + FINAL_ROUNDS;
    let ml = 0;
    let mh = 0;
    for (let round = 0; round < rounds; round += 1) {
      const inBlock = round < blocks * 2;
      if (inBlock && (round & 1) === 0) {
        const at = (round >>> 1) * 8;
        if (at + 8 <= length) {
          ml = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
          mh =
            bytes[at + 4]! |
            (bytes[at + 5]! << 8) |
            (bytes[at + 6]! << 16) |
            (bytes[at + 7]! << 24);
        } else {
          ml = 0;
          mh = (length & 0xff) << 24;
          for (let n = at; n < length; n += 1) {
            const shift = (n - at) * 8;
            if (shift < 32) ml |= bytes[n]! << shift;
            else mh |= bytes[n]! << (shift - 32);
          }
        }
        v3l ^= ml;
        v3h ^= mh;
      } else if (round === blocks * 2) v2l ^= 0xee;
      else if (round === blocks * 2 + 4) {
        this.h0 = v0l ^ v1l ^ v2l ^ v3l;
        this.h1 = v0h ^ v1h ^ v2h ^ v3h;
        v1l ^= 0xdd;
      }

      let sum = (v0l + v1l) | 0;
      v0h = (v0h + v1h + (((v0l & v1l) | ((v0l | v1l) & ~sum)) >>> 31)) | 0;
      v0l = sum;
      let carried = (v1l << 13) | (v1h >>> 19);
      v1h = ((v1h << 13) | (v1l >>> 19)) ^ v0h;
      v1l = carried ^ v0l;
      carried = v0l;
      v0l = v0h;
      v0h = carried;

      sum = (v2l + v3l) | 0;
      v2h = (v2h + v3h + (((v2l & v3l) | ((v2l | v3l) & ~sum)) >>> 31)) | 0;
      v2l = sum;
      carried = (v3l << 16) | (v3h >>> 16);
      v3h = ((v3h << 16) | (v3l >>> 16)) ^ v2h;
      v3l = carried ^ v2l;

      sum = (v0l + v3l) | 0;
      v0h = (v0h + v3h + (((v0l & v3l) | ((v0l | v3l) & ~sum)) >>> 31)) | 0;
      v0l = sum;
      carried = (v3l << 21) | (v3h >>> 11);
      v3h = ((v3h << 21) | (v3l >>> 11)) ^ v0h;
      v3l = carried ^ v0l;

      sum = (v2l + v1l) | 0;
      v2h = (v2h + v1h + (((v2l & v1l) | ((v2l | v1l) & ~sum)) >>> 31)) | 0;
      v2l = sum;
      carried = (v1l << 17) | (v1h >>> 15);
      v1h = ((v1h << 17) | (v1l >>> 15)) ^ v2h;
      v1l = carried ^ v2l;
      carried = v2l;
      v2l = v2h;
      v2h = carried;

      if (inBlock && (round & 1) === 1) {
        v0l ^= ml;
        v0h ^= mh;
      }
    }
    this.h2 = v0l ^ v1l ^ v2l ^ v3l;
    this.h3 = v0h ^ v1h ^ v2h ^ v3h;
  }
}
