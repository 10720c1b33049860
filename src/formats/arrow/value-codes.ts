// Which rows of a column are known to have the same value because the dictionary of the file that they were read from says
// so: they have the same code. A hint that spares the writer's own dictionary most of its hashing. No row needs a code, and
// rows of different codes (of two files, say) may have the same value.
// Not for: values, which stand in the column.

/** Codes of one column at most; rows read after that have none. */
const MAX_CODES = 1 << 20;

export class ValueCodes {
  /** A code for each of `rows` rows; negative for none, as also rows past them have. */
  array = new Int32Array(0);
  rows = 0;
  /** Codes are below it. */
  size = 0;

  /** The code of the first of a dictionary's entries, the others' follow it; negative when these are too many. */
  addDictionary(entries: number): number {
    const first = this.size;
    if (first + entries > MAX_CODES) return -1;
    this.size += entries;
    return first;
  }

  /**
   * Codes of rows from `row` on, a flag each in `valid` (1 for a value, 0 for null; null when all have one): the next of
   * `indices` for each value. `first` is as `addDictionary` gave it.
   */
  note({ row, count, valid, capacity }: NewRows, indices: Int32Array, first: number): void {
    if (first < 0) return;
    if (capacity > this.array.length) {
      const larger = new Int32Array(capacity);
      larger.set(this.array.subarray(0, this.rows));
      this.array = larger;
    }
    const { array } = this;
    if (row > this.rows) array.fill(-1, this.rows, row);
    if (valid === null) for (let i = 0; i < count; i++) array[row + i] = first + indices[i]!;
    else {
      for (let i = 0, next = 0; i < count; i++)
        array[row + i] = valid[i] === 1 ? first + indices[next++]! : -1;
    }
    this.rows = row + count;
  }

  /** Forgets the codes of rows from `length` on. */
  truncate(length: number): void {
    this.rows = Math.min(this.rows, length);
  }

  clear(): void {
    this.rows = 0;
    this.size = 0;
  }

  /** Those of the selected rows, into `target`. */
  gather(selected: Int32Array, target: ValueCodes): void {
    const { array, rows } = this;
    if (target.array.length < selected.length) target.array = new Int32Array(selected.length);
    const copied = target.array;
    for (let i = 0; i < selected.length; i++) {
      const row = selected[i]!;
      copied[i] = row < rows ? array[row]! : -1;
    }
    target.rows = selected.length;
    target.size = this.size;
  }
}

interface NewRows {
  readonly row: number;
  readonly count: number;
  /** Rows that their column has room for. */
  readonly capacity: number;
  readonly valid: Uint8Array | null;
}
