// Debezium's events by their kinds, in Avro and JSON: what becomes a row, what is passed over, what is a dead letter.
import avsc from 'avsc';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { RecordInput } from '../../protocol/record-builder.ts';
import { Bench, framed } from '../testing/bench.ts';
import { readRows } from '../testing/parquet-rows.ts';

let bench: Bench;

beforeEach(async () => {
  bench = await Bench.open();
  bench.start();
});

afterEach(() => bench.stop());

type Row = Record<string, unknown>;

const IMAGE = {
  type: 'record',
  name: 'Value',
  namespace: 'shop.customers',
  fields: [
    { name: 'id', type: 'int' },
    { name: 'name', type: ['null', 'string'], default: null },
  ],
};

const SOURCE = {
  type: 'record',
  name: 'Source',
  namespace: 'io.debezium.connector.x',
  fields: [{ name: 'table', type: 'string' }],
};

const envelope = (image: object = IMAGE) => ({
  type: 'record',
  name: 'Envelope',
  namespace: 'shop.customers',
  fields: [
    { name: 'before', type: ['null', image], default: null },
    { name: 'after', type: ['null', 'shop.customers.Value'], default: null },
    { name: 'source', type: SOURCE },
    { name: 'op', type: 'string' },
    { name: 'ts_ms', type: ['null', 'long'], default: null },
    { name: 'ts_us', type: ['null', 'long'], default: null },
  ],
});

const event = (op: string, after: Row | null, before: Row | null = null) => ({
  before,
  after,
  source: { table: 'customers' },
  op,
  ts_ms: 1_700_000_000_123,
  ts_us: 1_700_000_000_123_456,
});

async function avro(schema: object, subject = 't-value') {
  const id = await bench.schemas.register(subject, JSON.stringify(schema));
  const type = avsc.Type.forSchema(schema as avsc.Schema, { wrapUnions: false });
  return (value: object): RecordInput => ({ value: framed(id, type.toBuffer(value)) });
}

async function load(records: RecordInput[], config: Record<string, string> = {}) {
  const topic = await bench.topic('t', {
    'table.topic.transform.value.type': 'flatten_debezium',
    'table.topic.commit.interval.ms': '900000',
    ...config,
  });
  bench.produce(topic, records);
  await bench.tables.commit('t');
  return topic;
}

async function rows(table = 't') {
  const found = await readRows(bench.warehouse, await bench.load(table));
  return found.toSorted((a, b) => Number(a['_kafka_offset']) - Number(b['_kafka_offset']));
}

const cells = (found: Row[]) => found.map((row) => [row['_cdc_op'], row['id'], row['name']]);

const JSON_CONFIG = { 'table.topic.convert.value.type': 'json' };
const json = (value: unknown): RecordInput => ({ value: JSON.stringify(value) });

describe('each change is a row', () => {
  const changes = [
    event('r', { id: 1, name: 'a' }),
    event('c', { id: 2, name: null }),
    event('u', { id: 1, name: 'b' }, { id: 1, name: 'a' }),
    event('d', null, { id: 2, name: null }),
  ];
  const expected = [
    ['r', 1, 'a'],
    ['c', 2, null],
    ['u', 1, 'b'],
    ['d', 2, null],
    ['t', null, null],
  ];

  test('Avro: after, or before for a delete; a truncate has no cells; tombstones are passed over', async () => {
    const make = await avro(envelope());
    await load([...changes.map(make), { value: null }, make(event('t', null))]);
    const found = await rows();
    expect(cells(found)).toEqual(expected);
    expect(found[0]).toMatchObject({ _cdc_source: { table: 'customers' } });
    expect(Number(found[0]!['_cdc_ts'])).toBe(1_700_000_000_123);
  });

  test('JSON without schemas: the same, members in any order', async () => {
    const turned = changes.map((change) =>
      json(Object.fromEntries(Object.entries(change).reverse())),
    );
    await load([...turned, { value: null }, json(event('t', null))], JSON_CONFIG);
    const found = await rows();
    expect(cells(found)).toEqual(
      expected.map(([op, id, name]) => [op, id === null ? null : BigInt(id!), name]),
    );
    expect(found[0]).toMatchObject({ _cdc_source: { table: 'customers' } });
    expect(Number(found[0]!['_cdc_ts'])).toBe(1_700_000_000_123);
  });

  test('JSON without schemas in a wrapper', async () => {
    await load(
      [
        json({ schema: null, payload: changes[0] }),
        json({ payload: changes[2] }),
        json({ schema: null, payload: null }),
        json(null),
      ],
      JSON_CONFIG,
    );
    expect(cells(await rows())).toEqual([
      ['r', 1n, 'a'],
      ['u', 1n, 'b'],
    ]);
  });
});

describe('what is no change of a row', () => {
  test('Avro: heartbeats, transactions, schema changes, messages are passed over, even with tolerance none', async () => {
    const change = await avro(envelope());
    const record = (name: string, field: string) =>
      avro({ type: 'record', name, fields: [{ name: field, type: 'string' }] });
    const others = [
      await record('io.debezium.connector.common.Heartbeat', 'ts_ms'),
      await record('io.debezium.connector.common.TransactionMetadataValue', 'status'),
      await record('io.debezium.connector.mysql.SchemaChangeValue', 'ddl'),
      await record('io.debezium.connector.postgresql.MessageValue', 'op'),
    ];
    const value = { ts_ms: 'x', status: 'x', ddl: 'x', op: 'm' };
    await load([change(event('c', { id: 1, name: 'a' })), ...others.map((make) => make(value))], {
      'table.topic.errors.tolerance': 'none',
    });
    expect(cells(await rows())).toEqual([['c', 1, 'a']]);
  });

  test('JSON: the same by their members', async () => {
    await load(
      [
        json(event('c', { id: 1, name: 'a' })),
        json({ ts_ms: 1 }),
        json({ status: 'BEGIN', id: '1:2', event_count: null, ts_ms: 1 }),
        json({ source: {}, ts_ms: 1, databaseName: 'x', ddl: 'create table x', tableChanges: [] }),
        json({ op: 'm', ts_ms: 1, source: {}, message: { prefix: 'p', content: '' } }),
      ],
      { ...JSON_CONFIG, 'table.topic.errors.tolerance': 'none' },
    );
    expect(cells(await rows())).toEqual([['c', 1n, 'a']]);
  });
});

describe('what is no event', () => {
  test('Avro: other records, images that don’t fit the operation', async () => {
    const change = await avro(envelope());
    const plain = await avro({ type: 'record', name: 'P', fields: [{ name: 'a', type: 'int' }] });
    await load([
      change(event('c', { id: 1, name: 'a' })),
      plain({ a: 1 }),
      change(event('x', { id: 1, name: 'a' })),
      change(event('u', null, { id: 1, name: 'a' })),
      change(event('d', { id: 1, name: 'a' })),
      change(event('t', null, { id: 1, name: 'a' })),
      change(event('d', null)),
    ]);
    // A delete without its former image: the key says which row.
    expect(cells(await rows())).toEqual([
      ['c', 1, 'a'],
      ['d', null, null],
    ]);
    const letters = await readRows(bench.warehouse, await bench.load('t_dlq'));
    expect(letters.map((letter) => [letter['reason'], letter['error']])).toEqual([
      ['unsupported_schema', expect.stringContaining('lacks "op" or "after"')],
      ['undecodable', expect.stringContaining('operation')],
      ['undecodable', expect.stringContaining('without "after"')],
      ['undecodable', expect.stringContaining('a delete with "after"')],
      ['undecodable', expect.stringContaining('a truncate with an image')],
    ]);
  });

  test('JSON: texts, arrays, other objects, broken images, schemas that are none', async () => {
    const schema = { type: 'struct', fields: [{ field: 'op', type: 'string' }] };
    await load(
      [
        json(event('c', { id: 1, name: 'a' })),
        json([1]),
        { value: 'no json' },
        json({ a: 1 }),
        json(event('u', null)),
        json({ schema, payload: { op: 'c' } }),
        json({ schema: { type: 'nothing' }, payload: { op: 'c' } }),
        json({ schema: 5, payload: { op: 'c' } }),
      ],
      JSON_CONFIG,
    );
    expect(cells(await rows())).toEqual([['c', 1n, 'a']]);
    const letters = await readRows(bench.warehouse, await bench.load('t_dlq'));
    expect(letters.map((letter) => letter['reason'])).toEqual([
      'not_json',
      'not_json',
      'not_json',
      'not_json',
      'unsupported_schema',
      'unsupported_schema',
      'unsupported_schema',
    ]);
  });
});

describe('schemas that come along', () => {
  const field = (name: string, type: string, more: object = {}) => ({
    field: name,
    type,
    optional: true,
    ...more,
  });
  const wrap = (fields: object[], payload: object) => {
    const image = (name: string) => ({
      field: name,
      type: 'struct',
      optional: true,
      fields,
      name: 'V',
    });
    const schema = {
      type: 'struct',
      fields: [
        image('before'),
        image('after'),
        { field: 'op', type: 'string', optional: false },
        field('ts_ms', 'int64'),
      ],
    };
    return json({ schema, payload });
  };
  const change = (after: Row) => ({ before: null, after, op: 'c', ts_ms: 1 });

  test('versions interleaved, a column added, one widened, one of another type', async () => {
    const v1 = [field('id', 'int32'), field('x', 'int32')];
    const v2 = [field('id', 'int64'), field('y', 'string'), field('x', 'string')];
    await load(
      [
        wrap(v1, change({ id: 1, x: 1 })),
        wrap(v2, change({ id: 2, y: 'b', x: 'two' })),
        wrap(v1, change({ id: 3, x: 3 })),
      ],
      JSON_CONFIG,
    );
    expect((await rows()).map((row) => [row['id'], row['x'], row['x__string'], row['y']])).toEqual([
      [1n, 1, null, null],
      [2n, null, 'two', 'b'],
      [3n, 3, null, null],
    ]);
  });

  test('events with a schema and bare ones on one topic fill the same columns', async () => {
    const fields = [
      field('id', 'int32'),
      field('at', 'int64', { name: 'io.debezium.time.Timestamp' }),
    ];
    await load(
      [
        wrap(fields, change({ id: 1, at: 1_000 })),
        json(change({ id: 2, at: 2_000 })),
        json(change({ id: 3, at: null })),
      ],
      JSON_CONFIG,
    );
    expect(
      (await rows()).map((row) => [
        row['_cdc_op'],
        Number(row['id']),
        Number(row['at'] ?? 0),
        row['at__long'] ?? null,
      ]),
    ).toEqual([
      ['c', 1, 1_000, null],
      // A bare number doesn't say that it is a time.
      ['c', 2, 0, 2_000n],
      ['c', 3, 0, null],
    ]);
  });

  test('the same when a column comes later, by both at once', async () => {
    const id = field('id', 'int32');
    const topic = await load([wrap([id], change({ id: 1 }))], JSON_CONFIG);
    const at = field('at', 'int64', { name: 'io.debezium.time.Timestamp' });
    bench.produce(topic, [
      json(change({ id: 2, at: 5 })),
      wrap([id, at], change({ id: 3, at: 5 })),
    ]);
    await bench.tables.commit('t');
    const { fields } = (await bench.load('t')).schemas.at(-1)!;
    const added = fields
      .filter((one) => one.name.startsWith('at'))
      .map((one) => [one.name, one.type]);
    expect(added).toEqual([
      ['at', 'timestamp'],
      ['at__long', 'long'],
    ]);
    expect(await rows()).toHaveLength(3);
  });

  test('a column that comes later, into a table that is there', async () => {
    const topic = await load([wrap([field('id', 'int32')], change({ id: 1 }))], JSON_CONFIG);
    const wider = [field('id', 'int32'), field('more', 'string')];
    bench.produce(topic, [
      wrap(wider, change({ id: 2, more: 'x' })),
      wrap([field('id', 'int32')], change({ id: 3 })),
    ]);
    await bench.tables.commit('t');
    expect((await rows()).map((row) => [row['id'], row['more'] ?? null])).toEqual([
      [1, null],
      [2, 'x'],
      [3, null],
    ]);
  });

  test('with dlq an incompatible version is refused', async () => {
    const v1 = [field('id', 'int32')];
    const v2 = [field('id', 'string')];
    const topic = await load([wrap(v1, change({ id: 1 }))], {
      ...JSON_CONFIG,
      'table.topic.evolution.incompatible': 'dlq',
    });
    bench.produce(topic, [wrap(v2, change({ id: 'x' })), wrap(v1, change({ id: 2 }))]);
    await bench.tables.commit('t');
    expect((await rows()).map((row) => row['id'])).toEqual([1, 2]);
    const letters = await readRows(bench.warehouse, await bench.load('t_dlq'));
    expect(letters.map((letter) => letter['reason'])).toEqual(['incompatible_type']);
  });

  test('with suspend the table says so and stops', async () => {
    const topic = await load([wrap([field('id', 'int32')], change({ id: 1 }))], {
      ...JSON_CONFIG,
      'table.topic.evolution.incompatible': 'suspend',
    });
    bench.produce(topic, [wrap([field('id', 'string')], change({ id: 'x' }))]);
    const reason = async () => {
      await bench.tables.commit('t').catch(() => undefined);
      return (await bench.tables.status('t')).reason;
    };
    await expect.poll(reason).toMatch(/"id" is int .* writes string/);
  });

  test('Connect’s and Debezium’s types in JSON', async () => {
    const named = (name: string, type: string, type_: string, parameters?: object) =>
      field(name, type, { name: type_, ...(parameters === undefined ? {} : { parameters }) });
    const C = 'org.apache.kafka.connect.data.';
    const D = 'io.debezium.time.';
    const fields = [
      named('dec', 'bytes', `${C}Decimal`, { scale: '2', 'connect.decimal.precision': '10' }),
      named('date', 'int32', `${C}Date`),
      named('time', 'int32', `${C}Time`),
      named('ts', 'int64', `${C}Timestamp`),
      named('nano', 'int64', `${D}NanoTimestamp`),
      named('nanotime', 'int64', `${D}NanoTime`),
      named('span', 'int64', `${D}MicroTime`),
      named('zoned', 'string', `${D}ZonedTimestamp`),
      named('year', 'int32', `${D}Year`),
      named('interval', 'string', `${D}Interval`),
      field('i8', 'int8'),
      field('f', 'float'),
      field('m', 'map', { keys: { type: 'string' }, values: { type: 'int32', optional: true } }),
    ];
    const value = {
      dec: Buffer.from([0x01, 0x3a]).toString('base64'),
      date: -1,
      time: 1_000,
      ts: -1,
      nano: -1,
      nanotime: 1_999,
      span: -3_600_000_001,
      zoned: '2024-01-01T00:00:00.5+01:00',
      year: 2024,
      interval: 'P1Y',
      i8: -128,
      f: 1.5,
      m: { a: 1, b: null },
    };
    await load(
      [wrap(fields, change(value)), wrap(fields, change({ ...value, dec: 3.14 }))],
      JSON_CONFIG,
    );
    const [row, numeric] = await rows();
    expect(row).toMatchObject({
      dec: 3.14,
      time: '00:00:01.000000',
      nanotime: '00:00:00.000001',
      span: '-01:00:00.000001',
      year: 2024,
      interval: 'P1Y',
      i8: -128,
      f: 1.5,
    });
    expect(numeric!['dec']).toBe(3.14);
    expect(Number(row!['date'])).toBe(-86_400_000);
    expect(Number(row!['ts'])).toBe(-1);
    expect(Number(row!['zoned'])).toBe(Date.UTC(2023, 11, 31, 23, 0, 0, 500));
    const { fields: columns } = (await bench.load('t')).schemas.at(-1)!;
    const types = new Map(columns.map((column) => [column.name, column.type]));
    expect(types.get('ts')).toBe('timestamptz');
    expect(types.get('nano')).toBe('timestamp');
    expect(types.get('dec')).toBe('decimal(10, 2)');
  });
});
