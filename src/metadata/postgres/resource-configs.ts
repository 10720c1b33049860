// Configs of groups and client metrics on PostgreSQL. See metadata/resource-configs.ts for the contract.
import type { ResourceConfig, ResourceConfigsMetadata, ResourceKind } from '../resource-configs.ts';
import { clientText, storedText } from '../text.ts';
import type { Database } from './database.ts';
import type { Migration } from './migrations.ts';
import { raiseVersions } from './versions.ts';

export const resourceConfigsMigrations: readonly Migration[] = [
  {
    name: 'resource-configs-1',
    sql: `
      CREATE TABLE resource_configs (kind text COLLATE "C", resource text COLLATE "C", name text COLLATE "C",
        value text NOT NULL, PRIMARY KEY (kind, resource, name));`,
  },
];

interface Row {
  kind: ResourceKind;
  resource: string;
  name: string;
  value: string;
}

export class PostgresResourceConfigs implements ResourceConfigsMetadata {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async list(): Promise<readonly ResourceConfig[]> {
    const rows = await this.#db
      .on('read')
      .rows<Row>('SELECT * FROM resource_configs ORDER BY kind, resource, name');
    const found: { kind: ResourceKind; name: string; config: Record<string, string> }[] = [];
    for (const { kind, resource, name, value } of rows) {
      const last = found.at(-1);
      const same = last !== undefined && last.kind === kind && last.name === clientText(resource);
      const config = same ? last.config : {};
      config[name] = clientText(value);
      if (!same) found.push({ kind, name: clientText(resource), config });
    }
    return found;
  }

  async alter(
    kind: ResourceKind,
    name: string,
    changes: Readonly<Record<string, string | null>>,
  ): Promise<Readonly<Record<string, string>>> {
    const resource = storedText(name);
    const entries = Object.entries(changes);
    const set = entries.filter(([, value]) => value !== null);
    const gone = entries.filter(([, value]) => value === null);
    return this.#db.transaction('write', async (tx) => {
      // The version first: its lock keeps two changes of one resource from crossing.
      await raiseVersions(tx, 'resource-configs');
      await tx.run(
        'DELETE FROM resource_configs WHERE kind = $1 AND resource = $2 AND name = ANY ($3::text[])',
        [kind, resource, gone.map(([key]) => key)],
      );
      await tx.run(
        `INSERT INTO resource_configs SELECT $1, $2, * FROM unnest($3::text[], $4::text[])
         ON CONFLICT (kind, resource, name) DO UPDATE SET value = excluded.value`,
        [kind, resource, set.map(([key]) => key), set.map(([, value]) => storedText(value!))],
      );
      const rows = await tx.rows<Row>(
        'SELECT name, value FROM resource_configs WHERE kind = $1 AND resource = $2 ORDER BY name',
        [kind, resource],
      );
      return Object.fromEntries(rows.map((row) => [row.name, clientText(row.value)]));
    });
  }
}
