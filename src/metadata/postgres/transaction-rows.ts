// Transactional ids as rows of PostgreSQL: read, locked and written. See metadata/transactions.ts for what they mean.
// Partitions of deleted topics stay in a row until it is written next, and are left out whenever it is read: so deleting a
// topic locks no transaction. Not for: what becomes of them (transactions.ts), their records in the log (transaction-ranges.ts).
import type { StoredOffset } from '../groups.ts';
import { shardOf } from '../shards.ts';
import { clientText, storedText } from '../text.ts';
import type { StagedOffsets, TransactionState, TransactionStatus } from '../transactions.ts';
import type { Sql, Transaction } from './database.ts';
import { sqlNumbers } from './log-rows.ts';
import type { Migration } from './migrations.ts';

export const transactionsMigrations: readonly Migration[] = [
  {
    name: 'transactions-1',
    sql: `
      -- offsets: JSON array of [group id, [stored offset, …]]. shard: metadata/shards.ts.
      CREATE TABLE transactions (
        transactional_id text COLLATE "C" PRIMARY KEY, shard int4 NOT NULL, producer_id int8 NOT NULL UNIQUE,
        producer_epoch int4 NOT NULL, previous_producer_id int8 NOT NULL, last_producer_epoch int4 NOT NULL,
        incarnation int8 NOT NULL, status text NOT NULL, transaction_version int4 NOT NULL,
        timeout_ms int8 NOT NULL, start_ms int8 NOT NULL, update_ms int8 NOT NULL,
        partitions int8[] NOT NULL, offsets text NOT NULL) WITH (fillfactor = 70);
      CREATE INDEX transactions_open ON transactions (shard) WHERE status = 'Ongoing';`,
  },
];

interface TransactionRecord {
  readonly transactional_id: string;
  readonly producer_id: number;
  readonly producer_epoch: number;
  readonly previous_producer_id: number;
  readonly last_producer_epoch: number;
  readonly incarnation: number;
  readonly status: TransactionStatus;
  readonly transaction_version: number;
  readonly timeout_ms: number;
  readonly start_ms: number;
  readonly update_ms: number;
  readonly partitions: readonly number[];
  readonly offsets: string;
}

/** One state as its row says it, those of deleted topics included. */
function toState(row: TransactionRecord): TransactionState {
  return {
    transactionalId: clientText(row.transactional_id),
    producerId: row.producer_id,
    producerEpoch: row.producer_epoch,
    previousProducerId: row.previous_producer_id,
    lastProducerEpoch: row.last_producer_epoch,
    incarnation: row.incarnation,
    status: row.status,
    transactionVersion: row.transaction_version === 2 ? 2 : 0,
    timeoutMs: row.timeout_ms,
    startMs: row.start_ms,
    updateMs: row.update_ms,
    partitions: new Set(row.partitions),
    offsets: decodeOffsets(row.offsets),
  };
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

/**
 * The transactions that write under these producer ids, locked in their order until the transaction ends: shared, so that
 * none of them ends meanwhile; for change, where batches may join one.
 */
export async function lockByProducer(
  tx: Transaction,
  producerIds: readonly number[],
  { mayJoin }: { readonly mayJoin: boolean },
): Promise<readonly TransactionState[]> {
  const rows = await tx.rows<TransactionRecord>(mayJoin ? LOCK_TO_JOIN : LOCK_SHARED, [
    sqlNumbers(producerIds),
  ]);
  return rows.map(toState);
}

const BY_PRODUCER =
  'SELECT * FROM transactions WHERE producer_id = ANY ($1::int8[]) ORDER BY producer_id';
const LOCK_TO_JOIN = `${BY_PRODUCER} FOR NO KEY UPDATE`;
const LOCK_SHARED = `${BY_PRODUCER} FOR SHARE`;

/** States by id, locked against everybody in the order of producer ids. Ids without a row are held too, by name. */
export async function lockById(
  tx: Transaction,
  transactionalIds: readonly string[],
): Promise<ReadonlyMap<string, TransactionState>> {
  const ids = transactionalIds.map(storedText);
  const [, rows] = await Promise.all([
    tx.run(LOCK_NAMES, [ids]),
    tx.rows<TransactionRecord>(LOCK_BY_ID, [ids]),
  ]);
  return new Map(rows.map(toState).map((state) => [state.transactionalId, state]));
}

const LOCK_NAMES = `
  SELECT pg_advisory_xact_lock(key) FROM (
    SELECT DISTINCT hashtextextended('transaction ' || id, 0) AS key FROM unnest($1::text[]) AS id ORDER BY key) AS keys`;
const LOCK_BY_ID = `
  SELECT * FROM transactions WHERE transactional_id = ANY ($1::text[]) ORDER BY producer_id FOR UPDATE`;

/** Sends what is to be written of states whose rows are locked; under way when it returns. */
export function putStates(tx: Transaction, states: Iterable<TransactionState>): Promise<unknown> {
  const [dead, alive]: TransactionState[][] = [[], []];
  for (const state of states) (state.status === 'Dead' ? dead : alive).push(state);
  const sent: Promise<unknown>[] = [];
  if (dead.length > 0)
    sent.push(
      tx.run('DELETE FROM transactions WHERE transactional_id = ANY ($1::text[])', [
        dead.map(({ transactionalId }) => storedText(transactionalId)),
      ]),
    );
  if (alive.length > 0) sent.push(tx.run(PUT, columnsOf(alive)));
  for (const each of sent) each.catch(() => {});
  return Promise.all(sent);
}

const COLUMNS = `transactional_id, shard, producer_id, producer_epoch, previous_producer_id, last_producer_epoch,
  incarnation, status, transaction_version, timeout_ms, start_ms, update_ms, partitions, offsets`;

const PUT = `
  INSERT INTO transactions (${COLUMNS})
  SELECT transactional_id, shard, producer_id, producer_epoch, previous_producer_id, last_producer_epoch,
    incarnation, status, transaction_version, timeout_ms, start_ms, update_ms, partitions::int8[], offsets
  FROM unnest($1::text[], $2::int4[], $3::int8[], $4::int4[], $5::int8[], $6::int4[], $7::int8[], $8::text[],
    $9::int4[], $10::int8[], $11::int8[], $12::int8[], $13::text[], $14::text[]) AS row (${COLUMNS})
  ON CONFLICT (transactional_id) DO UPDATE SET producer_id = excluded.producer_id,
    producer_epoch = excluded.producer_epoch, previous_producer_id = excluded.previous_producer_id,
    last_producer_epoch = excluded.last_producer_epoch, incarnation = excluded.incarnation,
    status = excluded.status, transaction_version = excluded.transaction_version,
    timeout_ms = excluded.timeout_ms, start_ms = excluded.start_ms, update_ms = excluded.update_ms,
    partitions = excluded.partitions, offsets = excluded.offsets`;

function columnsOf(states: readonly TransactionState[]) {
  const numbers = (of: (state: TransactionState) => number) => sqlNumbers(states.map(of));
  return [
    states.map(({ transactionalId }) => storedText(transactionalId)),
    numbers(({ transactionalId }) => shardOf(transactionalId)),
    numbers((state) => state.producerId),
    numbers((state) => state.producerEpoch),
    numbers((state) => state.previousProducerId),
    numbers((state) => state.lastProducerEpoch),
    numbers((state) => state.incarnation),
    states.map(({ status }) => status),
    numbers((state) => state.transactionVersion),
    numbers((state) => state.timeoutMs),
    numbers((state) => state.startMs),
    numbers((state) => state.updateMs),
    states.map(({ partitions }) => sqlNumbers(partitions)),
    states.map(({ offsets }) => encodeOffsets(offsets)),
  ];
}

/** States of a query over `transactions`, without partitions of deleted topics. `where` is constant text. */
export async function readStates(
  sql: Sql,
  where: string,
  values: readonly (string | number | null | readonly string[])[],
): Promise<readonly TransactionState[]> {
  const rows = await sql.rows<TransactionRecord>(
    `SELECT * FROM transactions WHERE ${where} ORDER BY transactional_id`,
    values,
  );
  return withoutGone(sql, rows.map(toState));
}

/** The same states without partitions that don't exist any more. */
export async function withoutGone(
  sql: Sql,
  states: readonly TransactionState[],
): Promise<readonly TransactionState[]> {
  const named = new Set<number>();
  for (const { partitions, offsets } of states) {
    for (const partitionId of partitions) named.add(partitionId);
    for (const group of offsets.values())
      for (const partitionId of group.keys()) named.add(partitionId);
  }
  const there = await existing(sql, named);
  return there.size === named.size ? states : states.map((state) => reduced(state, there));
}

/** Which of these partitions exist. */
export async function existing(
  sql: Sql,
  partitionIds: Iterable<number>,
): Promise<ReadonlySet<number>> {
  const ids = [...new Set(partitionIds)];
  if (ids.length === 0) return new Set();
  const rows = await sql.rows<{ partition_id: number }>(
    'SELECT partition_id FROM log_partitions WHERE partition_id = ANY ($1::int8[])',
    [sqlNumbers(ids)],
  );
  return new Set(rows.map((row) => row.partition_id));
}

function reduced(state: TransactionState, there: ReadonlySet<number>): TransactionState {
  const offsets = new Map<string, ReadonlyMap<number, StoredOffset>>();
  for (const [groupId, group] of state.offsets)
    offsets.set(groupId, new Map([...group].filter(([partitionId]) => there.has(partitionId))));
  const partitions = new Set([...state.partitions].filter((id) => there.has(id)));
  return { ...state, partitions, offsets };
}
