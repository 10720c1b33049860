// The schema registry's state on PostgreSQL. See metadata/registry.ts for the contract.
// Order of locks: the subject's row, then the places that are referred to or deleted, then the context's row, whose
// lock gives out ids: one after the other, so that equal contents find each other and no id is skipped.
import { FloeError } from '../../base/error.ts';
import type {
  AddVersion,
  ContextId,
  DeleteVersions,
  ReferenceTarget,
  RegistryMetadata,
  RegistrySettingKind,
  SchemaReferenceRow,
  SchemaRow,
  SubjectRow,
  SubjectVersionRow,
  VersionFilter,
} from '../registry.ts';
import type { Database, Sql, Transaction } from './database.ts';
import type { Migration } from './migrations.ts';

export const registryMigrations: readonly Migration[] = [
  {
    name: 'registry-1',
    sql: `
      -- last_id only grows: an id that a record may still carry is never given to another schema.
      CREATE TABLE registry_contexts (context text COLLATE "C" PRIMARY KEY, last_id int8 NOT NULL);
      INSERT INTO registry_contexts VALUES ('.', 0);
      CREATE TABLE registry_contents (
        context text COLLATE "C", id int8, guid text COLLATE "C" NOT NULL, type text NOT NULL, text text NOT NULL,
        refs text NOT NULL, contract text NOT NULL, PRIMARY KEY (context, id));
      -- Not unique: an import may bring one content under two ids.
      CREATE INDEX registry_contents_guid ON registry_contents (guid, context, id);
      CREATE TABLE registry_subjects (
        subject text COLLATE "C" PRIMARY KEY, stamp int8 NOT NULL, next_version int8 NOT NULL);
      CREATE TABLE registry_places (
        subject text COLLATE "C", version int8, context text COLLATE "C" NOT NULL, id int8 NOT NULL,
        deleted bool NOT NULL, PRIMARY KEY (subject, version),
        FOREIGN KEY (context, id) REFERENCES registry_contents);
      CREATE INDEX registry_places_id ON registry_places (context, id);
      CREATE TABLE registry_uses (
        subject text COLLATE "C", version int8, context text COLLATE "C", by_id int8,
        PRIMARY KEY (subject, version, context, by_id),
        FOREIGN KEY (context, by_id) REFERENCES registry_contents ON DELETE CASCADE);
      CREATE INDEX registry_uses_by_user ON registry_uses (context, by_id);
      CREATE TABLE registry_settings (
        kind text COLLATE "C", subject text COLLATE "C", value text NOT NULL, PRIMARY KEY (kind, subject));`,
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
  deleted: boolean;
}
interface Counters {
  stamp: number;
  next_version: number;
}

const VERSIONS = `SELECT v.subject, v.version, v.deleted, s.* FROM registry_places v
  JOIN registry_contents s USING (context, id)`;
/** Subjects with the prefix $1, of the context $3 unless that is null. */
const CHOSEN = 'starts_with(v.subject, $1) AND ($3::text IS NULL OR v.context = $3)';

export class PostgresRegistry implements RegistryMetadata {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async schema(id: ContextId): Promise<SchemaRow | undefined> {
    return findSchema(this.#db.on('read'), id);
  }

  async schemaByGuid(guid: string): Promise<SchemaRow | undefined> {
    const row = await this.#db
      .on('read')
      .row<SchemaRecord>(
        'SELECT * FROM registry_contents WHERE guid = $1 ORDER BY context, id LIMIT 1',
        [guid],
      );
    return row === undefined ? undefined : toSchema(row);
  }

  async idsOfGuid(guid: string): Promise<readonly ContextId[]> {
    return this.#db
      .on('read')
      .rows<ContextId>(
        'SELECT context, id FROM registry_contents WHERE guid = $1 ORDER BY context, id',
        [guid],
      );
  }

  async contexts(): Promise<readonly string[]> {
    const rows = await this.#db
      .on('read')
      .rows<{ context: string }>('SELECT context FROM registry_contexts ORDER BY context');
    return rows.map(({ context }) => context);
  }

  async places({ context, id }: ContextId) {
    return this.#db.on('read').rows<Pick<SubjectVersionRow, 'subject' | 'version' | 'deleted'>>(
      `SELECT subject, version, deleted FROM registry_places WHERE context = $1 AND id = $2
         ORDER BY subject, version`,
      [context, id],
    );
  }

  async subject(subject: string): Promise<SubjectRow> {
    return this.#db.snapshot('read', async (tx) => {
      const [counters, rows] = await Promise.all([
        tx.row<Counters>('SELECT stamp, next_version FROM registry_subjects WHERE subject = $1', [
          subject,
        ]),
        tx.rows<VersionRecord>(`${VERSIONS} WHERE v.subject = $1 ORDER BY v.version`, [subject]),
      ]);
      const { stamp, next_version: nextVersion } = counters ?? { stamp: 0, next_version: 1 };
      return { stamp, nextVersion, versions: rows.map(toVersion) };
    });
  }

  async subjects({ prefix, deleted, context }: VersionFilter) {
    const rows = await this.#db.on('read').rows<{ subject: string; deleted: boolean }>(
      `SELECT v.subject, bool_and(v.deleted) AS deleted FROM registry_places v WHERE ${CHOSEN}
       GROUP BY v.subject HAVING $2 OR NOT bool_and(v.deleted) ORDER BY v.subject`,
      [prefix, deleted, context ?? null],
    );
    return rows.map((row) => ({ subject: row.subject, allDeleted: row.deleted }));
  }

  async versions(filter: VersionFilter): Promise<readonly SubjectVersionRow[]> {
    const { prefix, deleted, context } = filter;
    const rows = await this.#db
      .on('read')
      .rows<VersionRecord>(
        `${VERSIONS} WHERE ${CHOSEN} AND ($2 OR NOT v.deleted) ORDER BY v.subject, v.version`,
        [prefix, deleted, context ?? null],
      );
    return rows.map(toVersion);
  }

  async referencedBy(subject: string, version: number): Promise<readonly number[]> {
    const rows = await this.#db.on('read').rows<{ id: number }>(
      `SELECT DISTINCT r.by_id AS id FROM registry_uses r WHERE r.subject = $1 AND r.version = $2
       AND EXISTS (SELECT 1 FROM registry_places v
         WHERE v.context = r.context AND v.id = r.by_id AND NOT v.deleted) ORDER BY r.by_id`,
      [subject, version],
    );
    return rows.map((row) => row.id);
  }

  async addVersion(request: AddVersion): Promise<{ id: number; version: number }> {
    return this.#db.transaction('write', async (tx) => {
      const counters = await lockSubject(tx, request);
      await assertLive(tx, request.targets);
      const lastId = await lockContext(tx, request.context);
      const id =
        request.id === undefined
          ? await sameOrNewId(tx, request, lastId)
          : await importId(tx, request, request.id);
      const version = await place(tx, { request, id, nextVersion: counters.next_version });
      return { id, version };
    });
  }

  async deleteVersions(request: DeleteVersions): Promise<void> {
    const { subject, versions, permanent } = request;
    const of = [subject, [...versions]];
    await this.#db.transaction('write', async (tx) => {
      const { next_version: next } = await lockSubject(tx, request);
      // Locked before it is asked who refers to them: whoever wants to refer from now on waits and finds them gone.
      await tx.rows(
        `SELECT 1 FROM registry_places WHERE subject = $1 AND version = ANY ($2::int8[])
         ORDER BY version FOR UPDATE`,
        of,
      );
      await assertUnreferenced(tx, subject, versions);
      if (permanent) await remove(tx, subject, versions);
      else
        await tx.run(
          'UPDATE registry_places SET deleted = true WHERE subject = $1 AND version = ANY ($2::int8[])',
          of,
        );
      const left = await tx.row(
        'SELECT 1 AS there FROM registry_places WHERE subject = $1 LIMIT 1',
        [subject],
      );
      // A subject without any row starts again at version 1; its stamp goes on, for callers that hold the old one.
      await touch(tx, subject, permanent && left === undefined ? 1 : next);
    });
  }

  async setting(kind: RegistrySettingKind, subject: string): Promise<string | undefined> {
    return (await this.settings(kind, [subject]))[0];
  }

  async settings(kind: RegistrySettingKind, subjects: readonly string[]) {
    const rows = await this.#db
      .on('read')
      .rows<{ subject: string; value: string }>(
        'SELECT subject, value FROM registry_settings WHERE kind = $1 AND subject = ANY ($2::text[])',
        [kind, [...subjects]],
      );
    const values = new Map(rows.map(({ subject, value }) => [subject, value]));
    return subjects.map((subject) => values.get(subject));
  }

  async setSetting(kind: RegistrySettingKind, subject: string, value: string | null) {
    return this.#db.transaction('write', async (tx) => {
      const before = await tx.row<{ value: string }>(
        'SELECT value FROM registry_settings WHERE kind = $1 AND subject = $2 FOR UPDATE',
        [kind, subject],
      );
      if (value === null) {
        await tx.run('DELETE FROM registry_settings WHERE kind = $1 AND subject = $2', [
          kind,
          subject,
        ]);
      } else {
        await tx.run(
          `INSERT INTO registry_settings VALUES ($1, $2, $3)
           ON CONFLICT (kind, subject) DO UPDATE SET value = excluded.value`,
          [kind, subject, value],
        );
      }
      return before?.value;
    });
  }

  async counts(): Promise<{ schemas: number; versions: number }> {
    const row = await this.#db.on('read').row<{ schemas: number; versions: number }>(
      `SELECT (SELECT count(*) FROM registry_contents) AS schemas,
         (SELECT count(*) FROM registry_places) AS versions`,
    );
    return row!;
  }
}

async function findSchema(sql: Sql, { context, id }: ContextId): Promise<SchemaRow | undefined> {
  const row = await sql.row<SchemaRecord>(
    'SELECT * FROM registry_contents WHERE context = $1 AND id = $2',
    [context, id],
  );
  return row === undefined ? undefined : toSchema(row);
}

async function lockSubject(
  tx: Transaction,
  { subject, stamp }: { readonly subject: string; readonly stamp: number },
): Promise<Counters> {
  // Sent together: the row is there when it is locked.
  const [, counters] = await Promise.all([
    tx.run('INSERT INTO registry_subjects VALUES ($1, 0, 1) ON CONFLICT DO NOTHING', [subject]),
    tx.row<Counters>(
      'SELECT stamp, next_version FROM registry_subjects WHERE subject = $1 FOR UPDATE',
      [subject],
    ),
  ]);
  if (counters?.stamp !== stamp)
    throw new FloeError('conflict', `subject "${subject}" was changed meanwhile`);
  return counters;
}

async function assertLive(tx: Transaction, targets: readonly ReferenceTarget[]): Promise<void> {
  if (targets.length === 0) return;
  const rows = await tx.rows<ReferenceTarget>(
    `SELECT p.subject, p.version FROM registry_places p
     WHERE (p.subject, p.version) IN (SELECT * FROM unnest($1::text[], $2::int8[])) AND NOT p.deleted
     ORDER BY p.subject, p.version FOR SHARE`,
    [targets.map(({ subject }) => subject), targets.map(({ version }) => version)],
  );
  const live = new Set(rows.map(({ subject, version }) => `${version} ${subject}`));
  for (const { subject, version } of targets) {
    if (live.has(`${version} ${subject}`)) continue;
    throw new FloeError(
      'not-found',
      `referenced subject "${subject}" has no version ${version} any more`,
    );
  }
}

async function assertUnreferenced(
  tx: Transaction,
  subject: string,
  versions: readonly number[],
): Promise<void> {
  const row = await tx.row<{ version: number }>(
    `SELECT r.version FROM registry_uses r JOIN registry_places v ON v.context = r.context AND v.id = r.by_id
     WHERE r.subject = $1 AND r.version = ANY ($2::int8[]) AND NOT v.deleted
       -- Who is deleted before it in the same request refers to it no longer.
       AND NOT (v.subject = $1 AND coalesce(array_position($2::int8[], v.version), 2147483647)
         < array_position($2::int8[], r.version))
     ORDER BY array_position($2::int8[], r.version) LIMIT 1`,
    [subject, [...versions]],
  );
  if (row === undefined) return;
  const { version } = row;
  throw new FloeError('invalid', `version ${version} of subject "${subject}" is referenced`, {
    details: { version },
  });
}

/** @returns the last id given out in the context. */
async function lockContext(tx: Transaction, context: string): Promise<number> {
  const [, row] = await Promise.all([
    tx.run('INSERT INTO registry_contexts VALUES ($1, 0) ON CONFLICT DO NOTHING', [context]),
    tx.row<{ last_id: number }>(
      'SELECT last_id FROM registry_contexts WHERE context = $1 FOR UPDATE',
      [context],
    ),
  ]);
  return row!.last_id;
}

async function sameOrNewId(tx: Transaction, request: AddVersion, lastId: number): Promise<number> {
  const { context, content } = request;
  const same = await tx.row<{ id: number }>(
    'SELECT id FROM registry_contents WHERE guid = $1 AND context = $2 ORDER BY id LIMIT 1',
    [content.guid, context],
  );
  if (same !== undefined) return same.id;
  await insertSchema(tx, request, lastId + 1);
  return lastId + 1;
}

async function importId(tx: Transaction, request: AddVersion, id: number): Promise<number> {
  const holder = await findSchema(tx, { context: request.context, id });
  if (holder === undefined) await insertSchema(tx, request, id);
  else if (holder.guid !== request.content.guid) {
    throw new FloeError('conflict', `id ${id} belongs to another schema`, {
      details: { taken: 'id' },
    });
  }
  return id;
}

async function insertSchema(
  tx: Transaction,
  { context, content, targets }: AddVersion,
  id: number,
): Promise<void> {
  const { type, schema, references, contract, guid } = content;
  await Promise.all([
    tx.run('UPDATE registry_contexts SET last_id = greatest(last_id, $2) WHERE context = $1', [
      context,
      id,
    ]),
    tx.run('INSERT INTO registry_contents VALUES ($1, $2, $3, $4, $5, $6, $7)', [
      context,
      id,
      guid,
      type,
      schema,
      JSON.stringify(references),
      contract,
    ]),
    tx.run(
      `INSERT INTO registry_uses SELECT t.subject, t.version, $3, $4
       FROM unnest($1::text[], $2::int8[]) AS t(subject, version) ON CONFLICT DO NOTHING`,
      [targets.map(({ subject }) => subject), targets.map(({ version }) => version), context, id],
    ),
  ]);
}

/** Inserts the version and moves the subject's next version and stamp. */
async function place(
  tx: Transaction,
  at: { readonly request: AddVersion; readonly id: number; readonly nextVersion: number },
): Promise<number> {
  const { subject, context } = at.request;
  const version = at.request.version ?? at.nextVersion;
  const placed = await tx.run(
    `INSERT INTO registry_places AS p VALUES ($1, $2, $3, $4, false)
     ON CONFLICT (subject, version) DO UPDATE SET deleted = false WHERE p.id = excluded.id`,
    [subject, version, context, at.id],
  );
  if (placed === 0) {
    throw new FloeError(
      'conflict',
      `version ${version} of subject "${subject}" is another schema`,
      { details: { taken: 'version' } },
    );
  }
  await touch(tx, subject, Math.max(at.nextVersion, version + 1));
  return version;
}

async function touch(tx: Transaction, subject: string, nextVersion: number): Promise<void> {
  await tx.run(
    'UPDATE registry_subjects SET stamp = stamp + 1, next_version = $2 WHERE subject = $1',
    [subject, nextVersion],
  );
}

/** Removes the rows, and schemas whose last place they were. */
async function remove(
  tx: Transaction,
  subject: string,
  versions: readonly number[],
): Promise<void> {
  const gone = await tx.rows<ContextId>(
    `DELETE FROM registry_places WHERE subject = $1 AND version = ANY ($2::int8[])
     RETURNING context, id`,
    [subject, [...versions]],
  );
  // Whoever registers one of these contents elsewhere at this moment is before or after.
  for (const context of new Set(gone.map((row) => row.context))) await lockContext(tx, context);
  await tx.run(
    `DELETE FROM registry_contents c USING unnest($1::text[], $2::int8[]) AS gone(context, id)
     WHERE c.context = gone.context AND c.id = gone.id AND NOT EXISTS (
       SELECT 1 FROM registry_places p WHERE p.context = c.context AND p.id = c.id)`,
    [gone.map(({ context }) => context), gone.map(({ id }) => id)],
  );
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
  return { ...toSchema(row), subject: row.subject, version: row.version, deleted: row.deleted };
}
