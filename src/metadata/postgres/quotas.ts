// Client quotas on PostgreSQL. See metadata/quotas.ts for the contract.
import {
  type ClientQuota,
  type ClientQuotaChange,
  type QuotasMetadata,
  quotaEntityKey,
  quotaEntityOf,
} from '../quotas.ts';
import type { Database, Sql } from './database.ts';
import type { Migration } from './migrations.ts';
import { raiseVersions } from './versions.ts';

export const quotasMigrations: readonly Migration[] = [
  {
    name: 'quotas-1',
    sql: `
      CREATE TABLE client_quotas (entity text COLLATE "C", quota_key text COLLATE "C", value float8 NOT NULL,
        PRIMARY KEY (entity, quota_key));`,
  },
];

interface Row {
  entity: string;
  quota_key: string;
  value: number;
}

export class PostgresQuotas implements QuotasMetadata {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  list(): Promise<readonly ClientQuota[]> {
    return readQuotas(this.#db.on('read'));
  }

  async alter(changes: readonly ClientQuotaChange[]): Promise<readonly ClientQuota[]> {
    const last = new Map<string, readonly [string, string, number | null]>();
    for (const { entity, values } of changes) {
      const key = quotaEntityKey(entity);
      for (const [name, value] of Object.entries(values)) {
        last.set(JSON.stringify([key, name]), [key, name, value]);
      }
    }
    const all = [...last.values()];
    const set = all.filter(([, , value]) => value !== null);
    const gone = all.filter(([, , value]) => value === null);
    return this.#db.transaction('write', async (tx) => {
      // The version first: its lock keeps two changes of the same quotas from crossing.
      await raiseVersions(tx, 'quotas');
      await tx.run(
        `DELETE FROM client_quotas q USING unnest($1::text[], $2::text[]) AS gone(entity, quota_key)
         WHERE q.entity = gone.entity AND q.quota_key = gone.quota_key`,
        [gone.map(([entity]) => entity), gone.map(([, name]) => name)],
      );
      await tx.run(
        `INSERT INTO client_quotas SELECT * FROM unnest($1::text[], $2::text[], $3::float8[])
         ON CONFLICT (entity, quota_key) DO UPDATE SET value = excluded.value`,
        [
          set.map(([entity]) => entity),
          set.map(([, name]) => name),
          set.map(([, , value]) => value),
        ],
      );
      return readQuotas(tx);
    });
  }
}

async function readQuotas(sql: Sql): Promise<readonly ClientQuota[]> {
  const rows = await sql.rows<Row>('SELECT * FROM client_quotas ORDER BY entity, quota_key');
  const byEntity = new Map<string, Record<string, number>>();
  for (const { entity, quota_key: key, value } of rows) {
    const values = byEntity.get(entity) ?? {};
    values[key] = value;
    byEntity.set(entity, values);
  }
  return [...byEntity].map(([entity, values]) => ({ entity: quotaEntityOf(entity), values }));
}
