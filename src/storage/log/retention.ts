// How far retention.ms and retention.bytes move a log's start. By time: to the first index entry whose running maximum
// timestamp is young enough, so that a record never goes before its time; by size: by whole shares of objects, as
// Kafka goes by whole segments. `pin` holds it back where somebody (a table topic) still has to read.
// Not for: deleting bytes (collector.ts); DeleteRecords, which moves the start at once (metadata/log.ts).
import type { LogMetadata, MoveLogStart, ObjectEntry, PartitionLog } from '../../metadata/log.ts';

/** What a topic's configs say. −1: no limit. */
export interface RetentionPolicy {
  /** Kafka's `retention.ms`. */
  readonly retentionMs: number;
  /** Kafka's `retention.bytes`, per partition. */
  readonly retentionBytes: number;
}

export interface RetentionOptions {
  readonly log: Pick<LogMetadata, 'written' | 'entriesFrom' | 'moveLogStarts'>;
  /** Undefined: nothing expires (`cleanup.policy` without `delete`, an unknown partition). */
  readonly policy: (partitionId: number) => RetentionPolicy | undefined;
  /** No record at or above it may go; Infinity: no hold. */
  readonly pin: (partitionId: number) => number | Promise<number>;
  /** Offset of the first index entry that reaches the time; undefined when none does. */
  readonly offsetReaching: (
    partitionId: number,
    timestampMs: number,
    logStartOffset: number,
  ) => Promise<number | undefined>;
  /** Told of new log starts, after the transaction. */
  readonly onMoved: (partitions: readonly PartitionLog[]) => void;
}

/** Partitions looked at, and their log starts moved in one transaction. */
const PARTITIONS_AT_ONCE = 500;
const ROWS_AT_ONCE = 64;

/** Moves the log starts that are due. @returns how many moved. `nowMs`: the metadata store's time. */
export async function applyRetention(options: RetentionOptions, nowMs: number): Promise<number> {
  let moved = 0;
  for (let after = 0; ; ) {
    const partitions = await options.log.written(after, PARTITIONS_AT_ONCE);
    const moves: MoveLogStart[] = [];
    for (const partition of partitions) {
      const logStartOffset = await newLogStart(options, partition, nowMs);
      if (logStartOffset <= partition.logStartOffset) continue;
      // The bytes come off when the rows do (ObjectsMetadata.dropExpired), once, whatever moved the start.
      moves.push({ partitionId: partition.partitionId, logStartOffset, freedBytes: 0 });
    }
    if (moves.length > 0) options.onMoved(await options.log.moveLogStarts(moves));
    moved += moves.length;
    if (partitions.length < PARTITIONS_AT_ONCE) return moved;
    after = partitions.at(-1)!.partitionId;
  }
}

async function newLogStart(
  options: RetentionOptions,
  partition: PartitionLog,
  nowMs: number,
): Promise<number> {
  const policy = options.policy(partition.partitionId);
  const { logStartOffset, lastStableOffset } = partition;
  if (policy === undefined || logStartOffset >= lastStableOffset) return logStartOffset;
  const byTime = await startByTime(options, partition, nowMs - policy.retentionMs, policy);
  const bySize = await startBySize(options, partition, policy);
  const due = Math.min(Math.max(byTime, bySize), lastStableOffset);
  return due <= logStartOffset ? due : Math.min(due, await options.pin(partition.partitionId));
}

async function startByTime(
  { offsetReaching }: RetentionOptions,
  { partitionId, logStartOffset, highWatermark, maxTimestamp }: PartitionLog,
  oldestMs: number,
  { retentionMs }: RetentionPolicy,
): Promise<number> {
  // Records without timestamps have no age.
  if (retentionMs < 0 || maxTimestamp < 0) return logStartOffset;
  if (maxTimestamp < oldestMs) return highWatermark;
  return (await offsetReaching(partitionId, oldestMs, logStartOffset)) ?? logStartOffset;
}

async function startBySize(
  { log }: RetentionOptions,
  { partitionId, logStartOffset, sizeBytes }: PartitionLog,
  { retentionBytes }: RetentionPolicy,
): Promise<number> {
  if (retentionBytes < 0 || sizeBytes <= retentionBytes) return logStartOffset;
  let start = logStartOffset;
  let size = sizeBytes;
  // From the very first row: those below the log start that the collector has yet to drop still count in the size.
  for (let from = 0; ; ) {
    const rows: readonly ObjectEntry[] = await log.entriesFrom(partitionId, from, ROWS_AT_ONCE);
    for (const row of rows) {
      const dead = row.endOffset <= logStartOffset;
      if (!dead && size - row.bytes < retentionBytes) return start;
      size -= row.bytes;
      from = row.endOffset;
      if (!dead) start = from;
    }
    if (rows.length < ROWS_AT_ONCE) return start;
  }
}
