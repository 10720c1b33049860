// Transactional ids on PostgreSQL. See metadata/transactions.ts for the contract and the rules.
// A request is one database transaction: leases, ids, rows locked; `step`, the pure transition; then state, staged
// offsets, markers in the log and the commit's number with COMMIT in one go. By the store's clock alone.
// Not for: rows and their locks (transaction-rows.ts), batches (log-commit.ts).
import type { StoredOffset } from '../groups.ts';
import type { LeaseToken } from '../leases.ts';
import { decideMarkers } from '../markers.ts';
import {
  coordinatorEpoch,
  newestSequence,
  sequencesActiveMs,
  sequencesEpoch,
  sequencesFromBytes,
} from '../sequences.ts';
import { clientText, storedText } from '../text.ts';
import {
  type EndedTransaction,
  type OpenTransactions,
  type PartitionProducer,
  type StagedOffsets,
  type StagingTransaction,
  type Step,
  stagingIn,
  step,
  type TransactionEvent,
  type TransactionOutcome,
  type TransactionRequest,
  type TransactionState,
  type TransactionsMetadata,
} from '../transactions.ts';
import type { Database, Transaction } from './database.ts';
import { type StagedOffsetsStore, writeGroupOffsets } from './groups.ts';
import { assertLeases } from './leases.ts';
import { insertMarkers, withFlushRanges } from './log-commit.ts';
import { openRanges, ownBytes, STORE_MS, sqlNumbers } from './log-rows.ts';
import { type LockedState, lockState } from './log-state.ts';
import { allocateProducerId, type ProducerAges } from './producers.ts';
import { putAborted } from './transaction-ranges.ts';
import { existing, lockById, putStates, readStates, withoutGone } from './transaction-rows.ts';

/** What a request has become, before its offsets are known to be applied. */
interface Stepped extends Step {
  readonly transactionalId: string;
}

export class PostgresTransactions implements TransactionsMetadata, StagedOffsetsStore {
  readonly #db: Database;
  readonly #ages: ProducerAges;

  constructor(db: Database, ages: ProducerAges) {
    this.#db = db;
    this.#ages = ages;
  }

  async load(shards?: readonly number[]): Promise<readonly TransactionState[]> {
    const values = [shards === undefined ? null : sqlNumbers(shards)];
    return this.#db.snapshot('background', (tx) => readStates(tx, IN_SHARDS, values));
  }

  async apply(
    requests: readonly TransactionRequest[],
    _nowMs: number,
    leases: readonly LeaseToken[] = [],
  ): Promise<readonly TransactionOutcome[]> {
    if (requests.length === 0) return [];
    return withFlushRanges(this.#db, () =>
      this.#db.pipelined('write', (tx) => this.#work(tx, requests, leases)),
    );
  }

  async #work(
    tx: Transaction,
    requests: readonly TransactionRequest[],
    leases: readonly LeaseToken[],
  ): Promise<() => Promise<readonly TransactionOutcome[]>> {
    await assertLeases(tx, leases);
    const { stepped, changed } = await this.#step(tx, requests);
    const ended = stepped.flatMap((each) => each.ended ?? []);
    if (ended.length === 0)
      return async () => {
        await putStates(tx, changed.values());
        return stepped.map(({ errorCode, next }) => ({ errorCode, state: next }));
      };
    const state = await this.#lockPartitions(tx, ended);
    const applied = ended.map((each) => applicable(each, state));
    for (const offsets of applied) {
      for (const [groupId, group] of offsets)
        await writeGroupOffsets(tx, groupId, [...group.values()]);
    }
    return () => this.#end(tx, { stepped, changed, ended, applied, state });
  }

  /** All requests in order, each on what the ones before it have left. */
  async #step(tx: Transaction, requests: readonly TransactionRequest[]) {
    const { states, there, nowMs } = await this.#lock(tx, requests);
    const changed = new Map<string, TransactionState>();
    const stepped: Stepped[] = [];
    for (const { transactionalId, event } of requests) {
      const known = changed.get(transactionalId) ?? states.get(transactionalId);
      const state = known?.status === 'Dead' ? undefined : known;
      const take = (newProducerId: () => number) =>
        step(transactionalId, state, onlyExisting(event, there), { nowMs, newProducerId });
      const done = await withProducerId(tx, take);
      if (done.next !== undefined && done.next !== state) changed.set(transactionalId, done.next);
      stepped.push({ transactionalId, ...done });
    }
    return { stepped, changed };
  }

  async #lock(tx: Transaction, requests: readonly TransactionRequest[]) {
    const ids = [...new Set(requests.map(({ transactionalId }) => transactionalId))];
    const locked = await lockById(tx, ids);
    const named = requests.flatMap(({ event }) => partitionsOf(event));
    const [states, there, clock] = await Promise.all([
      withoutGone(tx, [...locked.values()]),
      existing(tx, named),
      tx.row<{ now_ms: number }>(`SELECT ${STORE_MS} AS now_ms`),
    ]);
    return {
      states: new Map(states.map((state) => [state.transactionalId, state])),
      there,
      nowMs: clock!.now_ms,
    };
  }

  async #lockPartitions(tx: Transaction, ended: readonly EndedTransaction[]): Promise<LockedState> {
    const keys = { partitionIds: [] as number[], producerIds: [] as number[] };
    const locked = new Set<number>();
    for (const { partitions, producerId, offsets } of ended) {
      for (const partitionId of partitions) {
        locked.add(partitionId);
        keys.partitionIds.push(partitionId);
        keys.producerIds.push(producerId);
      }
      // So that their topics aren't deleted before their offsets are there.
      for (const group of offsets.values())
        for (const partitionId of group.keys()) locked.add(partitionId);
    }
    return lockState(tx, [...locked], { keys, ages: this.#ages });
  }

  async #end(
    tx: Transaction,
    work: {
      readonly stepped: readonly Stepped[];
      readonly changed: ReadonlyMap<string, TransactionState>;
      readonly ended: readonly EndedTransaction[];
      readonly applied: readonly StagedOffsets[];
      readonly state: LockedState;
    },
  ): Promise<readonly TransactionOutcome[]> {
    const { stepped, changed, ended, applied, state } = work;
    const { nowMs } = state;
    const decision = decideMarkers(state, ended, nowMs);
    state.apply(decision, NO_BYTES);
    const written = [
      putStates(tx, changed.values()),
      state.write(tx),
      putAborted(tx, decision.aborted),
    ];
    const numbered = decision.index.count === 0 ? -1 : insertMarkers(tx, decision, nowMs);
    const [commitNumber] = await Promise.all([numbered, ...written]);
    let n = 0;
    return stepped.map(({ errorCode, next, ended: end }) =>
      end === undefined
        ? { errorCode, state: next }
        : { errorCode, state: next, ended: end, applied: applied[n++]!, commitNumber },
    );
  }

  async describe(
    transactionalIds: readonly string[],
  ): Promise<readonly (TransactionState | undefined)[]> {
    const states = await readStates(this.#db.on('read'), 'transactional_id = ANY ($1::text[])', [
      transactionalIds.map(storedText),
    ]);
    const found = new Map(states.map((state) => [state.transactionalId, state]));
    return transactionalIds.map((id) => found.get(id));
  }

  async byProducer(producerId: number): Promise<TransactionState | undefined> {
    const states = await readStates(this.#db.on('read'), 'producer_id = $1', [producerId]);
    return states[0];
  }

  async open(_nowMs: number, limit: number, shards?: readonly number[]): Promise<OpenTransactions> {
    const row = await this.#db.on('read').row<{
      count: number;
      oldest: number;
      late: string[];
    }>(
      `WITH now AS MATERIALIZED (SELECT ${STORE_MS} AS ms),
       open AS MATERIALIZED (
         SELECT transactional_id, start_ms, timeout_ms FROM transactions
         WHERE status = 'Ongoing' AND ${IN_SHARDS})
       SELECT count(*)::int8 AS count, coalesce(min(start_ms), -1) AS oldest,
         ARRAY(SELECT transactional_id FROM open, now WHERE ms - start_ms > timeout_ms
           ORDER BY start_ms LIMIT $2) AS late
       FROM open`,
      [shards === undefined ? null : sqlNumbers(shards), limit],
    );
    const { count, oldest, late } = row!;
    return { count, oldestStartMs: oldest, pastTimeout: late.map(clientText) };
  }

  async unused(
    unusedSinceMs: number,
    limit: number,
    shards?: readonly number[],
  ): Promise<readonly string[]> {
    const rows = await this.#db.on('background').rows<{ transactional_id: string }>(
      `SELECT transactional_id FROM transactions
       WHERE ${IN_SHARDS} AND status <> 'Ongoing' AND update_ms <= $2 LIMIT $3`,
      [shards === undefined ? null : sqlNumbers(shards), unusedSinceMs, limit],
    );
    return rows.map((row) => clientText(row.transactional_id));
  }

  async describeProducers(
    partitionIds: readonly number[],
  ): Promise<readonly (readonly PartitionProducer[] | undefined)[]> {
    return this.#db.snapshot('read', async (tx) => {
      const ids = [sqlNumbers(partitionIds)];
      const [partitions, producers] = await Promise.all([
        tx.rows<{ partition_id: number; open_transactions: Uint8Array | null }>(
          'SELECT partition_id, open_transactions FROM log_partitions WHERE partition_id = ANY ($1::int8[])',
          ids,
        ),
        tx.rows<ProducerRow>(
          `SELECT partition_id, producer_id, sequences FROM producer_sequences
           WHERE partition_id = ANY ($1::int8[]) ORDER BY partition_id, producer_id`,
          ids,
        ),
      ]);
      const open = new Map(
        partitions.map((row) => [row.partition_id, openRanges(row.open_transactions) ?? new Map()]),
      );
      return partitionIds.map((partitionId) => {
        const ranges = open.get(partitionId);
        if (ranges === undefined) return undefined;
        return producers
          .filter((row) => row.partition_id === partitionId)
          .map((row) => toPartitionProducer(row, ranges));
      });
    });
  }

  async staging(groupShards: readonly number[]): Promise<readonly StagingTransaction[]> {
    return stagingIn(await readStates(this.#db.on('read'), STAGING, []), groupShards);
  }

  /** As Kafka does with what is pending for a deleted group. First of the transaction's locks but leases. */
  async dropStaged(tx: Transaction, groupId: string): Promise<void> {
    const staging = await readStates(tx, STAGING, []);
    const ids = staging.filter(({ offsets }) => offsets.has(groupId));
    if (ids.length === 0) return;
    const states = await lockById(
      tx,
      ids.map(({ transactionalId }) => transactionalId),
    );
    const changed = [...states.values()].filter(
      ({ status, offsets }) => status === 'Ongoing' && offsets.has(groupId),
    );
    await putStates(
      tx,
      changed.map((state) => ({
        ...state,
        offsets: new Map(state.offsets).set(groupId, new Map()),
      })),
    );
  }
}

/** $1: shards, null for all. */
const IN_SHARDS = '($1::int4[] IS NULL OR shard = ANY ($1::int4[]))';
const STAGING = "status = 'Ongoing' AND offsets <> '[]'";
const NO_BYTES: ReadonlyMap<number, number> = new Map();

/** Thrown out of a transition that needs an id, which takes a question to the store; it is pure, so it is asked again. */
const NEEDS_PRODUCER_ID = Symbol('a producer id is needed');

async function withProducerId(
  tx: Transaction,
  take: (newProducerId: () => number) => Step,
): Promise<Step> {
  try {
    return take(() => {
      throw NEEDS_PRODUCER_ID;
    });
  } catch (caught) {
    if (caught !== NEEDS_PRODUCER_ID) throw caught;
  }
  const producerId = await allocateProducerId(tx);
  return take(() => producerId);
}

function partitionsOf(event: TransactionEvent): readonly number[] {
  switch (event.type) {
    case 'add-partitions':
      return event.partitionIds;
    case 'stage-offsets':
      return event.offsets.map(({ partitionId }) => partitionId);
    default:
      return [];
  }
}

/** The event without partitions that are gone: their topic may have been deleted while the request was on its way. */
function onlyExisting(event: TransactionEvent, there: ReadonlySet<number>): TransactionEvent {
  switch (event.type) {
    case 'add-partitions':
      return { ...event, partitionIds: event.partitionIds.filter((id) => there.has(id)) };
    case 'stage-offsets':
      return { ...event, offsets: event.offsets.filter((each) => there.has(each.partitionId)) };
    default:
      return event;
  }
}

/** Its staged offsets, those of deleted topics and empty groups left out. */
function applicable({ offsets }: EndedTransaction, state: LockedState): StagedOffsets {
  const applied = new Map<string, ReadonlyMap<number, StoredOffset>>();
  for (const [groupId, group] of offsets) {
    const left = [...group].filter(([partitionId]) => state.partition(partitionId) !== undefined);
    if (left.length > 0) applied.set(groupId, new Map(left));
  }
  return applied;
}

interface ProducerRow {
  readonly partition_id: number;
  readonly producer_id: number;
  readonly sequences: Uint8Array;
}

function toPartitionProducer(
  row: ProducerRow,
  open: ReadonlyMap<number, number>,
): PartitionProducer {
  const sequences = sequencesFromBytes(ownBytes(row.sequences));
  return {
    producerId: row.producer_id,
    producerEpoch: sequencesEpoch(sequences),
    lastSequence: newestSequence(sequences),
    lastTimestamp: sequencesActiveMs(sequences),
    coordinatorEpoch: coordinatorEpoch(sequences),
    currentTransactionStart: open.get(row.producer_id) ?? -1,
  };
}
