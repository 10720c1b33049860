// Keys that a map holds twice: engines refuse a whole table for one such row, so no row may have them.
import { BytesColumn } from './byte-columns.ts';
import type { MapColumn } from './nested-columns.ts';

/** Keys compared one with another up to this many, by a set beyond. */
const FEW = 8;

/** Whether the entries from `from` on, those of a row that isn't ended yet, hold a key twice. */
export function hasDuplicateKeys({ key }: MapColumn, from: number): boolean {
  const count = key.length - from;
  if (count < 2) return false;
  if (count > FEW || !(key instanceof BytesColumn)) {
    const seen = new Set<string>();
    for (let i = from; i < key.length; i++) seen.add(String(key.valueAt(i)));
    return seen.size < count;
  }
  const { offsets } = key;
  for (let i = from + 1; i < key.length; i++) {
    const length = offsets[i + 1]! - offsets[i]!;
    for (let j = from; j < i; j++) {
      if (offsets[j + 1]! - offsets[j]! === length && equalBytes(key, i, j)) return true;
    }
  }
  return false;
}

function equalBytes({ data, offsets }: BytesColumn, a: number, b: number): boolean {
  const end = offsets[a + 1]!;
  for (let i = offsets[a]!, j = offsets[b]!; i < end; ) if (data[i++] !== data[j++]) return false;
  return true;
}
