import type { FastifyInstance } from 'fastify';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import { silentLogger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import { seededIds, seededPrng } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import { openSqliteMetadata } from '../../metadata/sqlite/index.ts';
import { MemoryObjectStore } from '../../storage/objects/memory.ts';
import { EmbeddedCatalog } from '../embedded.ts';
import { catalogSettings } from '../settings.ts';
import { CatalogTokens } from '../tokens.ts';
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
let clock: ManualClock;
let tokens: CatalogTokens;

beforeEach(async () => {
  const settings = resolveSettings(catalogSettings, {});
  const metadata = openSqliteMetadata(':memory:').catalog;
  const ids = seededIds(seededPrng(9));
  clock = new ManualClock();
  const shared = { metadata, clock, ids, logger: silentLogger, settings, metrics: noMetrics };
  tokens = new CatalogTokens({ ...shared, lifetimeMs: 60_000 });
  app = createCatalogServer({
    ...shared,
    catalog: new EmbeddedCatalog({
      ...shared,
      warehouse: new Warehouse(new MemoryObjectStore(clock)),
    }),
    s3: S3,
    tokens,
    authority: {
      async login(user, password) {
        if (password === 'right') return user;
        throw new FloeError('unauthorized', 'wrong user or password');
      },
      userOfToken: (token) => tokens.verify(token),
    },
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
  expect(open.config).toMatchObject({
    's3.endpoint': `${S3.endpoint}/`,
    's3.path-style-access': 'true',
    'client.region': 'us-east-1',
  });
  expect(open.credentials).toEqual([]);
  expect(Object.keys(open.config)).not.toContain('s3.secret-access-key');
  const handed = fileAccess('s3://bucket/w', S3, true);
  expect(handed.config).toMatchObject({ 's3.access-key-id': 'key' });
  expect(handed.credentials).toMatchObject([
    { prefix: 's3://bucket/w/', config: { 's3.secret-access-key': 'secret' } },
  ]);
  expect(fileAccess('file:///w', S3, true)).toEqual({ config: {}, credentials: [] });
});

const VIEW = {
  name: 'v',
  schema: SCHEMA,
  properties: {},
  'view-version': {
    'version-id': 1,
    'timestamp-ms': 5,
    'schema-id': 0,
    summary: {},
    representations: [{ type: 'sql', sql: 'select 1', dialect: 'spark' }],
    'default-namespace': ['n'],
  },
};

test('views: created, loaded, replaced, listed by pages, renamed, dropped', async () => {
  const created = await call('POST', '/namespaces/n/views', VIEW);
  expect(created.json().metadata).toMatchObject({ 'current-version-id': 1 });
  expect((await call('HEAD', '/namespaces/n/views/v')).statusCode).toBe(204);
  const replaced = await call('POST', '/namespaces/n/views/v', {
    updates: [{ action: 'set-properties', updates: { comment: 'c' } }],
  });
  expect(replaced.json().metadata.properties).toEqual({ comment: 'c' });
  await call('POST', '/namespaces/n/views', { ...VIEW, name: 'w' });
  const first = (await call('GET', '/namespaces/n/views?pageToken=&pageSize=1')).json();
  expect(first).toMatchObject({ identifiers: [{ namespace: ['n'], name: 'v' }] });
  const token = first['next-page-token'] as string;
  const second = (await call('GET', `/namespaces/n/views?pageToken=${token}&pageSize=1`)).json();
  expect(second).toEqual({
    identifiers: [{ namespace: ['n'], name: 'w' }],
    'next-page-token': null,
  });
  const rename = { source: { namespace: ['n'], name: 'v' } };
  const destination = (name: string) => ({ ...rename, destination: { namespace: ['n'], name } });
  expect((await call('POST', '/views/rename', destination('w'))).json().error).toMatchObject({
    code: 409,
    type: 'AlreadyExistsException',
  });
  expect((await call('POST', '/views/rename', destination('x'))).statusCode).toBe(204);
  expect((await call('DELETE', '/namespaces/n/views/x')).statusCode).toBe(204);
  expect((await call('GET', '/namespaces/n/views/x')).json().error).toEqual({
    message: 'View does not exist: n.x',
    type: 'NoSuchViewException',
    code: 404,
  });
});

test('an unregistered table is gone and its files are left', async () => {
  await create('t');
  const gone = await call('POST', '/namespaces/n/tables/t/unregister');
  expect(gone.json()).toMatchObject({ metadata: { 'format-version': 2 } });
  expect((await call('GET', '/namespaces/n/tables/t')).statusCode).toBe(404);
  const location = gone.json()['metadata-location'] as string;
  const again = await call('POST', '/namespaces/n/register', {
    name: 'u',
    'metadata-location': location,
  });
  expect(again.json()['metadata-location']).toBe(location);
});

test('credentials are asked for by table', async () => {
  await create('t');
  const found = await call('GET', '/namespaces/n/tables/t/credentials');
  expect(found.json()).toEqual({ 'storage-credentials': [] });
  expect((await call('GET', '/namespaces/n/tables/zz/credentials')).statusCode).toBe(404);
});

test.each([
  ['/namespaces?pageToken=&pageSize=0', 400],
  ['/namespaces/n/tables?pageToken=&pageSize=x', 400],
  ['/namespaces?parent=zz', 404],
  ['/namespaces?parent=', 200],
  ['/namespaces/n/tables/t?snapshots=some', 400],
])('%s is answered by %i', async (path, status) => {
  expect((await call('GET', path)).statusCode).toBe(status);
});

test('reports of engines are checked', async () => {
  const report = {
    'report-type': 'commit-report',
    'table-name': 't',
    'snapshot-id': 1,
    'sequence-number': 1,
    operation: 'append',
    metrics: {},
  };
  const path = '/namespaces/n/tables/t/metrics';
  expect((await call('POST', path, report)).statusCode).toBe(204);
  expect((await call('POST', path, { 'report-type': 'of-tomorrow' })).statusCode).toBe(204);
  const wrong = await call('POST', path, { ...report, operation: 1 });
  expect(wrong.json().error).toMatchObject({ code: 400, type: 'BadRequestException' });
});

async function form(fields: Readonly<Record<string, string>>, authorization?: string) {
  const response = await app.inject({
    method: 'POST',
    url: '/v1/oauth/tokens',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      ...(authorization === undefined ? {} : { authorization }),
    },
    payload: new URLSearchParams(fields).toString(),
  });
  return [response.statusCode, response.json()] as const;
}

test('a password or a token gives a token (RFC 6749, RFC 8693)', async () => {
  const credentials = { grant_type: 'client_credentials', scope: 'catalog' };
  const [status, granted] = await form({
    ...credentials,
    client_id: 'ann',
    client_secret: 'right',
  });
  expect([status, granted]).toMatchObject([
    200,
    { token_type: 'bearer', expires_in: 60, scope: 'catalog' },
  ]);
  expect(await tokens.verify(granted.access_token)).toBe('ann');
  const basic = `Basic ${Buffer.from('bob:right').toString('base64')}`;
  const [, byHeader] = await form(credentials, basic);
  expect(await tokens.verify(byHeader.access_token)).toBe('bob');
  await clock.advance(50_000);
  const [, exchanged] = await form({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token: granted.access_token,
    subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
  });
  await clock.advance(50_000);
  expect(await tokens.verify(exchanged.access_token)).toBe('ann');
});

test.each([
  [401, 'invalid_client', { client_id: 'ann', client_secret: 'wrong' }],
  [400, 'invalid_request', { client_id: 'ann' }],
  [400, 'unsupported_grant_type', { grant_type: 'password' }],
  [
    400,
    'invalid_grant',
    {
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: 'nonsense',
      subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    },
  ],
])('a token is refused with %i %s', async (status, error, fields) => {
  const answer = await form({ grant_type: 'client_credentials', ...fields });
  expect(answer).toMatchObject([status, { error }]);
});
