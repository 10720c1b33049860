// The state that a commit is decided on, as the rows that it has locked tell it, and what the commit changes of it, as
// rows again. Lock order of the whole store: advisory locks of flush ids → transactions by producer id → partitions by id →
// producers; each is read by the statement that locks it or a later one, so that nothing read is older than its lock.
// All of it goes to the server at once: one round trip. Not for: deciding (decide.ts, markers.ts), the number (log-commit.ts).
import { assert } from '../../base/assert.ts';
import type { Decision, LogState, OpenRanges, PartitionTail } from '../decide.ts';
import type { MarkerDecision } from '../markers.ts';
import {
  SEQUENCES_BYTES,
  type Sequences,
  sequencesActiveMs,
  sequencesToBytes,
} from '../sequences.ts';
import type { TransactionState } from '../transactions.ts';
import type { Transaction } from './database.ts';
import { ownBytes, packOpen, STORE_MS, sqlNumbers, unpackBegun } from './log-rows.ts';
import type { ProducerAges } from './producers.ts';

/** Partitions and producers of them, columns of equal length. */
export interface ProducerKeys {
  readonly partitionIds: readonly number[];
  readonly producerIds: readonly number[];
}

interface TailsRow {
  readonly now_ms: number;
  readonly ids: number[] | null;
  readonly ends: number[];
  readonly times: number[];
  readonly open: Uint8Array | null;
}

interface SequencesRow {
  readonly partition_ids: number[] | null;
  readonly producer_ids: number[];
  /** Base64: the driver takes text only, and this is a third shorter than what it asks for. */
  readonly sequences: string;
}

// Whoever shares partitions with a commit under way waits here, for the lowest of them, and takes a new look then. To find each
// row changed under the statement that locks them all would cost more than the whole rest (EvalPlanQual, row by row).
const LOCK_LOWEST = 'SELECT 1 FROM log_partitions WHERE partition_id = $1 FOR NO KEY UPDATE';

// The clock is read after the locks: the times of a partition's commits ascend as far as the clock does.
const LOCK_PARTITIONS = `
  WITH locked AS MATERIALIZED (
    SELECT partition_id, high_watermark, max_timestamp, open_transactions FROM log_partitions
    WHERE partition_id = ANY ($1::int8[]) ORDER BY partition_id FOR NO KEY UPDATE)
  SELECT array_agg(partition_id) AS ids, array_agg(high_watermark) AS ends, array_agg(max_timestamp) AS times,
    string_agg(open_transactions, '') AS open, ${STORE_MS} AS now_ms
  FROM locked`;

const READ_SEQUENCES = `
  SELECT array_agg(s.partition_id) AS partition_ids, array_agg(s.producer_id) AS producer_ids,
    encode(string_agg(s.sequences, ''), 'base64') AS sequences
  FROM unnest($1::int8[], $2::int8[]) AS wanted (partition_id, producer_id)
    JOIN producer_sequences s USING (partition_id, producer_id)`;

interface Tail extends PartitionTail {
  readonly maxTimestamp: number;
}

/** What was read under locks, overlaid by what the commit has decided so far. */
export class LockedState implements LogState {
  /** The store's time. */
  readonly nowMs: number;
  /** States of transactional ids by producer id; more may be put in. */
  readonly transactions = new Map<number, TransactionState>();
  readonly #ages: ProducerAges;
  readonly #tails = new Map<number, Tail>();
  readonly #sequences = new Map<number, Map<number, Sequences>>();
  /** Producers that have a row, by partition. */
  readonly #stored = new Map<number, Set<number>>();
  readonly #changedTails = new Map<number, { bytes: number; openBefore: OpenRanges | undefined }>();
  readonly #changedSequences = new Map<number, Set<number>>();

  constructor(tails: TailsRow, sequences: SequencesRow | undefined, ages: ProducerAges) {
    this.nowMs = tails.now_ms;
    this.#ages = ages;
    for (const [n, partitionId] of (tails.ids ?? []).entries())
      this.#tails.set(partitionId, { nextOffset: tails.ends[n]!, maxTimestamp: tails.times[n]! });
    this.#takeOpen(tails.open);
    if (sequences !== undefined) this.#takeSequences(sequences);
  }

  #takeOpen(packed: Uint8Array | null): void {
    const open = new Map<number, Map<number, number>>();
    for (const { partitionId, producerId, firstOffset } of unpackBegun(packed)) {
      const ranges = open.get(partitionId) ?? new Map<number, number>();
      open.set(partitionId, ranges.set(producerId, firstOffset));
    }
    for (const [partitionId, ranges] of open)
      this.#tails.set(partitionId, { ...this.#tails.get(partitionId)!, open: ranges });
  }

  #takeSequences({ partition_ids, producer_ids, sequences }: SequencesRow): void {
    if (partition_ids === null) return;
    // Views of one buffer: whoever changes a state copies it first (decide.ts, markers.ts).
    const { buffer } = ownBytes(Buffer.from(sequences, 'base64'));
    assert(
      buffer.byteLength === partition_ids.length * SEQUENCES_BYTES,
      'L5: a stored producer state has its fixed length',
    );
    for (const [n, partitionId] of partition_ids.entries()) {
      const state = new Float64Array(buffer, n * SEQUENCES_BYTES, SEQUENCES_BYTES / 8);
      entryOf(this.#sequences, partitionId, () => new Map()).set(producer_ids[n]!, state);
      entryOf(this.#stored, partitionId, () => new Set()).add(producer_ids[n]!);
    }
  }

  partition(partitionId: number): PartitionTail | undefined {
    return this.#tails.get(partitionId);
  }

  sequences(partitionId: number, producerId: number): Sequences | undefined {
    return this.#sequences.get(partitionId)?.get(producerId);
  }

  mayHaveExpired(producerId: number): boolean {
    return this.#ages.mayHaveExpired(producerId, this.nowMs);
  }

  transaction(producerId: number): TransactionState | undefined {
    return this.transactions.get(producerId);
  }

  /** Takes a decision in: what is decided after it builds on it. `bytes` by partition: what the logs grow by. */
  apply(
    decision: Pick<Decision | MarkerDecision, 'partitions' | 'sequences'>,
    bytes: ReadonlyMap<number, number>,
  ): void {
    for (const [partitionId, tail] of decision.partitions) {
      const change = entryOf(this.#changedTails, partitionId, () => ({
        bytes: 0,
        openBefore: this.#tails.get(partitionId)!.open,
      }));
      change.bytes += bytes.get(partitionId) ?? 0;
      this.#tails.set(partitionId, tail);
    }
    for (const [partitionId, producers] of decision.sequences) {
      const known = entryOf(this.#sequences, partitionId, () => new Map<number, Sequences>());
      const changed = entryOf(this.#changedSequences, partitionId, () => new Set<number>());
      for (const [producerId, sequences] of producers) {
        known.set(producerId, sequences);
        changed.add(producerId);
      }
    }
  }

  /** Sends what has changed; the statements are under way when it returns. */
  write(tx: Transaction): Promise<unknown> {
    const sent = [this.#writeTails(tx), ...this.#writeSequences(tx)];
    for (const each of sent) each.catch(() => {});
    return Promise.all(sent);
  }

  async #writeTails(tx: Transaction): Promise<void> {
    const ids = [...this.#changedTails.keys()];
    if (ids.length === 0) return;
    const tails = ids.map((id) => this.#tails.get(id)!);
    const columns = [
      sqlNumbers(ids),
      sqlNumbers(tails.map(({ nextOffset }) => nextOffset)),
      sqlNumbers(tails.map(({ maxTimestamp }) => maxTimestamp)),
      sqlNumbers(ids.map((id) => this.#changedTails.get(id)!.bytes)),
    ];
    const opened = ids.some((id) => this.#opened(id));
    const changed = opened
      ? await tx.run(WRITE_TAILS_OPEN, [...columns, ...this.#openColumns(ids)])
      : await tx.run(WRITE_TAILS, columns);
    assert(changed === ids.length, 'L2: locked partitions stay');
  }

  #opened(partitionId: number): boolean {
    return this.#changedTails.get(partitionId)!.openBefore !== this.#tails.get(partitionId)!.open;
  }

  /** Bytes of all open transactions of these partitions end to end, and where each partition's are. */
  #openColumns(ids: readonly number[]) {
    const parts = ids.map((id) => packOpen(id, this.#tails.get(id)!.open) ?? NONE);
    let next = 1;
    const starts = parts.map(({ length }) => {
      next += length;
      return next - length;
    });
    const lengths = parts.map(({ length }) => length);
    return [sqlNumbers(starts), sqlNumbers(lengths), Buffer.concat(parts)];
  }

  #writeSequences(tx: Transaction): Promise<unknown>[] {
    const [known, fresh] = [new SequenceRows(), new SequenceRows()];
    for (const [partitionId, producerIds] of this.#changedSequences) {
      for (const producerId of producerIds) {
        const stored = this.#stored.get(partitionId)?.has(producerId) === true;
        const sequences = this.#sequences.get(partitionId)!.get(producerId)!;
        (stored ? known : fresh).add(partitionId, producerId, sequences);
      }
    }
    const sent: Promise<unknown>[] = [];
    if (known.count > 0) sent.push(tx.run(UPDATE_SEQUENCES, known.values()));
    if (fresh.count > 0) sent.push(tx.run(INSERT_SEQUENCES, fresh.values()));
    return sent;
  }
}

const NONE = new Uint8Array(0);

class SequenceRows {
  readonly #partitionIds: number[] = [];
  readonly #producerIds: number[] = [];
  readonly #active: number[] = [];
  readonly #sequences: Uint8Array[] = [];

  get count(): number {
    return this.#partitionIds.length;
  }

  add(partitionId: number, producerId: number, sequences: Sequences): void {
    this.#partitionIds.push(partitionId);
    this.#producerIds.push(producerId);
    this.#active.push(sequencesActiveMs(sequences));
    this.#sequences.push(sequencesToBytes(sequences));
  }

  values() {
    return [
      sqlNumbers(this.#partitionIds),
      sqlNumbers(this.#producerIds),
      sqlNumbers(this.#active),
      Buffer.concat(this.#sequences),
    ];
  }
}

const WRITE_TAILS = `
  UPDATE log_partitions p SET high_watermark = c.high_watermark, max_timestamp = c.max_timestamp,
    size_bytes = p.size_bytes + c.bytes
  FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[]) AS c (partition_id, high_watermark, max_timestamp, bytes)
  WHERE p.partition_id = c.partition_id`;

const WRITE_TAILS_OPEN = `
  UPDATE log_partitions p SET high_watermark = c.high_watermark, max_timestamp = c.max_timestamp,
    size_bytes = p.size_bytes + c.bytes,
    open_transactions = CASE WHEN c.length > 0 THEN substring($7::bytea FROM c.start::int4 FOR c.length::int4) END
  FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::int8[])
    AS c (partition_id, high_watermark, max_timestamp, bytes, start, length)
  WHERE p.partition_id = c.partition_id`;

const SEQUENCE_ROWS = `
  unnest($1::int8[], $2::int8[], $3::int8[]) WITH ORDINALITY AS c (partition_id, producer_id, active_ms, n)`;
const SEQUENCE_BYTES = `substring($4::bytea FROM ((c.n - 1) * ${SEQUENCES_BYTES} + 1)::int4 FOR ${SEQUENCES_BYTES})`;

const UPDATE_SEQUENCES = `
  UPDATE producer_sequences s SET active_ms = c.active_ms, sequences = ${SEQUENCE_BYTES} FROM ${SEQUENCE_ROWS}
  WHERE s.partition_id = c.partition_id AND s.producer_id = c.producer_id`;

const INSERT_SEQUENCES = `
  INSERT INTO producer_sequences (partition_id, producer_id, active_ms, sequences)
  SELECT c.partition_id, c.producer_id, c.active_ms, ${SEQUENCE_BYTES} FROM ${SEQUENCE_ROWS}`;

function entryOf<K, V>(map: Map<K, V>, key: K, fresh: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = fresh();
    map.set(key, value);
  }
  return value;
}

/** Sends the statements that lock partitions and read what is known of them; transactions were locked before. */
export async function lockState(
  tx: Transaction,
  partitionIds: readonly number[],
  { keys, ages }: { readonly keys: ProducerKeys; readonly ages: ProducerAges },
): Promise<LockedState> {
  const ids = partitionIds.toSorted((a, b) => a - b);
  const lowest = ids.length < 2 ? undefined : tx.run(LOCK_LOWEST, [ids[0]!]);
  const tails = tx.row<TailsRow>(LOCK_PARTITIONS, [sqlNumbers(ids)]);
  const sequences =
    keys.producerIds.length === 0
      ? undefined
      : tx.row<SequencesRow>(READ_SEQUENCES, [
          sqlNumbers(keys.partitionIds),
          sqlNumbers(keys.producerIds),
        ]);
  const aged = ages.known(tx, keys.producerIds);
  const [locked, known] = await Promise.all([tails, sequences, aged, lowest]);
  return new LockedState(locked!, known, ages);
}
