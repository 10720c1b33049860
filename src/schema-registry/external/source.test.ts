// A registry elsewhere: honest, slow, down, talking nonsense; and our own, over HTTP.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import fastify from 'fastify';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../base/clock.ts';
import { seededPrng } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import { openSqliteMetadata } from '../../metadata/sqlite/index.ts';
import {
  registryRoutes,
  registryServerOptions,
  registrySettings,
  SchemaRegistry,
} from '../index.ts';
import type { SchemaSource } from '../schema-source.ts';
import { openSchemas } from './index.ts';
import { externalRegistrySettings } from './settings.ts';

type Reply = (response: ServerResponse, request: IncomingMessage) => void;

/** What the registry has, by path; behaviour by `reply`. */
let answers: Record<string, unknown>;
let reply: Reply | undefined;
let asked: string[];
let seen: IncomingMessage[];
const server = createServer((request, response) => {
  asked.push(request.url!);
  seen.push(request);
  if (reply !== undefined) {
    reply(response, request);
    return;
  }
  const answer = answers[request.url!];
  if (answer === undefined) {
    response.writeHead(404).end('{"error_code":40403,"message":"Schema not found"}');
  } else response.end(JSON.stringify(answer));
});
let url: string;

beforeEach(async () => {
  answers = {};
  reply = undefined;
  asked = [];
  seen = [];
  if (!server.listening) await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  server.unref();
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(() => server.closeAllConnections());

const embedded = { byId: async () => ({ id: 77 }) } as unknown as SchemaSource;

function open(over: Record<string, string> = {}): SchemaSource {
  const settings = resolveSettings(externalRegistrySettings, {
    'schema.registry.url': url,
    'schema.registry.request.timeout.ms': '200',
    'schema.registry.request.attempts': '2',
    ...over,
  });
  return openSchemas({ settings, clock: systemClock, prng: seededPrng(1), embedded });
}

const schema = '{"type":"string"}';

describe('an honest registry', () => {
  test('ids once asked are kept; GUIDs, newest versions, types and references are told', async () => {
    const reference = { name: 'a.proto', subject: 'a/b', version: 2 };
    const deeper = { name: 'c.proto', subject: 'c', version: 1 };
    answers = {
      '/schemas/ids/5': { schema },
      '/schemas/guids/89791762-2336-4186-9674-299b90a802e2': {
        schema: 'main',
        schemaType: 'PROTOBUF',
        references: [reference],
      },
      '/subjects/a%2Fb/versions/2': {
        id: 6,
        schema: 'A',
        schemaType: 'PROTOBUF',
        references: [deeper],
      },
      '/subjects/c/versions/1': { id: 7, schema: 'C', schemaType: 'PROTOBUF' },
      '/subjects/t-value/versions/latest': { id: 5, version: 3, schema, subject: 't-value' },
      '/schemas/ids/5/versions': [
        { subject: 'x', version: 1 },
        { subject: 't-value', version: 3 },
      ],
    };
    const source = open();
    const [first, second] = await Promise.all([source.byId(5), source.byId(5)]);
    expect(first).toEqual({
      id: 5,
      guid: '',
      type: 'AVRO',
      schema,
      references: [],
      resolved: new Map(),
    });
    expect(second).toBe(first);
    expect(asked).toEqual(['/schemas/ids/5']);
    const byGuid = await source.byGuid('89791762-2336-4186-9674-299B90A802E2');
    expect([...byGuid.resolved]).toEqual([
      ['c.proto', 'C'],
      ['a.proto', 'A'],
    ]);
    expect(await source.latest('t-value')).toMatchObject({ id: 5, version: 3, subject: 't-value' });
    expect(await source.versionOf('t-value', 5)).toBe(3);
    expect(await source.versionOf('t-value', 9)).toBeUndefined();
  });

  test('what it doesn’t know is not-found, and not asked again at once', async () => {
    const source = open();
    await expect(source.byId(1)).rejects.toMatchObject({ code: 'not-found' });
    await expect(source.byId(1)).rejects.toMatchObject({ code: 'not-found' });
    expect(asked).toHaveLength(1);
  });

  test('schemas are kept up to a number; references in a circle end', async () => {
    const self = { name: 's', subject: 's', version: 1 };
    answers = {
      '/schemas/ids/1': { schema },
      '/schemas/ids/2': { schema },
      '/schemas/ids/3': { schema, references: [self] },
      '/subjects/s/versions/1': { schema, references: [self] },
    };
    const source = open({ 'schema.registry.cache.size': '1' });
    await source.byId(1);
    await source.byId(2);
    await source.byId(1);
    expect(asked).toHaveLength(3);
    expect((await source.byId(3)).resolved.size).toBe(1);
  });

  test('who Floe is', async () => {
    answers = { '/schemas/ids/1': { schema } };
    await open({ 'schema.registry.auth': 'me:secret' }).byId(1);
    await open({ 'schema.registry.auth': 'bearer:abc' }).byId(1);
    expect(seen.map((request) => request.headers.authorization)).toEqual([
      `Basic ${Buffer.from('me:secret').toString('base64')}`,
      'Bearer abc',
    ]);
  });
});

describe('trouble is unavailable, with its reason', () => {
  const cases: [string, Reply, RegExp][] = [
    ['a proxy’s page', (response) => response.end('<html>'), /answered 200 .*<html>/],
    ['JSON that is no schema', (response) => response.end('{"x":1}'), /is no schema/],
    ['a 404 of somebody else', (response) => response.writeHead(404).end('gone'), /answered 404/],
    ['an error', (response) => response.writeHead(500).end('{"message":"sick"}'), /500.*sick/],
    ['a refused password', (response) => response.writeHead(401).end(), /set schema.registry.auth/],
    ['silence', () => {}, /no answer within 200 ms/],
    ['half an answer', (response) => void response.write('{'), /no answer within 200 ms/],
    ['a cut connection', (response) => void response.destroy(), /127.0.0.1/],
  ];
  test.each(cases)('%s', async (_, behaviour, reason) => {
    reply = behaviour;
    await expect(open().byId(1)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(reason),
    });
  });

  test('it is tried again, and well again when the registry is', async () => {
    let left = 1;
    reply = (response) => {
      if (left-- > 0) response.writeHead(503).end();
      else response.end(JSON.stringify({ schema }));
    };
    expect((await open().byId(1)).schema).toBe(schema);
  });

  test('after failures in a row it is left alone for a while', async () => {
    reply = (response) => response.writeHead(503).end();
    const source = open({ 'schema.registry.request.attempts': '1' });
    for (let i = 0; i < 3; i++) await expect(source.byId(i)).rejects.toThrow(/503/);
    await expect(source.byId(9)).rejects.toThrow(/asked again in 1 s/);
    expect(asked).toHaveLength(3);
  });

  test('the next address is asked', async () => {
    answers = { '/schemas/ids/1': { schema } };
    const source = open({ 'schema.registry.url': `http://127.0.0.1:1, ${url}/` });
    expect((await source.byId(1)).schema).toBe(schema);
  });
});

test('our own registry over HTTP, with what it was told', async () => {
  const metadata = openSqliteMetadata(':memory:');
  const registry = new SchemaRegistry(metadata.registry, resolveSettings(registrySettings, {}));
  const app = fastify(registryServerOptions);
  registryRoutes(app, registry);
  try {
    const address = await app.listen({ host: '127.0.0.1', port: 0 });
    const source = open({ 'schema.registry.url': address });
    const id = await source.register('s-value', schema, 'AVRO');
    const found = await source.byId(id);
    expect(found).toMatchObject({ id, type: 'AVRO' });
    expect(JSON.parse(found.schema)).toEqual('string');
    const latest = await source.latest('s-value');
    expect(latest).toMatchObject({ id, version: 1 });
    expect(await source.versionOf('s-value', id)).toBe(1);
    await expect(source.byId(999)).rejects.toMatchObject({ code: 'not-found' });
    await expect(source.latest('none')).rejects.toMatchObject({ code: 'not-found' });
    if (latest.guid !== '') {
      expect((await source.byGuid(latest.guid)).schema).toBe(found.schema);
    }
  } finally {
    await app.close();
    metadata.close();
  }
});

test('without an address the embedded one is used; what can’t be one is refused', async () => {
  expect(await open({ 'schema.registry.url': '' }).byId(1)).toEqual({ id: 77 });
  expect(() => open({ 'schema.registry.url': 'ftp://x' })).toThrow(/"ftp:\/\/x" is no http/);
  expect(() => open({ 'schema.registry.tls.ca': '/nowhere.pem' })).toThrow(/tls.ca.*ENOENT/);
});
