// The log in the metadata store: the sequencer's commit, watermarks, and where every batch lies.
// One row per flush holds its packed index; a sealed or compacted object has one row per partition instead,
// pointing at the object's own index. Objects themselves (keys, states, live bytes) are metadata/objects.ts.
// Not for: bytes of batches (storage/log).
import type { BatchColumns } from './batch-columns.ts';
import type { BegunTransaction } from './decide.ts';
import type { StageOutcome, StageRequest } from './tables.ts';
import type { Versions } from './versions.ts';

/** The object a flush was written to. */
export interface FlushObject {
  /** Its key (storage/paths.ts). */
  readonly key: string;
  /** `file`: a local WAL file, many flushes, still growing; `object`: an object of this flush alone. */
  readonly kind: 'file' | 'object';
  /** Raised whenever a local file is used anew; 0 for objects. */
  readonly generation: number;
  /** Bytes of the object, as far as known (a file's size grows with its flushes). */
  readonly bytes: number;
}

/**
 * A stage of table work that rides with batches of a flush: it enters in their transaction, or they are refused. So
 * what a table's work writes into a topic (its dead letters) is there exactly once, whatever is staged again.
 */
export interface StageRider {
  /** Of the flush's batches: `[firstBatch, firstBatch + batchCount)`. */
  readonly firstBatch: number;
  readonly batchCount: number;
  readonly stage: StageRequest;
}

/** `unplaced`: a partition that the batches are for doesn't exist (any more); nothing was staged. */
export type RiderOutcome = StageOutcome | { readonly kind: 'unplaced' };

/** A durable flush to be committed. */
export interface FlushCommit {
  /** 16 bytes, independent of the object: a retry under the same id returns the first outcome. */
  readonly flushId: Uint8Array;
  readonly object: FlushObject;
  /** The caller's time, milliseconds; a store with a clock of its own goes by that one. */
  readonly nowMs: number;
  /**
   * A store that several writers share, where it doesn't know the flush id, refuses (`conflict`) what comes later than
   * this by its clock: a writer that was paused for long must not refer to an object that was swept meanwhile (L10).
   */
  readonly notAfterMs?: number;
  /** Positions are within the object. */
  readonly batches: BatchColumns;
  readonly riders?: readonly StageRider[];
}

/** What became of a flush; batch n of the flush is element n. */
export interface CommittedFlush {
  /** Ascends in commit order over all flushes of the cluster. */
  readonly commitNumber: number;
  /** When it was committed (of a retry: the first time), by the store's clock: for retention and producer expiry. */
  readonly committedMs: number;
  readonly objectId: number;
  /** Where the flush really lies: the object of the first call under its id, which a retry may not know. */
  readonly objectKey: string;
  readonly generation: number;
  /** False when an earlier call had committed this flush id already. */
  readonly fresh: boolean;
  /** Kafka error codes; 0 for accepted and for duplicates of accepted batches. */
  readonly errorCodes: Int16Array;
  /** −1 on error; a duplicate's is the original one. */
  readonly baseOffsets: Float64Array;
  /** 1 where the batch is a duplicate (its bytes are in no index). */
  readonly duplicates: Uint8Array;
  /** One for each rider. */
  readonly riders?: readonly RiderOutcome[];
  /** The packed index of the accepted runs (packed-index.ts). */
  readonly index: Uint8Array;
}

/** A commit as its row tells it: a flush, or the markers of transactions that ended together. */
export interface FlushRow {
  readonly commitNumber: number;
  /** Eight zeros begin that of a commit of markers. */
  readonly flushId: Uint8Array;
  readonly objectId: number;
  readonly objectKey: string;
  readonly generation: number;
  readonly committedMs: number;
  readonly index: Uint8Array;
}

/** A commit as other nodes follow it. */
export interface FollowedCommit extends FlushRow {
  /** Transactions that it began in a partition: they hold the last stable offset from its very records on (L7). */
  readonly begun: readonly BegunTransaction[];
}

/** What {@link LogMetadata.follow} brings. */
export interface Following {
  /** In commit order, from right after the number that was asked about, without a gap. */
  readonly rows: readonly FollowedCommit[];
  /** Not older than the newest of `rows`: a partition of theirs that is unknown is explained by `topics`. */
  readonly versions: Versions;
  /** The newest commit; above the last row's when `limit` has cut them. */
  readonly lastCommit: number;
}

/** All that a node's copy of the log begins with, as of one commit. */
export interface LogSnapshot {
  readonly lastCommit: number;
  readonly versions: Versions;
  readonly partitions: readonly PartitionLog[];
  readonly transactions: readonly PartitionTransactions[];
}

/** One partition's share of a sealed or compacted object. */
export interface ObjectEntry {
  readonly partitionId: number;
  readonly objectId: number;
  readonly objectKey: string;
  readonly baseOffset: number;
  readonly endOffset: number;
  /** The object's packed index: bytes `[indexPosition, indexPosition + indexLength)` of the object. */
  readonly indexPosition: number;
  readonly indexLength: number;
  /** Bytes and counts of this partition's batches in the object. */
  readonly bytes: number;
  readonly recordCount: number;
  readonly runCount: number;
  /** Running maximum timestamp of the partition at `endOffset`. */
  readonly maxTimestamp: number;
  /** Latest commit that added to this share (K1's order between partitions). */
  readonly commitNumber: number;
}

export type NewObjectEntry = Omit<ObjectEntry, 'objectId' | 'objectKey'>;

/** A partition's log as a whole. */
export interface PartitionLog {
  readonly partitionId: number;
  readonly logStartOffset: number;
  readonly highWatermark: number;
  /** Where the earliest open transaction begins, the high watermark while none is open; not below the log start. */
  readonly lastStableOffset: number;
  /** −1 when empty. */
  readonly maxTimestamp: number;
  /** Bytes of accepted batches that the log still holds. */
  readonly sizeBytes: number;
}

/** A transaction whose records readers of committed ones leave out, from `firstOffset` up to its producer's marker. */
export interface AbortedTransaction {
  readonly producerId: number;
  readonly firstOffset: number;
}

/** The transactions of a partition that has or had any. */
export interface PartitionTransactions {
  readonly partitionId: number;
  /** First offsets by producer id, ascending. */
  readonly open: ReadonlyMap<number, number>;
  /** Marker of the newest abort whose records may still be read, −1 if there is none. */
  readonly lastAbortedOffset: number;
}

/** Seals an object: its flush rows give way to one entry per partition. */
export interface SealObject {
  readonly objectId: number;
  /** Final size in bytes, footer included. */
  readonly bytes: number;
  readonly entries: readonly NewObjectEntry[];
}

export interface MoveLogStart {
  readonly partitionId: number;
  /** Never moves back; above the high watermark it is cut to it. */
  readonly logStartOffset: number;
  /** Bytes of entries that no longer count. */
  readonly freedBytes: number;
}

export interface LogMetadata {
  /**
   * Commits consecutive durable flushes in order, in one transaction (L2, L3, L5).
   * Rejections are codes of single batches. @throws FloeError: nothing of this call happened, except with
   * `timeout` (unknown: call again with the same flush ids). `conflict`: the object is being deleted.
   */
  commit(flushes: readonly FlushCommit[]): Promise<readonly CommittedFlush[]>;
  /** All partitions, or those asked for (unknown ones left out). Exact: from the primary. */
  partitions(partitionIds?: readonly number[]): Promise<readonly PartitionLog[]>;
  /** Partitions whose logs hold anything, by id, from after `partitionId` (0: all), at most `limit`. Exact, as above. */
  written(partitionId: number, limit: number): Promise<readonly PartitionLog[]>;
  /** Number of the newest commit, 0 before the first. Flushes and ends of transactions count without a gap. */
  lastCommitNumber(): Promise<number>;
  /**
   * The store's clock, milliseconds; undefined when it has none and goes by the times it is told. Whoever names a time
   * that rows are compared with (older than, unused since) starts from this one.
   */
  storeMs(): Promise<number | undefined>;
  /** What a node starts from, before it follows: `partitions()` and `transactions()` as of one commit number. */
  snapshot(): Promise<LogSnapshot>;
  /**
   * Every commit after `afterCommit`, whatever became of its object since, at most `limit` (at least 1) of them.
   * @throws FloeError `not-found`: the store has forgotten what comes after it (older than the horizon) or never had
   * it; start over from `snapshot`. `unsupported`: the store keeps none (one process, by itself).
   */
  follow(afterCommit: number, limit: number): Promise<Following>;
  /** Open and aborted transactions; partitions without any are left out. */
  transactions(): Promise<readonly PartitionTransactions[]>;
  /**
   * Aborted transactions that matter to a reader of `[offset, endOffset)`, by the offset of their markers.
   * `endOffset` is at most the last stable offset: below it no transaction is open (L7).
   */
  abortedTransactions(
    partitionId: number,
    offset: number,
    endOffset: number,
  ): Promise<readonly AbortedTransaction[]>;
  /** Compaction by key has removed the records of aborted transactions: those with these markers are listed no more. */
  forgetAborted(partitionId: number, markerOffsets: readonly number[]): Promise<void>;
  /** Rows of flushes whose objects aren't sealed, in commit order, from after `commitNumber` (0: all). */
  flushesAfter(commitNumber: number, limit: number): Promise<readonly FlushRow[]>;
  /** Entries of a partition that end above `offset`, ascending. */
  entriesFrom(partitionId: number, offset: number, limit: number): Promise<readonly ObjectEntry[]>;
  /** Swaps the flush rows of an object for its entries, in one transaction. Idempotent. */
  seal(request: SealObject): Promise<void>;
  /** Retention: moves log starts in one transaction. Unknown partitions are passed over. */
  moveLogStarts(moves: readonly MoveLogStart[]): Promise<readonly PartitionLog[]>;
  /**
   * DeleteRecords: log start to `offset` (−1: the high watermark).
   * @throws FloeError `invalid` above the high watermark or below 0, `not-found`.
   */
  deleteRecords(partitionId: number, offset: number): Promise<PartitionLog>;
}
