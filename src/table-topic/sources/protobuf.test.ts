// Protobuf end to end: framed records of several messages become rows; renames go by number; headers name schemas.
import protobuf from 'protobufjs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Bench, framed } from '../testing/bench.ts';
import { readRows } from '../testing/parquet-rows.ts';

let bench: Bench;

beforeEach(async () => {
  bench = await Bench.open();
  bench.start();
});

afterEach(() => bench.stop());

const PATIENT = { 'table.topic.commit.interval.ms': '900000' };

async function register(schema: string, subject = 't-value') {
  const id = await bench.schemas.register(subject, schema, 'PROTOBUF');
  const { root } = protobuf.parse(schema, { keepCase: true });
  return {
    id,
    encode: (name: string, value: object) => root.lookupType(name).encode(value).finish(),
    /** Framed as the clients do: id, indexes of the message (0 for the first), bytes. */
    record: (name: string, value: object, indexes: readonly number[] = [0]) => ({
      value: framed(
        id,
        Buffer.concat([Buffer.from(indexes), root.lookupType(name).encode(value).finish()]),
      ),
    }),
  };
}

async function rows(table = 't') {
  const found = await readRows(bench.warehouse, await bench.load(table));
  return found
    .toSorted((a, b) => Number(a['_kafka_offset']) - Number(b['_kafka_offset']))
    .map((row) =>
      Object.fromEntries(
        Object.entries(row).filter(([name, value]) => !name.startsWith('_kafka') && value !== null),
      ),
    );
}

test('records become rows; a rename by number renames the column, once, and older records follow', async () => {
  const v1 = await register(
    'syntax="proto3"; message M { int32 a = 1; string old = 2; In in = 3; } message In { int32 x = 1; }',
  );
  const topic = await bench.topic('t', PATIENT);
  bench.produce(topic, [v1.record('M', { a: 1, old: 'x', in: { x: 5 } })]);
  await bench.tables.commit('t');
  const v2 = await register(
    'syntax="proto3"; message M { int64 a = 1; string now = 2; In in = 3; double b = 4; } message In { int32 y = 1; int32 x = 2; }',
  );
  bench.produce(topic, [
    v1.record('M', { a: 2, old: 'y' }),
    v2.record('M', { a: 3, now: 'z', b: 1.5, in: { y: 7, x: 8 } }),
    v1.record('M', { a: 4, old: 'w', in: { x: 6 } }),
  ]);
  await bench.tables.commit('t');
  expect(await rows()).toEqual([
    // Written before the rename: readers of the table go by field id.
    { a: 1, old: 'x', in: { x: 5 } },
    { a: 2n, now: 'y' },
    { a: 3n, now: 'z', in: { y: 7, x: 8 }, b: 1.5 },
    { a: 4n, now: 'w', in: { y: 6, x: null } },
  ]);
  const before = await bench.load('t');
  bench.produce(topic, [v1.record('M', { a: 5, old: 'v' })]);
  await bench.tables.commit('t');
  expect((await bench.load('t'))['current-schema-id']).toBe(before['current-schema-id']);
});

describe('several messages in one topic', () => {
  const TEXT = `syntax="proto3"; message A { int32 one = 1; string same = 2; message Inner { string deep = 1; } }
    message B { string other = 1; string same = 3; }`;

  test('each by its indexes; fields of equal numbers are no relatives, of equal names and types they share', async () => {
    const v1 = await register(TEXT);
    const topic = await bench.topic('t', PATIENT);
    bench.produce(topic, [
      v1.record('B', { other: 'x', same: 's' }, [2, 2]),
      v1.record('A', { one: 7, same: 't' }),
      v1.record('A.Inner', { deep: 'd' }, [4, 0, 0]),
      v1.record('A', { one: 1 }, [2, 18]),
      { value: framed(v1.id, Uint8Array.of(0xff, 0xff, 0xff, 0xff)) },
    ]);
    await bench.tables.commit('t');
    expect(await rows()).toEqual([{ other: 'x', same: 's' }, { one: 7, same: 't' }, { deep: 'd' }]);
    const letters = await readRows(bench.warehouse, await bench.load('t_dlq'));
    expect(letters.map((letter) => [letter['reason'], letter['error']])).toEqual([
      ['unsupported_schema', expect.stringMatching(/no message at index 9/)],
      ['undecodable', expect.stringMatching(/message indexes are malformed/)],
    ]);
  });

  test('by_latest_schema: bare bytes, the message by name; without a name the schema must have one', async () => {
    const v1 = await register(TEXT, 'elsewhere');
    const config = {
      ...PATIENT,
      'table.topic.convert.value.type': 'by_latest_schema',
      'table.topic.convert.value.by_latest_schema.subject': 'elsewhere',
    };
    const topic = await bench.topic('t', {
      ...config,
      'table.topic.convert.value.by_latest_schema.message.full.name': 'B',
    });
    bench.produce(topic, [{ value: v1.encode('B', { other: 'q' }) }]);
    await bench.tables.commit('t');
    expect(await rows()).toEqual([{ other: 'q', same: '' }]);
    const vague = await bench.topic('u', config);
    bench.produce(vague, [{ value: v1.encode('B', { other: 'q' }) }]);
    await bench.tables.commit('u');
    const [letter] = await readRows(bench.warehouse, await bench.load('u_dlq'));
    expect(letter!['error']).toMatch(/several messages \(A, B\): set .*message.full.name/);
  });
});

test('a header names the schema by GUID, indexes behind it; keys likewise, typed', async () => {
  const value = await register('syntax="proto3"; message A {} message V { string s = 1; }');
  const key = await register('syntax="proto3"; message K { int64 id = 1; }', 't-key');
  const topic = await bench.topic('t', {
    ...PATIENT,
    'table.topic.convert.key.type': 'by_schema_id',
  });
  const mark = async (id: number, ...indexes: number[]) => {
    const { guid } = await bench.schemas.byId(id);
    return Buffer.from([1, ...Buffer.from(guid.replaceAll('-', ''), 'hex'), ...indexes]);
  };
  bench.produce(topic, [
    {
      value: value.encode('V', { s: 'x' }),
      key: key.encode('K', { id: 5 }),
      headers: [
        ['other', Buffer.from('h')],
        ['__value_schema_id', await mark(value.id, 2, 2)],
        ['__key_schema_id', await mark(key.id, 0)],
      ],
    },
    { ...value.record('V', { s: 'y' }, [2, 2]), key: null },
    {
      value: value.encode('V', { s: 'z' }),
      headers: [['__value_schema_id', Buffer.from([9])]],
    },
  ]);
  await bench.tables.commit('t');
  const found = await readRows(bench.warehouse, await bench.load('t'));
  expect(found.map((row) => [row['s'], row['_kafka_key'] ?? null])).toEqual([
    ['x', { id: 5n }],
    ['y', null],
  ]);
  const [letter] = await readRows(bench.warehouse, await bench.load('t_dlq'));
  expect(letter).toMatchObject({ reason: 'no_schema_id', error: expect.stringMatching(/header/) });
});
