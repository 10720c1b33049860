// Whether metadata and what it refers to agree: after a restore, or a database's own point-in-time recovery. Every object
// of the log is there with its bytes, every table's metadata file is there, no table is ahead of its log. What nobody
// refers to (written after the backup) is counted: it stays until somebody confirms. Reads only.
import { isFloeError } from '../../base/error.ts';
import { Warehouse } from '../../catalog/warehouse.ts';
import type { ObjectStore } from '../../storage/objects/index.ts';
import { parseKey, streamPrefix, walPrefix } from '../../storage/paths.ts';
import { eachOf } from '../migrate/objects.ts';

/** Asks the restored database; texts run on SQLite and PostgreSQL alike. */
export type Ask = (sql: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;

export interface Proof {
  readonly objects: number;
  /** Keys that rows refer to and the store doesn't have whole. */
  readonly missing: readonly string[];
  /** Tables whose metadata file is gone. */
  readonly lostTables: readonly string[];
  /** Partitions of which a table has committed more than the log holds. */
  readonly ahead: readonly string[];
  /** Objects of the log without a row. */
  readonly orphans: {
    readonly count: number;
    readonly bytes: number;
    readonly first: readonly string[];
  };
}

const AT_ONCE = 16;
const MOST_LISTED = 10;

export async function prove(ask: Ask, store: ObjectStore, clusterId: string): Promise<Proof> {
  const objects =
    await ask(`SELECT key, bytes FROM log_objects o WHERE state = 'open' OR state = 'sealed'
    AND EXISTS (SELECT 1 FROM object_entries e WHERE e.object_id = o.object_id)`);
  const missing: string[] = [];
  await eachOf(objects, AT_ONCE, async ({ key, bytes }) => {
    const head = await store.head(key as string);
    // A write-ahead file may have room behind its last flush.
    if (head === undefined || head.size < Number(bytes)) missing.push(key as string);
  });
  return {
    objects: objects.length,
    missing,
    lostTables: await lostTables(ask, store),
    ahead: await ahead(ask),
    orphans: await orphans(ask, store, clusterId),
  };
}

async function lostTables(ask: Ask, store: ObjectStore): Promise<readonly string[]> {
  const warehouse = new Warehouse(store);
  const lost: string[] = [];
  for (const { namespace, name, location } of await ask(
    'SELECT namespace, name, metadata_location AS location FROM catalog_tables',
  )) {
    try {
      if (await warehouse.exists(location as string)) continue;
    } catch (caught) {
      if (!isFloeError(caught, 'invalid')) throw caught;
    }
    lost.push(`${namespace}.${name}: ${location}`);
  }
  return lost;
}

async function ahead(ask: Ask): Promise<readonly string[]> {
  const rows = await ask(`
    SELECT t.topic_name AS topic, p.partition_index AS partition, p.committed_end AS committed, l.high_watermark AS log_end
    FROM table_positions p JOIN table_topics t ON t.topic_id = p.topic_id
    JOIN partitions q ON q.topic_id = p.topic_id AND q.partition_index = p.partition_index
    JOIN log_partitions l ON l.partition_id = q.partition_id WHERE p.committed_end > l.high_watermark`);
  return rows.map(
    ({ topic, partition, committed, log_end }) =>
      `${topic} ${partition}: the table has offsets below ${committed}, the log ends at ${log_end}`,
  );
}

async function orphans(ask: Ask, store: ObjectStore, clusterId: string): Promise<Proof['orphans']> {
  const known = new Set((await ask('SELECT key FROM log_objects')).map(({ key }) => key as string));
  let count = 0;
  let bytes = 0;
  const first: string[] = [];
  for (const prefix of [walPrefix(clusterId), streamPrefix(clusterId)]) {
    for await (const { key, size } of store.list(prefix)) {
      if (known.has(key) || parseKey(clusterId, key) === undefined) continue;
      count += 1;
      bytes += size;
      if (first.length < MOST_LISTED) first.push(key);
    }
  }
  return { count, bytes, first };
}

/** For people. */
export function proofText({
  objects,
  missing,
  lostTables: lost,
  ahead: before,
  orphans,
}: Proof): string {
  const listed = (what: string, found: readonly string[]) =>
    found.length === 0
      ? ''
      : `${what}: ${found.length}\n${found
          .slice(0, MOST_LISTED)
          .map((one) => `  ${one}\n`)
          .join('')}`;
  return [
    `objects of the log: ${objects}, ${objects - missing.length} of them there and whole\n`,
    listed('missing or short (their offsets are lost: restore them in the bucket)', missing),
    listed('tables without their metadata file', lost),
    listed('tables ahead of their log (rewind them: floe tables rewind)', before),
    `written after the backup: ${orphans.count} objects, ${orphans.bytes} bytes; they stay until floe doctor --confirm\n`,
    orphans.first.map((key) => `  ${key}\n`).join(''),
  ].join('');
}

export const isWhole = ({ missing, lostTables: lost, ahead: before }: Proof): boolean =>
  missing.length + lost.length + before.length === 0;
