// Table topics on PostgreSQL. See metadata/tables.ts for the contract.
// Whatever changes a table locks its record first, so that what is read then holds until the transaction ends: the
// staging chain (T1), the epoch (T6), the letters. Then intents, in the order of their prefixes.
import { assertEpoch, lostOffsets, missingTable, rangesKey, sweptFiles } from '../table-rules.ts';
import type {
  CommittedRequest,
  Intent,
  OpenLetters,
  Replay,
  Stage,
  StagedLetters,
  StageOutcome,
  StageRequest,
  TableCounters,
  TablePosition,
  TableRecord,
  TablesMetadata,
} from '../tables.ts';
import type { Database, Sql, Transaction } from './database.ts';
import type { StageEntrance } from './stage-riders.ts';
import {
  holdIntents,
  oldIntents,
  putIntents,
  removeIntents,
  takeIntents,
} from './table-intents.ts';
import {
  addLetters,
  dropUncommittedLetters,
  knowsLetters,
  lettersIn,
  openLetters,
  removeLetters,
} from './table-letters.ts';
import {
  type PositionRow,
  type StageRow,
  type TopicRow,
  toPosition,
  toRecord,
  toStage,
} from './table-rows.ts';
import type { TopicHook } from './topics.ts';
import { raiseVersions } from './versions.ts';

interface ReplayRow {
  commit_id: string;
  parent: string;
  letters: string;
}

export class PostgresTables implements TablesMetadata, StageEntrance, TopicHook {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async list(): Promise<readonly TableRecord[]> {
    const rows = await this.#db
      .on('read')
      .rows<TopicRow>('SELECT * FROM table_topics ORDER BY topic_name, topic_id');
    return rows.map(toRecord);
  }

  async get(topicId: string): Promise<TableRecord | undefined> {
    const row = await this.#db
      .on('read')
      .row<TopicRow>('SELECT * FROM table_topics WHERE topic_id = $1', [topicId]);
    return row === undefined ? undefined : toRecord(row);
  }

  async claim(
    request: Pick<TableRecord, 'topicId' | 'topicName' | 'namespace' | 'table'>,
  ): Promise<TableRecord> {
    return this.#db.transaction('write', async (tx) => {
      const row = await tx.row<TopicRow>(
        `INSERT INTO table_topics AS t
         VALUES ($1, $2, $3, $4, '', 1, 1, false, 'starting', '', 0, 0, 0, 0, 0, 0, 0, '')
         ON CONFLICT (topic_id) DO UPDATE SET epoch = t.epoch + 1 RETURNING *`,
        [request.topicId, request.topicName, request.namespace.join('.'), request.table],
      );
      await raiseVersions(tx, 'tables');
      return toRecord(row!);
    });
  }

  async update(
    topicId: string,
    epoch: number,
    changes: Partial<
      Pick<TableRecord, 'namespace' | 'table' | 'tableUuid' | 'paused' | 'state' | 'reason'>
    >,
  ): Promise<TableRecord> {
    return this.#db.transaction('write', async (tx) => {
      const next = { ...(await fenced(tx, topicId, epoch)), ...changes };
      await tx.run(
        `UPDATE table_topics SET namespace = $2, table_name = $3, table_uuid = $4, paused = $5,
           state = $6, reason = $7 WHERE topic_id = $1`,
        [
          topicId,
          next.namespace.join('.'),
          next.table,
          next.tableUuid,
          next.paused,
          next.state,
          next.reason,
        ],
      );
      await raiseVersions(tx, 'tables');
      return next;
    });
  }

  async setPaused(topicId: string, paused: boolean): Promise<void> {
    await this.#db.transaction('write', async (tx) => {
      const found = await tx.run('UPDATE table_topics SET paused = $2 WHERE topic_id = $1', [
        topicId,
        paused,
      ]);
      if (found === 0) throw missingTable(topicId);
      await raiseVersions(tx, 'tables');
    });
  }

  positions(topicId: string): Promise<readonly TablePosition[]> {
    return readPositions(this.#db.on('read'), topicId);
  }

  async initPositions(
    topicId: string,
    positions: readonly { readonly partition: number; readonly offset: number }[],
  ): Promise<void> {
    await this.#db.transaction('write', (tx) =>
      tx.run(
        `INSERT INTO table_positions SELECT $1, i.partition, i.at, i.at
         FROM unnest($2::int4[], $3::int8[]) AS i(partition, at) ORDER BY i.partition ON CONFLICT DO NOTHING`,
        [
          topicId,
          positions.map(({ partition }) => partition),
          positions.map(({ offset }) => offset),
        ],
      ),
    );
  }

  async stage(request: StageRequest): Promise<StageOutcome> {
    return this.#db.transaction('write', async (tx) => {
      const record = await lockRecord(tx, request.topicId);
      // The same stage again, of a table that has gone since: it was in.
      if (record === undefined) {
        if (await isStaged(tx, request.stageId))
          return { kind: 'duplicate', stageId: request.stageId };
        throw missingTable(request.topicId);
      }
      return enter(tx, request, record);
    });
  }

  /** {@link stage} as part of a commit of the log. A topic without record refuses it, and nothing else. */
  async stageIn(tx: Transaction, request: StageRequest): Promise<StageOutcome> {
    const record = await lockRecord(tx, request.topicId);
    if (record === undefined) return this.refusedIn(tx, request.topicId);
    return enter(tx, request, record);
  }

  async refusedIn(tx: Transaction, topicId: string): Promise<StageOutcome> {
    return { kind: 'refused', positions: await readPositions(tx, topicId) };
  }

  async stages(topicId: string, limit: number): Promise<readonly Stage[]> {
    const rows = await this.#db
      .on('read')
      .rows<StageRow>('SELECT * FROM table_stages WHERE topic_id = $1 ORDER BY sequence LIMIT $2', [
        topicId,
        limit,
      ]);
    return rows.map(toStage);
  }

  async markAttempted(
    topicId: string,
    epoch: number,
    { sequences, parent }: { readonly sequences: readonly number[]; readonly parent: string },
  ): Promise<void> {
    await this.#db.transaction('write', async (tx) => {
      await fenced(tx, topicId, epoch);
      await tx.run(
        'UPDATE table_stages SET attempted = true, parent = $2 WHERE sequence = ANY ($1::int8[])',
        [[...sequences], parent],
      );
    });
  }

  async markCommitted(request: CommittedRequest): Promise<void> {
    const { topicId, epoch, sequences, positions, commit } = request;
    await this.#db.transaction('write', async (tx) => {
      await fenced(tx, topicId, epoch);
      await tx.run('DELETE FROM table_stages WHERE sequence = ANY ($1::int8[])', [[...sequences]]);
      // A table that is ahead of what was staged here (a lost metadata store, say) is right.
      await tx.run(
        `INSERT INTO table_positions AS p SELECT $1, i.partition, i.at, i.at
         FROM unnest($2::int4[], $3::int8[]) AS i(partition, at) ORDER BY i.partition
         ON CONFLICT (topic_id, partition_index) DO UPDATE SET committed_end = excluded.committed_end,
           staged_end = greatest(p.staged_end, excluded.committed_end)`,
        [
          topicId,
          positions.map(({ partition }) => partition),
          positions.map(({ committedEnd }) => committedEnd),
        ],
      );
      if (commit === undefined) return;
      await tx.run(
        `UPDATE table_topics SET files = files + $2, commits = commits + 1, last_commit_ms = $3,
           last_snapshot_id = $4 WHERE topic_id = $1`,
        [topicId, commit.files, commit.nowMs, commit.snapshotId],
      );
    });
  }

  async rewind(
    topicId: string,
    epoch: number,
    request: {
      readonly positions: readonly { readonly partition: number; readonly offset: number }[];
      readonly nowMs: number;
      readonly lettersCommitted?: ReadonlyMap<number, number>;
    },
  ): Promise<TableRecord> {
    return this.#db.transaction('write', async (tx) => {
      await abandonStages(tx, await fenced(tx, topicId, epoch), request.nowMs);
      await dropUncommittedLetters(tx, topicId, request.lettersCommitted ?? new Map());
      await tx.run(
        `INSERT INTO table_positions SELECT $1, i.partition, i.at, i.at
         FROM unnest($2::int4[], $3::int8[]) AS i(partition, at) ORDER BY i.partition
         ON CONFLICT (topic_id, partition_index) DO UPDATE SET committed_end = excluded.committed_end,
           staged_end = excluded.staged_end`,
        [
          topicId,
          request.positions.map(({ partition }) => partition),
          request.positions.map(({ offset }) => offset),
        ],
      );
      const row = await tx.row<TopicRow>(
        'UPDATE table_topics SET generation = generation + 1 WHERE topic_id = $1 RETURNING *',
        [topicId],
      );
      await raiseVersions(tx, 'tables');
      return toRecord(row!);
    });
  }

  openLetters(topicId: string): Promise<readonly OpenLetters[]> {
    return openLetters(this.#db.on('read'), topicId);
  }

  async letters(
    topicId: string,
    range: { readonly partition: number; readonly from: number; readonly to: number },
    limit: number,
  ): Promise<readonly number[]> {
    return (await lettersIn(this.#db.on('read'), topicId, range)).slice(0, limit);
  }

  async pruneLetters(topicId: string, partition: number, belowOffset: number): Promise<number> {
    return this.#db.transaction('background', async (tx) => {
      if ((await lockRecord(tx, topicId)) === undefined) return 0;
      const offsets = await lettersIn(tx, topicId, { partition, from: 0, to: belowOffset });
      await removeLetters(tx, topicId, { partition, offsets });
      return offsets.length;
    });
  }

  async beginReplay(topicId: string, epoch: number, replay: Replay): Promise<void> {
    await this.#db.transaction('write', async (tx) => {
      await fenced(tx, topicId, epoch);
      await tx.run(
        `INSERT INTO table_replays (commit_id, topic_id, parent, letters) VALUES ($1, $2, $3, $4)
         ON CONFLICT (commit_id) DO UPDATE SET topic_id = excluded.topic_id, parent = excluded.parent,
           letters = excluded.letters`,
        [replay.commitId, topicId, replay.parent, JSON.stringify(replay.letters)],
      );
    });
  }

  async replays(topicId: string): Promise<readonly Replay[]> {
    const rows = await this.#db
      .on('read')
      .rows<ReplayRow>('SELECT * FROM table_replays WHERE topic_id = $1 ORDER BY commit_id', [
        topicId,
      ]);
    return rows.map((row) => ({
      commitId: row.commit_id,
      parent: row.parent,
      letters: JSON.parse(row.letters) as StagedLetters[],
    }));
  }

  async endReplay(
    topicId: string,
    epoch: number,
    { commitId, landed }: { readonly commitId: string; readonly landed: boolean },
  ): Promise<void> {
    await this.#db.transaction('write', async (tx) => {
      await fenced(tx, topicId, epoch);
      const row = await tx.row<ReplayRow>(
        'DELETE FROM table_replays WHERE commit_id = $1 RETURNING *',
        [commitId],
      );
      if (row === undefined || !landed) return;
      const letters = JSON.parse(row.letters) as StagedLetters[];
      for (const one of letters) await removeLetters(tx, topicId, one);
    });
  }

  async counters(topicId: string): Promise<TableCounters> {
    const row = await this.#db.on('read').row<TableCounters>(
      `SELECT rows, dead_letters AS "deadLetters", skipped, lost_offsets AS "lostOffsets", files, commits,
         last_commit_ms AS "lastCommitMs", last_snapshot_id AS "lastSnapshotId"
       FROM table_topics WHERE topic_id = $1`,
      [topicId],
    );
    if (row === undefined) throw missingTable(topicId);
    return row;
  }

  async addIntents(intents: readonly Intent[], instead?: string): Promise<void> {
    await this.#db.transaction('write', async (tx) => {
      if (instead !== undefined) {
        if (!(await holdIntents(tx, [instead]))) throw sweptFiles(instead);
        await removeIntents(tx, [instead]);
      }
      await putIntents(tx, intents);
    });
  }

  intents(
    beforeMs: number,
    limit: number,
    after?: Pick<Intent, 'createdMs' | 'prefix'>,
  ): Promise<readonly Intent[]> {
    return oldIntents(this.#db.on('read'), { beforeMs, limit, after });
  }

  async claimIntents(
    intents: readonly Pick<Intent, 'prefix' | 'parent'>[],
  ): Promise<readonly string[]> {
    return this.#db.transaction('background', (tx) => takeIntents(tx, intents));
  }

  async dropIntents(prefixes: readonly string[]): Promise<void> {
    await this.#db.transaction('background', (tx) => removeIntents(tx, prefixes));
  }

  /** What the deletion of a topic takes along, in its transaction. The table itself stays. */
  async topicDeletedIn(tx: Transaction, { topicId }: { readonly topicId: string }): Promise<void> {
    const record = await lockRecord(tx, topicId);
    if (record === undefined) return;
    // Age 0: the sweep may take the files at its next pass.
    await abandonStages(tx, record, 0);
    await tx.run('DELETE FROM table_topics WHERE topic_id = $1', [topicId]);
    await raiseVersions(tx, 'tables');
  }
}

/** Nobody else changes the table until the transaction ends. */
async function lockRecord(tx: Transaction, topicId: string): Promise<TableRecord | undefined> {
  const row = await tx.row<TopicRow>(
    'SELECT * FROM table_topics WHERE topic_id = $1 FOR NO KEY UPDATE',
    [topicId],
  );
  return row === undefined ? undefined : toRecord(row);
}

/** {@link lockRecord} of who holds the newest epoch. @throws FloeError `not-found`, `conflict` (T6). */
export async function fenced(
  tx: Transaction,
  topicId: string,
  epoch: number,
): Promise<TableRecord> {
  const record = await lockRecord(tx, topicId);
  if (record === undefined) throw missingTable(topicId);
  assertEpoch(record, epoch);
  return record;
}

async function readPositions(sql: Sql, topicId: string): Promise<readonly TablePosition[]> {
  const rows = await sql.rows<PositionRow>(
    'SELECT * FROM table_positions WHERE topic_id = $1 ORDER BY partition_index',
    [topicId],
  );
  return rows.map(toPosition);
}

async function isStaged(tx: Transaction, stageId: string): Promise<boolean> {
  const row = await tx.row('SELECT 1 AS there FROM table_stages WHERE stage_id = $1', [stageId]);
  return row !== undefined;
}

/** Under the lock of the record. */
async function enter(
  tx: Transaction,
  request: StageRequest,
  record: TableRecord,
): Promise<StageOutcome> {
  if (await isStaged(tx, request.stageId)) return { kind: 'duplicate', stageId: request.stageId };
  const positions = await readPositions(tx, request.topicId);
  const ends = new Map(positions.map(({ partition, stagedEnd }) => [partition, stagedEnd]));
  const current = record.epoch === request.epoch && record.generation === request.generation;
  const chains = request.ranges.every(
    ({ partition, start, end }) => ends.get(partition) === start && end > start,
  );
  const enters =
    current &&
    chains &&
    !(await knowsLetters(tx, request)) &&
    (await holdIntents(tx, request.filePrefixes));
  if (enters) return { kind: 'staged', sequence: await insertStage(tx, request) };
  const twin = current ? await twinOf(tx, request) : undefined;
  return twin === undefined ? { kind: 'refused', positions } : { kind: 'duplicate', stageId: twin };
}

/** A stage of exactly the same ranges. */
async function twinOf(tx: Transaction, request: StageRequest): Promise<string | undefined> {
  const row = await tx.row<{ stage_id: string }>(
    'SELECT stage_id FROM table_stages WHERE topic_id = $1 AND ranges_key = $2 LIMIT 1',
    [request.topicId, rangesKey(request.ranges)],
  );
  return row?.stage_id;
}

/** All statements are sent at once. */
async function insertStage(tx: Transaction, request: StageRequest): Promise<number> {
  const { payload, epoch: _epoch, letters, ...head } = request;
  const { topicId, ranges } = request;
  const [row] = await Promise.all([
    tx.row<{ sequence: number }>(
      `INSERT INTO table_stages (stage_id, topic_id, attempted, ranges_key, bytes, head, payload)
       VALUES ($1, $2, false, $3, $4, $5, $6) RETURNING sequence`,
      [request.stageId, topicId, rangesKey(ranges), request.bytes, JSON.stringify(head), payload],
    ),
    tx.run(
      `UPDATE table_positions p SET staged_end = i.at
       FROM unnest($2::int4[], $3::int8[]) AS i(partition, at)
       WHERE p.topic_id = $1 AND p.partition_index = i.partition`,
      [topicId, ranges.map(({ partition }) => partition), ranges.map(({ end }) => end)],
    ),
    tx.run(
      `UPDATE table_topics SET rows = rows + $2, dead_letters = dead_letters + $3,
         skipped = skipped + $4, lost_offsets = lost_offsets + $5 WHERE topic_id = $1`,
      [topicId, request.rows, request.deadLetters, request.skipped, lostOffsets(ranges)],
    ),
    removeIntents(tx, request.filePrefixes),
    letters === undefined ? undefined : addLetters(tx, topicId, letters),
  ]);
  return row!.sequence;
}

/** Drops a topic's stages; their files are swept by intent. */
async function abandonStages(
  tx: Transaction,
  { topicId, namespace, table }: TableRecord,
  createdMs: number,
): Promise<void> {
  const rows = await tx.rows<StageRow>(
    'DELETE FROM table_stages WHERE topic_id = $1 RETURNING sequence, attempted, parent, head, payload',
    [topicId],
  );
  const intents = rows
    .toSorted((a, b) => a.sequence - b.sequence)
    .flatMap((row) =>
      toStage(row).filePrefixes.map((prefix) => ({
        prefix,
        topicId,
        createdMs,
        namespace,
        table,
        parent: row.parent,
      })),
    );
  await putIntents(tx, intents);
}
