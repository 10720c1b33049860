// Tables of table topics on PostgreSQL, and their rows as plain data. Not for: what is written when (tables.ts,
// table-letters.ts, table-intents.ts).
import type { Stage, TablePosition, TableRecord } from '../tables.ts';
import type { Migration } from './migrations.ts';

export const tablesMigrations: readonly Migration[] = [
  {
    name: 'tables-1',
    sql: `
      CREATE TABLE table_topics (
        topic_id text COLLATE "C" PRIMARY KEY, topic_name text COLLATE "C" NOT NULL, namespace text NOT NULL,
        table_name text NOT NULL, table_uuid text NOT NULL, generation int8 NOT NULL, epoch int8 NOT NULL,
        paused bool NOT NULL, state text NOT NULL, reason text NOT NULL, rows int8 NOT NULL,
        dead_letters int8 NOT NULL, skipped int8 NOT NULL, lost_offsets int8 NOT NULL, files int8 NOT NULL,
        commits int8 NOT NULL, last_commit_ms int8 NOT NULL, last_snapshot_id text NOT NULL) WITH (fillfactor = 50);
      CREATE TABLE table_positions (
        topic_id text COLLATE "C" REFERENCES table_topics ON DELETE CASCADE, partition_index int4,
        staged_end int8 NOT NULL, committed_end int8 NOT NULL, PRIMARY KEY (topic_id, partition_index))
        WITH (fillfactor = 50);
      CREATE TABLE table_stages (
        sequence int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, stage_id text COLLATE "C" NOT NULL UNIQUE,
        topic_id text COLLATE "C" NOT NULL REFERENCES table_topics ON DELETE CASCADE, attempted bool NOT NULL,
        parent text, ranges_key text COLLATE "C" NOT NULL, bytes int8 NOT NULL, head text NOT NULL,
        payload text NOT NULL);
      CREATE INDEX table_stages_by_topic ON table_stages (topic_id, sequence);
      CREATE TABLE table_intents (
        prefix text COLLATE "C" PRIMARY KEY, topic_id text COLLATE "C" NOT NULL, created_ms int8 NOT NULL,
        sweeping bool NOT NULL DEFAULT false, namespace text NOT NULL, table_name text NOT NULL, parent text);
      CREATE INDEX table_intents_by_age ON table_intents (created_ms);
      -- Offsets whose records became dead letters, as runs (offset-runs.ts) from first_offset on.
      CREATE TABLE table_letters (
        topic_id text COLLATE "C" REFERENCES table_topics ON DELETE CASCADE, partition_index int4,
        first_offset int8, last_offset int8 NOT NULL, place text NOT NULL, count int4 NOT NULL, runs bytea NOT NULL,
        PRIMARY KEY (topic_id, partition_index, first_offset));
      CREATE TABLE table_replays (
        commit_id text COLLATE "C" PRIMARY KEY, parent text NOT NULL, letters text NOT NULL,
        topic_id text COLLATE "C" NOT NULL REFERENCES table_topics ON DELETE CASCADE);
      CREATE INDEX table_replays_by_topic ON table_replays (topic_id);`,
  },
];

export interface TopicRow {
  topic_id: string;
  topic_name: string;
  namespace: string;
  table_name: string;
  table_uuid: string;
  generation: number;
  epoch: number;
  paused: boolean;
  state: string;
  reason: string;
}

/** Everything of a stage but its payload and what the row itself says. */
export type StageHead = Omit<Stage, 'sequence' | 'attempted' | 'payload'>;

export interface StageRow {
  sequence: number;
  attempted: boolean;
  parent: string | null;
  head: string;
  payload: string;
}

export interface PositionRow {
  partition_index: number;
  staged_end: number;
  committed_end: number;
}

export const toStage = (row: StageRow): Stage => ({
  ...(JSON.parse(row.head) as StageHead),
  sequence: row.sequence,
  attempted: row.attempted,
  payload: row.payload,
});

export const toPosition = (row: PositionRow): TablePosition => ({
  partition: row.partition_index,
  stagedEnd: row.staged_end,
  committedEnd: row.committed_end,
});

export const toRecord = (row: TopicRow): TableRecord => ({
  topicId: row.topic_id,
  topicName: row.topic_name,
  namespace: row.namespace.split('.'),
  table: row.table_name,
  tableUuid: row.table_uuid,
  generation: row.generation,
  epoch: row.epoch,
  paused: row.paused,
  state: row.state,
  reason: row.reason,
});
