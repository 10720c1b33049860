// The log as its users see it (broker, table topics, queries): append, read, watermarks, times, deletion.
// Everything is keyed by integer partition id; names resolve once, at admission (metadata/topic-directory.ts).
// Errors of single partitions are Kafka error codes in the result; nothing here throws for one partition.
import type { Component } from '../../base/lifecycle.ts';
import type { AbortedTransaction, RiderOutcome } from '../../metadata/log.ts';
import type { StageRequest } from '../../metadata/tables.ts';
import type { TransactionAdmission } from '../../metadata/transactions.ts';

export type { AbortedTransaction } from '../../metadata/log.ts';

/** One validated record batch (magic 2; CRC, lengths and counts checked by the caller). */
export interface AppendItem {
  readonly partitionId: number;
  /** The batch's bytes from base offset to last record. Copied before `append` returns. */
  readonly bytes: Uint8Array;
  readonly recordCount: number;
  /** Last offset delta: the batch takes `lastOffsetDelta + 1` offsets. */
  readonly lastOffsetDelta: number;
  /** −1 without idempotence. */
  readonly producerId: number;
  readonly producerEpoch: number;
  readonly baseSequence: number;
  /** Milliseconds, −1 if none. */
  readonly maxTimestamp: number;
  /** Milliseconds when the topic uses LogAppendTime (already written into the batch), else −1. */
  readonly logAppendTimeMs: number;
  /** Of a transactional batch: its transaction as it was at admission, held against it at the commit (L6). */
  readonly transaction?: TransactionAdmission;
}

export interface AppendOutcome {
  /** A Kafka error code (protocol/errors.ts), 0 when appended or a duplicate of an appended batch. */
  readonly errorCode: number;
  /** −1 on error. */
  readonly baseOffset: number;
  readonly logAppendTimeMs: number;
  readonly logStartOffset: number;
  /** Why, for people; empty unless it says more than the code. */
  readonly errorMessage: string;
}

/** `failed`: nothing was staged and nothing appended; the code is Kafka's. */
export type StagedAppend =
  | RiderOutcome
  | { readonly kind: 'failed'; readonly errorCode: number; readonly message: string };

export type Isolation = 'read_uncommitted' | 'read_committed';

export interface ReadPartitionRequest {
  readonly partitionId: number;
  readonly offset: number;
  readonly maxBytes: number;
}

export interface ReadRequest {
  /** In the order in which they may use up `maxBytes`. */
  readonly partitions: readonly ReadPartitionRequest[];
  readonly maxBytes: number;
  readonly isolation: Isolation;
  /** Budget and cache treatment: consumers' reads never wait behind table or maintenance reads. */
  readonly purpose: 'consumer' | 'table' | 'maintenance';
  readonly signal?: AbortSignal;
}

/** Adjacent batches in memory. The bytes never change while held; release the result when done. */
export interface ReadRun {
  /** Offset of the first record of the first batch. */
  readonly baseOffset: number;
  /**
   * Whole batches, end to end; ends of transactions are control batches among them. Backed by shared memory where
   * possible, so another thread may read them.
   * If `patched`, base offset and leader epoch in the headers are right and the bytes can be sent as they are;
   * else they are raw, and batch n's base offset is that of batch n−1 plus its last offset delta plus 1.
   */
  readonly bytes: Uint8Array;
  readonly patched: boolean;
}

export interface ReadPartitionResult {
  readonly partitionId: number;
  readonly errorCode: number;
  readonly highWatermark: number;
  readonly lastStableOffset: number;
  readonly logStartOffset: number;
  /** The first run may start before the asked offset (a batch is never cut). */
  readonly runs: readonly ReadRun[];
  /** Sum of the runs' lengths. */
  readonly bytes: number;
  /** Only for read_committed: what a reader of these runs leaves out, by the offsets of their markers. */
  readonly abortedTransactions: readonly AbortedTransaction[];
}

export interface ReadResult {
  readonly partitions: readonly ReadPartitionResult[];
  /** Unpins slabs and blocks; call exactly once, after the last byte was used. */
  release(): void;
}

export interface Watermarks {
  readonly logStartOffset: number;
  readonly lastStableOffset: number;
  readonly highWatermark: number;
}

export interface OffsetAtTime {
  readonly offset: number;
  readonly timestamp: number;
}

/** Records from `offsets[n]` on came by commit `commits[n]`, up to the next step. Offsets ascend. */
export interface CommitSteps {
  readonly offsets: Float64Array;
  readonly commits: Float64Array;
}

export interface Log extends Component {
  /**
   * Admits the batches in order of calls, synchronously; resolves when their flush is durable and committed,
   * or refused. Outcomes are in the order of `items`. Never rejects.
   */
  append(items: readonly AppendItem[]): Promise<readonly AppendOutcome[]>;
  /**
   * Appends the batches and lets a stage of table work enter, in one transaction: both happen or neither.
   * The batches are without producer and together no larger than a slab. Never rejects.
   */
  appendWithStage(items: readonly AppendItem[], stage: StageRequest): Promise<StagedAppend>;
  /** Bytes that one batch, or the batches of one {@link appendWithStage}, may have. */
  readonly maxAppendBytes: number;
  /** True while bytes in flight exceed the bound: stop reading sockets that produce. */
  readonly congested: boolean;
  /** Bytes that may be in flight besides those that are: 0 while it is congested, else above. */
  readonly room: number;
  /** Calls back once when congestion ends (at once when there is none). */
  whenRelieved(action: () => void): void;
  read(request: ReadRequest): Promise<ReadResult>;
  /**
   * Which commits of the sequencer brought the records of `[offset, endOffset)` (K1): an order over all partitions.
   * The first step begins at or before `offset`. What was sealed by a release without steps has the number of its
   * object's newest commit. @throws FloeError as reads do.
   */
  commitSteps(partitionId: number, offset: number, endOffset: number): Promise<CommitSteps>;
  /** Number of the newest commit that is visible here. */
  readonly lastCommitNumber: number;
  /**
   * Resolves once everything is visible here that was committed, by whichever broker, before the call: what must not
   * be answered from a stale copy is answered after it. Embedded mode: at once.
   * @throws FloeError `unavailable`, `timeout`: the metadata store could not be asked.
   */
  caughtUp(): Promise<void>;
  /** From memory; undefined for an unknown partition id. Embedded mode: exact, else as of `lastCommitNumber`. */
  watermarks(partitionId: number): Watermarks | undefined;
  /** Calls back after the partition's high watermark or last stable offset moved. Returns how to stop that. */
  subscribe(partitionIds: readonly number[], listener: (partitionId: number) => void): () => void;
  /** The first record at or after `timestampMs` below the isolation's end; undefined when there is none. */
  offsetForTime(
    partitionId: number,
    timestampMs: number,
    isolation: Isolation,
  ): Promise<OffsetAtTime | undefined>;
  /**
   * The record with the largest timestamp (first of equals); undefined on an empty partition, and when it lies at or
   * above the isolation's end (Kafka looks no further). Default: read_uncommitted.
   */
  maxTimestamp(partitionId: number, isolation?: Isolation): Promise<OffsetAtTime | undefined>;
  /**
   * Moves the log start up to `offset` (−1: the high watermark).
   * @returns the new log start. @throws FloeError `invalid` above the high watermark, `not-found`.
   */
  deleteRecords(partitionId: number, offset: number): Promise<number>;
  /** Bytes held per partition between log start and end, for DescribeLogDirs and status. */
  sizeOf(partitionId: number): number;
}
