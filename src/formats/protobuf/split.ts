// A message field that comes in several parts: the format says that parsing the parts in turn is parsing their
// concatenation, so that is what happens here. Rare, so it may cost a copy; but bounded by one copy per level of
// nesting, whatever a record makes up.
import type { Column } from '../arrow/column.ts';
import { type Body, place } from './body.ts';
import { DELIMITED, type ProtoCursor } from './cursor.ts';

export interface SingleMessage {
  readonly number: number;
  readonly column: Column;
  /** Reads the message up to `cursor.end` and appends one row to the column. */
  readonly decode: Body;
  /** Numbers of the fields that exclude this one: after one of them it starts anew. */
  readonly rivals: ReadonlySet<number>;
}

/** The step for a message field that isn't repeated. The column is brought to the row by the step itself. */
export function singleMessageStep(message: SingleMessage): Body {
  const { column, decode, number, rivals } = message;
  let firstAt = 0;
  // Where, and in which bytes of which record, parts are read already.
  let mergedUntil = 0;
  let mergedBytes: Uint8Array | undefined;
  let mergedEpoch = -1;

  const merge = (cursor: ProtoCursor, row: number) => {
    const here = cursor.pos;
    const ahead =
      mergedEpoch === cursor.epoch && mergedBytes === cursor.bytes && here <= mergedUntil;
    if (!ahead) {
      const parts = partsFrom(cursor, { firstAt, number, rivals });
      mergedUntil = cursor.pos;
      mergedBytes = cursor.bytes;
      mergedEpoch = cursor.epoch;
      column.truncate(row);
      readApart(cursor, parts, (at) => decode(at, row));
    }
    cursor.pos = here;
    cursor.take(cursor.readLength());
  };

  return (cursor, row) => {
    if (column.length > row) {
      merge(cursor, row);
      return;
    }
    place(column, row);
    firstAt = cursor.pos;
    const length = cursor.readLength();
    const outer = cursor.end;
    cursor.end = cursor.pos + length;
    decode(cursor, row);
    cursor.end = outer;
  };
}

/** The parts from `firstAt` on, as one; the cursor ends behind the last one, at the end or at a rival. */
function partsFrom(
  cursor: ProtoCursor,
  field: {
    readonly firstAt: number;
    readonly number: number;
    readonly rivals: ReadonlySet<number>;
  },
): Uint8Array {
  const parts: Uint8Array[] = [];
  const own = field.number * 8 + DELIMITED;
  cursor.pos = field.firstAt;
  for (let tag = own; tag !== 0 && !field.rivals.has(tag >>> 3); tag = cursor.tag()) {
    if (tag !== own) {
      cursor.skip(tag);
      continue;
    }
    const length = cursor.readLength();
    const start = cursor.take(length);
    parts.push(cursor.bytes.subarray(start, start + length));
  }
  return Buffer.concat(parts);
}

/** Lets `read` see other bytes than the record's, then returns to where the cursor was. */
export function readApart(
  cursor: ProtoCursor,
  bytes: Uint8Array,
  read: (cursor: ProtoCursor) => void,
): void {
  const outer = { bytes: cursor.bytes, pos: cursor.pos, end: cursor.end };
  cursor.bytes = bytes;
  cursor.pos = 0;
  cursor.end = bytes.length;
  read(cursor);
  cursor.bytes = outer.bytes;
  cursor.pos = outer.pos;
  cursor.end = outer.end;
}
