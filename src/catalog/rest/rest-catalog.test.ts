import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import type { Schema } from '../../formats/iceberg/index.ts';
import { catalogContract } from '../contract.ts';
import {
  anonymous,
  brokenConnection,
  FaultyFetch,
  floeAuth,
  restClient,
  type Served,
  serveCatalog,
} from '../testing/served.ts';
import { bearerAuth } from './oauth2.ts';
import { SigV4Auth } from './sigv4.ts';

const running: Served[] = [];
afterAll(() => Promise.all(running.map(({ app }) => app.close())));

async function serve(): Promise<Served> {
  const served = await serveCatalog();
  running.push(served);
  return served;
}

const isCommit = (method: string, url: string) => method === 'POST' && /\/tables\/[^/]+$/.test(url);
const isLoad = (method: string, url: string) => method === 'GET' && /\/tables\/[^/]+$/.test(url);

describe('contract', () =>
  catalogContract('rest', async () => {
    const served = await serve();
    const net = new FaultyFetch();
    return {
      // Without ETags, so that there is an old answer to give.
      catalog: restClient(served, net.fetch, { cacheBytes: 0 }),
      files: served.warehouse,
      badTables: [],
      loseReply: () =>
        net.faults.push({
          fits: isCommit,
          async answer(real) {
            await real();
            throw brokenConnection();
          },
        }),
      staleReply: () =>
        net.faults.push({ fits: isLoad, answer: async (_real, url) => net.first(url) }),
    };
  }));

const schema: Schema = {
  type: 'struct',
  'schema-id': 0,
  fields: [{ id: 1, name: 'id', required: false, type: 'long' }],
};
const t = { namespace: ['n'], name: 't' };
const setA = { requirements: [], updates: [{ action: 'set-properties', updates: { a: 'b' } }] };

describe('a failure is what it proves', () => {
  let served: Served;
  let net: FaultyFetch;
  let catalog: ReturnType<typeof restClient>;

  beforeAll(async () => {
    served = await serve();
    await served.embedded.createNamespace(['n']);
  });

  beforeEach(async () => {
    net = new FaultyFetch();
    catalog = restClient(served, net.fetch);
    await served.embedded.dropTable(t, { purge: true }).catch(() => {});
    await catalog.createTable(['n'], { name: 't', schema });
  });

  const answerWith =
    (status: number, body: unknown, headers: Record<string, string> = {}) =>
    async () =>
      new Response(typeof body === 'string' ? body : JSON.stringify(body), { status, headers });
  const error = (code: number, type: string) => ({ error: { message: 'm', type, code } });

  test.each([
    [400, 'BadRequestException', 'invalid'],
    [403, 'ForbiddenException', 'unauthorized'],
    [404, 'NoSuchTableException', 'not-found'],
    [406, 'UnsupportedOperationException', 'unsupported'],
    [409, 'CommitFailedException', 'conflict'],
    [422, 'UnprocessableEntityException', 'invalid'],
    [429, 'TooManyRequests', 'unavailable'],
    [500, 'CommitStateUnknownException', 'timeout'],
    [500, 'InternalServerError', 'timeout'],
    [502, 'CommitStateUnknownException', 'timeout'],
    [503, 'ServiceUnavailableException', 'timeout'],
    [504, 'CommitStateUnknownException', 'timeout'],
  ])('a commit answered %i %s is %s, and is sent once', async (status, type, code) => {
    net.faults.push({ fits: isCommit, answer: answerWith(status, error(status, type)) });
    await expect(catalog.commitTable(t, setA)).rejects.toMatchObject({
      code,
      details: { status, type },
    });
    expect((await catalog.loadTable(t)).metadata.properties).toEqual({});
  });

  test.each([
    ['a broken connection', 'timeout', () => Promise.reject(brokenConnection())],
    ['no connection', 'unavailable', () => Promise.reject(brokenConnection('ECONNREFUSED'))],
    ['half an answer', 'timeout', answerWith(200, '{"metadata-location": "x", "meta')],
    ['another answer', 'timeout', answerWith(200, { hello: 'world' })],
    ['a page of a proxy', 'timeout', answerWith(200, '<html>Welcome</html>')],
    ['a 404 of a proxy', 'unavailable', answerWith(404, '<html>not here</html>')],
    ['a redirect', 'invalid', answerWith(307, '', { location: 'http://else.where/' })],
  ])('a commit that gets %s is %s', async (_what, code, answer) => {
    net.faults.push({ fits: isCommit, answer });
    await expect(catalog.commitTable(t, setA)).rejects.toMatchObject({ code });
  });

  test('a read is repeated, as patiently as the catalog asks', async () => {
    const clock = new ManualClock();
    const patient = restClient(served, net.fetch, {
      clock,
      auth: floeAuth(served, net.fetch, clock),
    });
    await patient.loadTable(t);
    for (const status of [503, 429])
      net.faults.push({
        fits: isLoad,
        answer: answerWith(status, error(status, 'x'), { 'retry-after': '7' }),
      });
    const before = clock.monotonic();
    const loading = patient.loadTable(t);
    let done = false;
    void loading.finally(() => {
      done = true;
    });
    while (!done) {
      await new Promise((resolve) => setImmediate(resolve));
      // Enough for both waits; the answer after them comes over a real socket, which no clock may overtake.
      const waiting = clock.monotonic() - before < 20_000;
      if (net.faults.length < 2 && waiting) await clock.advance(500);
    }
    expect((await loading).metadata.properties).toEqual({});
    expect(clock.monotonic() - before).toBeGreaterThanOrEqual(14_000);
  });

  test('a read gives up after its attempts, as unavailable', async () => {
    for (let n = 0; n < 3; n += 1)
      net.faults.push({ fits: isLoad, answer: () => Promise.reject(brokenConnection()) });
    await expect(catalog.loadTable(t)).rejects.toMatchObject({ code: 'unavailable' });
    expect(net.faults).toHaveLength(0);
  });

  test('a table whose metadata file is gone is not a missing table', async () => {
    net.faults.push({ fits: isLoad, answer: answerWith(404, error(404, 'NotFoundException')) });
    await expect(catalog.loadTable(t)).rejects.toMatchObject({ code: 'corrupt' });
    await expect(catalog.loadTable({ ...t, name: 'zz' })).rejects.toMatchObject({
      code: 'not-found',
    });
  });

  test('an expired token is replaced, and the request sent again', async () => {
    await catalog.loadTable(t);
    for (const status of [401, 419]) {
      net.faults.push({
        fits: isCommit,
        answer: answerWith(status, error(status, 'AuthenticationTimeoutException')),
      });
      const asked = served.requests.filter((one) => one.includes('/oauth/')).length;
      await catalog.commitTable(t, setA);
      const after = served.requests.filter((one) => one.includes('/oauth/')).length;
      expect(after).toBe(asked + 1);
    }
  });

  test('without or with a wrong token nothing is done, and it is said', async () => {
    for (const auth of [anonymous, bearerAuth('stale')]) {
      const stranger = restClient(served, net.fetch, { auth });
      await expect(stranger.commitTable(t, setA)).rejects.toMatchObject({ code: 'unauthorized' });
    }
    const { token } = await served.tokens.issue('floe');
    const known = restClient(served, net.fetch, { auth: bearerAuth(token) });
    expect(await known.listTables(['n'])).toEqual([t]);
  });

  test('a token is renewed before its time is up, once for all who wait', async () => {
    const clock = new ManualClock();
    const auth = floeAuth(served, net.fetch, clock);
    const [first, same] = await Promise.all([auth.headersFor(NOTHING), auth.headersFor(NOTHING)]);
    expect(first).toEqual(same);
    await clock.advance(40_000);
    expect(await auth.headersFor(NOTHING)).toEqual(first);
    await clock.advance(10_000);
    expect(await auth.headersFor(NOTHING)).not.toEqual(first);
  });
});

const NOTHING = { method: 'GET', url: 'http://x/', headers: {}, body: undefined };

test('a catalog that is away at first is asked again at the next call', async () => {
  const served = await serve();
  const net = new FaultyFetch();
  const config = (_method: string, url: string) => url.includes('/v1/config');
  const catalog = restClient(served, net.fetch);
  for (let n = 0; n < 3; n += 1)
    net.faults.push({ fits: config, answer: () => Promise.reject(brokenConnection()) });
  await expect(catalog.listNamespaces([])).rejects.toMatchObject({ code: 'unavailable' });
  expect(await catalog.listNamespaces([])).toEqual([]);
});

test('prefix and headers are the catalog’s: overrides go before ours, ours before defaults', async () => {
  const served = await serve();
  const sent: [string, RequestInit['headers']][] = [];
  const catalog = restClient(served, async (url, init) => {
    sent.push([url, init.headers]);
    if (!url.includes('/v1/config')) return fetch(url, init);
    return new Response(
      JSON.stringify({
        defaults: { prefix: 'by-default' },
        overrides: { prefix: 'pre', 'header.X-Tenant': 'acme' },
      }),
    );
  });
  await catalog.ensureNamespace(['a']);
  const [read, last] = sent.slice(-2) as [(typeof sent)[0], (typeof sent)[0]];
  expect(read[1]).toMatchObject({ 'X-Tenant': 'acme' });
  expect(last[0]).toBe(`${served.uri}/v1/pre/namespaces`);
  expect(last[1]).toMatchObject({ 'X-Tenant': 'acme' });
  expect(sent[1]![0]).toContain('/v1/config?warehouse=anything');
});

test('an unchanged table costs a 304, a changed one is read', async () => {
  const served = await serve();
  await served.embedded.createNamespace(['n']);
  const catalog = restClient(served, fetch);
  const made = await catalog.createTable(['n'], { name: 't', schema });
  expect(await catalog.loadTable(t)).toEqual(made);
  expect(served.requests.at(-1)).toMatch(/^GET .* 304$/);
  await served.embedded.commitTable(t, setA);
  expect((await catalog.loadTable(t)).metadata.properties).toEqual({ a: 'b' });
  expect(served.requests.at(-1)).toMatch(/^GET .* 200$/);
  await served.embedded.dropTable(t, { purge: true });
  await expect(catalog.loadTable(t)).rejects.toMatchObject({ code: 'not-found' });
  const tiny = restClient(served, fetch, { cacheBytes: 10 });
  await tiny.createTable(['n'], { name: 't', schema });
  await tiny.loadTable(t);
  expect(served.requests.at(-1)).toMatch(/^GET .* 200$/);
});

test('a table whose files can’t be reached is refused by name', async () => {
  const served = await serve();
  await served.embedded.createNamespace(['n']);
  await served.embedded.createTable(['n'], { name: 't', schema });
  const storage = { uri: 's3://mine/tables', holds: (uri: string) => uri.startsWith('s3://mine/') };
  const catalog = restClient(served, fetch, { storage });
  await expect(catalog.loadTable(t)).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringMatching(
      /^n\.t lies at memory:.*outside s3:\/\/mine\/tables: set catalog/,
    ),
  });
});

test('an odd name comes back as it was given', async () => {
  const served = await serve();
  const catalog = restClient(served, fetch);
  await catalog.ensureNamespace(['a b', 'c/d%']);
  const identifier = { namespace: ['a b', 'c/d%'], name: 'ü/%1F🚀' };
  const made = await catalog.createTable(identifier.namespace, { name: identifier.name, schema });
  expect((await catalog.loadTable(identifier)).metadata).toEqual(made.metadata);
  expect(await catalog.listTables(identifier.namespace)).toEqual([identifier]);
  expect(await catalog.listNamespaces(['a b'])).toEqual([['a b', 'c/d%']]);
});

test('a request is signed as AWS wants it', async () => {
  const auth = new SigV4Auth({
    region: 'eu-west-1',
    service: 'glue',
    clock: new ManualClock(Date.UTC(2026, 0, 2, 3, 4, 5)),
    credentials: async () => ({ accessKeyId: 'AK', secretAccessKey: 'SK', sessionToken: 'ST' }),
  });
  const request = {
    method: 'POST',
    url: 'https://glue.eu-west-1.amazonaws.com/iceberg/v1/x?b=2&a=1',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  };
  const headers = await auth.headersFor(request);
  expect(headers['x-amz-date']).toBe('20260102T030405Z');
  expect(headers['x-amz-security-token']).toBe('ST');
  expect(headers['authorization']).toMatch(
    /^AWS4-HMAC-SHA256 Credential=AK\/20260102\/eu-west-1\/glue\/aws4_request, SignedHeaders=content-type;host;.*Signature=[0-9a-f]{64}$/,
  );
  const other = await auth.headersFor({ ...request, body: '{"a":1}' });
  expect(other['authorization']).not.toBe(headers['authorization']);
});
