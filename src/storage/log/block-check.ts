// Checks stored bytes before they are used: that a block is of this cluster, generation, partition and place, that an
// entry lies within it, and, for a sample, that every batch still has its CRC. A stale plan (a file used anew, an
// object replaced) is thereby found out, never served.
import { FloeError } from '../../base/error.ts';
import { isMarker } from '../../metadata/packed-index.ts';
import { batchEnd, crcMatches } from '../../protocol/record-batch.ts';
import type { EntryColumns, ObjectRef } from './entries.ts';
import { BLOCK_HEADER_BYTES, expectedBlockEnd } from './wal-format.ts';

/** Bytes `[position, …)` of an object, as read. */
export interface ReadBytes {
  readonly object: ObjectRef;
  readonly position: number;
  readonly bytes: Uint8Array;
  /** {@link clusterTag} of the cluster. */
  readonly clusterTag: Uint8Array;
}

export interface CheckedEntries {
  readonly columns: EntryColumns;
  readonly start: number;
  readonly end: number;
  /** Partition of entry n. */
  readonly partitionOf: (n: number) => number;
  /** Check the CRC of every batch, too. */
  readonly deep: boolean;
}

/** @throws FloeError `corrupt`, naming object and place. */
export function checkEntries(read: ReadBytes, checked: CheckedEntries): void {
  const { columns, start, end, partitionOf, deep } = checked;
  let block = -1;
  let blockEnd = -1;
  for (let n = start; n < end; n += 1) {
    if (isMarker(columns.kinds[n]!)) continue;
    const position = columns.blockPositions[n]!;
    if (position !== block) {
      block = position;
      blockEnd = checkHeader(read, position, partitionOf(n));
    }
    const from = columns.positions[n]! - read.position;
    const to = from + columns.lengths[n]!;
    if (from < block - read.position + BLOCK_HEADER_BYTES || to > blockEnd)
      throw damaged(read.object, columns.positions[n]!, 'an entry that lies outside its block');
    if (deep) checkBatches(read, from, to);
  }
}

/** Where the block's payload ends in the bytes. */
function checkHeader(read: ReadBytes, position: number, partitionId: number): number {
  const { object, bytes, clusterTag: clusterId } = read;
  const expected = { clusterId, generation: object.generation, partitionId, position };
  // Positions in the header are the object's.
  const end = expectedBlockEnd(bytes, position - read.position, expected);
  if (end === -1) throw damaged(object, position, `no block of partition ${partitionId}`);
  return end;
}

function checkBatches({ object, position, bytes }: ReadBytes, from: number, to: number): void {
  const entry = bytes.subarray(from, to);
  for (let at = 0; at < entry.length; ) {
    const end = batchEnd(entry, at);
    if (end === -1 || !crcMatches(entry, at))
      throw damaged(object, position + from + at, 'a record batch that fails its CRC');
    at = end;
  }
}

function damaged(object: ObjectRef, position: number, what: string): FloeError {
  return new FloeError(
    'corrupt',
    `${object.key}, generation ${object.generation}, has ${what} at ${position}`,
    { details: { key: object.key, position } },
  );
}
