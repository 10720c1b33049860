// The end of transactions in the log: a marker in each of their partitions, decided as `decide` does batches. Pure.
// A marker takes one offset and no bytes; where the transaction wrote, the last stable offset moves and, if it was
// aborted, readers of committed records have a range to leave out (L7).
// Rules: design "Transactions"; Kafka's ProducerAppendInfo (a marker fences epochs below its own).
import { assert } from '../base/assert.ts';
import type { LogState, OpenRanges, PartitionTail } from './decide.ts';
import { allocateIndex, type PackedIndex, setMarker } from './packed-index.ts';
import { markSequences, newSequences, type Sequences } from './sequences.ts';
import { COORDINATOR_EPOCH, type EndedTransaction } from './transactions.ts';

/** The records of an aborted transaction in one partition. */
export interface AbortedRange {
  readonly partitionId: number;
  readonly producerId: number;
  readonly firstOffset: number;
  /** Its marker's. */
  readonly lastOffset: number;
  /** Last stable offset right after: transactions that end later begin at or above it. */
  readonly stableOffset: number;
}

/** What ending transactions changes. */
export interface MarkerDecision {
  /** One entry per marker, by (partition, offset). */
  readonly index: PackedIndex;
  readonly partitions: ReadonlyMap<number, PartitionTail>;
  readonly sequences: ReadonlyMap<number, ReadonlyMap<number, Sequences>>;
  /** Where a transaction that wrote has ended. */
  readonly closed: readonly { readonly partitionId: number; readonly producerId: number }[];
  readonly aborted: readonly AbortedRange[];
}

/** The earliest offset of a partition that belongs to an open transaction; its end if none is open. */
export function stableEnd({ nextOffset, open }: PartitionTail): number {
  return open === undefined ? nextOffset : firstOpen(open, nextOffset);
}

/** The lowest first offset, `otherwise` when no transaction is open. */
export function firstOpen(open: OpenRanges, otherwise: number): number {
  for (const firstOffset of open.values()) return firstOffset;
  return otherwise;
}

interface Draft {
  readonly partitions: Map<number, PartitionTail>;
  readonly sequences: Map<number, Map<number, Sequences>>;
  readonly closed: { partitionId: number; producerId: number }[];
  readonly aborted: AbortedRange[];
}

/** Ends transactions in order; partitions that are gone get no marker. `state` is left as it is. */
export function decideMarkers(
  state: LogState,
  ended: readonly EndedTransaction[],
  nowMs: number,
): MarkerDecision {
  const marks = marksOf(state, ended);
  const draft: Draft = { partitions: new Map(), sequences: new Map(), closed: [], aborted: [] };
  const index = allocateIndex(marks.length, marks.length);
  for (const [n, { partitionId, by }] of marks.entries()) {
    const tail = draft.partitions.get(partitionId) ?? state.partition(partitionId)!;
    index.partitionIds[n] = partitionId;
    index.baseOffsets[n] = tail.nextOffset;
    index.maxTimestamps[n] = Math.max(tail.maxTimestamp, nowMs);
    setMarker(index, n, {
      committed: by.committed,
      producerId: by.producerId,
      producerEpoch: by.markerEpoch,
      coordinatorEpoch: COORDINATOR_EPOCH,
      timestampMs: nowMs,
    });
    close(draft, { partitionId, tail, by, nowMs });
    fence(state, draft, { partitionId, by, nowMs });
  }
  return { index, ...draft };
}

interface Mark {
  readonly partitionId: number;
  readonly by: EndedTransaction;
}

/** By partition, in order of ends within. */
function marksOf(state: LogState, ended: readonly EndedTransaction[]): Mark[] {
  const marks: Mark[] = [];
  for (const by of ended) {
    for (const partitionId of by.partitions)
      if (state.partition(partitionId) !== undefined) marks.push({ partitionId, by });
  }
  return marks.sort((a, b) => a.partitionId - b.partitionId);
}

function close(
  { partitions, closed, aborted }: Draft,
  mark: Mark & { readonly tail: PartitionTail; readonly nowMs: number },
): void {
  const { partitionId, tail, by, nowMs } = mark;
  const { producerId } = by;
  const firstOffset = tail.open?.get(producerId);
  const lastOffset = tail.nextOffset;
  let { open } = tail;
  if (firstOffset !== undefined) {
    const rest = new Map(tail.open);
    rest.delete(producerId);
    open = rest.size === 0 ? undefined : rest;
    closed.push({ partitionId, producerId });
  }
  const maxTimestamp = Math.max(tail.maxTimestamp, nowMs);
  const after = { nextOffset: lastOffset + 1, maxTimestamp, open };
  partitions.set(partitionId, after);
  if (firstOffset === undefined || by.committed) return;
  const stableOffset = stableEnd(after);
  assert(firstOffset < lastOffset, 'L7: an aborted range ends with its marker');
  aborted.push({ partitionId, producerId, firstOffset, lastOffset, stableOffset });
}

function fence(
  state: LogState,
  { sequences }: Draft,
  { partitionId, by, nowMs }: Mark & { readonly nowMs: number },
): void {
  const { producerId } = by;
  const drafted = sequences.get(partitionId) ?? new Map<number, Sequences>();
  const known = drafted.get(producerId) ?? state.sequences(partitionId, producerId);
  const marked = known?.slice() ?? newSequences();
  markSequences(marked, {
    epoch: by.markerEpoch,
    coordinatorEpoch: COORDINATOR_EPOCH,
    nowMs,
  });
  sequences.set(partitionId, drafted.set(producerId, marked));
}
