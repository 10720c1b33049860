// The doctor on real stores: a cluster that is well, and each thing that can be wrong with its remedy.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../base/clock.ts';
import { seededPrng } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import { openPostgresMetadata } from '../../metadata/postgres/index.ts';
import { startPostgres, type TestServer } from '../../metadata/postgres/testing.ts';
import { openSqliteMetadata } from '../../metadata/sqlite/index.ts';
import { noteRecovered, RESTORED } from '../../metadata/transfer/index.ts';
import { claimCluster } from '../../storage/cluster.ts';
import { LocalObjectStore } from '../../storage/objects/index.ts';
import type { ClusterStatus } from '../cluster-status.ts';
import { serverSettings } from '../settings.ts';
import { examine } from './doctor.ts';
import { type Finding, findingsText } from './finding.ts';
import { judgeCluster, judgeTables } from './server.ts';

const ID = 'AAECAwQFBgcICQoLDA0ODw';
const folder = mkdtempSync(join(tmpdir(), 'floe-doctor-'));
const settings = resolveSettings(serverSettings, {});
let postgres: TestServer;

beforeAll(async () => {
  postgres = await startPostgres({ fsync: true });
}, 60_000);
afterAll(async () => {
  await postgres?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const of = (findings: readonly Finding[], what: string) =>
  findings.find((one) => one.what === what);
const wrongs = (findings: readonly Finding[]) =>
  findings.filter(({ severity }) => severity === 'wrong').map(({ what }) => what);

/** A database that is this cluster's. */
async function newCluster() {
  const url = await postgres.empty();
  const metadata = await openPostgresMetadata({
    url,
    clock: systemClock,
    prng: seededPrng(1),
    settings,
    applicationName: 'test',
  });
  await metadata.cluster.keepClusterId(ID);
  return { url, metadata };
}

async function newStore(name: string, clusterId: string): Promise<string> {
  const path = join(folder, name);
  const ids = { uuid: () => 'probe' };
  const store = await LocalObjectStore.open(path, { clock: systemClock, ids });
  await claimCluster(store, { expectedId: undefined, newId: clusterId, nowMs: 1 });
  return pathToFileURL(path).href;
}

test('a cluster that is well, then restored, then confirmed; a bucket of another', async () => {
  const { url, metadata } = await newCluster();
  const storage = await newStore('well', ID);
  const options = { dataDir: folder, metadata: url, storage, settings, confirm: false };

  const well = await examine(options);
  expect(wrongs(well)).toEqual([]);
  expect(of(well, 'migrations')).toMatchObject({ severity: 'ok', value: 'current' });
  expect(of(well, 'conditional writes')).toMatchObject({ value: 'honoured' });
  expect(of(well, 'embedded')).toMatchObject({ value: 'reachable, no tables' });
  expect(of(well, 'this machine against the database')).toMatchObject({ area: 'clock' });

  await noteRecovered(metadata.database);
  expect(wrongs(await examine(options))).toEqual(['restored']);
  expect(wrongs(await examine({ ...options, confirm: true }))).toEqual([]);
  expect(wrongs(await examine(options))).toEqual([]);

  await metadata.database
    .on('write')
    .run("UPDATE log_counter SET contradiction = 'commit 9 was made, and the newest is 4'");
  const putBack = await examine(options);
  expect(wrongs(putBack)).toEqual(['history']);
  expect(of(putBack, 'history')!.remedy).toContain('floe restore --in-place');
  await metadata.database.on('write').run('UPDATE log_counter SET contradiction = NULL');

  const foreign = await newStore('foreign', 'BAECAwQFBgcICQoLDA0ODw');
  const mixed = await examine({ ...options, storage: foreign });
  expect(wrongs(mixed)).toEqual(['cluster.json']);
  expect(findingsText(mixed)).toContain('do not belong together');
  await metadata.close();
});

test('a database that is away', async () => {
  const url = 'postgres://nobody@127.0.0.1:1/nothing';
  const storage = await newStore('away', ID);
  const found = await examine({
    dataDir: folder,
    metadata: url,
    storage,
    settings,
    confirm: false,
  });
  expect(of(found, 'reachable')).toMatchObject({ area: 'database', severity: 'wrong' });
  expect(of(found, 'conditional writes')).toMatchObject({ severity: 'ok' });
  // Whose the bucket is can't be known: it isn't called another's.
  expect(wrongs(found)).toEqual(['reachable']);
});

test('a bucket that is away says nothing of the catalog', async () => {
  const { url, metadata } = await newCluster();
  const away = {
    's3.endpoint': 'http://127.0.0.1:1',
    's3.region': 'us-east-1',
    's3.access.key.id': 'floe',
    's3.secret.access.key': 'floe-secret',
  };
  const found = await examine({
    dataDir: folder,
    metadata: url,
    storage: 's3://floe/cluster',
    settings: resolveSettings(serverSettings, away),
    confirm: false,
  });
  expect(wrongs(found)).toEqual(['reachable']);
  expect(of(found, 'reachable')).toMatchObject({ area: 'store' });
  expect(of(found, 'embedded')).toBeUndefined();
  await metadata.close();
});

test('tables that wait for somebody, as an operator reads it', () => {
  const running = { topic: 'clicks', state: 'running', reason: '' } as const;
  const suspended = { topic: 'orders', state: 'suspended', reason: 'no JSON' } as const;
  expect(judgeTables([running])).toMatchObject({ severity: 'ok', value: '1, none suspended' });
  expect(findingsText([judgeTables([running, suspended])])).toMatchInlineSnapshot(`
    "       area     what    found
    wrong  cluster  tables  suspended: orders (no JSON)

    wrong: tables: their records stay in the log: cure the cause, then say floe tables resume TOPIC; floe tables list names all
    "
  `);
});

test("a node's own directory", async () => {
  const dataDir = join(folder, 'node');
  await newStore(join('node', 'storage'), ID);
  const metadata = openSqliteMetadata(join(dataDir, 'metadata.db'));
  await metadata.cluster.keepClusterId(ID);
  const options = { dataDir, metadata: undefined, storage: undefined, settings, confirm: false };
  expect(wrongs(await examine(options))).toEqual([]);
  for (const sql of RESTORED) metadata.database.prepare(sql).run();
  expect(wrongs(await examine(options))).toEqual(['restored']);
  metadata.close();
  await expect(examine({ ...options, dataDir: folder })).rejects.toThrow(/holds no metadata.db/);
});

test('a cluster whose work nobody does', () => {
  const node = { nodeId: 1, state: 'silent', lag: 5_000, levels: { min: 1, max: 1 } };
  const lease = { name: 'maintenance/log', nodeId: null, epoch: 1, remainingMs: 0 };
  const status = { nodes: [node], leases: [lease], level: 1, commit: 9 };
  const found = judgeCluster(status as unknown as ClusterStatus);
  expect(found.map(({ what, severity }) => [what, severity])).toEqual([
    ['nodes', 'warning'],
    ['leases', 'wrong'],
    ['commit', 'warning'],
  ]);
});
