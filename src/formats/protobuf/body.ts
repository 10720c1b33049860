// Turns the fields of a message into one function that reads its fields in whatever order they come, written out
// instead of looped: each call site has one target for ever, so the engine inlines a whole message into one piece of
// machine code. Fields that come in the order of their numbers, as all serializers write them, are found with one
// comparison each. The text of the code is made from numbers only: no name or value of a schema ever gets into it.
import type { Column } from '../arrow/column.ts';
import type { ProtoCursor } from './cursor.ts';

/** One way in which a field may be written. */
export interface Arm {
  /** Field number × 8 + wire type. */
  readonly tag: number;
  /** Reads the value, whose tag was taken. `row` is the row of the message around it. */
  readonly step: (cursor: ProtoCursor, row: number) => void;
  /** Brought to the row before the step: a second value replaces the first. Undefined: the step sees to it. */
  readonly column?: Column;
  /** It usually comes several times in a row. */
  readonly repeats?: boolean;
}

/** Done at the end of a message, whose bytes are `[start, cursor.pos)`: lists are ended, defaults appended. */
export interface Ending {
  /** Set: only called when the column hasn't got the row. */
  readonly column?: Column;
  readonly end: (cursor: ProtoCursor, row: number, start: number) => void;
}

/** Reads the fields of one message up to `cursor.end` into row `row` of their columns. */
export type Body = (cursor: ProtoCursor, row: number) => void;

/** Arms per function: larger ones aren't optimised as a whole. */
const GROUP = 32;

export function compileBody(arms: readonly Arm[], endings: readonly Ending[]): Body {
  const groups = chunks(arms).map(compileArms);
  const finish = chunks(endings).map(compileEndings);
  const [first] = groups;
  const [ending] = finish;
  if (groups.length <= 1 && finish.length <= 1) {
    return (cursor, row) => {
      const start = cursor.pos;
      let tag = cursor.tag();
      while (tag !== 0) {
        const at = cursor.pos;
        if (first !== undefined) tag = first(cursor, row, tag);
        if (tag !== 0 && cursor.pos === at) {
          cursor.skip(tag);
          tag = cursor.tag();
        }
      }
      if (ending !== undefined) ending(cursor, row, start);
    };
  }
  return (cursor, row) => {
    const start = cursor.pos;
    let tag = cursor.tag();
    while (tag !== 0) {
      const at = cursor.pos;
      for (let i = 0; i < groups.length && tag !== 0; i++) tag = groups[i]!(cursor, row, tag);
      if (tag !== 0 && cursor.pos === at) {
        cursor.skip(tag);
        tag = cursor.tag();
      }
    }
    for (let i = 0; i < finish.length; i++) finish[i]!(cursor, row, start);
  };
}

function chunks<T>(items: readonly T[]): (readonly T[])[] {
  const groups: (readonly T[])[] = [];
  for (let from = 0; from < items.length; from += GROUP) {
    groups.push(items.slice(from, from + GROUP));
  }
  return groups;
}

/** Takes the fields that come next, beginning with `tag`, and returns the tag that is none of its own (0: the end). */
type Arms = (cursor: ProtoCursor, row: number, tag: number) => number;

function compileArms(arms: readonly Arm[]): Arms {
  const declarations = arms.map((_, i) => `const s${i} = steps[${i}], c${i} = columns[${i}];`);
  const branches = arms.map(({ tag, column, repeats }, i) => {
    const place = column === undefined ? '' : `if (c${i}.length !== row) place(c${i}, row);`;
    const word = repeats ? 'while' : 'if';
    return `${word} (tag === ${tag}) { ${place} s${i}(cursor, row); tag = cursor.tag(); }`;
  });
  const body = `"use strict";
    ${declarations.join('\n')}
    return (cursor, row, tag) => { ${branches.join('\n')} return tag; };`;
  const make = new Function('steps', 'columns', 'place', body) as (
    steps: readonly Arm['step'][],
    columns: readonly (Column | undefined)[],
    place: (column: Column, row: number) => void,
  ) => Arms;
  return make(
    arms.map(({ step }) => step),
    arms.map(({ column }) => column),
    place,
  );
}

function compileEndings(endings: readonly Ending[]): Ending['end'] {
  const declarations = endings.map((_, i) => `const e${i} = ends[${i}], c${i} = columns[${i}];`);
  const calls = endings.map(({ column }, i) => {
    const absent = column === undefined ? '' : `if (c${i}.length <= row) `;
    return `${absent}e${i}(cursor, row, start);`;
  });
  const body = `"use strict";
    ${declarations.join('\n')}
    return (cursor, row, start) => { ${calls.join('\n')} };`;
  const make = new Function('ends', 'columns', body) as (
    ends: readonly Ending['end'][],
    columns: readonly (Column | undefined)[],
  ) => Ending['end'];
  return make(
    endings.map(({ end }) => end),
    endings.map(({ column }) => column),
  );
}

/** A column that lags is padded, one that has the row already loses it. */
export function place(column: Column, row: number): void {
  if (column.length < row) column.padTo(row);
  else if (column.length > row) column.truncate(row);
}
