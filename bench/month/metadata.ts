// The log's metadata as the background work needs it, in memory and counted: partitions, flush rows of open objects, rows of
// sealed ones. It keeps the contract of metadata/objects.ts in one process; an auditor inside says at once when something
// goes that retention still holds, or when rows no longer tile a partition.
// Not for: producers, transactions, topics; the month has none.
import { assert } from '../../src/base/assert.ts';
import type { Clock } from '../../src/base/clock.ts';
import type { LeaseToken } from '../../src/metadata/leases.ts';
import type {
  FlushRow,
  MoveLogStart,
  NewObjectEntry,
  ObjectEntry,
  PartitionLog,
} from '../../src/metadata/log.ts';
import type {
  FreedBytes,
  LogObject,
  ObjectState,
  ObjectUse,
  ReplaceEntries,
} from '../../src/metadata/objects.ts';
import { allocateIndex, openIndex, type PackedIndex } from '../../src/metadata/packed-index.ts';
import { BLOCK_HEADER_BYTES } from '../../src/storage/log/wal-format.ts';
import { type Flush, objectSizes } from './flushes.ts';

interface KnownObject {
  object: LogObject;
  /** Of a flush: its row until it is sealed. */
  flush: FlushRow | undefined;
  readonly rows: Set<ObjectEntry>;
  liveBytes: number;
  runs: number;
}

interface KnownPartition {
  readonly partitionId: number;
  logStartOffset: number;
  highWatermark: number;
  sizeBytes: number;
  maxTimestamp: number;
  /** By offset. */
  readonly rows: ObjectEntry[];
  /** Ends of what was produced and when, for the auditor: pairs of (end offset, time), oldest first. */
  readonly produced: number[];
  /** First pair that isn't below the log start. */
  auditAt: number;
}

export interface SimulatedMetadataOptions {
  readonly clock: Clock;
  readonly partitionIds: readonly number[];
  readonly retentionMs: number;
}

/** Counts of the database's work. */
export interface DatabaseWork {
  commits: number;
  swaps: number;
  rowsWritten: number;
  rowsDeleted: number;
}

export class SimulatedMetadata {
  readonly work: DatabaseWork = { commits: 0, swaps: 0, rowsWritten: 0, rowsDeleted: 0 };
  readonly #options: SimulatedMetadataOptions;
  readonly #partitions = new Map<number, KnownPartition>();
  readonly #objects = new Map<number, KnownObject>();
  readonly #idByKey = new Map<string, number>();
  readonly #open = new Map<number, KnownObject>();
  /** Ascending ids of sealed objects. */
  #sealed: number[] = [];
  readonly #unreferenced = new Set<number>();
  readonly #deleting = new Map<number, KnownObject>();
  /** Partitions whose log start has moved past rows. */
  readonly #expiring = new Set<number>();
  readonly #claims = new Map<string, readonly number[]>();
  #lastId = 0;
  #lastCommit = 0;
  #openBytes = 0;

  constructor(options: SimulatedMetadataOptions) {
    this.#options = options;
    for (const partitionId of options.partitionIds)
      this.#partitions.set(partitionId, {
        partitionId,
        logStartOffset: 0,
        highWatermark: 0,
        sizeBytes: 0,
        maxTimestamp: -1,
        rows: [],
        produced: [],
        auditAt: 0,
      });
  }

  /** Bytes of flushes that aren't compacted yet. */
  get openBytes(): number {
    return this.#openBytes;
  }

  get rowCount(): number {
    let count = 0;
    for (const { rows } of this.#partitions.values()) count += rows.length;
    return count;
  }

  get sealedCount(): number {
    return this.#sealed.length;
  }

  /** The oldest open object's age. */
  openAgeMs(): number {
    const [oldest] = this.#open.values();
    return oldest === undefined ? 0 : this.#options.clock.now() - oldest.object.createdMs;
  }

  /** A flush is durable and commits: offsets are given, its index becomes a row. `bytes`: of its object. */
  commit(key: string, flush: Flush): { readonly row: FlushRow; readonly bytes: number } {
    const nowMs = this.#options.clock.now();
    const index = this.#indexOf(flush, nowMs);
    const { bytes } = objectSizes(flush, index.bytes.length);
    this.#lastCommit += 1;
    this.work.commits += 1;
    this.work.rowsWritten += 1;
    const object = this.#newObject({ key, bytes, state: 'open', nowMs });
    const row: FlushRow = {
      commitNumber: this.#lastCommit,
      flushId: new Uint8Array(16),
      objectId: object.object.objectId,
      objectKey: key,
      generation: 0,
      committedMs: nowMs,
      index: index.bytes,
    };
    object.flush = row;
    this.#open.set(object.object.objectId, object);
    this.#openBytes += bytes;
    return { row, bytes };
  }

  #indexOf({ partitionIds, lengths, records, batches }: Flush, nowMs: number): PackedIndex {
    const index = allocateIndex(partitionIds.length);
    let position = 0;
    for (let n = 0; n < partitionIds.length; n += 1) {
      const partition = this.#partitions.get(partitionIds[n]!)!;
      index.partitionIds[n] = partition.partitionId;
      index.baseOffsets[n] = partition.highWatermark;
      index.offsetSpans[n] = records[n]!;
      index.blockPositions[n] = position;
      index.positions[n] = position + BLOCK_HEADER_BYTES;
      index.lengths[n] = lengths[n]!;
      index.recordCounts[n] = records[n]!;
      index.batchCounts[n] = batches[n]!;
      index.maxTimestamps[n] = nowMs;
      position += BLOCK_HEADER_BYTES + lengths[n]!;
      partition.highWatermark += records[n]!;
      partition.sizeBytes += lengths[n]!;
      partition.maxTimestamp = nowMs;
      partition.produced.push(partition.highWatermark, nowMs);
    }
    return index;
  }

  #newObject(made: { key: string; bytes: number; state: ObjectState; nowMs: number }): KnownObject {
    const { key, bytes, state, nowMs } = made;
    this.#lastId += 1;
    const objectId = this.#lastId;
    const object: LogObject = {
      objectId,
      key,
      kind: 'object',
      generation: 0,
      state,
      bytes,
      createdMs: nowMs,
      changedMs: nowMs,
    };
    const known = { object, flush: undefined, rows: new Set<ObjectEntry>(), liveBytes: 0, runs: 0 };
    this.#objects.set(objectId, known);
    this.#idByKey.set(key, objectId);
    return known;
  }

  /**
   * Where the older half of a partition's rows ends. On a sample the newest part waits long for enough to be merged with; at
   * the full rate that is a minute.
   */
  restingEnd(partitionId: number): number {
    const { rows } = this.#partitions.get(partitionId)!;
    return rows[rows.length >> 1]?.baseOffset ?? 0;
  }

  // What LogMetadata has.

  async partitions(partitionIds?: readonly number[]): Promise<readonly PartitionLog[]> {
    const found =
      partitionIds === undefined
        ? [...this.#partitions.values()]
        : [...new Set(partitionIds)].map((partitionId) => this.#partitions.get(partitionId)!);
    return found.map(describe);
  }

  async written(partitionId: number, limit: number): Promise<readonly PartitionLog[]> {
    return [...this.#partitions.values()]
      .filter((one) => one.partitionId > partitionId && one.logStartOffset < one.highWatermark)
      .sort((one, other) => one.partitionId - other.partitionId)
      .slice(0, limit)
      .map(describe);
  }

  async storeMs(): Promise<number> {
    return this.#options.clock.now();
  }

  async flushesAfter(commitNumber: number, limit: number): Promise<readonly FlushRow[]> {
    const found: FlushRow[] = [];
    for (const { flush } of this.#open.values()) {
      if (flush !== undefined && flush.commitNumber > commitNumber) found.push(flush);
      if (found.length === limit) break;
    }
    return found;
  }

  async entriesFrom(
    partitionId: number,
    offset: number,
    limit: number,
  ): Promise<readonly ObjectEntry[]> {
    const { rows } = this.#partitions.get(partitionId)!;
    const from = firstRow(rows, (row) => row.endOffset > offset);
    return rows.slice(from, from + limit);
  }

  async moveLogStarts(moves: readonly MoveLogStart[]): Promise<readonly PartitionLog[]> {
    this.work.commits += 1;
    return moves.map(({ partitionId, logStartOffset }) => {
      const partition = this.#partitions.get(partitionId)!;
      this.work.rowsWritten += 1;
      if (logStartOffset > partition.logStartOffset) {
        this.#auditExpiry(partition, logStartOffset);
        partition.logStartOffset = logStartOffset;
        this.#expiring.add(partitionId);
      }
      return describe(partition);
    });
  }

  /** What lies below the new start must be older than retention. */
  #auditExpiry(partition: KnownPartition, logStartOffset: number): void {
    const { produced } = partition;
    const oldestMs = this.#options.clock.now() - this.#options.retentionMs;
    let at = partition.auditAt;
    for (; at < produced.length && produced[at]! <= logStartOffset; at += 2)
      assert(produced[at + 1]! < oldestMs, 'retention still holds what it lets go');
    partition.auditAt = at;
    if (at < 8_192) return;
    produced.splice(0, at);
    partition.auditAt = 0;
  }

  // What ObjectsMetadata has.

  async list(state: ObjectState, afterId: number, limit: number): Promise<readonly LogObject[]> {
    assert(state === 'open', 'only open objects are listed');
    const found: LogObject[] = [];
    for (const { object } of this.#open.values()) {
      if (object.objectId > afterId) found.push(object);
      if (found.length === limit) break;
    }
    return found;
  }

  async notOpen(objectIds: readonly number[]): Promise<readonly number[]> {
    return objectIds.filter((objectId) => !this.#open.has(objectId));
  }

  async uses(afterId: number, limit: number): Promise<readonly ObjectUse[]> {
    const from = firstAbove(this.#sealed, afterId);
    return this.#sealed.slice(from, from + limit).map((objectId) => this.#useOf(objectId));
  }

  #useOf(objectId: number): ObjectUse {
    const { object, rows, liveBytes, runs } = this.#objects.get(objectId)!;
    return { object, liveBytes, entries: rows.size, runs };
  }

  /** Uses of all sealed objects: what the report looks at. */
  *allUses(): Generator<ObjectUse> {
    for (const objectId of this.#sealed) yield this.#useOf(objectId);
  }

  async entriesOf(objectIds: readonly number[]): Promise<readonly ObjectEntry[]> {
    const found = objectIds.flatMap((objectId) => [...(this.#objects.get(objectId)?.rows ?? [])]);
    return found.sort((a, b) => a.partitionId - b.partitionId || a.baseOffset - b.baseOffset);
  }

  async flushesOf(objectIds: readonly number[]): Promise<readonly FlushRow[]> {
    return objectIds.flatMap((objectId) => this.#open.get(objectId)?.flush ?? []);
  }

  async entryAtTime(
    partitionId: number,
    timestampMs: number,
    fromOffset: number,
  ): Promise<ObjectEntry | undefined> {
    const { rows } = this.#partitions.get(partitionId)!;
    const first = firstRow(rows, (r) => r.endOffset > fromOffset && r.maxTimestamp >= timestampMs);
    return rows[first];
  }

  async claim(lease: LeaseToken, objectIds: readonly number[]): Promise<boolean> {
    this.work.commits += 1;
    const others = new Set(await this.claimedByOthers(lease));
    if (objectIds.some((objectId) => others.has(objectId))) return false;
    this.#claims.set(lease.name, objectIds);
    return true;
  }

  async claimedByOthers({ name }: LeaseToken): Promise<readonly number[]> {
    return [...this.#claims].flatMap(([other, ids]) => (other === name ? [] : ids));
  }

  async replace({ object, entries, replaced, openObjects }: ReplaceEntries): Promise<number> {
    const nowMs = this.#options.clock.now();
    this.work.commits += 1;
    this.work.swaps += 1;
    const made = this.#newObject({ ...object, state: 'sealed', nowMs });
    for (const row of replaced) this.#giveWay(row);
    for (const objectId of openObjects) this.#sealOpen(objectId);
    const { objectId, key: objectKey } = made.object;
    for (const entry of entries) this.#insert(made, { ...entry, objectId, objectKey });
    this.#sealed.push(objectId);
    if (made.rows.size === 0) this.#unreferenced.add(objectId);
    return objectId;
  }

  #giveWay({
    partitionId,
    baseOffset,
    endOffset,
    objectId,
  }: Pick<ObjectEntry, 'partitionId' | 'baseOffset' | 'endOffset' | 'objectId'>): void {
    const { rows, logStartOffset } = this.#partitions.get(partitionId)!;
    const at = firstRow(rows, (row) => row.baseOffset >= baseOffset);
    const row = rows[at];
    if (row?.objectId === objectId && row.baseOffset === baseOffset) {
      rows.splice(at, 1);
      this.#drop(row);
      return;
    }
    assert(endOffset <= logStartOffset, 'nobody else rewrites what a maintainer has claimed');
  }

  #drop(row: ObjectEntry): void {
    const object = this.#objects.get(row.objectId)!;
    object.rows.delete(row);
    object.liveBytes -= row.bytes;
    object.runs -= row.runCount;
    this.work.rowsDeleted += 1;
    if (object.rows.size === 0) this.#unreferenced.add(row.objectId);
  }

  #sealOpen(objectId: number): void {
    const known = this.#open.get(objectId);
    assert(known !== undefined, 'nobody else compacts what a maintainer has claimed');
    assert(this.#open.keys().next().value === objectId, 'none is sealed before an older one');
    this.#open.delete(objectId);
    this.#openBytes -= known.object.bytes;
    known.flush = undefined;
    known.object = { ...known.object, state: 'sealed' };
    this.work.rowsDeleted += 1;
    this.#unreferenced.add(objectId);
    this.#sealed.splice(firstAbove(this.#sealed, objectId), 0, objectId);
  }

  #insert(
    object: KnownObject,
    entry: NewObjectEntry & Pick<ObjectEntry, 'objectId' | 'objectKey'>,
  ): void {
    const partition = this.#partitions.get(entry.partitionId)!;
    if (entry.endOffset <= partition.logStartOffset) return;
    const at = firstRow(partition.rows, (row) => row.baseOffset >= entry.baseOffset);
    partition.rows.splice(at, 0, entry);
    object.rows.add(entry);
    object.liveBytes += entry.bytes;
    object.runs += entry.runCount;
    this.work.rowsWritten += 1;
  }

  async dropExpired(limit: number): Promise<readonly FreedBytes[]> {
    const freed: FreedBytes[] = [];
    let left = limit;
    for (const partitionId of this.#expiring) {
      const partition = this.#partitions.get(partitionId)!;
      const { rows, logStartOffset } = partition;
      const whole = firstRow(rows, (row) => row.endOffset > logStartOffset);
      const gone = rows.splice(0, Math.min(whole, left));
      for (const row of gone) this.#drop(row);
      const bytes = gone.reduce((sum, row) => sum + row.bytes, 0);
      partition.sizeBytes -= bytes;
      if (gone.length > 0) freed.push({ partitionId, bytes });
      left -= gone.length;
      if (left === 0) break;
      this.#expiring.delete(partitionId);
    }
    if (freed.length > 0) this.work.commits += 1;
    return freed;
  }

  async claimUnreferenced(nowMs: number, limit: number): Promise<readonly LogObject[]> {
    const claimed: LogObject[] = [];
    for (const objectId of this.#unreferenced) {
      if (claimed.length === limit) break;
      const known = this.#objects.get(objectId)!;
      known.object = { ...known.object, state: 'deleting', changedMs: nowMs };
      this.#unreferenced.delete(objectId);
      this.#deleting.set(objectId, known);
      this.#sealed.splice(firstAbove(this.#sealed, objectId - 1), 1);
      claimed.push(known.object);
    }
    if (claimed.length > 0) this.work.commits += 1;
    return claimed;
  }

  async claimKeys(keys: readonly string[]): Promise<readonly string[]> {
    const unknown = keys.filter((key) => !this.#idByKey.has(key));
    assert(unknown.length === 0, 'nobody dies in this month, so there are no orphans');
    return unknown;
  }

  async deletable(beforeMs: number, limit: number): Promise<readonly LogObject[]> {
    const found: LogObject[] = [];
    for (const { object } of this.#deleting.values()) {
      if (found.length === limit || object.changedMs > beforeMs) break;
      found.push(object);
    }
    return found;
  }

  async forget(objectIds: readonly number[]): Promise<void> {
    this.work.commits += 1;
    for (const objectId of objectIds) {
      const known = this.#deleting.get(objectId);
      assert(known?.rows.size === 0, 'L10: no referenced object is forgotten');
      this.#deleting.delete(objectId);
      this.#objects.delete(objectId);
      this.#idByKey.delete(known.object.key);
      this.work.rowsDeleted += 1;
    }
  }

  async cleanings(): Promise<readonly []> {
    return [];
  }

  /** Rows and flushes must tile each partition from its log start to its end. @returns bytes that they hold. */
  audit(): number {
    const ends = new Map<number, number>();
    let bytes = 0;
    for (const { partitionId, rows, logStartOffset } of this.#partitions.values()) {
      let next = rows[0] === undefined ? undefined : Math.min(rows[0].baseOffset, logStartOffset);
      for (const row of rows) {
        assert(
          row.baseOffset === next || next === undefined || row === rows[0],
          'L4: rows tile the log',
        );
        next = row.endOffset;
        bytes += row.bytes;
      }
      assert((rows[0]?.baseOffset ?? 0) <= logStartOffset, 'L1: the log start is kept');
      ends.set(partitionId, next ?? 0);
    }
    return bytes + this.#auditOpen(ends);
  }

  #auditOpen(ends: Map<number, number>): number {
    let bytes = 0;
    for (const { flush } of this.#open.values()) {
      const { count, partitionIds, baseOffsets, offsetSpans, lengths } = openIndex(flush!.index);
      for (let n = 0; n < count; n += 1) {
        assert(ends.get(partitionIds[n]!) === baseOffsets[n], 'L4: flushes follow the rows');
        ends.set(partitionIds[n]!, baseOffsets[n]! + offsetSpans[n]!);
        bytes += lengths[n]!;
      }
    }
    for (const { partitionId, highWatermark } of this.#partitions.values())
      assert(ends.get(partitionId) === highWatermark, 'L1: everything up to the end is there');
    return bytes;
  }
}

const describe = ({
  logStartOffset,
  highWatermark,
  ...partition
}: KnownPartition): PartitionLog => ({
  partitionId: partition.partitionId,
  logStartOffset,
  highWatermark,
  lastStableOffset: highWatermark,
  maxTimestamp: partition.maxTimestamp,
  sizeBytes: partition.sizeBytes,
});

/** The first row for which the monotone `holds` is true, or how many there are. */
function firstRow(rows: readonly ObjectEntry[], holds: (row: ObjectEntry) => boolean): number {
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(rows[middle]!)) high = middle;
    else low = middle + 1;
  }
  return low;
}

function firstAbove(ids: readonly number[], id: number): number {
  let [low, high] = [0, ids.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (ids[middle]! > id) high = middle;
    else low = middle + 1;
  }
  return low;
}
