// Words between the nodes of a table on SQLite. See metadata/table-lanes.ts for the contract.
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
import type { Database, Migration } from './database.ts';
import type { SqliteTables } from './tables.ts';

export const tableLanesMigrations: readonly Migration[] = [
  {
    name: 'table-lanes-1',
    sql: `
      CREATE TABLE table_orders (
        topic_id TEXT PRIMARY KEY REFERENCES table_topics ON DELETE CASCADE,
        epoch INTEGER NOT NULL, number INTEGER NOT NULL, version TEXT NOT NULL, targets TEXT NOT NULL)
        STRICT, WITHOUT ROWID;
      CREATE TABLE table_asks (
        sequence INTEGER PRIMARY KEY AUTOINCREMENT, ask_id TEXT NOT NULL UNIQUE,
        topic_id TEXT NOT NULL REFERENCES table_topics ON DELETE CASCADE,
        epoch INTEGER NOT NULL, payload TEXT NOT NULL) STRICT;
      CREATE INDEX table_asks_by_topic ON table_asks (topic_id, sequence);`,
  },
];

interface HeadRow {
  topic_id: string;
  table_uuid: string;
  generation: number;
  epoch: number;
  paused: number;
  state: string;
  staged_bytes: number;
  number: number | null;
  version: string | null;
  targets: string | null;
  asks: string;
}

/** Sets are handed to SQLite as one JSON text. */
const OF_SET = 'IN (SELECT value FROM json_each(?))';

export class SqliteTableLanes implements TableLanesMetadata {
  readonly #db: Database;
  readonly #tables: SqliteTables;

  constructor(db: Database, tables: SqliteTables) {
    this.#db = db;
    this.#tables = tables;
  }

  async heads(topicIds: readonly string[]): Promise<readonly TableHead[]> {
    const rows = this.#db
      .prepare(
        `SELECT t.topic_id, t.table_uuid, t.generation, t.epoch, t.paused, t.state,
           (SELECT coalesce(sum(json_extract(s.head, '$.bytes')), 0) FROM table_stages s
             WHERE s.topic_id = t.topic_id) AS staged_bytes,
           (SELECT json_group_array(a.ask_id) FROM table_asks a
             WHERE a.topic_id = t.topic_id AND a.epoch = t.epoch) AS asks,
           o.number, o.version, o.targets
         FROM table_topics t LEFT JOIN table_orders o ON o.topic_id = t.topic_id AND o.epoch = t.epoch
         WHERE t.topic_id ${OF_SET} ORDER BY t.topic_id`,
      )
      .all(JSON.stringify(topicIds));
    return (rows as unknown as HeadRow[]).map(toHead);
  }

  async positions(topicIds: readonly string[]): Promise<readonly TopicPositions[]> {
    const rows = this.#db
      .prepare(
        `SELECT t.topic_id, p.partition_index, p.staged_end, p.committed_end
         FROM table_topics t LEFT JOIN table_positions p ON p.topic_id = t.topic_id
         WHERE t.topic_id ${OF_SET} ORDER BY t.topic_id, p.partition_index`,
      )
      .all(JSON.stringify(topicIds));
    const found = new Map<string, TablePosition[]>();
    for (const row of rows) {
      const topicId = row['topic_id'] as string;
      const positions = found.get(topicId) ?? [];
      found.set(topicId, positions);
      if (row['partition_index'] === null) continue;
      positions.push({
        partition: row['partition_index'] as number,
        stagedEnd: row['staged_end'] as number,
        committedEnd: row['committed_end'] as number,
      });
    }
    return [...found].map(([topicId, positions]) => ({ topicId, positions }));
  }

  // Lazily: who finds no order after a power failure waits for the next.
  async order(topicId: string, epoch: number, order: Omit<StageOrder, 'number'>): Promise<number> {
    return this.#db.lazyTransaction(() => {
      this.#tables.fenced(topicId, epoch);
      const row = this.#db
        .prepare(
          `INSERT INTO table_orders VALUES (?1, ?2, 1, ?3, ?4) ON CONFLICT DO UPDATE
           SET epoch = ?2, number = number + 1, version = ?3, targets = ?4 RETURNING number`,
        )
        .get(topicId, epoch, order.version, JSON.stringify(order.targets));
      return row!['number'] as number;
    });
  }

  async ask(epoch: number, { askId, topicId, payload }: TableAsk): Promise<void> {
    this.#db.lazyTransaction(() => {
      this.#tables.fenced(topicId, epoch);
      this.#db
        .prepare('DELETE FROM table_asks WHERE topic_id = ? AND epoch < ?')
        .run(topicId, epoch);
      const { open } = this.#db
        .prepare('SELECT count(*) AS open FROM table_asks WHERE topic_id = ?')
        .get(topicId) as { open: number };
      if (open >= MAX_ASKS) throw tooManyAsks(topicId);
      this.#db
        .prepare(
          `INSERT INTO table_asks (ask_id, topic_id, epoch, payload) VALUES (?, ?, ?, ?)
           ON CONFLICT DO NOTHING`,
        )
        .run(askId, topicId, epoch, payload);
    });
  }

  async asks(topicIds: readonly string[], limit: number): Promise<readonly TableAsk[]> {
    const rows = this.#db
      .prepare(
        `SELECT a.ask_id, a.topic_id, a.payload FROM table_asks a
         JOIN table_topics t ON t.topic_id = a.topic_id AND t.epoch = a.epoch
         WHERE a.topic_id ${OF_SET} ORDER BY a.sequence LIMIT ?`,
      )
      .all(JSON.stringify(topicIds), limit);
    return rows.map((row) => ({
      askId: row['ask_id'] as string,
      topicId: row['topic_id'] as string,
      payload: row['payload'] as string,
    }));
  }

  async answer(topicId: string, epoch: number, askIds: readonly string[]): Promise<void> {
    this.#db.lazyTransaction(() => {
      this.#tables.fenced(topicId, epoch);
      this.#db
        .prepare(`DELETE FROM table_asks WHERE topic_id = ? AND ask_id ${OF_SET}`)
        .run(topicId, JSON.stringify(askIds));
    });
  }
}

function toHead(row: HeadRow): TableHead {
  return {
    topicId: row.topic_id,
    tableUuid: row.table_uuid,
    generation: row.generation,
    epoch: row.epoch,
    paused: row.paused === 1,
    state: row.state,
    stagedBytes: row.staged_bytes,
    order:
      row.number === null
        ? NO_ORDER
        : { number: row.number, version: row.version!, targets: JSON.parse(row.targets!) },
    asks: JSON.parse(row.asks) as string[],
  };
}
