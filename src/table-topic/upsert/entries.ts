// Changes of keys as columns: a hash that stands for the key, where its row lies, and its order stamp (rule K1).
// Sidecars of staged ranges, runs of the key index and what a commit resolves all consist of them; no object per record.
// Not for: what a key is (canonical-key.ts), files on disk (run.ts, sidecar.ts).
import { assert } from '../../base/assert.ts';

/** `file` of an entry without a row: the key is deleted. */
export const NO_FILE = -1;

/** Words of a hash. */
export const HASH_WORDS = 4;

/** Columns of equal length; entry n is element n of each (words 4n to 4n+3 of `hashes`). */
export interface EntryColumns {
  readonly count: number;
  readonly hashes: Int32Array;
  /** A number that the holder gave to a data file, or {@link NO_FILE}. */
  readonly files: Int32Array;
  readonly positions: Uint32Array;
  /** The stamp: number of the log's commit, partition, offset. */
  readonly commits: Float64Array;
  readonly partitions: Int32Array;
  readonly offsets: Float64Array;
}

/** Bytes of one entry. */
export const ENTRY_BYTES = 4 * HASH_WORDS + 4 + 4 + 8 + 4 + 8;

/** Growable columns. */
export class Entries implements EntryColumns {
  count = 0;
  hashes: Int32Array;
  files: Int32Array;
  positions: Uint32Array;
  commits: Float64Array;
  partitions: Int32Array;
  offsets: Float64Array;

  constructor(capacity = 1_024) {
    this.hashes = new Int32Array(capacity * HASH_WORDS);
    this.files = new Int32Array(capacity);
    this.positions = new Uint32Array(capacity);
    this.commits = new Float64Array(capacity);
    this.partitions = new Int32Array(capacity);
    this.offsets = new Float64Array(capacity);
  }

  reserve(capacity: number): void {
    if (capacity <= this.files.length) return;
    const size = Math.max(capacity, this.files.length * 2);
    const grown = new Entries(size);
    for (const name of COLUMNS) grown[name].set(this[name] as never);
    Object.assign(this, { ...grown, count: this.count });
  }

  /** Adds a copy of entry `n` of `from`. */
  copy(from: EntryColumns, n: number): void {
    const at = this.count;
    if (at === this.files.length) this.reserve(at + 1);
    const { hashes } = this;
    const to = at * HASH_WORDS;
    const source = n * HASH_WORDS;
    hashes[to] = from.hashes[source]!;
    hashes[to + 1] = from.hashes[source + 1]!;
    hashes[to + 2] = from.hashes[source + 2]!;
    hashes[to + 3] = from.hashes[source + 3]!;
    this.files[at] = from.files[n]!;
    this.positions[at] = from.positions[n]!;
    this.commits[at] = from.commits[n]!;
    this.partitions[at] = from.partitions[n]!;
    this.offsets[at] = from.offsets[n]!;
    this.count = at + 1;
  }

  clear(): void {
    this.count = 0;
  }
}

const UNSTAMPED = ['hashes', 'files', 'positions'] as const;
const COLUMNS = [...UNSTAMPED, 'commits', 'partitions', 'offsets'] as const;

/** Orders hashes as unsigned words, the first one foremost. */
export function compareHashes(
  a: EntryColumns,
  n: number,
  b: Pick<EntryColumns, 'hashes'>,
  m: number,
): number {
  const at = n * HASH_WORDS;
  const bt = m * HASH_WORDS;
  for (let w = 0; w < HASH_WORDS; w += 1) {
    const x = a.hashes[at + w]!;
    const y = b.hashes[bt + w]!;
    if (x !== y) return x >>> 0 < y >>> 0 ? -1 : 1;
  }
  return 0;
}

/** Orders stamps (K1): by commit, partition, offset. */
export function compareStamps(a: EntryColumns, n: number, b: EntryColumns, m: number): number {
  return (
    a.commits[n]! - b.commits[m]! ||
    a.partitions[n]! - b.partitions[m]! ||
    a.offsets[n]! - b.offsets[m]!
  );
}

/** Above this many entries a radix sort is quicker than the engine's. */
const RADIX_ENTRIES = 2_000;

/** The entries' numbers in the order of their hashes; equal hashes in the order they came. */
export function orderByHash(entries: EntryColumns): Uint32Array {
  const { count } = entries;
  const { order, words } = count > RADIX_ENTRIES ? radixOrder(entries) : sortedOrder(entries);
  // Both sorts know the first word only: few entries share it without being the same key.
  for (let start = 0; start < count; ) {
    let end = start + 1;
    while (end < count && words[start] === words[end]) end += 1;
    if (end - start > 1) {
      order.subarray(start, end).sort((a, b) => compareHashes(entries, a, entries, b) || a - b);
    }
    start = end;
  }
  return order;
}

interface WordOrder {
  readonly order: Uint32Array;
  /** First words, in that order. */
  readonly words: Uint32Array;
}

/** First word and number in one double: exact up to 2^21 entries. */
function sortedOrder({ count, hashes }: EntryColumns): WordOrder {
  assert(count <= 2 ** 21, 'word and number fit a double');
  const keys = new Float64Array(count);
  for (let n = 0; n < count; n += 1) keys[n] = (hashes[n * HASH_WORDS]! >>> 0) * 2 ** 21 + n;
  keys.sort();
  const order = new Uint32Array(count);
  const words = new Uint32Array(count);
  for (let n = 0; n < count; n += 1) {
    words[n] = Math.floor(keys[n]! / 2 ** 21);
    order[n] = keys[n]! - words[n]! * 2 ** 21;
  }
  return { order, words };
}

const DIGIT_BITS = 11;

/** By the first word, least significant digit first; words move along, so that every pass reads in sequence. */
function radixOrder({ count, hashes }: EntryColumns): WordOrder {
  let from = { order: new Uint32Array(count), words: new Uint32Array(count) };
  let to = { order: new Uint32Array(count), words: new Uint32Array(count) };
  for (let n = 0; n < count; n += 1) {
    from.order[n] = n;
    from.words[n] = hashes[n * HASH_WORDS]!;
  }
  const starts = new Uint32Array(1 << DIGIT_BITS);
  const mask = (1 << DIGIT_BITS) - 1;
  for (let shift = 0; shift < 32; shift += DIGIT_BITS) {
    starts.fill(0);
    const { order, words } = from;
    for (let n = 0; n < count; n += 1) starts[(words[n]! >>> shift) & mask]! += 1;
    let total = 0;
    for (let digit = 0; digit <= mask; digit += 1) {
      const here = starts[digit]!;
      starts[digit] = total;
      total += here;
    }
    for (let n = 0; n < count; n += 1) {
      const word = words[n]!;
      const at = starts[(word >>> shift) & mask]!++;
      to.words[at] = word;
      to.order[at] = order[n]!;
    }
    [from, to] = [to, from];
  }
  return from;
}

/** A copy in the order of hashes; equal hashes in the order they came. */
export function sortedByHash(entries: EntryColumns): Entries {
  const sorted = new Entries(Math.max(1, entries.count));
  sorted.count = entries.count;
  if (entries.count > BUCKET_ENTRIES) sortInBuckets(entries, sorted);
  else gatherEntries(entries, orderByHash(entries), { into: sorted, stamped: true });
  return sorted;
}

/** Column by column: each loop reads one array. */
function gatherEntries(
  entries: EntryColumns,
  order: Uint32Array,
  { into, stamped }: { readonly into: Entries; readonly stamped: boolean },
): void {
  const { hashes } = entries;
  for (let n = 0, to = 0; n < order.length; n += 1) {
    const at = order[n]! * HASH_WORDS;
    into.hashes[to++] = hashes[at]!;
    into.hashes[to++] = hashes[at + 1]!;
    into.hashes[to++] = hashes[at + 2]!;
    into.hashes[to++] = hashes[at + 3]!;
  }
  gather(into.files, entries.files, order);
  gather(into.positions, entries.positions, order);
  if (!stamped) return;
  gather(into.commits, entries.commits, order);
  gather(into.partitions, entries.partitions, order);
  gather(into.offsets, entries.offsets, order);
}

/** From here on the entries don't fit the processor's cache. */
const BUCKET_ENTRIES = 100_000;
/** By the highest bits of the hash. */
const BUCKET_BITS = 8;
const BUCKET_SHIFT = 32 - BUCKET_BITS;

/**
 * Many entries: first dealt out to buckets in one sequential pass, then each bucket is sorted in the processor's cache.
 * Gathering millions of entries by number would miss it for every column of every entry.
 */
function sortInBuckets(entries: EntryColumns, into: Entries): void {
  const { count, hashes } = entries;
  const ends = new Uint32Array((1 << BUCKET_BITS) + 1);
  for (let n = 0; n < count; n += 1) ends[(hashes[n * HASH_WORDS]! >>> BUCKET_SHIFT) + 1]! += 1;
  for (let bucket = 1; bucket < ends.length; bucket += 1) ends[bucket]! += ends[bucket - 1]!;
  // An index built from its table knows no stamps: there is nothing to move.
  const { commits, partitions, offsets } = entries;
  const stamped = [commits, partitions, offsets].some((column) => !isConstant(column, count));
  const names = stamped ? COLUMNS : UNSTAMPED;
  if (!stamped) {
    into.commits.fill(commits[0]!, 0, count);
    into.partitions.fill(partitions[0]!, 0, count);
    into.offsets.fill(offsets[0]!, 0, count);
  }
  // Now the starts; dealing moves each to its bucket's end, the next one's start.
  deal(entries, { starts: ends, stamped }, into);
  let scratch = new Entries(1);
  for (let bucket = 0, from = 0; from < count; bucket += 1) {
    const to = ends[bucket]!;
    const part = entriesBetween(into, from, to);
    if (part.count > scratch.files.length) scratch = new Entries(part.count * 2);
    gatherEntries(part, orderByHash(part), { into: scratch, stamped });
    for (const name of names) part[name].set(scratch[name].subarray(0, part[name].length) as never);
    from = to;
  }
}

/** Copies entries to where their buckets are; `starts` by bucket move on. */
function deal(
  entries: EntryColumns,
  { starts, stamped }: { readonly starts: Uint32Array; readonly stamped: boolean },
  into: Entries,
): void {
  const { count, hashes, files, positions, commits, partitions, offsets } = entries;
  for (let n = 0, at = 0; n < count; n += 1, at += HASH_WORDS) {
    const place = starts[hashes[at]! >>> BUCKET_SHIFT]!++;
    const to = place * HASH_WORDS;
    into.hashes[to] = hashes[at]!;
    into.hashes[to + 1] = hashes[at + 1]!;
    into.hashes[to + 2] = hashes[at + 2]!;
    into.hashes[to + 3] = hashes[at + 3]!;
    into.files[place] = files[n]!;
    into.positions[place] = positions[n]!;
    if (!stamped) continue;
    into.commits[place] = commits[n]!;
    into.partitions[place] = partitions[n]!;
    into.offsets[place] = offsets[n]!;
  }
}

function isConstant(values: Int32Array | Float64Array, count: number): boolean {
  for (let n = 1; n < count; n += 1) if (values[n] !== values[0]) return false;
  return true;
}

function entriesBetween(entries: EntryColumns, from: number, to: number): EntryColumns {
  return {
    count: to - from,
    hashes: entries.hashes.subarray(from * HASH_WORDS, to * HASH_WORDS),
    files: entries.files.subarray(from, to),
    positions: entries.positions.subarray(from, to),
    commits: entries.commits.subarray(from, to),
    partitions: entries.partitions.subarray(from, to),
    offsets: entries.offsets.subarray(from, to),
  };
}

function gather<T extends Int32Array | Uint32Array | Float64Array>(
  into: T,
  from: T,
  order: Uint32Array,
): void {
  for (let n = 0; n < order.length; n += 1) into[n] = from[order[n]!]!;
}

/** Position after the last entry of `entries` with the hash of entry `n`. */
export function groupEnd({ hashes, count }: EntryColumns, n: number): number {
  const at = n * HASH_WORDS;
  const h0 = hashes[at]!;
  let end = n + 1;
  for (let next = at + HASH_WORDS; end < count && hashes[next] === h0; next += HASH_WORDS) {
    const same =
      hashes[next + 1] === hashes[at + 1] &&
      hashes[next + 2] === hashes[at + 2] &&
      hashes[next + 3] === hashes[at + 3];
    if (!same) break;
    end += 1;
  }
  return end;
}
