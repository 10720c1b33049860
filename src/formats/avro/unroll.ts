// Turns a list of steps into one function that calls them one after the other, written out instead of looped.
//
// A loop's call site sees every step and stays megamorphic; written out, each call site has one target for ever, and the
// commonest scalars are read in place (inline-reads.ts), without any call.
// The text of the code is made from numbers only: no name or value of a schema ever gets into it.
import type { Column } from '../arrow/column.ts';
import { RowFailure } from '../arrow/row-failure.ts';
import type { AvroCursor, Step } from './cursor.ts';
import { type InlineRead, inlineNullText, inlineReadText } from './inline-reads.ts';

/** A step and the column it appends to; undefined when it skips. */
export interface Child {
  readonly step: Step;
  readonly column: Column | undefined;
  /** Set when the value may be read in place; of an optional one, what isn't null. */
  readonly inline?: InlineRead | undefined;
  /** Of a union with null: the step of what isn't null, called where the branch is read; `step` does all of it. */
  readonly optional?: { readonly value: Step; readonly nullFirst: boolean };
}

/** Columns per function: the compiler takes a function as a whole, or gives up one that is too large. */
const GROUP = 32;

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

/** Statements for child `i`. */
function childText({ column, optional, inline }: Child, i: number): string {
  const call = (step: string) => `cursor.pos = pos; ${step}(cursor); pos = cursor.pos;`;
  const whole = call(`s${i}`);
  if (column === undefined) return whole;
  const pad = `if (c${i}.length < row) c${i}.padTo(row);`;
  const read = (step: string) =>
    inline === undefined ? step : inlineReadText(inline, `c${i}`, step);
  if (optional === undefined) return `${pad} ${read(whole)}`;
  // Branches 0 and 1 are the bytes 0 and 2; whatever else comes is for the whole step to judge.
  const [isNull, isValue] = optional.nullFirst ? [0, 2] : [2, 0];
  const asNull = inline === undefined ? `c${i}.appendNull();` : inlineNullText(inline, `c${i}`);
  return `${pad}
    raw = pos < end ? bytes[pos] : -1;
    if (raw === ${isValue}) { pos++; ${read(call(`v${i}`))} }
    else if (raw === ${isNull}) { pos++; ${asNull} }
    else { ${whole} }`;
}

/** Functions of equal text share what the engine learns about their call sites, so none has the text of another. */
let functions = 0;

function writtenOut(children: readonly Child[], parent: Parent): Step {
  const declarations = children.map(
    (_, i) => `const s${i} = steps[${i}], c${i} = columns[${i}], v${i} = values[${i}];`,
  );
  functions += 1;
  const body = `"use strict"; // ${functions}
    ${declarations.join('\n')}
    return (cursor) => {
      const row = parent.length;
      const { bytes, view, end } = cursor;
      let { pos } = cursor;
      let raw = 0, from = 0, to = 0, at = 0;
      ${children.map(childText).join('\n')}
      cursor.pos = pos;
    };`;
  const make = new Function('steps', 'columns', 'values', 'parent', 'notUtf8', body) as (
    steps: readonly Step[],
    columns: readonly (Column | undefined)[],
    values: readonly (Step | undefined)[],
    parent: Parent,
    notUtf8: () => never,
  ) => (cursor: AvroCursor) => void;
  return make(
    children.map(({ step }) => step),
    children.map(({ column }) => column),
    children.map(({ optional }) => optional?.value),
    parent,
    () => RowFailure.raise('invalid UTF-8'),
  );
}
