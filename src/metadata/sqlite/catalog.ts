// The catalog's pointers on SQLite. See metadata/catalog.ts for the contract.
import { FloeError } from '../../base/error.ts';
import {
  type CatalogMetadata,
  LEVEL_SEPARATOR,
  type NamespaceKey,
  type PageRequest,
  type PointerMove,
  type PropertyChanges,
  type TableName,
  type TablePointer,
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
];

/** No limit, in SQL. */
const ALL = -1;

const shown = (namespace: NamespaceKey) => namespace.split(LEVEL_SEPARATOR).join('.');
const missingNamespace = (namespace: NamespaceKey) =>
  new FloeError('not-found', `Namespace does not exist: ${shown(namespace)}`, {
    details: { thing: 'namespace' },
  });
const missingTable = ({ namespace, name }: TableName) =>
  new FloeError('not-found', `Table does not exist: ${shown(namespace)}.${name}`, {
    details: { thing: 'table' },
  });
const presentTable = ({ namespace, name }: TableName) =>
  new FloeError('conflict', `Table already exists: ${shown(namespace)}.${name}`, {
    details: { thing: 'table' },
  });

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
        throw new FloeError('conflict', `Namespace already exists: ${shown(namespace)}`, {
          details: { thing: 'namespace' },
        });
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
      const missing = removals.filter((name) => !properties.delete(name));
      for (const [name, value] of Object.entries(updates)) properties.set(name, value);
      this.#db
        .prepare('UPDATE catalog_namespaces SET properties = ? WHERE namespace = ?')
        .run(JSON.stringify(Object.fromEntries(properties)), namespace);
      return missing;
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
        throw new FloeError(
          'conflict',
          `Namespace ${shown(namespace)} is not empty: drop its tables and namespaces first`,
          { details: { thing: 'namespace', reason: 'not-empty' } },
        );
      }
      this.#db.prepare('DELETE FROM catalog_namespaces WHERE namespace = ?').run(namespace);
    });
  }

  async table(namespace: NamespaceKey, name: string) {
    return this.#pointer({ namespace, name });
  }

  async listTables(namespace: NamespaceKey, { after = '', limit = ALL }: PageRequest = {}) {
    this.#requireNamespace(namespace);
    return this.#db
      .prepare(
        'SELECT name FROM catalog_tables WHERE namespace = ? AND name > ? ORDER BY name LIMIT ?',
      )
      .all(namespace, after, limit)
      .map((row) => row['name'] as string);
  }

  async moveTables(moves: readonly PointerMove[]) {
    this.#db.transaction(() => {
      for (const move of moves) this.#move(move);
    });
  }

  #move(move: PointerMove): void {
    const present = this.#pointer(move);
    if (move.from === undefined) {
      this.#requireNamespace(move.namespace);
      if (present !== undefined) throw presentTable(move);
      this.#insert({ ...move, metadataLocation: move.to });
      return;
    }
    if (present === undefined) throw missingTable(move);
    if (present.metadataLocation !== move.from) {
      throw new FloeError(
        'conflict',
        `table "${shown(move.namespace)}.${move.name}" has changed meanwhile: reload it and decide afresh`,
        { details: { thing: 'table', reason: 'moved' } },
      );
    }
    this.#db
      .prepare('UPDATE catalog_tables SET metadata_location = ? WHERE namespace = ? AND name = ?')
      .run(move.to, move.namespace, move.name);
  }

  async renameTable(from: TableName, to: TableName) {
    this.#db.transaction(() => {
      const pointer = this.#delete(from);
      this.#requireNamespace(to.namespace);
      if (this.#pointer(to) !== undefined) throw presentTable(to);
      this.#insert({ ...to, metadataLocation: pointer.metadataLocation });
    });
  }

  async dropTable(namespace: NamespaceKey, name: string) {
    return this.#db.transaction(() => this.#delete({ namespace, name }));
  }

  #insert({ namespace, name, metadataLocation }: TablePointer): void {
    this.#db
      .prepare('INSERT INTO catalog_tables (namespace, name, metadata_location) VALUES (?, ?, ?)')
      .run(namespace, name, metadataLocation);
  }

  #delete(table: TableName): TablePointer {
    const pointer = this.#pointer(table);
    if (pointer === undefined) throw missingTable(table);
    this.#db
      .prepare('DELETE FROM catalog_tables WHERE namespace = ? AND name = ?')
      .run(table.namespace, table.name);
    return pointer;
  }

  #pointer({ namespace, name }: TableName): TablePointer | undefined {
    const row = this.#db
      .prepare('SELECT metadata_location FROM catalog_tables WHERE namespace = ? AND name = ?')
      .get(namespace, name);
    if (row === undefined) return undefined;
    return { namespace, name, metadataLocation: row['metadata_location'] as string };
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
