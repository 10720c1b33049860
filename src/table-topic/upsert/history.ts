// Stamps that an index has lost (rule K1): rows read back from a table have none, and deleted keys leave no trace there.
// What is left to come may be older than some of what is committed, so the committed changes above the floor are read
// once more from the log and their stamps are put in; nothing else of the index changes.
// Not for: reading the log (history-reader.ts).
import { compareStamps, Entries, groupEnd, NO_FILE, sortedByHash } from './entries.ts';
import type { KeyStore } from './key-store.ts';
import { orderOf } from './resolve.ts';
import type { Sidecar } from './sidecar.ts';

/** `changes`: of committed ranges; which rows they became doesn't matter. */
export function applyHistory(store: KeyStore, changes: readonly Sidecar[], commitId: string): void {
  const all = new Entries(changes.reduce((sum, one) => sum + one.changes.count, 1));
  let { truncate } = store;
  for (const one of changes) {
    for (let n = 0; n < one.changes.count; n += 1) all.copy(one.changes, n);
    if (one.truncate === undefined) continue;
    if (truncate === undefined || orderOf(truncate, one.truncate) < 0) truncate = one.truncate;
  }
  const sorted = sortedByHash(all);
  const newest = new Entries(Math.max(1, sorted.count));
  for (let n = 0; n < sorted.count; ) {
    const end = groupEnd(sorted, n);
    let best = n;
    for (let m = n + 1; m < end; m += 1) if (compareStamps(sorted, m, sorted, best) > 0) best = m;
    newest.copy(sorted, best);
    n = end;
  }
  const known = store.lookup(newest);
  const entries = new Entries(Math.max(1, newest.count));
  for (let n = 0; n < newest.count; n += 1) {
    const start = known.starts[n]!;
    const stop = start + known.sizes[n]!;
    let newer = false;
    for (let m = start; m < stop; m += 1) newer ||= compareStamps(known.entries, m, newest, n) >= 0;
    if (newer) continue;
    const before = entries.count;
    for (let m = start; m < stop; m += 1) {
      if (store.isLive(known.entries, m))
        stampedCopy(entries, known.entries, { row: m, newest, n });
    }
    if (entries.count > before) continue;
    entries.copy(newest, n);
    entries.files[entries.count - 1] = NO_FILE;
  }
  store.apply({ snapshotId: store.snapshotId ?? '', entries, truncate, commitId });
}

function stampedCopy(
  into: Entries,
  rows: Entries,
  { row, newest, n }: { readonly row: number; readonly newest: Entries; readonly n: number },
): void {
  into.copy(rows, row);
  const at = into.count - 1;
  into.commits[at] = newest.commits[n]!;
  into.partitions[at] = newest.partitions[n]!;
  into.offsets[at] = newest.offsets[n]!;
}
