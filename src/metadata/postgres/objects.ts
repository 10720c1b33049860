// Objects of the log on PostgreSQL. See metadata/objects.ts for the contract.
// Order of locks: lease → claims → partitions by id → rows of objects; commits take theirs in the same order, and what was read
// before a lock is looked at again under it. Not for: commits (log-commit.ts), look-ups by offset (log.ts).
import { assert } from '../../base/assert.ts';
import { FloeError } from '../../base/error.ts';
import { checkTimely } from '../flush-outcome.ts';
import type { LeaseToken } from '../leases.ts';
import type { FlushRow, ObjectEntry, PartitionLog } from '../log.ts';
import {
  type Cleaned,
  type Cleaning,
  type FreedBytes,
  type LogObject,
  type ObjectState,
  type ObjectsMetadata,
  type ObjectUse,
  overtaking,
  type ReplacedEntry,
  type ReplaceEntries,
  sourcesOf,
  unclaimed,
} from '../objects.ts';
import { openIndex } from '../packed-index.ts';
import type { Database, Transaction } from './database.ts';
import { assertLease } from './leases.ts';
import { moveLogStarts } from './log.ts';
import {
  ENTRY_COLUMNS,
  type EntryRecord,
  FLUSH_COLUMNS,
  type FlushRecord,
  ownBytes,
  STORE_MS,
  sqlNumbers,
  toFlushRow,
  toObjectEntry,
} from './log-rows.ts';
import type { Migration } from './migrations.ts';
import { insertEntries, lockPartitions } from './object-entries.ts';

export const objectsMigrations: readonly Migration[] = [
  {
    name: 'objects-1',
    // How far compaction by key has come: metadata/objects.ts, Cleaning.
    sql: `CREATE TABLE log_cleanings (
      partition_id int8 PRIMARY KEY, clean_end int8 NOT NULL, clean_bytes int8 NOT NULL,
      tombstone_bytes int8 NOT NULL, horizon_ms int8 NOT NULL, cleaned_ms int8 NOT NULL);`,
  },
  {
    name: 'objects-2',
    // What maintainers are at work on: metadata/objects.ts, `claim`. A few hundred rows that change all the time.
    sql: `CREATE TABLE log_claims (
      object_id int8 PRIMARY KEY, lease text COLLATE "C" NOT NULL, epoch int8 NOT NULL) WITH (fillfactor = 50);`,
  },
  {
    name: 'objects-3',
    // The version of `cleanings` by which each partition was written last (decision 0041). By triggers: brokers of the version
    // before raise it, too. The row of `versions` is locked before any other and until the transaction ends, so that versions
    // become visible in their order. In a table of its own: brokers of the version before read log_cleanings by `SELECT *`,
    // prepared, which fails once there is another column.
    sql: `
      INSERT INTO versions VALUES ('cleanings', 0) ON CONFLICT DO NOTHING;
      CREATE TABLE log_cleaning_versions (
        partition_id int8 PRIMARY KEY REFERENCES log_cleanings ON DELETE CASCADE, version int8 NOT NULL);
      CREATE INDEX log_cleaning_versions_version ON log_cleaning_versions (version);
      CREATE FUNCTION raise_cleanings() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
        BEGIN UPDATE versions SET version = version + 1 WHERE domain = 'cleanings'; RETURN NULL; END $$;
      CREATE FUNCTION note_cleaning() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
        BEGIN
          INSERT INTO log_cleaning_versions SELECT NEW.partition_id, version FROM versions WHERE domain = 'cleanings'
          ON CONFLICT (partition_id) DO UPDATE SET version = excluded.version;
          RETURN NULL;
        END $$;
      CREATE TRIGGER raise_cleanings BEFORE INSERT OR UPDATE ON log_cleanings
        FOR EACH STATEMENT EXECUTE FUNCTION raise_cleanings();
      CREATE TRIGGER note_cleaning AFTER INSERT OR UPDATE ON log_cleanings
        FOR EACH ROW EXECUTE FUNCTION note_cleaning();
      INSERT INTO log_cleaning_versions SELECT partition_id, 0 FROM log_cleanings;`,
  },
];

const OBJECT_COLUMNS =
  'o.object_id, o.key, o.kind, o.generation, o.state, o.bytes, o.created_ms, o.changed_ms';

export class PostgresObjects implements ObjectsMetadata {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async list(state: ObjectState, afterId: number, limit: number): Promise<readonly LogObject[]> {
    const rows = await this.#db.on('background').rows<ObjectRecord>(
      `SELECT ${OBJECT_COLUMNS} FROM log_objects o WHERE o.state = $1 AND o.object_id > $2
       ORDER BY o.object_id LIMIT $3`,
      [state, afterId, limit],
    );
    return rows.map(toLogObject);
  }

  async notOpen(objectIds: readonly number[]): Promise<readonly number[]> {
    if (objectIds.length === 0) return [];
    const rows = await this.#db.on('read').rows<{ object_id: number }>(
      `SELECT asked.object_id FROM unnest($1::int8[]) AS asked (object_id)
       WHERE NOT EXISTS (SELECT 1 FROM log_objects o WHERE o.object_id = asked.object_id AND o.state = 'open')`,
      [sqlNumbers(objectIds)],
    );
    return rows.map((row) => row.object_id);
  }

  async uses(afterId: number, limit: number): Promise<readonly ObjectUse[]> {
    const rows = await this.#db
      .on('background')
      .rows<ObjectRecord & { entries: number; live_bytes: number; runs: number }>(
        `SELECT ${OBJECT_COLUMNS}, u.entries, u.live_bytes, u.runs
       FROM (SELECT * FROM log_objects WHERE state = 'sealed' AND object_id > $1 ORDER BY object_id LIMIT $2) o
         CROSS JOIN LATERAL (
           SELECT count(*)::int8 AS entries, coalesce(sum(e.bytes), 0)::int8 AS live_bytes,
             coalesce(sum(e.run_count), 0)::int8 AS runs
           FROM object_entries e WHERE e.object_id = o.object_id) u
       ORDER BY o.object_id`,
        [afterId, limit],
      );
    return rows.map((row) => ({
      object: toLogObject(row),
      entries: row.entries,
      liveBytes: row.live_bytes,
      runs: row.runs,
    }));
  }

  async entriesOf(objectIds: readonly number[]): Promise<readonly ObjectEntry[]> {
    const rows = await this.#db.on('background').rows<EntryRecord>(
      `SELECT ${ENTRY_COLUMNS} FROM object_entries e JOIN log_objects o USING (object_id)
       WHERE e.object_id = ANY ($1::int8[]) ORDER BY e.partition_id, e.base_offset`,
      [sqlNumbers(objectIds)],
    );
    return rows.map(toObjectEntry);
  }

  async flushesOf(objectIds: readonly number[]): Promise<readonly FlushRow[]> {
    const rows = await this.#db.on('background').rows<FlushRecord>(
      `SELECT ${FLUSH_COLUMNS} FROM flushes f JOIN log_objects o USING (object_id)
       WHERE f.object_id = ANY ($1::int8[]) ORDER BY f.commit_number`,
      [sqlNumbers(objectIds)],
    );
    return rows.map(toFlushRow);
  }

  async entryAtTime(
    partitionId: number,
    timestampMs: number,
    fromOffset: number,
  ): Promise<ObjectEntry | undefined> {
    const row = await this.#db.on('read').row<EntryRecord>(
      `SELECT ${ENTRY_COLUMNS} FROM object_entries e JOIN log_objects o USING (object_id)
       WHERE e.partition_id = $1 AND e.end_offset > $2 AND e.max_timestamp >= $3 ORDER BY e.base_offset LIMIT 1`,
      [partitionId, fromOffset, timestampMs],
    );
    return row === undefined ? undefined : toObjectEntry(row);
  }

  async claim(lease: LeaseToken, objectIds: readonly number[]): Promise<boolean> {
    const ids = [...new Set(objectIds)];
    let refused = false;
    try {
      await this.#db.transaction('background', async (tx) => {
        refused = false;
        await assertLease(tx, lease);
        await tx.run('DELETE FROM log_claims WHERE lease = $1', [lease.name]);
        const taken = await tx.run(
          `INSERT INTO log_claims AS c (object_id, lease, epoch)
           SELECT object_id, $2, $3 FROM unnest($1::int8[]) AS object_id ORDER BY object_id
           ON CONFLICT (object_id) DO UPDATE SET lease = excluded.lease, epoch = excluded.epoch
           WHERE NOT ${isHeld('c')}`,
          [sqlNumbers(ids), lease.name, lease.epoch],
        );
        refused = taken !== ids.length;
        if (refused) throw new FloeError('conflict', 'another claim holds: rolled back');
      });
    } catch (caught) {
      if (refused) return false;
      throw caught;
    }
    return true;
  }

  async claimedByOthers({ name }: LeaseToken): Promise<readonly number[]> {
    const rows = await this.#db
      .on('background')
      .rows<{ object_id: number }>(
        `SELECT c.object_id FROM log_claims c WHERE c.lease <> $1 AND ${isHeld('c')}`,
        [name],
      );
    return rows.map((row) => row.object_id);
  }

  async replace(request: ReplaceEntries): Promise<number> {
    return this.#db.transaction('background', async (tx) => {
      if (request.lease !== undefined) await assertLease(tx, request.lease);
      const known = await tx.row<{ object_id: number; state: string }>(
        'SELECT object_id, state FROM log_objects WHERE key = $1',
        [request.object.key],
      );
      if (known?.state === 'sealed') return known.object_id;
      if (known !== undefined)
        throw new FloeError('conflict', `object ${request.object.key} is ${known.state}`);
      await checkTime(tx, request);
      await checkClaims(tx, request);
      return swap(tx, request);
    });
  }

  async cleanings(): Promise<readonly Cleaning[]> {
    const sql = this.#db.on('background');
    // Noted while their topic was being deleted, or left by a broker of the version before.
    await sql.run(
      'DELETE FROM log_cleanings WHERE partition_id NOT IN (SELECT partition_id FROM log_partitions)',
    );
    const rows = await sql.rows<{
      partition_id: number;
      clean_end: number;
      clean_bytes: number;
      tombstone_bytes: number;
      horizon_ms: number;
      cleaned_ms: number;
    }>('SELECT * FROM log_cleanings ORDER BY partition_id');
    return rows.map((row) => ({
      partitionId: row.partition_id,
      cleanEnd: row.clean_end,
      cleanBytes: row.clean_bytes,
      tombstoneBytes: row.tombstone_bytes,
      horizonMs: row.horizon_ms,
      cleanedMs: row.cleaned_ms,
    }));
  }

  async cleanedSince(version: number): Promise<Cleaned> {
    const rows = await this.#db
      .on('read')
      .rows<{ partition_id: number; clean_end: number; version: number }>(
        `SELECT partition_id, c.clean_end, v.version
         FROM log_cleaning_versions v JOIN log_cleanings c USING (partition_id) WHERE v.version > $1 ORDER BY v.version`,
        [version],
      );
    return {
      version: rows.at(-1)?.version ?? version,
      cleanings: rows.map((row) => ({ partitionId: row.partition_id, cleanEnd: row.clean_end })),
    };
  }

  async noteCleaned(cleanings: readonly Cleaning[]): Promise<void> {
    await this.#db.transaction('background', (tx) => noteCleaned(tx, cleanings));
  }

  async dropExpired(limit: number): Promise<readonly FreedBytes[]> {
    return this.#db.transaction('background', async (tx) => {
      // Driven by the partitions: each looks at its oldest entries only.
      const found = await tx.rows<ReplacedRow>(
        `SELECT e.partition_id, e.base_offset FROM log_partitions p JOIN object_entries e USING (partition_id)
         WHERE p.log_start > 0 AND e.base_offset < p.log_start AND e.end_offset <= p.log_start LIMIT $1`,
        [limit],
      );
      if (found.length === 0) return [];
      const ids = sqlNumbers(found.map((row) => row.partition_id));
      await lockPartitions(
        tx,
        found.map((row) => row.partition_id),
      );
      const gone = await tx.rows<{ partition_id: number; bytes: number }>(
        `DELETE FROM object_entries e
         USING unnest($1::int8[], $2::int8[]) AS c (partition_id, base_offset), log_partitions p
         WHERE e.partition_id = c.partition_id AND e.base_offset = c.base_offset
           AND p.partition_id = c.partition_id AND e.end_offset <= p.log_start
         RETURNING e.partition_id, e.bytes`,
        [ids, sqlNumbers(found.map((row) => row.base_offset))],
      );
      const freed = new Freed();
      for (const row of gone) freed.add(row.partition_id, row.bytes);
      return takeOff(tx, freed);
    });
  }

  async claimUnreferenced(_nowMs: number, limit: number): Promise<readonly LogObject[]> {
    return this.#db.transaction('background', async (tx) => {
      const rows = await tx.rows<ObjectRecord>(
        `UPDATE log_objects o SET state = 'deleting', changed_ms = ${STORE_MS} WHERE o.object_id IN (
           SELECT c.object_id FROM log_objects c WHERE c.state = 'sealed'
             AND NOT EXISTS (SELECT 1 FROM object_entries e WHERE e.object_id = c.object_id)
           LIMIT $1 FOR UPDATE OF c SKIP LOCKED)
         RETURNING ${OBJECT_COLUMNS}`,
        [limit],
      );
      return rows.map(toLogObject);
    });
  }

  async claimKeys(keys: readonly string[], _nowMs: number): Promise<readonly string[]> {
    if (keys.length === 0) return [];
    return this.#db.transaction('background', async (tx) => {
      const rows = await tx.rows<{ key: string }>(
        `INSERT INTO log_objects (key, kind, generation, state, bytes, created_ms, changed_ms)
         SELECT key, 'object', 0, 'deleting', 0, ${STORE_MS}, ${STORE_MS}
         FROM (SELECT DISTINCT key FROM unnest($1::text[]) AS key ORDER BY key) AS keys
         ON CONFLICT (key) DO NOTHING RETURNING key`,
        [keys],
      );
      const claimed = new Set(rows.map((row) => row.key));
      return keys.filter((key) => claimed.has(key));
    });
  }

  async deletable(beforeMs: number, limit: number): Promise<readonly LogObject[]> {
    const rows = await this.#db.on('background').rows<ObjectRecord>(
      `SELECT ${OBJECT_COLUMNS} FROM log_objects o
       WHERE o.state = 'deleting' AND o.changed_ms <= $1 ORDER BY o.object_id LIMIT $2`,
      [beforeMs, limit],
    );
    return rows.map(toLogObject);
  }

  async forget(objectIds: readonly number[]): Promise<void> {
    if (objectIds.length === 0) return;
    const ids = [sqlNumbers(objectIds)];
    await this.#db.transaction('background', async (tx) => {
      const referenced = await tx.row(
        'SELECT 1 FROM object_entries WHERE object_id = ANY ($1::int8[]) LIMIT 1',
        ids,
      );
      assert(referenced === undefined, 'L10: no referenced object is forgotten');
      await tx.run(
        `UPDATE log_objects SET state = 'deleted', changed_ms = ${STORE_MS}
         WHERE state = 'deleting' AND object_id = ANY ($1::int8[])`,
        ids,
      );
      await tx.run('DELETE FROM log_claims WHERE object_id = ANY ($1::int8[])', ids);
      // The others when the flushes that name them go (flush-ranges.ts).
      await tx.run(
        `DELETE FROM log_objects o WHERE state = 'deleted' AND object_id = ANY ($1::int8[])
           AND NOT EXISTS (SELECT 1 FROM flushes f WHERE f.object_id = o.object_id)`,
        ids,
      );
    });
  }
}

/** In SQL: the claim's lease is held, by the server's clock. */
const isHeld = (claim: string): string =>
  `EXISTS (SELECT 1 FROM leases l WHERE l.name = ${claim}.lease AND l.epoch = ${claim}.epoch
     AND l.node_id IS NOT NULL AND l.until > clock_timestamp())`;

/** By the server's clock, whatever the maintainer's says. */
async function checkTime(tx: Transaction, request: ReplaceEntries): Promise<void> {
  if (request.notAfterMs === undefined) return;
  const row = await tx.row<{ now_ms: number }>(`SELECT ${STORE_MS} AS now_ms`, []);
  checkTimely(request, row!.now_ms);
}

/** Whoever takes a claim over waits until the transaction ends, and finds its sources gone then. */
async function checkClaims(
  tx: Transaction,
  { lease, claimed, ...request }: ReplaceEntries,
): Promise<void> {
  if (claimed !== true || lease === undefined) return;
  const sources = sourcesOf(request);
  const mine = await tx.rows(
    `SELECT object_id FROM log_claims WHERE object_id = ANY ($1::int8[]) AND lease = $2 AND epoch = $3
     ORDER BY object_id FOR SHARE`,
    [sqlNumbers(sources), lease.name, lease.epoch],
  );
  if (mine.length !== sources.length) throw unclaimed(lease);
}

interface ReplacedRow {
  readonly partition_id: number;
  readonly base_offset: number;
}

/** The new object's rows for the old ones', when nothing has changed about those. */
async function swap(tx: Transaction, request: ReplaceEntries): Promise<number> {
  const { entries, replaced, openObjects } = request;
  const open = await flushesOfOpen(tx, openObjects);
  const locked = await lockPartitions(tx, [
    ...entries.map(({ partitionId }) => partitionId),
    ...replaced.map(({ partitionId }) => partitionId),
    ...open.bytes.partitions().map(({ partitionId }) => partitionId),
  ]);
  const freed = open.bytes;
  await giveWay(tx, replaced, { locked, freed });
  await sealOpen(tx, request, open.newest);
  const objectId = await insertObject(tx, request);
  const live = entries.filter((entry) => isLive(locked, entry));
  await insertEntries(tx, objectId, live);
  for (const entry of live) freed.add(entry.partitionId, -entry.bytes);
  await noteCleaned(tx, request.cleanings ?? []);
  await takeOff(tx, freed);
  return objectId;
}

function isLive(
  locked: ReadonlyMap<number, PartitionLog>,
  { partitionId, endOffset }: { readonly partitionId: number; readonly endOffset: number },
): boolean {
  const partition = locked.get(partitionId);
  return partition !== undefined && endOffset > partition.logStartOffset;
}

/** Bytes that flush rows of open objects refer to, and the newest of those commits. */
async function flushesOfOpen(tx: Transaction, openObjects: readonly number[]) {
  const bytes = new Freed();
  let newest = 0;
  if (openObjects.length === 0) return { bytes, newest };
  const rows = await tx.rows<{ commit_number: number; packed_index: Uint8Array }>(
    'SELECT commit_number, packed_index FROM flushes WHERE object_id = ANY ($1::int8[])',
    [sqlNumbers(openObjects)],
  );
  for (const row of rows) {
    newest = Math.max(newest, row.commit_number);
    const { count, partitionIds, lengths } = openIndex(ownBytes(row.packed_index));
    for (let n = 0; n < count; n += 1) bytes.add(partitionIds[n]!, lengths[n]!);
  }
  return { bytes, newest };
}

/** A row that is gone is fine when its partition ended or its log start has passed it. */
async function giveWay(
  tx: Transaction,
  replaced: readonly ReplacedEntry[],
  { locked, freed }: { readonly locked: ReadonlyMap<number, PartitionLog>; readonly freed: Freed },
): Promise<void> {
  if (replaced.length === 0) return;
  const numbers = (of: (entry: ReplacedEntry) => number) => sqlNumbers(replaced.map(of));
  const gone = await tx.rows<ReplacedRow & { bytes: number }>(
    `DELETE FROM object_entries e
     USING unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[]) AS c (partition_id, base_offset, end_offset, object_id)
     WHERE e.partition_id = c.partition_id AND e.base_offset = c.base_offset AND e.end_offset = c.end_offset
       AND e.object_id = c.object_id
     RETURNING e.partition_id, e.base_offset, e.bytes`,
    [
      numbers((entry) => entry.partitionId),
      numbers((entry) => entry.baseOffset),
      numbers((entry) => entry.endOffset),
      numbers((entry) => entry.objectId),
    ],
  );
  const found = new Set(gone.map((row) => `${row.partition_id}/${row.base_offset}`));
  for (const row of gone) freed.add(row.partition_id, row.bytes);
  for (const entry of replaced) {
    const { partitionId, baseOffset, objectId } = entry;
    if (found.has(`${partitionId}/${baseOffset}`) || !isLive(locked, entry)) continue;
    throw new FloeError(
      'conflict',
      `entry ${partitionId}/${baseOffset} of object ${objectId} changed under its compaction`,
    );
  }
}

/**
 * Sealed first and looked at again then: markers join an object under a shared lock of its row, so that none joins
 * unseen. @param seen newest commit that this transaction has counted in.
 */
async function sealOpen(
  tx: Transaction,
  { openObjects, openCommit = Infinity }: ReplaceEntries,
  seen: number,
): Promise<void> {
  if (openObjects.length === 0) return;
  const ids = sqlNumbers(openObjects);
  await tx.run(
    'SELECT 1 FROM log_objects WHERE object_id = ANY ($1::int8[]) ORDER BY object_id FOR NO KEY UPDATE',
    [ids],
  );
  const sealed = await tx.run(
    `UPDATE log_objects SET state = 'sealed', changed_ms = ${STORE_MS}
     WHERE object_id = ANY ($1::int8[]) AND state = 'open'`,
    [ids],
  );
  if (sealed !== new Set(openObjects).size)
    throw new FloeError('conflict', `of objects ${openObjects.join()} one is no longer open`);
  // Ids of flushes' objects are given under the lock that orders commits (log-commit.ts): no lower one comes later.
  const older = await tx.row<{ object_id: number }>(
    `SELECT object_id FROM log_objects WHERE state = 'open' AND kind = 'object'
       AND object_id < (SELECT max(id) FROM unnest($1::int8[]) AS id) LIMIT 1`,
    [ids],
  );
  if (older !== undefined) throw overtaking(older.object_id);
  const newer = await tx.row<{ object_id: number }>(
    'SELECT object_id FROM flushes WHERE commit_number > $1 AND object_id = ANY ($2::int8[]) LIMIT 1',
    [Math.min(openCommit, seen), ids],
  );
  if (newer !== undefined)
    throw new FloeError('conflict', `object ${newer.object_id} was added to under its compaction`);
}

async function insertObject(tx: Transaction, { object }: ReplaceEntries): Promise<number> {
  const row = await tx.row<{ object_id: number }>(
    `INSERT INTO log_objects (key, kind, generation, state, bytes, created_ms, changed_ms)
     VALUES ($1, 'object', 0, 'sealed', $2, ${STORE_MS}, ${STORE_MS})
     ON CONFLICT (key) DO NOTHING RETURNING object_id`,
    [object.key, object.bytes],
  );
  if (row === undefined)
    throw new FloeError('conflict', `object ${object.key} has been claimed meanwhile`);
  return row.object_id;
}

/** Takes freed bytes off the partitions' sizes. */
async function takeOff(tx: Transaction, freed: Freed): Promise<readonly FreedBytes[]> {
  const partitions = freed.partitions();
  const moves = partitions.map(({ partitionId, bytes }) => ({
    partitionId,
    // A log start never moves back, so this leaves it where it is.
    logStartOffset: 0,
    freedBytes: bytes,
  }));
  if (moves.length > 0) await moveLogStarts(tx, moves);
  return partitions;
}

async function noteCleaned(tx: Transaction, cleanings: readonly Cleaning[]): Promise<void> {
  if (cleanings.length === 0) return;
  const numbers = (of: (cleaning: Cleaning) => number) => sqlNumbers(cleanings.map(of));
  await tx.run(
    `INSERT INTO log_cleanings (partition_id, clean_end, clean_bytes, tombstone_bytes, horizon_ms, cleaned_ms)
     SELECT c.* FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::int8[], $6::int8[])
       AS c (partition_id, clean_end, clean_bytes, tombstone_bytes, horizon_ms, cleaned_ms)
       JOIN log_partitions p ON p.partition_id = c.partition_id
     ORDER BY c.partition_id
     ON CONFLICT (partition_id) DO UPDATE SET clean_end = excluded.clean_end, clean_bytes = excluded.clean_bytes,
       tombstone_bytes = excluded.tombstone_bytes, horizon_ms = excluded.horizon_ms, cleaned_ms = excluded.cleaned_ms`,
    [
      numbers((cleaning) => cleaning.partitionId),
      numbers((cleaning) => cleaning.cleanEnd),
      numbers((cleaning) => cleaning.cleanBytes),
      numbers((cleaning) => cleaning.tombstoneBytes),
      numbers((cleaning) => cleaning.horizonMs),
      numbers((cleaning) => cleaning.cleanedMs),
    ],
  );
}

/** Bytes that partitions no longer hold. */
class Freed {
  readonly #bytes = new Map<number, number>();

  add(partitionId: number, bytes: number): void {
    this.#bytes.set(partitionId, (this.#bytes.get(partitionId) ?? 0) + bytes);
  }

  /** Those that hold less (or more) than before. */
  partitions(): FreedBytes[] {
    return [...this.#bytes]
      .filter(([, bytes]) => bytes !== 0)
      .map(([partitionId, bytes]) => ({ partitionId, bytes }));
  }
}

interface ObjectRecord {
  readonly object_id: number;
  readonly key: string;
  readonly kind: LogObject['kind'];
  readonly generation: number;
  readonly state: ObjectState;
  readonly bytes: number;
  readonly created_ms: number;
  readonly changed_ms: number;
}

function toLogObject(row: ObjectRecord): LogObject {
  return {
    objectId: row.object_id,
    key: row.key,
    kind: row.kind,
    generation: row.generation,
    state: row.state,
    bytes: row.bytes,
    createdMs: row.created_ms,
    changedMs: row.changed_ms,
  };
}
