// JSON Schema end to end: framed records become typed rows; keys typed by schema; what has no place is a dead letter.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Bench, framed } from '../testing/bench.ts';
import { readRows } from '../testing/parquet-rows.ts';

let bench: Bench;

beforeEach(async () => {
  bench = await Bench.open();
  bench.start();
});

afterEach(() => bench.stop());

const schema = (properties: object, more: object = {}) =>
  JSON.stringify({ type: 'object', properties, ...more });

async function register(text: string, subject = 't-value') {
  const id = await bench.schemas.register(subject, text, 'JSON');
  return (value: unknown) => framed(id, Buffer.from(JSON.stringify(value)));
}

test('values and keys become columns; what is undeclared lands in _rest; older versions follow', async () => {
  const v1 = await register(
    schema({ id: { type: 'integer' }, at: { type: 'string', format: 'date' } }),
  );
  const key = await register('{"type":"string"}', 't-key');
  const topic = await bench.topic('t', {
    'table.topic.convert.key.type': 'by_schema_id',
    'table.topic.commit.interval.ms': '900000',
  });
  const v2 = await register(
    schema({ id: { type: 'number' }, more: { type: 'string' } }, { additionalProperties: false }),
  );
  bench.produce(topic, [
    { value: v1({ id: 1, at: '1970-01-02', extra: [1] }), key: key('k') },
    { value: v1({ id: 'one' }), key: key('k') },
    { value: v2({ id: 1.5, more: 'm' }), key: key('l') },
    { value: v2({ id: 1, undeclared: true }), key: key('l') },
    { value: v2(null), key: key('l') },
    { value: framed(1, Buffer.from('{')), key: key('l') },
  ]);
  await bench.tables.commit('t');
  const rows = (await readRows(bench.warehouse, await bench.load('t'))).map((row) =>
    Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)),
  );
  expect(rows).toMatchObject([
    { id__long: 1n, _rest: '{"extra":[1]}', _kafka_key: 'k' },
    { id: 1.5, more: 'm', _kafka_key: 'l' },
  ]);
  expect(rows[0]!['at']).toBeDefined();
  const letters = await readRows(bench.warehouse, await bench.load('t_dlq'));
  expect(letters.map((letter) => letter['error'])).toEqual([
    expect.stringMatching(/"id" isn't a valid long/),
    expect.stringMatching(/declared nowhere/),
    expect.stringMatching(/null value/),
    expect.stringMatching(/at byte/),
  ]);
});

test('transform none keeps the value whole, with what it doesn’t declare beside it', async () => {
  const v1 = await register(schema({ id: { type: 'integer' } }));
  const topic = await bench.topic('t', { 'table.topic.transform.value.type': 'none' });
  bench.produce(topic, [{ value: v1({ id: 1, x: 2 }) }]);
  await bench.tables.commit('t');
  const [row] = await readRows(bench.warehouse, await bench.load('t'));
  expect(row).toMatchObject({ _kafka_value: { id: 1n }, _rest: '{"_kafka_value.x":2}' });
});
