// Is a byte range well-formed UTF-8? Strings are checked once, when they enter a column.
// Source: Unicode standard, table 3-7 (no overlong forms, no surrogates, nothing above U+10FFFF).
import { isUtf8 } from 'node:buffer';

/** Ranges up to this length are looked at here before the native check is called. */
const SHORT_BYTES = 32;

/** True when `bytes[start, end)` is well-formed UTF-8. */
export function isUtf8Range(bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start <= SHORT_BYTES) {
    let seen = 0;
    for (let i = start; i < end; i++) seen |= bytes[i]!;
    if (seen < 0x80) return true;
  }
  return isUtf8(bytes.subarray(start, end));
}
