// Rows of a job that came without some of their cells, which their source didn't send because they hadn't changed
// (Debezium's unavailable value): such a cell is that of the key's row of before. Where the job has that row, the cell
// is filled here, before rows are clustered and sorted; else the row waits for its commit (fill-rows.ts).
// Order within a key is by stamp (K1). By sets of columns, which are few: no object per record.
// Not for: telling such cells apart (../debezium/unavailable.ts).
import type { TableColumns } from '../../formats/arrow/table-columns.ts';
import { compareHashes, compareStamps, type Entries, NO_FILE, orderByHash } from './entries.ts';
import { stampBelow } from './key-store.ts';
import type { Stamp } from './sidecar.ts';

/** A change whose row has all its cells. */
export const WHOLE = -1;

/** In place of a row: the cell is null. */
const NULL_ROW = -1;

export class PartialRows {
  /** Field ids of top-level columns that are missing, ascending, by number of the set. */
  #sets: (readonly number[])[] = [];
  readonly #numbers = new Map<string, number>();
  /** Of each change. */
  #of = new Int32Array(0);

  /** Whether a row of the job lacks a cell. */
  get any(): boolean {
    return this.#sets.length > 0;
  }

  get sets(): readonly (readonly number[])[] {
    return this.#sets;
  }

  clear(): void {
    this.#sets = [];
    this.#numbers.clear();
    this.#of = new Int32Array(0);
  }

  /** The row of change `n` came without the cells of `fields`. */
  note(n: number, fields: readonly number[]): void {
    if (n >= this.#of.length) {
      const grown = new Int32Array(Math.max(1_024, n + 1, this.#of.length * 2)).fill(WHOLE);
      grown.set(this.#of);
      this.#of = grown;
    }
    this.#of[n] = this.#numberOf(fields);
  }

  /** Number of the set of change `n`, or {@link WHOLE}. */
  setOf(n: number): number {
    return n < this.#of.length ? this.#of[n]! : WHOLE;
  }

  #numberOf(fields: readonly number[]): number {
    if (fields.length === 0) return WHOLE;
    const sorted = [...fields].toSorted((a, b) => a - b);
    const name = sorted.join();
    const known = this.#numbers.get(name);
    if (known !== undefined) return known;
    this.#numbers.set(name, this.#sets.length);
    return this.#sets.push(sorted) - 1;
  }

  /** Fills what the job's own rows tell. `changes` have their hashes and stamps, `positions` their rows in `columns`. */
  fill(changes: Entries, columns: TableColumns, truncates: readonly Stamp[]): void {
    const cells = new Map<number, Int32Array>();
    for (const group of keyGroups(changes)) {
      let before = -1;
      for (const n of group) {
        if (this.setOf(n) !== WHOLE) {
          const cut = truncates.some(
            (stamp) =>
              !stampBelow(changes, n, stamp) && (before < 0 || stampBelow(changes, before, stamp)),
          );
          this.#fillRow({ changes, n, before, cut, cells, rowCount: columns.rowCount });
        }
        before = n;
      }
    }
    for (const [fieldId, rows] of cells) rearrange(columns, fieldId, rows);
  }

  #fillRow(row: {
    readonly changes: Entries;
    readonly n: number;
    /** The change of the key before it, or −1. */
    readonly before: number;
    /** A truncate came in between. */
    readonly cut: boolean;
    /** By field: the row that each row's cell is taken from. */
    readonly cells: Map<number, Int32Array>;
    readonly rowCount: number;
  }): void {
    const { changes, n, before, cut, cells } = row;
    if (before < 0 && !cut) return;
    const gone = cut || changes.files[before] === NO_FILE;
    const left: readonly number[] = gone ? [] : (this.#sets[this.setOf(before)] ?? []);
    const open: number[] = [];
    for (const fieldId of this.#sets[this.setOf(n)]!) {
      if (left.includes(fieldId)) {
        open.push(fieldId);
        continue;
      }
      let sources = cells.get(fieldId);
      if (sources === undefined) {
        sources = Int32Array.from({ length: row.rowCount }, (_, at) => at);
        cells.set(fieldId, sources);
      }
      sources[changes.positions[n]!] = gone ? NULL_ROW : sources[changes.positions[before]!]!;
    }
    this.#of[n] = this.#numberOf(open);
  }
}

/** The changes of each key, in the order of their stamps. */
function* keyGroups(changes: Entries): Generator<number[]> {
  const order = orderByHash(changes);
  for (let start = 0; start < order.length; ) {
    let end = start + 1;
    while (end < order.length && compareHashes(changes, order[start]!, changes, order[end]!) === 0)
      end += 1;
    yield [...order.subarray(start, end)].sort((a, b) => compareStamps(changes, a, changes, b));
    start = end;
  }
}

/** Moves cells within a column: row r takes that of row `sources[r]`. */
function rearrange(columns: TableColumns, fieldId: number, sources: Int32Array): void {
  const column = columns.byId(fieldId);
  if (column === undefined) return;
  const { rowCount } = columns;
  columns.align();
  if (sources.includes(NULL_ROW)) {
    column.appendNull();
    for (let row = 0; row < rowCount; row += 1)
      if (sources[row] === NULL_ROW) sources[row] = rowCount;
  }
  const moved = column.gather(sources);
  // Decoders hold the column itself.
  moved.gather(
    Int32Array.from({ length: rowCount }, (_, row) => row),
    column,
  );
}
