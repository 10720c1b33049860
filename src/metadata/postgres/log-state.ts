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
import {
  activeMsAt,
  INLINE_IDLE_MS,
  INLINE_PRODUCERS,
  indexOfProducer,
  keptProducers,
  NO_PRODUCERS,
  oldestActiveMs,
  type PackedProducers,
  producerCount,
  producerIdAt,
  type SpilledProducers,
  sequencesAt,
  withProducer,
} from './log-producers.ts';
import { ownBytes, packOpen, STORE_MS, sqlNumbers, unpackBegun } from './log-rows.ts';
import type { ProducerAges } from './producers.ts';

/** What a broker remembers from one commit to the next. */
export interface ProducerCopies {
  readonly ages: ProducerAges;
  readonly spilled: SpilledProducers;
}

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
  /** Base64 of all producers' states in the order of `ids`. */
  readonly producers: string | null;
  /** Bytes of each partition's. */
  readonly producer_bytes: number[];
  readonly spilled: number[] | null;
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
    SELECT partition_id, high_watermark, max_timestamp, open_transactions, producers, spilled FROM log_partitions
    WHERE partition_id = ANY ($1::int8[]) ORDER BY partition_id FOR NO KEY UPDATE)
  SELECT array_agg(partition_id) AS ids, array_agg(high_watermark) AS ends, array_agg(max_timestamp) AS times,
    string_agg(open_transactions, '') AS open, ${STORE_MS} AS now_ms,
    encode(string_agg(producers, ''), 'base64') AS producers,
    array_agg(coalesce(octet_length(producers), 0)::int8) AS producer_bytes,
    array_agg(partition_id) FILTER (WHERE spilled) AS spilled
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
  /** Producers that have a row of their own, by partition. */
  readonly #stored = new Map<number, Set<number>>();
  /** States within the rows of partitions. */
  readonly #inline = new Map<number, PackedProducers>();
  readonly #spilled: ReadonlySet<number>;
  readonly #changedTails = new Map<number, { bytes: number; openBefore: OpenRanges | undefined }>();
  readonly #changedSequences = new Map<number, Set<number>>();

  constructor(tails: TailsRow, ages: ProducerAges) {
    this.nowMs = tails.now_ms;
    this.#ages = ages;
    this.#spilled = new Set(tails.spilled);
    for (const [n, partitionId] of (tails.ids ?? []).entries())
      this.#tails.set(partitionId, { nextOffset: tails.ends[n]!, maxTimestamp: tails.times[n]! });
    this.#takeOpen(tails.open);
    this.#takeInline(tails);
  }

  #takeInline({ ids, producers, producer_bytes: lengths }: TailsRow): void {
    if (ids === null || producers === null) return;
    const packed = ownBytes(Buffer.from(producers, 'base64'));
    let at = 0;
    for (const [n, partitionId] of ids.entries()) {
      if (lengths[n]! > 0) this.#inline.set(partitionId, packed.subarray(at, at + lengths[n]!));
      at += lengths[n]!;
    }
    assert(at === packed.length, 'L5: every producer state is of a partition');
  }

  /** True when the producer's state, if there is one, lies in a row of its own. */
  mayBeSpilled(partitionId: number, producerId: number): boolean {
    if (!this.#spilled.has(partitionId)) return false;
    return indexOfProducer(this.#inlineOf(partitionId), producerId) < 0;
  }

  #inlineOf(partitionId: number): PackedProducers {
    return this.#inline.get(partitionId) ?? NO_PRODUCERS;
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

  /** Takes states in that lie in rows of their own. */
  takeSequences({ partition_ids, producer_ids, sequences }: SequencesRow): void {
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
    const found = this.#sequences.get(partitionId)?.get(producerId);
    if (found !== undefined) return found;
    const packed = this.#inline.get(partitionId);
    const n = packed === undefined ? -1 : indexOfProducer(packed, producerId);
    return n < 0 ? undefined : sequencesAt(packed!, n);
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
    const placed = this.#placeSequences();
    const sent = [this.#writeTails(tx, placed), ...writeRows(tx, placed)];
    for (const each of sent) each.catch(() => {});
    return Promise.all(sent);
  }

  async #writeTails(tx: Transaction, { inline, spilling }: Placed): Promise<void> {
    const ids = [...this.#changedTails.keys()];
    if (ids.length === 0) return;
    const tails = ids.map((id) => this.#tails.get(id)!);
    const opened = ids.some((id) => this.#opened(id));
    const produced = inline.size > 0 || spilling.size > 0;
    const columns = [
      sqlNumbers(ids),
      sqlNumbers(tails.map(({ nextOffset }) => nextOffset)),
      sqlNumbers(tails.map(({ maxTimestamp }) => maxTimestamp)),
      sqlNumbers(ids.map((id) => this.#changedTails.get(id)!.bytes)),
      ...(opened ? this.#openColumns(ids) : []),
      ...(produced ? producerColumns(ids, inline, spilling) : []),
    ];
    const changed = await tx.run(WRITE_TAILS[opened ? 1 : 0]![produced ? 1 : 0]!, columns);
    assert(changed === ids.length, 'L2: locked partitions stay');
  }

  #opened(partitionId: number): boolean {
    return this.#changedTails.get(partitionId)!.openBefore !== this.#tails.get(partitionId)!.open;
  }

  /** Open transactions, of all these partitions. */
  #openColumns(ids: readonly number[]) {
    return packedColumns(ids.map((id) => packOpen(id, this.#tails.get(id)!.open) ?? NONE));
  }

  /** What has changed, by where it lies; new producers where there is room. */
  #placeSequences(): Placed {
    const placed = {
      inline: new Map<number, PackedProducers>(),
      spilling: new Set<number>(),
      known: new SequenceRows(),
      fresh: new SequenceRows(),
    };
    for (const [partitionId, producerIds] of this.#changedSequences) {
      assert(this.#changedTails.has(partitionId), 'L5: a producer changes with its partition');
      this.#placeIn(placed, partitionId, producerIds);
    }
    return placed;
  }

  #placeIn(placed: Placed, partitionId: number, producerIds: ReadonlySet<number>): void {
    let packed = this.#inlineOf(partitionId);
    for (const producerId of producerIds) {
      const sequences = this.#sequences.get(partitionId)!.get(producerId)!;
      if (this.#stored.get(partitionId)?.has(producerId) === true) {
        placed.known.add(partitionId, producerId, sequences);
        continue;
      }
      const idle = this.#idleFor(packed, producerId, producerIds);
      if (idle !== undefined) {
        const n = indexOfProducer(packed, idle);
        placed.fresh.add(partitionId, idle, sequencesAt(packed, n));
        packed = keptProducers(packed, (id) => id !== idle);
        placed.spilling.add(partitionId);
      }
      const room = producerCount(packed) < INLINE_PRODUCERS;
      if (room || indexOfProducer(packed, producerId) >= 0) {
        packed = withProducer(packed, producerId, sequences);
        placed.inline.set(partitionId, packed);
      } else {
        placed.fresh.add(partitionId, producerId, sequences);
        placed.spilling.add(partitionId);
      }
    }
  }

  /** Who must leave for a producer that has no place yet; undefined: nobody, or nobody is idle. */
  #idleFor(
    packed: PackedProducers,
    producerId: number,
    busy: ReadonlySet<number>,
  ): number | undefined {
    if (producerCount(packed) < INLINE_PRODUCERS || indexOfProducer(packed, producerId) >= 0)
      return undefined;
    for (let n = 0; n < INLINE_PRODUCERS; n += 1) {
      const id = producerIdAt(packed, n);
      if (!busy.has(id) && activeMsAt(packed, n) < this.nowMs - INLINE_IDLE_MS) return id;
    }
    return undefined;
  }
}

/** Changed states by where they lie. */
interface Placed {
  /** Whole, by partition. */
  readonly inline: Map<number, PackedProducers>;
  /** Partitions that get a row beside. */
  readonly spilling: Set<number>;
  /** Rows that are there. */
  readonly known: SequenceRows;
  /** New rows. */
  readonly fresh: SequenceRows;
}

function writeRows(tx: Transaction, { known, fresh }: Placed): Promise<unknown>[] {
  const sent: Promise<unknown>[] = [];
  if (known.count > 0) sent.push(tx.run(UPDATE_SEQUENCES, known.values()));
  if (fresh.count > 0) sent.push(tx.run(INSERT_SEQUENCES, fresh.values()));
  return sent;
}

/** Nothing where none has changed. */
function producerColumns(
  ids: readonly number[],
  inline: ReadonlyMap<number, PackedProducers>,
  spilling: ReadonlySet<number>,
) {
  const packed = ids.map((id) => inline.get(id) ?? NONE);
  return [
    ...packedColumns(packed),
    sqlNumbers(packed.map((each) => oldestActiveMs(each) ?? 0)),
    sqlNumbers(ids.map((id) => (spilling.has(id) ? 1 : 0))),
  ];
}

/** Where each part begins and how long it is, and all of them end to end: one parameter instead of many. */
function packedColumns(parts: readonly Uint8Array[]) {
  let next = 1;
  const starts = parts.map(({ length }) => {
    next += length;
    return next - length;
  });
  return [sqlNumbers(starts), sqlNumbers(parts.map(({ length }) => length)), Buffer.concat(parts)];
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

/** By whether open transactions change, then whether producers within rows do; parameters in that order. */
const WRITE_TAILS = [false, true].map((opened) =>
  [false, true].map((produced) => writeTails(opened, produced)),
);

function writeTails(opened: boolean, produced: boolean): string {
  let parameters = 4;
  const columns = ['partition_id', 'high_watermark', 'max_timestamp', 'bytes'];
  const arrays = ['$1', '$2', '$3', '$4'];
  const sets = [
    'high_watermark = c.high_watermark, max_timestamp = c.max_timestamp, size_bytes = p.size_bytes + c.bytes',
  ];
  const array = (name: string) => {
    columns.push(name);
    arrays.push(`$${++parameters}`);
  };
  const part = (name: string) => {
    array(`${name}_start`);
    array(`${name}_length`);
    parameters += 1;
    return `substring($${parameters}::bytea FROM c.${name}_start::int4 FOR c.${name}_length::int4)`;
  };
  if (opened) sets.push(`open_transactions = CASE WHEN c.open_length > 0 THEN ${part('open')} END`);
  if (produced) {
    sets.push(
      `producers = CASE WHEN c.producers_length > 0 THEN ${part('producers')} ELSE p.producers END`,
    );
    array('oldest_ms');
    array('spills');
    sets.push(
      'oldest_producer_ms = CASE WHEN c.producers_length > 0 THEN c.oldest_ms ELSE p.oldest_producer_ms END',
      'spilled = p.spilled OR c.spills = 1',
    );
  }
  return `
    UPDATE log_partitions p SET ${sets.join(', ')}
    FROM unnest(${arrays.map((each) => `${each}::int8[]`).join(', ')}) AS c (${columns.join(', ')})
    WHERE p.partition_id = c.partition_id`;
}

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

/**
 * Sends the statements that lock partitions and read what is known of them; transactions were locked before. A second round
 * trip only for states in rows of their own that weren't known to be there.
 */
export async function lockState(
  tx: Transaction,
  partitionIds: readonly number[],
  { keys, copies }: { readonly keys: ProducerKeys; readonly copies: ProducerCopies },
): Promise<LockedState> {
  const { ages, spilled } = copies;
  const ids = partitionIds.toSorted((a, b) => a - b);
  const lowest = ids.length < 2 ? undefined : tx.run(LOCK_LOWEST, [ids[0]!]);
  const tails = tx.row<TailsRow>(LOCK_PARTITIONS, [sqlNumbers(ids)]);
  const early = readSequences(
    tx,
    keysWhere(keys, (id, producer) => spilled.has(id, producer)),
  );
  const aged = ages.known(tx, keys.producerIds);
  const [locked, known] = await Promise.all([tails, early, aged, lowest]);
  const state = new LockedState(locked!, ages);
  if (known !== undefined) state.takeSequences(known);
  const missed = keysWhere(
    keys,
    (id, producer) => !spilled.has(id, producer) && state.mayBeSpilled(id, producer),
  );
  const late = await readSequences(tx, missed);
  if (late === undefined) return state;
  state.takeSequences(late);
  for (const [n, id] of (late.partition_ids ?? []).entries())
    spilled.add(id, late.producer_ids[n]!);
  return state;
}

function keysWhere(
  { partitionIds, producerIds }: ProducerKeys,
  wanted: (partitionId: number, producerId: number) => boolean,
): ProducerKeys {
  const found = { partitionIds: [] as number[], producerIds: [] as number[] };
  for (const [n, partitionId] of partitionIds.entries()) {
    if (!wanted(partitionId, producerIds[n]!)) continue;
    found.partitionIds.push(partitionId);
    found.producerIds.push(producerIds[n]!);
  }
  return found;
}

async function readSequences(
  tx: Transaction,
  { partitionIds, producerIds }: ProducerKeys,
): Promise<SequencesRow | undefined> {
  if (producerIds.length === 0) return undefined;
  return tx.row<SequencesRow>(READ_SEQUENCES, [sqlNumbers(partitionIds), sqlNumbers(producerIds)]);
}
