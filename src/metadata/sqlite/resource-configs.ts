// Configs of groups and client metrics on SQLite. See metadata/resource-configs.ts for the contract.
import type { ResourceConfig, ResourceConfigsMetadata, ResourceKind } from '../resource-configs.ts';
import type { Database, Migration } from './database.ts';
import { uncounted, type VersionCounter } from './versions.ts';

export const resourceConfigsMigrations: readonly Migration[] = [
  {
    name: 'resource-configs-1',
    sql: `
      CREATE TABLE resource_configs (kind TEXT NOT NULL, resource TEXT NOT NULL, name TEXT NOT NULL,
        value TEXT NOT NULL, PRIMARY KEY (kind, resource, name)) STRICT, WITHOUT ROWID;`,
  },
];

interface Row {
  kind: ResourceKind;
  resource: string;
  name: string;
  value: string;
}

export class SqliteResourceConfigs implements ResourceConfigsMetadata {
  readonly #db: Database;
  readonly #versions: VersionCounter;

  constructor(db: Database, versions: VersionCounter = uncounted) {
    this.#db = db;
    this.#versions = versions;
  }

  async list(): Promise<readonly ResourceConfig[]> {
    const rows = this.#db
      .prepare('SELECT * FROM resource_configs ORDER BY kind, resource, name')
      .all() as unknown as Row[];
    const found: { kind: ResourceKind; name: string; config: Record<string, string> }[] = [];
    for (const { kind, resource, name, value } of rows) {
      const last = found.at(-1);
      if (last !== undefined && last.kind === kind && last.name === resource) {
        last.config[name] = value;
      } else found.push({ kind, name: resource, config: { [name]: value } });
    }
    return found;
  }

  async alter(
    kind: ResourceKind,
    resource: string,
    changes: Readonly<Record<string, string | null>>,
  ): Promise<Readonly<Record<string, string>>> {
    const remove = this.#db.prepare(
      'DELETE FROM resource_configs WHERE kind = ? AND resource = ? AND name = ?',
    );
    const upsert = this.#db.prepare(
      'INSERT INTO resource_configs VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value',
    );
    this.#db.transaction(() => {
      this.#versions.raise('resource-configs');
      for (const [name, value] of Object.entries(changes)) {
        if (value === null) remove.run(kind, resource, name);
        else upsert.run(kind, resource, name, value);
      }
    });
    const rows = this.#db
      .prepare('SELECT name, value FROM resource_configs WHERE kind = ? AND resource = ?')
      .all(kind, resource);
    return Object.fromEntries(rows.map((row) => [row['name'] as string, row['value'] as string]));
  }
}
