// Moves past a value of a schema without keeping it, and the limits that hold for any reading of nested values.
import { RowFailure } from '../arrow/row-failure.ts';
import type { AvroCursor, Step } from './cursor.ts';
import type { AvroRecord, AvroSchema } from './schema.ts';

/**
 * Items of one array or map: a count costs a few bytes in the record but may ask for any number of elements that
 * take none (nulls, empty records).
 */
export const MAX_ITEMS = 1_000_000;

/** Levels of a value of a recursive type. */
export const MAX_DEPTH = 128;

/** A step that skips a value of `schema`; recursive types within `MAX_DEPTH`. */
export function skipStep(schema: AvroSchema): Step {
  return compile(schema, new Map());
}

function compile(schema: AvroSchema, known: Map<AvroRecord, Step>): Step {
  switch (schema.kind) {
    case 'null':
      return () => {};
    case 'boolean':
      return (cursor) => void cursor.readBoolean();
    case 'int':
    case 'enum':
      return (cursor) => void cursor.readInt();
    case 'long':
      return (cursor) => cursor.readLong();
    case 'float':
      return (cursor) => void cursor.take(4);
    case 'double':
      return (cursor) => void cursor.take(8);
    case 'bytes':
    case 'string':
      return (cursor) => void cursor.take(cursor.readLength());
    case 'fixed':
      return (cursor) => void cursor.take(schema.size);
    case 'array':
      return skipBlocks(compile(schema.items, known));
    case 'map': {
      const value = compile(schema.values, known);
      return skipBlocks((cursor) => {
        cursor.take(cursor.readLength());
        value(cursor);
      });
    }
    case 'union': {
      const steps = schema.branches.map((branch) => compile(branch, known));
      return (cursor) => {
        const index = cursor.readInt();
        const step = steps[index];
        if (step === undefined) RowFailure.raise(`union branch ${index} of ${steps.length}`);
        step(cursor);
      };
    }
    case 'record':
      return skipRecord(schema, known);
  }
}

function skipRecord(schema: AvroRecord, known: Map<AvroRecord, Step>): Step {
  const found = known.get(schema);
  if (found !== undefined) return found;
  const steps: Step[] = [];
  const step: Step = (cursor) => {
    if (++cursor.depth > MAX_DEPTH) RowFailure.raise(`nested deeper than ${MAX_DEPTH} levels`);
    for (const field of steps) field(cursor);
    cursor.depth--;
  };
  known.set(schema, step);
  for (const field of schema.fields) steps.push(compile(field.type, known));
  return step;
}

/** Calls `item` for each element of an array or map. A negative count is followed by the block's size in bytes. */
export function forEachItem(cursor: AvroCursor, item: Step): void {
  let total = 0;
  for (;;) {
    let count = cursor.readSafeLong();
    if (count === 0) return;
    if (count < 0) {
      count = -count;
      cursor.readLong();
    }
    total += count;
    if (total > MAX_ITEMS) RowFailure.raise(`more than ${MAX_ITEMS} items in one array or map`);
    for (let i = 0; i < count; i++) item(cursor);
  }
}

/** A block that tells its size is jumped over. */
function skipBlocks(item: Step): Step {
  return (cursor) => {
    for (let total = 0; ; ) {
      const count = cursor.readSafeLong();
      if (count === 0) return;
      if (count < 0) {
        cursor.take(cursor.readLength());
        continue;
      }
      total += count;
      if (total > MAX_ITEMS) RowFailure.raise(`more than ${MAX_ITEMS} items in one array or map`);
      for (let i = 0; i < count; i++) item(cursor);
    }
  };
}
