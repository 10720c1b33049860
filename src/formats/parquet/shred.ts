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

/** Entries on their way down. */
interface Entries {
  readonly count: number;
  readonly definition: Uint8Array;
  readonly repetition: Uint8Array | null;
  /** The row of each entry in the current column, −1 when it ended above; null for `[0, count)`. */
  slots: Int32Array | null;
}

/** Shreds one leaf of aligned `columns`. */
export function shred(columns: TableColumns, leaf: Leaf): Shredded {
  const first = leaf.steps[0]!;
  assert(first.kind === 'field', 'a leaf starts at a top-level field');
  let column = columns.columns[first.index]!;
  if (leaf.steps.length === 1) return shredFlat(column, leaf);
  const count = columns.rowCount;
  let entries: Entries = {
    count,
    definition: new Uint8Array(count),
    repetition: null,
    slots: null,
  };
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
  const flags = column.validity;
  if (required) {
    assert(flags === null, 'a required column has no nulls');
    return level;
  }
  const { definition, count } = entries;
  if (entries.slots === null && flags === null) {
    definition.fill(level + 1);
    return level + 1;
  }
  if (entries.slots === null) entries.slots = identity(count);
  const { slots } = entries;
  for (let i = 0; i < count; i++) {
    const slot = slots[i]!;
    if (slot < 0) continue;
    if (flags === null || flags[slot] === 1) definition[i] = level + 1;
    else slots[i] = -1;
  }
  return level + 1;
}

function identity(count: number): Int32Array {
  const slots = new Int32Array(count);
  for (let i = 0; i < count; i++) slots[i] = i;
  return slots;
}

/** Spreads each list into its elements; an empty one stays as an entry that ends here. */
function enterRepeated(
  entries: Entries,
  column: ListColumn | MapColumn,
  { level, depth }: { readonly level: number; readonly depth: number },
): Entries {
  const { offsets } = column;
  if (offsets[column.length] === 0) return allEmpty(entries);
  const from = entries.slots ?? identity(entries.count);
  let count = 0;
  for (let i = 0; i < entries.count; i++) {
    const slot = from[i]!;
    count += slot < 0 ? 1 : Math.max(1, offsets[slot + 1]! - offsets[slot]!);
  }
  const definition = new Uint8Array(count);
  const repetition = new Uint8Array(count);
  const slots = new Int32Array(count);
  let to = 0;
  for (let i = 0; i < entries.count; i++) {
    const slot = from[i]!;
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

/** No list has an element (headers of most topics): every entry ends here. */
function allEmpty({ count, definition, repetition }: Entries): Entries {
  return {
    count,
    definition,
    repetition: repetition ?? new Uint8Array(count),
    slots: new Int32Array(count).fill(-1),
  };
}

function compact(column: Column, entries: Entries): Shredded {
  const { count, definition, repetition } = entries;
  if (entries.slots === null) {
    return { column, count, definition: null, repetition, slots: null, values: count };
  }
  let values = 0;
  for (let i = 0; i < count; i++) if (entries.slots[i]! >= 0) values++;
  const slots = new Int32Array(values);
  for (let i = 0, to = 0; to < values; i++) {
    if (entries.slots[i]! >= 0) slots[to++] = entries.slots[i]!;
  }
  return { column, count, definition, repetition, slots, values };
}
