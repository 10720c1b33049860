// XXH64 with seed 0 in 32-bit halves: what Parquet's bloom filters hash plain-encoded values by. BigInt would cost
// more than the rest of a filter.
// Source: xxHash specification, "XXH64 algorithm description".

/** The five primes as high and low halves. */
const P1H = 0x9e3779b1 | 0;
const P1L = 0x85ebca87 | 0;
const P2H = 0xc2b2ae3d | 0;
const P2L = 0x27d4eb4f | 0;
const P3H = 0x165667b1;
const P3L = 0x9e3779f9 | 0;
const P4H = 0x85ebca77 | 0;
const P4L = 0xc2b2ae63 | 0;
const P5H = 0x27d4eb2f;
const P5L = 0x165667c5;

/** A hash of 64 bits. */
export interface Hash64 {
  high: number;
  low: number;
}

/** The running value: module state, so that nothing is allocated per hash. */
let h = 0;
let l = 0;

function multiply(bh: number, bl: number): void {
  const a0 = l & 0xffff;
  const a1 = l >>> 16;
  const b0 = bl & 0xffff;
  const b1 = bl >>> 16;
  const p01 = Math.imul(a0, b1) >>> 0;
  const p10 = Math.imul(a1, b0) >>> 0;
  const middle = (Math.imul(a0, b0) >>> 16) + (p01 & 0xffff) + (p10 & 0xffff);
  const carry = Math.imul(a1, b1) + (p01 >>> 16) + (p10 >>> 16) + (middle >>> 16);
  h = (carry + Math.imul(h, bl) + Math.imul(l, bh)) | 0;
  l = Math.imul(l, bl);
}

function add(bh: number, bl: number): void {
  const low = (l >>> 0) + (bl >>> 0);
  h = (h + bh + (low > 0xffffffff ? 1 : 0)) | 0;
  l = low | 0;
}

/** Rotates left by `n` within 1…31. */
function rotate(n: number): void {
  const high = (h << n) | (l >>> (32 - n));
  l = (l << n) | (h >>> (32 - n));
  h = high;
}

/** `h ^= h >>> n` over 64 bits, `n` within 1…32. */
function fold(n: number): void {
  if (n === 32) {
    l ^= h;
    return;
  }
  l ^= (l >>> n) | (h << (32 - n));
  h ^= h >>> n;
}

/** The running value becomes `round(accumulator, lane)`. */
function round(accumulatorHigh: number, accumulatorLow: number, laneHigh: number, laneLow: number) {
  h = laneHigh;
  l = laneLow;
  multiply(P2H, P2L);
  add(accumulatorHigh, accumulatorLow);
  rotate(31);
  multiply(P1H, P1L);
}

const word = (bytes: Uint8Array, at: number) =>
  bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);

/** Mixes an 8-byte lane into the running value. */
function mixLane(laneHigh: number, laneLow: number): void {
  const high = h;
  const low = l;
  round(0, 0, laneHigh, laneLow);
  h ^= high;
  l ^= low;
  rotate(27);
  multiply(P1H, P1L);
  add(P4H, P4L);
}

function mixWord(value: number): void {
  const high = h;
  const low = l;
  h = 0;
  l = value;
  multiply(P1H, P1L);
  h ^= high;
  l ^= low;
  rotate(23);
  multiply(P2H, P2L);
  add(P3H, P3L);
}

function mixByte(value: number): void {
  const high = h;
  const low = l;
  h = 0;
  l = value;
  multiply(P5H, P5L);
  h ^= high;
  l ^= low;
  rotate(11);
  multiply(P1H, P1L);
}

function finish(into: Hash64): void {
  l ^= h >>> 1;
  // The first fold is by 33: only the low half changes.
  multiply(P2H, P2L);
  fold(29);
  multiply(P3H, P3L);
  fold(32);
  into.high = h;
  into.low = l;
}

/** The hash of 4 bytes given as a little-endian word. */
export function hashWord(value: number, into: Hash64): void {
  h = P5H;
  l = P5L;
  add(0, 4);
  mixWord(value);
  finish(into);
}

/** The hash of 8 bytes given as little-endian words. */
export function hashPair(low: number, high: number, into: Hash64): void {
  h = P5H;
  l = P5L;
  add(0, 8);
  mixLane(high, low);
  finish(into);
}

/** Accumulators of the stripes of a long input: high and low halves in turn. */
const lanes = new Int32Array(8);

/** The hash of `bytes[start, end)`. */
export function hashBytes(bytes: Uint8Array, start: number, end: number, into: Hash64): void {
  let at = start;
  const length = end - start;
  if (length >= 32) {
    at = stripes(bytes, start, end);
  } else {
    h = P5H;
    l = P5L;
  }
  add(0, length);
  for (; at + 8 <= end; at += 8) mixLane(word(bytes, at + 4), word(bytes, at));
  if (at + 4 <= end) {
    mixWord(word(bytes, at));
    at += 4;
  }
  for (; at < end; at++) mixByte(bytes[at]!);
  finish(into);
}

/** Consumes whole stripes of 32 bytes; returns where the rest starts, the running value being their merge. */
function stripes(bytes: Uint8Array, start: number, end: number): number {
  h = P1H;
  l = P1L;
  add(P2H, P2L);
  lanes.set([h, l, P2H, P2L, 0, 0]);
  h = 0;
  l = 0;
  // −PRIME1 in two's complement.
  add(~P1H, ~P1L);
  add(0, 1);
  lanes[6] = h;
  lanes[7] = l;
  let at = start;
  for (; at + 32 <= end; at += 32) {
    for (let lane = 0; lane < 4; lane++) {
      const from = at + lane * 8;
      round(lanes[lane * 2]!, lanes[lane * 2 + 1]!, word(bytes, from + 4), word(bytes, from));
      lanes[lane * 2] = h;
      lanes[lane * 2 + 1] = l;
    }
  }
  merge();
  return at;
}

const ROTATIONS = [1, 7, 12, 18] as const;

function merge(): void {
  let high = 0;
  let low = 0;
  for (let lane = 0; lane < 4; lane++) {
    h = lanes[lane * 2]!;
    l = lanes[lane * 2 + 1]!;
    rotate(ROTATIONS[lane]!);
    add(high, low);
    high = h;
    low = l;
  }
  for (let lane = 0; lane < 4; lane++) {
    const beforeHigh = high;
    const beforeLow = low;
    round(0, 0, lanes[lane * 2]!, lanes[lane * 2 + 1]!);
    h ^= beforeHigh;
    l ^= beforeLow;
    multiply(P1H, P1L);
    add(P4H, P4L);
    high = h;
    low = l;
  }
}
