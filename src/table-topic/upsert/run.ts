// Runs: immutable files of entries sorted by hash, the body of a key index. Entries lie in blocks of fixed size, column
// by column inside a block; the footer has the first word of each block, so that a look-up reads one block or two.
// All entries of a key are together in one run, and the newest run that has the key tells all about it.
// Not for: which runs an index has and when they are joined (key-store.ts).
import { assert } from '../../base/assert.ts';
import { FloeError } from '../../base/error.ts';
import {
  compareHashes,
  ENTRY_BYTES,
  Entries,
  type EntryColumns,
  groupEnd,
  HASH_WORDS,
} from './entries.ts';

/** Where run files lie: synchronous, because they are local and the index has a thread of its own. */
export interface RunFiles {
  /** Durable when it returns. */
  write(name: string, parts: readonly Uint8Array[]): void;
  /** Reads whole blocks; fewer bytes than asked only at the end. */
  read(name: string, into: Uint8Array, position: number): number;
  size(name: string): number | undefined;
  remove(name: string): void;
  names(): readonly string[];
  close(): void;
}

export const BLOCK_ENTRIES = 256;
const BLOCK_BYTES = BLOCK_ENTRIES * ENTRY_BYTES;
const MAGIC = 0x314e_5552; // "RUN1"
const TAIL_BYTES = 16;
/** Blocks read at once where most of them are wanted, and where few are. */
const WINDOW_BLOCKS = 64;
const SPARSE_BLOCKS = 2;

/** The bytes of a run of `entries`, which are sorted. */
export function encodeRun(entries: EntryColumns): Uint8Array[] {
  const blocks = Math.ceil(entries.count / BLOCK_ENTRIES);
  const parts: Uint8Array[] = [];
  for (let from = 0; from < blocks; from += WINDOW_BLOCKS) {
    const to = Math.min(blocks, from + WINDOW_BLOCKS);
    const part = new Uint8Array((to - from) * BLOCK_BYTES);
    for (let block = from; block < to; block += 1) {
      fillBlock(blockAt(part, block - from), entries, block * BLOCK_ENTRIES);
    }
    parts.push(part);
  }
  const firsts = new Uint32Array(blocks);
  for (let block = 0; block < blocks; block += 1) {
    firsts[block] = entries.hashes[block * BLOCK_ENTRIES * HASH_WORDS]!;
  }
  const tail = new Uint8Array(TAIL_BYTES);
  const view = new DataView(tail.buffer);
  view.setUint32(0, MAGIC, true);
  view.setFloat64(8, entries.count, true);
  return [...parts, new Uint8Array(firsts.buffer), tail];
}

function blockAt(bytes: Uint8Array, block: number): EntryColumns {
  let at = bytes.byteOffset + block * BLOCK_BYTES;
  const take = (size: number) => {
    const from = at;
    at += size * BLOCK_ENTRIES;
    return from;
  };
  const { buffer } = bytes;
  return {
    count: BLOCK_ENTRIES,
    commits: new Float64Array(buffer, take(8), BLOCK_ENTRIES),
    offsets: new Float64Array(buffer, take(8), BLOCK_ENTRIES),
    hashes: new Int32Array(buffer, take(4 * HASH_WORDS), BLOCK_ENTRIES * HASH_WORDS),
    files: new Int32Array(buffer, take(4), BLOCK_ENTRIES),
    positions: new Uint32Array(buffer, take(4), BLOCK_ENTRIES),
    partitions: new Int32Array(buffer, take(4), BLOCK_ENTRIES),
  };
}

function fillBlock(block: EntryColumns, from: EntryColumns, start: number): void {
  const end = Math.min(start + BLOCK_ENTRIES, from.count);
  block.hashes.set(from.hashes.subarray(start * HASH_WORDS, end * HASH_WORDS));
  block.files.set(from.files.subarray(start, end));
  block.positions.set(from.positions.subarray(start, end));
  block.commits.set(from.commits.subarray(start, end));
  block.partitions.set(from.partitions.subarray(start, end));
  block.offsets.set(from.offsets.subarray(start, end));
}

export class Run {
  readonly name: string;
  readonly count: number;
  readonly #files: RunFiles;
  /** First word of each block. */
  readonly #firsts: Uint32Array;
  #window = new Uint8Array(0);
  #windowStart = 0;
  #windowEnd = 0;
  #blocks: EntryColumns[] = [];

  private constructor(files: RunFiles, name: string, count: number, firsts: Uint32Array) {
    this.#files = files;
    this.name = name;
    this.count = count;
    this.#firsts = firsts;
  }

  /** @throws FloeError `corrupt` when the file isn't a whole run. */
  static open(files: RunFiles, name: string): Run {
    const size = files.size(name);
    const bad = () => new FloeError('corrupt', `run ${name} of a key index is damaged`);
    if (size === undefined || size < TAIL_BYTES) throw bad();
    const tail = new Uint8Array(TAIL_BYTES);
    files.read(name, tail, size - TAIL_BYTES);
    const view = new DataView(tail.buffer);
    const count = view.getFloat64(8, true);
    const blocks = Math.ceil(count / BLOCK_ENTRIES);
    const whole = blocks * (BLOCK_BYTES + 4) + TAIL_BYTES === size;
    if (view.getUint32(0, true) !== MAGIC || !whole) throw bad();
    const firsts = new Uint8Array(blocks * 4);
    files.read(name, firsts, blocks * BLOCK_BYTES);
    return new Run(files, name, count, new Uint32Array(firsts.buffer));
  }

  get blockCount(): number {
    return this.#firsts.length;
  }

  get bytes(): number {
    return this.blockCount * (BLOCK_BYTES + 4) + TAIL_BYTES;
  }

  /** Entries of one block; `wanted` blocks from it on are read together. Valid until the next call. */
  block(block: number, wanted = WINDOW_BLOCKS): EntryColumns {
    if (block < this.#windowStart || block >= this.#windowEnd) this.#load(block, wanted);
    return this.#blocks[block - this.#windowStart]!;
  }

  /** Entries of block `block` that are used. */
  countIn(block: number): number {
    return Math.min(BLOCK_ENTRIES, this.count - block * BLOCK_ENTRIES);
  }

  #load(block: number, wanted: number): void {
    const blocks = Math.min(wanted, this.blockCount - block);
    if (this.#window.length < blocks * BLOCK_BYTES) {
      this.#window = new Uint8Array(blocks * BLOCK_BYTES);
      this.#blocks = [];
    }
    for (let n = this.#blocks.length; n < blocks; n += 1)
      this.#blocks.push(blockAt(this.#window, n));
    const into = this.#window.subarray(0, blocks * BLOCK_BYTES);
    const read = this.#files.read(this.name, into, block * BLOCK_BYTES);
    assert(read === into.length, 'K3: a run is read in whole blocks');
    this.#windowStart = block;
    this.#windowEnd = block + blocks;
  }

  /** Gives back the memory of a look-up. */
  release(): void {
    this.#window = new Uint8Array(0);
    this.#blocks = [];
    this.#windowStart = 0;
    this.#windowEnd = 0;
  }

  /**
   * Looks sorted, distinct hashes up. `wants(n)`: whether probe n is still to be found; `found(n, block, entry)` is called
   * for each entry of its key, in order.
   */
  find(
    probes: Pick<EntryColumns, 'hashes' | 'count'>,
    wants: (probe: number) => boolean,
    found: (probe: number, block: EntryColumns, entry: number) => void,
  ): void {
    const { hashes } = probes;
    const window = probes.count * 8 >= this.blockCount ? WINDOW_BLOCKS : SPARSE_BLOCKS;
    let from = 0;
    // Where the last probe was found or missed: the next one stands behind it, often close by.
    let lastBlock = -1;
    let lastEntry = 0;
    for (let probe = 0; probe < probes.count; probe += 1) {
      if (!wants(probe)) continue;
      from = this.#blockOf(hashes[probe * HASH_WORDS]! >>> 0, from);
      for (let at = from; at < this.blockCount; at += 1) {
        const block = this.block(at, window);
        const count = this.countIn(at);
        let n = lowerBound(block, { from: at === lastBlock ? lastEntry : 0, count }, probes, probe);
        lastBlock = at;
        lastEntry = n;
        for (; n < count && compareHashes(block, n, probes, probe) === 0; n += 1) {
          found(probe, block, n);
        }
        if (n < count) break;
      }
    }
  }

  /** The last block, from `from` on, that begins below the word: the key's entries begin there or in the next one. */
  #blockOf(word: number, from: number): number {
    const firsts = this.#firsts;
    let low = from;
    let step = 1;
    while (low + step < firsts.length && firsts[low + step]! < word) {
      low += step;
      step *= 2;
    }
    let high = Math.min(firsts.length, low + step);
    while (low + 1 < high) {
      const middle = (low + high) >>> 1;
      if (firsts[middle]! < word) low = middle;
      else high = middle;
    }
    return low;
  }
}

/** The first of entries `[from, count)` that isn't before the probe: by steps that double, then by halves. */
function lowerBound(
  block: EntryColumns,
  { from, count }: { readonly from: number; readonly count: number },
  probes: Pick<EntryColumns, 'hashes'>,
  probe: number,
): number {
  let low = from;
  let high = count;
  for (let step = 1; low < count; step *= 2) {
    const next = Math.min(low + step, count) - 1;
    if (compareHashes(block, next, probes, probe) >= 0) {
      high = next;
      break;
    }
    low = next + 1;
  }
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareHashes(block, middle, probes, probe) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Writes a run while its entries come, sorted; bounded memory whatever its size isn't promised: parts are kept. */
export class RunBuilder {
  readonly #parts: Uint8Array[] = [];
  readonly #firsts: number[] = [];
  readonly #pending = new Entries(BLOCK_ENTRIES);
  #count = 0;

  get count(): number {
    return this.#count + this.#pending.count;
  }

  add(from: EntryColumns, n: number): void {
    this.#pending.copy(from, n);
    if (this.#pending.count === BLOCK_ENTRIES * WINDOW_BLOCKS) this.#flush();
  }

  #flush(): void {
    const { count } = this.#pending;
    if (count === 0) return;
    const parts = encodeRun(this.#pending);
    for (let n = 0; n < Math.ceil(count / BLOCK_ENTRIES); n += 1)
      this.#firsts.push(this.#pending.hashes[n * BLOCK_ENTRIES * HASH_WORDS]! >>> 0);
    this.#parts.push(...parts.slice(0, -2));
    this.#count += count;
    this.#pending.clear();
  }

  finish(): Uint8Array[] {
    this.#flush();
    const tail = new Uint8Array(TAIL_BYTES);
    const view = new DataView(tail.buffer);
    view.setUint32(0, MAGIC, true);
    view.setFloat64(8, this.#count, true);
    return [...this.#parts, new Uint8Array(Uint32Array.from(this.#firsts).buffer), tail];
  }
}

/** One after another the entries of a run. */
class RunCursor {
  readonly run: Run;
  #next = 0;
  #end = 0;
  block: EntryColumns;
  entry = -1;
  /** First word of the entry, unsigned; past all words at the end. */
  word = 0;

  constructor(run: Run) {
    this.run = run;
    this.block = NOTHING;
    this.next();
  }

  get done(): boolean {
    return this.word === PAST_ALL;
  }

  next(): void {
    this.entry += 1;
    if (this.entry === this.#end) {
      if (this.#next === this.run.blockCount) {
        this.word = PAST_ALL;
        return;
      }
      this.block = this.run.block(this.#next);
      this.#end = this.run.countIn(this.#next);
      this.#next += 1;
      this.entry = 0;
    }
    this.word = this.block.hashes[this.entry * HASH_WORDS]! >>> 0;
  }
}

const NOTHING = new Entries(0);
const PAST_ALL = 2 ** 32;

/** Whether `a` stands before `b`. */
function isBefore(a: RunCursor, b: RunCursor): boolean {
  if (a.word !== b.word) return a.word < b.word;
  return !a.done && compareHashes(a.block, a.entry, b.block, b.entry) < 0;
}

/**
 * Walks runs side by side in the order of hashes, newest first in `runs`; `visit` gets every entry that counts: those of
 * the newest run that has the key. The entry is valid during the call.
 */
export function mergeRuns(
  runs: readonly Run[],
  visit: (entries: EntryColumns, n: number) => void,
): void {
  const cursors = runs.map((run) => new RunCursor(run));
  // A window moves on with `next`: the key is kept aside.
  const key = new Int32Array(HASH_WORDS);
  for (;;) {
    let newest = cursors[0];
    for (const cursor of cursors) if (isBefore(cursor, newest!)) newest = cursor;
    if (newest === undefined || newest.done) break;
    // Older runs say nothing of a key that a newer one has.
    for (const cursor of cursors) {
      if (cursor === newest) continue;
      while (cursor.word === newest.word && isSame(cursor, newest)) cursor.next();
    }
    const { hashes } = newest.block;
    const at = newest.entry * HASH_WORDS;
    key[0] = hashes[at]!;
    key[1] = hashes[at + 1]!;
    key[2] = hashes[at + 2]!;
    key[3] = hashes[at + 3]!;
    do {
      visit(newest.block, newest.entry);
      newest.next();
    } while (!newest.done && hasHash(newest, key));
  }
  for (const { run } of cursors) run.release();
}

const isSame = (a: RunCursor, b: RunCursor): boolean =>
  compareHashes(a.block, a.entry, b.block, b.entry) === 0;

function hasHash({ block: { hashes }, entry }: RunCursor, key: Int32Array): boolean {
  const at = entry * HASH_WORDS;
  return (
    hashes[at] === key[0] &&
    hashes[at + 1] === key[1] &&
    hashes[at + 2] === key[2] &&
    hashes[at + 3] === key[3]
  );
}

/** For tests and checks: entries sorted, groups together. */
export function isSorted(entries: EntryColumns): boolean {
  for (let n = 0; n < entries.count; n = groupEnd(entries, n)) {
    const end = groupEnd(entries, n);
    if (end < entries.count && compareHashes(entries, n, entries, end) > 0) return false;
  }
  return true;
}
