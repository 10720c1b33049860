// From columns to Parquet's flat form: for one leaf, its definition and repetition levels and which slots of the
// leaf column hold its values (Dremel's record shredding, done a level at a time over whole columns).
// Source: parquet-format, "Nested Encoding".
import { assert } from '../../base/assert.ts';
import type { Column } from '../arrow/column.ts';
import type { ListColumn, MapColumn, StructColumn } from '../arrow/nested-columns.ts';
import type { TableColumns } from '../arrow/table-columns.ts';
import type { Leaf, LeafStep } from './leaves.ts';

export interface Shredded {
  readonly column: Column;
  /** Entries: values, nulls and empty lists. */
  readonly count: number;
  /** A level per entry; null when every entry has the maximum. */
  readonly definition: Uint8Array | null;
  /** A level per entry; null when the leaf is not repeated. */
  readonly repetition: Uint8Array | null;
  /** The leaf column's slots that hold values, in order; null when they are simply `[0, count)`. */
  readonly slots: Int32Array | null;
  /** How many entries are values. */
  readonly values: number;
}

/** Entries on their way down: `slots[i]` is the row in the current column, −1 when the entry ended above. */
interface Entries {
  count: number;
  definition: Uint8Array;
  repetition: Uint8Array | null;
  slots: Int32Array;
}

/** Shreds one leaf of aligned `columns`. */
export function shred(columns: TableColumns, leaf: Leaf): Shredded {
  const first = leaf.steps[0]!;
  assert(first.kind === 'field', 'a leaf starts at a top-level field');
  const top = columns.columns[first.index]!;
  if (leaf.steps.length === 1) return shredFlat(top, leaf);
  const count = columns.rowCount;
  let entries: Entries = {
    count,
    definition: new Uint8Array(count),
    repetition: null,
    slots: Int32Array.from({ length: count }, (_, i) => i),
  };
  let column = top;
  let level = enterOptional(entries, column, { required: first.required, level: 0 });
  let depth = 0;
  for (const step of leaf.steps.slice(1)) {
    if (step.kind !== 'field') {
      entries = enterRepeated(entries, column as ListColumn | MapColumn, { level, depth });
      level++;
      depth++;
    }
    column = childOf(column, step);
    const required = step.kind === 'key' || step.required;
    level = enterOptional(entries, column, { required, level });
  }
  assert(level === leaf.maxDefinition, 'levels agree with the file schema');
  return compact(column, entries);
}

function shredFlat(column: Column, leaf: Leaf): Shredded {
  const count = column.length;
  const flags = column.validity;
  if (leaf.maxDefinition === 0) {
    assert(flags === null, `required column "${leaf.topLevel}" has no nulls`);
  }
  const base = { column, count, repetition: null, values: count - column.nullCount };
  if (flags === null) return { ...base, definition: null, slots: null };
  const slots = new Int32Array(base.values);
  for (let row = 0, to = 0; row < count; row++) if (flags[row] === 1) slots[to++] = row;
  return { ...base, definition: flags, slots };
}

function childOf(column: Column, step: LeafStep): Column {
  if (step.kind === 'field') return (column as StructColumn).children[step.index]!;
  if (step.kind === 'element') return (column as ListColumn).element;
  return step.kind === 'key' ? (column as MapColumn).key : (column as MapColumn).value;
}

/** Ends entries that are null here; raises the level of the others. Returns the level inside. */
function enterOptional(
  entries: Entries,
  column: Column,
  { required, level }: { readonly required: boolean; readonly level: number },
): number {
  if (required) {
    assert(column.nullCount === 0, 'a required column has no nulls');
    return level;
  }
  const { slots, definition } = entries;
  for (let i = 0; i < entries.count; i++) {
    if (slots[i]! < 0) continue;
    if (column.isValid(slots[i]!)) definition[i] = level + 1;
    else slots[i] = -1;
  }
  return level + 1;
}

/** Spreads each list into its elements; an empty one stays as an entry that ends here. */
function enterRepeated(
  entries: Entries,
  { offsets }: ListColumn | MapColumn,
  { level, depth }: { readonly level: number; readonly depth: number },
): Entries {
  let count = 0;
  for (let i = 0; i < entries.count; i++) {
    const slot = entries.slots[i]!;
    count += slot < 0 ? 1 : Math.max(1, offsets[slot + 1]! - offsets[slot]!);
  }
  const definition = new Uint8Array(count);
  const repetition = new Uint8Array(count);
  const slots = new Int32Array(count);
  let to = 0;
  for (let i = 0; i < entries.count; i++) {
    const slot = entries.slots[i]!;
    repetition[to] = entries.repetition === null ? 0 : entries.repetition[i]!;
    if (slot < 0 || offsets[slot] === offsets[slot + 1]) {
      definition[to] = entries.definition[i]!;
      slots[to++] = -1;
      continue;
    }
    for (let at = offsets[slot]!; at < offsets[slot + 1]!; at++) {
      if (at > offsets[slot]!) repetition[to] = depth + 1;
      definition[to] = level + 1;
      slots[to++] = at;
    }
  }
  return { count, definition, repetition, slots };
}

function compact(column: Column, entries: Entries): Shredded {
  let values = 0;
  for (let i = 0; i < entries.count; i++) if (entries.slots[i]! >= 0) values++;
  const slots = new Int32Array(values);
  for (let i = 0, to = 0; i < entries.count; i++) {
    if (entries.slots[i]! >= 0) slots[to++] = entries.slots[i]!;
  }
  const { count, definition, repetition } = entries;
  return { column, count, definition, repetition, slots, values };
}
