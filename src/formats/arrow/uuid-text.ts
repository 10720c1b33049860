// UUID text into a uuid column without strings: with or without hyphens, either case.
import type { FixedColumn } from './byte-columns.ts';

const scratch = new Uint8Array(16);

function nibble(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48;
  const lower = byte | 0x20;
  return lower >= 97 && lower <= 102 ? lower - 87 : -1;
}

/** Appends the UUID written in `bytes[start, end)`; false, and nothing appended, when it isn't one. */
export function appendUuidText(
  column: FixedColumn,
  bytes: Uint8Array,
  start: number,
  end: number,
): boolean {
  const hyphens = end - start === 36;
  if (!hyphens && end - start !== 32) return false;
  let at = start;
  for (let i = 0; i < 16; i++) {
    if (hyphens && (i === 4 || i === 6 || i === 8 || i === 10) && bytes[at++] !== 45) return false;
    const high = nibble(bytes[at]!);
    const low = nibble(bytes[at + 1]!);
    if (high < 0 || low < 0) return false;
    scratch[i] = (high << 4) | low;
    at += 2;
  }
  column.append(scratch, 0);
  return true;
}
