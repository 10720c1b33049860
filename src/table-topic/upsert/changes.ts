// What a job's records do to the rows of an upsert table, collected while they are decoded: a row to be written, a key
// to be deleted, or all older rows gone. At the end the newest change of each key is kept, the rows of the others are
// not written at all, and what is left becomes the stage's sidecar (rules K1, K4).
// Columns of numbers per change; no object per record.
// Not for: decoding (rows.ts), files (files.ts).

import { BytesColumn } from '../../formats/arrow/byte-columns.ts';
import type { PartitionGroup } from '../../formats/arrow/partition.ts';
import { createColumn, type TableColumns } from '../../formats/arrow/table-columns.ts';
import { type ChangeKind, changeKindOf } from '../change.ts';
import type { JobSlice } from '../job.ts';
import { KeyHasher } from './canonical-key.ts';
import { commitAt } from './commit-steps.ts';
import { compareStamps, Entries, HASH_WORDS, NO_FILE } from './entries.ts';
import type { UpsertTable } from './id-columns.ts';
import { stampBelow } from './key-store.ts';
import { PartialRows, WHOLE } from './partial-rows.ts';
import { orderOf } from './resolve.ts';
import { type RecordKey, recordKey } from './row-key.ts';
import type { Sidecar, Stamp } from './sidecar.ts';
import type { SipHash128 } from './sip-hash.ts';

/** A column that the table hasn't: nothing is ever in it, so all is null. */
const NOT_THERE = createColumn('boolean');

/** A file that rows went to: which row of the columns stands at each position (undefined: all, in order). */
export interface PlacedRows {
  readonly path: string;
  readonly rows: Int32Array | undefined;
}

/** Kept with the decoders of a table; `clear` starts a job. */
export class JobChanges {
  readonly #columns: TableColumns;
  readonly #hasher: KeyHasher;
  readonly #upsert: UpsertTable;
  readonly #operation: BytesColumn | undefined;
  readonly key: RecordKey | undefined;
  /** `positions` holds the row in the job's columns; deletions have their hash already. */
  readonly #changes = new Entries();
  readonly #partial = new PartialRows();
  /** Of how many changes hash and stamp are known. */
  #hashed = 0;
  /** The slice of each change: its stamps ascend within it. */
  #slices = new Int32Array(1_024);
  /** Truncates are few. */
  #truncates: { readonly slice: number; readonly stamp: Stamp }[] = [];

  constructor(columns: TableColumns, upsert: UpsertTable, isJsonKey: boolean) {
    this.#columns = columns;
    this.#upsert = upsert;
    const parts = upsert.columns.map(({ fieldId }) => columns.byId(fieldId));
    this.#hasher = new KeyHasher(
      parts.map((part) => part ?? NOT_THERE),
      upsert.hashKey,
    );
    this.key = recordKey(columns, upsert, isJsonKey);
    const operation =
      upsert.operationField === undefined ? undefined : columns.byId(upsert.operationField);
    this.#operation = operation instanceof BytesColumn ? operation : undefined;
  }

  clear(): void {
    this.#changes.clear();
    this.#partial.clear();
    this.#hashed = 0;
    this.#truncates = [];
  }

  get count(): number {
    return this.#changes.count;
  }

  /** What the operation column of `row` says; undefined when it names no operation anybody knows. */
  operationAt(row: number, otherwise: ChangeKind): ChangeKind | undefined {
    const column = this.#operation;
    if (column === undefined || row >= column.length || !column.isValid(row)) return otherwise;
    return changeKindOf(column.data, column.offsets[row]!, column.offsets[row + 1]!);
  }

  /** True when the id columns of `row` can't be a key. */
  hasNoKey(row: number): boolean {
    return this.#upsert.nulls === 'error' && this.#hasher.hasNull(row);
  }

  /** The row is written. `unavailable`: columns whose cells are those of the key's row of before. */
  put(
    row: number,
    { slice, offset }: { readonly slice: number; readonly offset: number },
    unavailable: readonly number[] = NO_FIELDS,
  ): void {
    const n = this.#add(slice, offset);
    this.#changes.files[n] = 0;
    this.#changes.positions[n] = row;
    if (unavailable.length === 0) return;
    // A key is what the row says.
    const cells = unavailable.filter(
      (id) => !this.#upsert.columns.some((one) => one.fieldId === id),
    );
    if (cells.length > 0) this.#partial.note(n, cells);
  }

  /** The key in the id columns of `row` is deleted; the row itself is about to be undone. */
  deleteRow(row: number, slice: number, offset: number): void {
    this.#hasher.row(row);
    this.#delete(this.#hasher.hash, slice, offset);
  }

  /** The row that `key` was just asked about is deleted. */
  deleteKey(key: RecordKey, slice: number, offset: number): void {
    this.#delete(key.hasher.hash, slice, offset);
  }

  #delete(hash: SipHash128, slice: number, offset: number): void {
    const n = this.#add(slice, offset);
    this.#changes.files[n] = NO_FILE;
    this.#setHash(n, hash);
  }

  /** All rows that are older are deleted. */
  truncate(slice: JobSlice, number: number, offset: number): void {
    const stamp = { commit: commitAt(slice.commits, offset), partition: slice.partition, offset };
    this.#truncates.push({ slice: number, stamp });
  }

  #add(slice: number, offset: number): number {
    const changes = this.#changes;
    const n = changes.count;
    changes.reserve(n + 1);
    if (n >= this.#slices.length) {
      const grown = new Int32Array(this.#slices.length * 2);
      grown.set(this.#slices);
      this.#slices = grown;
    }
    this.#slices[n] = slice;
    changes.offsets[n] = offset;
    changes.count = n + 1;
    return n;
  }

  #setHash(n: number, { h0, h1, h2, h3 }: SipHash128): void {
    const { hashes } = this.#changes;
    hashes[n * HASH_WORDS] = h0;
    hashes[n * HASH_WORDS + 1] = h1;
    hashes[n * HASH_WORDS + 2] = h2;
    hashes[n * HASH_WORDS + 3] = h3;
  }

  /** Changes from `offset` of slice `slice` on belong to a later job. */
  cutAt(slice: number, offset: number): void {
    this.#truncates = this.#truncates.filter(
      (one) => one.slice < slice || (one.slice === slice && one.stamp.offset < offset),
    );
    const changes = this.#changes;
    let kept = 0;
    while (
      kept < changes.count &&
      (this.#slices[kept]! < slice ||
        (this.#slices[kept] === slice && changes.offsets[kept]! < offset))
    )
      kept += 1;
    changes.count = kept;
  }

  /** Cells that a source didn't send are taken from rows of the same job: before the rows are clustered. */
  fill(slices: readonly JobSlice[]): void {
    if (!this.#partial.any) return;
    this.#hash(slices);
    const truncates = this.#truncates.map(({ stamp }) => stamp);
    this.#partial.fill(this.#changes, this.#columns, truncates);
  }

  /** Stamps and hashes all changes. */
  #hash(slices: readonly JobSlice[]): void {
    const changes = this.#changes;
    if (this.#hashed >= changes.count) return;
    this.#columns.align();
    this.#stamp(slices);
    for (let n = 0; n < changes.count; n += 1) {
      if (changes.files[n] === NO_FILE) continue;
      this.#hasher.row(changes.positions[n]!);
      this.#setHash(n, this.#hasher.hash);
    }
    this.#hashed = changes.count;
  }

  /**
   * Finds the newest change of each key and takes the other rows out of the groups; rows that wait for their cells go
   * into a group of their own, the last one.
   */
  settle(slices: readonly JobSlice[], groups: readonly PartitionGroup[]): SettledChanges {
    const changes = this.#changes;
    this.#hash(slices);
    const newest = newestOfEach(changes);
    const truncate = this.#newestTruncate();
    const lost = new Uint8Array(this.#columns.rowCount);
    let lostRows = 0;
    for (let n = 0; n < changes.count; n += 1) {
      const wins = newest[n] === 1 && !isBefore(changes, n, truncate);
      if (!wins) newest[n] = 0;
      if (wins || changes.files[n] === NO_FILE) continue;
      lost[changes.positions[n]!] = 1;
      lostRows += 1;
    }
    const kept =
      lostRows === 0
        ? groups
        : groups
            .map((group) => ({ ...group, rows: group.rows.filter((row) => lost[row] === 0) }))
            .filter((group) => group.rows.length > 0);
    const partial = this.#partial;
    return new SettledChanges({
      changes,
      newest,
      groups: partial.any ? this.#partialApart(kept) : kept,
      truncate,
      partial,
    });
  }

  /** The file of rows that wait enters no snapshot: which partition it is said to be of doesn't matter. */
  #partialApart(groups: readonly PartitionGroup[]): readonly PartitionGroup[] {
    const changes = this.#changes;
    const waits = new Uint8Array(this.#columns.rowCount);
    for (let n = 0; n < changes.count; n += 1)
      if (changes.files[n] !== NO_FILE && this.#partial.setOf(n) !== WHOLE)
        waits[changes.positions[n]!] = 1;
    const waiting = groups.map((group) => group.rows.filter((row) => waits[row] === 1));
    const first = waiting.findIndex((rows) => rows.length > 0);
    if (first === -1) return groups;
    const whole = groups
      .map((group) => ({ ...group, rows: group.rows.filter((row) => waits[row] === 0) }))
      .filter(({ rows }) => rows.length > 0);
    const rows = Int32Array.from(waiting.flatMap((some) => [...some]));
    return [...whole, { values: groups[first]!.values, rows }];
  }

  #newestTruncate(): Stamp | undefined {
    let newest: Stamp | undefined;
    for (const { stamp } of this.#truncates)
      if (newest === undefined || orderOf(newest, stamp) < 0) newest = stamp;
    return newest;
  }

  #stamp(slices: readonly JobSlice[]): void {
    const changes = this.#changes;
    for (let n = 0; n < changes.count; n += 1) {
      const slice = slices[this.#slices[n]!]!;
      changes.partitions[n] = slice.partition;
      changes.commits[n] = commitAt(slice.commits, changes.offsets[n]!);
    }
  }
}

/** An older change than the newest truncate says nothing: the truncate says it for all keys. */
const isBefore = (changes: Entries, n: number, truncate: Stamp | undefined): boolean =>
  truncate !== undefined && stampBelow(changes, n, truncate);

/** 1 for the newest change of each key, by a table of hashes. */
function newestOfEach(changes: Entries): Uint8Array {
  const { count, hashes } = changes;
  const newest = new Uint8Array(count).fill(1);
  let size = 16;
  while (size < count * 2) size *= 2;
  const table = new Int32Array(size).fill(-1);
  for (let n = 0; n < count; n += 1) {
    const at = n * HASH_WORDS;
    let slot = hashes[at]! & (size - 1);
    for (; table[slot] !== -1; slot = (slot + 1) & (size - 1)) {
      const other = table[slot]! * HASH_WORDS;
      if (
        hashes[at] === hashes[other] &&
        hashes[at + 1] === hashes[other + 1] &&
        hashes[at + 2] === hashes[other + 2] &&
        hashes[at + 3] === hashes[other + 3]
      )
        break;
    }
    const known = table[slot]!;
    if (known === -1) table[slot] = n;
    else if (compareStamps(changes, n, changes, known) > 0) {
      newest[known] = 0;
      table[slot] = n;
    } else newest[n] = 0;
  }
  return newest;
}

interface Settled {
  readonly changes: Entries;
  /** 1 where the change counts. */
  readonly newest: Uint8Array;
  readonly groups: readonly PartitionGroup[];
  readonly truncate: Stamp | undefined;
  readonly partial: PartialRows;
}

/** Valid until the job's changes are cleared. */
export class SettledChanges {
  readonly #parts: Settled;

  constructor(parts: Settled) {
    this.#parts = parts;
  }

  /** Rows to be written. */
  get groups(): readonly PartitionGroup[] {
    return this.#parts.groups;
  }

  /** The sidecar, once it is known where the rows went; undefined when nothing changes. */
  sidecar(files: readonly PlacedRows[], rowCount: number): Sidecar | undefined {
    const { changes, newest, truncate, partial } = this.#parts;
    const fileOf = new Int32Array(rowCount).fill(NO_FILE);
    const positionOf = new Uint32Array(rowCount);
    for (const [file, { rows }] of files.entries()) {
      const length = rows?.length ?? rowCount;
      for (let position = 0; position < length; position += 1) {
        const row = rows === undefined ? position : rows[position]!;
        fileOf[row] = file;
        positionOf[row] = position;
      }
    }
    const kept = new Entries(Math.max(1, changes.count));
    const sets = partial.any ? new Int32Array(changes.count) : undefined;
    for (let n = 0; n < changes.count; n += 1) {
      if (newest[n] === 0) continue;
      kept.copy(changes, n);
      if (sets !== undefined) sets[kept.count - 1] = partial.setOf(n);
      if (changes.files[n] === NO_FILE) continue;
      const row = changes.positions[n]!;
      kept.files[kept.count - 1] = fileOf[row]!;
      kept.positions[kept.count - 1] = positionOf[row]!;
    }
    if (kept.count === 0 && truncate === undefined) return undefined;
    return {
      files: files.map(({ path }) => path),
      changes: kept,
      ...(truncate === undefined ? {} : { truncate }),
      ...(sets === undefined
        ? {}
        : { partial: { sets: partial.sets, of: sets.subarray(0, kept.count) } }),
    };
  }
}

const NO_FIELDS: readonly number[] = [];
