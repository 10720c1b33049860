import type { FastifyInstance } from 'fastify';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { silentLogger } from '../../base/log.ts';
import { seededIds, seededPrng } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import { openSqliteMetadata } from '../../metadata/sqlite/index.ts';
import { MemoryObjectStore } from '../../storage/objects/memory.ts';
import { EmbeddedCatalog } from '../embedded.ts';
import { catalogSettings } from '../settings.ts';
import { Warehouse } from '../warehouse.ts';
import { ENDPOINTS, fileAccess } from './config.ts';
import { createCatalogServer } from './routes.ts';

const SCHEMA = {
  type: 'struct',
  fields: [{ id: 1, name: 'id', required: true, type: 'long' }],
};
const S3 = {
  endpoint: 'http://127.0.0.1:9000',
  region: '',
  pathStyle: true,
  accessKeyId: 'key',
  secretAccessKey: 'secret',
  sessionToken: '',
};

let app: FastifyInstance;

beforeEach(async () => {
  const clock = new ManualClock();
  const settings = resolveSettings(catalogSettings, {});
  app = createCatalogServer({
    catalog: new EmbeddedCatalog({
      metadata: openSqliteMetadata(':memory:').catalog,
      warehouse: new Warehouse(new MemoryObjectStore(clock)),
      clock,
      ids: seededIds(seededPrng(9)),
      logger: silentLogger,
      settings,
    }),
    s3: S3,
    settings,
    logger: silentLogger,
  });
  await call('POST', '/namespaces', { namespace: ['n'] });
});

afterEach(() => app.close());

async function call(
  method: 'GET' | 'POST' | 'HEAD' | 'DELETE',
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
) {
  const payload = body === undefined ? {} : { payload: JSON.stringify(body) };
  const response = await app.inject({
    method,
    url: `/v1${path}`,
    headers: { 'content-type': 'application/json', ...headers },
    ...payload,
  });
  return response;
}

const create = (name: string) => call('POST', '/namespaces/n/tables', { name, schema: SCHEMA });

test('config lists what is served, for any warehouse name', async () => {
  const response = await call('GET', '/config?warehouse=anything');
  expect(response.json()).toEqual({ defaults: {}, overrides: {}, endpoints: ENDPOINTS });
});

test('every endpoint of the list has a route, with and without prefix', async () => {
  for (const endpoint of ENDPOINTS) {
    const [method, path] = endpoint.split(' ') as ['GET', string];
    for (const prefix of ['', '/some-prefix']) {
      const url = path
        .replace('/{prefix}', prefix)
        .replace('{namespace}', 'zz')
        .replace('{table}', 'zz');
      const { body } = await app.inject({ method, url });
      expect(body, `${method} ${url}`).not.toMatch(/no route/);
    }
  }
});

test('errors are exactly {error: {message, type, code}}', async () => {
  const missing = await call('GET', '/namespaces/n/tables/absent');
  expect(missing.statusCode).toBe(404);
  expect(missing.json()).toEqual({
    error: { message: 'Table does not exist: n.absent', type: 'NoSuchTableException', code: 404 },
  });
  const types = await Promise.all([
    call('GET', '/namespaces/zz'),
    call('POST', '/namespaces', { namespace: ['n'] }),
    call('POST', '/namespaces', { namespace: 'n' }),
    call('POST', '/namespaces/n/views', {}),
    call('GET', '/namespaces/n/views/v'),
    call('GET', '/nowhere'),
    app.inject({
      method: 'POST',
      url: '/v1/namespaces',
      payload: '{',
      headers: { 'content-type': 'application/json' },
    }),
  ]);
  expect(types.map((one) => [one.statusCode, one.json().error.type])).toEqual([
    [404, 'NoSuchNamespaceException'],
    [409, 'AlreadyExistsException'],
    [400, 'BadRequestException'],
    [406, 'UnsupportedOperationException'],
    [404, 'NoSuchViewException'],
    [404, 'NotFoundException'],
    [400, 'BadRequestException'],
  ]);
});

test('names of any kind, nested namespaces, pages', async () => {
  await call('POST', '/namespaces', { namespace: ['n', 'in ner'] });
  const path = `/namespaces/${encodeURIComponent('n\u001fin ner')}`;
  for (const name of ['a/b', 'a%b', '🚀', 'ü'.repeat(200)]) {
    const created = await call('POST', `${path}/tables`, { name, schema: SCHEMA });
    expect(created.statusCode, name).toBe(200);
    const loaded = await call('GET', `${path}/tables/${encodeURIComponent(name)}`);
    expect(loaded.json().metadata['table-uuid']).toBe(created.json().metadata['table-uuid']);
  }
  const first = (await call('GET', `${path}/tables?pageToken=&pageSize=3`)).json();
  expect(first.identifiers).toHaveLength(3);
  const next = encodeURIComponent(first['next-page-token']);
  const second = (await call('GET', `${path}/tables?pageToken=${next}&pageSize=3`)).json();
  expect(second.identifiers).toHaveLength(1);
  expect(second['next-page-token']).toBeNull();
});

test('64-bit ids pass unrounded in both directions', async () => {
  await create('t');
  const id = '9223372036854775807';
  const commit = `{"requirements":[],"updates":[
    {"action":"add-snapshot","snapshot":{"snapshot-id":${id},"sequence-number":1,"timestamp-ms":1800000000000,"manifest-list":"memory://floe/x.avro","summary":{"operation":"append"}}},
    {"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":${id}}]}`;
  const response = await app.inject({
    method: 'POST',
    url: '/v1/namespaces/n/tables/t',
    payload: commit,
    headers: { 'content-type': 'application/json' },
  });
  expect(response.statusCode).toBe(200);
  expect(response.body).toContain(`"current-snapshot-id":${id}`);
  expect((await call('GET', '/namespaces/n/tables/t')).body).toContain(`"snapshot-id":${id}`);
});

test('an unchanged table is answered by 304, a changed one anew', async () => {
  await create('t');
  const { etag } = (await call('GET', '/namespaces/n/tables/t')).headers;
  const again = { 'if-none-match': String(etag) };
  expect((await call('GET', '/namespaces/n/tables/t', undefined, again)).statusCode).toBe(304);
  const other = await call('GET', '/namespaces/n/tables/t?snapshots=refs', undefined, again);
  expect(other.statusCode).toBe(200);
  await call('POST', '/namespaces/n/tables/t', {
    requirements: [],
    updates: [{ action: 'set-properties', updates: { a: 'b' } }],
  });
  expect((await call('GET', '/namespaces/n/tables/t', undefined, again)).statusCode).toBe(200);
});

test('S3 clients are told how to reach the store, and get keys only by setting', () => {
  const open = fileAccess('s3://bucket/w', S3, false);
  expect(open).toMatchObject({
    's3.endpoint': `${S3.endpoint}/`,
    's3.path-style-access': 'true',
    'client.region': 'us-east-1',
  });
  expect(Object.keys(open)).not.toContain('s3.secret-access-key');
  expect(fileAccess('s3://bucket/w', S3, true)).toMatchObject({ 's3.access-key-id': 'key' });
  expect(fileAccess('file:///w', S3, true)).toEqual({});
});
