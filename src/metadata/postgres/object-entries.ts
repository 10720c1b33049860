// Rows of object_entries and the locks under which they change: whoever adds or takes away entries of a partition, or moves
// its start, holds the partition's row. Not for: what changes when (log.ts, objects.ts).
import type { NewObjectEntry, PartitionLog } from '../log.ts';
import type { Transaction } from './database.ts';
import { PARTITION_COLUMNS, type PartitionRecord, sqlNumbers, toPartitionLog } from './log-rows.ts';

/** Locks partitions in the order of ids. @returns those that exist. */
export async function lockPartitions(
  tx: Transaction,
  partitionIds: Iterable<number>,
): Promise<ReadonlyMap<number, PartitionLog>> {
  const rows = await tx.rows<PartitionRecord>(
    `SELECT ${PARTITION_COLUMNS} FROM log_partitions WHERE partition_id = ANY ($1::int8[])
     ORDER BY partition_id FOR NO KEY UPDATE`,
    [sqlNumbers(new Set(partitionIds))],
  );
  return new Map(rows.map((row) => [row.partition_id, toPartitionLog(row)]));
}

/** Inserts entries of an object into partitions whose rows are locked. */
export async function insertEntries(
  tx: Transaction,
  objectId: number,
  entries: readonly NewObjectEntry[],
): Promise<void> {
  if (entries.length === 0) return;
  const numbers = (of: (entry: NewObjectEntry) => number) => sqlNumbers(entries.map(of));
  await tx.run(
    `INSERT INTO object_entries (object_id, partition_id, base_offset, end_offset, index_position, index_length,
       bytes, record_count, run_count, max_timestamp, commit_number)
     SELECT $1::int8, * FROM unnest($2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::int8[], $7::int8[],
       $8::int8[], $9::int8[], $10::int8[], $11::int8[])`,
    [
      objectId,
      numbers((entry) => entry.partitionId),
      numbers((entry) => entry.baseOffset),
      numbers((entry) => entry.endOffset),
      numbers((entry) => entry.indexPosition),
      numbers((entry) => entry.indexLength),
      numbers((entry) => entry.bytes),
      numbers((entry) => entry.recordCount),
      numbers((entry) => entry.runCount),
      numbers((entry) => entry.maxTimestamp),
      numbers((entry) => entry.commitNumber),
    ],
  );
}
