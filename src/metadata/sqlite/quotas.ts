// Client quotas on SQLite. See metadata/quotas.ts for the contract.
import {
  type ClientQuota,
  type ClientQuotaChange,
  type QuotasMetadata,
  quotaEntityKey,
  quotaEntityOf,
} from '../quotas.ts';
import type { Database, Migration } from './database.ts';
import { uncounted, type VersionCounter } from './versions.ts';

export const quotasMigrations: readonly Migration[] = [
  {
    name: 'quotas-1',
    sql: `
      CREATE TABLE client_quotas (entity TEXT NOT NULL, quota_key TEXT NOT NULL, value REAL NOT NULL,
        PRIMARY KEY (entity, quota_key)) STRICT, WITHOUT ROWID;`,
  },
];

interface Row {
  entity: string;
  quota_key: string;
  value: number;
}

export class SqliteQuotas implements QuotasMetadata {
  readonly #db: Database;
  readonly #versions: VersionCounter;

  constructor(db: Database, versions: VersionCounter = uncounted) {
    this.#db = db;
    this.#versions = versions;
  }

  async list(): Promise<readonly ClientQuota[]> {
    const rows = this.#db
      .prepare('SELECT * FROM client_quotas ORDER BY entity, quota_key')
      .all() as unknown as Row[];
    const byEntity = new Map<string, Record<string, number>>();
    for (const { entity, quota_key: key, value } of rows) {
      const values = byEntity.get(entity);
      if (values === undefined) byEntity.set(entity, { [key]: value });
      else values[key] = value;
    }
    return [...byEntity].map(([entity, values]) => ({ entity: quotaEntityOf(entity), values }));
  }

  async alter(changes: readonly ClientQuotaChange[]): Promise<readonly ClientQuota[]> {
    this.#db.transaction(() => {
      this.#versions.raise('quotas');
      for (const { entity, values } of changes) {
        const key = quotaEntityKey(entity);
        for (const [name, value] of Object.entries(values)) this.#set(key, name, value);
      }
    });
    return this.list();
  }

  #set(entity: string, key: string, value: number | null): void {
    if (value === null) {
      const remove = 'DELETE FROM client_quotas WHERE entity = ? AND quota_key = ?';
      this.#db.prepare(remove).run(entity, key);
    } else {
      const upsert =
        'INSERT INTO client_quotas VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value';
      this.#db.prepare(upsert).run(entity, key, value);
    }
  }
}
