// The catalog's pointers on PostgreSQL. See metadata/catalog.ts for the contract.
// A namespace's row is share-locked by what enters it and locked by what drops it; pointers that move together are
// locked in the order of their names.
import type { FloeError } from '../../base/error.ts';
import {
  type CatalogMetadata,
  LEVEL_SEPARATOR,
  missingNamespace,
  missingPointer,
  type NamespaceKey,
  namespaceNotEmpty,
  namespaceTaken,
  type PageRequest,
  type Pointer,
  type PointerKind,
  type PointerMove,
  type PointerName,
  type PropertyChanges,
  pointerMoved,
  pointerTaken,
  renameTaken,
} from '../catalog.ts';
import type { Database, Sql, Transaction } from './database.ts';
import type { Migration } from './migrations.ts';

export const catalogMigrations: readonly Migration[] = [
  {
    name: 'catalog-1',
    sql: `
      CREATE TABLE catalog_namespaces (
        namespace text COLLATE "C" PRIMARY KEY, parent text COLLATE "C" NOT NULL, properties text NOT NULL);
      CREATE INDEX catalog_namespaces_parent ON catalog_namespaces (parent, namespace);
      -- Views lie beside tables, so that one key keeps their names apart.
      CREATE TABLE catalog_tables (
        namespace text COLLATE "C" REFERENCES catalog_namespaces, name text COLLATE "C",
        metadata_location text NOT NULL, kind text NOT NULL, PRIMARY KEY (namespace, name)) WITH (fillfactor = 50);
      CREATE TABLE catalog_secrets (name text COLLATE "C" PRIMARY KEY, value text NOT NULL);`,
  },
];

interface PointerRow {
  namespace: string;
  name: string;
  kind: PointerKind;
  metadata_location: string;
}

export class PostgresCatalog implements CatalogMetadata {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async createNamespace(namespace: NamespaceKey, properties: Readonly<Record<string, string>>) {
    const cut = namespace.lastIndexOf(LEVEL_SEPARATOR);
    const parent = cut < 0 ? '' : namespace.slice(0, cut);
    await this.#db.transaction('write', async (tx) => {
      if (parent !== '') await holdNamespaces(tx, [parent]);
      const made = await tx.run(
        'INSERT INTO catalog_namespaces VALUES ($1, $2, $3) ON CONFLICT DO NOTHING',
        [namespace, parent, JSON.stringify(properties)],
      );
      if (made === 0) throw namespaceTaken(namespace);
    });
  }

  async namespaceProperties(namespace: NamespaceKey) {
    return readProperties(this.#db.on('read'), namespace);
  }

  async listNamespaces(parent: NamespaceKey, { after = '', limit }: PageRequest = {}) {
    return this.#db.snapshot('read', async (tx) => {
      if (parent !== '') await requireNamespace(tx, parent);
      const rows = await tx.rows<{ namespace: string }>(
        `SELECT namespace FROM catalog_namespaces WHERE parent = $1 AND namespace > $2
         ORDER BY namespace LIMIT $3`,
        [parent, after, limit ?? null],
      );
      return rows.map((row) => row.namespace);
    });
  }

  async alterNamespace(namespace: NamespaceKey, { updates, removals }: PropertyChanges) {
    return this.#db.transaction('write', async (tx) => {
      const row = await tx.row<{ properties: string }>(
        'SELECT properties FROM catalog_namespaces WHERE namespace = $1 FOR NO KEY UPDATE',
        [namespace],
      );
      if (row === undefined) throw missingNamespace(namespace);
      const before = JSON.parse(row.properties) as Record<string, string>;
      const properties = new Map(Object.entries(before));
      const absent = removals.filter((name) => !properties.delete(name));
      for (const [name, value] of Object.entries(updates)) properties.set(name, value);
      await tx.run('UPDATE catalog_namespaces SET properties = $2 WHERE namespace = $1', [
        namespace,
        JSON.stringify(Object.fromEntries(properties)),
      ]);
      return absent;
    });
  }

  async dropNamespace(namespace: NamespaceKey) {
    await this.#db.transaction('write', async (tx) => {
      // Locked before it is looked into: what enters meanwhile waits and finds it gone, or is found.
      const row = await tx.row(
        'SELECT 1 AS there FROM catalog_namespaces WHERE namespace = $1 FOR UPDATE',
        [namespace],
      );
      if (row === undefined) throw missingNamespace(namespace);
      const holds = await tx.row(
        `SELECT 1 AS thing FROM catalog_tables WHERE namespace = $1 UNION ALL
         SELECT 1 FROM catalog_namespaces WHERE parent = $1 LIMIT 1`,
        [namespace],
      );
      if (holds !== undefined) throw namespaceNotEmpty(namespace);
      await tx.run('DELETE FROM catalog_namespaces WHERE namespace = $1', [namespace]);
    });
  }

  async pointer(namespace: NamespaceKey, name: string) {
    const row = await this.#db
      .on('read')
      .row<PointerRow>('SELECT * FROM catalog_tables WHERE namespace = $1 AND name = $2', [
        namespace,
        name,
      ]);
    return row === undefined ? undefined : toPointer(row);
  }

  async listPointers(
    kind: PointerKind,
    namespace: NamespaceKey,
    { after = '', limit }: PageRequest = {},
  ) {
    return this.#db.snapshot('read', async (tx) => {
      await requireNamespace(tx, namespace);
      const rows = await tx.rows<{ name: string }>(
        `SELECT name FROM catalog_tables WHERE namespace = $1 AND name > $2 AND kind = $3
         ORDER BY name LIMIT $4`,
        [namespace, after, kind, limit ?? null],
      );
      return rows.map((row) => row.name);
    });
  }

  async movePointers(moves: readonly PointerMove[]) {
    await this.#db.transaction('write', async (tx) => {
      const made = moves.filter((move) => move.from === undefined);
      await holdNamespaces(
        tx,
        made.map((move) => move.namespace),
      );
      const pointers = await lockPointers(tx, moves);
      const before = new Map(pointers);
      for (const move of moves) applyMove(pointers, move);
      const moved = [...pointers].filter(([key, pointer]) => before.get(key) !== pointer);
      await updatePointers(
        tx,
        moved.filter(([key]) => before.has(key)).map(([, one]) => one),
      );
      await insertPointers(
        tx,
        moved.filter(([key]) => !before.has(key)).map(([, one]) => one),
        pointerTaken,
      );
    });
  }

  async renamePointer(from: PointerName, to: PointerName) {
    await this.#db.transaction('write', async (tx) => {
      const pointers = await lockPointers(tx, [from, to]);
      const pointer = pointers.get(keyOf(from));
      if (pointer === undefined || pointer.kind !== from.kind) throw missingPointer(from);
      await holdNamespaces(tx, [to.namespace]);
      const same = keyOf(from) === keyOf(to);
      const present = same ? undefined : pointers.get(keyOf(to));
      if (present !== undefined) throw renameTaken(from, to, present);
      await deletePointer(tx, from);
      const { kind, metadataLocation } = pointer;
      await insertPointers(tx, [{ ...to, kind, metadataLocation }], (_to, other) =>
        renameTaken(from, to, other),
      );
    });
  }

  async dropPointer(name: PointerName) {
    return this.#db.transaction('write', async (tx) => {
      const pointer = (await lockPointers(tx, [name])).get(keyOf(name));
      if (pointer === undefined || pointer.kind !== name.kind) throw missingPointer(name);
      await deletePointer(tx, name);
      return pointer;
    });
  }

  async secret(name: string, fresh: string) {
    const row = await this.#db.transaction('write', async (tx) => {
      await tx.run('INSERT INTO catalog_secrets VALUES ($1, $2) ON CONFLICT DO NOTHING', [
        name,
        fresh,
      ]);
      return tx.row<{ value: string }>('SELECT value FROM catalog_secrets WHERE name = $1', [name]);
    });
    return row!.value;
  }
}

const keyOf = ({ namespace, name }: PointerName) => JSON.stringify([namespace, name]);

/** As one after the other would find it. @throws FloeError as the contract says. */
function applyMove(pointers: Map<string, Pointer>, move: PointerMove): void {
  const { kind, namespace, name } = move;
  const present = pointers.get(keyOf(move));
  if (move.from === undefined) {
    if (present !== undefined) throw pointerTaken(move, present);
  } else {
    if (present === undefined || present.kind !== move.kind) throw missingPointer(move);
    if (present.metadataLocation !== move.from) throw pointerMoved(move);
  }
  pointers.set(keyOf(move), { kind, namespace, name, metadataLocation: move.to });
}

/** Those of the names that are there, by {@link keyOf}. */
async function lockPointers(
  tx: Transaction,
  names: readonly PointerName[],
): Promise<Map<string, Pointer>> {
  const rows = await tx.rows<PointerRow>(
    `SELECT t.* FROM catalog_tables t
     WHERE (t.namespace, t.name) IN (SELECT * FROM unnest($1::text[], $2::text[]))
     ORDER BY t.namespace, t.name FOR UPDATE`,
    [names.map(({ namespace }) => namespace), names.map(({ name }) => name)],
  );
  return new Map(rows.map(toPointer).map((pointer) => [keyOf(pointer), pointer]));
}

/** Keeps namespaces from being dropped until the transaction ends. @throws FloeError `not-found`. */
async function holdNamespaces(tx: Transaction, namespaces: readonly NamespaceKey[]): Promise<void> {
  if (namespaces.length === 0) return;
  const rows = await tx.rows<{ namespace: string }>(
    `SELECT namespace FROM catalog_namespaces WHERE namespace = ANY ($1::text[])
     ORDER BY namespace FOR KEY SHARE`,
    [[...namespaces]],
  );
  const there = new Set(rows.map((row) => row.namespace));
  const missing = namespaces.find((namespace) => !there.has(namespace));
  if (missing !== undefined) throw missingNamespace(missing);
}

async function updatePointers(tx: Transaction, pointers: readonly Pointer[]): Promise<void> {
  if (pointers.length === 0) return;
  await tx.run(
    `UPDATE catalog_tables t SET metadata_location = i.location
     FROM unnest($1::text[], $2::text[], $3::text[]) AS i(namespace, name, location)
     WHERE t.namespace = i.namespace AND t.name = i.name`,
    [
      pointers.map(({ namespace }) => namespace),
      pointers.map(({ name }) => name),
      pointers.map(({ metadataLocation }) => metadataLocation),
    ],
  );
}

/** Those whose names weren't there a moment ago; `taken` says what it means that one is now. */
async function insertPointers(
  tx: Transaction,
  pointers: readonly Pointer[],
  taken: (wanted: PointerName, present: Pointer) => FloeError,
): Promise<void> {
  if (pointers.length === 0) return;
  const made = await tx.rows<PointerRow>(
    `INSERT INTO catalog_tables
     SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS i(namespace, name, location, kind)
     ORDER BY i.namespace COLLATE "C", i.name COLLATE "C" ON CONFLICT DO NOTHING RETURNING *`,
    [
      pointers.map(({ namespace }) => namespace),
      pointers.map(({ name }) => name),
      pointers.map(({ metadataLocation }) => metadataLocation),
      pointers.map(({ kind }) => kind),
    ],
  );
  const there = new Set(made.map((row) => keyOf(toPointer(row))));
  const second = pointers.find((pointer) => !there.has(keyOf(pointer)));
  if (second === undefined) return;
  const present = (await lockPointers(tx, [second])).get(keyOf(second));
  throw taken(second, present ?? second);
}

async function deletePointer(tx: Transaction, { namespace, name }: PointerName): Promise<void> {
  await tx.run('DELETE FROM catalog_tables WHERE namespace = $1 AND name = $2', [namespace, name]);
}

async function readProperties(
  sql: Sql,
  namespace: NamespaceKey,
): Promise<Record<string, string> | undefined> {
  const row = await sql.row<{ properties: string }>(
    'SELECT properties FROM catalog_namespaces WHERE namespace = $1',
    [namespace],
  );
  return row === undefined ? undefined : (JSON.parse(row.properties) as Record<string, string>);
}

async function requireNamespace(sql: Sql, namespace: NamespaceKey): Promise<void> {
  if ((await readProperties(sql, namespace)) === undefined) throw missingNamespace(namespace);
}

const toPointer = (row: PointerRow): Pointer => ({
  kind: row.kind,
  namespace: row.namespace,
  name: row.name,
  metadataLocation: row.metadata_location,
});
