// The control batch that stands for a marker of the index: made anew at every read, the same bytes every time.
// A marker takes no room in storage, and still counts in what a read returns.
import { assert } from '../../base/assert.ts';
import type { Marker } from '../../metadata/packed-index.ts';
import { buildControlBatch } from '../../protocol/record-builder.ts';
import { LEADER_EPOCH } from './patch.ts';

/** Bytes of every control batch that ends a transaction: a header and one small record of fixed size. */
export const CONTROL_BATCH_BYTES = 78;

/** The batch at `baseOffset`, complete: it needs no patching. */
export function controlBatch(marker: Marker, baseOffset: number): Uint8Array {
  const bytes = buildControlBatch({
    type: marker.committed ? 'commit' : 'abort',
    baseOffset,
    leaderEpoch: LEADER_EPOCH,
    producerId: marker.producerId,
    producerEpoch: marker.producerEpoch,
    coordinatorEpoch: marker.coordinatorEpoch,
    timestamp: marker.timestampMs,
  });
  assert(bytes.length === CONTROL_BATCH_BYTES, 'L4: every control batch has the same size');
  return bytes;
}
