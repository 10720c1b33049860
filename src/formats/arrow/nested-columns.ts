// Columns that hold columns: struct, list and map (a list of key and value pairs).
// Appending is bracketed by the caller: children first, then `end` counts the row.
import type { ListType, MapType, StructType } from '../iceberg/types.ts';
import { Column, fillRange, grown, INITIAL_CAPACITY, type RowSelection } from './column.ts';

/** struct. Children may lag behind; `end` and `align` pad them. */
export class StructColumn extends Column {
  readonly kind = 'struct';
  /** In the order of the type's fields. */
  readonly children: readonly Column[];

  constructor(type: StructType, children: readonly Column[]) {
    super(type);
    this.children = children;
  }

  /** The row's children are appended at `length`; call `end` after them. Pads what an earlier row left out. */
  childAt(index: number): Column {
    const child = this.children[index]!;
    if (child.length < this.length) child.padTo(this.length);
    return child;
  }

  /** Counts the row whose children were appended. */
  end(): void {
    this.claim();
  }

  /** Pads all children to the struct's length, recursively. */
  align(): void {
    for (const child of this.children) {
      child.padTo(this.length);
      alignColumn(child);
    }
  }

  byteSize(): number {
    let total = 0;
    for (const child of this.children) total += child.byteSize();
    return total;
  }

  valueAt(row: number): Record<string, unknown> | null {
    if (!this.isValid(row)) return null;
    const value: Record<string, unknown> = {};
    (this.type as StructType).fields.forEach((field, i) => {
      const child = this.children[i]!;
      value[field.name] = row < child.length ? child.valueAt(row) : null;
    });
    return value;
  }

  createLike(): StructColumn {
    return new StructColumn(
      this.type as StructType,
      this.children.map((child) => child.createLike()),
    );
  }

  protected gatherInto(target: StructColumn, rows: RowSelection): void {
    this.align();
    this.gatherFlags(target, rows);
    this.children.forEach((child, i) => {
      child.gather(rows, target.children[i]);
    });
  }

  protected grow(): void {}
  protected padValues(): void {}

  protected truncateValues(length: number): void {
    for (const child of this.children) {
      if (length === 0) child.clear();
      else child.truncate(length);
    }
  }
}

/** What list and map share: offsets into the entries of their children. */
abstract class RepeatedColumn extends Column {
  /** Row i holds the entries `[offsets[i], offsets[i + 1])`. */
  offsets = new Int32Array(INITIAL_CAPACITY + 1);

  /** Counts the row whose entries were appended since the last one. `entries` is the children's length now. */
  protected endAt(entries: number): void {
    const row = this.claim();
    this.offsets[row + 1] = entries;
  }

  protected grow(capacity: number): void {
    this.offsets = grown(this.offsets, capacity + 1);
  }

  protected padValues(from: number, to: number): void {
    fillRange(this.offsets, this.offsets[from]!, from + 1, to + 1);
  }

  /** Copies the offsets of the selected rows and returns the entries they hold. */
  protected gatherOffsets(target: RepeatedColumn, rows: RowSelection): Int32Array {
    const { offsets } = this;
    const ends = target.offsets;
    let total = 0;
    for (let i = 0; i < rows.length; i++) {
      total += offsets[rows[i]! + 1]! - offsets[rows[i]!]!;
      ends[i + 1] = total;
    }
    const entries = new Int32Array(total);
    // Most topics have no headers, most lists of a table nothing in them.
    if (total === 0) return entries;
    for (let i = 0, to = 0; i < rows.length; i++) {
      const end = offsets[rows[i]! + 1]!;
      for (let from = offsets[rows[i]!]!; from < end; ) entries[to++] = from++;
    }
    return entries;
  }
}

/** list. Append elements to `element`, then `end`. */
export class ListColumn extends RepeatedColumn {
  readonly kind = 'list';
  readonly element: Column;

  constructor(type: ListType, element: Column) {
    super(type);
    this.element = element;
  }

  end(): void {
    this.endAt(this.element.length);
  }

  byteSize(): number {
    return this.length * 4 + this.element.byteSize();
  }

  valueAt(row: number): unknown[] | null {
    if (!this.isValid(row)) return null;
    const values: unknown[] = [];
    for (let i = this.offsets[row]!; i < this.offsets[row + 1]!; i++) {
      values.push(this.element.valueAt(i));
    }
    return values;
  }

  createLike(): ListColumn {
    return new ListColumn(this.type as ListType, this.element.createLike());
  }

  protected gatherInto(target: ListColumn, rows: RowSelection): void {
    this.gatherFlags(target, rows);
    const entries = this.gatherOffsets(target, rows);
    this.element.gather(entries, target.element);
  }

  protected truncateValues(length: number): void {
    this.element.truncate(this.offsets[length]!);
    if (length === 0) this.element.clear();
  }
}

/** map. Append to `key` and `value` alike, then `end`. Keys are never null. */
export class MapColumn extends RepeatedColumn {
  readonly kind = 'map';
  readonly key: Column;
  readonly value: Column;

  constructor(type: MapType, key: Column, value: Column) {
    super(type);
    this.key = key;
    this.value = value;
  }

  end(): void {
    this.value.padTo(this.key.length);
    this.endAt(this.key.length);
  }

  byteSize(): number {
    return this.length * 4 + this.key.byteSize() + this.value.byteSize();
  }

  valueAt(row: number): [unknown, unknown][] | null {
    if (!this.isValid(row)) return null;
    const entries: [unknown, unknown][] = [];
    for (let i = this.offsets[row]!; i < this.offsets[row + 1]!; i++) {
      entries.push([this.key.valueAt(i), this.value.valueAt(i)]);
    }
    return entries;
  }

  createLike(): MapColumn {
    return new MapColumn(this.type as MapType, this.key.createLike(), this.value.createLike());
  }

  protected gatherInto(target: MapColumn, rows: RowSelection): void {
    this.gatherFlags(target, rows);
    const entries = this.gatherOffsets(target, rows);
    this.key.gather(entries, target.key);
    this.value.gather(entries, target.value);
  }

  protected truncateValues(length: number): void {
    const entries = this.offsets[length]!;
    this.key.truncate(entries);
    this.value.truncate(entries);
    if (length === 0) {
      this.key.clear();
      this.value.clear();
    }
  }
}

/** Pads everything below `column` to the length its parent says. */
export function alignColumn(column: Column): void {
  if (column instanceof StructColumn) column.align();
  else if (column instanceof ListColumn) alignColumn(column.element);
  else if (column instanceof MapColumn) {
    column.value.padTo(column.key.length);
    alignColumn(column.key);
    alignColumn(column.value);
  }
}
