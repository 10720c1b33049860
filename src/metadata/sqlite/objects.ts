// Objects of the log on SQLite, over the tables of sqlite/log.ts. See metadata/objects.ts for the contract.
import { assert } from '../../base/assert.ts';
import { FloeError } from '../../base/error.ts';
import { checkTimely } from '../flush-outcome.ts';
import type { LeaseToken } from '../leases.ts';
import type { FlushRow, NewObjectEntry, ObjectEntry } from '../log.ts';
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
import type { Database, Migration } from './database.ts';
import { assertLeases, type LeaseEpochs } from './lease-epochs.ts';
import type { SqliteLog } from './log.ts';
import { FLUSH_COLUMNS, toFlushRow, toObjectEntry } from './log-rows.ts';
import type { VersionCounter } from './versions.ts';

export const objectsMigrations: readonly Migration[] = [
  {
    name: 'objects-1',
    // Few objects are ever on their way out; the rest must not be looked through for them.
    sql: `CREATE INDEX log_objects_leaving ON log_objects (state, changed_ms)
      WHERE state IN ('deleting', 'deleted');`,
  },
  {
    name: 'objects-2',
    // How far compaction by key has come: metadata/objects.ts, Cleaning.
    sql: `CREATE TABLE log_cleanings (
      partition_id INTEGER PRIMARY KEY, clean_end INTEGER NOT NULL, clean_bytes INTEGER NOT NULL,
      tombstone_bytes INTEGER NOT NULL, horizon_ms INTEGER NOT NULL, cleaned_ms INTEGER NOT NULL) STRICT;`,
  },
  {
    name: 'objects-3',
    // What maintainers are at work on: metadata/objects.ts, `claim`.
    sql: `CREATE TABLE log_claims (
      object_id INTEGER PRIMARY KEY, lease TEXT NOT NULL, epoch INTEGER NOT NULL) STRICT;`,
  },
  {
    name: 'objects-4',
    // The version of `cleanings` by which each row was written last.
    sql: `ALTER TABLE log_cleanings ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
      CREATE INDEX log_cleanings_version ON log_cleanings (version);`,
  },
];

const OBJECT_COLUMNS = 'object_id, key, kind, generation, state, bytes, created_ms, changed_ms';

export class SqliteObjects implements ObjectsMetadata {
  readonly #db: Database;
  readonly #log: SqliteLog;
  readonly #leases: LeaseEpochs;
  readonly #versions: VersionCounter;

  constructor(
    db: Database,
    { log, leases, versions }: { log: SqliteLog; leases: LeaseEpochs; versions: VersionCounter },
  ) {
    this.#db = db;
    this.#log = log;
    this.#leases = leases;
    this.#versions = versions;
  }

  async list(state: ObjectState, afterId: number, limit: number): Promise<readonly LogObject[]> {
    return this.#db
      .prepare(`SELECT ${OBJECT_COLUMNS} FROM log_objects WHERE state = ? AND object_id > ?
        ORDER BY object_id LIMIT ?`)
      .all(state, afterId, limit)
      .map(toLogObject);
  }

  async notOpen(objectIds: readonly number[]): Promise<readonly number[]> {
    return this.#db
      .prepare(`SELECT value FROM json_each(?) WHERE NOT EXISTS
        (SELECT 1 FROM log_objects WHERE object_id = value AND state = 'open')`)
      .all(JSON.stringify(objectIds))
      .map((row) => Number(row['value']));
  }

  async uses(afterId: number, limit: number): Promise<readonly ObjectUse[]> {
    const use =
      this.#db.prepare(`SELECT COUNT(*) AS entries, SUM(bytes) AS bytes, SUM(run_count) AS runs
      FROM object_entries WHERE object_id = ?`);
    return (await this.list('sealed', afterId, limit)).map((object) => {
      const row = use.get(object.objectId)!;
      return {
        object,
        entries: Number(row['entries']),
        liveBytes: Number(row['bytes'] ?? 0),
        runs: Number(row['runs'] ?? 0),
      };
    });
  }

  async entriesOf(objectIds: readonly number[]): Promise<readonly ObjectEntry[]> {
    const select = this.#db.prepare(`SELECT object_entries.*, key
      FROM object_entries JOIN log_objects USING (object_id) WHERE object_id = ?`);
    const entries = objectIds.flatMap((objectId) => select.all(objectId).map(toObjectEntry));
    return entries.sort((a, b) => a.partitionId - b.partitionId || a.baseOffset - b.baseOffset);
  }

  async flushesOf(objectIds: readonly number[]): Promise<readonly FlushRow[]> {
    return this.#db
      .prepare(`SELECT ${FLUSH_COLUMNS}
        FROM flushes JOIN log_objects USING (object_id)
        WHERE object_id IN (SELECT value FROM json_each(?)) ORDER BY commit_number`)
      .all(JSON.stringify(objectIds))
      .map(toFlushRow);
  }

  async entryAtTime(
    partitionId: number,
    timestampMs: number,
    fromOffset: number,
  ): Promise<ObjectEntry | undefined> {
    const row = this.#db
      .prepare(`SELECT object_entries.*, key FROM object_entries JOIN log_objects USING (object_id)
        WHERE partition_id = ? AND end_offset > ? AND max_timestamp >= ? ORDER BY base_offset LIMIT 1`)
      .get(partitionId, fromOffset, timestampMs);
    return row === undefined ? undefined : toObjectEntry(row);
  }

  async claim(lease: LeaseToken, objectIds: readonly number[]): Promise<boolean> {
    return this.#db.transaction(() => {
      assertLeases(this.#leases, [lease]);
      const ids = JSON.stringify(objectIds);
      const claims = this.#claims('object_id IN (SELECT value FROM json_each(?))', ids);
      if (claims.some((claim) => claim.name !== lease.name && this.#leases.isLive(claim)))
        return false;
      this.#db.prepare('DELETE FROM log_claims WHERE lease = ?').run(lease.name);
      this.#db
        .prepare('INSERT OR REPLACE INTO log_claims SELECT value, ?, ? FROM json_each(?)')
        .run(lease.name, lease.epoch, ids);
      return true;
    });
  }

  async claimedByOthers({ name }: LeaseToken): Promise<readonly number[]> {
    return this.#claims('lease <> ?', name)
      .filter((claim) => this.#leases.isLive(claim))
      .map(({ objectId }) => objectId);
  }

  #claims(where: string, value: string): readonly Claim[] {
    return this.#db
      .prepare(`SELECT object_id AS objectId, lease AS name, epoch FROM log_claims WHERE ${where}`)
      .all(value) as unknown as Claim[];
  }

  #checkClaims({ lease, claimed, ...request }: ReplaceEntries): void {
    if (claimed !== true || lease === undefined) return;
    const sources = sourcesOf(request);
    const mine = this.#claims(
      'object_id IN (SELECT value FROM json_each(?))',
      JSON.stringify(sources),
    ).filter(({ name, epoch }) => name === lease.name && epoch === lease.epoch);
    if (mine.length !== sources.length) throw unclaimed(lease);
  }

  async replace(request: ReplaceEntries): Promise<number> {
    return this.#db.transaction(() => {
      assertLeases(this.#leases, request.lease === undefined ? [] : [request.lease]);
      const known = this.#db
        .prepare('SELECT object_id, state FROM log_objects WHERE key = ?')
        .get(request.object.key);
      if (known?.['state'] === 'sealed') return Number(known['object_id']);
      if (known !== undefined)
        throw new FloeError('conflict', `object ${request.object.key} is ${known['state']}`);
      checkTimely(request, request.nowMs);
      this.#checkClaims(request);
      const freed = new Freed();
      for (const entry of request.replaced) freed.add(entry.partitionId, this.#giveWay(entry));
      this.#checkOpen(request);
      for (const objectId of request.openObjects) this.#sealOpen(objectId, freed);
      this.#checkOrder(request);
      const objectId = this.#insertObject(request);
      for (const entry of request.entries)
        freed.add(entry.partitionId, -this.#insertEntry(objectId, entry));
      this.#takeOff(freed);
      this.#noteCleaned(request.cleanings ?? []);
      return objectId;
    });
  }

  async cleanings(): Promise<readonly Cleaning[]> {
    // Left by a program of the version before, which deleted topics without them.
    this.#db
      .prepare(`DELETE FROM log_cleanings
        WHERE partition_id NOT IN (SELECT partition_id FROM log_partitions)`)
      .run();
    return this.#db
      .prepare('SELECT * FROM log_cleanings')
      .all()
      .map((row) => ({
        partitionId: Number(row['partition_id']),
        cleanEnd: Number(row['clean_end']),
        cleanBytes: Number(row['clean_bytes']),
        tombstoneBytes: Number(row['tombstone_bytes']),
        horizonMs: Number(row['horizon_ms']),
        cleanedMs: Number(row['cleaned_ms']),
      }));
  }

  async cleanedSince(version: number): Promise<Cleaned> {
    const rows = this.#db
      .prepare(
        'SELECT partition_id, clean_end, version FROM log_cleanings WHERE version > ? ORDER BY version',
      )
      .all(version);
    return {
      version: Number(rows.at(-1)?.['version'] ?? version),
      cleanings: rows.map((row) => ({
        partitionId: Number(row['partition_id']),
        cleanEnd: Number(row['clean_end']),
      })),
    };
  }

  async noteCleaned(cleanings: readonly Cleaning[]): Promise<void> {
    this.#db.transaction(() => this.#noteCleaned(cleanings));
  }

  #noteCleaned(cleanings: readonly Cleaning[]): void {
    if (cleanings.length > 0) this.#versions.raise('cleanings');
    const note = this.#db.prepare(`INSERT OR REPLACE INTO log_cleanings
      SELECT ?1, ?2, ?3, ?4, ?5, ?6, (SELECT version FROM versions WHERE domain = 'cleanings')
      WHERE EXISTS (SELECT 1 FROM log_partitions WHERE partition_id = ?1)`);
    for (const cleaning of cleanings) {
      const { partitionId, cleanEnd, cleanBytes, tombstoneBytes, horizonMs, cleanedMs } = cleaning;
      note.run(partitionId, cleanEnd, cleanBytes, tombstoneBytes, horizonMs, cleanedMs);
    }
  }

  /** Takes freed bytes off the partitions' sizes. Joins the transaction: it has done its work when it returns. */
  #takeOff(freed: Freed): readonly FreedBytes[] {
    const partitions = freed.partitions();
    const moves = partitions.map(({ partitionId, bytes }) => ({
      partitionId,
      // A log start never moves back, so this leaves it where it is.
      logStartOffset: 0,
      freedBytes: bytes,
    }));
    if (moves.length > 0) void this.#log.moveLogStarts(moves);
    return partitions;
  }

  /** A row that is gone is fine when its partition ended or its log start has passed it. Returns its bytes. */
  #giveWay({ partitionId, baseOffset, endOffset, objectId }: ReplacedEntry): number {
    const [row] = this.#db
      .prepare(`DELETE FROM object_entries
        WHERE partition_id = ? AND base_offset = ? AND end_offset = ? AND object_id = ? RETURNING bytes`)
      .all(partitionId, baseOffset, endOffset, objectId);
    if (row !== undefined) return Number(row['bytes']);
    if (!this.#isLive(partitionId, endOffset)) return 0;
    throw new FloeError(
      'conflict',
      `entry ${partitionId}/${baseOffset} of object ${objectId} changed under its compaction`,
    );
  }

  #isLive(partitionId: number, endOffset: number): boolean {
    const row = this.#db
      .prepare('SELECT log_start FROM log_partitions WHERE partition_id = ?')
      .get(partitionId);
    return row !== undefined && endOffset > Number(row['log_start']);
  }

  #checkOpen({ openObjects, openCommit = Infinity }: ReplaceEntries): void {
    if (openObjects.length === 0) return;
    const newer = this.#db
      .prepare(`SELECT object_id FROM flushes
        WHERE commit_number > ? AND object_id IN (SELECT value FROM json_each(?)) LIMIT 1`)
      .get(Math.min(openCommit, Number.MAX_SAFE_INTEGER), JSON.stringify(openObjects));
    if (newer !== undefined)
      throw new FloeError(
        'conflict',
        `object ${newer['object_id']} was added to under its compaction`,
      );
  }

  /** Those that give way are sealed by now. */
  #checkOrder({ openObjects }: ReplaceEntries): void {
    const older = this.#db
      .prepare(`SELECT object_id FROM log_objects WHERE state = 'open' AND kind = 'object'
        AND object_id < (SELECT MAX(value) FROM json_each(?)) LIMIT 1`)
      .get(JSON.stringify(openObjects));
    if (older !== undefined) throw overtaking(Number(older['object_id']));
  }

  #sealOpen(objectId: number, freed: Freed): void {
    const flushes = this.#db.prepare('SELECT packed_index FROM flushes WHERE object_id = ?');
    for (const row of flushes.all(objectId)) {
      const { count, partitionIds, lengths } = openIndex(row['packed_index'] as Uint8Array);
      for (let n = 0; n < count; n += 1) freed.add(partitionIds[n]!, lengths[n]!);
    }
    const { changes } = this.#db
      .prepare("UPDATE log_objects SET state = 'sealed' WHERE object_id = ? AND state = 'open'")
      .run(objectId);
    if (Number(changes) !== 1)
      throw new FloeError('conflict', `object ${objectId} is no longer open`);
  }

  #insertObject({ object, entries, nowMs }: ReplaceEntries): number {
    const live = entries.reduce((sum, entry) => sum + entry.bytes, 0);
    const { lastInsertRowid } = this.#db
      .prepare(`INSERT INTO log_objects (key, kind, generation, state, bytes, live_bytes, created_ms, changed_ms)
        VALUES (?, 'object', 0, 'sealed', ?, ?, ?, ?)`)
      .run(object.key, object.bytes, live, nowMs, nowMs);
    return Number(lastInsertRowid);
  }

  /** Returns the bytes that are referred to now. */
  #insertEntry(objectId: number, entry: NewObjectEntry): number {
    if (!this.#isLive(entry.partitionId, entry.endOffset)) return 0;
    this.#db
      .prepare(`INSERT INTO object_entries (partition_id, base_offset, end_offset, object_id, index_position,
        index_length, bytes, record_count, run_count, max_timestamp, commit_number)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
      .run(
        entry.partitionId,
        entry.baseOffset,
        entry.endOffset,
        objectId,
        entry.indexPosition,
        entry.indexLength,
        entry.bytes,
        entry.recordCount,
        entry.runCount,
        entry.maxTimestamp,
        entry.commitNumber,
      );
    return entry.bytes;
  }

  async dropExpired(limit: number): Promise<readonly FreedBytes[]> {
    return this.#db.transaction(() => {
      const freed = new Freed();
      for (const row of this.#expired(limit)) {
        const partitionId = Number(row['partition_id']);
        freed.add(partitionId, Number(row['bytes']));
        this.#db
          .prepare('DELETE FROM object_entries WHERE partition_id = ? AND base_offset = ?')
          .run(partitionId, Number(row['base_offset']));
      }
      return this.#takeOff(freed);
    });
  }

  #expired(limit: number) {
    // Driven by the partitions: each looks at its oldest entries only.
    return this.#db
      .prepare(`SELECT e.partition_id, e.base_offset, e.bytes
        FROM log_partitions p JOIN object_entries e ON e.partition_id = p.partition_id
        WHERE p.log_start > 0 AND e.base_offset < p.log_start AND e.end_offset <= p.log_start LIMIT ?`)
      .all(limit);
  }

  async claimUnreferenced(nowMs: number, limit: number): Promise<readonly LogObject[]> {
    return this.#db.transaction(() =>
      this.#db
        .prepare(`UPDATE log_objects SET state = 'deleting', changed_ms = ? WHERE object_id IN (
            SELECT object_id FROM log_objects o WHERE state = 'sealed'
              AND NOT EXISTS (SELECT 1 FROM object_entries e WHERE e.object_id = o.object_id) LIMIT ?)
          RETURNING ${OBJECT_COLUMNS}`)
        .all(nowMs, limit)
        .map(toLogObject),
    );
  }

  async claimKeys(keys: readonly string[], nowMs: number): Promise<readonly string[]> {
    return this.#db.transaction(() => {
      const insert = this.#db.prepare(`INSERT INTO log_objects
        (key, kind, generation, state, bytes, live_bytes, created_ms, changed_ms)
        VALUES (?, 'object', 0, 'deleting', 0, 0, ?, ?) ON CONFLICT (key) DO NOTHING`);
      return keys.filter((key) => Number(insert.run(key, nowMs, nowMs).changes) === 1);
    });
  }

  async deletable(beforeMs: number, limit: number): Promise<readonly LogObject[]> {
    return this.#db
      .prepare(`SELECT ${OBJECT_COLUMNS} FROM log_objects
        WHERE state = 'deleting' AND changed_ms <= ? ORDER BY object_id LIMIT ?`)
      .all(beforeMs, limit)
      .map(toLogObject);
  }

  async forget(objectIds: readonly number[]): Promise<void> {
    const ids = JSON.stringify(objectIds);
    this.#db.transaction(() => {
      const referenced = this.#db
        .prepare(`SELECT object_id FROM object_entries
          WHERE object_id IN (SELECT value FROM json_each(?)) LIMIT 1`)
        .get(ids);
      assert(referenced === undefined, 'L10: no referenced object is forgotten');
      this.#db
        .prepare(`UPDATE log_objects SET state = 'deleted'
          WHERE state = 'deleting' AND object_id IN (SELECT value FROM json_each(?))`)
        .run(ids);
      this.#db
        .prepare('DELETE FROM log_claims WHERE object_id IN (SELECT value FROM json_each(?))')
        .run(ids);
      this.#db
        .prepare(`DELETE FROM log_objects
          WHERE state = 'deleted' AND object_id NOT IN (SELECT object_id FROM flushes)`)
        .run();
    });
  }
}

/** An object that a maintainer is at work on, under its lease. */
interface Claim extends LeaseToken {
  readonly objectId: number;
}

/** Bytes that partitions no longer hold. */
class Freed {
  readonly #bytes = new Map<number, number>();

  add(partitionId: number, bytes: number): void {
    this.#bytes.set(partitionId, (this.#bytes.get(partitionId) ?? 0) + bytes);
  }

  /** Those that hold less than before. */
  partitions(): FreedBytes[] {
    return [...this.#bytes]
      .filter(([, bytes]) => bytes !== 0)
      .map(([partitionId, bytes]) => ({ partitionId, bytes }));
  }
}

function toLogObject(row: Record<string, unknown>): LogObject {
  return {
    objectId: Number(row['object_id']),
    key: row['key'] as string,
    kind: row['kind'] as LogObject['kind'],
    generation: Number(row['generation']),
    state: row['state'] as ObjectState,
    bytes: Number(row['bytes']),
    createdMs: Number(row['created_ms']),
    changedMs: Number(row['changed_ms']),
  };
}
