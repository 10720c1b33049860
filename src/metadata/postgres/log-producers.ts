// States of producers within the row of their partition: the first few that write to it have theirs there, so that a commit
// locks, reads and writes one row a partition and not two. Those beyond, and those of a time before, have rows of their own
// (producer_sequences): the partition is `spilled` then. A state lies in one place: it leaves the partition's row when another
// producer comes while it is idle, and stays in its own row until it expires.
// Packed: fixed records end to end, in order of arrival. Not for: what a state says (sequences.ts), when it is read and
// written (log-state.ts).
import { assert } from '../../base/assert.ts';
import {
  PACKED_SEQUENCES_BYTES,
  packedActiveMs,
  packSequences,
  type Sequences,
  unpackSequences,
} from '../sequences.ts';
import type { Migration } from './migrations.ts';

export const logProducersMigrations: readonly Migration[] = [
  {
    name: 'log-producers-1',
    sql: `
      -- producers: states (log-producers.ts). oldest_producer_ms: when the longest idle of them was active; null: none.
      -- spilled: producer_sequences may have more, as of every partition that is there by now.
      ALTER TABLE log_partitions ADD COLUMN producers bytea, ADD COLUMN oldest_producer_ms int8,
        ADD COLUMN spilled bool NOT NULL DEFAULT true;
      ALTER TABLE log_partitions ALTER producers SET STORAGE PLAIN, ALTER spilled SET DEFAULT false;`,
  },
];

/**
 * More would make a row, which every commit rewrites, longer than they are worth: with four, four brokers on the same
 * partitions were slower than without any.
 */
export const INLINE_PRODUCERS = 2;
/** A producer that has been quiet for so long gives its place to one that comes. */
export const INLINE_IDLE_MS = 60_000;
/** Producer id, then the state. */
const RECORD_BYTES = 8 + PACKED_SEQUENCES_BYTES;

/** Bytes aligned to eight, as all here take them. */
export type PackedProducers = Uint8Array;

export const NO_PRODUCERS: PackedProducers = new Uint8Array(0);

export function producerCount(packed: PackedProducers): number {
  assert(packed.length % RECORD_BYTES === 0, 'L5: stored producer states have their fixed length');
  return packed.length / RECORD_BYTES;
}

export function producerIdAt(packed: PackedProducers, n: number): number {
  return new Float64Array(packed.buffer, packed.byteOffset + n * RECORD_BYTES, 1)[0]!;
}

/** Which record is this producer's; −1: none. */
export function indexOfProducer(packed: PackedProducers, producerId: number): number {
  const count = producerCount(packed);
  for (let n = 0; n < count; n += 1) if (producerIdAt(packed, n) === producerId) return n;
  return -1;
}

/** The state of record `n`, a copy. */
export function sequencesAt(packed: PackedProducers, n: number): Sequences {
  return unpackSequences(packed, n * RECORD_BYTES + 8);
}

/** When the producer of record `n` was last active. */
export function activeMsAt(packed: PackedProducers, n: number): number {
  return packedActiveMs(packed, n * RECORD_BYTES + 8);
}

/** Null without any. */
export function oldestActiveMs(packed: PackedProducers): number | null {
  let oldest: number | null = null;
  for (let n = 0; n < producerCount(packed); n += 1)
    oldest = Math.min(oldest ?? Infinity, activeMsAt(packed, n));
  return oldest;
}

/** A copy with this state set; a new one, for which there must be room, comes last. */
export function withProducer(
  packed: PackedProducers,
  producerId: number,
  sequences: Sequences,
): PackedProducers {
  const known = indexOfProducer(packed, producerId);
  const n = known >= 0 ? known : producerCount(packed);
  assert(n < INLINE_PRODUCERS, 'states within a row are few');
  const next = new Uint8Array(Math.max(packed.length, (n + 1) * RECORD_BYTES));
  next.set(packed);
  new Float64Array(next.buffer, n * RECORD_BYTES, 1)[0] = producerId;
  packSequences(sequences, next, n * RECORD_BYTES + 8);
  return next;
}

/** A copy of the records that `keep` says. */
export function keptProducers(
  packed: PackedProducers,
  keep: (producerId: number, activeMs: number) => boolean,
): PackedProducers {
  const kept: Uint8Array[] = [];
  for (let n = 0; n < producerCount(packed); n += 1)
    if (keep(producerIdAt(packed, n), activeMsAt(packed, n)))
      kept.push(packed.subarray(n * RECORD_BYTES, (n + 1) * RECORD_BYTES));
  return new Uint8Array(Buffer.concat(kept));
}

/** More hints than this, and all are forgotten: eight megabytes or so. */
const MAX_HINTS = 200_000;

/**
 * Producers whose state was seen in a row of its own: what this broker asks for in one go with the locks. Hints, nothing
 * more: where one is missing the state is asked for once its partition is locked, where one is wrong nothing is found.
 */
export class SpilledProducers {
  readonly #keys = new Set<number>();

  has(partitionId: number, producerId: number): boolean {
    return this.#keys.has(hintKey(partitionId, producerId));
  }

  add(partitionId: number, producerId: number): void {
    if (this.#keys.size >= MAX_HINTS) this.#keys.clear();
    this.#keys.add(hintKey(partitionId, producerId));
  }
}

/** Two may have the same, which is no harm. */
const hintKey = (partitionId: number, producerId: number): number =>
  (partitionId % 2 ** 31) * 2 ** 16 + (producerId % 2 ** 16);
