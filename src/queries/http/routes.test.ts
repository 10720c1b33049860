import { tableFromIPC } from 'apache-arrow';
import { type FastifyInstance, fastify } from 'fastify';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock, systemClock } from '../../base/clock.ts';
import { silentLogger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import { resolveSettings } from '../../base/settings.ts';
import { querySettings } from '../settings.ts';
import { SqlFixture } from '../testing.ts';
import { sqlRoutes } from './routes.ts';

let fixture: SqlFixture;
let app: FastifyInstance;

beforeEach(() => {
  fixture = new SqlFixture();
  app = fastify();
  sqlRoutes(app, {
    service: fixture.service,
    settings: resolveSettings(querySettings, { 'sql.max.result.rows': '5000' }),
    logger: silentLogger,
    metrics: noMetrics,
    clock: systemClock,
  });
});

afterEach(async () => {
  await app.close();
  await fixture.stop();
});

const ask = (query: unknown, accept?: string) =>
  app.inject({
    method: 'POST',
    url: '/v1/sql',
    payload: { query },
    headers: accept === undefined ? {} : { accept },
  });

const THREE =
  "SELECT range::INTEGER AS n, nullif('v\"' || range, 'v\"1') AS s, range AS n FROM range(3)";

test('JSON by default: columns with types, rows as arrays', async () => {
  const response = await ask(THREE);
  expect(response.headers['content-type']).toMatch(/^application\/json/);
  expect(response.json()).toEqual({
    columns: [
      { name: 'n', type: 'INTEGER' },
      { name: 's', type: 'VARCHAR' },
      { name: 'n', type: 'BIGINT' },
    ],
    rows: [
      [0, 'v"0', 0],
      [1, null, 1],
      [2, 'v"2', 2],
    ],
  });
  expect((await ask('SELECT 1 WHERE false')).json().rows).toEqual([]);
});

test('NDJSON and CSV', async () => {
  const lines = await ask(THREE, 'application/x-ndjson');
  expect(lines.body).toBe(
    '{"n":0,"s":"v\\"0","n_1":0}\n{"n":1,"s":null,"n_1":1}\n{"n":2,"s":"v\\"2","n_1":2}\n',
  );
  const csv = await ask("SELECT '' AS e, NULL AS n, 'a,b' AS c", 'text/html;q=0.9, text/csv');
  expect(csv.headers['content-type']).toBe('text/csv; charset=utf-8');
  expect(csv.body).toBe('e,n,c\r\n"",,"a,b"\r\n');
});

test('Arrow keeps types, nulls and batches', async () => {
  const response = await ask(
    `SELECT range AS n, nullif(range, 1)::DECIMAL(9, 2) AS d, TIMESTAMPTZ '2024-01-01' AS t, range = 1 AS b,
       'v' || range AS s, DATE '1970-01-03' AS day, -range::HUGEINT AS h, [range] AS l FROM range(5000)`,
    'application/vnd.apache.arrow.stream',
  );
  const table = tableFromIPC(response.rawPayload);
  expect(table.numRows).toBe(5000);
  expect(table.schema.fields.map((field) => String(field.type))).toEqual([
    'Int64',
    'Decimal[9e+2]',
    'Timestamp<MICROSECOND, UTC>',
    'Bool',
    'Utf8',
    'Date32<DAY>',
    'Decimal[38e0]',
    'List<Int64>',
  ]);
  const row = table.get(4999)!.toJSON();
  expect(row).toMatchObject({ n: 4999n, b: false, s: 'v4999' });
  expect(table.getChild('l')!.get(4999)!.toArray()).toEqual(new BigInt64Array([4999n]));
  expect(table.getChild('d')!.get(1)).toBeNull();
  expect(table.getChild('d')!.nullCount).toBe(1);
});

const NESTED = `SELECT * FROM (VALUES
  (1, {a: MAP {'x': 1}, b: 'two'}, [MAP {1: 'k'}, NULL], MAP {'o': MAP {DATE '2024-01-01': 5}}, MAP {{p: 1}: 'q'}),
  (2, NULL, NULL, NULL, NULL),
  (3, {a: NULL, b: NULL}, [], MAP {}, MAP {{p: NULL}: NULL})) t(n, s, l, mm, odd)`;

test('maps wherever they are: objects by their keys in JSON, maps in Arrow', async () => {
  const { columns, rows } = (await ask(NESTED)).json();
  expect(columns[1].type).toBe('STRUCT("a" MAP(VARCHAR, INTEGER), "b" VARCHAR)');
  expect(rows).toEqual([
    [
      1,
      { a: { x: 1 }, b: 'two' },
      [{ 1: 'k' }, null],
      { o: { '2024-01-01': 5 } },
      [{ key: { p: 1 }, value: 'q' }],
    ],
    [2, null, null, null, null],
    [3, { a: null, b: null }, [], {}, [{ key: { p: null }, value: null }]],
  ]);
  const response = await ask(NESTED, 'application/vnd.apache.arrow.stream');
  const table = tableFromIPC(response.rawPayload);
  expect(table.schema.fields.map(({ type }) => String(type))).toEqual([
    'Int32',
    'Struct<{a:Map<{key:Utf8, value:Int32}>, b:Utf8}>',
    'List<Map<{key:Int32, value:Utf8}>>',
    'Map<{key:Utf8, value:Map<{key:Date32<DAY>, value:Int32}>}>',
    'Map<{key:Struct<{p:Int32}>, value:Utf8}>',
  ]);
  const s = table.getChild('s')!;
  expect([s.get(0)!['a'].toJSON(), s.get(0)!['b'], s.get(1), s.get(2)!['a']]).toEqual([
    { x: 1 },
    'two',
    null,
    null,
  ]);
  const l = table.getChild('l')!;
  expect([l.get(0)!.length, l.get(0)!.get(1), l.get(1), l.get(2)!.length]).toEqual([
    2,
    null,
    null,
    0,
  ]);
  expect(table.getChild('mm')!.get(0)!.toJSON().o.size).toBe(1);
  expect(table.getChild('odd')!.nullCount).toBe(1);
});

test('faults of the query are 400 with their place; limits and odd requests have codes of their own', async () => {
  const wrong = await ask('SELECT 1 FORM x y');
  expect(wrong.statusCode).toBe(400);
  expect(wrong.json().error).toMatchObject({ code: 'invalid', line: 1 });
  expect((await ask('SELECT * FROM range(6000)')).statusCode).toBe(413);
  expect((await ask('SELECT * FROM range(6000)', 'text/csv')).statusCode).toBe(200);
  expect((await ask(undefined)).statusCode).toBe(400);
  expect((await ask(5)).statusCode).toBe(400);
  expect((await ask('SELECT 1', 'image/png')).statusCode).toBe(406);
  // A fault that only shows while rows are made is still an error of the whole answer in JSON.
  expect((await ask("SELECT CAST('x' || range AS INTEGER) FROM range(3)")).statusCode).toBe(400);
});

test('what the framework refuses names thing, value and remedy too', async () => {
  const post = (headers: Record<string, string>, payload: string) =>
    app.inject({ method: 'POST', url: '/v1/sql', headers, payload });
  const plain = await post({ 'content-type': 'text/plain' }, '{"query":"SELECT 1"}');
  expect(plain.statusCode).toBe(415);
  expect(plain.json()).toEqual({
    error: {
      code: 'invalid',
      message: 'Content-Type "text/plain" is not read here: send application/json',
    },
  });
  const broken = await post({ 'content-type': 'application/json' }, '{"query"');
  expect(broken.statusCode).toBe(400);
  expect(broken.json().error.message).toMatch(/^the body is not JSON: send {"query": "SELECT …"}/);
  const json = { 'content-type': 'application/json' };
  const huge = await post(json, `"${'x'.repeat(10_000_000)}"`);
  expect(huge.statusCode).toBe(413);
  expect(huge.json().error.message).toContain('sql.max.query.bytes');
});

test('a quota makes an answer wait, and one of zero ends it', async () => {
  const limited = fastify();
  const charged: number[] = [];
  const clock = new ManualClock();
  let waitMs = 250;
  sqlRoutes(limited, {
    service: fixture.service,
    settings: resolveSettings(querySettings, {}),
    logger: silentLogger,
    metrics: noMetrics,
    clock,
    quotaOf: () => ({
      charge(bytes) {
        charged.push(bytes);
        return waitMs;
      },
    }),
  });
  try {
    const request = { method: 'POST', url: '/v1/sql', payload: { query: THREE } } as const;
    const answer = limited.inject(request);
    let done = false;
    void answer.then(() => {
      done = true;
    });
    while (charged.length === 0) await new Promise(setImmediate);
    expect(done).toBe(false);
    while (!done) {
      await clock.advance(250);
      await new Promise(setImmediate);
    }
    const { rawPayload } = await answer;
    expect(charged.reduce((sum, bytes) => sum + bytes, 0)).toBe(rawPayload.length);
    waitMs = 2 ** 31 - 1;
    const refused = await limited.inject(request);
    expect(refused.statusCode).toBe(504);
    expect(refused.json().error.message).toContain('quota consumer_byte_rate');
  } finally {
    await limited.close();
  }
});
