// Words between the nodes of a table on PostgreSQL. See metadata/table-lanes.ts for the contract.
import {
  MAX_ASKS,
  NO_ORDER,
  type StageOrder,
  type TableAsk,
  type TableHead,
  type TableLanesMetadata,
  type TopicPositions,
  tooManyAsks,
} from '../table-lanes.ts';
import type { TablePosition } from '../tables.ts';
import type { Database } from './database.ts';
import type { Migration } from './migrations.ts';
import { type PositionRow, toPosition } from './table-rows.ts';
import { fenced } from './tables.ts';

export const tableLanesMigrations: readonly Migration[] = [
  {
    name: 'table-lanes-1',
    sql: `
      CREATE TABLE table_orders (
        topic_id text COLLATE "C" PRIMARY KEY REFERENCES table_topics ON DELETE CASCADE,
        epoch int8 NOT NULL, number int8 NOT NULL, version text NOT NULL, targets text NOT NULL)
        WITH (fillfactor = 50);
      CREATE TABLE table_asks (
        sequence int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, ask_id text COLLATE "C" NOT NULL UNIQUE,
        topic_id text COLLATE "C" NOT NULL REFERENCES table_topics ON DELETE CASCADE,
        epoch int8 NOT NULL, payload text NOT NULL);
      CREATE INDEX table_asks_by_topic ON table_asks (topic_id, sequence);`,
  },
];

interface HeadRow {
  topic_id: string;
  table_uuid: string;
  generation: number;
  epoch: number;
  paused: boolean;
  state: string;
  staged_bytes: number;
  number: number | null;
  version: string | null;
  targets: string | null;
  asks: string[];
}

export class PostgresTableLanes implements TableLanesMetadata {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async heads(topicIds: readonly string[]): Promise<readonly TableHead[]> {
    const rows = await this.#db.on('follow').rows<HeadRow>(
      `SELECT t.topic_id, t.table_uuid, t.generation, t.epoch, t.paused, t.state,
         (SELECT coalesce(sum(s.bytes), 0)::int8 FROM table_stages s WHERE s.topic_id = t.topic_id) AS staged_bytes,
         ARRAY(SELECT a.ask_id FROM table_asks a WHERE a.topic_id = t.topic_id AND a.epoch = t.epoch
           ORDER BY a.sequence) AS asks,
         o.number, o.version, o.targets
       FROM table_topics t LEFT JOIN table_orders o ON o.topic_id = t.topic_id AND o.epoch = t.epoch
       WHERE t.topic_id = ANY ($1::text[]) ORDER BY t.topic_id`,
      [[...topicIds]],
    );
    return rows.map(toHead);
  }

  async positions(topicIds: readonly string[]): Promise<readonly TopicPositions[]> {
    const rows = await this.#db
      .on('follow')
      .rows<PositionRow & { topic_id: string; none: boolean }>(
        `SELECT t.topic_id, p.partition_index IS NULL AS none, p.partition_index, p.staged_end, p.committed_end
         FROM table_topics t LEFT JOIN table_positions p ON p.topic_id = t.topic_id
         WHERE t.topic_id = ANY ($1::text[]) ORDER BY t.topic_id, p.partition_index`,
        [[...topicIds]],
      );
    const found = new Map<string, TablePosition[]>();
    for (const row of rows) {
      const positions = found.get(row.topic_id) ?? [];
      found.set(row.topic_id, positions);
      if (!row.none) positions.push(toPosition(row));
    }
    return [...found].map(([topicId, positions]) => ({ topicId, positions }));
  }

  async order(topicId: string, epoch: number, order: Omit<StageOrder, 'number'>): Promise<number> {
    return this.#db.transaction('write', async (tx) => {
      await fenced(tx, topicId, epoch);
      const row = await tx.row<{ number: number }>(
        `INSERT INTO table_orders AS o VALUES ($1, $2, 1, $3, $4)
         ON CONFLICT (topic_id) DO UPDATE SET epoch = excluded.epoch, number = o.number + 1,
           version = excluded.version, targets = excluded.targets RETURNING number`,
        [topicId, epoch, order.version, JSON.stringify(order.targets)],
      );
      return row!.number;
    });
  }

  async ask(epoch: number, { askId, topicId, payload }: TableAsk): Promise<void> {
    await this.#db.transaction('write', async (tx) => {
      await fenced(tx, topicId, epoch);
      await tx.run('DELETE FROM table_asks WHERE topic_id = $1 AND epoch < $2', [topicId, epoch]);
      const row = await tx.row<{ open: number }>(
        'SELECT count(*) AS open FROM table_asks WHERE topic_id = $1',
        [topicId],
      );
      if (row!.open >= MAX_ASKS) throw tooManyAsks(topicId);
      await tx.run(
        `INSERT INTO table_asks (ask_id, topic_id, epoch, payload) VALUES ($1, $2, $3, $4)
         ON CONFLICT DO NOTHING`,
        [askId, topicId, epoch, payload],
      );
    });
  }

  async asks(topicIds: readonly string[], limit: number): Promise<readonly TableAsk[]> {
    return this.#db.on('follow').rows<TableAsk>(
      `SELECT a.ask_id AS "askId", a.topic_id AS "topicId", a.payload FROM table_asks a
       JOIN table_topics t ON t.topic_id = a.topic_id AND t.epoch = a.epoch
       WHERE a.topic_id = ANY ($1::text[]) ORDER BY a.sequence LIMIT $2`,
      [[...topicIds], limit],
    );
  }

  async answer(topicId: string, epoch: number, askIds: readonly string[]): Promise<void> {
    await this.#db.transaction('write', async (tx) => {
      await fenced(tx, topicId, epoch);
      await tx.run('DELETE FROM table_asks WHERE topic_id = $1 AND ask_id = ANY ($2::text[])', [
        topicId,
        [...askIds],
      ]);
    });
  }
}

function toHead(row: HeadRow): TableHead {
  const { number, version, targets } = row;
  return {
    topicId: row.topic_id,
    tableUuid: row.table_uuid,
    generation: row.generation,
    epoch: row.epoch,
    paused: row.paused,
    state: row.state,
    stagedBytes: row.staged_bytes,
    order:
      number === null ? NO_ORDER : { number, version: version!, targets: JSON.parse(targets!) },
    asks: row.asks,
  };
}
