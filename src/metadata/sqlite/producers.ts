// Producer ids on SQLite. See metadata/producers.ts for the contract.
import type { ProducerIdentity, ProducersMetadata } from '../producers.ts';
import type { Database, Migration } from './database.ts';

export const producersMigrations: readonly Migration[] = [
  {
    name: 'producers-1',
    sql: `
      CREATE TABLE producer_ids (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), next_id INTEGER NOT NULL) STRICT;
      INSERT INTO producer_ids VALUES (1, 0);
      -- The first id handed out in each minute that handed out any.
      CREATE TABLE producer_id_ages (first_id INTEGER PRIMARY KEY, allocated_ms INTEGER NOT NULL) STRICT;`,
  },
];

const MINUTE_MS = 60_000;

/** Where sequences live; `SqliteLog` implements it. */
export interface SequenceStore {
  expireSequences(idleSinceMs: number, limit: number): number;
}

interface Age {
  readonly firstId: number;
  readonly allocatedMs: number;
}

/** Which producer ids are too young to have lost their state: kept in memory, few rows. */
export class ProducerAges {
  readonly #db: Database;
  readonly #expirationMs: number;
  #nextId: number;
  #ages: Age[];

  constructor(db: Database, expirationMs: number) {
    this.#db = db;
    this.#expirationMs = expirationMs;
    this.#nextId = Number(db.prepare('SELECT next_id FROM producer_ids').get()!['next_id']);
    this.#ages = db
      .prepare('SELECT first_id, allocated_ms FROM producer_id_ages ORDER BY first_id')
      .all()
      .map((row) => ({
        firstId: Number(row['first_id']),
        allocatedMs: Number(row['allocated_ms']),
      }));
  }

  /** True when state of this id may have existed and expired: an old id, or one that isn't of this cluster. */
  mayHaveExpired(producerId: number, nowMs: number): boolean {
    if (producerId >= this.#nextId) return true;
    // Ids below the oldest age we kept are older than the expiration.
    let low = 0;
    let high = this.#ages.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#ages[middle]!.firstId <= producerId) low = middle + 1;
      else high = middle;
    }
    const age = this.#ages[low - 1];
    return age === undefined || nowMs - age.allocatedMs > this.#expirationMs + MINUTE_MS;
  }

  allocate(nowMs: number): number {
    const producerId = this.#nextId;
    const newest = this.#ages.at(-1);
    const age =
      newest !== undefined && Math.abs(nowMs - newest.allocatedMs) < MINUTE_MS
        ? undefined
        : { firstId: producerId, allocatedMs: nowMs };
    this.#db.transaction(() => {
      this.#db.prepare('UPDATE producer_ids SET next_id = ?').run(producerId + 1);
      if (age !== undefined)
        this.#db
          .prepare('INSERT INTO producer_id_ages VALUES (?, ?)')
          .run(age.firstId, age.allocatedMs);
      // Part of a larger transaction that may yet roll back: an id skipped is nothing, an age that only memory has is.
      this.#db.afterCommit(() => {
        if (age !== undefined) this.#ages.push(age);
      });
    });
    this.#nextId = producerId + 1;
    return producerId;
  }

  /** Forgets ages that are past the expiration: ids without one count as old. */
  forget(beforeMs: number): void {
    const limit = beforeMs - MINUTE_MS;
    if (this.#ages.length === 0 || this.#ages[0]!.allocatedMs >= limit) return;
    this.#db.transaction(() =>
      this.#db.prepare('DELETE FROM producer_id_ages WHERE allocated_ms < ?').run(limit),
    );
    this.#ages = this.#ages.filter((age) => age.allocatedMs >= limit);
  }
}

export class SqliteProducers implements ProducersMetadata {
  readonly #ages: ProducerAges;
  readonly #sequences: SequenceStore;

  constructor(ages: ProducerAges, sequences: SequenceStore) {
    this.#ages = ages;
    this.#sequences = sequences;
  }

  async initProducerId(nowMs: number): Promise<ProducerIdentity> {
    return { producerId: this.#ages.allocate(nowMs), producerEpoch: 0 };
  }

  async expire(idleSinceMs: number, limit: number): Promise<number> {
    this.#ages.forget(idleSinceMs);
    return this.#sequences.expireSequences(idleSinceMs, limit);
  }
}
