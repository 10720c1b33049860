// The schema registry's state on SQLite. See metadata/registry.ts for the contract.
import { FloeError } from '../../base/error.ts';
import type {
  AddVersion,
  DeleteVersions,
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
];

interface SchemaRecord {
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

const VERSIONS = `SELECT v.subject, v.version, v.deleted, s.* FROM registry_versions v JOIN registry_schemas s USING (id)`;

export class SqliteRegistry implements RegistryMetadata {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async schema(id: number): Promise<SchemaRow | undefined> {
    return this.#schema('SELECT * FROM registry_schemas WHERE id = ?', id);
  }

  async schemaByGuid(guid: string): Promise<SchemaRow | undefined> {
    return this.#schema('SELECT * FROM registry_schemas WHERE guid = ? ORDER BY id LIMIT 1', guid);
  }

  async places(id: number) {
    const rows = this.#db
      .prepare(
        'SELECT subject, version, deleted FROM registry_versions WHERE id = ? ORDER BY subject, version',
      )
      .all(id) as unknown as VersionRecord[];
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
      return { stamp: this.#stamp(subject), versions: rows.map(toVersion) };
    });
  }

  async subjects({ prefix, deleted }: VersionFilter) {
    const rows = this.#db
      .prepare(
        `SELECT subject, min(deleted) AS deleted FROM registry_versions
         WHERE substr(subject, 1, length(?1)) = ?1 GROUP BY subject HAVING ?2 OR min(deleted) = 0 ORDER BY subject`,
      )
      .all(prefix, deleted ? 1 : 0) as unknown as VersionRecord[];
    return rows.map((row) => ({ subject: row.subject, allDeleted: row.deleted !== 0 }));
  }

  async versions({ prefix, deleted }: VersionFilter): Promise<readonly SubjectVersionRow[]> {
    const rows = this.#db
      .prepare(
        `${VERSIONS} WHERE substr(v.subject, 1, length(?1)) = ?1 AND (?2 OR v.deleted = 0)
         ORDER BY v.subject, v.version`,
      )
      .all(prefix, deleted ? 1 : 0) as unknown as VersionRecord[];
    return rows.map(toVersion);
  }

  async referencedBy(subject: string, version: number): Promise<readonly number[]> {
    const rows = this.#db
      .prepare(
        `SELECT r.by_id AS id FROM registry_references r WHERE r.subject = ? AND r.version = ?
         AND EXISTS (SELECT 1 FROM registry_versions v WHERE v.id = r.by_id AND v.deleted = 0) ORDER BY r.by_id`,
      )
      .all(subject, version) as unknown as { id: number }[];
    return rows.map((row) => row.id);
  }

  async addVersion(request: AddVersion): Promise<{ id: number; version: number }> {
    return this.#db.transaction(() => {
      this.#assertStamp(request.subject, request.stamp);
      for (const reference of request.content.references) this.#assertLive(reference);
      const id =
        request.id === undefined
          ? this.#sameOrNewId(request.content)
          : this.#importId(request.id, request.content);
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
            .prepare('UPDATE registry_versions SET deleted = 1 WHERE subject = ? AND version = ?')
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
        `SELECT (SELECT count(*) FROM registry_schemas) AS schemas, (SELECT count(*) FROM registry_versions) AS versions`,
      )
      .get() as { schemas: number; versions: number };
  }

  #schema(sql: string, key: number | string): SchemaRow | undefined {
    const row = this.#db.prepare(sql).get(key) as unknown as SchemaRecord | undefined;
    return row === undefined ? undefined : toSchema(row);
  }

  #setting(kind: RegistrySettingKind, subject: string): string | undefined {
    const row = this.#db
      .prepare('SELECT value FROM registry_settings WHERE kind = ? AND subject = ?')
      .get(kind, subject);
    return row?.['value'] as string | undefined;
  }

  #stamp(subject: string): number {
    const row = this.#db
      .prepare('SELECT stamp FROM registry_subjects WHERE subject = ?')
      .get(subject);
    return (row?.['stamp'] as number | undefined) ?? 0;
  }

  #assertStamp(subject: string, stamp: number): void {
    if (this.#stamp(subject) !== stamp) {
      throw new FloeError('conflict', `subject "${subject}" was changed meanwhile`);
    }
  }

  #assertLive({ subject, version }: SchemaReferenceRow): void {
    const row = this.#db
      .prepare('SELECT 1 FROM registry_versions WHERE subject = ? AND version = ? AND deleted = 0')
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
        `SELECT 1 FROM registry_references r JOIN registry_versions v ON v.id = r.by_id
         WHERE r.subject = ? AND r.version = ? AND v.deleted = 0 LIMIT 1`,
      )
      .get(subject, version);
    if (row !== undefined) {
      throw new FloeError('invalid', `version ${version} of subject "${subject}" is referenced`, {
        details: { version },
      });
    }
  }

  #sameOrNewId(content: SchemaContent): number {
    const same = this.#db
      .prepare('SELECT id FROM registry_schemas WHERE guid = ? ORDER BY id LIMIT 1')
      .get(content.guid);
    return (same?.['id'] as number | undefined) ?? this.#insertSchema(null, content);
  }

  #importId(id: number, content: SchemaContent): number {
    const holder = this.#schema('SELECT * FROM registry_schemas WHERE id = ?', id);
    if (holder === undefined) return this.#insertSchema(id, content);
    if (holder.guid !== content.guid) {
      throw new FloeError('conflict', `id ${id} belongs to another schema`, {
        details: { taken: 'id' },
      });
    }
    return id;
  }

  #insertSchema(id: number | null, content: SchemaContent): number {
    const { type, schema, references, contract, guid } = content;
    const inserted = this.#db
      .prepare(
        'INSERT INTO registry_schemas (id, guid, type, text, refs, contract) VALUES (?, ?, ?, ?, ?, ?)',
      )
      .run(id, guid, type, schema, JSON.stringify(references), contract);
    const newId = Number(inserted.lastInsertRowid);
    for (const reference of references) {
      this.#db
        .prepare('INSERT INTO registry_references VALUES (?, ?, ?) ON CONFLICT DO NOTHING')
        .run(reference.subject, reference.version, newId);
    }
    return newId;
  }

  /** Inserts the version and moves the subject's next version and stamp. */
  #place({ subject, version: asked }: AddVersion, id: number): number {
    const row = this.#db
      .prepare('SELECT next_version FROM registry_subjects WHERE subject = ?')
      .get(subject);
    const next = (row?.['next_version'] as number | undefined) ?? 1;
    const version = asked ?? next;
    const holder = this.#db
      .prepare('SELECT id FROM registry_versions WHERE subject = ? AND version = ?')
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
        'INSERT INTO registry_versions VALUES (?, ?, ?, 0) ON CONFLICT DO UPDATE SET deleted = 0',
      )
      .run(subject, version, id);
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
      this.#db.prepare('SELECT 1 FROM registry_versions WHERE subject = ? LIMIT 1').get(subject) !==
      undefined
    );
  }

  /** Removes the version's row and its schema when that was the last place. */
  #remove(subject: string, version: number): void {
    const row = this.#db
      .prepare('DELETE FROM registry_versions WHERE subject = ? AND version = ? RETURNING id')
      .get(subject, version);
    if (row === undefined) return;
    this.#db
      .prepare(
        `DELETE FROM registry_schemas WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM registry_versions WHERE id = ?1)`,
      )
      .run(row['id']!);
  }
}

function toSchema(row: SchemaRecord): SchemaRow {
  return {
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
