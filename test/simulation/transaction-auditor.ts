// What the log itself says of transactions, beside what clients were told: each of them lies whole before its marker
// in every partition, all its markers say the same, and what they say is what its producer was told (L6, L7).
import type { Surroundings } from './surroundings.ts';
import type { Transaction, Workload } from './workload.ts';

/** A control batch as a reader met it. */
export interface SeenMarker {
  readonly producerId: number;
  readonly committed: boolean;
  readonly crc: number;
}

/** Once every partition was read from its log start to its end. @throws Error naming the broken invariant. */
export function auditMarkers({ node }: Surroundings, workload: Workload): void {
  const ends = new Map<Transaction, boolean>();
  for (const partitionId of workload.partitionIds) {
    const open = new Map<number, Transaction>();
    const over = new Set<Transaction>();
    // What lies below may never have been read whole.
    const { logStartOffset } = node.log.watermarks(partitionId)!;
    for (const offset of offsetsOf(workload, partitionId)) {
      if (offset < logStartOffset) continue;
      const key = `${partitionId}@${offset}`;
      const marker = workload.markers.get(key);
      if (marker === undefined) {
        noteBatch(workload, key, { open, over });
        continue;
      }
      const ended = open.get(marker.producerId);
      open.delete(marker.producerId);
      if (ended === undefined) continue;
      over.add(ended);
      checkEnd(ended, marker, { ends, key });
    }
    if (open.size > 0)
      throw new Error(`L8: partition ${partitionId} has open transactions at rest`);
  }
}

function offsetsOf(workload: Workload, partitionId: number): number[] {
  const prefix = `${partitionId}@`;
  return [...workload.seen.keys(), ...workload.markers.keys()]
    .filter((key) => key.startsWith(prefix))
    .map((key) => Number(key.slice(prefix.length)))
    .sort((a, b) => a - b);
}

function noteBatch(
  { seen, batches }: Workload,
  key: string,
  {
    open,
    over,
  }: {
    readonly open: Map<number, Transaction>;
    readonly over: Set<Transaction>;
  },
): void {
  const { id, producerId, transaction } = batches.get(seen.get(key)!)!;
  if (transaction === undefined) return;
  if (over.has(transaction)) throw new Error(`L6: batch ${id} at ${key} after its marker`);
  const other = open.get(producerId);
  if (other !== undefined && other !== transaction)
    throw new Error(`L6: batch ${id} at ${key} lies in another transaction`);
  open.set(producerId, transaction);
}

function checkEnd(
  ended: Transaction,
  { committed }: SeenMarker,
  { ends, key }: { readonly ends: Map<Transaction, boolean>; readonly key: string },
): void {
  if ((ends.get(ended) ?? committed) !== committed)
    throw new Error(`L7: the marker at ${key} says otherwise than another of its transaction`);
  ends.set(ended, committed);
  const { outcome } = ended;
  if ((outcome === 'committed' && !committed) || (outcome === 'aborted' && committed))
    throw new Error(
      `L7: the marker at ${key} says otherwise than its producer was told: ${outcome}`,
    );
}
