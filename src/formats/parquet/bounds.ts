// Bounds as manifests and footers hold them: Iceberg's single-value form, long text and bytes cut short with the
// upper one rounded up so that it still bounds.
// Source: Iceberg table spec, appendix D, and the `truncate(16)` metrics mode of the reference implementation.
import { bigintToBytes } from '../iceberg/value.ts';
import type { Leaf } from './leaves.ts';

/** A lower bound from the plain bytes of a minimum; text and bytes keep `length` code points or bytes. */
export function icebergLower(leaf: Leaf, min: Uint8Array, length: number): Uint8Array {
  if (leaf.physical === 'BYTE_ARRAY') return truncateLower(leaf, min, length);
  return singleValue(leaf, min);
}

/** An upper bound from the plain bytes of a maximum; undefined when no short one exists. */
export function icebergUpper(leaf: Leaf, max: Uint8Array, length: number): Uint8Array | undefined {
  if (leaf.physical === 'BYTE_ARRAY') return truncateUpper(leaf, max, length);
  return singleValue(leaf, max);
}

/** Only decimals differ from Parquet's plain form: big-endian and as short as possible. */
function singleValue({ primitive, physical }: Leaf, bytes: Uint8Array): Uint8Array {
  if (primitive.kind !== 'decimal') return bytes;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (physical === 'INT32') return bigintToBytes(BigInt(view.getInt32(0, true)));
  if (physical === 'INT64') return bigintToBytes(view.getBigInt64(0, true));
  let from = 0;
  // Drop leading bytes that only repeat the sign.
  while (
    from < bytes.length - 1 &&
    (bytes[from] === 0 || bytes[from] === 0xff) &&
    (bytes[from + 1]! & 0x80) === (bytes[from]! & 0x80)
  ) {
    from++;
  }
  return bytes.slice(from);
}

/** The first `length` code points (string) or bytes (binary). */
export function truncateLower(leaf: Leaf, bytes: Uint8Array, length: number): Uint8Array {
  return bytes.subarray(0, cut(leaf, bytes, length));
}

/** The shortest rounding up of the first `length` code points or bytes; undefined when all are the greatest. */
export function truncateUpper(
  leaf: Leaf,
  bytes: Uint8Array,
  length: number,
): Uint8Array | undefined {
  const end = cut(leaf, bytes, length);
  if (end === bytes.length) return bytes;
  const prefix = bytes.slice(0, end);
  return leaf.primitive.kind === 'string' ? nextText(prefix) : nextBytes(prefix);
}

function cut({ primitive }: Leaf, bytes: Uint8Array, length: number): number {
  if (bytes.length <= length) return bytes.length;
  if (primitive.kind !== 'string') return length;
  let at = 0;
  for (let points = 0; at < bytes.length; at++) {
    const startsPoint = (bytes[at]! & 0xc0) !== 0x80;
    if (startsPoint && points++ === length) break;
  }
  return at;
}

function nextBytes(prefix: Uint8Array): Uint8Array | undefined {
  for (let at = prefix.length - 1; at >= 0; at--) {
    if (prefix[at] === 0xff) continue;
    prefix[at]!++;
    return prefix.subarray(0, at + 1);
  }
  return undefined;
}

/** Raises the last code point that can be raised, and drops what follows it. */
function nextText(prefix: Uint8Array): Uint8Array | undefined {
  const last = prefix.length - 1;
  if (last >= 0 && prefix[last]! < 0x7f) {
    prefix[last]!++;
    return prefix;
  }
  const points = Array.from(new TextDecoder('utf-8', { ignoreBOM: true }).decode(prefix));
  while (points.length > 0) {
    const next = points.pop()!.codePointAt(0)! + 1;
    if (next > 0x10ffff) continue;
    // U+D800…U+DFFF are no characters.
    points.push(String.fromCodePoint(next === 0xd800 ? 0xe000 : next));
    return new TextEncoder().encode(points.join(''));
  }
  return undefined;
}
