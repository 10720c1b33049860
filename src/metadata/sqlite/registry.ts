// The schema registry's state on SQLite. See metadata/registry.ts for the contract.
import { FloeError } from '../../base/error.ts';
import type {
  AddVersion,
  ContextId,
  DeleteVersions,
  ReferenceTarget,
  RegistryMetadata,
  RegistrySettingKind,
  SchemaContent,
  SchemaReferenceRow,
  SchemaRow,
  SubjectRow,
  SubjectVersionRow,
  VersionFilter,
} from '../registry.ts';
import type { Database, Migration } from './database.ts';

export const registryMigrations: readonly Migration[] = [
  {
    name: 'registry-1',
    sql: `
      -- AUTOINCREMENT: an id that a record may still carry is never given to another schema.
      CREATE TABLE registry_schemas (
        id INTEGER PRIMARY KEY AUTOINCREMENT, guid TEXT NOT NULL, type TEXT NOT NULL, text TEXT NOT NULL,
        refs TEXT NOT NULL, contract TEXT NOT NULL) STRICT;
      -- Not unique: an import may bring one content under two ids.
      CREATE INDEX registry_schemas_guid ON registry_schemas (guid, id);
      CREATE TABLE registry_subjects (
        subject TEXT PRIMARY KEY, stamp INTEGER NOT NULL, next_version INTEGER NOT NULL) STRICT, WITHOUT ROWID;
      CREATE TABLE registry_versions (
        subject TEXT NOT NULL, version INTEGER NOT NULL, id INTEGER NOT NULL REFERENCES registry_schemas,
        deleted INTEGER NOT NULL, PRIMARY KEY (subject, version)) STRICT, WITHOUT ROWID;
      CREATE INDEX registry_versions_id ON registry_versions (id);
      CREATE TABLE registry_references (
        subject TEXT NOT NULL, version INTEGER NOT NULL, by_id INTEGER NOT NULL REFERENCES registry_schemas ON DELETE CASCADE,
        PRIMARY KEY (subject, version, by_id)) STRICT, WITHOUT ROWID;
      CREATE TABLE registry_settings (
        kind TEXT NOT NULL, subject TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (kind, subject)) STRICT, WITHOUT ROWID;`,
  },
  {
    name: 'registry-contexts',
    sql: `
      -- last_id only grows: an id that a record may still carry is never given to another schema.
      CREATE TABLE registry_contexts (context TEXT PRIMARY KEY, last_id INTEGER NOT NULL) STRICT, WITHOUT ROWID;
      INSERT INTO registry_contexts SELECT '.', coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'registry_schemas'), 0);
      CREATE TABLE registry_contents (
        context TEXT NOT NULL, id INTEGER NOT NULL, guid TEXT NOT NULL, type TEXT NOT NULL, text TEXT NOT NULL,
        refs TEXT NOT NULL, contract TEXT NOT NULL, PRIMARY KEY (context, id)) STRICT;
      -- Not unique: an import may bring one content under two ids.
      CREATE INDEX registry_contents_guid ON registry_contents (guid, context, id);
      INSERT INTO registry_contents SELECT '.', id, guid, type, text, refs, contract FROM registry_schemas;
      CREATE TABLE registry_places (
        subject TEXT NOT NULL, version INTEGER NOT NULL, context TEXT NOT NULL, id INTEGER NOT NULL,
        deleted INTEGER NOT NULL, PRIMARY KEY (subject, version),
        FOREIGN KEY (context, id) REFERENCES registry_contents) STRICT, WITHOUT ROWID;
      CREATE INDEX registry_places_id ON registry_places (context, id);
      INSERT INTO registry_places SELECT subject, version, '.', id, deleted FROM registry_versions;
      CREATE TABLE registry_uses (
        subject TEXT NOT NULL, version INTEGER NOT NULL, context TEXT NOT NULL, by_id INTEGER NOT NULL,
        PRIMARY KEY (subject, version, context, by_id),
        FOREIGN KEY (context, by_id) REFERENCES registry_contents ON DELETE CASCADE) STRICT, WITHOUT ROWID;
      INSERT INTO registry_uses SELECT subject, version, '.', by_id FROM registry_references;
      DROP TABLE registry_references;
      DROP TABLE registry_versions;
      DROP TABLE registry_schemas;`,
  },
];

interface SchemaRecord {
  context: string;
  id: number;
  guid: string;
  type: string;
  text: string;
  refs: string;
  contract: string;
}
interface VersionRecord extends SchemaRecord {
  subject: string;
  version: number;
  deleted: number;
}

const VERSIONS = `SELECT v.subject, v.version, v.deleted, s.* FROM registry_places v JOIN registry_contents s USING (context, id)`;
/** Subjects with the prefix ?1, of the context ?3 unless that is null. */
const CHOSEN = `substr(v.subject, 1, length(?1)) = ?1 AND (?3 IS NULL OR v.context = ?3)`;

export class SqliteRegistry implements RegistryMetadata {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async schema({ context, id }: ContextId): Promise<SchemaRow | undefined> {
    return this.#schema(context, id);
  }

  async schemaByGuid(guid: string): Promise<SchemaRow | undefined> {
    const row = this.#db
      .prepare('SELECT * FROM registry_contents WHERE guid = ? ORDER BY context, id LIMIT 1')
      .get(guid) as unknown as SchemaRecord | undefined;
    return row === undefined ? undefined : toSchema(row);
  }

  async idsOfGuid(guid: string): Promise<readonly ContextId[]> {
    const rows = this.#db
      .prepare('SELECT context, id FROM registry_contents WHERE guid = ? ORDER BY context, id')
      .all(guid) as unknown as ContextId[];
    return rows.map(({ context, id }) => ({ context, id }));
  }

  async contexts(): Promise<readonly string[]> {
    const rows = this.#db
      .prepare('SELECT context FROM registry_contexts ORDER BY context')
      .all() as unknown as { context: string }[];
    return rows.map(({ context }) => context);
  }

  async places({ context, id }: ContextId) {
    const rows = this.#db
      .prepare(
        `SELECT subject, version, deleted FROM registry_places WHERE context = ? AND id = ?
         ORDER BY subject, version`,
      )
      .all(context, id) as unknown as VersionRecord[];
    return rows.map(({ subject, version, deleted }) => ({
      subject,
      version,
      deleted: deleted !== 0,
    }));
  }

  async subject(subject: string): Promise<SubjectRow> {
    return this.#db.transaction(() => {
      const rows = this.#db
        .prepare(`${VERSIONS} WHERE v.subject = ? ORDER BY v.version`)
        .all(subject) as unknown as VersionRecord[];
      return { ...this.#counters(subject), versions: rows.map(toVersion) };
    });
  }

  async subjects({ prefix, deleted, context }: VersionFilter) {
    const rows = this.#db
      .prepare(
        `SELECT v.subject, min(v.deleted) AS deleted FROM registry_places v WHERE ${CHOSEN}
         GROUP BY v.subject HAVING ?2 OR min(v.deleted) = 0 ORDER BY v.subject`,
      )
      .all(prefix, deleted ? 1 : 0, context ?? null) as unknown as VersionRecord[];
    return rows.map((row) => ({ subject: row.subject, allDeleted: row.deleted !== 0 }));
  }

  async versions({
    prefix,
    deleted,
    context,
  }: VersionFilter): Promise<readonly SubjectVersionRow[]> {
    const rows = this.#db
      .prepare(
        `${VERSIONS} WHERE ${CHOSEN} AND (?2 OR v.deleted = 0) ORDER BY v.subject, v.version`,
      )
      .all(prefix, deleted ? 1 : 0, context ?? null) as unknown as VersionRecord[];
    return rows.map(toVersion);
  }

  async referencedBy(subject: string, version: number): Promise<readonly number[]> {
    const rows = this.#db
      .prepare(
        `SELECT DISTINCT r.by_id AS id FROM registry_uses r WHERE r.subject = ? AND r.version = ?
         AND EXISTS (SELECT 1 FROM registry_places v
           WHERE v.context = r.context AND v.id = r.by_id AND v.deleted = 0) ORDER BY r.by_id`,
      )
      .all(subject, version) as unknown as { id: number }[];
    return rows.map((row) => row.id);
  }

  async addVersion(request: AddVersion): Promise<{ id: number; version: number }> {
    return this.#db.transaction(() => {
      this.#assertStamp(request.subject, request.stamp);
      for (const target of request.targets) this.#assertLive(target);
      const id =
        request.id === undefined ? this.#sameOrNewId(request) : this.#importId(request, request.id);
      const version = this.#place(request, id);
      return { id, version };
    });
  }

  async deleteVersions({ subject, stamp, versions, permanent }: DeleteVersions): Promise<void> {
    this.#db.transaction(() => {
      this.#assertStamp(subject, stamp);
      for (const version of versions) {
        this.#assertUnreferenced(subject, version);
        if (permanent) this.#remove(subject, version);
        else
          this.#db
            .prepare('UPDATE registry_places SET deleted = 1 WHERE subject = ? AND version = ?')
            .run(subject, version);
      }
      // A subject without any row starts again at version 1; its stamp goes on, for callers that hold the old one.
      const next = permanent && !this.#hasVersions(subject) ? 1 : undefined;
      this.#touch(subject, next);
    });
  }

  async setting(kind: RegistrySettingKind, subject: string): Promise<string | undefined> {
    return this.#setting(kind, subject);
  }

  async settings(kind: RegistrySettingKind, subjects: readonly string[]) {
    return subjects.map((subject) => this.#setting(kind, subject));
  }

  async setSetting(kind: RegistrySettingKind, subject: string, value: string | null) {
    return this.#db.transaction(() => {
      const before = this.#setting(kind, subject);
      if (value === null) {
        this.#db
          .prepare('DELETE FROM registry_settings WHERE kind = ? AND subject = ?')
          .run(kind, subject);
      } else {
        this.#db
          .prepare(
            'INSERT INTO registry_settings VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value',
          )
          .run(kind, subject, value);
      }
      return before;
    });
  }

  async counts(): Promise<{ schemas: number; versions: number }> {
    return this.#db
      .prepare(
        `SELECT (SELECT count(*) FROM registry_contents) AS schemas, (SELECT count(*) FROM registry_places) AS versions`,
      )
      .get() as { schemas: number; versions: number };
  }

  #schema(context: string, id: number): SchemaRow | undefined {
    const row = this.#db
      .prepare('SELECT * FROM registry_contents WHERE context = ? AND id = ?')
      .get(context, id) as unknown as SchemaRecord | undefined;
    return row === undefined ? undefined : toSchema(row);
  }

  #setting(kind: RegistrySettingKind, subject: string): string | undefined {
    const row = this.#db
      .prepare('SELECT value FROM registry_settings WHERE kind = ? AND subject = ?')
      .get(kind, subject);
    return row?.['value'] as string | undefined;
  }

  #counters(subject: string): Pick<SubjectRow, 'stamp' | 'nextVersion'> {
    const row = this.#db
      .prepare('SELECT stamp, next_version FROM registry_subjects WHERE subject = ?')
      .get(subject) as { stamp: number; next_version: number } | undefined;
    return { stamp: row?.stamp ?? 0, nextVersion: row?.next_version ?? 1 };
  }

  #assertStamp(subject: string, stamp: number): void {
    if (this.#counters(subject).stamp !== stamp) {
      throw new FloeError('conflict', `subject "${subject}" was changed meanwhile`);
    }
  }

  #assertLive({ subject, version }: ReferenceTarget): void {
    const row = this.#db
      .prepare('SELECT 1 FROM registry_places WHERE subject = ? AND version = ? AND deleted = 0')
      .get(subject, version);
    if (row === undefined) {
      throw new FloeError(
        'not-found',
        `referenced subject "${subject}" has no version ${version} any more`,
      );
    }
  }

  #assertUnreferenced(subject: string, version: number): void {
    const row = this.#db
      .prepare(
        `SELECT 1 FROM registry_uses r JOIN registry_places v ON v.context = r.context AND v.id = r.by_id
         WHERE r.subject = ? AND r.version = ? AND v.deleted = 0 LIMIT 1`,
      )
      .get(subject, version);
    if (row !== undefined) {
      throw new FloeError('invalid', `version ${version} of subject "${subject}" is referenced`, {
        details: { version },
      });
    }
  }

  #sameOrNewId({ context, content, targets }: AddVersion): number {
    const same = this.#db
      .prepare(
        'SELECT id FROM registry_contents WHERE guid = ? AND context = ? ORDER BY id LIMIT 1',
      )
      .get(content.guid, context);
    if (same !== undefined) return same['id'] as number;
    const next = this.#db
      .prepare(
        `INSERT INTO registry_contexts VALUES (?, 1)
         ON CONFLICT DO UPDATE SET last_id = last_id + 1 RETURNING last_id`,
      )
      .get(context)!['last_id'] as number;
    this.#insertSchema({ context, id: next }, content, targets);
    return next;
  }

  #importId({ context, content, targets }: AddVersion, id: number): number {
    const holder = this.#schema(context, id);
    if (holder !== undefined && holder.guid !== content.guid) {
      throw new FloeError('conflict', `id ${id} belongs to another schema`, {
        details: { taken: 'id' },
      });
    }
    if (holder === undefined) {
      this.#db
        .prepare(
          `INSERT INTO registry_contexts VALUES (?1, ?2)
           ON CONFLICT DO UPDATE SET last_id = max(last_id, ?2)`,
        )
        .run(context, id);
      this.#insertSchema({ context, id }, content, targets);
    }
    return id;
  }

  #insertSchema(
    { context, id }: ContextId,
    content: SchemaContent,
    targets: readonly ReferenceTarget[],
  ): void {
    const { type, schema, references, contract, guid } = content;
    this.#db
      .prepare('INSERT INTO registry_contents VALUES (?, ?, ?, ?, ?, ?, ?)')
      .run(context, id, guid, type, schema, JSON.stringify(references), contract);
    for (const target of targets) {
      this.#db
        .prepare('INSERT INTO registry_uses VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING')
        .run(target.subject, target.version, context, id);
    }
  }

  /** Inserts the version and moves the subject's next version and stamp. */
  #place({ subject, context, version: asked }: AddVersion, id: number): number {
    const next = this.#counters(subject).nextVersion;
    const version = asked ?? next;
    const holder = this.#db
      .prepare('SELECT id FROM registry_places WHERE subject = ? AND version = ?')
      .get(subject, version);
    if (holder !== undefined && holder['id'] !== id) {
      throw new FloeError(
        'conflict',
        `version ${version} of subject "${subject}" is another schema`,
        { details: { taken: 'version' } },
      );
    }
    this.#db
      .prepare(
        'INSERT INTO registry_places VALUES (?, ?, ?, ?, 0) ON CONFLICT DO UPDATE SET deleted = 0',
      )
      .run(subject, version, context, id);
    this.#touch(subject, Math.max(next, version + 1));
    return version;
  }

  #touch(subject: string, nextVersion?: number): void {
    this.#db
      .prepare(
        `INSERT INTO registry_subjects VALUES (?1, 1, coalesce(?2, 1))
         ON CONFLICT DO UPDATE SET stamp = stamp + 1, next_version = coalesce(?2, next_version)`,
      )
      .run(subject, nextVersion ?? null);
  }

  #hasVersions(subject: string): boolean {
    return (
      this.#db.prepare('SELECT 1 FROM registry_places WHERE subject = ? LIMIT 1').get(subject) !==
      undefined
    );
  }

  /** Removes the version's row and its schema when that was the last place. */
  #remove(subject: string, version: number): void {
    const row = this.#db
      .prepare(
        'DELETE FROM registry_places WHERE subject = ? AND version = ? RETURNING context, id',
      )
      .get(subject, version);
    if (row === undefined) return;
    this.#db
      .prepare(
        `DELETE FROM registry_contents WHERE context = ?1 AND id = ?2
         AND NOT EXISTS (SELECT 1 FROM registry_places WHERE context = ?1 AND id = ?2)`,
      )
      .run(row['context']!, row['id']!);
  }
}

function toSchema(row: SchemaRecord): SchemaRow {
  return {
    context: row.context,
    id: row.id,
    guid: row.guid,
    type: row.type,
    schema: row.text,
    references: JSON.parse(row.refs) as SchemaReferenceRow[],
    contract: row.contract,
  };
}

function toVersion(row: VersionRecord): SubjectVersionRow {
  return {
    ...toSchema(row),
    subject: row.subject,
    version: row.version,
    deleted: row.deleted !== 0,
  };
}
