// Envelopes in Protobuf: the same rows as in Avro and JSON, and nanoseconds where JSON brings its schema along.
import protobuf from 'protobufjs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { RecordInput } from '../../protocol/record-builder.ts';
import { Bench, framed } from '../testing/bench.ts';
import { readRows } from '../testing/parquet-rows.ts';
import { liveRows } from '../upsert/testing/live-rows.ts';
import { UNAVAILABLE } from './unavailable.ts';

let bench: Bench;

beforeEach(async () => {
  bench = await Bench.open();
  bench.start();
});

afterEach(() => bench.stop());

const TEXT = `syntax = "proto3";
package shop.customers;
message Envelope {
  Value before = 1;
  Value2 after = 2;
  Source source = 3;
  string op = 4;
  int64 ts_ms = 5;
  int64 ts_us = 6;
  bytes transaction = 7;
  message Value { int32 id = 1; optional string name = 2; repeated string tags = 3; }
  message Value2 { int32 id = 1; optional string name = 2; repeated string tags = 3; }
  message Source { string table = 1; }
}
message Heartbeat { int64 ts_ms = 1; }
`;

const root = protobuf.parse(TEXT, { keepCase: true }).root;

async function encoder(): Promise<(name: string, value: object, index: number) => RecordInput> {
  const id = await bench.schemas.register('t-value', TEXT, 'PROTOBUF');
  return (name, value, index) => {
    const type = root.lookupType(`shop.customers.${name}`);
    const body = type.encode(type.fromObject(value)).finish();
    // Message indexes: [0] is a single zero, others a count and zig-zag numbers.
    const path = index === 0 ? [0] : [2, index * 2];
    return { value: framed(id, new Uint8Array([...path, ...body])) };
  };
}

const event = (op: string, after: object | undefined, before?: object) => ({
  ...(before === undefined ? {} : { before }),
  ...(after === undefined ? {} : { after }),
  source: { table: 'customers' },
  op,
  ts_ms: 1_700_000_000_123,
});

const CONFIG = {
  'table.topic.transform.value.type': 'flatten_debezium',
  'table.topic.commit.interval.ms': '900000',
};

test('each change is a row; what is none is passed over or a dead letter', async () => {
  const make = await encoder();
  const topic = await bench.topic('t', CONFIG);
  bench.produce(topic, [
    make('Envelope', event('c', { id: 1, name: 'a', tags: ['x'] }), 0),
    make('Envelope', event('u', { id: 1 }, { id: 1, name: 'a' }), 0),
    make('Envelope', event('d', undefined, { id: 1, name: 'b' }), 0),
    { value: null },
    make('Envelope', event('t', undefined), 0),
    make('Heartbeat', { ts_ms: 5 }, 1),
    make('Envelope', event('u', undefined), 0),
    make('Envelope', event('', { id: 2 }), 0),
  ]);
  await bench.tables.commit('t');
  const found = await readRows(bench.warehouse, await bench.load('t'));
  expect(found.map((row) => [row['_cdc_op'], row['id'], row['name'], row['tags']])).toEqual([
    ['c', 1, 'a', ['x']],
    ['u', 1, null, []],
    ['d', 1, 'b', []],
    ['t', null, null, null],
  ]);
  expect(found[0]).toMatchObject({ _cdc_source: { table: 'customers' } });
  expect(Number(found[0]!['_cdc_ts'])).toBe(1_700_000_000_123);
  const letters = await readRows(bench.warehouse, await bench.load('t_dlq'));
  expect(letters.map((row) => Number(row['offset']))).toEqual([6, 7]);
});

test('upserts mirror the source, unavailable values too', async () => {
  const make = await encoder();
  const topic = await bench.topic('t', {
    ...CONFIG,
    'table.topic.upsert.enable': 'true',
    'table.topic.id.columns': '[id]',
  });
  bench.produce(topic, [
    make('Envelope', event('c', { id: 1, name: 'long', tags: ['x'] }), 0),
    make('Envelope', event('c', { id: 2, name: 'b' }), 0),
  ]);
  await bench.tables.commit('t');
  bench.produce(topic, [
    make('Envelope', event('u', { id: 1, name: UNAVAILABLE, tags: [UNAVAILABLE] }), 0),
    make('Envelope', event('d', undefined, { id: 2 }), 0),
  ]);
  await bench.tables.commit('t');
  const rows = await liveRows(bench.warehouse, await bench.load('t'));
  expect(rows.map((row) => [row['id'], row['name'], row['tags']])).toEqual([[1, 'long', ['x']]]);
});

test('cut or flipped bytes are dead letters, never more', async () => {
  const make = await encoder();
  const whole = make('Envelope', event('c', { id: 1, name: 'a', tags: ['x'] }), 0)
    .value as Uint8Array;
  const topic = await bench.topic('t', CONFIG);
  const cuts = Array.from({ length: whole.length - 6 }, (_, n) => ({
    value: whole.slice(0, 6 + n),
  }));
  const flips = Array.from({ length: whole.length - 6 }, (_, n) => {
    const value = whole.slice();
    value[6 + n]! ^= 0xff;
    return { value };
  });
  bench.produce(topic, [{ value: whole }, ...cuts, ...flips, { value: whole }]);
  await bench.tables.commit('t');
  const rows = await readRows(bench.warehouse, await bench.load('t'));
  const letters = await readRows(bench.warehouse, await bench.load('t_dlq'));
  expect(rows.length + letters.length).toBe(cuts.length + flips.length + 2);
});

test('nanoseconds of JSON with schemas are kept when the table may have them', async () => {
  const field = (name: string, type: string, more: object = {}) => ({ field: name, type, ...more });
  const image = {
    type: 'struct',
    optional: true,
    name: 'x.Value',
    fields: [
      field('id', 'int32'),
      field('at', 'int64', { name: 'io.debezium.time.NanoTimestamp', optional: true }),
    ],
  };
  const schema = {
    type: 'struct',
    name: 'x.Envelope',
    fields: [{ ...image, field: 'before' }, { ...image, field: 'after' }, field('op', 'string')],
  };
  const payload = '{"before":null,"after":{"id":1,"at":1700000000123456789},"op":"c"}';
  const value = `{"schema":${JSON.stringify(schema)},"payload":${payload}}`;
  const config = { ...CONFIG, 'table.topic.convert.value.type': 'json' };
  for (const [name, nanos, type] of [
    ['coarse', 'false', 'timestamp'],
    ['fine', 'true', 'timestamp_ns'],
  ] as const) {
    const topic = await bench.topic(name, {
      ...config,
      'table.topic.types.nanos': nanos,
      'table.topic.format.version': '3',
    });
    bench.produce(topic, [{ value }]);
    await bench.tables.commit(name);
    const { schemas } = await bench.load(name);
    expect(schemas.at(-1)!.fields.find((one) => one.name === 'at')!.type).toBe(type);
  }
});
