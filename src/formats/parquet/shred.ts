// From columns to Parquet's flat form: for one leaf, its definition and repetition levels and which slots of the
// leaf column hold its values (Dremel's record shredding, done a level at a time over whole columns).
// Leaves come in file order, so what one has in common with the last (all but the end of its path, mostly) is kept: in
// nested tables of hundreds of columns that is most of it.
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

/** Entries on their way down. Not changed once made: siblings share them. */
interface Entries {
  readonly count: number;
  /** The level that each entry has reached; null when all have reached the same. */
  readonly definition: Uint8Array | null;
  readonly repetition: Uint8Array | null;
  /** The row of each entry in the current column, −1 when it ended above; null for `[0, count)`. */
  readonly slots: Int32Array | null;
}

/** Where a step of a leaf's path has led. */
interface Stage {
  readonly step: LeafStep;
  readonly column: Column;
  readonly entries: Entries;
  /** Of entries that go on. */
  readonly level: number;
  readonly depth: number;
}

/** Shreds the leaves of one row group of aligned columns, one after the other. */
export class Shredder {
  readonly #columns: TableColumns;
  readonly #scratch: ShredScratch;
  /** Of the last leaf's path, its last step left out. */
  readonly #stages: Stage[] = [];

  constructor(columns: TableColumns, scratch: ShredScratch) {
    this.#columns = columns;
    this.#scratch = scratch;
  }

  /** Valid until the next leaf is shredded. */
  shred(leaf: Leaf): Shredded {
    const { steps } = leaf;
    const last = steps.length - 1;
    const stages = this.#stages;
    let known = 0;
    while (known < last && known < stages.length && stages[known]!.step === steps[known]) known++;
    stages.length = known;
    for (let n = known; n < last; n++) stages.push(this.#enter(stages[n - 1], steps[n]!));
    const shredded = this.#finish(stages[last - 1], steps[last]!);
    assert(
      shredded.definition !== null || shredded.level === leaf.maxDefinition,
      'levels agree with the file schema',
    );
    return shredded;
  }

  /** From a stage to where `step` leads: the column, and entries that a list or map has spread. */
  #into(above: Stage | undefined, step: LeafStep): Omit<Stage, 'step'> {
    if (above === undefined) {
      assert(step.kind === 'field', 'a leaf starts at a top-level field');
      const column = this.#columns.columns[step.index]!;
      const entries = { count: column.length, definition: null, repetition: null, slots: null };
      return { column, entries, level: 0, depth: 0 };
    }
    const column = childOf(above.column, step);
    const { entries, level, depth } = above;
    if (step.kind === 'field') return { column, entries, level, depth };
    const list = above.column as ListColumn | MapColumn;
    const spread = enterRepeated(entries, list, { level, depth });
    return { column, entries: spread, level: level + 1, depth: depth + 1 };
  }

  #enter(above: Stage | undefined, step: LeafStep): Stage {
    const { column, entries, level, depth } = this.#into(above, step);
    if (isRequired(step, column)) return { step, column, entries, level, depth };
    const entered = enterOptional(entries, column, level);
    return { step, column, entries: entered, level: level + 1, depth };
  }

  /** The leaf itself: its own nulls, and the slots without what ended above. */
  #finish(above: Stage | undefined, step: LeafStep): Shredded & { readonly level: number } {
    const { column, entries, level: outer } = this.#into(above, step);
    const required = isRequired(step, column);
    const level = required ? outer : outer + 1;
    const { count, repetition } = entries;
    const flags = column.validity;
    const base = { column, count, repetition, level };
    if (entries.slots === null) {
      if (flags === null) return { ...base, definition: null, slots: null, values: count };
      return { ...base, ...this.#scratch.present(flags, count, outer) };
    }
    if (column.nullCount === column.length) {
      return { ...base, definition: entries.definition, slots: NO_SLOTS, values: 0 };
    }
    return { ...base, ...this.#scratch.reached(entries as Spread, flags, required ? 0 : level) };
  }
}

const NO_SLOTS = new Int32Array(0);

/** Entries of which some have ended. */
type Spread = Entries & { readonly definition: Uint8Array; readonly slots: Int32Array };

type Reached = Pick<Shredded, 'definition' | 'slots' | 'values'>;

/** Levels and slots of one leaf; the arrays are used again for the next. */
export class ShredScratch {
  #levels = new Uint8Array(0);
  #slots = new Int32Array(0);

  #reserve(count: number): void {
    if (count <= this.#slots.length) return;
    this.#levels = new Uint8Array(count * 2);
    this.#slots = new Int32Array(count * 2);
  }

  /** All entries have come to `level`, and go on where `flags` say so. */
  present(flags: Uint8Array, count: number, level: number): Reached {
    this.#reserve(count);
    const slots = this.#slots;
    let values = 0;
    for (let row = 0; row < count; row++) {
      slots[values] = row;
      values += flags[row]!;
    }
    if (level === 0) return { definition: flags, slots, values };
    const definition = this.#levels;
    for (let row = 0; row < count; row++) definition[row] = level + flags[row]!;
    return { definition, slots, values };
  }

  /** Entries that have a value come to `level`; 0 for a required leaf, where they have come there already. */
  reached(entries: Spread, flags: Uint8Array | null, level: number): Reached {
    const { count } = entries;
    this.#reserve(count);
    const slots = this.#slots;
    const definition = level === 0 ? entries.definition : this.#levels;
    if (level !== 0) definition.set(entries.definition);
    let values = 0;
    for (let i = 0; i < count; i++) {
      const slot = entries.slots[i]!;
      if (slot < 0 || (flags !== null && flags[slot] === 0)) continue;
      slots[values++] = slot;
      if (level !== 0) definition[i] = level;
    }
    return { definition, slots, values };
  }
}

function isRequired(step: LeafStep, column: Column): boolean {
  const required = step.kind === 'key' || step.required;
  assert(!required || column.nullCount === 0, 'a required column has no nulls');
  return required;
}

function childOf(column: Column, step: LeafStep): Column {
  if (step.kind === 'field') return (column as StructColumn).children[step.index]!;
  if (step.kind === 'element') return (column as ListColumn).element;
  return step.kind === 'key' ? (column as MapColumn).key : (column as MapColumn).value;
}

/** Ends entries that are null in `column`; the others come to `level` + 1. */
function enterOptional(entries: Entries, column: Column, level: number): Entries {
  const flags = column.validity;
  const { count, repetition } = entries;
  if (entries.slots === null) {
    if (flags === null) return entries;
    const definition = new Uint8Array(count);
    const slots = new Int32Array(count);
    for (let i = 0; i < count; i++) {
      definition[i] = level + flags[i]!;
      slots[i] = flags[i] === 1 ? i : -1;
    }
    return { count, definition, repetition, slots };
  }
  const definition = entries.definition!.slice();
  const slots = entries.slots.slice();
  for (let i = 0; i < count; i++) {
    const slot = slots[i]!;
    if (slot < 0) continue;
    if (flags === null || flags[slot] === 1) definition[i] = level + 1;
    else slots[i] = -1;
  }
  return { count, definition, repetition, slots };
}

/** Spreads each list into its elements; an empty one stays as an entry that ends here. */
function enterRepeated(
  entries: Entries,
  column: ListColumn | MapColumn,
  { level, depth }: { readonly level: number; readonly depth: number },
): Entries {
  const { offsets } = column;
  if (offsets[column.length] === 0) return allEmpty(entries, level);
  const from = entries.slots;
  let count = 0;
  for (let i = 0; i < entries.count; i++) {
    const slot = from === null ? i : from[i]!;
    count += slot < 0 ? 1 : Math.max(1, offsets[slot + 1]! - offsets[slot]!);
  }
  const definition = new Uint8Array(count);
  const repetition = new Uint8Array(count);
  const slots = new Int32Array(count);
  let to = 0;
  for (let i = 0; i < entries.count; i++) {
    const slot = from === null ? i : from[i]!;
    repetition[to] = entries.repetition === null ? 0 : entries.repetition[i]!;
    if (slot < 0 || offsets[slot] === offsets[slot + 1]) {
      definition[to] = entries.definition === null ? level : entries.definition[i]!;
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
function allEmpty({ count, definition, repetition }: Entries, level: number): Entries {
  return {
    count,
    definition: definition ?? new Uint8Array(count).fill(level),
    repetition: repetition ?? new Uint8Array(count),
    slots: new Int32Array(count).fill(-1),
  };
}
