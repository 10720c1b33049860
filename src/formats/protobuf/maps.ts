// Map fields: entries are messages of a key and a value. Of several entries with one key the last wins, as the format
// says; engines refuse maps that hold a key twice.
import { hasDuplicateKeys } from '../arrow/map-keys.ts';
import type { MapColumn } from '../arrow/nested-columns.ts';
import type { Body, Ending } from './body.ts';
import { DELIMITED, type ProtoCursor } from './cursor.ts';
import { wireType } from './scalar-steps.ts';
import type { ProtoScalar } from './schema.ts';

export interface MapField {
  readonly number: number;
  readonly map: MapColumn;
  readonly key: ProtoScalar;
  /** Reads an entry up to `cursor.end` into row `row` of key and value. */
  readonly entry: Body;
}

/** Reads one entry. */
export function entryStep({ map, entry }: MapField): Body {
  return (cursor) => {
    cursor.spend(1);
    const length = cursor.readLength();
    const outer = cursor.end;
    cursor.end = cursor.pos + length;
    entry(cursor, map.key.length);
    cursor.end = outer;
  };
}

/** Ends the map of a row, entries with equal keys resolved. */
export function mapEnding(field: MapField): Ending['end'] {
  const { map } = field;
  return (cursor, row, start) => {
    if (map.length < row) map.padTo(row);
    const from = map.offsets[row]!;
    if (hasDuplicateKeys(map, from)) {
      keepLast(field, cursor, { start, from });
    }
    map.end();
  };
}

/** Reads the entries of the message again, from `start` to the cursor, and only the last one of each key. */
function keepLast(
  { number, map, key, entry }: MapField,
  cursor: ProtoCursor,
  { start, from }: { readonly start: number; readonly from: number },
): void {
  map.key.truncate(from);
  map.value.truncate(from);
  const end = cursor.end;
  const own = number * 8 + DELIMITED;
  const last = new Map<string, { readonly at: number; readonly length: number }>();
  cursor.pos = start;
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag !== own) {
      cursor.skip(tag);
      continue;
    }
    const length = cursor.readLength();
    const at = cursor.pos;
    cursor.end = at + length;
    last.set(keyText(cursor, key), { at, length });
    cursor.pos = at + length;
    cursor.end = end;
  }
  for (const { at, length } of last.values()) {
    cursor.pos = at;
    cursor.end = at + length;
    entry(cursor, map.key.length);
  }
  cursor.pos = end;
  cursor.end = end;
}

/** A text that is equal for equal keys: the entry is read up to `cursor.end`. */
function keyText(cursor: ProtoCursor, key: ProtoScalar): string {
  const own = 8 + wireType(key);
  let text = '';
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    const at = cursor.pos;
    cursor.skip(tag);
    if (tag !== own) continue;
    if (key === 'string') text = Buffer.from(cursor.bytes.subarray(at, cursor.pos)).toString('hex');
    else {
      cursor.pos = at;
      text = numberText(cursor, key);
    }
  }
  // What is written as zero and what isn't written are one key.
  return text === '' ? (key === 'string' ? '00' : '0') : text;
}

function numberText(cursor: ProtoCursor, key: ProtoScalar): string {
  switch (wireType(key)) {
    case 1:
      cursor.readFixed64();
      return cursor.bigint().toString();
    case 5:
      return String(cursor.readFixed32());
    default:
      cursor.readVarint();
      if (key === 'bool') return cursor.low === 0 && cursor.high === 0 ? '0' : '1';
      if (key === 'int32' || key === 'uint32' || key === 'sint32') return String(cursor.low);
      return cursor.bigint().toString();
  }
}
