// Topics on PostgreSQL. See metadata/topics.ts for the contract.
// Partition ids come from a sequence, so none is used twice. A topic's deletion holds the rows of its partitions, as
// commits do: a commit is either before it or finds them gone. Not for: what hangs on a topic elsewhere (TopicHook).
import { FloeError } from '../../base/error.ts';
import { clientText, storedText } from '../text.ts';
import type { CreateTopic, Topic, TopicsMetadata } from '../topics.ts';
import type { Database, Sql, Transaction } from './database.ts';
import { STORE_MS, sqlNumbers } from './log-rows.ts';
import type { Migration } from './migrations.ts';
import { lockPartitions } from './object-entries.ts';
import { raiseTraced, raiseVersions } from './versions.ts';

export const topicsMigrations: readonly Migration[] = [
  {
    name: 'topics-1',
    sql: `
      CREATE TABLE topics (
        topic_id text COLLATE "C" PRIMARY KEY, name text COLLATE "C" NOT NULL UNIQUE, config text NOT NULL,
        created_ms int8 NOT NULL, version int8 NOT NULL);
      CREATE TABLE partitions (
        partition_id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        topic_id text COLLATE "C" NOT NULL REFERENCES topics ON DELETE CASCADE,
        partition_index int4 NOT NULL, UNIQUE (topic_id, partition_index));
      CREATE TABLE broker_configs (scope text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL,
        value text NOT NULL, PRIMARY KEY (scope, name));`,
  },
];

/** What else a topic's deletion ends, in its transaction: rows that refer to `partitions` may cascade instead. */
export interface TopicHook {
  topicDeletedIn(tx: Transaction, topic: Topic): Promise<void>;
}

interface TopicRecord {
  readonly topic_id: string;
  readonly name: string;
  readonly config: string;
  readonly created_ms: number;
  readonly version: number;
  readonly partitions: readonly number[];
}

const SELECT_TOPICS = `SELECT t.*, ARRAY(
    SELECT partition_id FROM partitions p WHERE p.topic_id = t.topic_id ORDER BY partition_index) AS partitions
  FROM topics t`;

export class PostgresTopics implements TopicsMetadata {
  readonly #db: Database;
  readonly #hooks: readonly TopicHook[];

  constructor(db: Database, hooks: readonly TopicHook[] = []) {
    this.#db = db;
    this.#hooks = hooks;
  }

  async create(request: CreateTopic): Promise<Topic> {
    const { topicId, name, config, partitionCount } = request;
    return this.#db.transaction('write', async (tx) => {
      const inserted = await tx.run(
        `INSERT INTO topics (topic_id, name, config, created_ms, version) VALUES ($1, $2, $3, ${STORE_MS}, 1)
         ON CONFLICT DO NOTHING`,
        [topicId, storedText(name), JSON.stringify(config)],
      );
      if (inserted === 0) throw new FloeError('conflict', `topic "${name}" already exists`);
      await insertPartitions(tx, topicId, { from: 0, to: partitionCount });
      await raiseTraced(tx, 'topics', [topicId]);
      return load(tx, topicId);
    });
  }

  async addPartitions(topicId: string, partitionCount: number): Promise<Topic> {
    return this.#db.transaction('write', async (tx) => {
      const topic = await lock(tx, topicId);
      const count = topic.partitions.length;
      if (partitionCount <= count)
        throw new FloeError(
          'invalid',
          `topic "${topic.name}" has ${count} partitions already: ask for more than that`,
        );
      await insertPartitions(tx, topicId, { from: count, to: partitionCount });
      return changed(tx, topicId);
    });
  }

  async delete(topicId: string): Promise<void> {
    await this.#db.transaction('write', async (tx) => {
      const topic = await lock(tx, topicId);
      await lockPartitions(tx, topic.partitions);
      const ids = [sqlNumbers(topic.partitions)];
      // Flush rows keep the dead runs until their object goes.
      for (const text of DELETE_PARTITIONS) await tx.run(text, ids);
      for (const hook of this.#hooks) await hook.topicDeletedIn(tx, topic);
      await tx.run('DELETE FROM topics WHERE topic_id = $1', [topicId]);
      await raiseTraced(tx, 'topics', [topicId]);
    });
  }

  async list(topicIds?: readonly string[]): Promise<readonly Topic[]> {
    const sql = this.#db.on('background');
    const rows =
      topicIds === undefined
        ? await sql.rows<TopicRecord>(`${SELECT_TOPICS} ORDER BY t.name`)
        : await sql.rows<TopicRecord>(
            `${SELECT_TOPICS} WHERE t.topic_id = ANY ($1::text[]) ORDER BY t.name`,
            [topicIds],
          );
    return rows.map(toTopic);
  }

  async alterConfig(
    topicId: string,
    changes: Readonly<Record<string, string | null>>,
  ): Promise<Topic> {
    return this.#db.transaction('write', async (tx) => {
      const config: Record<string, string> = { ...(await lock(tx, topicId)).config };
      for (const [name, value] of Object.entries(changes)) {
        if (value === null) delete config[name];
        else config[name] = value;
      }
      await tx.run('UPDATE topics SET config = $2 WHERE topic_id = $1', [
        topicId,
        JSON.stringify(config),
      ]);
      return changed(tx, topicId);
    });
  }

  brokerConfig(scope: string): Promise<Readonly<Record<string, string>>> {
    return readBrokerConfig(this.#db.on('read'), scope);
  }

  async alterBrokerConfig(
    scope: string,
    changes: Readonly<Record<string, string | null>>,
  ): Promise<Readonly<Record<string, string>>> {
    return this.#db.transaction('write', async (tx) => {
      const names = Object.keys(changes).toSorted();
      const gone = names.filter((name) => changes[name] === null);
      const set = names.filter((name) => changes[name] !== null);
      await tx.run('DELETE FROM broker_configs WHERE scope = $1 AND name = ANY ($2::text[])', [
        scope,
        gone.map(storedText),
      ]);
      await tx.run(
        `INSERT INTO broker_configs (scope, name, value)
         SELECT $1, * FROM unnest($2::text[], $3::text[])
         ON CONFLICT (scope, name) DO UPDATE SET value = excluded.value`,
        [scope, set.map(storedText), set.map((name) => storedText(changes[name]!))],
      );
      await raiseVersions(tx, 'broker-configs');
      return readBrokerConfig(tx, scope);
    });
  }
}

const DELETE_PARTITIONS = [
  'log_partitions',
  'producer_sequences',
  'object_entries',
  'aborted_transactions',
  'log_cleanings',
].map((table) => `DELETE FROM ${table} WHERE partition_id = ANY ($1::int8[])`);

async function insertPartitions(
  tx: Transaction,
  topicId: string,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<void> {
  await tx.run(
    `WITH made AS (
       INSERT INTO partitions (topic_id, partition_index)
       SELECT $1, n FROM generate_series($2::int4, $3::int4 - 1) AS n ORDER BY n RETURNING partition_id)
     INSERT INTO log_partitions (partition_id, log_start, high_watermark, max_timestamp, size_bytes)
     SELECT partition_id, 0, 0, -1, 0 FROM made`,
    [topicId, from, to],
  );
}

async function changed(tx: Transaction, topicId: string): Promise<Topic> {
  await tx.run('UPDATE topics SET version = version + 1 WHERE topic_id = $1', [topicId]);
  await raiseTraced(tx, 'topics', [topicId]);
  return load(tx, topicId);
}

/** @throws FloeError `not-found`. */
async function lock(tx: Transaction, topicId: string): Promise<Topic> {
  await tx.row('SELECT 1 FROM topics WHERE topic_id = $1 FOR UPDATE', [topicId]);
  return load(tx, topicId);
}

async function load(sql: Sql, topicId: string): Promise<Topic> {
  const row = await sql.row<TopicRecord>(`${SELECT_TOPICS} WHERE t.topic_id = $1`, [topicId]);
  if (row === undefined) throw new FloeError('not-found', `there is no topic with id ${topicId}`);
  return toTopic(row);
}

async function readBrokerConfig(
  sql: Sql,
  scope: string,
): Promise<Readonly<Record<string, string>>> {
  const rows = await sql.rows<{ name: string; value: string }>(
    'SELECT name, value FROM broker_configs WHERE scope = $1 ORDER BY name',
    [scope],
  );
  return Object.fromEntries(rows.map((row) => [clientText(row.name), clientText(row.value)]));
}

function toTopic(row: TopicRecord): Topic {
  return {
    topicId: row.topic_id,
    name: clientText(row.name),
    partitions: row.partitions,
    config: JSON.parse(row.config) as Record<string, string>,
    createdMs: row.created_ms,
    version: row.version,
  };
}
