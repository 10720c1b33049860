// How values of PostgreSQL become ours. Whole numbers of 64 bits come as numbers (ours stay below 2^53), bytea as
// Buffers, JSON as text. Not for: what goes there (pg turns arrays and bytes into parameters).
import pg from 'pg';
import { assert } from '../../base/assert.ts';

/** OIDs of pg_type that never change. */
const INT8 = 20;
const INT8_ARRAY = 1016;
const NUMERIC = 1700;
const JSON_TYPE = 114;
const JSONB = 3802;

type Parser = (text: string) => unknown;

function toNumber(text: string): number {
  const value = Number(text);
  assert(Number.isSafeInteger(value) || text.includes('.'), 'numbers stay below 2^53');
  return value;
}

const PARSERS: ReadonlyMap<number, Parser> = new Map<number, Parser>([
  [INT8, toNumber],
  // Sums of int8.
  [NUMERIC, toNumber],
  [INT8_ARRAY, (text) => (text === '{}' ? [] : text.slice(1, -1).split(',').map(toNumber))],
  [JSON_TYPE, (text) => text],
  [JSONB, (text) => text],
]);

/** For pg's `types`. */
export function parserOf(oid: number, format?: 'text' | 'binary'): Parser {
  const own = format === 'binary' ? undefined : PARSERS.get(oid);
  return own ?? (pg.types.getTypeParser(oid, format as 'text') as Parser);
}
