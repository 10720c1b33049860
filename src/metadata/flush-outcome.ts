// From a decision to what a flush row stores: the packed index of accepted runs, the exceptions of its batches,
// and the producer states it changed. And back: the outcome of a retry, the state after a restart.
import { FloeError } from '../base/error.ts';
import { type BatchColumns, groupByPartition } from './batch-columns.ts';
import type { Decision } from './decide.ts';
import { allocateIndex, entriesOf, type PackedIndex } from './packed-index.ts';
import { type AcceptedBatch, lastSequence, REMEMBERED_BATCHES } from './sequences.ts';

function accepted(decision: Decision, n: number): boolean {
  return decision.errorCodes[n] === 0 && decision.duplicates[n] === 0;
}

/** The index of the accepted runs. A run ends where bytes or offsets aren't adjacent: refused bytes are in none. */
export function packRuns(batches: BatchColumns, decision: Decision): PackedIndex {
  const starts: number[] = [];
  let previous = -1;
  for (const n of decision.order) {
    if (!accepted(decision, n)) continue;
    if (previous < 0 || !adjacent(batches, decision, previous, n)) starts.push(n);
    previous = n;
  }
  const index = allocateIndex(starts.length);
  let entry = -1;
  for (const n of decision.order) {
    if (!accepted(decision, n)) continue;
    if (n === starts[entry + 1]) {
      entry += 1;
      index.baseOffsets[entry] = decision.baseOffsets[n]!;
      index.partitionIds[entry] = batches.partitionIds[n]!;
      index.positions[entry] = batches.positions[n]!;
      index.blockPositions[entry] = batches.blockPositions[n]!;
    }
    index.offsetSpans[entry]! += batches.lastOffsetDeltas[n]! + 1;
    index.lengths[entry]! += batches.lengths[n]!;
    index.recordCounts[entry]! += batches.recordCounts[n]!;
    index.batchCounts[entry]! += 1;
    index.maxTimestamps[entry] = decision.runningMax[n]!;
  }
  return index;
}

function adjacent(batches: BatchColumns, decision: Decision, a: number, b: number): boolean {
  return (
    batches.partitionIds[a] === batches.partitionIds[b] &&
    batches.blockPositions[a] === batches.blockPositions[b] &&
    batches.positions[a]! + batches.lengths[a]! === batches.positions[b] &&
    decision.baseOffsets[a]! + batches.lastOffsetDeltas[a]! + 1 === decision.baseOffsets[b]
  );
}

/** What refers to an object for the first time. */
interface FirstReference {
  readonly object: { readonly key: string };
  /** See `FlushCommit.notAfterMs`. */
  readonly notAfterMs?: number;
}

/** @throws FloeError `conflict`: what the store doesn't know comes later than it may. */
export function checkTimely(
  { object, notAfterMs = Infinity }: FirstReference,
  nowMs: number,
): void {
  if (nowMs <= notAfterMs) return;
  const text = `object ${object.key} comes to its commit ${nowMs - notAfterMs} ms too late: it may be swept already`;
  throw new FloeError('conflict', text);
}

/** Per batch that was not simply accepted: ordinal, error code, original offset (−1 unless a duplicate). */
export function packExceptions(decision: Decision): Uint8Array {
  const rows: number[] = [];
  for (let n = 0; n < decision.errorCodes.length; n += 1) {
    if (!accepted(decision, n)) rows.push(n, decision.errorCodes[n]!, decision.baseOffsets[n]!);
  }
  return new Uint8Array(Float64Array.from(rows).buffer);
}

/** The outcome of a flush that was committed before, for a retry of the very same batches. */
export function recallOutcome(batches: BatchColumns, index: PackedIndex, exceptions: Uint8Array) {
  const errorCodes = new Int16Array(batches.count);
  const baseOffsets = new Float64Array(batches.count);
  const duplicates = new Uint8Array(batches.count);
  const excepted = new Uint8Array(batches.count);
  const rows = new Float64Array(exceptions.slice().buffer);
  for (let at = 0; at < rows.length; at += 3) {
    const n = rows[at]!;
    excepted[n] = 1;
    errorCodes[n] = rows[at + 1]!;
    baseOffsets[n] = rows[at + 2]!;
    duplicates[n] = errorCodes[n] === 0 ? 1 : 0;
  }
  let partitionId = -1;
  let next = 0;
  for (const n of groupByPartition(batches)) {
    if (excepted[n] === 1) continue;
    if (batches.partitionIds[n] !== partitionId) {
      partitionId = batches.partitionIds[n]!;
      // All accepted batches of a partition take one unbroken range of offsets within a flush.
      next = index.baseOffsets[entriesOf(index, partitionId)[0]]!;
    }
    baseOffsets[n] = next;
    next += batches.lastOffsetDeltas[n]! + 1;
  }
  return { errorCodes, baseOffsets, duplicates };
}

/** Producer id, offset; partition id, epoch, first sequence, last offset delta: one row per batch. */
const PRODUCER_ROW_BYTES = 2 * 8 + 4 * 4;

/**
 * The accepted batches of idempotent producers, in order, at most the five newest of each (producer, partition):
 * appended to the states of the last checkpoint they give the states after this flush.
 */
export function packProducers(batches: BatchColumns, decision: Decision): Uint8Array {
  const kept: number[] = [];
  const newest = new Map<number, number>();
  let partitionId = -1;
  for (let i = decision.order.length - 1; i >= 0; i -= 1) {
    const n = decision.order[i]!;
    const producerId = batches.producerIds[n]!;
    if (producerId < 0 || !accepted(decision, n)) continue;
    if (batches.partitionIds[n] !== partitionId) {
      partitionId = batches.partitionIds[n]!;
      newest.clear();
    }
    const seen = newest.get(producerId) ?? 0;
    if (seen === REMEMBERED_BATCHES) continue;
    newest.set(producerId, seen + 1);
    kept.push(n);
  }
  const bytes = new Uint8Array(kept.length * PRODUCER_ROW_BYTES);
  const doubles = new Float64Array(bytes.buffer);
  const integers = new Int32Array(bytes.buffer);
  for (const [row, n] of kept.reverse().entries()) {
    doubles[row * 4] = batches.producerIds[n]!;
    doubles[row * 4 + 1] = decision.baseOffsets[n]!;
    integers[row * 8 + 4] = batches.partitionIds[n]!;
    integers[row * 8 + 5] = batches.producerEpochs[n]!;
    integers[row * 8 + 6] = batches.baseSequences[n]!;
    integers[row * 8 + 7] = batches.lastOffsetDeltas[n]!;
  }
  return bytes;
}

/** Visits the batches of {@link packProducers} in order. */
export function eachProducerBatch(
  packed: Uint8Array,
  nowMs: number,
  visit: (partitionId: number, producerId: number, batch: AcceptedBatch) => void,
): void {
  const { buffer } = packed.slice();
  const doubles = new Float64Array(buffer);
  const integers = new Int32Array(buffer);
  for (let row = 0; row * PRODUCER_ROW_BYTES < buffer.byteLength; row += 1) {
    const first = integers[row * 8 + 6]!;
    const last = lastSequence(first, integers[row * 8 + 7]!);
    const epoch = integers[row * 8 + 5]!;
    const offset = doubles[row * 4 + 1]!;
    visit(integers[row * 8 + 4]!, doubles[row * 4]!, { epoch, first, last, offset, nowMs });
  }
}

/** The flush id of a commit of markers: no random life begins with eight zeros. */
export function markerFlushId(commitNumber: number): Uint8Array {
  const id = new Uint8Array(16);
  new DataView(id.buffer).setFloat64(8, commitNumber);
  return id;
}
