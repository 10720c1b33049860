// Checks bytes after they were read: that each block is of this cluster, generation, partition and place, that its
// entries lie within it, and, for a sample, that every batch still has its CRC. A stale plan (a file used anew, an
// object replaced) is thereby found out, never served.
import { FloeError } from '../../base/error.ts';
import { batchEnd, crcMatches } from '../../protocol/record-batch.ts';
import type { EntryColumns, ObjectRef } from './entries.ts';
import type { Range } from './plan.ts';
import { BLOCK_HEADER_BYTES, checkBlock } from './wal-format.ts';

/** What was read and what it should be. */
export interface CheckedRange {
  readonly object: ObjectRef;
  /** Partition of entry n. */
  readonly partitionOf: (n: number) => number;
  readonly columns: EntryColumns;
  readonly range: Range;
  /** {@link clusterTag} of the cluster. */
  readonly clusterTag: Uint8Array;
  /** Check the CRC of every batch, too. */
  readonly deep: boolean;
}

/** @throws FloeError `corrupt`, naming object and place. */
export function checkRange(bytes: Uint8Array, checked: CheckedRange): void {
  const { object, columns, range, clusterTag, deep } = checked;
  let block = -1;
  let blockEnd = -1;
  for (let n = range.start; n < range.end; n += 1) {
    const position = columns.blockPositions[n]!;
    if (position !== block) {
      const expected = {
        clusterId: clusterTag,
        generation: object.generation,
        partitionId: checked.partitionOf(n),
        position,
      };
      // Positions in the header are the object's, those in `bytes` the range's.
      const header = checkBlock(bytes, position - range.position, expected);
      block = position;
      blockEnd = position + BLOCK_HEADER_BYTES + header.payloadLength;
    }
    const start = columns.positions[n]!;
    const end = start + columns.lengths[n]!;
    if (start < block + BLOCK_HEADER_BYTES || end > blockEnd)
      throw damaged(object, start, `an entry outside its block, which ends at ${blockEnd}`);
    if (deep)
      checkBatches(bytes.subarray(start - range.position, end - range.position), object, start);
  }
}

function checkBatches(entry: Uint8Array, object: ObjectRef, position: number): void {
  for (let at = 0; at < entry.length; ) {
    const end = batchEnd(entry, at);
    if (end === -1 || !crcMatches(entry, at))
      throw damaged(object, position + at, 'a record batch that fails its CRC');
    at = end;
  }
}

function damaged(object: ObjectRef, position: number, what: string): FloeError {
  return new FloeError('corrupt', `${object.key} has ${what} at ${position}`, {
    details: { key: object.key, position },
  });
}
