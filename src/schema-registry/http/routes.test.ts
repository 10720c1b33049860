// The HTTP face: shapes, codes and rules of Confluent's API, over injected requests.
import { describe, expect, test } from 'vitest';
import type { RegistryMetadata } from '../../metadata/registry.ts';
import { registrySource } from '../source.ts';
import { type Method, open } from '../testing/open.ts';

const record = (name: string, ...fields: object[]) => ({ type: 'record', name, fields });
const A = record('R', { name: 'a', type: 'int' });
const B = record('R', { name: 'a', type: 'int' }, { name: 'b', type: 'int', default: 0 });
const C = record('R', { name: 'a', type: 'string' });

test('register, read, look up', async () => {
  const { call, register } = open();
  const { body: first } = await register('s', A);
  expect(first).toMatchObject({ id: 1, version: 1, subject: 's' });
  expect((await register('other', JSON.stringify(A, null, 4))).body.id).toBe(1);
  expect((await register('s', B)).body).toMatchObject({ id: 2, version: 2 });
  expect((await call('GET', '/schemas/ids/2')).body).toMatchObject({ schema: JSON.stringify(B) });
  expect((await call('GET', '/schemas/ids/2/schema')).body).toEqual(B);
  expect((await call('GET', `/schemas/guids/${first.guid}`)).body.schema).toBe(JSON.stringify(A));
  expect((await call('GET', '/schemas/ids/1/versions')).body).toEqual([
    { subject: 'other', version: 1 },
    { subject: 's', version: 1 },
  ]);
  for (const version of ['2', 'latest', '-1'])
    expect((await call('GET', `/subjects/s/versions/${version}`)).body).toMatchObject({ id: 2 });
  const lookup = await call('POST', '/subjects/s', { schema: JSON.stringify(A) });
  expect(lookup.body).toMatchObject({ subject: 's', version: 1, id: 1 });
  expect((await call('GET', '/schemas?latestOnly=true')).body).toHaveLength(2);
  expect((await call('GET', '/subjects?subjectPrefix=o')).body).toEqual(['other']);
});

describe('errors', () => {
  test.each<[Method, string, unknown, number, number]>([
    ['GET', '/subjects/none/versions', undefined, 404, 40401],
    ['GET', '/subjects/s/versions/9', undefined, 404, 40402],
    ['GET', '/schemas/ids/99', undefined, 404, 40403],
    ['GET', '/schemas/ids/x', undefined, 404, 40403],
    ['POST', '/subjects/s', { schema: '"int"' }, 404, 40403],
    ['DELETE', '/subjects/s?permanent=true', undefined, 404, 40405],
    ['DELETE', '/subjects/s/versions/1?permanent=true', undefined, 404, 40407],
    ['GET', '/config/s', undefined, 404, 40408],
    ['GET', '/mode/s', undefined, 404, 40409],
    ['POST', '/subjects/s/versions', { schema: JSON.stringify(C) }, 409, 409],
    ['POST', '/subjects/s/versions', { schema: '{' }, 422, 42201],
    ['POST', '/subjects/empty/versions', {}, 422, 42201],
    ['POST', '/subjects/s/versions', { schema: '{}', schemaType: 'JSON' }, 409, 409],
    ['POST', '/subjects/s/versions', { schema: '[1', schemaType: 'JSON' }, 422, 42201],
    ['POST', '/subjects/s/versions', { schema: 'x', schemaType: 'PROTOBUF' }, 422, 42201],
    ['POST', '/subjects/s/versions', { schema: '{}', schemaType: 'XML' }, 422, 42201],
    ['POST', '/subjects/s/versions', { schema: 5 }, 422, 422],
    ['GET', '/subjects/s/versions/x', undefined, 422, 42202],
    ['GET', '/subjects/s/versions/0', undefined, 422, 42202],
    ['PUT', '/config', { compatibility: 'SIDEWAYS' }, 422, 42203],
    ['PUT', '/config', { compatibility: 'FULL', validateFields: true }, 422, 422],
    ['PUT', '/config', { overrideRuleSet: { domainRules: [{}] } }, 422, 42210],
    ['PUT', '/mode', { mode: 'SIDEWAYS' }, 422, 42204],
    ['POST', '/subjects/s/versions', { schema: '"int"', id: 7 }, 422, 42205],
    ['PUT', '/mode/s', { mode: 'IMPORT' }, 422, 42205],
    ['POST', '/subjects/%3A.ctx%3A/versions', { schema: '"int"' }, 422, 42208],
    ['POST', '/subjects/%3A.__GLOBAL%3As/versions', { schema: '"int"' }, 422, 42208],
    ['POST', '/subjects/a%00/versions', { schema: '"int"' }, 422, 42208],
    ['POST', '/subjects/s/versions', { schema: JSON.stringify(B), version: 7 }, 422, 42201],
    ['GET', '/subjects/s/metadata?key=a&value=b', undefined, 404, 40403],
    ['GET', '/schemas/guids/none/ids', undefined, 404, 40403],
    ['POST', '/subjects/s/versions', { schema: `"${'x'.repeat(2_000)}"` }, 422, 42209],
    ['GET', '/nowhere', undefined, 404, 404],
  ])('%s %s %j', async (method, url, body, status, code) => {
    const { call, register } = open({ 'schema.registry.max.schema.bytes': '1024' });
    await register('s', A);
    const answer = await call(method, url, body);
    expect(answer).toMatchObject({ status, body: { error_code: code } });
    expect(answer.body.message).not.toBe('');
  });

  test('a body that is no JSON, or of another type', async () => {
    const { app } = open();
    const url = '/subjects/s/versions';
    const json = { 'content-type': 'application/json' };
    const broken = await app.inject({ method: 'POST', url, headers: json, payload: '{' });
    expect(broken.json()).toMatchObject({ error_code: 400 });
    const xml = { 'content-type': 'text/xml' };
    const other = await app.inject({ method: 'POST', url, headers: xml, payload: '<a/>' });
    expect(other.json()).toMatchObject({
      error_code: 415,
      message: expect.stringMatching(/"text\/xml" is not read here: send .*application\/json/),
    });
  });

  test('a store that is away', async () => {
    const away = () => Promise.reject(new Error('gone'));
    const { call } = open({}, (metadata) => Object.assign(metadata, { subject: away }));
    expect(await call('GET', '/subjects/s/versions')).toMatchObject({
      status: 500,
      body: { error_code: 50001 },
    });
  });
});

test('media types', async () => {
  const { app } = open();
  const plain = await app.inject({ url: '/subjects', headers: { accept: 'application/json' } });
  expect(plain.headers['content-type']).toBe('application/json');
  const own = await app.inject({ url: '/subjects/x/versions' });
  expect(own.headers['content-type']).toBe('application/vnd.schemaregistry.v1+json');
});

test('any subject', async () => {
  const { call, register } = open();
  for (const subject of ['a/b', 'a b', 'ünï🚀', '50%25', 'a+b', 'a:b', '.a', 'x'.repeat(600)]) {
    expect((await register(subject, A)).status).toBe(200);
    const path = `/subjects/${encodeURIComponent(subject)}/versions/latest`;
    expect((await call('GET', path)).body.subject).toBe(subject);
  }
});

test('levels, their fall-back, and verbose answers', async () => {
  const { call, register } = open();
  await register('s', A);
  expect((await call('GET', '/config')).body).toEqual({ compatibilityLevel: 'BACKWARD' });
  await call('PUT', '/config', { compatibility: 'forward' });
  expect((await call('GET', '/config/s?defaultToGlobal=true')).body).toEqual({
    compatibilityLevel: 'FORWARD',
  });
  const check = (schema: unknown, version = '/latest') =>
    call('POST', `/compatibility/subjects/s/versions${version}?verbose=true`, {
      schema: JSON.stringify(schema),
    });
  expect((await check(B)).body).toEqual({ is_compatible: true, messages: [] });
  const verdict = (await check(C, '')).body;
  expect(verdict.is_compatible).toBe(false);
  expect(verdict.messages[0]).toContain("errorType:'TYPE_MISMATCH'");
  expect((await call('PUT', '/config/s', { compatibility: 'NONE' })).body).toEqual({
    compatibility: 'NONE',
  });
  expect((await register('s', C)).status).toBe(200);
  expect((await call('DELETE', '/config/s')).body).toEqual({ compatibilityLevel: 'NONE' });
  const none = await call('POST', '/compatibility/subjects/new/versions/latest', {
    schema: '"int"',
  });
  expect(none.body).toEqual({ is_compatible: true });
});

test('compatibility groups keep apart what metadata tells apart', async () => {
  const { call, register } = open();
  await call('PUT', '/config/s', { compatibilityGroup: 'major' });
  const major = (version: string) => ({ metadata: { properties: { major: version } } });
  await register('s', A, major('1'));
  expect((await register('s', C, major('1'))).status).toBe(409);
  const { body } = await register('s', C, major('2'));
  expect(body).toMatchObject({ version: 2, ...major('2') });
});

test('deletion: soft, then permanent; numbers are not given again', async () => {
  const { call, register } = open();
  await register('s', A);
  await register('s', B);
  expect((await call('DELETE', '/subjects/s/versions/1')).body).toBe(1);
  expect((await call('GET', '/subjects/s/versions')).body).toEqual([2]);
  expect((await call('GET', '/subjects/s/versions?deletedOnly=true')).body).toEqual([1]);
  expect((await call('GET', '/schemas/ids/1')).status).toBe(200);
  expect((await call('DELETE', '/subjects/s/versions/1')).body.error_code).toBe(40406);
  expect((await call('DELETE', '/subjects/s/versions/1?permanent=true')).body).toBe(1);
  expect((await call('GET', '/schemas/ids/1')).status).toBe(404);
  expect((await call('DELETE', '/subjects/s')).body).toEqual([2]);
  expect((await call('DELETE', '/subjects/s')).body.error_code).toBe(40404);
  expect((await register('s', B)).body).toMatchObject({ id: 2, version: 3 });
  await call('DELETE', '/subjects/s');
  expect((await call('DELETE', '/subjects/s?permanent=true')).body).toEqual([2, 3]);
  expect((await call('GET', '/subjects?deleted=true')).body).toEqual([]);
});

test('modes', async () => {
  const { call, register } = open();
  await call('PUT', '/mode/s', { mode: 'READONLY' });
  expect((await register('s', A)).body.error_code).toBe(42205);
  expect((await call('PUT', '/config/s', { compatibility: 'NONE' })).body.error_code).toBe(42205);
  await call('PUT', '/mode/s', { mode: 'IMPORT' });
  const imported = await register('s', A, { id: 500, version: 7 });
  expect(imported.body).toMatchObject({ id: 500, version: 7 });
  expect((await register('s', C, { id: 500 })).body.error_code).toBe(42205);
  expect((await register('s', C)).body.error_code).toBe(42205);
  expect((await call('DELETE', '/mode/s')).body).toEqual({ mode: 'IMPORT' });
  expect((await register('s', B)).body).toMatchObject({ id: 501, version: 8 });
  await call('PUT', '/mode', { mode: 'READONLY_OVERRIDE' });
  expect((await call('DELETE', '/subjects/s')).body.error_code).toBe(42205);
});

test('references: resolved, counted, protected, inlined for those without HTTP', async () => {
  const { call, register, registry } = open();
  const address = { ...record('Address', { name: 'city', type: 'string' }), namespace: 'n' };
  const person = record('Person', { name: 'home', type: 'n.Address' });
  await register('address', address);
  expect((await register('person', person)).body.error_code).toBe(42201);
  const references = [{ name: 'n.Address', subject: 'address', version: -1 }];
  const { body } = await register('person', person, { references });
  expect(body.references).toEqual([{ ...references[0], version: 1 }]);
  expect((await call('GET', '/subjects/address/versions/1/referencedby')).body).toEqual([body.id]);
  expect((await call('DELETE', '/subjects/address')).body.error_code).toBe(42206);
  const inlined = record('Person', {
    name: 'home',
    type: { type: 'record', name: 'Address', namespace: 'n', fields: address.fields },
  });
  const resolved = await call('GET', `/schemas/ids/${body.id}?format=resolved`);
  expect(JSON.parse(resolved.body.schema)).toEqual(inlined);
  const source = registrySource(registry);
  expect(JSON.parse((await source.byId(body.id)).schema)).toEqual(inlined);
});

test('sixteen at once: one id, one version; sixteen different: all of them', async () => {
  const { call, register } = open();
  const same = await Promise.all(Array.from({ length: 16 }, () => register('s', A)));
  expect(new Set(same.map(({ body }) => body.id)).size).toBe(1);
  await call('PUT', '/config/s', { compatibility: 'NONE' });
  const others = Array.from({ length: 16 }, (_, n) => register('s', record(`R${n}`)));
  expect(new Set((await Promise.all(others)).map(({ body }) => body.id)).size).toBe(16);
  expect((await call('GET', '/subjects/s/versions')).body).toHaveLength(17);
});

test('another process may have been first: the change is tried again', async () => {
  let rivals = 3;
  const { register, call } = open({}, (metadata) => {
    const add = metadata.addVersion.bind(metadata);
    return Object.assign(metadata, {
      async addVersion(request: Parameters<RegistryMetadata['addVersion']>[0]) {
        if (rivals > 0) {
          rivals -= 1;
          const schema = `{"type":"fixed","name":"F","size":${rivals}}`;
          await add({ ...request, content: { ...request.content, schema, guid: String(rivals) } });
        }
        return add(request);
      },
    });
  });
  await call('PUT', '/config/s', { compatibility: 'NONE' });
  expect((await register('s', A)).body.version).toBe(4);
});

test('the direct interface', async () => {
  const { registry } = open();
  const source = registrySource(registry);
  const id = await source.register('s', JSON.stringify(A), 'AVRO');
  expect(await source.latest('s')).toMatchObject({ id, version: 1, type: 'AVRO' });
  expect(await source.versionOf('s', id)).toBe(1);
  expect(await source.versionOf('t', id)).toBeUndefined();
  expect(await source.versionOf('s', 99)).toBeUndefined();
  await expect(source.byId(99)).rejects.toMatchObject({ code: 'not-found' });
  await expect(source.latest('t')).rejects.toMatchObject({ code: 'not-found' });
  await expect(source.register('s', '"int', 'AVRO')).rejects.toMatchObject({ code: 'invalid' });
});
