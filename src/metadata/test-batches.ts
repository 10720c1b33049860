// Batch columns from plain records, for tests of the log and the simulation. Not for production code.
import { allocateColumns, type BatchColumns, transactionCode } from './batch-columns.ts';
import type { TransactionMode } from './transactions.ts';

export interface TestBatch {
  readonly partitionId: number;
  readonly records?: number;
  readonly producerId?: number;
  readonly epoch?: number;
  readonly sequence?: number;
  readonly maxTimestamp?: number;
  /** Given: the batch is part of a transaction. */
  readonly transaction?: { readonly incarnation: number; readonly mode: TransactionMode };
}

/** Batches of 100 bytes a record, laid out one after the other from `position`, grouped as given. */
export function testColumns(batches: readonly TestBatch[], position = 0): BatchColumns {
  const columns = allocateColumns(batches.length);
  let at = position;
  for (const [n, batch] of batches.entries()) {
    const records = batch.records ?? 1;
    columns.partitionIds[n] = batch.partitionId;
    columns.recordCounts[n] = records;
    columns.lastOffsetDeltas[n] = records - 1;
    columns.producerIds[n] = batch.producerId ?? -1;
    columns.producerEpochs[n] = batch.epoch ?? (batch.producerId === undefined ? -1 : 0);
    columns.baseSequences[n] = batch.sequence ?? -1;
    columns.maxTimestamps[n] = batch.maxTimestamp ?? -1;
    if (batch.transaction !== undefined) {
      columns.transactions[n] = transactionCode(batch.transaction.mode);
      columns.incarnations[n] = batch.transaction.incarnation;
    }
    columns.lengths[n] = records * 100;
    columns.slabOffsets[n] = at;
    columns.positions[n] = at;
    at += records * 100;
  }
  return columns;
}
