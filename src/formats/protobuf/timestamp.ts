// google.protobuf.Timestamp into a timestamp column: seconds and nanoseconds as one count, without a BigInt where
// the number is small enough (until the year 2255).
import { RowFailure } from '../arrow/row-failure.ts';
import type { Int64Column } from '../arrow/scalar-columns.ts';
import type { Body } from './body.ts';
import type { ProtoCursor } from './cursor.ts';

/** 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z: what the type may hold. */
const MIN_SECONDS = -62_135_596_800;
const MAX_SECONDS = 253_402_300_799;

const SAFE_SECONDS = Math.floor(Number.MAX_SAFE_INTEGER / 1_000_000) - 1;
const MAX_64 = 2n ** 63n - 1n;

/** Field 1 as a varint, field 2 as a varint. */
const SECONDS = 8;
const NANOS = 16;

export function timestampBody(column: Int64Column): Body {
  const fine = column.type === 'timestamptz_ns';
  return (cursor) => {
    let seconds = 0;
    let nanos = 0;
    for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
      if (tag === SECONDS) seconds = readSeconds(cursor);
      else if (tag === NANOS) {
        cursor.readVarint();
        nanos = cursor.low;
        if (nanos < 0 || nanos > 999_999_999) RowFailure.raise('nanoseconds out of range');
      } else cursor.skip(tag);
    }
    if (fine) appendNanos(column, seconds, nanos);
    else if (Math.abs(seconds) <= SAFE_SECONDS) {
      column.append(seconds * 1_000_000 + Math.floor(nanos / 1000));
    } else {
      column.appendBigInt(BigInt(seconds) * 1_000_000n + BigInt(Math.floor(nanos / 1000)));
    }
  };
}

function readSeconds(cursor: ProtoCursor): number {
  cursor.readVarint();
  const seconds = cursor.signed();
  if (seconds < MIN_SECONDS || seconds > MAX_SECONDS) RowFailure.raise('seconds out of range');
  return seconds;
}

function appendNanos(column: Int64Column, seconds: number, nanos: number): void {
  const value = BigInt(seconds) * 1_000_000_000n + BigInt(nanos);
  if (value > MAX_64 || value < -MAX_64) RowFailure.raise('beyond what nanoseconds can hold');
  column.appendBigInt(value);
}
