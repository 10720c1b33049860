// Topics on SQLite. See metadata/topics.ts for the contract.
import { FloeError } from '../../base/error.ts';
import type { CreateTopic, Topic, TopicsMetadata } from '../topics.ts';
import type { Database, Migration } from './database.ts';
import { uncounted, type VersionCounter } from './versions.ts';

export const topicsMigrations: readonly Migration[] = [
  {
    name: 'topics-1',
    sql: `
      CREATE TABLE topics (
        topic_id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, config TEXT NOT NULL,
        created_ms INTEGER NOT NULL, version INTEGER NOT NULL) STRICT;
      -- AUTOINCREMENT: a partition id is never used again, so a late commit can't hit another topic.
      CREATE TABLE partitions (
        partition_id INTEGER PRIMARY KEY AUTOINCREMENT,
        topic_id TEXT NOT NULL REFERENCES topics ON DELETE CASCADE,
        partition_index INTEGER NOT NULL, UNIQUE (topic_id, partition_index)) STRICT;
      CREATE TABLE broker_configs (scope TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,
        PRIMARY KEY (scope, name)) STRICT, WITHOUT ROWID;`,
  },
];

/** What else happens in the transaction that creates or deletes partitions (the log's rows, say). */
export interface PartitionHooks {
  created(partitionIds: readonly number[], nowMs: number): void;
  deleted(topicId: string, topicName: string, partitionIds: readonly number[]): void;
}

interface TopicRow {
  topic_id: string;
  name: string;
  config: string;
  created_ms: number;
  version: number;
}

export class SqliteTopics implements TopicsMetadata {
  readonly #db: Database;
  readonly #hooks: readonly PartitionHooks[];
  readonly #versions: VersionCounter;

  constructor(
    db: Database,
    hooks: readonly PartitionHooks[] = [],
    versions: VersionCounter = uncounted,
  ) {
    this.#db = db;
    this.#versions = versions;
    this.#hooks = hooks;
  }

  async create(request: CreateTopic): Promise<Topic> {
    return this.#db.transaction(() => {
      if (this.#db.prepare('SELECT 1 FROM topics WHERE name = ?').get(request.name) !== undefined) {
        throw new FloeError('conflict', `topic "${request.name}" already exists`);
      }
      this.#db
        .prepare(
          'INSERT INTO topics (topic_id, name, config, created_ms, version) VALUES (?, ?, ?, ?, 1)',
        )
        .run(request.topicId, request.name, JSON.stringify(request.config), request.nowMs);
      this.#insertPartitions(request.topicId, 0, request.partitionCount, request.nowMs);
      this.#versions.raiseTraced('topics', [request.topicId]);
      return this.#load(request.topicId);
    });
  }

  async addPartitions(topicId: string, partitionCount: number): Promise<Topic> {
    return this.#db.transaction(() => {
      const topic = this.#load(topicId);
      if (partitionCount <= topic.partitions.length) {
        throw new FloeError(
          'invalid',
          `topic "${topic.name}" has ${topic.partitions.length} partitions already: ask for more than that`,
        );
      }
      this.#insertPartitions(topicId, topic.partitions.length, partitionCount, topic.createdMs);
      this.#db.prepare('UPDATE topics SET version = version + 1 WHERE topic_id = ?').run(topicId);
      this.#versions.raiseTraced('topics', [topicId]);
      return this.#load(topicId);
    });
  }

  async delete(topicId: string): Promise<void> {
    this.#db.transaction(() => {
      const topic = this.#load(topicId);
      for (const hook of this.#hooks) hook.deleted(topicId, topic.name, topic.partitions);
      this.#db.prepare('DELETE FROM topics WHERE topic_id = ?').run(topicId);
      this.#versions.raiseTraced('topics', [topicId]);
    });
  }

  async list(topicIds?: readonly string[]): Promise<readonly Topic[]> {
    const rows = (topicIds === undefined
      ? this.#db.prepare('SELECT topic_id FROM topics ORDER BY name').all()
      : this.#db
          .prepare(
            `SELECT topic_id FROM topics WHERE topic_id IN (SELECT value FROM json_each(?)) ORDER BY name`,
          )
          .all(JSON.stringify(topicIds))) as unknown as { topic_id: string }[];
    return rows.map((row) => this.#load(row.topic_id));
  }

  async alterConfig(
    topicId: string,
    changes: Readonly<Record<string, string | null>>,
  ): Promise<Topic> {
    return this.#db.transaction(() => {
      const config: Record<string, string> = { ...this.#load(topicId).config };
      applyChanges(config, changes);
      this.#db
        .prepare('UPDATE topics SET config = ?, version = version + 1 WHERE topic_id = ?')
        .run(JSON.stringify(config), topicId);
      this.#versions.raiseTraced('topics', [topicId]);
      return this.#load(topicId);
    });
  }

  async brokerConfig(scope: string): Promise<Readonly<Record<string, string>>> {
    const rows = this.#db
      .prepare('SELECT name, value FROM broker_configs WHERE scope = ?')
      .all(scope);
    return Object.fromEntries(rows.map((row) => [row['name'] as string, row['value'] as string]));
  }

  async alterBrokerConfig(scope: string, changes: Readonly<Record<string, string | null>>) {
    this.#db.transaction(() => {
      this.#versions.raise('broker-configs');
      for (const [name, value] of Object.entries(changes)) {
        if (value === null) {
          this.#db
            .prepare('DELETE FROM broker_configs WHERE scope = ? AND name = ?')
            .run(scope, name);
        } else {
          this.#db
            .prepare(
              'INSERT INTO broker_configs VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value',
            )
            .run(scope, name, value);
        }
      }
    });
    return this.brokerConfig(scope);
  }

  #insertPartitions(topicId: string, from: number, to: number, nowMs: number): void {
    const insert = this.#db.prepare(
      'INSERT INTO partitions (topic_id, partition_index) VALUES (?, ?)',
    );
    const created: number[] = [];
    for (let index = from; index < to; index += 1)
      created.push(Number(insert.run(topicId, index).lastInsertRowid));
    for (const hook of this.#hooks) hook.created(created, nowMs);
  }

  #load(topicId: string): Topic {
    const row = this.#db
      .prepare('SELECT * FROM topics WHERE topic_id = ?')
      .get(topicId) as unknown as TopicRow | undefined;
    if (row === undefined) throw new FloeError('not-found', `there is no topic with id ${topicId}`);
    const partitions = this.#db
      .prepare('SELECT partition_id FROM partitions WHERE topic_id = ? ORDER BY partition_index')
      .all(topicId) as unknown as { partition_id: number }[];
    return toTopic(
      row,
      partitions.map((partition) => partition.partition_id),
    );
  }
}

function toTopic(row: TopicRow, partitions: readonly number[]): Topic {
  return {
    topicId: row.topic_id,
    name: row.name,
    partitions,
    config: JSON.parse(row.config) as Record<string, string>,
    createdMs: row.created_ms,
    version: row.version,
  };
}

function applyChanges(
  config: Record<string, string>,
  changes: Readonly<Record<string, string | null>>,
): void {
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) delete config[name];
    else config[name] = value;
  }
}
