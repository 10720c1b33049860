// Turns a list of steps into one function that calls them one after the other, written out instead of looped.
//
// A loop's call site sees every step and stays megamorphic; written out, each call site has one target for ever, and
// the engine inlines the whole record into one piece of machine code (measured on flights: 1.5 times as fast).
// The text of the code is made from numbers only: no name or value of a schema ever gets into it.
import type { Column } from '../arrow/column.ts';
import type { AvroCursor, Step } from './cursor.ts';

/** A step and the column it appends to; undefined when it skips. */
export interface Child {
  readonly step: Step;
  readonly column: Column | undefined;
  /** Of a union with null: the step of what isn't null, called where the branch is read; `step` does all of it. */
  readonly optional?: { readonly value: Step; readonly nullFirst: boolean };
}

/** Calls per function: larger ones aren't optimised as a whole. */
const GROUP = 40;

/** What has a length that its children are brought to before they are appended to. */
interface Parent {
  readonly length: number;
}

/**
 * Runs the children of a struct in order. A column that earlier rows left out is padded to the struct's length
 * first.
 */
export function unroll(children: readonly Child[], parent: Parent): Step {
  const groups: Step[] = [];
  for (let from = 0; from < children.length; from += GROUP) {
    groups.push(writtenOut(children.slice(from, from + GROUP), parent));
  }
  if (groups.length === 1) return groups[0]!;
  return (cursor) => {
    for (let i = 0; i < groups.length; i++) groups[i]!(cursor);
  };
}

function writtenOut(children: readonly Child[], parent: Parent): Step {
  const declarations = children.map(
    (_, i) => `const s${i} = steps[${i}], c${i} = columns[${i}], v${i} = values[${i}];`,
  );
  const calls = children.map(({ column, optional }, i) => {
    const pad = column === undefined ? '' : `if (c${i}.length < row) c${i}.padTo(row);`;
    if (optional === undefined || column === undefined) return `${pad} s${i}(cursor);`;
    // Branches 0 and 1 are the bytes 0 and 2; whatever else comes is for the whole step to judge.
    const [isNull, isValue] = optional.nullFirst ? [0, 2] : [2, 0];
    return `${pad} {
      const branch = cursor.pos < cursor.end ? cursor.bytes[cursor.pos] : -1;
      if (branch === ${isValue}) { cursor.pos++; v${i}(cursor); }
      else if (branch === ${isNull}) { cursor.pos++; c${i}.appendNull(); }
      else s${i}(cursor);
    }`;
  });
  const body = `"use strict";
    ${declarations.join('\n')}
    return (cursor) => { const row = parent.length; ${calls.join('\n')} };`;
  const make = new Function('steps', 'columns', 'values', 'parent', body) as (
    steps: readonly Step[],
    columns: readonly (Column | undefined)[],
    values: readonly (Step | undefined)[],
    parent: Parent,
  ) => (cursor: AvroCursor) => void;
  return make(
    children.map(({ step }) => step),
    children.map(({ column }) => column),
    children.map(({ optional }) => optional?.value),
    parent,
  );
}
