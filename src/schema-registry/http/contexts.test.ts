// Contexts, aliases, inheritance of settings, contracts, imports: what reaches beyond one subject.
import { expect, test } from 'vitest';
import { registrySource } from '../source.ts';
import { open } from '../testing/open.ts';

const int = { type: 'fixed', name: 'I', size: 4 };
const long = { type: 'fixed', name: 'L', size: 8 };
const path = (subject: string) => `/subjects/${encodeURIComponent(subject)}`;

test('each context has its ids and subjects; listings and look-ups reach them', async () => {
  const { call, register } = open();
  await register('a', int);
  await call('PUT', '/config', { compatibility: 'NONE' });
  await register('a', long);
  expect((await register(':.b:a', long)).body).toMatchObject({
    id: 1,
    subject: ':.b:a',
    version: 1,
  });
  expect((await register(':.:c', int)).body).toMatchObject({ id: 1, subject: 'c' });
  expect((await call('GET', '/contexts')).body).toEqual(['.', '.b']);
  const get = async (url: string) => (await call('GET', url)).body;
  expect(await get('/subjects')).toEqual([':.b:a', 'a', 'c']);
  expect(await get('/subjects?subjectPrefix=')).toEqual(['a', 'c']);
  expect(await get('/subjects?subjectPrefix=:.b:')).toEqual([':.b:a']);
  expect(await get('/subjects?subjectPrefix=:*:a')).toEqual(['a', ':.b:a']);
  expect(await get('/schemas?subjectPrefix=:*:&latestOnly=true')).toHaveLength(3);
  expect(JSON.parse((await get('/schemas/ids/1')).schema).name).toBe('I');
  expect(JSON.parse((await get('/schemas/ids/1?subject=:.b:a')).schema).name).toBe('L');
  expect(await get('/schemas/ids/1/subjects?subject=:.b:')).toEqual([':.b:a']);
  const { guid } = await get(`${path(':.b:a')}/versions/latest`);
  expect(await get(`/schemas/guids/${guid}/ids`)).toEqual([
    { context: '.', id: 2 },
    { context: '.b', id: 1 },
  ]);
});

test('what is not in the default context is looked for in the others', async () => {
  const { call, register, registry } = open();
  await call('PUT', '/config', { compatibility: 'NONE' });
  await register('x', int);
  await register(':.b:x', int);
  await register(':.b:only', int);
  await register(':.b:only', long);
  expect((await call('GET', '/subjects/only/versions/1')).body.subject).toBe(':.b:only');
  const lookup = await call('POST', '/subjects/only', { schema: JSON.stringify(int) });
  expect(lookup.body).toMatchObject({ subject: ':.b:only', id: 1 });
  expect((await call('GET', '/subjects/nowhere/versions/1')).body.error_code).toBe(40401);
  // Not for those in the same process: ids of another context mean something else.
  const source = registrySource(registry);
  await expect(source.latest('only')).rejects.toMatchObject({ code: 'not-found' });
  expect(await source.latest(':.b:only')).toMatchObject({ version: 2 });
});

test('references are of the same context unless they name another', async () => {
  const { call, register } = open();
  const user = { type: 'array', items: 'I' };
  const references = (subject: string) => ({ references: [{ name: 'I', subject, version: 1 }] });
  await register(':.b:int', int);
  expect((await register(':.b:user', user, references('int'))).body.id).toBe(2);
  expect((await register('user', user, references('int'))).body.error_code).toBe(42201);
  expect((await register('user', user, references(':.b:int'))).status).toBe(200);
  const by = await call('GET', `${path(':.b:int')}/versions/1/referencedby`);
  expect(by.body).toEqual([1, 2]);
  expect((await call('DELETE', path(':.b:int'))).body.error_code).toBe(42206);
});

test('config and mode come from the nearest: subject, context, registry', async () => {
  const { call, register } = open();
  const level = async (subject: string) =>
    (await call('GET', `/config/${encodeURIComponent(subject)}?defaultToGlobal=true`)).body
      .compatibilityLevel;
  await call('PUT', '/config', { compatibility: 'FULL' });
  await call('PUT', '/config/:.b:', { compatibility: 'NONE' });
  await call('PUT', '/config/:.b:s', { compatibility: 'FORWARD' });
  expect([await level('s'), await level(':.b:t'), await level(':.b:s')]).toEqual([
    'FULL',
    'NONE',
    'FORWARD',
  ]);
  await call('PUT', '/mode/:.b:', { mode: 'READONLY' });
  expect((await register(':.b:s', int)).body.error_code).toBe(42205);
  await call('PUT', '/mode/:.b:s', { mode: 'READWRITE' });
  expect((await register(':.b:s', int)).status).toBe(200);
  expect((await register('s', int)).status).toBe(200);
  await call('PUT', '/mode/:.__GLOBAL:', { mode: 'READONLY_OVERRIDE' });
  expect((await register(':.b:s', long)).body.error_code).toBe(42205);
});

test('an alias stands for its subject', async () => {
  const opened = open();
  const { call, register } = opened;
  await register('real', int);
  expect((await call('PUT', '/config/nick', { alias: 'real' })).body).toEqual({ alias: 'real' });
  expect((await call('GET', '/subjects/nick/versions/latest')).body.subject).toBe('real');
  expect((await register('nick', int)).body).toMatchObject({ subject: 'real', version: 1 });
  const check = await call('POST', '/compatibility/subjects/nick/versions/latest', {
    schema: JSON.stringify(long),
  });
  expect(check.body.is_compatible).toBe(false);
  const { registry } = opened;
  expect((await registrySource(registry).latest('nick')).subject).toBe('real');
  expect((await call('PUT', '/config/nick', { alias: null })).body).toEqual({});
  expect((await call('GET', '/subjects/nick/versions/latest')).status).toBe(404);
});

test('metadata and rules: merged by config, inherited, found by property', async () => {
  const { call, register } = open();
  const rule = (name: string, type = 'CEL') => ({ name, kind: 'CONDITION', type, mode: 'WRITE' });
  await call('PUT', '/config/s', {
    defaultMetadata: { properties: { owner: 'all', b: '1' } },
    overrideMetadata: { properties: { owner: 'us' } },
    defaultRuleSet: { domainRules: [rule('a'), rule('b')] },
  });
  const first = await register('s', int, {
    metadata: { properties: { a: '1' }, tags: { x: ['t'] }, sensitive: ['a'] },
    ruleSet: { domainRules: [rule('b', 'ENCRYPT')] },
  });
  expect(first.body.metadata).toEqual({
    tags: { x: ['t'] },
    properties: { a: '1', b: '1', owner: 'us' },
    sensitive: ['a'],
  });
  expect(first.body.ruleSet).toEqual({ domainRules: [rule('a'), rule('b', 'ENCRYPT')] });
  // Neither schema nor rules given: those of the version before.
  const second = await register('s', '', { metadata: { properties: { a: '2' } } });
  expect(second.body).toMatchObject({ version: 2, schema: first.body.schema });
  expect(second.body.ruleSet).toEqual(first.body.ruleSet);
  expect((await register('s', int, { metadata: { properties: { a: '2' } } })).body.version).toBe(2);
  const found = await call('GET', '/subjects/s/metadata?key=a&value=1&key=owner&value=us');
  expect(found.body.version).toBe(1);
  expect((await call('POST', '/subjects/s', { schema: JSON.stringify(int) })).body.version).toBe(2);
  expect((await call('GET', '/schemas?ruleType=ENCRYPT')).body).toHaveLength(2);
  expect((await call('GET', '/schemas?ruleType=CSFLE')).body).toHaveLength(0);
});

test('the version that comes next may be named; metadata carries it then', async () => {
  const { register, call } = open();
  expect((await register('s', int, { version: 1 })).body.metadata).toEqual({
    properties: { 'confluent:version': '1' },
  });
  expect((await call('POST', '/subjects/s', { schema: JSON.stringify(int) })).body.version).toBe(1);
  expect((await register('s', int)).body.version).toBe(1);
  expect((await register('s', int, { version: -1 })).body).toMatchObject({
    version: 2,
    metadata: { properties: { 'confluent:version': '2' } },
  });
});

test('import: only into what is empty, and over what was soft-deleted', async () => {
  const { call, register } = open();
  await register(':.b:s', int);
  expect((await call('PUT', '/mode/:.b:', { mode: 'IMPORT' })).body.error_code).toBe(42205);
  await call('DELETE', path(':.b:s'));
  expect((await call('PUT', '/mode/:.b:', { mode: 'IMPORT' })).status).toBe(200);
  expect((await call('GET', '/subjects?deleted=true')).body).toEqual([]);
  const imported = await register(':.b:s', long, { id: 9, version: 1 });
  expect(imported.body).toMatchObject({ id: 9, version: 1 });
  expect((await call('PUT', '/mode/:.b:', { mode: 'READWRITE' })).status).toBe(200);
  expect((await register(':.b:t', int)).body.id).toBe(10);
});

test('an import over what was there: what was kept of the old goes', async () => {
  const { call, register } = open();
  const user = { type: 'array', items: 'I' };
  const references = { references: [{ name: 'I', subject: 's', version: 1 }] };
  await register('s', int);
  const before = await register('user', user, references);
  expect(before.status).toBe(200);
  for (const subject of ['user', 's']) await call('DELETE', `/subjects/${subject}`);
  await call('PUT', '/mode', { mode: 'IMPORT' });
  const wide = { type: 'fixed', name: 'I', size: 16 };
  await register('s', wide, { id: 1, version: 1 });
  const after = await register('user', user, { id: 2, version: 1, ...references });
  expect(after.status).toBe(200);
  const resolved = await call('GET', '/schemas/ids/2?format=resolved');
  expect(JSON.parse(resolved.body.schema).items.size).toBe(16);
});

test('a schema with its references inlined is found', async () => {
  const { call, register } = open();
  const references = [{ name: 'I', subject: 'int', version: 1 }];
  await register('int', int);
  const { body } = await register('user', { type: 'array', items: 'I' }, { references });
  const inlined = { schema: JSON.stringify({ type: 'array', items: int }) };
  expect((await call('POST', '/subjects/user', inlined)).body).toMatchObject({ id: body.id });
  expect((await register('user', { type: 'array', items: int })).body).toMatchObject({
    version: 1,
  });
});

test('Protobuf and JSON over HTTP: references, forms, levels, and without HTTP', async () => {
  const { call, register, registry } = open();
  const money = 'syntax = "proto3"; package p; message Money { int64 units = 1; }';
  const order = (type: string) =>
    `syntax = "proto3"; package p; import "money.proto"; import "google/type/date.proto"; message Order { Money price = 1; google.type.Date day = 2; ${type} id = 3; }`;
  await register('money', money, { schemaType: 'PROTOBUF' });
  const others = {
    schemaType: 'PROTOBUF',
    references: [{ name: 'money.proto', subject: 'money', version: -1 }],
  };
  const { body } = await register('order', order('string'), others);
  expect(body).toMatchObject({ schemaType: 'PROTOBUF', references: [{ version: 1 }] });
  expect((await register('order', order('bool'), others)).body.error_code).toBe(409);
  expect((await register('order', order('string').replaceAll(';', ' ;\n'), others)).body.id).toBe(
    body.id,
  );
  const form = async (name: string) =>
    (await call('GET', `/schemas/ids/${body.id}?format=${name}`)).body.schema;
  expect(await form('serialized')).toMatch(/^[A-Za-z0-9+/]+=*$/);
  // A descriptor is answered with one; an empty text isn't taken for one.
  const descriptor = (await register('order', await form('serialized'), others)).body;
  expect(descriptor.version).toBe(2);
  expect(descriptor.schema).toMatch(/^[A-Za-z0-9+/]+=*$/);
  const schema = await registrySource(registry).byId(body.id);
  expect([...schema.resolved.keys()]).toEqual(['google/type/date.proto', 'money.proto']);
  expect(schema.resolved.get('money.proto')).toContain('int64 units = 1;');
  const json = {
    type: 'object',
    properties: { a: { $ref: 'a.json' } },
    additionalProperties: false,
  };
  const ref = { references: [{ name: 'a.json', subject: 'a', version: 1 }] };
  await register('a', { type: 'string' }, { schemaType: 'JSON' });
  expect((await register('j', json, { schemaType: 'JSON' })).body.error_code).toBe(42201);
  const { body: registered } = await register('j', json, { schemaType: 'JSON', ...ref });
  const source = await registrySource(registry).byGuid(registered.guid.toUpperCase());
  expect(source).toMatchObject({
    type: 'JSON',
    resolved: new Map([['a.json', '{"type":"string"}']]),
  });
  const verdict = await call('POST', '/compatibility/subjects/j/versions?verbose=true', {
    schema: '{"type":"string"}',
    schemaType: 'JSON',
  });
  expect(verdict.body.messages[0]).toContain('TYPE_CHANGED');
  expect((await call('GET', '/schemas/types')).body).toEqual(['JSON', 'PROTOBUF', 'AVRO']);
});
