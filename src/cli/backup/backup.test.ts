// Backups of both stores, taken and brought back; what was written afterwards is told and stays; what is damaged or in the
// way is refused.
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../base/clock.ts';
import { seededIds, seededPrng, uuidToBytes } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import type { Metadata } from '../../metadata/metadata.ts';
import { openPostgresMetadata } from '../../metadata/postgres/index.ts';
import { startPostgres, type TestServer } from '../../metadata/postgres/testing.ts';
import { openSqliteMetadata } from '../../metadata/sqlite/index.ts';
import { testColumns } from '../../metadata/test-batches.ts';
import { LocalObjectStore, type ObjectStore } from '../../storage/objects/index.ts';
import { walKey } from '../../storage/paths.ts';
import { serverSettings } from '../settings.ts';
import { type BackupOptions, backup, noteRestored, restore } from './backup.ts';
import { isWhole, proofText } from './prove.ts';

const ID = 'AAECAwQFBgcICQoLDA0ODw';
const folder = mkdtempSync(join(tmpdir(), 'floe-backup-'));
const ids = seededIds(seededPrng(1));
const settings = resolveSettings(serverSettings, {});
let postgres: TestServer;

beforeAll(async () => {
  postgres = await startPostgres();
}, 60_000);
afterAll(async () => {
  await postgres?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const openPostgres = (url: string) =>
  openPostgresMetadata({
    url,
    clock: systemClock,
    prng: seededPrng(1),
    settings,
    applicationName: 'test',
    unsafeServer: true,
  });

const openStore = (path: string) => LocalObjectStore.open(path, { clock: systemClock, ids });

/** One topic, one object of one flush, a group and a user. @returns the partition. */
async function fill(metadata: Metadata, store: ObjectStore): Promise<number> {
  await metadata.cluster.keepClusterId(ID);
  const topic = await metadata.topics.create({
    topicId: ids.uuid(),
    name: 'orders',
    partitionCount: 1,
    config: {},
    nowMs: 1,
  });
  const [partitionId] = topic.partitions;
  await write(metadata, store, partitionId!);
  await metadata.quotas.alter([]);
  return partitionId!;
}

async function write(metadata: Metadata, store: ObjectStore, partitionId: number): Promise<string> {
  const key = walKey(ID, { timeMs: 1, id: ids.uuid() });
  await store.put(key, new Uint8Array(100));
  await metadata.log.commit([
    {
      flushId: uuidToBytes(ids.uuid()),
      object: { key, kind: 'object', generation: 0, bytes: 100 },
      nowMs: 1,
      batches: testColumns([{ partitionId, records: 1 }]),
    },
  ]);
  return key;
}

test('PostgreSQL: as of the backup; later objects are orphans; ids go on behind', async () => {
  const path = join(folder, 'shared');
  const store = await openStore(path);
  const url = await postgres.empty();
  const metadata = await openPostgres(url);
  const partitionId = await fill(metadata, store);
  const place = join(folder, 'backup-pg');
  const storage = pathToFileURL(path).href;
  const common = { place, dataDir: folder, storage, settings, unsafeServer: true };
  const taken = await backup({ ...common, metadata: url });
  expect(taken).toMatchObject({ clusterId: ID, lastCommit: 1 });
  await expect(backup({ ...common, metadata: url })).rejects.toMatchObject({ code: 'conflict' });
  const later = await write(metadata, store, partitionId);
  const expected = await metadata.topics.list();
  await metadata.close();

  const fresh = await postgres.empty();
  const { proof } = await restore({ ...common, metadata: fresh });
  expect(proof).toMatchObject({ objects: 1, missing: [], orphans: { count: 1, first: [later] } });
  expect(isWhole(proof)).toBe(true);
  const back = await openPostgres(fresh);
  expect(await back.topics.list()).toEqual(expected);
  expect(await back.log.partitions()).toMatchObject([{ partitionId, highWatermark: 1 }]);
  expect(await back.log.flushesAfter(0, 10)).toHaveLength(1);
  expect(await back.cluster.incarnation()).toEqual({ restores: 1, confirmed: false });
  expect((await back.producers.initProducerId(1)).producerId).toBeGreaterThanOrEqual(1_000_000);
  await write(back, store, partitionId);
  expect(await back.log.lastCommitNumber()).toBe(2);
  await back.close();

  const again = restore({ ...common, metadata: fresh });
  await expect(again).rejects.toThrow(/restore into an empty one/);
  const noted = await noteRestored({ ...common, metadata: fresh });
  expect(noted.missing).toEqual([]);
}, 60_000);

test('a damaged backup and lost objects are named', async () => {
  const path = join(folder, 'shared-2');
  const store = await openStore(path);
  const url = await postgres.empty();
  const metadata = await openPostgres(url);
  await fill(metadata, store);
  const place = join(folder, 'backup-damaged');
  const storage = pathToFileURL(path).href;
  const common: Omit<BackupOptions, 'metadata'> = {
    place,
    dataDir: folder,
    storage,
    settings,
    unsafeServer: true,
  };
  await backup({ ...common, metadata: url });
  const { objectKey } = (await metadata.log.flushesAfter(0, 1))[0]!;
  await metadata.close();
  await store.delete([objectKey]);
  const lost = await restore({ ...common, metadata: await postgres.empty() });
  expect(isWhole(lost.proof)).toBe(false);
  expect(proofText(lost.proof)).toContain(objectKey);

  const part = join(place, 'topics', readdirSync(join(place, 'topics'))[0]!);
  writeFileSync(part, 'x');
  const damaged = restore({ ...common, metadata: await postgres.empty() });
  await expect(damaged).rejects.toMatchObject({ code: 'corrupt' });
  for (const content of ['no JSON', 'null', '{"parts": []}']) {
    writeFileSync(join(place, 'manifest.json'), content);
    const strange = restore({ ...common, metadata: url });
    await expect(strange).rejects.toMatchObject({ code: 'corrupt' });
  }
  const nothing = restore({ ...common, place: join(folder, 'nowhere'), metadata: url });
  await expect(nothing).rejects.toThrow(/holds no manifest.json/);
}, 60_000);

test('SQLite: taken while the node runs, brought back into a directory without metadata', async () => {
  const dataDir = join(folder, 'node');
  const store = await openStore(join(dataDir, 'storage'));
  const metadata = openSqliteMetadata(join(dataDir, 'metadata.db'));
  await fill(metadata, store);
  const place = join(folder, 'backup-sqlite');
  const common = { place, dataDir, metadata: undefined, storage: undefined, settings };
  expect(await backup(common)).toMatchObject({ clusterId: ID, lastCommit: 1 });
  metadata.close();
  await expect(restore(common)).rejects.toThrow(/metadata.db is there/);
  for (const name of readdirSync(dataDir)) {
    if (name.startsWith('metadata.db')) rmSync(join(dataDir, name));
  }
  const { proof, lastCommit } = await restore(common);
  expect({ lastCommit, objects: proof.objects, whole: isWhole(proof) }).toEqual({
    lastCommit: 1,
    objects: 1,
    whole: true,
  });
  const back = openSqliteMetadata(join(dataDir, 'metadata.db'));
  expect(await back.cluster.incarnation()).toEqual({ restores: 1, confirmed: false });
  back.close();
  const mixed = restore({ ...common, metadata: await postgres.empty() });
  await expect(mixed).rejects.toThrow(/is a backup of sqlite/);
});
