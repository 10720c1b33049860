// The log on PostgreSQL: what is read of it, sealed objects, log starts. See metadata/log.ts for the contract.
// Nothing is kept in memory here, any number of brokers work on the rows. Not for: the commit itself (log-commit.ts),
// objects as things that are replaced and deleted (objects.ts).
import { FloeError } from '../../base/error.ts';
import type {
  AbortedTransaction,
  CommittedFlush,
  FlushCommit,
  FlushRow,
  FollowedCommit,
  Following,
  LogMetadata,
  LogSnapshot,
  MoveLogStart,
  NewObjectEntry,
  ObjectEntry,
  PartitionLog,
  PartitionTransactions,
  SealObject,
} from '../log.ts';
import { allocateIndex } from '../packed-index.ts';
import { type Versions, versionDomains } from '../versions.ts';
import type { Database, Sql, Transaction } from './database.ts';
import { dropFlushRanges, ensureFlushRanges } from './flush-ranges.ts';
import { factsColumns, type StoreFacts } from './lineage.ts';
import { LogCommits, type LogCommitsOptions } from './log-commit.ts';
import {
  ENTRY_COLUMNS,
  type EntryRecord,
  FLUSH_COLUMNS,
  type FlushRecord,
  openRanges,
  ownBytes,
  PARTITION_COLUMNS,
  type PartitionRecord,
  STORE_MS,
  sqlNumbers,
  toFlushRow,
  toObjectEntry,
  toPartitionLog,
  unpackBegun,
} from './log-rows.ts';
import { insertEntries, lockPartitions } from './object-entries.ts';
import { dropAbortedBelow, forgetAborted, lastAborted, readAborted } from './transaction-ranges.ts';
import { raiseTraced, readVersions } from './versions.ts';

export class PostgresLog implements LogMetadata {
  readonly #db: Database;
  readonly #commits: LogCommits;

  constructor(db: Database, options: LogCommitsOptions) {
    this.#db = db;
    this.#commits = new LogCommits(db, options);
  }

  async commit(flushes: readonly FlushCommit[]): Promise<readonly CommittedFlush[]> {
    const committed = await this.#commits.commit(flushes);
    for (const { commitNumber, committedMs } of committed)
      this.#db.lineage.noted(commitNumber, committedMs);
    return committed;
  }

  /** Makes tables for coming flushes and drops those of past ones; for the log's maintenance, every few minutes. */
  async upkeep(horizonMs: number): Promise<void> {
    await ensureFlushRanges(this.#db);
    await dropFlushRanges(this.#db, horizonMs);
  }

  async partitions(partitionIds?: readonly number[]): Promise<readonly PartitionLog[]> {
    return readPartitions(this.#db.on('read'), partitionIds);
  }

  async written(partitionId: number, limit: number): Promise<readonly PartitionLog[]> {
    const rows = await this.#db
      .on('background')
      .rows<PartitionRecord>(WRITTEN_PARTITIONS, [partitionId, limit]);
    return rows.map(toPartitionLog);
  }

  async lastCommitNumber(): Promise<number> {
    return lastCommit(this.#db.on('follow'));
  }

  async storeMs(): Promise<number> {
    return (await this.#db.on('read').row<{ ms: number }>(`SELECT ${STORE_MS} AS ms`))!.ms;
  }

  async snapshot(): Promise<LogSnapshot> {
    return this.#db.snapshot('background', async (tx) => {
      const [facts, versions, rows, aborted] = await Promise.all([
        tx.row<Omit<StoreFacts, 'known_ms'>>(BEGINNING),
        readVersions(tx),
        tx.rows<PartitionRecord>(ALL_PARTITIONS),
        lastAborted(tx),
      ]);
      this.#db.lineage.begin(facts!);
      const transactions = transactionsOf(rows, aborted);
      return {
        lastCommit: facts!.last_commit,
        versions,
        partitions: rows.map(toPartitionLog),
        transactions,
      };
    });
  }

  async follow(afterCommit: number, limit: number): Promise<Following> {
    const { lineage } = this.#db;
    const { known } = lineage;
    const sql = this.#db.on('follow');
    const rows = await sql.rows<FollowedRecord>(FOLLOW, [
      afterCommit,
      Math.max(limit, 1),
      known.commitNumber,
    ]);
    const [first] = rows;
    await lineage.judge(known, first!, (text, values) => sql.rows(text, values));
    const found = rows.filter(isCommit);
    const complete = found.every((row, n) => row.commit_number === afterCommit + 1 + n);
    const expected = first!.last_commit > afterCommit;
    if (!complete || first!.last_commit < afterCommit || (expected && found.length === 0))
      throw new FloeError(
        'not-found',
        `what follows commit ${afterCommit} isn't kept, the newest is ${first!.last_commit}: start over`,
      );
    const newest = found.at(-1);
    if (newest !== undefined) lineage.noted(newest.commit_number, newest.committed_ms);
    return {
      rows: found.map(toFollowed),
      versions: versionsOf(first!.versions),
      lastCommit: first!.last_commit,
    };
  }

  async transactions(): Promise<readonly PartitionTransactions[]> {
    return this.#db.snapshot('read', async (tx) => {
      const [rows, aborted] = await Promise.all([
        tx.rows<PartitionRecord>(
          `SELECT ${PARTITION_COLUMNS} FROM log_partitions WHERE open_transactions IS NOT NULL ORDER BY partition_id`,
        ),
        lastAborted(tx),
      ]);
      return transactionsOf(rows, aborted);
    });
  }

  abortedTransactions(
    partitionId: number,
    offset: number,
    endOffset: number,
  ): Promise<readonly AbortedTransaction[]> {
    return readAborted(this.#db.on('read'), partitionId, { offset, endOffset });
  }

  async forgetAborted(partitionId: number, markerOffsets: readonly number[]): Promise<void> {
    await forgetAborted(this.#db.on('background'), partitionId, markerOffsets);
  }

  async flushesAfter(commitNumber: number, limit: number): Promise<readonly FlushRow[]> {
    const rows = await this.#db.on('background').rows<FlushRecord>(
      `SELECT ${FLUSH_COLUMNS} FROM flushes f JOIN log_objects o USING (object_id)
       WHERE f.commit_number > $1 AND o.state = 'open' ORDER BY f.commit_number LIMIT $2`,
      [commitNumber, limit],
    );
    return rows.map(toFlushRow);
  }

  async entriesFrom(
    partitionId: number,
    offset: number,
    limit: number,
  ): Promise<readonly ObjectEntry[]> {
    // Entries of a partition don't overlap, so at most one that starts at or below `offset` reaches above it.
    const rows = await this.#db.on('read').rows<EntryRecord>(
      `SELECT ${ENTRY_COLUMNS} FROM object_entries e JOIN log_objects o USING (object_id)
       WHERE e.partition_id = $1 AND e.end_offset > $2 AND e.base_offset >= coalesce(
         (SELECT max(base_offset) FROM object_entries WHERE partition_id = $1 AND base_offset <= $2), 0)
       ORDER BY e.base_offset LIMIT $3`,
      [partitionId, offset, limit],
    );
    return rows.map(toObjectEntry);
  }

  async seal({ objectId, bytes, entries }: SealObject): Promise<void> {
    await this.#db.transaction('write', async (tx) => {
      const starts = await lockPartitions(
        tx,
        entries.map(({ partitionId }) => partitionId),
      );
      const row = await tx.row<{ state: string }>(
        'SELECT state FROM log_objects WHERE object_id = $1 FOR NO KEY UPDATE',
        [objectId],
      );
      if (row === undefined) throw new FloeError('not-found', `there is no log object ${objectId}`);
      if (row.state !== 'open') return;
      await checkSealable(tx, objectId, entries);
      await insertEntries(
        tx,
        objectId,
        entries.filter(({ partitionId }) => starts.has(partitionId)),
      );
      await tx.run(
        `UPDATE log_objects SET state = 'sealed', bytes = $2, changed_ms = ${STORE_MS} WHERE object_id = $1`,
        [objectId, bytes],
      );
    });
  }

  async moveLogStarts(moves: readonly MoveLogStart[]): Promise<readonly PartitionLog[]> {
    if (moves.length === 0) return [];
    return this.#db.transaction('write', async (tx) => moveLogStarts(tx, moves));
  }

  async deleteRecords(partitionId: number, offset: number): Promise<PartitionLog> {
    return this.#db.transaction('write', async (tx) => {
      const before = (await lockPartitions(tx, [partitionId])).get(partitionId);
      if (before === undefined)
        throw new FloeError('not-found', `there is no partition ${partitionId}`);
      const { highWatermark } = before;
      const target = offset === -1 ? highWatermark : offset;
      if (target < 0 || target > highWatermark)
        throw new FloeError(
          'invalid',
          `offset ${offset} lies outside the log, which ends at ${highWatermark}`,
        );
      const moved = await moveLogStarts(tx, [
        { partitionId, logStartOffset: target, freedBytes: 0 },
      ]);
      return moved[0]!;
    });
  }
}

/** Markers may have joined the object since its entries were made: under its row's lock that is over. */
async function checkSealable(
  tx: Transaction,
  objectId: number,
  entries: readonly NewObjectEntry[],
): Promise<void> {
  const sealed = entries.reduce((newest, { commitNumber }) => Math.max(newest, commitNumber), 0);
  const row = await tx.row<{ newest: number | null }>(
    `SELECT max(commit_number) AS newest FROM flushes
     WHERE object_id = $1 AND octet_length(packed_index) > ${allocateIndex(0).bytes.length}`,
    [objectId],
  );
  if ((row!.newest ?? 0) > sealed)
    throw new FloeError('conflict', `object ${objectId} was added to while it was sealed`);
}

const ALL_PARTITIONS = `SELECT ${PARTITION_COLUMNS} FROM log_partitions ORDER BY partition_id`;

const WRITTEN_PARTITIONS = `
  SELECT ${PARTITION_COLUMNS} FROM log_partitions
  WHERE partition_id > $1 AND log_start < high_watermark ORDER BY partition_id LIMIT $2`;

async function readPartitions(
  sql: Sql,
  partitionIds: readonly number[] | undefined,
): Promise<readonly PartitionLog[]> {
  if (partitionIds === undefined)
    return (await sql.rows<PartitionRecord>(ALL_PARTITIONS)).map(toPartitionLog);
  if (partitionIds.length === 0) return [];
  const rows = await sql.rows<PartitionRecord>(
    `SELECT ${PARTITION_COLUMNS} FROM log_partitions WHERE partition_id = ANY ($1::int8[])`,
    [sqlNumbers(partitionIds)],
  );
  const found = new Map(rows.map((row) => [row.partition_id, toPartitionLog(row)]));
  return partitionIds.flatMap((partitionId) => found.get(partitionId) ?? []);
}

async function lastCommit(sql: Sql): Promise<number> {
  const row = await sql.row<{ last_commit: number }>('SELECT last_commit FROM log_counter');
  return row!.last_commit;
}

/** Sizes too; the version rises when a start moves or bytes go. */
export async function moveLogStarts(
  tx: Transaction,
  moves: readonly MoveLogStart[],
): Promise<readonly PartitionLog[]> {
  const ids = moves.map(({ partitionId }) => partitionId);
  const before = await lockPartitions(tx, ids);
  const rows = await tx.rows<PartitionRecord>(MOVE_LOG_STARTS, [
    sqlNumbers(ids),
    sqlNumbers(moves.map(({ logStartOffset }) => logStartOffset)),
    sqlNumbers(moves.map(({ freedBytes }) => freedBytes)),
  ]);
  const moved = rows.filter((row) => row.log_start > before.get(row.partition_id)!.logStartOffset);
  if (moved.length > 0) {
    const starts = moved.map((row) => ({
      partitionId: row.partition_id,
      logStart: row.log_start,
    }));
    await dropAbortedBelow(tx, starts);
  }
  const resized = moves.filter(({ freedBytes }) => freedBytes !== 0);
  const changed = new Set([
    ...moved.map((row) => row.partition_id),
    ...resized.map(({ partitionId }) => partitionId).filter((id) => before.has(id)),
  ]);
  if (changed.size > 0) await raiseTraced(tx, 'log-starts', [...changed]);
  return rows.map(toPartitionLog);
}

// A partition may be named more than once: all of its bytes go, the highest start holds.
const MOVE_LOG_STARTS = `
  UPDATE log_partitions p SET size_bytes = p.size_bytes - c.freed,
    log_start = greatest(p.log_start, least(c.log_start, p.high_watermark))
  FROM (SELECT partition_id, max(log_start) AS log_start, sum(freed)::int8 AS freed
    FROM unnest($1::int8[], $2::int8[], $3::int8[]) AS m (partition_id, log_start, freed) GROUP BY partition_id) AS c
  WHERE p.partition_id = c.partition_id
  RETURNING p.partition_id, p.log_start, p.high_watermark, p.max_timestamp, p.size_bytes, p.open_transactions`;

function transactionsOf(
  rows: readonly PartitionRecord[],
  aborted: ReadonlyMap<number, number>,
): readonly PartitionTransactions[] {
  const found = new Map<number, PartitionTransactions>();
  for (const [partitionId, lastAbortedOffset] of aborted)
    found.set(partitionId, { partitionId, open: new Map(), lastAbortedOffset });
  for (const { partition_id: partitionId, open_transactions } of rows) {
    const open = openRanges(open_transactions);
    if (open === undefined) continue;
    found.set(partitionId, {
      partitionId,
      open,
      lastAbortedOffset: aborted.get(partitionId) ?? -1,
    });
  }
  return [...found.values()];
}

interface FollowedCommitRecord extends FlushRecord {
  readonly begun: Uint8Array | null;
}

/** With nothing to follow there is one row of nulls beside the counter and the versions. */
interface FollowedRecord extends Omit<FollowedCommitRecord, 'commit_number'>, StoreFacts {
  readonly versions: string;
  readonly commit_number: number | null;
}

const BEGINNING =
  'SELECT last_commit, contradiction, (SELECT restores FROM cluster) AS restores FROM log_counter';

// One statement, one snapshot: what it shows of commits and of versions is of one moment.
const FOLLOW = `
  SELECT ${factsColumns('$3')}, v.versions, ${FLUSH_COLUMNS}, f.begun
  FROM log_counter c
    CROSS JOIN (SELECT json_object_agg(domain, version)::text AS versions FROM versions) v
    LEFT JOIN (
      SELECT * FROM flushes WHERE commit_number > $1 ORDER BY commit_number LIMIT $2
    ) f ON true
    LEFT JOIN log_objects o ON o.object_id = f.object_id
  ORDER BY f.commit_number`;

function isCommit(row: FollowedRecord): row is FollowedRecord & FollowedCommitRecord {
  return row.commit_number !== null;
}

function toFollowed(row: FollowedCommitRecord): FollowedCommit {
  return {
    ...toFlushRow(row),
    begun: row.begun === null ? [] : unpackBegun(ownBytes(row.begun)),
  };
}

function versionsOf(text: string): Versions {
  const found = JSON.parse(text) as Partial<Versions>;
  return Object.fromEntries(
    versionDomains.map((domain) => [domain, found[domain] ?? 0]),
  ) as unknown as Versions;
}
