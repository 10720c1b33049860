// The sequencer's commit on PostgreSQL: lock and read in one round trip, decide by the pure functions that every store
// shares, write in another one whose last statements take the commit's number and COMMIT. The number comes from one row, so
// commits are done one after the other across the cluster, but only from there on: for the server's work on a row and a sync.
// Decision 0030. Not for: rows read by others (log.ts), transactional ids (transactions.ts).
import { FloeError } from '../../base/error.ts';
import { type BatchColumns, transactionMode } from '../batch-columns.ts';
import { type Decision, decide } from '../decide.ts';
import { checkTimely, packExceptions, packRuns, recallOutcome } from '../flush-outcome.ts';
import type { CommittedFlush, FlushCommit, RiderOutcome } from '../log.ts';
import type { MarkerDecision } from '../markers.ts';
import { openIndex, type PackedIndex } from '../packed-index.ts';
import type { TransactionState } from '../transactions.ts';
import type { Database, Transaction } from './database.ts';
import { sqlState } from './errors.ts';
import { ensureFlushRanges } from './flush-ranges.ts';
import { ownBytes, packBegun } from './log-rows.ts';
import { type LockedState, lockState, type ProducerKeys } from './log-state.ts';
import type { ProducerAges } from './producers.ts';
import { admitRiders, recallRiders, type StageEntrance } from './stage-riders.ts';
import { lockByProducer, putStates } from './transaction-rows.ts';

export interface LogCommitsOptions {
  readonly ages: ProducerAges;
  readonly stages: StageEntrance;
}

/** A flush that is decided and not yet written. */
interface Draft {
  readonly flush: FlushCommit;
  readonly decision: Decision;
  readonly index: PackedIndex;
  readonly riders: readonly RiderOutcome[] | undefined;
}

export class LogCommits {
  readonly #db: Database;
  readonly #options: LogCommitsOptions;

  constructor(db: Database, options: LogCommitsOptions) {
    this.#db = db;
    this.#options = options;
  }

  /** See `LogMetadata.commit`. */
  async commit(flushes: readonly FlushCommit[]): Promise<readonly CommittedFlush[]> {
    if (flushes.length === 0) return [];
    return withFlushRanges(this.#db, async () => {
      try {
        return await this.#db.pipelined('commit', (tx) => this.#work(tx, flushes));
      } catch (caught) {
        throw commitError(caught, flushes);
      }
    });
  }

  async #work(
    tx: Transaction,
    flushes: readonly FlushCommit[],
  ): Promise<() => Promise<readonly CommittedFlush[]>> {
    const { state, recalled } = await this.#lock(tx, flushes);
    const outcomes: (CommittedFlush | Draft)[] = [];
    const joined = new Map<number, TransactionState>();
    for (const flush of flushes) {
      const known = recalled.get(keyOf(flush.flushId));
      if (known !== undefined) {
        outcomes.push(await this.#recall(tx, flush, known));
        continue;
      }
      const twin = outcomes.find((each) => 'decision' in each && isSame(each.flush, flush));
      if (twin !== undefined) {
        outcomes.push(twin);
        continue;
      }
      const draft = await this.#decide(tx, state, flush);
      for (const [producerId, next] of draft.decision.transactions) {
        joined.set(producerId, next);
        state.transactions.set(producerId, next);
      }
      outcomes.push(draft);
    }
    return () => {
      const written = Promise.all([state.write(tx), putStates(tx, joined.values())]);
      const done = outcomes.map((outcome, n) => {
        if ('fresh' in outcome) return outcome;
        // The same flush twice in one call.
        const first = outcomes.indexOf(outcome);
        return first === n ? insertFlush(tx, outcome, state.nowMs) : first;
      });
      return Promise.all([written, Promise.all(done)]).then(([, committed]) =>
        committed.map((each) =>
          typeof each === 'number'
            ? { ...(committed[each] as CommittedFlush), fresh: false }
            : each,
        ),
      );
    };
  }

  /** One round trip, in the lock order of log-state.ts. A retry waits here until the first attempt has ended. */
  async #lock(tx: Transaction, flushes: readonly FlushCommit[]) {
    const keys = flushes.map(({ flushId }) => advisoryKey(flushId)).join();
    const ids = tx.run(LOCK_FLUSH_IDS, [`{${keys}}`]);
    const { producerIds, mayJoin } = transactionsOf(flushes);
    const transactions =
      producerIds.length === 0 ? [] : lockByProducer(tx, producerIds, { mayJoin });
    const { partitionIds, producers } = keysOf(flushes);
    const locked = lockState(tx, partitionIds, { keys: producers, ages: this.#options.ages });
    const known = tx.rows<RecalledRow>(RECALL, [flushes.map(({ flushId }) => flushId)]);
    const [, states, state, rows] = await Promise.all([ids, transactions, locked, known]);
    for (const each of states) state.transactions.set(each.producerId, each);
    return { state, recalled: new Map(rows.map((row) => [keyOf(row.flush_id), row])) };
  }

  async #decide(tx: Transaction, state: LockedState, flush: FlushCommit): Promise<Draft> {
    checkTimely(flush, state.nowMs);
    const exists = (partitionId: number) => state.partition(partitionId) !== undefined;
    const { stages } = this.#options;
    const ride = await admitRiders({ tx, stages }, flush, exists);
    const decision = decide(state, flush.batches, state.nowMs, ride?.refusals);
    const index = packRuns(flush.batches, decision);
    state.apply(decision, bytesOf(index));
    return { flush, decision, index, riders: ride?.outcomes };
  }

  async #recall(
    tx: Transaction,
    { batches, riders }: FlushCommit,
    row: RecalledRow,
  ): Promise<CommittedFlush> {
    const index = ownBytes(row.packed_index);
    const exceptions = ownBytes(row.exceptions ?? EMPTY);
    const outcome = recallOutcome(batches, openIndex(index), exceptions);
    const { stages } = this.#options;
    return {
      commitNumber: row.commit_number,
      committedMs: row.committed_ms,
      objectId: row.object_id,
      objectKey: row.key,
      generation: row.generation,
      fresh: false,
      index,
      ...outcome,
      ...(riders === undefined
        ? {}
        : { riders: await recallRiders({ tx, stages }, riders, outcome.errorCodes) }),
    };
  }
}

const EMPTY = new Uint8Array(0);

/** Runs `work`; once more when a table for the next commits was missing: nobody had made it ahead. */
export async function withFlushRanges<T>(db: Database, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (caught) {
    if (stateOf(caught) !== NO_RANGE) throw caught;
    await ensureFlushRanges(db);
    return work();
  }
}

/** check_violation: no partition of the table takes the row. */
const NO_RANGE = '23514';
/** not_null_violation: there was no open object to refer to. */
const NO_OBJECT = '23502';

function stateOf(caught: unknown): unknown {
  return caught instanceof FloeError ? caught.details?.['sqlState'] : sqlState(caught);
}

function commitError(caught: unknown, flushes: readonly FlushCommit[]): unknown {
  if (stateOf(caught) !== NO_OBJECT) return caught;
  const keys = flushes.map(({ object }) => object.key).join(', ');
  return new FloeError('conflict', `object ${keys} is no longer open: write another`, {
    cause: caught,
  });
}

const LOCK_FLUSH_IDS = `
  SELECT pg_advisory_xact_lock(key) FROM (SELECT key FROM unnest($1::int8[]) AS key ORDER BY key) AS keys`;

/** Ids are random: their halves mixed are as good as any hash. */
function advisoryKey(flushId: Uint8Array): string {
  const view = new DataView(flushId.buffer, flushId.byteOffset, flushId.byteLength);
  return BigInt.asIntN(64, view.getBigInt64(0) ^ view.getBigInt64(8)).toString();
}

function isSame(a: FlushCommit, b: FlushCommit): boolean {
  return keyOf(a.flushId) === keyOf(b.flushId);
}

function keyOf(flushId: Uint8Array): string {
  return Buffer.from(flushId.buffer, flushId.byteOffset, flushId.byteLength).toString('hex');
}

interface RecalledRow {
  readonly flush_id: Uint8Array;
  readonly commit_number: number;
  readonly committed_ms: number;
  readonly object_id: number;
  readonly key: string;
  readonly generation: number;
  readonly packed_index: Uint8Array;
  readonly exceptions: Uint8Array | null;
}

const RECALL = `
  SELECT f.flush_id, f.commit_number, f.committed_ms, f.object_id, o.key, o.generation, f.packed_index, f.exceptions
  FROM flushes f JOIN log_objects o USING (object_id) WHERE f.flush_id = ANY ($1::bytea[])`;

// The object's key is unique whatever its state: of a commit and a sweep of the same key the second waits, and loses.
// Without an object to refer to the row can't be written (not null), so that the COMMIT behind it commits nothing.
const INSERT_FLUSH = `
  WITH number AS (UPDATE log_counter SET last_commit = last_commit + 1 RETURNING last_commit),
  object AS (
    INSERT INTO log_objects (key, kind, generation, state, bytes, created_ms, changed_ms)
    VALUES ($1, $2, $3, 'open', $4, $5, $5)
    ON CONFLICT (key) DO UPDATE SET bytes = greatest(log_objects.bytes, excluded.bytes)
      WHERE log_objects.state = 'open'
    RETURNING object_id)
  INSERT INTO flushes (commit_number, flush_id, object_id, committed_ms, packed_index, exceptions, begun)
  SELECT last_commit, $6, (SELECT object_id FROM object), $5, $7, $8, $9 FROM number
  RETURNING commit_number, object_id`;

async function insertFlush(
  tx: Transaction,
  { flush, decision, index, riders }: Draft,
  committedMs: number,
): Promise<CommittedFlush> {
  const { key, kind, generation, bytes } = flush.object;
  const { errorCodes, baseOffsets, duplicates, begun } = decision;
  const row = await tx.row<{ commit_number: number; object_id: number }>(INSERT_FLUSH, [
    key,
    kind,
    generation,
    bytes,
    committedMs,
    flush.flushId,
    index.bytes,
    packExceptions(decision),
    packBegun(begun),
  ]);
  return {
    commitNumber: row!.commit_number,
    committedMs,
    objectId: row!.object_id,
    objectKey: key,
    generation,
    fresh: true,
    errorCodes,
    baseOffsets,
    duplicates,
    ...(riders === undefined ? {} : { riders }),
    index: index.bytes,
  };
}

/** What logs grow by, by partition. */
function bytesOf(index: PackedIndex): ReadonlyMap<number, number> {
  const bytes = new Map<number, number>();
  for (let n = 0; n < index.count; n += 1) {
    const partitionId = index.partitionIds[n]!;
    bytes.set(partitionId, (bytes.get(partitionId) ?? 0) + index.lengths[n]!);
  }
  return bytes;
}

function keysOf(flushes: readonly FlushCommit[]): {
  readonly partitionIds: readonly number[];
  readonly producers: ProducerKeys;
} {
  const found = new Map<number, Set<number>>();
  for (const { batches } of flushes) {
    for (let n = 0; n < batches.count; n += 1) {
      const partitionId = batches.partitionIds[n]!;
      let producers = found.get(partitionId);
      if (producers === undefined) found.set(partitionId, (producers = new Set()));
      if (batches.producerIds[n]! >= 0) producers.add(batches.producerIds[n]!);
    }
  }
  const producers = { partitionIds: [] as number[], producerIds: [] as number[] };
  for (const [partitionId, ids] of found) {
    for (const producerId of ids) {
      producers.partitionIds.push(partitionId);
      producers.producerIds.push(producerId);
    }
  }
  return { partitionIds: [...found.keys()], producers };
}

/** Producers of transactional batches; `mayJoin`: a batch may take a transaction into a partition. */
function transactionsOf(flushes: readonly FlushCommit[]) {
  const producerIds = new Set<number>();
  let mayJoin = false;
  const look = ({ count, transactions, producerIds: ids }: BatchColumns) => {
    for (let n = 0; n < count; n += 1) {
      if (transactions[n] === 0) continue;
      producerIds.add(ids[n]!);
      mayJoin ||= transactionMode(transactions[n]!) === 'implicit';
    }
  };
  for (const { batches } of flushes) look(batches);
  return { producerIds: [...producerIds], mayJoin };
}

/** The commit of a decision on markers, its last statements. @returns its number. */
export async function insertMarkers(
  tx: Transaction,
  { index }: MarkerDecision,
  committedMs: number,
): Promise<number> {
  const [, row] = await Promise.all([
    tx.run('UPDATE log_counter SET last_commit = last_commit + 1'),
    tx.row<{ commit_number: number }>(INSERT_MARKERS, [committedMs, index.bytes]),
  ]);
  return row!.commit_number;
}

// Markers lie with the flush before them, so that flush rows of a partition stay in the order of its offsets. Where its
// object has been compacted, or is just being (its row is locked): in one that has an index and no bytes.
const INSERT_MARKERS = `
  WITH newest AS MATERIALIZED (
    SELECT o.object_id FROM log_counter c JOIN flushes f ON f.commit_number = c.last_commit - 1
      JOIN log_objects o ON o.object_id = f.object_id
    WHERE o.state = 'open' FOR SHARE OF o SKIP LOCKED),
  bare AS (
    INSERT INTO log_objects (key, kind, generation, state, bytes, created_ms, changed_ms)
    SELECT 'markers/' || last_commit, 'object', 0, 'open', 0, $1, $1 FROM log_counter
    WHERE NOT EXISTS (SELECT 1 FROM newest)
    RETURNING object_id)
  INSERT INTO flushes (commit_number, flush_id, object_id, committed_ms, packed_index)
  SELECT last_commit, '\\x0000000000000000'::bytea || float8send(last_commit::float8),
    coalesce((SELECT object_id FROM newest), (SELECT object_id FROM bare)), $1, $2 FROM log_counter
  RETURNING commit_number`;
