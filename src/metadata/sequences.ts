// The last five batches of one producer in one partition, as one small typed array: what idempotence needs.
// Fixed columns, so that a copy is a memcpy and the stored blob is the array itself.
// Sequences are 31-bit and wrap from 2^31−1 to 0 (KIP-98).
import { assert } from '../base/assert.ts';

/**
 * [epoch, last active ms, batches held, then per batch, oldest first: first sequence, last sequence, offset; at the end
 * the coordinator epoch of the latest transaction marker, −1 if none].
 */
export type Sequences = Float64Array;

/** Kafka's brokers remember as many, and clients keep at most five requests in flight. */
export const REMEMBERED_BATCHES = 5;

const EPOCH = 0;
const ACTIVE = 1;
const COUNT = 2;
const FIRST_ENTRY = 3;
const ENTRY = 3;
const COORDINATOR = FIRST_ENTRY + ENTRY * REMEMBERED_BATCHES;
const LENGTH = COORDINATOR + 1;

/** Of the stored form. */
export const SEQUENCES_BYTES = LENGTH * 8;

const MAX_SEQUENCE = 2 ** 31 - 1;

export function newSequences(): Sequences {
  const sequences = new Float64Array(LENGTH);
  sequences[EPOCH] = -1;
  sequences[COORDINATOR] = -1;
  return sequences;
}

export function sequencesEpoch(sequences: Sequences): number {
  return sequences[EPOCH]!;
}

/** When the producer last had a batch accepted here, milliseconds. */
export function sequencesActiveMs(sequences: Sequences): number {
  return sequences[ACTIVE]!;
}

/** Coordinator epoch of the producer's latest transaction marker here, −1 if there is none. */
export function coordinatorEpoch(sequences: Sequences): number {
  return sequences[COORDINATOR]!;
}

/** The sequence of the producer's newest record under its epoch, −1 if there is none. */
export function newestSequence(sequences: Sequences): number {
  const held = sequences[COUNT]!;
  return held === 0 ? -1 : sequences[FIRST_ENTRY + ENTRY * (held - 1) + 1]!;
}

/** The sequence of the last record of a batch. */
export function lastSequence(first: number, lastOffsetDelta: number): number {
  const last = first + lastOffsetDelta;
  return last > MAX_SEQUENCE ? last - MAX_SEQUENCE - 1 : last;
}

/** The offset of the remembered batch with this very epoch and range, or −1. */
export function duplicateOf(
  sequences: Sequences,
  epoch: number,
  first: number,
  last: number,
): number {
  if (sequences[EPOCH] !== epoch) return -1;
  const end = FIRST_ENTRY + ENTRY * sequences[COUNT]!;
  for (let at = FIRST_ENTRY; at < end; at += ENTRY) {
    if (sequences[at] === first && sequences[at + 1] === last) return sequences[at + 2]!;
  }
  return -1;
}

/** True when `first` follows the newest remembered batch; an epoch without any begins at 0. */
export function continuesSequence(sequences: Sequences, first: number): boolean {
  const newest = newestSequence(sequences);
  return first === (newest === MAX_SEQUENCE ? 0 : newest + 1);
}

export interface AcceptedBatch {
  readonly epoch: number;
  readonly first: number;
  readonly last: number;
  readonly offset: number;
  readonly nowMs: number;
}

/** Remembers a batch, forgetting the oldest past five; a higher epoch forgets all before it. Changes `sequences`. */
export function appendSequence(sequences: Sequences, batch: AcceptedBatch): void {
  assert(batch.epoch >= sequences[EPOCH]!, 'L5: a producer epoch never descends');
  if (batch.epoch > sequences[EPOCH]!) sequences[COUNT] = 0;
  sequences[EPOCH] = batch.epoch;
  sequences[ACTIVE] = batch.nowMs;
  let held = sequences[COUNT]!;
  if (held === REMEMBERED_BATCHES) {
    sequences.copyWithin(FIRST_ENTRY, FIRST_ENTRY + ENTRY, COORDINATOR);
    held -= 1;
  }
  const at = FIRST_ENTRY + ENTRY * held;
  sequences[at] = batch.first;
  sequences[at + 1] = batch.last;
  sequences[at + 2] = batch.offset;
  sequences[COUNT] = held + 1;
}

/** What a marker says of its producer. */
export interface MarkedEpoch {
  readonly epoch: number;
  readonly coordinatorEpoch: number;
  readonly nowMs: number;
}

/**
 * Takes note of a transaction marker: its epoch fences those below, under a higher one sequences start over (KIP-890),
 * under the same one they go on. Changes `sequences`.
 */
export function markSequences(sequences: Sequences, marker: MarkedEpoch): void {
  if (marker.epoch > sequences[EPOCH]!) {
    sequences[EPOCH] = marker.epoch;
    sequences[COUNT] = 0;
  }
  sequences[ACTIVE] = marker.nowMs;
  sequences[COORDINATOR] = marker.coordinatorEpoch;
}

/** The stored form. */
export function sequencesToBytes(sequences: Sequences): Uint8Array {
  return new Uint8Array(sequences.buffer, sequences.byteOffset, sequences.byteLength);
}

/** The inverse of {@link sequencesToBytes}, as a copy of its own. */
export function sequencesFromBytes(bytes: Uint8Array): Sequences {
  // Stored before there were transactions: without a coordinator epoch.
  assert(
    bytes.length === LENGTH * 8 || bytes.length === COORDINATOR * 8,
    'L5: a stored producer state has its fixed length',
  );
  const sequences = newSequences();
  sequences.set(new Float64Array(bytes.slice().buffer));
  return sequences;
}
