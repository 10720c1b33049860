// Sets of offsets as bytes: ascending runs, each a gap and a length as varints. All of a range takes three bytes,
// scattered ones two each. Pure. For the dead letters of a table topic (tables.ts).
import { FloeError } from '../base/error.ts';

/** `offsets` strictly ascending, none below `first`. */
export function encodeRuns(offsets: ArrayLike<number>, first: number): Uint8Array {
  const bytes: number[] = [];
  let next = first;
  for (let at = 0; at < offsets.length; ) {
    const start = offsets[at]!;
    let end = at + 1;
    while (end < offsets.length && offsets[end] === start + (end - at)) end += 1;
    putVarint(bytes, start - next);
    putVarint(bytes, end - at);
    next = start + (end - at);
    at = end;
  }
  return Uint8Array.from(bytes);
}

/** The offsets of {@link encodeRuns}, ascending. @throws FloeError `corrupt`. */
export function decodeRuns(bytes: Uint8Array, first: number): number[] {
  const offsets: number[] = [];
  const cursor = { bytes, at: 0 };
  let next = first;
  while (cursor.at < bytes.length) {
    next += takeVarint(cursor);
    const length = takeVarint(cursor);
    for (let n = 0; n < length; n += 1) offsets.push(next + n);
    next += length;
  }
  return offsets;
}

function putVarint(bytes: number[], value: number): void {
  let rest = value;
  while (rest >= 128) {
    bytes.push((rest % 128) | 128);
    rest = Math.floor(rest / 128);
  }
  bytes.push(rest);
}

function takeVarint(cursor: { readonly bytes: Uint8Array; at: number }): number {
  let value = 0;
  for (let factor = 1; cursor.at < cursor.bytes.length; factor *= 128) {
    const byte = cursor.bytes[cursor.at++]!;
    value += (byte & 127) * factor;
    if (byte < 128) return value;
  }
  throw new FloeError('corrupt', 'a set of offsets ends in the middle of a number');
}
