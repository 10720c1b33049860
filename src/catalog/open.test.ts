import { afterEach, expect, test } from 'vitest';
import { systemClock } from '../base/clock.ts';
import { silentLogger } from '../base/log.ts';
import { noMetrics } from '../base/metrics.ts';
import { seededIds, seededPrng } from '../base/prng.ts';
import { resolveSettings } from '../base/settings.ts';
import { objectSettings, type StoreKeys } from '../storage/objects/index.ts';
import { MemoryObjectStore } from '../storage/objects/memory.ts';
import { GlueCatalog } from './glue/glue-catalog.ts';
import { type OpenedCatalog, openCatalog } from './open.ts';
import { RestCatalog } from './rest/rest-catalog.ts';
import { vendedIn } from './rest/vended.ts';
import { catalogSettings } from './settings.ts';
import { serveCatalog } from './testing/served.ts';

const opened: OpenedCatalog[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one.stop();
});

async function open(given: Readonly<Record<string, string>>, served = serveCatalog()) {
  const { app, embedded, uri } = await served;
  await app.ready();
  const text = Object.entries(given).map(([name, value]) => [name, value.replace('URI', uri)]);
  const made = await openCatalog({
    settings: resolveSettings({ ...catalogSettings, ...objectSettings }, Object.fromEntries(text)),
    embedded,
    store: new MemoryObjectStore(systemClock),
    clock: systemClock,
    prng: seededPrng(1),
    ids: seededIds(seededPrng(2)),
    logger: silentLogger,
    metrics: noMetrics,
  }).finally(() => app.close());
  opened.push(made);
  return { made, embedded };
}

test('the embedded catalog is the default', async () => {
  const { made, embedded } = await open({});
  expect(made.catalog).toBe(embedded);
  expect(made.warehouse).toBe(embedded.warehouse);
});

test('others are opened without being asked anything', async () => {
  const rest = { 'catalog.type': 'rest', 'catalog.uri': 'http://127.0.0.1:1' };
  const plain = await open({ ...rest, 'catalog.storage': 's3://bucket/tables/' });
  expect(plain.made.catalog).toBeInstanceOf(RestCatalog);
  expect(plain.made.storeUri).toBe('s3://bucket/tables');
  expect(plain.made.warehouse.holds('s3://bucket/tables/ns/t/x.parquet')).toBe(true);
  expect(plain.made.warehouse.holds('s3://bucket/other/x')).toBe(false);
  const vended = await open({
    ...rest,
    'catalog.warehouse': 's3://bucket/w',
    'catalog.vended.credentials': 'true',
  });
  expect(vended.made.storeUri).toBe('vended+s3://bucket/w');
  expect(vended.made.warehouse.uri).toBe('s3://bucket/w');
  const glue = await open({
    'catalog.type': 'glue',
    'catalog.warehouse': 's3://bucket/w',
    'catalog.aws.region': 'us-east-1',
  });
  expect(glue.made.catalog).toBeInstanceOf(GlueCatalog);
});

test.each([
  [{ 'catalog.uri': 'http://x' }, /^catalog.uri is for another catalog/],
  [{ 'catalog.type': 'rest', 'catalog.uri': 'http://x' }, /^catalog.storage: /],
  [{ 'catalog.type': 'rest', 'catalog.storage': 's3://b' }, /^catalog.uri: it is missing/],
  [
    { 'catalog.type': 'glue', 'catalog.warehouse': 'name' },
    /^catalog.storage: .*catalog.type=glue/,
  ],
])('what is missing is named: %j', async (given, message) => {
  await expect(open(given as Record<string, string>)).rejects.toThrow(message);
});

test('the configured client gets in by its credential', async () => {
  const served = serveCatalog();
  const { uri } = await served;
  const text = {
    'catalog.type': 'rest',
    'catalog.uri': uri,
    'catalog.storage': 's3://bucket',
    'catalog.credential': 'floe:secret',
  };
  const { app, embedded } = await served;
  const made = await openCatalog({
    settings: resolveSettings({ ...catalogSettings, ...objectSettings }, text),
    embedded,
    store: new MemoryObjectStore(systemClock),
    clock: systemClock,
    prng: seededPrng(1),
    ids: seededIds(seededPrng(2)),
    logger: silentLogger,
    metrics: noMetrics,
  });
  opened.push(made);
  await made.catalog.ensureNamespace(['a']);
  expect(await made.catalog.listNamespaces([])).toEqual([['a']]);
  await app.close();
});

const key = (id: string): Partial<StoreKeys> => ({ accessKeyId: id, secretAccessKey: 's' });

test('keys are taken from storage-credentials, else from config', () => {
  const config = {
    's3.access-key-id': 'wide',
    's3.secret-access-key': 's',
    's3.endpoint': 'http://e',
  };
  const narrow = { ...config, 's3.access-key-id': 'narrow', 's3.session-token': 'st' };
  expect(vendedIn('s3://b/t', { config })).toMatchObject([
    { ...key('wide'), prefix: 's3://b/t/', endpoint: 'http://e', sessionToken: '' },
  ]);
  expect(
    vendedIn('s3://b/t', {
      config,
      'storage-credentials': [{ prefix: 's3://b/', config: narrow }],
    }),
  ).toMatchObject([{ ...key('narrow'), prefix: 's3://b/', sessionToken: 'st' }]);
  expect(vendedIn('s3://b/t', {})).toEqual([]);
});
