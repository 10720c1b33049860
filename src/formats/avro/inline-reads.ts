// The text of code that reads the commonest scalars and appends them to their columns, for unroll.ts to write out: with
// `bytes`, `pos` and `end` in local variables and no call, a column costs a third of what its step does.
// Only what is certain is done here. Whatever else comes (a value near the record's end, longer numbers, bytes that are
// no value) is left to the column's step, at the position where it begins: that judges and names what is wrong.
// The text consists of constants and numbers; no name or value of a schema gets into it.
import type { Column } from '../arrow/column.ts';
import type { AvroSchema } from './schema.ts';

/** How a scalar is read without its step. `int-long` is an int whose column was promoted to long. */
export type InlineRead =
  | 'boolean'
  | 'int'
  | 'int-long'
  | 'long'
  | 'float'
  | 'double'
  | 'text'
  | 'binary';

/** How `schema` is read into `column` where that is written out; the step for the pair must do the same. */
export function inlineRead(schema: AvroSchema, column: Column): InlineRead | undefined {
  const { type } = column;
  if ('logical' in schema && schema.logical !== undefined) return undefined;
  switch (schema.kind) {
    case 'boolean':
      return type === 'boolean' ? 'boolean' : undefined;
    case 'int':
      return type === 'int' ? 'int' : type === 'long' ? 'int-long' : undefined;
    case 'long':
      return type === 'long' ? 'long' : undefined;
    case 'float':
      return type === 'float' || type === 'double' ? 'float' : undefined;
    case 'double':
      return type === 'double' ? 'double' : undefined;
    case 'string':
      return type === 'string' ? 'text' : undefined;
    case 'bytes':
      return type === 'binary' ? 'binary' : undefined;
    default:
      return undefined;
  }
}

/** Counts one more row with a value in column `c`; its number is in `at`. What `Column.claim` does. */
const claim = (c: string) => `
  at = ${c}.length;
  if (at === ${c}.capacity) ${c}.reserve(at + 1);
  if (${c}.flags !== null) ${c}.flags[at] = 1;
  ${c}.length = at + 1;`;

/** Bytes of the longest varint that a long takes: so far from the end none is cut off. */
const VARINT_ROOM = 10;

/** Code that runs `then` with the varint's raw bits in `raw` when it has one or two bytes, else `step`. */
const shortVarint = (step: string, then: string) => `
  raw = end - pos >= ${VARINT_ROOM} ? bytes[pos] : 0x100;
  if (raw < 0x80) { pos++; ${then} }
  else if (raw < 0x100 && bytes[pos + 1] < 0x80) {
    raw = (raw & 0x7f) | (bytes[pos + 1] << 7);
    pos += 2;
    ${then}
  } else { ${step} }`;

/** Code for a value of bytes, whose length fits two bytes of varint and whose bytes lie within the record. Odd: not so. */
const sized = (step: string, then: string) => `
  raw = pos + 1 < end ? bytes[pos] : 1;
  from = pos + 1;
  if (raw >= 0x80) raw = bytes[from] < 0x80 ? (raw & 0x7f) | (bytes[from++] << 7) : 1;
  to = from + (raw >>> 1);
  if ((raw & 1) === 0 && to <= end) { ${then} }
  else { ${step} }`;

/**
 * Statements that take one value at `pos` into the column named `c`. `step` is the statement for what they leave alone.
 * They use the variables bytes, view, pos, end, cursor, raw, from, to and at.
 */
export function inlineReadText(read: InlineRead, c: string, step: string): string {
  switch (read) {
    case 'boolean':
      return `
        raw = pos < end ? bytes[pos] : 2;
        if (raw < 2) { pos++; ${claim(c)} ${c}.values[at] = raw; } else { ${step} }`;
    case 'int':
      return shortVarint(step, `${claim(c)} ${c}.values[at] = (raw >>> 1) ^ -(raw & 1);`);
    case 'int-long':
    case 'long': {
      const halves = `${claim(c)} raw = (raw >>> 1) ^ -(raw & 1);
        ${c}.halves[at * 2] = raw; ${c}.halves[at * 2 + 1] = raw >> 31;`;
      return shortVarint(step, halves);
    }
    case 'float':
      return `if (end - pos >= 4) {
        ${claim(c)} ${c}.values[at] = view.getFloat32(pos, true); pos += 4;
      } else { ${step} }`;
    case 'double':
      return `if (end - pos >= 8) {
        ${claim(c)} ${c}.values[at] = view.getFloat64(pos, true); pos += 8;
      } else { ${step} }`;
    case 'text':
      return sized(
        step,
        `if (${c}.appendUtf8(bytes, from, to)) pos = to; else { cursor.pos = to; notUtf8(); }`,
      );
    case 'binary':
      return sized(step, `${c}.append(bytes, from, to); pos = to;`);
  }
}

/** Statements that append a null to the column named `c`. What `Column.appendNull` does. */
export function inlineNullText(read: InlineRead, c: string): string {
  const offset =
    read === 'text' || read === 'binary' ? `${c}.offsets[at + 1] = ${c}.offsets[at];` : '';
  return `at = ${c}.length;
    if (${c}.flags === null || at === ${c}.capacity) ${c}.appendNull();
    else { ${c}.flags[at] = 0; ${c}.nullCount++; ${c}.length = at + 1; ${offset} }`;
}
