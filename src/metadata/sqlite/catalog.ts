// The catalog's pointers on SQLite. See metadata/catalog.ts for the contract.
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
import type { Database, Migration } from './database.ts';

export const catalogMigrations: readonly Migration[] = [
  {
    name: 'catalog-1',
    sql: `
      CREATE TABLE catalog_namespaces (
        namespace TEXT PRIMARY KEY, parent TEXT NOT NULL, properties TEXT NOT NULL) STRICT, WITHOUT ROWID;
      CREATE INDEX catalog_namespaces_parent ON catalog_namespaces (parent, namespace);
      CREATE TABLE catalog_tables (
        namespace TEXT NOT NULL REFERENCES catalog_namespaces, name TEXT NOT NULL,
        metadata_location TEXT NOT NULL, PRIMARY KEY (namespace, name)) STRICT, WITHOUT ROWID;`,
  },
  {
    // Views lie beside tables, so that one key keeps their names apart.
    name: 'catalog-2',
    sql: `
      ALTER TABLE catalog_tables ADD COLUMN kind TEXT NOT NULL DEFAULT 'table';
      CREATE TABLE catalog_secrets (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;`,
  },
];

/** No limit, in SQL. */
const ALL = -1;

export class SqliteCatalog implements CatalogMetadata {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async createNamespace(namespace: NamespaceKey, properties: Readonly<Record<string, string>>) {
    const cut = namespace.lastIndexOf(LEVEL_SEPARATOR);
    const parent = cut < 0 ? '' : namespace.slice(0, cut);
    this.#db.transaction(() => {
      if (parent !== '') this.#requireNamespace(parent);
      if (this.#properties(namespace) !== undefined) {
        throw namespaceTaken(namespace);
      }
      this.#db
        .prepare('INSERT INTO catalog_namespaces (namespace, parent, properties) VALUES (?, ?, ?)')
        .run(namespace, parent, JSON.stringify(properties));
    });
  }

  async namespaceProperties(namespace: NamespaceKey) {
    return this.#properties(namespace);
  }

  async listNamespaces(parent: NamespaceKey, { after = '', limit = ALL }: PageRequest = {}) {
    if (parent !== '') this.#requireNamespace(parent);
    return this.#db
      .prepare(
        'SELECT namespace FROM catalog_namespaces WHERE parent = ? AND namespace > ? ORDER BY namespace LIMIT ?',
      )
      .all(parent, after, limit)
      .map((row) => row['namespace'] as string);
  }

  async alterNamespace(namespace: NamespaceKey, { updates, removals }: PropertyChanges) {
    return this.#db.transaction(() => {
      const properties = new Map(Object.entries(this.#requireNamespace(namespace)));
      const absent = removals.filter((name) => !properties.delete(name));
      for (const [name, value] of Object.entries(updates)) properties.set(name, value);
      this.#db
        .prepare('UPDATE catalog_namespaces SET properties = ? WHERE namespace = ?')
        .run(JSON.stringify(Object.fromEntries(properties)), namespace);
      return absent;
    });
  }

  async dropNamespace(namespace: NamespaceKey) {
    this.#db.transaction(() => {
      this.#requireNamespace(namespace);
      const holds =
        this.#db
          .prepare('SELECT 1 FROM catalog_tables WHERE namespace = ? LIMIT 1')
          .get(namespace) ??
        this.#db
          .prepare('SELECT 1 FROM catalog_namespaces WHERE parent = ? LIMIT 1')
          .get(namespace);
      if (holds !== undefined) {
        throw namespaceNotEmpty(namespace);
      }
      this.#db.prepare('DELETE FROM catalog_namespaces WHERE namespace = ?').run(namespace);
    });
  }

  async pointer(namespace: NamespaceKey, name: string) {
    return this.#pointer(namespace, name);
  }

  async listPointers(
    kind: PointerKind,
    namespace: NamespaceKey,
    { after = '', limit = ALL }: PageRequest = {},
  ) {
    this.#requireNamespace(namespace);
    return this.#db
      .prepare(
        'SELECT name FROM catalog_tables WHERE namespace = ? AND name > ? AND kind = ? ORDER BY name LIMIT ?',
      )
      .all(namespace, after, kind, limit)
      .map((row) => row['name'] as string);
  }

  async movePointers(moves: readonly PointerMove[]) {
    this.#db.transaction(() => {
      for (const move of moves) this.#move(move);
    });
  }

  #move(move: PointerMove): void {
    const present = this.#pointer(move.namespace, move.name);
    if (move.from === undefined) {
      this.#requireNamespace(move.namespace);
      if (present !== undefined) throw pointerTaken(move, present);
      this.#insert({ ...move, metadataLocation: move.to });
      return;
    }
    if (present === undefined || present.kind !== move.kind) throw missingPointer(move);
    if (present.metadataLocation !== move.from) {
      throw pointerMoved(move);
    }
    this.#db
      .prepare('UPDATE catalog_tables SET metadata_location = ? WHERE namespace = ? AND name = ?')
      .run(move.to, move.namespace, move.name);
  }

  async renamePointer(from: PointerName, to: PointerName) {
    this.#db.transaction(() => {
      const pointer = this.#delete(from);
      this.#requireNamespace(to.namespace);
      const present = this.#pointer(to.namespace, to.name);
      if (present !== undefined) {
        throw renameTaken(from, to, present);
      }
      this.#insert({ ...to, kind: from.kind, metadataLocation: pointer.metadataLocation });
    });
  }

  async dropPointer(name: PointerName) {
    return this.#db.transaction(() => this.#delete(name));
  }

  async secret(name: string, fresh: string) {
    return this.#db.transaction(() => {
      const row = this.#db.prepare('SELECT value FROM catalog_secrets WHERE name = ?').get(name);
      if (row !== undefined) return row['value'] as string;
      this.#db.prepare('INSERT INTO catalog_secrets (name, value) VALUES (?, ?)').run(name, fresh);
      return fresh;
    });
  }

  #insert({ kind, namespace, name, metadataLocation }: Pointer): void {
    this.#db
      .prepare(
        'INSERT INTO catalog_tables (namespace, name, metadata_location, kind) VALUES (?, ?, ?, ?)',
      )
      .run(namespace, name, metadataLocation, kind);
  }

  #delete(name: PointerName): Pointer {
    const pointer = this.#pointer(name.namespace, name.name);
    if (pointer === undefined || pointer.kind !== name.kind) throw missingPointer(name);
    this.#db
      .prepare('DELETE FROM catalog_tables WHERE namespace = ? AND name = ?')
      .run(name.namespace, name.name);
    return pointer;
  }

  #pointer(namespace: NamespaceKey, name: string): Pointer | undefined {
    const row = this.#db
      .prepare(
        'SELECT kind, metadata_location FROM catalog_tables WHERE namespace = ? AND name = ?',
      )
      .get(namespace, name);
    if (row === undefined) return undefined;
    return {
      kind: row['kind'] as PointerKind,
      namespace,
      name,
      metadataLocation: row['metadata_location'] as string,
    };
  }

  #properties(namespace: NamespaceKey): Record<string, string> | undefined {
    const row = this.#db
      .prepare('SELECT properties FROM catalog_namespaces WHERE namespace = ?')
      .get(namespace);
    return row === undefined
      ? undefined
      : (JSON.parse(row['properties'] as string) as Record<string, string>);
  }

  #requireNamespace(namespace: NamespaceKey): Record<string, string> {
    const properties = this.#properties(namespace);
    if (properties === undefined) throw missingNamespace(namespace);
    return properties;
  }
}
