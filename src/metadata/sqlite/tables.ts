// Table topics on SQLite. See metadata/tables.ts for the contract.
import { decodeRuns, encodeRuns } from '../offset-runs.ts';
import {
  assertEpoch,
  FIRST_INTENT,
  lostOffsets,
  missingTable,
  rangesKey,
  sweptFiles,
} from '../table-rules.ts';
import type {
  CommittedRequest,
  Intent,
  LetterPlace,
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
import type { Database, Migration } from './database.ts';
import type { PartitionHooks } from './topics.ts';
import { uncounted, type VersionCounter } from './versions.ts';

export const tablesMigrations: readonly Migration[] = [
  {
    name: 'tables-1',
    sql: `
      CREATE TABLE table_topics (
        topic_id TEXT PRIMARY KEY, topic_name TEXT NOT NULL, namespace TEXT NOT NULL,
        table_name TEXT NOT NULL, table_uuid TEXT NOT NULL, generation INTEGER NOT NULL,
        epoch INTEGER NOT NULL, paused INTEGER NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL,
        rows INTEGER NOT NULL, dead_letters INTEGER NOT NULL, skipped INTEGER NOT NULL,
        lost_offsets INTEGER NOT NULL, files INTEGER NOT NULL, commits INTEGER NOT NULL,
        last_commit_ms INTEGER NOT NULL, last_snapshot_id TEXT NOT NULL) STRICT, WITHOUT ROWID;
      CREATE TABLE table_positions (
        topic_id TEXT NOT NULL REFERENCES table_topics ON DELETE CASCADE,
        partition_index INTEGER NOT NULL, staged_end INTEGER NOT NULL, committed_end INTEGER NOT NULL,
        PRIMARY KEY (topic_id, partition_index)) STRICT, WITHOUT ROWID;
      CREATE TABLE table_stages (
        sequence INTEGER PRIMARY KEY AUTOINCREMENT, stage_id TEXT NOT NULL UNIQUE,
        topic_id TEXT NOT NULL REFERENCES table_topics ON DELETE CASCADE,
        attempted INTEGER NOT NULL, head TEXT NOT NULL, payload TEXT NOT NULL) STRICT;
      CREATE INDEX table_stages_by_topic ON table_stages (topic_id, sequence);
      CREATE TABLE table_intents (
        prefix TEXT PRIMARY KEY, topic_id TEXT NOT NULL, created_ms INTEGER NOT NULL,
        sweeping INTEGER NOT NULL DEFAULT 0)
        STRICT, WITHOUT ROWID;
      CREATE INDEX table_intents_by_age ON table_intents (created_ms);`,
  },
  {
    name: 'tables-2',
    sql: `
      ALTER TABLE table_intents ADD COLUMN namespace TEXT NOT NULL DEFAULT '';
      ALTER TABLE table_intents ADD COLUMN table_name TEXT NOT NULL DEFAULT '';
      ALTER TABLE table_intents ADD COLUMN parent TEXT;
      ALTER TABLE table_stages ADD COLUMN parent TEXT;
      UPDATE table_intents SET parent = 'unknown' WHERE prefix LIKE '%.avro';
      UPDATE table_stages SET parent = 'unknown' WHERE attempted = 1;
      UPDATE table_intents SET namespace = t.namespace, table_name = t.table_name
        FROM table_topics t WHERE t.topic_id = table_intents.topic_id;`,
  },
  {
    name: 'tables-letters',
    sql: `
      -- Offsets whose records became dead letters, as runs (offset-runs.ts) from first_offset on.
      CREATE TABLE table_letters (
        topic_id TEXT NOT NULL REFERENCES table_topics ON DELETE CASCADE,
        partition_index INTEGER NOT NULL, first_offset INTEGER NOT NULL, last_offset INTEGER NOT NULL,
        place TEXT NOT NULL, count INTEGER NOT NULL, runs BLOB NOT NULL,
        PRIMARY KEY (topic_id, partition_index, first_offset)) STRICT, WITHOUT ROWID;`,
  },
  {
    name: 'tables-replays',
    sql: `
      CREATE TABLE table_replays (
        commit_id TEXT PRIMARY KEY, topic_id TEXT NOT NULL REFERENCES table_topics ON DELETE CASCADE,
        parent TEXT NOT NULL, letters TEXT NOT NULL) STRICT, WITHOUT ROWID;`,
  },
];

/** Dead letters of one row: what is decoded to look at one of them. */
const LETTERS_PER_ROW = 4_096;

/** Everything of a stage but its payload and what the row itself says. */
type StageHead = Omit<Stage, 'sequence' | 'attempted' | 'payload'>;

interface StageRow {
  sequence: number;
  attempted: number;
  parent: string | null;
  head: string;
  payload: string;
}

interface TopicRow {
  topic_id: string;
  topic_name: string;
  namespace: string;
  table_name: string;
  table_uuid: string;
  generation: number;
  epoch: number;
  paused: number;
  state: string;
  reason: string;
}

interface LetterRow {
  place: LetterPlace;
  partition_index: number;
  first_offset: number;
  last_offset: number;
  runs: Uint8Array;
}

interface PositionRow {
  partition_index: number;
  staged_end: number;
  committed_end: number;
}

export class SqliteTables implements TablesMetadata {
  readonly #db: Database;
  readonly #versions: VersionCounter;

  constructor(db: Database, versions: VersionCounter = uncounted) {
    this.#db = db;
    this.#versions = versions;
  }

  async list(): Promise<readonly TableRecord[]> {
    const rows = this.#db.prepare('SELECT * FROM table_topics ORDER BY topic_name, topic_id').all();
    return (rows as unknown as TopicRow[]).map(toRecord);
  }

  async get(topicId: string): Promise<TableRecord | undefined> {
    return this.#find(topicId);
  }

  async claim(
    request: Pick<TableRecord, 'topicId' | 'topicName' | 'namespace' | 'table'>,
  ): Promise<TableRecord> {
    return this.#db.transaction(() => {
      this.#db
        .prepare(
          `INSERT INTO table_topics VALUES (?, ?, ?, ?, '', 1, 1, 0, 'starting', '', 0, 0, 0, 0, 0, 0, 0, '')
           ON CONFLICT DO UPDATE SET epoch = epoch + 1`,
        )
        .run(request.topicId, request.topicName, request.namespace.join('.'), request.table);
      this.#versions.raise('tables');
      return this.#require(request.topicId);
    });
  }

  async update(
    topicId: string,
    epoch: number,
    changes: Partial<
      Pick<TableRecord, 'namespace' | 'table' | 'tableUuid' | 'paused' | 'state' | 'reason'>
    >,
  ): Promise<TableRecord> {
    return this.#db.transaction(() => {
      const next = { ...this.fenced(topicId, epoch), ...changes };
      this.#db
        .prepare(
          `UPDATE table_topics SET namespace = ?, table_name = ?, table_uuid = ?, paused = ?,
           state = ?, reason = ? WHERE topic_id = ?`,
        )
        .run(
          next.namespace.join('.'),
          next.table,
          next.tableUuid,
          next.paused ? 1 : 0,
          next.state,
          next.reason,
          topicId,
        );
      this.#versions.raise('tables');
      return next;
    });
  }

  async setPaused(topicId: string, paused: boolean): Promise<void> {
    this.#db.transaction(() => {
      this.#require(topicId);
      this.#db
        .prepare('UPDATE table_topics SET paused = ? WHERE topic_id = ?')
        .run(paused ? 1 : 0, topicId);
      this.#versions.raise('tables');
    });
  }

  async positions(topicId: string): Promise<readonly TablePosition[]> {
    return this.#positions(topicId);
  }

  async initPositions(
    topicId: string,
    positions: readonly { readonly partition: number; readonly offset: number }[],
  ): Promise<void> {
    this.#db.transaction(() => {
      const insert = this.#db.prepare(
        'INSERT INTO table_positions VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING',
      );
      for (const { partition, offset } of positions) insert.run(topicId, partition, offset, offset);
    });
  }

  // Lazily: undone by a power failure, the range is read again and its intents are back. A commit that holds it waits
  // for the disk before it is sent (markAttempted).
  async stage(request: StageRequest): Promise<StageOutcome> {
    return this.#db.lazyTransaction(() => this.#stage(request));
  }

  /** {@link stage} as part of a commit of the log. A topic without record refuses it, and nothing else. */
  stageNow(request: StageRequest): StageOutcome {
    if (this.#find(request.topicId) === undefined) return this.refusedNow(request.topicId);
    return this.#db.transaction(() => this.#stage(request));
  }

  refusedNow(topicId: string): StageOutcome {
    return { kind: 'refused', positions: this.#positions(topicId) };
  }

  #stage(request: StageRequest): StageOutcome {
    const same = this.#db
      .prepare('SELECT 1 FROM table_stages WHERE stage_id = ?')
      .get(request.stageId);
    if (same !== undefined) return { kind: 'duplicate', stageId: request.stageId };
    const record = this.#require(request.topicId);
    const positions = this.#positions(request.topicId);
    const current = record.epoch === request.epoch && record.generation === request.generation;
    const chains = request.ranges.every(({ partition, start, end }) => {
      const position = positions.find((other) => other.partition === partition);
      return position !== undefined && position.stagedEnd === start && end > start;
    });
    const known = this.#knowsLetters(request);
    if (!current || !chains || known || !this.#hasIntents(request.filePrefixes)) {
      const twin = current ? this.#twin(request) : undefined;
      if (twin !== undefined) return { kind: 'duplicate', stageId: twin };
      return { kind: 'refused', positions };
    }
    return { kind: 'staged', sequence: this.#insertStage(request) };
  }

  /** A stage of exactly the same ranges. */
  #twin(request: StageRequest): string | undefined {
    const wanted = rangesKey(request.ranges);
    const rows = this.#db
      .prepare('SELECT head FROM table_stages WHERE topic_id = ?')
      .all(request.topicId);
    for (const row of rows) {
      const head = JSON.parse(row['head'] as string) as StageHead;
      if (rangesKey(head.ranges) === wanted) return head.stageId;
    }
    return undefined;
  }

  #insertStage(request: StageRequest): number {
    const { payload, epoch: _epoch, letters, ...head } = request;
    const { lastInsertRowid } = this.#db
      .prepare(
        'INSERT INTO table_stages (stage_id, topic_id, attempted, head, payload) VALUES (?, ?, 0, ?, ?)',
      )
      .run(request.stageId, request.topicId, JSON.stringify(head), payload);
    this.#dropIntents(request.filePrefixes);
    if (letters !== undefined) this.#addLetters(request.topicId, letters);
    const advance = this.#db.prepare(
      'UPDATE table_positions SET staged_end = ? WHERE topic_id = ? AND partition_index = ?',
    );
    for (const { partition, end } of request.ranges) advance.run(end, request.topicId, partition);
    this.#db
      .prepare(
        `UPDATE table_topics SET rows = rows + ?, dead_letters = dead_letters + ?,
         skipped = skipped + ?, lost_offsets = lost_offsets + ? WHERE topic_id = ?`,
      )
      .run(
        request.rows,
        request.deadLetters,
        request.skipped,
        lostOffsets(request.ranges),
        request.topicId,
      );
    return Number(lastInsertRowid);
  }

  async stages(topicId: string, limit: number): Promise<readonly Stage[]> {
    const rows = this.#db
      .prepare('SELECT * FROM table_stages WHERE topic_id = ? ORDER BY sequence LIMIT ?')
      .all(topicId, limit);
    return (rows as unknown as StageRow[]).map(toStage);
  }

  async markAttempted(
    topicId: string,
    epoch: number,
    { sequences, parent }: { readonly sequences: readonly number[]; readonly parent: string },
  ): Promise<void> {
    this.#db.transaction(() => {
      this.fenced(topicId, epoch);
      const mark = this.#db.prepare(
        'UPDATE table_stages SET attempted = 1, parent = ? WHERE sequence = ?',
      );
      for (const sequence of sequences) mark.run(parent, sequence);
    });
  }

  // Lazily: the table itself says what it holds (T4).
  async markCommitted(request: CommittedRequest): Promise<void> {
    this.#db.lazyTransaction(() => {
      this.fenced(request.topicId, request.epoch);
      const remove = this.#db.prepare('DELETE FROM table_stages WHERE sequence = ?');
      for (const sequence of request.sequences) remove.run(sequence);
      // A table that is ahead of what was staged here (a lost metadata store, say) is right.
      const advance = this.#db.prepare(
        `INSERT INTO table_positions VALUES (?1, ?2, ?3, ?3) ON CONFLICT DO UPDATE
         SET committed_end = ?3, staged_end = max(staged_end, ?3)`,
      );
      for (const { partition, committedEnd } of request.positions) {
        advance.run(request.topicId, partition, committedEnd);
      }
      if (request.commit === undefined) return;
      this.#db
        .prepare(
          `UPDATE table_topics SET files = files + ?, commits = commits + 1, last_commit_ms = ?,
           last_snapshot_id = ? WHERE topic_id = ?`,
        )
        .run(
          request.commit.files,
          request.commit.nowMs,
          request.commit.snapshotId,
          request.topicId,
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
    return this.#db.transaction(() => {
      this.#abandonStages(this.fenced(topicId, epoch), request.nowMs);
      this.#dropUncommittedLetters(topicId, request.lettersCommitted ?? new Map());
      const put = this.#db.prepare(
        `INSERT INTO table_positions VALUES (?1, ?2, ?3, ?3) ON CONFLICT DO UPDATE
         SET staged_end = ?3, committed_end = ?3`,
      );
      for (const { partition, offset } of request.positions) put.run(topicId, partition, offset);
      this.#db
        .prepare('UPDATE table_topics SET generation = generation + 1 WHERE topic_id = ?')
        .run(topicId);
      this.#versions.raise('tables');
      return this.#require(topicId);
    });
  }

  async openLetters(topicId: string): Promise<readonly OpenLetters[]> {
    const rows = this.#db
      .prepare(`SELECT partition_index, sum(count) AS count, max(last_offset) AS last FROM table_letters
        WHERE topic_id = ? GROUP BY partition_index ORDER BY partition_index`)
      .all(topicId);
    return rows.map((row) => ({
      partition: row['partition_index'] as number,
      count: row['count'] as number,
      end: (row['last'] as number) + 1,
    }));
  }

  async letters(
    topicId: string,
    range: { readonly partition: number; readonly from: number; readonly to: number },
    limit: number,
  ): Promise<readonly number[]> {
    const found = this.#letterRows(topicId, range)
      .flatMap((row) => decodeRuns(row.runs, row.first_offset))
      .filter((offset) => offset >= range.from && offset < range.to);
    // Rows of a range that was staged again lie across those of before.
    return found.sort((a, b) => a - b).slice(0, limit);
  }

  async pruneLetters(topicId: string, partition: number, belowOffset: number): Promise<number> {
    return this.#db.transaction(() => {
      const range = { partition, from: 0, to: belowOffset };
      const gone = this.#letterRows(topicId, range)
        .flatMap((row) => decodeRuns(row.runs, row.first_offset))
        .filter((offset) => offset < belowOffset);
      this.#removeLetters(topicId, { partition, offsets: gone });
      return gone.length;
    });
  }

  async beginReplay(topicId: string, epoch: number, replay: Replay): Promise<void> {
    this.#db.transaction(() => {
      this.fenced(topicId, epoch);
      this.#db
        .prepare('INSERT OR REPLACE INTO table_replays VALUES (?, ?, ?, ?)')
        .run(replay.commitId, topicId, replay.parent, JSON.stringify(replay.letters));
    });
  }

  async replays(topicId: string): Promise<readonly Replay[]> {
    const rows = this.#db
      .prepare('SELECT * FROM table_replays WHERE topic_id = ? ORDER BY commit_id')
      .all(topicId);
    return rows.map((row) => ({
      commitId: row['commit_id'] as string,
      parent: row['parent'] as string,
      letters: JSON.parse(row['letters'] as string) as StagedLetters[],
    }));
  }

  async endReplay(
    topicId: string,
    epoch: number,
    { commitId, landed }: { readonly commitId: string; readonly landed: boolean },
  ): Promise<void> {
    this.#db.transaction(() => {
      this.fenced(topicId, epoch);
      const row = this.#db
        .prepare('SELECT letters FROM table_replays WHERE commit_id = ?')
        .get(commitId);
      if (row === undefined) return;
      this.#db.prepare('DELETE FROM table_replays WHERE commit_id = ?').run(commitId);
      if (!landed) return;
      const letters = JSON.parse(row['letters'] as string) as StagedLetters[];
      for (const one of letters) this.#removeLetters(topicId, one);
    });
  }

  #removeLetters(topicId: string, { partition, offsets }: StagedLetters): void {
    if (offsets.length === 0) return;
    const gone = new Set(offsets);
    const range = { partition, from: offsets[0]!, to: offsets.at(-1)! + 1 };
    for (const row of this.#letterRows(topicId, range)) {
      const kept = decodeRuns(row.runs, row.first_offset).filter((offset) => !gone.has(offset));
      this.#db
        .prepare(
          'DELETE FROM table_letters WHERE topic_id = ? AND partition_index = ? AND first_offset = ?',
        )
        .run(topicId, partition, row.first_offset);
      if (kept.length > 0) this.#putLetters(topicId, row.place, partition, kept);
    }
  }

  #letterRows(
    topicId: string,
    range: { readonly partition: number; readonly from: number; readonly to: number },
  ): LetterRow[] {
    return this.#db
      .prepare(`SELECT * FROM table_letters WHERE topic_id = ? AND partition_index = ?
        AND last_offset >= ? AND first_offset < ? ORDER BY first_offset`)
      .all(topicId, range.partition, range.from, range.to) as unknown as LetterRow[];
  }

  /** True when a dead letter of the request is known already: its reader looked before that was so. */
  #knowsLetters({ topicId, letters }: StageRequest): boolean {
    return (letters?.of ?? []).some(({ partition, offsets }) => {
      if (offsets.length === 0) return false;
      const range = { partition, from: offsets[0]!, to: offsets.at(-1)! + 1 };
      const rows = this.#letterRows(topicId, range);
      if (rows.length === 0) return false;
      const known = new Set(rows.flatMap((row) => decodeRuns(row.runs, row.first_offset)));
      return offsets.some((offset) => known.has(offset));
    });
  }

  #addLetters(topicId: string, { place, of }: NonNullable<StageRequest['letters']>): void {
    for (const { partition, offsets } of of) {
      for (let at = 0; at < offsets.length; at += LETTERS_PER_ROW) {
        this.#putLetters(topicId, place, partition, offsets.slice(at, at + LETTERS_PER_ROW));
      }
    }
  }

  #putLetters(
    topicId: string,
    place: LetterPlace,
    partition: number,
    offsets: readonly number[],
  ): void {
    const [first, last] = [offsets[0]!, offsets.at(-1)!];
    this.#db
      .prepare('INSERT INTO table_letters VALUES (?, ?, ?, ?, ?, ?, ?)')
      .run(topicId, partition, first, last, place, offsets.length, encodeRuns(offsets, first));
  }

  /** Letters of dropped stages that would have gone into a table never got there; those of a topic did. */
  #dropUncommittedLetters(topicId: string, committed: ReadonlyMap<number, number>): void {
    const rows = this.#db
      .prepare("SELECT * FROM table_letters WHERE topic_id = ? AND place = 'table'")
      .all(topicId) as unknown as LetterRow[];
    for (const row of rows) {
      const end = committed.get(row.partition_index) ?? 0;
      if (row.last_offset < end) continue;
      this.#db
        .prepare(
          'DELETE FROM table_letters WHERE topic_id = ? AND partition_index = ? AND first_offset = ?',
        )
        .run(topicId, row.partition_index, row.first_offset);
      const kept = decodeRuns(row.runs, row.first_offset).filter((offset) => offset < end);
      if (kept.length > 0) this.#putLetters(topicId, 'table', row.partition_index, kept);
    }
  }

  async counters(topicId: string): Promise<TableCounters> {
    const row = this.#db.prepare('SELECT * FROM table_topics WHERE topic_id = ?').get(topicId);
    if (row === undefined) throw missingTable(topicId);
    return {
      rows: row['rows'] as number,
      deadLetters: row['dead_letters'] as number,
      skipped: row['skipped'] as number,
      lostOffsets: row['lost_offsets'] as number,
      files: row['files'] as number,
      commits: row['commits'] as number,
      lastCommitMs: row['last_commit_ms'] as number,
      lastSnapshotId: row['last_snapshot_id'] as string,
    };
  }

  async addIntents(intents: readonly Intent[], instead?: string): Promise<void> {
    this.#db.transaction(() => {
      if (instead !== undefined) {
        if (!this.#hasIntents([instead])) throw sweptFiles(instead);
        this.#dropIntents([instead]);
      }
      for (const intent of intents) this.#addIntent(intent);
    });
  }

  async intents(
    beforeMs: number,
    limit: number,
    after: Pick<Intent, 'createdMs' | 'prefix'> = FIRST_INTENT,
  ): Promise<readonly Intent[]> {
    const rows = this.#db
      .prepare(
        `SELECT * FROM table_intents WHERE created_ms < ? AND (created_ms, prefix) > (?, ?)
         ORDER BY created_ms, prefix LIMIT ?`,
      )
      .all(beforeMs, after.createdMs, after.prefix, limit);
    return rows.map((row) => ({
      prefix: row['prefix'] as string,
      topicId: row['topic_id'] as string,
      createdMs: row['created_ms'] as number,
      namespace: (row['namespace'] as string).split('.'),
      table: row['table_name'] as string,
      parent: row['parent'] as string | null,
    }));
  }

  async claimIntents(
    intents: readonly Pick<Intent, 'prefix' | 'parent'>[],
  ): Promise<readonly string[]> {
    return this.#db.transaction(() => {
      const claim = this.#db.prepare(
        'UPDATE table_intents SET sweeping = 1 WHERE prefix = ? AND parent IS ?',
      );
      return intents
        .filter(({ prefix, parent }) => claim.run(prefix, parent).changes > 0)
        .map(({ prefix }) => prefix);
    });
  }

  /** M2: names are recorded before files are written, and a stage is in time only while they still are. */
  #hasIntents(prefixes: readonly string[]): boolean {
    const find = this.#db.prepare('SELECT 1 FROM table_intents WHERE prefix = ? AND sweeping = 0');
    return prefixes.every((prefix) => find.get(prefix) !== undefined);
  }

  // Lazily: an intent that is back is judged by the table's history before anything is deleted.
  async dropIntents(prefixes: readonly string[]): Promise<void> {
    this.#db.lazyTransaction(() => this.#dropIntents(prefixes));
  }

  #dropIntents(prefixes: readonly string[]): void {
    const remove = this.#db.prepare('DELETE FROM table_intents WHERE prefix = ?');
    for (const prefix of prefixes) remove.run(prefix);
  }

  #addIntent(intent: Intent): void {
    const { changes } = this.#db
      .prepare(
        `INSERT INTO table_intents
         (prefix, topic_id, created_ms, namespace, table_name, parent) VALUES (?, ?, ?, ?, ?, ?)
         ON CONFLICT DO UPDATE SET
           created_ms = CASE created_ms WHEN 0 THEN excluded.created_ms ELSE created_ms END,
           parent = coalesce(excluded.parent, parent)
         WHERE sweeping = 0`,
      )
      .run(
        intent.prefix,
        intent.topicId,
        intent.createdMs,
        intent.namespace.join('.'),
        intent.table,
        intent.parent,
      );
    if (changes === 0) throw sweptFiles(intent.prefix);
  }

  /** Drops a topic's stages; their files are swept by intent. */
  #abandonStages({ topicId, namespace, table }: TableRecord, createdMs: number): void {
    const rows = this.#db
      .prepare('SELECT * FROM table_stages WHERE topic_id = ?')
      .all(topicId) as unknown as StageRow[];
    for (const row of rows) {
      for (const prefix of toStage(row).filePrefixes) {
        this.#addIntent({ prefix, topicId, createdMs, namespace, table, parent: row.parent });
      }
    }
    this.#db.prepare('DELETE FROM table_stages WHERE topic_id = ?').run(topicId);
  }

  /** What the deletion of a topic takes along, in its transaction. The table itself stays. */
  hooks(): PartitionHooks {
    return {
      created: () => {},
      deleted: (topicId) => {
        const record = this.#find(topicId);
        if (record === undefined) return;
        // Age 0: the sweep may take the files at its next pass.
        this.#abandonStages(record, 0);
        this.#db.prepare('DELETE FROM table_topics WHERE topic_id = ?').run(topicId);
        this.#versions.raise('tables');
      },
    };
  }

  #positions(topicId: string): TablePosition[] {
    const rows = this.#db
      .prepare('SELECT * FROM table_positions WHERE topic_id = ? ORDER BY partition_index')
      .all(topicId) as unknown as PositionRow[];
    return rows.map((row) => ({
      partition: row.partition_index,
      stagedEnd: row.staged_end,
      committedEnd: row.committed_end,
    }));
  }

  #find(topicId: string): TableRecord | undefined {
    const row = this.#db.prepare('SELECT * FROM table_topics WHERE topic_id = ?').get(topicId);
    return row === undefined ? undefined : toRecord(row as unknown as TopicRow);
  }

  #require(topicId: string): TableRecord {
    const record = this.#find(topicId);
    if (record === undefined) throw missingTable(topicId);
    return record;
  }

  /** T6: whoever holds an older epoch has been replaced. */
  fenced(topicId: string, epoch: number): TableRecord {
    const record = this.#require(topicId);
    assertEpoch(record, epoch);
    return record;
  }
}

function toStage(row: StageRow): Stage {
  return {
    ...(JSON.parse(row.head) as StageHead),
    sequence: row.sequence,
    attempted: row.attempted === 1,
    payload: row.payload,
  };
}

function toRecord(row: TopicRow): TableRecord {
  return {
    topicId: row.topic_id,
    topicName: row.topic_name,
    namespace: row.namespace.split('.'),
    table: row.table_name,
    tableUuid: row.table_uuid,
    generation: row.generation,
    epoch: row.epoch,
    paused: row.paused === 1,
    state: row.state,
    reason: row.reason,
  };
}
