// Which cells make a staged row whole that came without some (Debezium's unavailable value): those of the key's row just
// before it in the order of stamps, be it of the same commit or of the table; null where there was none.
// Pure but for look-ups: places out, no cell is read here (fill-rows.ts).
import { compareHashes, type EntryColumns, NO_FILE } from './entries.ts';
import { type KeyStore, type LookupResult, stampBelow } from './key-store.ts';
import { WHOLE } from './partial-rows.ts';
import type { Sidecar, Stamp } from './sidecar.ts';

/** In place of a file: the cell is null. */
export const NO_CELL = -1;
/** In place of a file: the cell is the row's own. */
export const OWN_CELL = -2;

/** Where the cells of one column come from, for each row. */
export interface CellPlaces {
  /** Number of a data file, {@link NO_CELL} or {@link OWN_CELL}. */
  readonly files: number[];
  readonly positions: number[];
}

/** Rows to be made, as columns of equal length. */
export interface Fills {
  /** The entry of the resolution that will point at the row. */
  readonly rows: readonly number[];
  /** Where the row lies that lacks cells. */
  readonly files: readonly number[];
  readonly positions: readonly number[];
  /** By field id of a top-level column. */
  readonly cells: ReadonlyMap<number, CellPlaces>;
}

/** Which columns the row at a position of a partial file lacks. */
export type PartialFile = (position: number) => readonly number[];

/** By number of the file. */
export function partialRows(
  sidecars: readonly Sidecar[],
  fileIds: ReadonlyMap<string, number>,
): ReadonlyMap<number, PartialFile> {
  const found = new Map<number, PartialFile>();
  for (const { files, changes, partial } of sidecars) {
    if (partial === undefined) continue;
    const setsOf = new Map<number, Map<number, number>>();
    for (let n = 0; n < changes.count; n += 1) {
      if (partial.of[n] === WHOLE) continue;
      const file = fileIds.get(files[changes.files[n]!]!)!;
      const sets = setsOf.get(file) ?? new Map<number, number>();
      setsOf.set(file, sets.set(changes.positions[n]!, partial.of[n]!));
    }
    for (const [file, sets] of setsOf)
      found.set(file, (position) => partial.sets[sets.get(position)!]!);
  }
  return found;
}

interface Known {
  readonly store: KeyStore;
  /** What the index says of each winner's key. */
  readonly known: LookupResult;
  /** All changes of the commit, in the order of hashes. */
  readonly changes: EntryColumns;
  readonly partial: ReadonlyMap<number, PartialFile>;
  /** The newest one, of this commit or before. */
  readonly truncate: Stamp | undefined;
}

export class FillFinder implements Fills {
  readonly rows: number[] = [];
  readonly files: number[] = [];
  readonly positions: number[] = [];
  readonly cells = new Map<number, { readonly files: number[]; readonly positions: number[] }>();
  readonly #from: Known;

  constructor(from: Known) {
    this.#from = from;
  }

  /** The row of entry `n` lacks cells; `start`: where its key begins among the changes. */
  add(
    entries: EntryColumns,
    n: number,
    { winner, start }: { readonly winner: number; readonly start: number },
  ): void {
    const file = entries.files[n]!;
    const position = entries.positions[n]!;
    const row = this.rows.push(n) - 1;
    this.files.push(file);
    this.positions.push(position);
    const older = this.#older(start, entries, n);
    const missing = this.#from.partial.get(file)!(position);
    for (const fieldId of missing) {
      const places = this.#column(fieldId, row);
      const change = older.find((m) => !this.#lacks(m, fieldId));
      const place = change === undefined ? this.#stored(winner) : this.#staged(change);
      places.files[row] = place?.file ?? NO_CELL;
      places.positions[row] = place?.position ?? 0;
    }
    for (const places of this.cells.values()) {
      if (places.files.length > row) continue;
      places.files.push(OWN_CELL);
      places.positions.push(0);
    }
  }

  #column(fieldId: number, row: number) {
    const known = this.cells.get(fieldId);
    if (known !== undefined) return known;
    const places = {
      files: new Array<number>(row).fill(OWN_CELL),
      positions: new Array<number>(row).fill(0),
    };
    this.cells.set(fieldId, places);
    return places;
  }

  /** Changes of the same key in this commit before entry `n`, the newest first; a truncate in between counts as one. */
  #older(start: number, entries: EntryColumns, n: number): number[] {
    const { changes } = this.#from;
    const found: number[] = [];
    for (let m = start; m < changes.count; m += 1) {
      if (compareHashes(changes, start, changes, m) !== 0) break;
      if (stampBelow(changes, m, stampOf(entries, n))) found.push(m);
    }
    return found.sort((a, b) => (stampBelow(changes, a, stampOf(changes, b)) ? 1 : -1));
  }

  /** Whether change `m` says nothing of the column either. */
  #lacks(m: number, fieldId: number): boolean {
    const { changes, partial, truncate } = this.#from;
    const file = changes.files[m]!;
    if (file === NO_FILE) return false;
    if (truncate !== undefined && stampBelow(changes, m, truncate)) return false;
    return partial.get(file)?.(changes.positions[m]!).includes(fieldId) === true;
  }

  /** Where the row of change `m` lies; undefined when it leaves none. */
  #staged(m: number): { file: number; position: number } | undefined {
    const { changes, truncate } = this.#from;
    const file = changes.files[m]!;
    if (file === NO_FILE || (truncate !== undefined && stampBelow(changes, m, truncate)))
      return undefined;
    return { file, position: changes.positions[m]! };
  }

  /** The newest live row of the winner's key. */
  #stored(winner: number): { file: number; position: number } | undefined {
    const { store, known, truncate } = this.#from;
    const rows = known.entries;
    let newest: number | undefined;
    const start = known.starts[winner]!;
    for (let m = start; m < start + known.sizes[winner]!; m += 1) {
      if (!store.isLive(rows, m)) continue;
      if (truncate !== undefined && stampBelow(rows, m, truncate)) continue;
      if (newest === undefined || !stampBelow(rows, m, stampOf(rows, newest))) newest = m;
    }
    return newest === undefined
      ? undefined
      : { file: rows.files[newest]!, position: rows.positions[newest]! };
  }
}

const stampOf = (entries: EntryColumns, n: number): Stamp => ({
  commit: entries.commits[n]!,
  partition: entries.partitions[n]!,
  offset: entries.offsets[n]!,
});
