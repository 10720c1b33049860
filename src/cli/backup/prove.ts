// Whether metadata and what it refers to agree: after a restore, or a database's own point-in-time recovery. Every object
// of the log is there with its bytes, every table's metadata file is there, no table is ahead of its log. What nobody
// refers to (written after the backup) is counted: it stays until somebody confirms. Reads only.
import { isFloeError } from '../../base/error.ts';
import { Warehouse } from '../../catalog/warehouse.ts';
import type { ObjectStore } from '../../storage/objects/index.ts';
import type { Ask, AskedMetadata } from '../fsck/metadata.ts';
import { AT_ONCE, sizeFault } from '../fsck/objects.ts';
import { findOrphans } from '../fsck/orphans.ts';
import { objectPages } from '../fsck/rows.ts';
import { checkTiles } from '../fsck/tiles.ts';
import { eachOf } from '../migrate/objects.ts';

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

const MOST_LISTED = 10;

/** Of the restored database, which no broker works on yet. */
export async function prove(
  metadata: AskedMetadata,
  store: ObjectStore,
  clusterId: string,
): Promise<Proof> {
  const { ask } = metadata;
  const missing: string[] = [];
  let objects = 0;
  for await (const page of objectPages(ask)) {
    objects += page.length;
    await eachOf(page, AT_ONCE, async ({ key, bytes }) => {
      if ((await sizeFault(store, key, bytes)) !== undefined) missing.push(key);
    });
  }
  return {
    objects,
    missing,
    lostTables: await lostTables(ask, store),
    ahead: await ahead(metadata),
    orphans: await orphans(ask, store, clusterId),
  };
}

async function lostTables(ask: Ask, store: ObjectStore): Promise<readonly string[]> {
  const warehouse = new Warehouse(store);
  const lost: string[] = [];
  for (const { namespace, name, location } of await ask<{
    namespace: string;
    name: string;
    location: string;
  }>('SELECT namespace, name, metadata_location AS location FROM catalog_tables')) {
    try {
      if (await warehouse.exists(location)) continue;
    } catch (caught) {
      if (!isFloeError(caught, 'invalid')) throw caught;
    }
    lost.push(`${namespace}.${name}: ${location}`);
  }
  return lost;
}

async function ahead(metadata: AskedMetadata): Promise<readonly string[]> {
  const { faults } = await checkTiles(metadata, { pause: async () => {}, maxFaults: Infinity });
  return faults
    .filter(({ kind }) => kind === 'ahead')
    .map(({ partition, text }) => `${partition}: ${text}`);
}

async function orphans(ask: Ask, store: ObjectStore, clusterId: string): Promise<Proof['orphans']> {
  const anyAge = { nowMs: 0, orphanAgeMs: 0, withFiles: false };
  const { count, bytes, first } = await findOrphans({ ask, store, clusterId, ...anyAge });
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
