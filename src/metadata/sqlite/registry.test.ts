// Migrations of the registry on SQLite. The rest: contract/registry.ts.
import { expect, test } from 'vitest';
import { Database } from './database.ts';
import { registryMigrations } from './registry.ts';

test('what was registered before contexts came is in the default one', () => {
  const before = new Database(':memory:', registryMigrations.slice(0, 1));
  before.prepare(`INSERT INTO registry_schemas VALUES (7, 'g', 'AVRO', '"int"', '[]', '')`).run();
  before.prepare(`INSERT INTO registry_versions VALUES ('a', 3, 7, 1)`).run();
  before.prepare(`INSERT INTO registry_references VALUES ('r', 1, 7)`).run();
  before.transaction(() => {
    for (const sql of registryMigrations[1]!.sql.split(/;\n/)) before.prepare(sql).run();
  });
  const all = (table: string) => before.prepare(`SELECT * FROM ${table}`).all();
  expect(all('registry_contexts')).toEqual([{ context: '.', last_id: 7 }]);
  expect(all('registry_places')).toEqual([
    { subject: 'a', version: 3, context: '.', id: 7, deleted: 1 },
  ]);
  expect(all('registry_uses')).toEqual([{ subject: 'r', version: 1, context: '.', by_id: 7 }]);
  before.close();
});
