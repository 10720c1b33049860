// Transactional ids on SQLite. See metadata/transactions.ts for the contract and the rules.
// One process writes, so the states are kept in memory, where a commit of batches looks them up; each change writes its
// row in the transaction that makes it. What they are in the log (markers, ranges) is sqlite/log.ts.
import type { StoredOffset } from '../groups.ts';
import type { LeaseToken } from '../leases.ts';
import { shardOf } from '../shards.ts';
import {
  type EndedTransaction,
  isPastTimeout,
  type OpenTransactions,
  type PartitionProducer,
  type StagedOffsets,
  type StagingTransaction,
  stagingIn,
  step,
  type TransactionEvent,
  type TransactionOutcome,
  type TransactionRequest,
  type TransactionState,
  type TransactionStatus,
  type TransactionsMetadata,
} from '../transactions.ts';
import { type Database, type Migration, sqliteError } from './database.ts';
import { writeGroupOffsets } from './groups.ts';
import { assertLeases, type LeaseEpochs } from './lease-epochs.ts';
import type { SqliteLog } from './log.ts';
import type { TransactionStore } from './log-memory.ts';
import type { ProducerAges } from './producers.ts';
import type { PartitionHooks } from './topics.ts';

export const transactionsMigrations: readonly Migration[] = [
  {
    name: 'transactions-1',
    sql: `
      -- partitions: JSON array of ids; offsets: JSON array of [group id, [stored offset, …]].
      CREATE TABLE transactions (
        transactional_id TEXT PRIMARY KEY, producer_id INTEGER NOT NULL UNIQUE, producer_epoch INTEGER NOT NULL,
        previous_producer_id INTEGER NOT NULL, last_producer_epoch INTEGER NOT NULL,
        incarnation INTEGER NOT NULL, status TEXT NOT NULL, transaction_version INTEGER NOT NULL,
        timeout_ms INTEGER NOT NULL, start_ms INTEGER NOT NULL, update_ms INTEGER NOT NULL,
        partitions TEXT NOT NULL, offsets TEXT NOT NULL) STRICT, WITHOUT ROWID;`,
  },
];

/** All transactional ids: rows, and the same in memory once they are committed. */
export class TransactionStates implements TransactionStore, PartitionHooks {
  readonly #db: Database;
  readonly #states = new Map<string, TransactionState>();
  readonly #byProducer = new Map<number, TransactionState>();
  readonly #ongoing = new Map<string, TransactionState>();

  constructor(db: Database) {
    this.#db = db;
    for (const row of db.prepare('SELECT * FROM transactions').iterate()) this.#keep(toState(row));
  }

  byProducer(producerId: number): TransactionState | undefined {
    return this.#byProducer.get(producerId);
  }

  byId(transactionalId: string): TransactionState | undefined {
    return this.#states.get(transactionalId);
  }

  all(): Iterable<TransactionState> {
    return this.#states.values();
  }

  /** Those with an open transaction. */
  ongoing(): Iterable<TransactionState> {
    return this.#ongoing.values();
  }

  put(state: TransactionState): void {
    if (state.status === 'Dead') {
      this.#db
        .prepare('DELETE FROM transactions WHERE transactional_id = ?')
        .run(state.transactionalId);
    } else {
      this.#db
        .prepare(
          'INSERT OR REPLACE INTO transactions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
        )
        .run(
          state.transactionalId,
          state.producerId,
          state.producerEpoch,
          state.previousProducerId,
          state.lastProducerEpoch,
          state.incarnation,
          state.status,
          state.transactionVersion,
          state.timeoutMs,
          state.startMs,
          state.updateMs,
          JSON.stringify([...state.partitions]),
          encodeOffsets(state.offsets),
        );
    }
    this.#db.afterCommit(() => this.#keep(state));
  }

  #keep(state: TransactionState): void {
    const { transactionalId, producerId } = state;
    const before = this.#states.get(transactionalId);
    if (before !== undefined) this.#byProducer.delete(before.producerId);
    if (state.status === 'Ongoing') this.#ongoing.set(transactionalId, state);
    else this.#ongoing.delete(transactionalId);
    if (state.status === 'Dead') {
      this.#states.delete(transactionalId);
      return;
    }
    this.#states.set(transactionalId, state);
    this.#byProducer.set(producerId, state);
  }

  created(): void {}

  /** As Kafka does with what is pending for a deleted group. */
  dropStaged(groupId: string): void {
    for (const state of this.#ongoing.values()) {
      if (!state.offsets.has(groupId)) continue;
      const offsets = new Map(state.offsets);
      offsets.set(groupId, new Map());
      this.put({ ...state, offsets });
    }
  }

  /** A deleted topic is in no transaction, nor are offsets of it staged. */
  deleted(_topicId: string, _topicName: string, partitionIds: readonly number[]): void {
    const gone = new Set(partitionIds);
    for (const state of this.#ongoing.values()) {
      const next = withoutPartitions(state, gone);
      if (next !== state) this.put(next);
    }
  }
}

function withoutPartitions(state: TransactionState, gone: ReadonlySet<number>): TransactionState {
  const partitions = new Set([...state.partitions].filter((id) => !gone.has(id)));
  let staged = 0;
  const offsets = new Map<string, ReadonlyMap<number, StoredOffset>>();
  for (const [groupId, group] of state.offsets) {
    const left = new Map([...group].filter(([partitionId]) => !gone.has(partitionId)));
    staged += group.size - left.size;
    offsets.set(groupId, left);
  }
  const same = partitions.size === state.partitions.size && staged === 0;
  return same ? state : { ...state, partitions, offsets };
}

export interface SqliteTransactionsOptions {
  readonly states: TransactionStates;
  readonly log: SqliteLog;
  readonly ages: ProducerAges;
  readonly leases: LeaseEpochs;
}

export class SqliteTransactions implements TransactionsMetadata {
  readonly #db: Database;
  readonly #states: TransactionStates;
  readonly #log: SqliteLog;
  readonly #ages: ProducerAges;
  readonly #leases: LeaseEpochs;

  constructor(db: Database, { states, log, ages, leases }: SqliteTransactionsOptions) {
    this.#db = db;
    this.#states = states;
    this.#log = log;
    this.#ages = ages;
    this.#leases = leases;
  }

  async load(shards?: readonly number[]): Promise<readonly TransactionState[]> {
    return [...within(this.#states.all(), shards)];
  }

  async apply(
    requests: readonly TransactionRequest[],
    nowMs: number,
    leases: readonly LeaseToken[] = [],
  ): Promise<readonly TransactionOutcome[]> {
    const drafted = new Map<string, TransactionState>();
    let ended: readonly EndedTransaction[] = [];
    try {
      return this.#db.transaction(() => {
        assertLeases(this.#leases, leases);
        const outcomes = requests.map((request) => this.#applyOne(drafted, request, nowMs));
        ended = outcomes.flatMap((outcome) => outcome.ended ?? []);
        if (ended.length === 0) return outcomes;
        const commitNumber = this.#log.endTransactionsNow(ended, nowMs);
        return outcomes.map((outcome) =>
          outcome.ended === undefined ? outcome : { ...outcome, commitNumber },
        );
      });
    } catch (caught) {
      if (ended.length > 0) this.#log.markerHost?.failed(caught);
      throw sqliteError(caught, 'transactions');
    }
  }

  #applyOne(
    drafted: Map<string, TransactionState>,
    { transactionalId, event }: TransactionRequest,
    nowMs: number,
  ): TransactionOutcome {
    const known = drafted.get(transactionalId) ?? this.#states.byId(transactionalId);
    const state = known?.status === 'Dead' ? undefined : known;
    const newProducerId = () => this.#ages.allocate(nowMs);
    const done = step(transactionalId, state, this.#existing(event), { nowMs, newProducerId });
    const { errorCode, next, ended } = done;
    if (next !== undefined && next !== state) {
      drafted.set(transactionalId, next);
      this.#states.put(next);
    }
    if (ended === undefined) return { errorCode, state: next };
    return { errorCode, state: next, ended, applied: this.#applyOffsets(ended) };
  }

  /** The event without partitions that are gone: their topic may have been deleted while the request was on its way. */
  #existing(event: TransactionEvent): TransactionEvent {
    switch (event.type) {
      case 'add-partitions':
        return { ...event, partitionIds: event.partitionIds.filter((id) => this.#log.has(id)) };
      case 'stage-offsets':
        return {
          ...event,
          offsets: event.offsets.filter(({ partitionId }) => this.#log.has(partitionId)),
        };
      default:
        return event;
    }
  }

  #applyOffsets({ offsets }: EndedTransaction): StagedOffsets {
    const applied = new Map<string, ReadonlyMap<number, StoredOffset>>();
    for (const [groupId, group] of offsets) {
      if (group.size === 0) continue;
      writeGroupOffsets(this.#db, groupId, [...group.values()]);
      applied.set(groupId, group);
    }
    return applied;
  }

  async describe(
    transactionalIds: readonly string[],
  ): Promise<readonly (TransactionState | undefined)[]> {
    return transactionalIds.map((transactionalId) => this.#states.byId(transactionalId));
  }

  async byProducer(producerId: number): Promise<TransactionState | undefined> {
    return this.#states.byProducer(producerId);
  }

  async open(nowMs: number, limit: number, shards?: readonly number[]): Promise<OpenTransactions> {
    let count = 0;
    let oldestStartMs = -1;
    const late: TransactionState[] = [];
    for (const state of within(this.#states.ongoing(), shards)) {
      count += 1;
      if (oldestStartMs === -1 || state.startMs < oldestStartMs) oldestStartMs = state.startMs;
      if (isPastTimeout(state, nowMs)) late.push(state);
    }
    late.sort((a, b) => a.startMs - b.startMs);
    const pastTimeout = late.slice(0, limit).map(({ transactionalId }) => transactionalId);
    return { count, oldestStartMs, pastTimeout };
  }

  async unused(
    unusedSinceMs: number,
    limit: number,
    shards?: readonly number[],
  ): Promise<readonly string[]> {
    const found: string[] = [];
    for (const { transactionalId, status, updateMs } of within(this.#states.all(), shards)) {
      if (status === 'Ongoing' || updateMs > unusedSinceMs) continue;
      found.push(transactionalId);
      if (found.length === limit) break;
    }
    return found;
  }

  async describeProducers(
    partitionIds: readonly number[],
  ): Promise<readonly (readonly PartitionProducer[] | undefined)[]> {
    return partitionIds.map((partitionId) => this.#log.producersOf(partitionId));
  }

  async staging(groupShards: readonly number[]): Promise<readonly StagingTransaction[]> {
    return stagingIn(this.#states.ongoing(), groupShards);
  }
}

/** Those of the shards; all unless given. */
function within(
  states: Iterable<TransactionState>,
  shards: readonly number[] | undefined,
): Iterable<TransactionState> {
  if (shards === undefined) return states;
  const wanted = new Set(shards);
  return [...states].filter(({ transactionalId }) => wanted.has(shardOf(transactionalId)));
}

function encodeOffsets(offsets: StagedOffsets): string {
  return JSON.stringify([...offsets].map(([groupId, group]) => [groupId, [...group.values()]]));
}

function decodeOffsets(text: string): StagedOffsets {
  const groups = JSON.parse(text) as [string, StoredOffset[]][];
  return new Map(
    groups.map(([groupId, offsets]) => [
      groupId,
      new Map(offsets.map((offset) => [offset.partitionId, offset])),
    ]),
  );
}

function toState(row: Record<string, unknown>): TransactionState {
  return {
    transactionalId: row['transactional_id'] as string,
    producerId: Number(row['producer_id']),
    producerEpoch: Number(row['producer_epoch']),
    previousProducerId: Number(row['previous_producer_id']),
    lastProducerEpoch: Number(row['last_producer_epoch']),
    incarnation: Number(row['incarnation']),
    status: row['status'] as TransactionStatus,
    transactionVersion: Number(row['transaction_version']) === 2 ? 2 : 0,
    timeoutMs: Number(row['timeout_ms']),
    startMs: Number(row['start_ms']),
    updateMs: Number(row['update_ms']),
    partitions: new Set(JSON.parse(row['partitions'] as string) as number[]),
    offsets: decodeOffsets(row['offsets'] as string),
  };
}
