// Real record batches for tests, simulation and benchmarks of the log. Not for production code.
import type { TransactionAdmission } from '../../metadata/transactions.ts';
import { Attribute, BATCH_HEADER_BYTES, writeBatchHeader } from '../../protocol/record-batch.ts';
import type { AppendItem } from './log.ts';

export interface ItemOptions {
  readonly partitionId: number;
  readonly records?: number;
  /** Bytes of the records section; its content is `fill`, which no test of the log decodes. */
  readonly bytes?: number;
  readonly fill?: number;
  readonly producerId?: number;
  readonly epoch?: number;
  readonly sequence?: number;
  readonly maxTimestamp?: number;
  /** Written big-endian into the first four bytes of the records section. */
  readonly id?: number;
  /** Given: the batch is part of a transaction. */
  readonly transaction?: TransactionAdmission;
}

/** A batch with an intact header and CRC around opaque record bytes. */
export function testItem(options: ItemOptions): AppendItem {
  const recordCount = options.records ?? 1;
  const producerId = options.producerId ?? -1;
  const producerEpoch = options.epoch ?? (producerId < 0 ? -1 : 0);
  const baseSequence = options.sequence ?? -1;
  const maxTimestamp = options.maxTimestamp ?? -1;
  const bytes = new Uint8Array(BATCH_HEADER_BYTES + (options.bytes ?? 40)).fill(options.fill ?? 7);
  if (options.id !== undefined)
    new DataView(bytes.buffer).setUint32(BATCH_HEADER_BYTES, options.id);
  writeBatchHeader(bytes, {
    baseOffset: 0,
    leaderEpoch: -1,
    attributes: options.transaction === undefined ? 0 : Attribute.TRANSACTIONAL,
    lastOffsetDelta: recordCount - 1,
    baseTimestamp: maxTimestamp,
    maxTimestamp,
    producerId,
    producerEpoch,
    baseSequence,
    recordCount,
  });
  return {
    partitionId: options.partitionId,
    bytes,
    recordCount,
    lastOffsetDelta: recordCount - 1,
    producerId,
    producerEpoch,
    baseSequence,
    maxTimestamp,
    logAppendTimeMs: -1,
    ...(options.transaction === undefined ? {} : { transaction: options.transaction }),
  };
}
