// Where aborted transactions lie in the log, on PostgreSQL: rows written by the commit that aborts them and read by readers
// of committed records (L7). Where open ones begin is part of a partition's row (log-state.ts).
import type { AbortedTransaction } from '../log.ts';
import type { AbortedRange } from '../markers.ts';
import type { Sql, Transaction } from './database.ts';
import { sqlNumbers } from './log-rows.ts';
import type { Migration } from './migrations.ts';

export const transactionRangesMigrations: readonly Migration[] = [
  {
    name: 'transaction-ranges-1',
    sql: `
      -- last_offset is the marker's. stable_offset: ranges that end later begin at or above it.
      CREATE TABLE aborted_transactions (
        partition_id int8 NOT NULL, last_offset int8 NOT NULL, producer_id int8 NOT NULL,
        first_offset int8 NOT NULL, stable_offset int8 NOT NULL, PRIMARY KEY (partition_id, last_offset));`,
  },
];

/** Rows read at a time; a reader needs few, unless a partition is full of aborts. */
const ROWS = 1_000;

/** Part of the transaction that ends transactions. */
export async function putAborted(tx: Transaction, aborted: readonly AbortedRange[]): Promise<void> {
  if (aborted.length === 0) return;
  await tx.run(
    `INSERT INTO aborted_transactions (partition_id, last_offset, producer_id, first_offset, stable_offset)
     SELECT * FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::int8[])`,
    [
      sqlNumbers(aborted.map((range) => range.partitionId)),
      sqlNumbers(aborted.map((range) => range.lastOffset)),
      sqlNumbers(aborted.map((range) => range.producerId)),
      sqlNumbers(aborted.map((range) => range.firstOffset)),
      sqlNumbers(aborted.map((range) => range.stableOffset)),
    ],
  );
}

/** Offset of the newest abort's marker by partition, for those that have any. */
export async function lastAborted(sql: Sql): Promise<ReadonlyMap<number, number>> {
  const rows = await sql.rows<{ partition_id: number; last: number }>(
    'SELECT partition_id, max(last_offset) AS last FROM aborted_transactions GROUP BY partition_id',
  );
  return new Map(rows.map((row) => [row.partition_id, row.last]));
}

/** Part of the transaction that moves log starts: ranges whole below them have no records left. */
export async function dropAbortedBelow(
  tx: Transaction,
  starts: readonly { readonly partitionId: number; readonly logStart: number }[],
): Promise<void> {
  await tx.run(
    `DELETE FROM aborted_transactions a USING unnest($1::int8[], $2::int8[]) AS c (partition_id, log_start)
     WHERE a.partition_id = c.partition_id AND a.last_offset < c.log_start`,
    [
      sqlNumbers(starts.map(({ partitionId }) => partitionId)),
      sqlNumbers(starts.map(({ logStart }) => logStart)),
    ],
  );
}

/** Ranges whose records are gone. */
export async function forgetAborted(
  sql: Sql,
  partitionId: number,
  markerOffsets: readonly number[],
): Promise<void> {
  await sql.run(
    'DELETE FROM aborted_transactions WHERE partition_id = $1 AND last_offset = ANY ($2::int8[])',
    [partitionId, sqlNumbers(markerOffsets)],
  );
}

/** Aborted transactions with records in `[offset, endOffset)` or a marker behind them, by the offset of their end. */
export async function readAborted(
  sql: Sql,
  partitionId: number,
  { offset, endOffset }: { readonly offset: number; readonly endOffset: number },
): Promise<readonly AbortedTransaction[]> {
  const found: AbortedTransaction[] = [];
  for (let from = offset; ; ) {
    const rows = await sql.rows<{
      producer_id: number;
      first_offset: number;
      last_offset: number;
      stable_offset: number;
    }>(
      `SELECT producer_id, first_offset, last_offset, stable_offset FROM aborted_transactions
       WHERE partition_id = $1 AND last_offset >= $2 ORDER BY last_offset LIMIT ${ROWS}`,
      [partitionId, from],
    );
    for (const row of rows) {
      if (row.first_offset < endOffset)
        found.push({ producerId: row.producer_id, firstOffset: row.first_offset });
      if (row.stable_offset >= endOffset) return found;
      from = row.last_offset + 1;
    }
    if (rows.length < ROWS) return found;
  }
}
