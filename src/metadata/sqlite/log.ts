// The log on SQLite. See metadata/log.ts for the contract.
// One process writes (the data directory's lock), so the sequencer's state — ends of logs, sequences of producers —
// is kept in memory and a commit writes exactly one row: the flush with its index and what it changed. Rows of
// partitions and producers are brought up to date by `checkpoint`, in slices; a restart replays the flush rows since.
import { assert } from '../../base/assert.ts';
import { FloeError } from '../../base/error.ts';
import type { BatchColumns } from '../batch-columns.ts';
import { type Decision, decide, type OpenRanges } from '../decide.ts';
import {
  checkTimely,
  eachProducerBatch,
  markerFlushId,
  packExceptions,
  packProducers,
  packRuns,
  recallOutcome,
} from '../flush-outcome.ts';
import type {
  AbortedTransaction,
  CommittedFlush,
  FlushCommit,
  FlushObject,
  FlushRow,
  Following,
  LogMetadata,
  LogSnapshot,
  MoveLogStart,
  ObjectEntry,
  PartitionLog,
  PartitionTransactions,
  SealObject,
  StageRider,
} from '../log.ts';
import { decideMarkers } from '../markers.ts';
import { EntryKind, endOffset, openIndex, type PackedIndex } from '../packed-index.ts';
import {
  appendSequence,
  coordinatorEpoch,
  markSequences,
  newestSequence,
  newSequences,
  sequencesActiveMs,
  sequencesEpoch,
  sequencesFromBytes,
  sequencesToBytes,
} from '../sequences.ts';
import type { EndedTransaction, PartitionProducer } from '../transactions.ts';
import type { Database } from './database.ts';
import {
  type Change,
  Draft,
  emptyPartition,
  type MemoryPartition,
  type TransactionStore,
  toPartitionLog,
} from './log-memory.ts';
import { FLUSH_COLUMNS, toFlushRow, toObjectEntry } from './log-rows.ts';
import type { ProducerAges, SequenceStore } from './producers.ts';
import type { RecentCommits } from './recent-commits.ts';
import { admitRiders, recallRiders, type StageEntrance } from './stage-riders.ts';
import type { PartitionHooks } from './topics.ts';
import { TransactionRanges } from './transaction-ranges.ts';
import type { SqliteVersions } from './versions.ts';

/** A local file as the store knows it. */
export interface KnownFile {
  readonly objectId: number;
  readonly key: string;
  readonly generation: number;
  readonly state: 'open' | 'sealed' | 'deleting' | 'deleted';
}

/** Keys of objects that hold markers only begin with it; nothing is stored under them. */
const MARKERS_KEY = 'markers/';

/** Pages that any commit rewrites: table leaf, unique index, and the way up. */
const COMMIT_BYTES = 4 * 4096;

const EMPTY = new Uint8Array(0);

/** Tables whose rows go with their partitions. */
const DELETED_WITH_PARTITIONS = [
  'log_partitions',
  'producer_sequences',
  'object_entries',
  'log_cleanings',
];

/** Where markers go and who hears of them: the sequencer, which knows the file that is being filled. */
export interface MarkerHost {
  /** The file that is being filled; undefined: the object of the newest flush. @throws the system's error. */
  place(): FlushObject | undefined;
  /** A commit of markers, after it has happened. */
  committed(commit: FlushRow): void;
  /** It failed, after `place` had named a file. */
  failed(caught: unknown): void;
}

const ENTRY_COLUMNS = `partition_id, base_offset, end_offset, object_id, index_position, index_length, bytes,
  record_count, run_count, max_timestamp, commit_number`;

/** What the log needs of its neighbours in the same database. */
export interface SqliteLogStores {
  readonly ages: ProducerAges;
  readonly transactions: TransactionStore;
  readonly stages: StageEntrance;
  readonly versions: SqliteVersions;
  /** Given: commits are kept for those who follow. */
  readonly recent: RecentCommits | undefined;
}

export class SqliteLog implements LogMetadata, PartitionHooks, SequenceStore {
  readonly #db: Database;
  readonly #ages: ProducerAges;
  readonly #transactions: TransactionStore;
  readonly #ranges: TransactionRanges;
  readonly #partitions = new Map<number, MemoryPartition>();
  /** Partitions with something to checkpoint, in order of their first dirty commit. */
  readonly #dirty = new Set<number>();
  readonly #openFiles = new Map<string, number>();
  #lastCommit = 0;
  /** About how many bytes commits have put into SQLite's own log since this was last set to 0. */
  pendingLogBytes = 0;
  /** Set by the sequencer. */
  markerHost: MarkerHost | undefined;
  readonly #stages: StageEntrance;
  readonly #versions: SqliteVersions;
  readonly #recent: RecentCommits | undefined;

  constructor(db: Database, stores: SqliteLogStores) {
    this.#db = db;
    this.#ages = stores.ages;
    this.#transactions = stores.transactions;
    this.#stages = stores.stages;
    this.#versions = stores.versions;
    this.#recent = stores.recent;
    this.#ranges = new TransactionRanges(db);
    this.#load();
  }

  /** The newest commit number, 0 before the first. */
  get lastCommit(): number {
    return this.#lastCommit;
  }

  async commit(flushes: readonly FlushCommit[]): Promise<readonly CommittedFlush[]> {
    return this.commitNow(flushes);
  }

  /** {@link commit} for the sequencer's own thread. */
  commitNow(flushes: readonly FlushCommit[]): readonly CommittedFlush[] {
    return this.#db.transaction(() => {
      const draft = this.#draft();
      let number = this.#lastCommit;
      const committed = flushes.map((flush) => {
        const known = this.recall(flush.flushId, flush.batches, flush.riders);
        if (known !== undefined) return known;
        number += 1;
        return this.#commitOne(draft, flush, number);
      });
      this.#db.afterCommit(() => {
        this.#lastCommit = number;
        for (const apply of draft.changes) this.#apply(apply);
      });
      return committed;
    });
  }

  #draft(): Draft {
    return new Draft(this.#partitions, this.#ages, this.#transactions);
  }

  /** The outcome of a flush that was committed under this id, if any. */
  recall(
    flushId: Uint8Array,
    batches: BatchColumns,
    riders?: readonly StageRider[],
  ): CommittedFlush | undefined {
    const row = this.#db
      .prepare(
        `SELECT commit_number, committed_ms, object_id, packed_index, exceptions, key, generation
        FROM flushes JOIN log_objects USING (object_id) WHERE flush_id = ?`,
      )
      .get(flushId);
    if (row === undefined) return undefined;
    const index = row['packed_index'] as Uint8Array;
    const exceptions = (row['exceptions'] ?? EMPTY) as Uint8Array;
    const outcome = recallOutcome(batches, openIndex(index), exceptions);
    return {
      commitNumber: Number(row['commit_number']),
      committedMs: Number(row['committed_ms']),
      objectId: Number(row['object_id']),
      objectKey: row['key'] as string,
      generation: Number(row['generation']),
      fresh: false,
      index,
      ...outcome,
      ...(riders === undefined
        ? {}
        : { riders: recallRiders(this.#stages, riders, outcome.errorCodes) }),
    };
  }

  #commitOne(draft: Draft, flush: FlushCommit, commitNumber: number): CommittedFlush {
    checkTimely(flush, flush.nowMs);
    const exists = (partitionId: number) => draft.partition(partitionId) !== undefined;
    const ride = admitRiders(this.#stages, flush, exists);
    const decision = decide(draft.at(flush.nowMs), flush.batches, flush.nowMs, ride?.refusals);
    const index = packRuns(flush.batches, decision);
    const objectId = this.#objectId(flush, sum(index.lengths));
    this.#db
      .prepare('INSERT INTO flushes VALUES (?, ?, ?, ?, ?, ?, ?)')
      .run(
        commitNumber,
        flush.flushId,
        objectId,
        flush.nowMs,
        index.bytes,
        packExceptions(decision),
        packProducers(flush.batches, decision),
      );
    this.pendingLogBytes += COMMIT_BYTES + index.bytes.length;
    for (const state of decision.transactions.values()) this.#transactions.put(state);
    this.#ranges.begin(decision.begun);
    draft.add({ decision, index, commitNumber });
    const { errorCodes, baseOffsets, duplicates } = decision;
    const { key: objectKey, generation } = flush.object;
    const committedMs = flush.nowMs;
    this.#keepRecent({ flush, decision, commitNumber, objectId, index: index.bytes });
    return {
      commitNumber,
      committedMs,
      objectId,
      objectKey,
      generation,
      fresh: true,
      errorCodes,
      baseOffsets,
      duplicates,
      ...(ride === undefined ? {} : { riders: ride.outcomes }),
      index: index.bytes,
    };
  }

  #keepRecent(commit: {
    readonly flush: FlushCommit;
    readonly decision: Decision;
    readonly commitNumber: number;
    readonly objectId: number;
    readonly index: Uint8Array;
  }): void {
    const recent = this.#recent;
    if (recent === undefined) return;
    const { flush, decision, ...row } = commit;
    const { flushId, nowMs: committedMs } = flush;
    const { key: objectKey, generation } = flush.object;
    const { begun } = decision;
    this.#db.afterCommit(() =>
      recent.add({ ...row, flushId, committedMs, objectKey, generation, begun }),
    );
  }

  /**
   * Writes the markers of transactions that end, one commit for all; part of the transaction that ends them, and
   * called once in it. @returns the commit's number, −1 if none of their partitions is left.
   */
  endTransactionsNow(ended: readonly EndedTransaction[], nowMs: number): number {
    return this.#db.transaction(() => {
      const decision = decideMarkers(this.#draft().at(nowMs), ended, nowMs);
      const { index } = decision;
      if (index.count === 0) return -1;
      const commitNumber = this.#lastCommit + 1;
      const flushId = markerFlushId(commitNumber);
      const object = this.#markerObject(commitNumber, nowMs);
      this.#db
        .prepare('INSERT INTO flushes VALUES (?, ?, ?, ?, ?, ?, ?)')
        .run(commitNumber, flushId, object.objectId, nowMs, index.bytes, null, null);
      this.pendingLogBytes += COMMIT_BYTES + index.bytes.length;
      this.#ranges.end(decision);
      this.#db.afterCommit(() => {
        this.#lastCommit = commitNumber;
        this.#apply({ decision, index, commitNumber });
        const row = {
          commitNumber,
          flushId,
          ...object,
          committedMs: nowMs,
          index: index.bytes,
        };
        this.#recent?.add({ ...row, begun: [] });
        this.markerHost?.committed(row);
      });
      return commitNumber;
    });
  }

  /** Markers lie with the flushes before them, so that flush rows of a partition stay in the order of its offsets. */
  #markerObject(commitNumber: number, nowMs: number): MarkerObject {
    const object = this.markerHost?.place();
    if (object !== undefined) {
      const objectId = this.#objectId({ object, nowMs }, 0);
      return { objectId, objectKey: object.key, generation: object.generation };
    }
    const newest = this.#db
      .prepare(`SELECT object_id, key, generation FROM flushes JOIN log_objects USING (object_id)
        WHERE commit_number = ? AND state = 'open'`)
      .get(commitNumber - 1);
    if (newest !== undefined) {
      const [objectId, generation] = [Number(newest['object_id']), Number(newest['generation'])];
      return { objectId, objectKey: newest['key'] as string, generation };
    }
    // Its flush has been compacted already: an object that has an index and no bytes, for the next compaction.
    const key = `${MARKERS_KEY}${commitNumber}`;
    const bare: FlushObject = { key, kind: 'object', generation: 0, bytes: 0 };
    return { objectId: this.#objectId({ object: bare, nowMs }, 0), objectKey: key, generation: 0 };
  }

  #objectId({ object, nowMs }: Pick<FlushCommit, 'object' | 'nowMs'>, liveBytes: number): number {
    const open = this.#openFiles.get(object.key);
    if (open !== undefined) return open;
    const known = this.#db
      .prepare('SELECT object_id, state FROM log_objects WHERE key = ?')
      .get(object.key);
    if (known !== undefined) {
      if (known['state'] !== 'open')
        throw new FloeError('conflict', `object ${object.key} is ${known['state']}: write another`);
      return this.#rememberFile(object, Number(known['object_id']));
    }
    const inserted = this.#db
      .prepare(`INSERT INTO log_objects (key, kind, generation, state, bytes, live_bytes, created_ms, changed_ms)
        VALUES (?, ?, ?, 'open', ?, ?, ?, ?)`)
      .run(object.key, object.kind, object.generation, object.bytes, liveBytes, nowMs, nowMs);
    return this.#rememberFile(object, Number(inserted.lastInsertRowid));
  }

  #rememberFile(object: FlushCommit['object'], objectId: number): number {
    if (object.kind === 'file')
      this.#db.afterCommit(() => this.#openFiles.set(object.key, objectId));
    return objectId;
  }

  #apply({ decision, index, commitNumber }: Change): void {
    for (const [partitionId, tail] of decision.partitions) {
      const partition = this.#partitions.get(partitionId);
      if (partition === undefined) continue;
      partition.nextOffset = tail.nextOffset;
      partition.maxTimestamp = tail.maxTimestamp;
      partition.open = tail.open;
      this.#markDirty(partitionId, partition, commitNumber);
    }
    for (const [partitionId, producers] of decision.sequences) {
      const partition = this.#partitions.get(partitionId);
      if (partition === undefined) continue;
      for (const [producerId, sequences] of producers) {
        partition.sequences.set(producerId, sequences);
        partition.dirtyProducers.add(producerId);
      }
    }
    for (let n = 0; n < index.count; n += 1) {
      const partition = this.#partitions.get(index.partitionIds[n]!);
      if (partition !== undefined) partition.sizeBytes += index.lengths[n]!;
    }
  }

  #markDirty(partitionId: number, partition: MemoryPartition, commitNumber: number): void {
    if (partition.dirtySince !== 0) return;
    partition.dirtySince = commitNumber;
    this.#dirty.add(partitionId);
  }

  async partitions(partitionIds?: readonly number[]): Promise<readonly PartitionLog[]> {
    const found: PartitionLog[] = [];
    for (const partitionId of partitionIds ?? this.#partitions.keys()) {
      const partition = this.#partitions.get(partitionId);
      if (partition !== undefined) found.push(toPartitionLog(partitionId, partition));
    }
    return found;
  }

  async written(partitionId: number, limit: number): Promise<readonly PartitionLog[]> {
    const found: PartitionLog[] = [];
    // In the order of ids, as they were made and loaded.
    for (const [id, partition] of this.#partitions) {
      if (found.length === limit) break;
      if (id > partitionId && partition.logStart < partition.nextOffset)
        found.push(toPartitionLog(id, partition));
    }
    return found;
  }

  async lastCommitNumber(): Promise<number> {
    return this.#lastCommit;
  }

  async storeMs(): Promise<undefined> {
    return undefined;
  }

  async snapshot(): Promise<LogSnapshot> {
    // Nothing here waits for anything, so that it is all of one moment.
    const [lastCommit, versions] = [this.#lastCommit, this.#versions.now()];
    const partitions = [...this.#partitions].map(([id, partition]) =>
      toPartitionLog(id, partition),
    );
    return { lastCommit, versions, partitions, transactions: this.#transactionsNow() };
  }

  async follow(afterCommit: number, limit: number): Promise<Following> {
    if (this.#recent === undefined)
      throw new FloeError('unsupported', 'this store keeps no commits for others to follow');
    const lastCommit = this.#lastCommit;
    const rows = this.#recent.after(afterCommit, { lastCommit, limit });
    return { rows, versions: this.#versions.now(), lastCommit };
  }

  async transactions(): Promise<readonly PartitionTransactions[]> {
    return this.#transactionsNow();
  }

  #transactionsNow(): readonly PartitionTransactions[] {
    const found = new Map<number, PartitionTransactions>();
    const note = (partitionId: number, open: OpenRanges = new Map()) => {
      const lastAbortedOffset = this.#ranges.lastAborted(partitionId);
      found.set(partitionId, { partitionId, open, lastAbortedOffset });
    };
    for (const partitionId of this.#ranges.abortedPartitions) note(partitionId);
    for (const [partitionId, { open }] of this.#partitions)
      if (open !== undefined) note(partitionId, open);
    return [...found.values()];
  }

  async abortedTransactions(
    partitionId: number,
    offset: number,
    endOffset: number,
  ): Promise<readonly AbortedTransaction[]> {
    return this.#ranges.aborted(partitionId, offset, endOffset);
  }

  async forgetAborted(partitionId: number, markerOffsets: readonly number[]): Promise<void> {
    this.#db.transaction(() => this.#ranges.forget(partitionId, markerOffsets));
  }

  /** True for a partition that exists. */
  has(partitionId: number): boolean {
    return this.#partitions.has(partitionId);
  }

  /** Producers that the partition remembers; undefined when it doesn't exist. */
  producersOf(partitionId: number): readonly PartitionProducer[] | undefined {
    const partition = this.#partitions.get(partitionId);
    if (partition === undefined) return undefined;
    return [...partition.sequences].map(([producerId, sequences]) => ({
      producerId,
      producerEpoch: sequencesEpoch(sequences),
      lastSequence: newestSequence(sequences),
      lastTimestamp: sequencesActiveMs(sequences),
      coordinatorEpoch: coordinatorEpoch(sequences),
      currentTransactionStart: partition.open?.get(producerId) ?? -1,
    }));
  }

  async flushesAfter(commitNumber: number, limit: number): Promise<readonly FlushRow[]> {
    return this.#db
      .prepare(`SELECT ${FLUSH_COLUMNS}
        FROM flushes JOIN log_objects USING (object_id)
        WHERE commit_number > ? AND state = 'open' ORDER BY commit_number LIMIT ?`)
      .all(commitNumber, limit)
      .map(toFlushRow);
  }

  async entriesFrom(
    partitionId: number,
    offset: number,
    limit: number,
  ): Promise<readonly ObjectEntry[]> {
    // Entries of a partition don't overlap, so at most one that starts at or below `offset` reaches above it.
    return this.#db
      .prepare(`SELECT object_entries.*, key FROM object_entries JOIN log_objects USING (object_id)
        WHERE partition_id = ?1 AND end_offset > ?2 AND base_offset >= COALESCE(
          (SELECT MAX(base_offset) FROM object_entries WHERE partition_id = ?1 AND base_offset <= ?2), 0)
        ORDER BY base_offset LIMIT ?3`)
      .all(partitionId, offset, limit)
      .map(toObjectEntry);
  }

  async seal(request: SealObject): Promise<void> {
    this.sealNow(request);
  }

  /** {@link seal} for the sequencer's own thread. */
  sealNow(request: SealObject): void {
    this.#db.transaction(() => {
      const row = this.#db
        .prepare('SELECT key, state FROM log_objects WHERE object_id = ?')
        .get(request.objectId);
      if (row === undefined)
        throw new FloeError('not-found', `there is no log object ${request.objectId}`);
      if (row['state'] !== 'open') return;
      const insert = this.#db.prepare(
        `INSERT INTO object_entries (${ENTRY_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      );
      let live = 0;
      for (const entry of request.entries) {
        if (!this.#partitions.has(entry.partitionId)) continue;
        live += entry.bytes;
        insert.run(
          entry.partitionId,
          entry.baseOffset,
          entry.endOffset,
          request.objectId,
          entry.indexPosition,
          entry.indexLength,
          entry.bytes,
          entry.recordCount,
          entry.runCount,
          entry.maxTimestamp,
          entry.commitNumber,
        );
      }
      this.#db
        .prepare(
          "UPDATE log_objects SET state = 'sealed', bytes = ?, live_bytes = ? WHERE object_id = ?",
        )
        .run(request.bytes, live, request.objectId);
      this.#db.afterCommit(() => this.#openFiles.delete(row['key'] as string));
    });
  }

  async moveLogStarts(moves: readonly MoveLogStart[]): Promise<readonly PartitionLog[]> {
    const moved = this.#db.transaction(() => this.#moveLogStarts(moves));
    return this.partitions(moved.map((move) => move.partitionId));
  }

  async deleteRecords(partitionId: number, offset: number): Promise<PartitionLog> {
    const partition = this.#partitions.get(partitionId);
    if (partition === undefined)
      throw new FloeError('not-found', `there is no partition ${partitionId}`);
    const target = offset === -1 ? partition.nextOffset : offset;
    if (target < 0 || target > partition.nextOffset) {
      throw new FloeError(
        'invalid',
        `offset ${offset} lies outside the log, which ends at ${partition.nextOffset}`,
      );
    }
    this.#db.transaction(() =>
      this.#moveLogStarts([{ partitionId, logStartOffset: target, freedBytes: 0 }]),
    );
    return toPartitionLog(partitionId, partition);
  }

  /** Those of partitions that there are. */
  #moveLogStarts(moves: readonly MoveLogStart[]): readonly MoveLogStart[] {
    const known = moves.filter(({ partitionId }) => this.#partitions.has(partitionId));
    const changed = known.filter((move) => this.#moveLogStart(move));
    const ids = changed.map(({ partitionId }) => partitionId);
    if (ids.length > 0) this.#versions.raiseTraced('log-starts', ids);
    return known;
  }

  /** @returns whether anything changed: where the log begins, or how large it is. */
  #moveLogStart({ partitionId, logStartOffset, freedBytes }: MoveLogStart): boolean {
    const partition = this.#partitions.get(partitionId)!;
    const logStart = Math.max(partition.logStart, Math.min(logStartOffset, partition.nextOffset));
    this.#db
      .prepare(
        'UPDATE log_partitions SET log_start = ?, size_bytes = size_bytes - ? WHERE partition_id = ?',
      )
      .run(logStart, freedBytes, partitionId);
    const moves = logStart > partition.logStart;
    if (moves) this.#ranges.dropBelow(partitionId, logStart);
    this.#db.afterCommit(() => {
      partition.logStart = logStart;
      partition.sizeBytes -= freedBytes;
    });
    return moves || freedBytes !== 0;
  }

  /** Local files known to the store, whatever their state: for recovery. */
  files(): readonly KnownFile[] {
    return this.#db
      .prepare("SELECT object_id, key, generation, state FROM log_objects WHERE kind = 'file'")
      .all()
      .map((row) => ({
        objectId: Number(row['object_id']),
        key: row['key'] as string,
        generation: Number(row['generation']),
        state: row['state'] as KnownFile['state'],
      }));
  }

  /** Commit numbers and packed indexes of an object's flushes, in commit order: for recovery. */
  flushesOf(
    objectId: number,
  ): readonly { readonly commitNumber: number; readonly index: Uint8Array }[] {
    return this.#db
      .prepare(
        'SELECT commit_number, packed_index FROM flushes WHERE object_id = ? ORDER BY commit_number',
      )
      .all(objectId)
      .map((row) => ({
        commitNumber: Number(row['commit_number']),
        index: row['packed_index'] as Uint8Array,
      }));
  }

  /** Part of the transaction that creates partitions. */
  created(partitionIds: readonly number[]): void {
    const insert = this.#db.prepare('INSERT INTO log_partitions VALUES (?, 0, 0, -1, 0, ?)');
    for (const partitionId of partitionIds) insert.run(partitionId, this.#lastCommit);
    this.#db.afterCommit(() => {
      for (const partitionId of partitionIds) this.#partitions.set(partitionId, emptyPartition());
    });
  }

  /** Part of the transaction that deletes a topic. Flush rows keep the dead runs until their object goes. */
  deleted(_topicId: string, _topicName: string, partitionIds: readonly number[]): void {
    for (const partitionId of partitionIds) {
      for (const table of DELETED_WITH_PARTITIONS)
        this.#db.prepare(`DELETE FROM ${table} WHERE partition_id = ?`).run(partitionId);
      this.#ranges.deleted(partitionId);
    }
    this.#db.afterCommit(() => {
      for (const partitionId of partitionIds) {
        this.#partitions.delete(partitionId);
        this.#dirty.delete(partitionId);
      }
    });
  }

  /**
   * Brings stored rows up to memory, at most `maxRows` of them in one transaction (about 3 µs each).
   * @returns true while there is more to do.
   */
  checkpoint(maxRows: number): boolean {
    if (this.#dirty.size === 0) return false;
    let budget = maxRows;
    this.#db.transaction(() => {
      for (const partitionId of this.#dirty) {
        if (budget <= 0) break;
        budget -= this.#storePartition(partitionId);
      }
    });
    return this.#dirty.size > 0;
  }

  #storePartition(partitionId: number): number {
    const partition = this.#partitions.get(partitionId);
    assert(partition !== undefined, 'a dirty partition is known');
    this.#db
      .prepare(`UPDATE log_partitions SET high_watermark = ?, max_timestamp = ?, size_bytes = ?, applied_commit = ?
        WHERE partition_id = ?`)
      .run(
        partition.nextOffset,
        partition.maxTimestamp,
        partition.sizeBytes,
        this.#lastCommit,
        partitionId,
      );
    const store = this.#db.prepare('INSERT OR REPLACE INTO producer_sequences VALUES (?, ?, ?, ?)');
    for (const producerId of partition.dirtyProducers) {
      const sequences = partition.sequences.get(producerId);
      if (sequences === undefined) continue;
      store.run(partitionId, producerId, sequencesActiveMs(sequences), sequencesToBytes(sequences));
    }
    const rows = 1 + partition.dirtyProducers.size;
    this.#db.afterCommit(() => {
      partition.dirtySince = 0;
      partition.dirtyProducers.clear();
      this.#dirty.delete(partitionId);
    });
    return rows;
  }

  /** Deletes flush rows that nothing needs: object sealed, state checkpointed, committed before `beforeMs`. */
  pruneFlushes(beforeMs: number, limit: number): number {
    const result = this.#db.transaction(() =>
      this.#db
        .prepare(`DELETE FROM flushes WHERE commit_number IN (
          SELECT commit_number FROM flushes JOIN log_objects USING (object_id)
          WHERE commit_number < ? AND state <> 'open' AND committed_ms <= ? ORDER BY commit_number LIMIT ?)`)
        .run(this.#firstDirtyCommit(), beforeMs, limit),
    );
    return Number(result.changes);
  }

  #firstDirtyCommit(): number {
    // The last row stays, so that commit numbers go on from it after a restart.
    let first = this.#lastCommit;
    for (const partitionId of this.#dirty) {
      const since = this.#partitions.get(partitionId)!.dirtySince;
      if (since < first) first = since;
    }
    return first;
  }

  expireSequences(idleSinceMs: number, limit: number): number {
    const rows = this.#db
      .prepare(
        'SELECT partition_id, producer_id FROM producer_sequences WHERE active_ms < ? LIMIT ?',
      )
      .all(idleSinceMs, limit);
    let expired = 0;
    this.#db.transaction(() => {
      for (const row of rows) {
        const [partitionId, producerId] = [Number(row['partition_id']), Number(row['producer_id'])];
        const partition = this.#partitions.get(partitionId);
        const sequences = partition?.sequences.get(producerId);
        // Active again since the row was stored: the next checkpoint writes it.
        if (sequences !== undefined && sequencesActiveMs(sequences) >= idleSinceMs) continue;
        if (partition?.open?.has(producerId) === true) continue;
        this.#db
          .prepare('DELETE FROM producer_sequences WHERE partition_id = ? AND producer_id = ?')
          .run(partitionId, producerId);
        this.#db.afterCommit(() => partition?.sequences.delete(producerId));
        expired += 1;
      }
    });
    return expired;
  }

  #load(): void {
    const applied = new Map<number, number>();
    for (const row of this.#db
      .prepare('SELECT * FROM log_partitions ORDER BY partition_id')
      .all()) {
      const partition = emptyPartition();
      partition.logStart = Number(row['log_start']);
      partition.nextOffset = Number(row['high_watermark']);
      partition.maxTimestamp = Number(row['max_timestamp']);
      partition.sizeBytes = Number(row['size_bytes']);
      this.#partitions.set(Number(row['partition_id']), partition);
      applied.set(Number(row['partition_id']), Number(row['applied_commit']));
    }
    for (const row of this.#db.prepare('SELECT * FROM producer_sequences').iterate()) {
      const sequences = sequencesFromBytes(row['sequences'] as Uint8Array);
      this.#partitions
        .get(Number(row['partition_id']))
        ?.sequences.set(Number(row['producer_id']), sequences);
    }
    for (const [partitionId, open] of this.#ranges.loadOpen()) {
      const partition = this.#partitions.get(partitionId);
      if (partition !== undefined) partition.open = open;
    }
    const rows = this.#db.prepare(
      'SELECT commit_number, committed_ms, packed_index, producers FROM flushes ORDER BY commit_number',
    );
    for (const row of rows.iterate()) {
      this.#lastCommit = Number(row['commit_number']);
      this.#replay(row as unknown as ReplayRow, applied);
    }
  }

  #replayMarker(partition: MemoryPartition, index: PackedIndex, n: number): void {
    const { producerId, producerEpoch: epoch, ...marker } = index.marker(n);
    const sequences = partition.sequences.get(producerId) ?? newSequences();
    markSequences(sequences, {
      epoch,
      coordinatorEpoch: marker.coordinatorEpoch,
      nowMs: marker.timestampMs,
    });
    partition.sequences.set(producerId, sequences);
    partition.dirtyProducers.add(producerId);
  }

  #replay(row: ReplayRow, applied: ReadonlyMap<number, number>): void {
    const lacks = (partitionId: number) =>
      row.commit_number > (applied.get(partitionId) ?? Infinity);
    const index = openIndex(row.packed_index);
    for (let n = 0; n < index.count; n += 1) {
      const partitionId = index.partitionIds[n]!;
      const partition = this.#partitions.get(partitionId);
      if (partition === undefined || !lacks(partitionId)) continue;
      assert(partition.nextOffset === index.baseOffsets[n], 'L4: replayed flushes leave no gap');
      partition.nextOffset = endOffset(index, n);
      partition.maxTimestamp = index.maxTimestamps[n]!;
      partition.sizeBytes += index.lengths[n]!;
      this.#markDirty(partitionId, partition, row.commit_number);
      if (index.kinds[n] !== EntryKind.BATCHES) this.#replayMarker(partition, index, n);
    }
    eachProducerBatch(
      row.producers ?? EMPTY,
      row.committed_ms,
      (partitionId, producerId, batch) => {
        const partition = this.#partitions.get(partitionId);
        if (partition === undefined || !lacks(partitionId)) return;
        const sequences = partition.sequences.get(producerId) ?? newSequences();
        appendSequence(sequences, batch);
        partition.sequences.set(producerId, sequences);
        partition.dirtyProducers.add(producerId);
      },
    );
  }
}

interface MarkerObject {
  readonly objectId: number;
  readonly objectKey: string;
  readonly generation: number;
}

interface ReplayRow {
  readonly commit_number: number;
  readonly committed_ms: number;
  readonly packed_index: Uint8Array;
  readonly producers: Uint8Array | null;
}

function sum(values: Uint32Array): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}
