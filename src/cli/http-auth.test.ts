// The HTTP faces under authentication and ACLs: who gets in, what each route asks for, refusals in each face's own form.
import { fastify } from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ManualClock, systemClock } from '../base/clock.ts';
import { silentLogger } from '../base/log.ts';
import { noMetrics } from '../base/metrics.ts';
import { seededPrng, systemIds } from '../base/prng.ts';
import { resolveSettings } from '../base/settings.ts';
import {
  httpListener,
  listenersOf,
  openSecurity,
  type Security,
  securitySettings,
  splitListenerSettings,
} from '../broker/auth/index.ts';
import { CatalogTokens } from '../catalog/index.ts';
import { openSqliteMetadata } from '../metadata/sqlite/index.ts';
import { ACL_OPERATION, ACL_PATTERN, ACL_PERMISSION, ACL_RESOURCE } from '../protocol/acls.ts';
import type { TableTopics } from '../table-topic/index.ts';
import { type Faces, HttpAuth, protectFaces } from './http-auth.ts';

const TOPICS: Readonly<Record<string, readonly string[]>> = {
  'kafka.orders_t': ['orders'],
  'kafka.shared': ['orders', 'payments'],
};
const tables = {
  topicsOf: ({ namespace, name }: { namespace: readonly string[]; name: string }) =>
    TOPICS[[...namespace, name].join('.')] ?? [],
} as unknown as TableTopics;

/** Faces with the routes' paths, which say "ok". */
function someFaces(): Faces {
  const faces = { registry: fastify(), catalog: fastify(), operator: fastify() };
  const ok = async () => 'ok';
  for (const url of ['/subjects', '/schemas/ids/:id', '/schemas', '/config', '/config/:subject'])
    faces.registry.all(url, ok);
  for (const url of [
    '/subjects/:subject',
    '/subjects/:subject/versions',
    '/compatibility/subjects/:subject/versions',
  ])
    faces.registry.all(url, ok);
  for (const url of [
    '/v1/config',
    '/v1/namespaces',
    '/v1/namespaces/:namespace/tables',
    '/v1/namespaces/:namespace/tables/:table',
    '/v1/:prefix/namespaces/:namespace/tables/:table',
    '/v1/tables/rename',
    '/v1/oauth/tokens',
    '/v1/namespaces/:namespace/views/:view',
  ])
    faces.catalog.all(url, ok);
  for (const url of [
    '/healthz',
    '/metrics',
    '/v1/tables',
    '/v1/tables/:name',
    '/v1/tables/:name/pause',
    '/v1/sql',
  ])
    faces.operator.all(url, ok);
  return faces;
}

/** Aliases of subjects. */
const aliases = new Map([
  ['orders-key', 'payments-value'],
  ['nick', 'orders-value'],
]);

async function secured(
  given: Readonly<Record<string, string>>,
): Promise<{ security: Security; auth: HttpAuth; faces: Faces; past: CatalogTokens }> {
  const { common, byListener } = splitListenerSettings(given);
  const settings = resolveSettings(securitySettings, common);
  const kafka = listenersOf({ settings, byListener, fallback: { host: '127.0.0.1', port: 0 } });
  const parts = { clock: systemClock, logger: silentLogger, metrics: noMetrics };
  const security = await openSecurity({
    ...parts,
    settings,
    listeners: [...kafka, httpListener({ settings, byListener }, kafka)],
    metadata: openSqliteMetadata(':memory:').security,
    prng: seededPrng(5),
  });
  const secrets = openSqliteMetadata(':memory:').catalog;
  const issuer = { metadata: secrets, ids: systemIds, lifetimeMs: 60_000 };
  const tokens = new CatalogTokens({ ...issuer, clock: systemClock });
  // Issues tokens that are over.
  const past = new CatalogTokens({ ...issuer, clock: new ManualClock(1_000) });
  const auth = new HttpAuth({ ...parts, security, tokens });
  const faces = someFaces();
  protectFaces(auth, faces, { tables, subjectOf: async (name) => aliases.get(name) ?? name });
  return { security, auth, faces, past };
}

const basic = (user: string, password: string) =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;

let security: Security;
let auth: HttpAuth;
let faces: Faces;
let past: CatalogTokens;

beforeAll(async () => {
  ({ security, auth, faces, past } = await secured({
    listeners: 'SASL_PLAINTEXT://127.0.0.1:0',
    'authorizer.class.name': 'StandardAuthorizer',
    'super.users': 'User:root',
    'connection.failed.authentication.delay.ms': '1',
  }));
  await security.users.configure('root', 'r:o:o:t');
  await security.users.configure('alice', 'wonder');
  const rule = (operation: number) => ({
    resourceType: ACL_RESOURCE.topic,
    resourceName: 'orders',
    patternType: ACL_PATTERN.literal,
    principal: 'User:alice',
    host: '*',
    operation,
    permission: ACL_PERMISSION.allow,
  });
  await security.authorizer.acls!.add([rule(ACL_OPERATION.read)]);
});

afterAll(async () => {
  await Promise.all(Object.values(faces).map((app) => app.close()));
});

async function status(face: keyof Faces, call: string, user?: string): Promise<number> {
  const [method, url] = call.split(' ') as ['GET', string];
  const password = user === 'root' ? 'r:o:o:t' : 'wonder';
  const headers = user === undefined ? {} : { authorization: basic(user, password) };
  return (await faces[face].inject({ method, url, headers })).statusCode;
}

describe('who gets in', () => {
  it('health is everybody’s; all else wants a user', async () => {
    expect(await status('operator', 'GET /healthz')).toBe(200);
    for (const [face, url] of [
      ['operator', '/metrics'],
      ['registry', '/config'],
      ['catalog', '/v1/config'],
    ] as const) {
      expect(await status(face, `GET ${url}`)).toBe(401);
    }
  });

  it.each([
    ['a wrong password', basic('alice', 'wunder')],
    ['an unknown user', basic('mallory', 'wonder')],
    ['no colon', `Basic ${Buffer.from('alice').toString('base64')}`],
    ['no user', basic('', 'wonder')],
    ['a token where none are enabled', 'Bearer abc.def.ghi'],
    ['another scheme', 'Negotiate abc'],
    ['half a header', 'Basic'],
    ['a header without end', `Basic ${'A'.repeat(20_000)}`],
  ])('refuses %s, and says how to authenticate', async (_what, authorization) => {
    const reply = await faces.registry.inject({ url: '/config', headers: { authorization } });
    expect(reply.statusCode).toBe(401);
    expect(reply.headers['www-authenticate']).toContain('Basic realm="floe", charset="UTF-8"');
    expect(reply.body).not.toContain('wonder');
  });

  it('knows a user by the password of now, also after it was right before', async () => {
    const ask = (password: string) =>
      faces.registry.inject({
        url: '/config',
        headers: { authorization: basic('carl', password) },
      });
    const set = async (password: string) =>
      security.users.alter(
        [await security.users.salted({ user: 'carl', mechanism: 'SCRAM-SHA-256' }, password)],
        [],
      );
    await set('first');
    expect((await ask('first')).statusCode).toBe(200);
    expect((await ask('first')).statusCode).toBe(200);
    await set('second');
    expect((await ask('first')).statusCode).toBe(401);
    expect((await ask('second')).statusCode).toBe(200);
  });

  it('takes a token of the catalog on every face, until its time is up', async () => {
    const authority = auth.authority()!;
    expect(await authority.login('alice', 'wonder')).toBe('alice');
    await expect(authority.login('alice', 'wunder')).rejects.toThrow('wrong user or password');
    const ask = (face: keyof Faces, url: string, token: string) =>
      faces[face].inject({ url, headers: { authorization: `Bearer ${token}` } });
    const { token } = await auth.tokens.issue('alice');
    expect(await authority.userOfToken(token)).toBe('alice');
    expect((await ask('registry', '/config', token)).statusCode).toBe(200);
    expect((await ask('catalog', '/v1/namespaces/kafka/tables/other', token)).statusCode).toBe(403);
    const over = (await past.issue('alice')).token;
    expect((await ask('registry', '/config', over)).statusCode).toBe(401);
    expect((await ask('catalog', '/v1/config', over)).json()).toEqual({
      error: {
        message: 'the token has expired: ask for a new one',
        type: 'AuthenticationTimeoutException',
        code: 419,
      },
    });
  });

  it('answers in the form of each face', async () => {
    const refused = async (face: keyof Faces, url: string) =>
      (await faces[face].inject({ url })).json();
    expect(await refused('registry', '/subjects')).toEqual({
      error_code: 40101,
      message: expect.any(String),
    });
    expect(await refused('catalog', '/v1/config')).toEqual({
      error: { message: expect.any(String), type: 'NotAuthorizedException', code: 401 },
    });
    expect(await refused('operator', '/metrics')).toEqual({
      error: { code: 'unauthorized', message: expect.any(String) },
    });
    const denied = await faces.catalog.inject({
      url: '/v1/namespaces/kafka/tables/other',
      headers: { authorization: basic('alice', 'wonder') },
    });
    expect(denied.json().error).toMatchObject({ type: 'ForbiddenException', code: 403 });
  });
});

/** alice may read the topic `orders`, whose table is `kafka.orders_t`, not `payments`; root may do everything. */
const ROUTES: readonly [keyof Faces, string, number][] = [
  ['registry', 'GET /subjects/orders-value/versions', 200],
  ['registry', 'POST /subjects/orders-value', 200],
  ['registry', 'POST /compatibility/subjects/orders-value/versions', 200],
  ['registry', 'POST /subjects/orders-value/versions', 403],
  ['registry', 'DELETE /subjects/orders-value', 403],
  ['registry', 'PUT /config/orders-value', 403],
  ['registry', 'GET /subjects/payments-value/versions', 403],
  ['registry', 'GET /subjects/some.record.Name/versions', 403],
  ['registry', 'GET /subjects/%3A.%3Aorders-value/versions', 200],
  ['registry', 'GET /subjects/%3A.other%3Aorders-value/versions', 403],
  // An alias of a subject that may not be read, and one of a subject that may.
  ['registry', 'GET /subjects/orders-key/versions', 403],
  ['registry', 'GET /subjects/nick/versions', 200],
  ['registry', 'GET /subjects', 403],
  ['registry', 'GET /schemas', 403],
  ['registry', 'GET /schemas/ids/1', 200],
  ['registry', 'GET /config', 200],
  ['registry', 'PUT /config', 403],
  ['catalog', 'GET /v1/config', 200],
  ['catalog', 'GET /v1/namespaces', 200],
  ['catalog', 'POST /v1/namespaces', 403],
  ['catalog', 'GET /v1/namespaces/kafka/tables', 403],
  ['catalog', 'GET /v1/namespaces/kafka/tables/orders_t', 200],
  ['catalog', 'GET /v1/any/namespaces/kafka/tables/orders_t', 200],
  ['catalog', 'POST /v1/namespaces/kafka/tables/orders_t', 403],
  ['catalog', 'DELETE /v1/namespaces/kafka/tables/orders_t', 403],
  ['catalog', 'GET /v1/namespaces/kafka/tables/other', 403],
  // Rows of another topic are in it too.
  ['catalog', 'GET /v1/namespaces/kafka/tables/shared', 403],
  ['catalog', 'POST /v1/tables/rename', 403],
  ['catalog', 'POST /v1/oauth/tokens', 200],
  ['catalog', 'GET /v1/namespaces/kafka/views/any', 403],
  ['operator', 'GET /metrics', 403],
  ['operator', 'GET /v1/tables', 403],
  ['operator', 'GET /v1/tables/orders', 200],
  ['operator', 'POST /v1/tables/orders/pause', 403],
  ['operator', 'GET /v1/tables/payments', 403],
  ['operator', 'POST /v1/sql', 200],
];

it.each(ROUTES)('%s: %s is %d for who may read the topic', async (face, call, expected) => {
  expect(await status(face, call, 'alice')).toBe(expected);
  expect(await status(face, call, 'root')).toBe(200);
});

it('asks nobody on a laptop, and as much as the strictest Kafka listener elsewhere', async () => {
  const open = await secured({});
  expect((await open.faces.operator.inject({ url: '/metrics' })).statusCode).toBe(200);
  const mixed = await secured({
    listeners: 'PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:1',
  });
  expect((await mixed.faces.operator.inject({ url: '/metrics' })).statusCode).toBe(401);
  const asked = await secured({
    listeners: 'SASL_PLAINTEXT://127.0.0.1:0',
    'http.security.protocol': 'PLAINTEXT',
  });
  expect((await asked.faces.operator.inject({ url: '/metrics' })).statusCode).toBe(200);
  const tls = secured({ 'http.security.protocol': 'SSL' });
  await expect(tls).rejects.toThrow(/listener HTTP \(SSL\): .*ssl.keystore.location/);
});
