// Chance and identity as parameters: seeded in tests and simulation, from the operating system in real life.
import { randomBytes, randomUUID } from 'node:crypto';

export interface Prng {
  /** A number in [0, 1). */
  next(): number;
  /** An integer in [0, limit). */
  int(limit: number): number;
  /** `length` random bytes. */
  bytes(length: number): Uint8Array;
}

/** Where new identities come from. */
export interface IdSource {
  /** A random UUID (version 4) in its canonical text form. */
  uuid(): string;
}

/** xoshiro128** seeded by splitmix32: the same seed gives the same numbers for ever. */
export function seededPrng(seed: number): Prng {
  let mix = seed >>> 0;
  const splitmix = () => {
    mix = (mix + 0x9e3779b9) >>> 0;
    let z = mix;
    z = Math.imul(z ^ (z >>> 16), 0x85ebca6b);
    z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
    return (z ^ (z >>> 16)) >>> 0;
  };
  let a = splitmix();
  let b = splitmix();
  let c = splitmix();
  let d = splitmix();
  const next32 = () => {
    const product = Math.imul(b, 5);
    const result = Math.imul((product << 7) | (product >>> 25), 9) >>> 0;
    const t = b << 9;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= t;
    d = (d << 11) | (d >>> 21);
    return result;
  };
  const prng: Prng = {
    next: () => next32() / 2 ** 32,
    int: (limit) => Math.floor((next32() / 2 ** 32) * limit),
    bytes: (length) => Uint8Array.from({ length }, () => next32() & 0xff),
  };
  return prng;
}

/** Ids that follow a seed. */
export function seededIds(prng: Prng): IdSource {
  return { uuid: () => formatUuid(prng.bytes(16)) };
}

/** Chance from the operating system. */
export const systemPrng: Prng = {
  next: () => randomBytes(6).readUIntBE(0, 6) / 2 ** 48,
  int: (limit) => Math.floor((randomBytes(6).readUIntBE(0, 6) / 2 ** 48) * limit),
  bytes: (length) => randomBytes(length),
};

/** Ids from the operating system. */
export const systemIds: IdSource = { uuid: () => randomUUID() };

/** 16 bytes as a canonical version 4 UUID (version and variant bits are set). */
function formatUuid(bytes: Uint8Array): string {
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  return uuidToText(bytes);
}

/** 16 bytes → `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`. */
export function uuidToText(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset, 16).toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** The inverse of {@link uuidToText}; throws a RangeError on anything else. */
export function uuidToBytes(text: string): Uint8Array {
  const hex = text.replaceAll('-', '');
  if (!/^[0-9a-fA-F]{32}$/.test(hex)) throw new RangeError(`not a UUID: ${text}`);
  return Buffer.from(hex, 'hex');
}
