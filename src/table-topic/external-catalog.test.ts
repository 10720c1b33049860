// Table topics whose catalog is somebody else's: an Iceberg REST catalog over HTTP with OAuth2, and AWS Glue. Answers
// get lost, come late or are refused; every row is in the table once.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../base/clock.ts';
import { silentLogger } from '../base/log.ts';
import { seededIds, seededPrng } from '../base/prng.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { GlueApi } from '../catalog/glue/glue-api.ts';
import { GlueCatalog } from '../catalog/glue/glue-catalog.ts';
import { FakeGlue } from '../catalog/testing/fake-glue.ts';
import {
  brokenConnection,
  FaultyFetch,
  restClient,
  type Served,
  serveCatalog,
} from '../catalog/testing/served.ts';
import { Warehouse } from '../catalog/warehouse.ts';
import { MemoryObjectStore } from '../storage/objects/memory.ts';
import { Bench } from './testing/bench.ts';
import { coordinates } from './testing/parquet-rows.ts';

const TEXT = { 'table.topic.convert.value.type': 'string' };
const NEVER = { ...TEXT, 'table.topic.commit.interval.ms': '900000' };
const lines = (...values: string[]) => values.map((value) => ({ value }));

let bench: Bench;
let catalog: Catalog;
let warehouse: Warehouse;

beforeEach(async () => {
  bench = await Bench.open();
});

const where = async (name: string, namespace = 'kafka') =>
  coordinates(warehouse, (await catalog.loadTable({ namespace: [namespace], name })).metadata);

describe('rest', () => {
  let served: Served;
  let net: FaultyFetch;

  beforeEach(async () => {
    served = await serveCatalog();
    net = new FaultyFetch();
    catalog = restClient(served, net.fetch);
    ({ warehouse } = served);
  });

  afterEach(async () => {
    await bench.stop();
    await served.app.close();
  });

  const commits = (method: string, url: string) =>
    method === 'POST' && /\/tables\/[^/]+$/.test(url);

  test('rows land once, whatever becomes of answers (T4, T5)', async () => {
    bench.start({ catalog, warehouse });
    const topic = await bench.topic('t', NEVER);
    bench.produce(topic, lines('a'));
    await bench.tables.commit('t');
    const faults = [
      async (real: () => Promise<Response>) => {
        await real();
        throw brokenConnection();
      },
      async (real: () => Promise<Response>) => {
        await real();
        return new Response('{"error":{"message":"m","type":"CommitStateUnknownException"}}', {
          status: 500,
        });
      },
      async () => new Response('<html>gateway</html>', { status: 504 }),
      async () => new Response('', { status: 429, headers: { 'retry-after': '0' } }),
      () => Promise.reject(brokenConnection('ECONNREFUSED')),
    ];
    for (const answer of faults) {
      net.faults.push({ fits: commits, answer });
      bench.produce(topic, lines('b'));
      await bench.tables.commit('t');
    }
    expect(await where('t')).toEqual(['0/0', '0/1', '0/2', '0/3', '0/4', '0/5']);
    expect(net.faults).toHaveLength(0);
    expect((await bench.tables.status('t')).counters.rows).toBe(6);
  });

  test('a catalog that is away when we start is said in the status, and found again', async () => {
    let away = true;
    catalog = restClient(served, (url, init) =>
      away ? Promise.reject(brokenConnection('ECONNREFUSED')) : net.fetch(url, init),
    );
    await bench.stop();
    bench = await Bench.open({
      settings: { 'table.retry.first.ms': '300', 'table.retry.max.ms': '600' },
    });
    bench.start({ catalog, warehouse });
    const topic = await bench.topic('t', TEXT);
    bench.produce(topic, lines('a', 'b'));
    await expect
      .poll(async () => (await bench.tables.status('t')).reason ?? '', { timeout: 10_000 })
      .toMatch(/token endpoint .* fails/);
    away = false;
    await expect
      .poll(() => where('t').catch(() => []), { timeout: 10_000 })
      .toEqual(['0/0', '0/1']);
    expect((await bench.tables.status('t')).reason).toBe('');
  });
});

test('glue: rows land once through throttling, other writers and lost answers', async () => {
  const glue = new FakeGlue();
  const access = {
    region: 'us-east-1',
    endpoint: await glue.listen(),
    credentials: { accessKeyId: 'a', secretAccessKey: 's' },
    timeoutMs: 5_000,
  };
  const api = new GlueApi(access, systemClock);
  warehouse = new Warehouse(new MemoryObjectStore(systemClock), 'w/');
  catalog = new GlueCatalog({
    api,
    warehouse,
    clock: systemClock,
    prng: seededPrng(2),
    ids: seededIds(seededPrng(3)),
    logger: silentLogger,
    catalogId: '',
    skipArchive: true,
    cacheBytes: 1024 * 1024,
    readAttempts: 3,
    commitAttempts: 8,
    staleMs: 60_000,
  });
  try {
    bench.start({ catalog, warehouse });
    const topic = await bench.topic('t', NEVER);
    for (const fault of [
      'throttled',
      'concurrent',
      'error-before',
      'error-after',
      'lost',
    ] as const) {
      bench.produce(topic, lines('a'));
      if (glue.tableOf('kafka', 't') !== undefined) glue.fail('UpdateTable', fault);
      await bench.tables.commit('t');
    }
    expect(await where('t')).toEqual(['0/0', '0/1', '0/2', '0/3', '0/4']);
    const { table, archived } = glue.tableOf('kafka', 't')!;
    expect(table['Parameters']).toMatchObject({ table_type: 'ICEBERG' });
    expect(archived).toBe(0);
  } finally {
    await bench.stop();
    api.stop();
    await glue.app.close();
  }
});
