// Intents of table topics on PostgreSQL: names of files about to be written (M2). Rows are locked in the order of their
// prefixes by whoever takes several: stage, sweep, and who names them.
import { FIRST_INTENT, sweptFiles } from '../table-rules.ts';
import type { Intent } from '../tables.ts';
import type { Sql, Transaction } from './database.ts';

interface IntentRow {
  prefix: string;
  topic_id: string;
  created_ms: number;
  namespace: string;
  table_name: string;
  parent: string | null;
}

/** @throws FloeError `conflict`: one of them is being swept. */
export async function putIntents(tx: Transaction, intents: readonly Intent[]): Promise<void> {
  const wanted = [...merged(intents).values()];
  if (wanted.length === 0) return;
  const rows = await tx.rows<{ prefix: string }>(
    `INSERT INTO table_intents AS t (prefix, topic_id, created_ms, namespace, table_name, parent)
     SELECT * FROM unnest($1::text[], $2::text[], $3::int8[], $4::text[], $5::text[], $6::text[]) AS i(prefix)
     ORDER BY i.prefix COLLATE "C"
     ON CONFLICT (prefix) DO UPDATE SET
       created_ms = CASE t.created_ms WHEN 0 THEN excluded.created_ms ELSE t.created_ms END,
       parent = coalesce(excluded.parent, t.parent)
     WHERE NOT t.sweeping RETURNING prefix`,
    [
      wanted.map((one) => one.prefix),
      wanted.map((one) => one.topicId),
      wanted.map((one) => one.createdMs),
      wanted.map((one) => one.namespace.join('.')),
      wanted.map((one) => one.table),
      wanted.map((one) => one.parent),
    ],
  );
  const put = new Set(rows.map((row) => row.prefix));
  const swept = wanted.find(({ prefix }) => !put.has(prefix));
  if (swept !== undefined) throw sweptFiles(swept.prefix);
}

/** Several words about one prefix as one. */
function merged(intents: readonly Intent[]): Map<string, Intent> {
  const found = new Map<string, Intent>();
  for (const intent of intents) {
    const before = found.get(intent.prefix);
    const createdMs = before?.createdMs || intent.createdMs;
    const parent = intent.parent ?? before?.parent ?? null;
    found.set(intent.prefix, { ...(before ?? intent), createdMs, parent });
  }
  return found;
}

/**
 * Locks them, so that no sweep takes them until the transaction ends.
 * @returns false when one isn't there, or is being swept.
 */
export async function holdIntents(tx: Transaction, prefixes: readonly string[]): Promise<boolean> {
  if (prefixes.length === 0) return true;
  const rows = await tx.rows(
    `SELECT 1 FROM table_intents WHERE prefix = ANY ($1::text[]) AND NOT sweeping
     ORDER BY prefix FOR UPDATE`,
    [[...prefixes]],
  );
  return rows.length === new Set(prefixes).size;
}

export async function removeIntents(sql: Sql, prefixes: readonly string[]): Promise<void> {
  if (prefixes.length === 0) return;
  await sql.run(
    `WITH gone AS (
       SELECT prefix FROM table_intents WHERE prefix = ANY ($1::text[]) ORDER BY prefix FOR UPDATE)
     DELETE FROM table_intents t USING gone WHERE t.prefix = gone.prefix`,
    [[...prefixes]],
  );
}

/** @returns prefixes of those that were still there with that parent. */
export async function takeIntents(
  tx: Transaction,
  intents: readonly Pick<Intent, 'prefix' | 'parent'>[],
): Promise<readonly string[]> {
  const rows = await tx.rows<{ prefix: string }>(
    `WITH wanted AS (SELECT * FROM unnest($1::text[], $2::text[]) AS w(prefix, parent)),
     held AS (
       SELECT t.prefix FROM table_intents t WHERE EXISTS (
         SELECT 1 FROM wanted w WHERE w.prefix = t.prefix AND w.parent IS NOT DISTINCT FROM t.parent)
       ORDER BY t.prefix FOR UPDATE)
     UPDATE table_intents t SET sweeping = true FROM held WHERE t.prefix = held.prefix
     RETURNING t.prefix`,
    [intents.map(({ prefix }) => prefix), intents.map(({ parent }) => parent)],
  );
  const taken = new Set(rows.map((row) => row.prefix));
  return intents.map(({ prefix }) => prefix).filter((prefix) => taken.has(prefix));
}

/** Oldest first, then by prefix. */
export async function oldIntents(
  sql: Sql,
  {
    beforeMs,
    limit,
    after = FIRST_INTENT,
  }: {
    readonly beforeMs: number;
    readonly limit: number;
    readonly after: Pick<Intent, 'createdMs' | 'prefix'> | undefined;
  },
): Promise<readonly Intent[]> {
  const rows = await sql.rows<IntentRow>(
    `SELECT prefix, topic_id, created_ms, namespace, table_name, parent FROM table_intents
     WHERE created_ms < $1 AND (created_ms, prefix) > ($2, $3)
     ORDER BY created_ms, prefix LIMIT $4`,
    [beforeMs, after.createdMs, after.prefix, limit],
  );
  return rows.map((row) => ({
    prefix: row.prefix,
    topicId: row.topic_id,
    createdMs: row.created_ms,
    namespace: row.namespace.split('.'),
    table: row.table_name,
    parent: row.parent,
  }));
}
