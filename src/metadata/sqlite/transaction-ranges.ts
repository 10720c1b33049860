// Where transactions lie in the log, on SQLite: first offsets of those that are open, ranges of those that were
// aborted. Both are written with the commit that makes them so, never by checkpoints: few rows, and a start reads them
// as they are. Part of the log's transactions (sqlite/log.ts); not for the transactions' own states.
import type { BegunTransaction, OpenRanges } from '../decide.ts';
import type { AbortedTransaction } from '../log.ts';
import type { AbortedRange, MarkerDecision } from '../markers.ts';
import type { Database, Migration } from './database.ts';

export const transactionRangesMigrations: readonly Migration[] = [
  {
    name: 'transaction-ranges-1',
    sql: `
      CREATE TABLE open_transactions (
        partition_id INTEGER NOT NULL, producer_id INTEGER NOT NULL, first_offset INTEGER NOT NULL,
        PRIMARY KEY (partition_id, producer_id)) STRICT, WITHOUT ROWID;
      -- last_offset is the marker's. stable_offset: ranges that end later begin at or above it.
      CREATE TABLE aborted_transactions (
        partition_id INTEGER NOT NULL, last_offset INTEGER NOT NULL, producer_id INTEGER NOT NULL,
        first_offset INTEGER NOT NULL, stable_offset INTEGER NOT NULL,
        PRIMARY KEY (partition_id, last_offset)) STRICT, WITHOUT ROWID;`,
  },
];

export class TransactionRanges {
  readonly #db: Database;
  /** Offset of the newest abort by partition, for those that have any. */
  readonly #lastAborted = new Map<number, number>();

  constructor(db: Database) {
    this.#db = db;
    const rows = db.prepare(
      'SELECT partition_id, MAX(last_offset) AS last FROM aborted_transactions GROUP BY partition_id',
    );
    for (const row of rows.iterate())
      this.#lastAborted.set(Number(row['partition_id']), Number(row['last']));
  }

  /** By partition, ascending by first offset. */
  loadOpen(): Map<number, OpenRanges> {
    const found = new Map<number, Map<number, number>>();
    const rows = this.#db.prepare('SELECT * FROM open_transactions ORDER BY first_offset');
    for (const row of rows.iterate()) {
      const partitionId = Number(row['partition_id']);
      const open = found.get(partitionId) ?? new Map<number, number>();
      found.set(partitionId, open.set(Number(row['producer_id']), Number(row['first_offset'])));
    }
    return found;
  }

  /** Offset of the marker of the newest abort, −1 if there is none. */
  lastAborted(partitionId: number): number {
    return this.#lastAborted.get(partitionId) ?? -1;
  }

  /** Partitions with aborted ranges. */
  get abortedPartitions(): Iterable<number> {
    return this.#lastAborted.keys();
  }

  /** Part of a commit's transaction. */
  begin(begun: readonly BegunTransaction[]): void {
    if (begun.length === 0) return;
    const insert = this.#db.prepare('INSERT INTO open_transactions VALUES (?, ?, ?)');
    for (const { partitionId, producerId, firstOffset } of begun)
      insert.run(partitionId, producerId, firstOffset);
  }

  /** Part of the transaction that ends transactions. */
  end({ closed, aborted }: Pick<MarkerDecision, 'closed' | 'aborted'>): void {
    const remove = this.#db.prepare(
      'DELETE FROM open_transactions WHERE partition_id = ? AND producer_id = ?',
    );
    for (const { partitionId, producerId } of closed) remove.run(partitionId, producerId);
    const insert = this.#db.prepare('INSERT INTO aborted_transactions VALUES (?, ?, ?, ?, ?)');
    for (const range of aborted) {
      const { partitionId, lastOffset, producerId, firstOffset, stableOffset } = range;
      insert.run(partitionId, lastOffset, producerId, firstOffset, stableOffset);
    }
    this.#db.afterCommit(() => this.#remember(aborted));
  }

  #remember(aborted: readonly AbortedRange[]): void {
    for (const { partitionId, lastOffset } of aborted)
      this.#lastAborted.set(partitionId, lastOffset);
  }

  /** Part of the transaction that moves a log's start: ranges whole below it have no records left. */
  dropBelow(partitionId: number, logStart: number): void {
    if (!this.#lastAborted.has(partitionId)) return;
    this.#db
      .prepare('DELETE FROM aborted_transactions WHERE partition_id = ? AND last_offset < ?')
      .run(partitionId, logStart);
    this.#db.afterCommit(() => {
      if (this.lastAborted(partitionId) < logStart) this.#lastAborted.delete(partitionId);
    });
  }

  /** Ranges whose records are gone; the newest marker of a partition stays remembered, which costs a look-up. */
  forget(partitionId: number, markerOffsets: readonly number[]): void {
    const remove = this.#db.prepare(
      'DELETE FROM aborted_transactions WHERE partition_id = ? AND last_offset = ?',
    );
    for (const offset of markerOffsets) remove.run(partitionId, offset);
  }

  /** Part of the transaction that deletes a partition. */
  deleted(partitionId: number): void {
    for (const table of ['open_transactions', 'aborted_transactions'])
      this.#db.prepare(`DELETE FROM ${table} WHERE partition_id = ?`).run(partitionId);
    this.#db.afterCommit(() => this.#lastAborted.delete(partitionId));
  }

  /** Aborted transactions with records in `[offset, endOffset)` or a marker behind them, by the offset of their end. */
  aborted(partitionId: number, offset: number, endOffset: number): AbortedTransaction[] {
    const found: AbortedTransaction[] = [];
    if (this.lastAborted(partitionId) < offset) return found;
    const rows = this.#db.prepare(`SELECT producer_id, first_offset, stable_offset
      FROM aborted_transactions WHERE partition_id = ? AND last_offset >= ? ORDER BY last_offset`);
    for (const row of rows.iterate(partitionId, offset)) {
      const firstOffset = Number(row['first_offset']);
      if (firstOffset < endOffset)
        found.push({ producerId: Number(row['producer_id']), firstOffset });
      if (Number(row['stable_offset']) >= endOffset) break;
    }
    return found;
  }
}
