// What the changes of a commit do to the table (rules K1, K4): of all changes of a key the newest counts; it replaces
// every live row of the key, unless the index knows a newer one; rows of this commit that lost are deleted with it.
// Pure but for look-ups: staged changes and the index in, deleted rows and the index's next entries out.
// Not for: how deletes are written (delete-files.ts).
import { assert } from '../../base/assert.ts';
import {
  compareStamps,
  Entries,
  type EntryColumns,
  groupEnd,
  NO_FILE,
  sortedByHash,
} from './entries.ts';
import { FillFinder, type Fills, partialRows } from './fills.ts';
import { type KeyStore, type LookupResult, stampBelow } from './key-store.ts';
import type { Sidecar, Stamp } from './sidecar.ts';

export interface Resolution {
  /** Sorted by hash: what the index says of these keys from then on. */
  entries: Entries;
  /** Rows to delete, ascending, by file number (of the index, or of the new files). */
  readonly deleted: ReadonlyMap<number, Float64Array>;
  readonly truncate?: Stamp;
  /** Distinct keys that changed. */
  readonly keys: number;
  /** Rows to be made of staged ones that lack cells; undefined when there are none. */
  readonly fills?: Fills;
}

/** `fileIds`: the index's number for each new data file, by path. */
export function resolveChanges(
  store: KeyStore,
  sidecars: readonly Sidecar[],
  fileIds: ReadonlyMap<string, number>,
): Resolution {
  const truncate = newestTruncate(store.truncate, sidecars);
  const changes = sortedByHash(gather(sidecars, fileIds));
  const partial = partialRows(sidecars, fileIds);
  const winners = new Entries(Math.max(1, changes.count));
  const deletions = new Deletions();
  // Where each winner's key begins among the changes.
  const starts: number[] = [];
  for (let start = 0; start < changes.count; ) {
    const end = groupEnd(changes, start);
    winners.copy(changes, settleGroup(changes, [start, end], deletions));
    if (partial.size > 0) starts.push(start);
    start = end;
  }
  const known = store.lookup(winners);
  const entries = new Entries(Math.max(1, winners.count));
  const fills = new FillFinder({ store, known, changes, partial, truncate });
  for (let n = 0; n < winners.count; n += 1) {
    if (truncate !== undefined && stampBelow(winners, n, truncate)) killRow(winners, n, deletions);
    if (!applyWinner({ store, known, winners, deletions, entries }, n)) continue;
    const entry = entries.count - 1;
    if (!partial.has(entries.files[entry]!)) continue;
    deletions.add(entries.files[entry]!, entries.positions[entry]!);
    fills.add(entries, entry, { winner: n, start: starts[n]! });
  }
  const moved = truncate !== undefined && truncate !== store.truncate;
  if (moved) deleteOlder(store, truncate, { deletions, entries });
  return {
    entries,
    deleted: deletions.byFile(),
    keys: winners.count,
    ...(truncate === undefined ? {} : { truncate }),
    ...(fills.rows.length === 0 ? {} : { fills }),
  };
}

function newestTruncate(known: Stamp | undefined, sidecars: readonly Sidecar[]): Stamp | undefined {
  let newest = known;
  for (const { truncate } of sidecars) {
    if (truncate === undefined) continue;
    if (newest === undefined || orderOf(newest, truncate) < 0) newest = truncate;
  }
  return newest;
}

export const orderOf = (a: Stamp, b: Stamp): number =>
  a.commit - b.commit || a.partition - b.partition || a.offset - b.offset;

function gather(sidecars: readonly Sidecar[], fileIds: ReadonlyMap<string, number>): Entries {
  const total = sidecars.reduce((sum, { changes }) => sum + changes.count, 0);
  const all = new Entries(Math.max(1, total));
  for (const { files, changes } of sidecars) {
    const ids = files.map((path) => fileIds.get(path));
    for (let n = 0; n < changes.count; n += 1) {
      const file = changes.files[n]!;
      all.copy(changes, n);
      if (file === NO_FILE) continue;
      const id = ids[file];
      assert(id !== undefined, 'K4: a sidecar is about files of its own stage');
      all.files[all.count - 1] = id;
    }
  }
  return all;
}

/** Which change of `[start, end)`, all of one key, is the newest; the rows of the others are deleted. */
function settleGroup(
  changes: EntryColumns,
  [start, end]: readonly [number, number],
  deletions: Deletions,
): number {
  let newest = start;
  for (let n = start + 1; n < end; n += 1) {
    if (compareStamps(changes, n, changes, newest) > 0) newest = n;
  }
  for (let n = start; n < end; n += 1) {
    if (n !== newest && changes.files[n] !== NO_FILE)
      deletions.add(changes.files[n]!, changes.positions[n]!);
  }
  return newest;
}

/** The change turns into a deletion of its key. */
function killRow(changes: Entries, n: number, deletions: Deletions): void {
  if (changes.files[n] === NO_FILE) return;
  deletions.add(changes.files[n]!, changes.positions[n]!);
  changes.files[n] = NO_FILE;
}

interface Applying {
  readonly store: KeyStore;
  readonly known: LookupResult;
  readonly winners: Entries;
  readonly deletions: Deletions;
  readonly entries: Entries;
}

/** False: what the index knows is newer. */
function applyWinner({ store, known, winners, deletions, entries }: Applying, n: number): boolean {
  const start = known.starts[n]!;
  const end = start + known.sizes[n]!;
  const rows = known.entries;
  for (let m = start; m < end; m += 1) {
    // K1: the index has a newer change of this key already.
    if (compareStamps(rows, m, winners, n) <= 0) continue;
    killRow(winners, n, deletions);
    return false;
  }
  for (let m = start; m < end; m += 1) {
    if (store.isLive(rows, m)) deletions.add(rows.files[m]!, rows.positions[m]!);
  }
  entries.copy(winners, n);
  return true;
}

/** A truncate takes every row that is older than it, whatever its key. */
function deleteOlder(
  store: KeyStore,
  truncate: Stamp,
  { deletions, entries }: { readonly deletions: Deletions; readonly entries: Entries },
): void {
  const settled = new Set<string>();
  const nameOf = (from: EntryColumns, n: number) => from.hashes.subarray(n * 4, n * 4 + 4).join();
  for (let n = 0; n < entries.count; n += 1) settled.add(nameOf(entries, n));
  store.scan((rows, n) => {
    if (!stampBelow(rows, n, truncate) || !store.isLive(rows, n)) return;
    if (settled.has(nameOf(rows, n))) return;
    deletions.add(rows.files[n]!, rows.positions[n]!);
  });
}

/** Rows to be deleted, as they are found. */
class Deletions {
  #files = new Int32Array(1_024);
  #positions = new Uint32Array(1_024);
  #count = 0;

  add(file: number, position: number): void {
    if (this.#count === this.#files.length) {
      const files = new Int32Array(this.#count * 2);
      files.set(this.#files);
      this.#files = files;
      const positions = new Uint32Array(this.#count * 2);
      positions.set(this.#positions);
      this.#positions = positions;
    }
    this.#files[this.#count] = file;
    this.#positions[this.#count] = position;
    this.#count += 1;
  }

  /** Sorted, each row once. */
  byFile(): Map<number, Float64Array> {
    const counts = new Map<number, number>();
    for (let n = 0; n < this.#count; n += 1) {
      const file = this.#files[n]!;
      counts.set(file, (counts.get(file) ?? 0) + 1);
    }
    const byFile = new Map<number, Float64Array>();
    for (const [file, count] of counts) byFile.set(file, new Float64Array(count));
    counts.clear();
    for (let n = 0; n < this.#count; n += 1) {
      const file = this.#files[n]!;
      const at = counts.get(file) ?? 0;
      byFile.get(file)![at] = this.#positions[n]!;
      counts.set(file, at + 1);
    }
    for (const [file, positions] of byFile) byFile.set(file, distinct(positions.sort()));
    return byFile;
  }
}

function distinct(sorted: Float64Array): Float64Array {
  let kept = 0;
  for (let n = 0; n < sorted.length; n += 1) {
    if (n > 0 && sorted[n] === sorted[n - 1]) continue;
    sorted[kept] = sorted[n]!;
    kept += 1;
  }
  return kept === sorted.length ? sorted : sorted.slice(0, kept);
}
