// Producer ids on PostgreSQL: one counter, and when ids of about its height were handed out. See metadata/producers.ts for
// the contract. What producers wrote where is part of the log's state (log-state.ts); here it only expires.
import type { ProducerIdentity, ProducersMetadata } from '../producers.ts';
import type { Database, Sql, Transaction } from './database.ts';
import {
  openRanges,
  PARTITION_COLUMNS,
  type PartitionRecord,
  STORE_MS,
  sqlNumbers,
} from './log-rows.ts';
import type { Migration } from './migrations.ts';

export const producersMigrations: readonly Migration[] = [
  {
    name: 'producers-1',
    sql: `
      CREATE TABLE producer_ids (
        only_row bool PRIMARY KEY DEFAULT true CHECK (only_row), next_id int8 NOT NULL) WITH (fillfactor = 10);
      INSERT INTO producer_ids (next_id) VALUES (0);
      -- The first id handed out in each minute that handed out any.
      CREATE TABLE producer_id_ages (first_id int8 PRIMARY KEY, allocated_ms int8 NOT NULL);`,
  },
];

const MINUTE_MS = 60_000;

/** Rows looked at in one go by {@link PostgresProducers.expire}. */
const SCANNED_ROWS = 5_000;

// The age may be that of an id handed out up to a minute earlier; whoever judges by it allows for that.
const ALLOCATE = `
  WITH handed AS (UPDATE producer_ids SET next_id = next_id + 1 RETURNING next_id - 1 AS id, ${STORE_MS} AS now_ms),
  aged AS (
    INSERT INTO producer_id_ages SELECT id, now_ms FROM handed
    WHERE NOT EXISTS (SELECT 1 FROM producer_id_ages WHERE abs(now_ms - allocated_ms) < ${MINUTE_MS}))
  SELECT id FROM handed`;

/** Takes a producer id that was never used, within whatever `sql` is. */
export async function allocateProducerId(sql: Sql): Promise<number> {
  return (await sql.row<{ id: number }>(ALLOCATE))!.id;
}

interface Age {
  readonly first_id: number;
  readonly allocated_ms: number;
}

/**
 * Which producer ids are too young to have lost their state. A copy in memory: what it says of ids below `#nextId` never
 * changes, so it is read again only for ids above.
 */
export class ProducerAges {
  readonly #expirationMs: number;
  #nextId = 0;
  #ages: readonly Age[] = [];

  /** Kafka's `producer.id.expiration.ms`. */
  constructor(expirationMs: number) {
    this.#expirationMs = expirationMs;
  }

  /** Brings the copy up so far that it knows all of these ids that were ever handed out. */
  async known(sql: Sql, producerIds: readonly number[]): Promise<void> {
    if (!producerIds.some((id) => id >= this.#nextId)) return;
    const [next, ages] = await Promise.all([
      sql.row<{ next_id: number }>('SELECT next_id FROM producer_ids'),
      // After the counter, so that no id below it lacks its age.
      sql.rows<Age>('SELECT first_id, allocated_ms FROM producer_id_ages ORDER BY first_id'),
    ]);
    if (next!.next_id <= this.#nextId) return;
    this.#nextId = next!.next_id;
    this.#ages = ages;
  }

  /** True when state of this id may have existed and expired: an old id, or one that isn't of this cluster. */
  mayHaveExpired(producerId: number, nowMs: number): boolean {
    if (producerId >= this.#nextId) return true;
    // Ids below the oldest age we kept are older than the expiration.
    let low = 0;
    let high = this.#ages.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#ages[middle]!.first_id <= producerId) low = middle + 1;
      else high = middle;
    }
    const age = this.#ages[low - 1];
    return age === undefined || nowMs - age.allocated_ms > this.#expirationMs + MINUTE_MS;
  }
}

export class PostgresProducers implements ProducersMetadata {
  readonly #db: Database;
  /** Where the next look for idle producers goes on: there is no index by time, which every commit would have to move. */
  #cursor: readonly [number, number] = [-1, -1];

  constructor(db: Database) {
    this.#db = db;
  }

  async initProducerId(): Promise<ProducerIdentity> {
    // Done twice it skips an id, which is nothing.
    return { producerId: await allocateProducerId(this.#db.on('write')), producerEpoch: 0 };
  }

  /** Looks through a slice of all producers; the next call goes on behind it. By the store's clock: see `storeMs`. */
  async expire(idleSinceMs: number, limit: number): Promise<number> {
    let expired = 0;
    for (;;) {
      const { rows, idle } = await this.#idle(idleSinceMs, limit - expired);
      if (idle.length > 0) {
        expired += await this.#db.transaction('background', (tx) => forget(tx, idle, idleSinceMs));
      }
      if (rows === 0 || expired >= limit) break;
    }
    await this.#forgetAges(idleSinceMs);
    return expired;
  }

  async #idle(idleSinceMs: number, limit: number) {
    const rows = await this.#db.on('background').rows<{
      partition_id: number;
      producer_id: number;
      active_ms: number;
    }>(
      `SELECT partition_id, producer_id, active_ms FROM producer_sequences
       WHERE (partition_id, producer_id) > ($1, $2) ORDER BY partition_id, producer_id LIMIT ${SCANNED_ROWS}`,
      [...this.#cursor],
    );
    const idle: Producer[] = [];
    for (const row of rows) {
      if (idle.length === limit) break;
      this.#cursor = [row.partition_id, row.producer_id];
      if (row.active_ms < idleSinceMs) idle.push(row);
    }
    if (rows.length === 0) this.#cursor = [-1, -1];
    return { rows: rows.length, idle };
  }

  async #forgetAges(idleSinceMs: number): Promise<void> {
    await this.#db
      .on('background')
      .run('DELETE FROM producer_id_ages WHERE allocated_ms < $1', [idleSinceMs - MINUTE_MS]);
  }
}

interface Producer {
  readonly partition_id: number;
  readonly producer_id: number;
}

/** Under the locks of their partitions, as a commit would change them; those with an open transaction stay. */
async function forget(
  tx: Transaction,
  idle: readonly Producer[],
  idleSinceMs: number,
): Promise<number> {
  const locked = await tx.rows<PartitionRecord>(
    `SELECT ${PARTITION_COLUMNS} FROM log_partitions
     WHERE partition_id = ANY ($1::int8[]) ORDER BY partition_id FOR NO KEY UPDATE`,
    [sqlNumbers(idle.map((row) => row.partition_id))],
  );
  const open = new Map(locked.map((row) => [row.partition_id, openRanges(row.open_transactions)]));
  const going = idle.filter((row) => open.get(row.partition_id)?.has(row.producer_id) !== true);
  return tx.run(
    `DELETE FROM producer_sequences s USING unnest($1::int8[], $2::int8[]) AS c (partition_id, producer_id)
     WHERE s.partition_id = c.partition_id AND s.producer_id = c.producer_id AND s.active_ms < $3`,
    [
      sqlNumbers(going.map((row) => row.partition_id)),
      sqlNumbers(going.map((row) => row.producer_id)),
      idleSinceMs,
    ],
  );
}
