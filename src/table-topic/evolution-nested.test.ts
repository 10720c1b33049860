// Evolution end to end where it is deep, or interleaved: on real tables, their files read by another reader.
import avsc from 'avsc';
import protobuf from 'protobufjs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Bench, framed } from './testing/bench.ts';
import { liveFiles, readRows } from './testing/parquet-rows.ts';

let bench: Bench;

beforeEach(async () => {
  bench = await Bench.open();
  bench.start();
});

afterEach(() => bench.stop());

const CONFIG = { 'table.topic.commit.interval.ms': '900000' };

async function register(schema: object, subject = 't-value') {
  const id = await bench.schemas.register(subject, JSON.stringify(schema));
  const type = avsc.Type.forSchema(schema as avsc.Schema, { wrapUnions: false });
  return (value: unknown) => framed(id, type.toBuffer(value));
}

const record = (
  name: string,
  fields: Record<string, unknown>,
  aliases: Record<string, string[]> = {},
) => ({
  type: 'record',
  name,
  fields: Object.entries(fields).map(([field, type]) => ({
    name: field,
    type,
    ...(aliases[field] === undefined ? {} : { aliases: aliases[field] }),
  })),
});

async function rows(table = 't') {
  const found = await readRows(bench.warehouse, await bench.load(table));
  return found.toSorted((a, b) => Number(a['_kafka_offset']) - Number(b['_kafka_offset']));
}

test('lists of structs and map values grow, widen, rename and branch off, versions interleaved in one file', async () => {
  const item1 = record('I', { x: 'int', y: 'string' });
  const v1 = await register(
    record('R', { l: { type: 'array', items: item1 }, m: { type: 'map', values: 'I' } }),
  );
  const topic = await bench.topic('t', CONFIG);
  const old = (n: number) => ({ value: v1({ l: [{ x: n, y: 'a' }], m: { k: { x: n, y: 'b' } } }) });
  bench.produce(topic, [old(1)]);
  await bench.tables.commit('t');
  // x wider, y renamed, z new; then y of a type that text can't become.
  const item2 = record('I', { x: 'long', why: 'string', z: ['null', 'int'] }, { why: ['y'] });
  const v2 = await register(
    record('R', { l: { type: 'array', items: item2 }, m: { type: 'map', values: 'I' } }),
  );
  const item3 = record('I', { x: 'long', why: 'int', z: ['null', 'int'] });
  const v3 = await register(
    record('R', { l: { type: 'array', items: item3 }, m: { type: 'map', values: 'I' } }),
  );
  const wide = (n: number) => {
    const item = { x: 2 ** 40 + n, why: 'c', z: n };
    return { value: v2({ l: [item], m: { k: item } }) };
  };
  const branched = (n: number) => {
    const item = { x: n, why: 7, z: null };
    return { value: v3({ l: [item], m: { k: item } }) };
  };
  const flips = Array.from({ length: 30 }, (_, i) => [old(i), wide(i), branched(i)][i % 3]!);
  bench.produce(topic, flips);
  await bench.tables.commit('t');
  // One file for each of the two commits, however often the schema changed.
  expect(await liveFiles(bench.warehouse, await bench.load('t'))).toHaveLength(2);
  const found = await rows();
  expect(found).toHaveLength(31);
  const items = found.map((row) => (row['l'] as Record<string, unknown>[])[0]!);
  // The first file has int and no further fields. `why` is y's column: the newest version, which has no former name
  // for it, doesn't rename.
  expect(items.slice(0, 4)).toEqual([
    { x: 1, y: 'a' },
    { x: 0n, y: 'a', z: null, why__int: null },
    { x: BigInt(2 ** 40 + 1), y: 'c', z: 1, why__int: null },
    { x: 2n, y: null, z: null, why__int: 7 },
  ]);
  expect(found[3]!['m']).toEqual({ k: expect.objectContaining({ x: 2n, why__int: 7 }) });
});

test('required becomes optional and an optional one is left out; old records after new ones land', async () => {
  const v1 = await register(record('R', { a: 'int', b: 'string' }));
  const topic = await bench.topic('t', CONFIG);
  bench.produce(topic, [{ value: v1({ a: 1, b: 'x' }) }]);
  await bench.tables.commit('t');
  const v2 = await register(record('R', { b: ['null', 'string'], c: ['null', 'double'] }));
  bench.produce(topic, [
    { value: v2({ b: null, c: 1.5 }) },
    { value: v1({ a: 2, b: 'y' }) },
    { value: v2({ b: 'z', c: null }) },
  ]);
  await bench.tables.commit('t');
  expect((await rows()).map(({ a, b, c }) => [a, b, c ?? null])).toEqual([
    [1, 'x', null],
    [null, null, 1.5],
    [2, 'y', null],
    [null, 'z', null],
  ]);
});

test('keys by schema evolve inside _kafka_key by the same rules', async () => {
  const value = await register(record('R', { a: 'int' }));
  const k1 = await register(record('K', { id: 'int', old: 'string' }), 't-key');
  const topic = await bench.topic('t', {
    ...CONFIG,
    'table.topic.convert.key.type': 'by_schema_id',
  });
  const a = value({ a: 1 });
  bench.produce(topic, [{ key: k1({ id: 1, old: 'x' }), value: a }]);
  await bench.tables.commit('t');
  const k2 = await register(
    record('K', { id: 'long', now: 'string', extra: 'int' }, { now: ['old'] }),
    't-key',
  );
  const k3 = await register(record('K', { id: 'string', now: 'string' }), 't-key');
  bench.produce(topic, [
    { key: k2({ id: 2 ** 40, now: 'y', extra: 5 }), value: a },
    { key: k1({ id: 3, old: 'z' }), value: a },
    { key: k3({ id: 'four', now: 'w' }), value: a },
    { key: null, value: a },
  ]);
  await bench.tables.commit('t');
  const keys = (await rows()).map((row) => row['_kafka_key'] as Record<string, unknown> | null);
  const text = keys.map((key) => key?.['now'] ?? key?.['old'] ?? null);
  expect(text).toEqual(['x', 'y', 'z', 'w', null]);
  expect(keys.map((key) => [key?.['id'] ?? null, key?.['id__string'] ?? null])).toEqual([
    [1, null],
    [BigInt(2 ** 40), null],
    [3n, null],
    [null, 'four'],
    [null, null],
  ]);
});

test('Protobuf: the newest version renames by number, at any depth; older ones land under the new names', async () => {
  async function version(text: string) {
    const id = await bench.schemas.register('t-value', `syntax = "proto3"; ${text}`, 'PROTOBUF');
    const type = protobuf
      .parse(`syntax = "proto3"; ${text}`, { keepCase: true })
      .root.lookupType('M');
    // One byte of message indexes: the first message.
    return (value: object) =>
      framed(id, Buffer.concat([Buffer.from([0]), type.encode(value).finish()]));
  }
  const v1 = await version('message M { int32 a = 1; S s = 2; } message S { string x = 5; }');
  const topic = await bench.topic('t', CONFIG);
  bench.produce(topic, [{ value: v1({ a: 1, s: { x: 'one' } }) }]);
  await bench.tables.commit('t');
  const v2 = await version(
    'message M { int64 b = 1; S t = 2; } message S { string y = 5; bool z = 6; }',
  );
  bench.produce(topic, [
    { value: v1({ a: 2, s: { x: 'two' } }) },
    { value: v2({ b: 3, t: { y: 'three', z: true } }) },
    { value: v1({ a: 4, s: { x: 'four' } }) },
  ]);
  await bench.tables.commit('t');
  const fields = (await bench.load('t')).schemas.at(-1)!.fields.slice(0, 2);
  expect(fields).toMatchObject([
    { id: 1, name: 'b', type: 'long' },
    { id: 2, name: 't', type: { fields: [{ name: 'y' }, { name: 'z' }] } },
  ]);
  expect((await rows()).map((row) => [Number(row['b'] ?? row['a']), row['t'] ?? row['s']])).toEqual(
    [
      [1, { x: 'one' }],
      [2, { y: 'two', z: null }],
      [3, { y: 'three', z: true }],
      [4, { y: 'four', z: null }],
    ],
  );
  // The map in the table alone says where the fields go: a restart finds nothing to change.
  const before = (await bench.load('t'))['current-schema-id'];
  await bench.tables.stop();
  bench.start();
  bench.produce(topic, [{ value: v1({ a: 5, s: { x: 'five' } }) }]);
  await bench.tables.commit('t');
  expect((await bench.load('t'))['current-schema-id']).toBe(before);
  expect((await rows()).at(-1)).toMatchObject({ b: 5n, t: { y: 'five' } });
});

describe('an incompatible change deep inside, by policy', () => {
  async function twoVersions(policy: string) {
    const shape = (type: string) =>
      record('R', {
        a: 'int',
        s: record('S', { l: { type: 'array', items: record('I', { x: type }) } }),
      });
    const v1 = await register(shape('int'));
    const topic = await bench.topic('t', {
      ...CONFIG,
      'table.topic.evolution.incompatible': policy,
    });
    bench.produce(topic, [{ value: v1({ a: 1, s: { l: [{ x: 1 }] } }) }]);
    await bench.tables.commit('t');
    const v2 = await register(shape('string'));
    bench.produce(topic, [
      { value: v2({ a: 2, s: { l: [{ x: 'two' }] } }) },
      { value: v1({ a: 3, s: { l: [{ x: 3 }] } }) },
    ]);
    await bench.tables.commit('t').catch(() => undefined);
  }

  test('new_column: the inner field alone gets one', async () => {
    await twoVersions('new_column');
    expect((await rows()).map((row) => row['s'])).toEqual([
      { l: [expect.objectContaining({ x: 1 })] },
      { l: [{ x: null, x__string: 'two' }] },
      { l: [{ x: 3, x__string: null }] },
    ]);
  });

  test('dlq: those records are dead letters, the others land', async () => {
    await twoVersions('dlq');
    expect((await rows()).map((row) => row['a'])).toEqual([1, 3]);
    const letters = await readRows(bench.warehouse, await bench.load('t_dlq'));
    expect(letters.map((letter) => letter['reason'])).toEqual(['incompatible_type']);
  });

  test('suspend: the table stops and says which column', async () => {
    await twoVersions('suspend');
    const reason = async () => {
      await bench.tables.commit('t').catch(() => undefined);
      return (await bench.tables.status('t')).reason;
    };
    await expect.poll(reason).toMatch(/column "x" is int .* string/);
    expect((await rows()).map((row) => row['a'])).toEqual([1]);
  });
});
