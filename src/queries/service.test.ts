import { afterEach, beforeEach, expect, test } from 'vitest';
import { encodeSingleValue } from '../formats/iceberg/index.ts';
import { NO_METRICS } from '../formats/iceberg/test-table.ts';
import { SqlFixture } from './testing.ts';

const IDS = '{id: 1, name: 2, "at": 3}';
const rows = (from: number, to: number) =>
  `SELECT range AS id, 'n' || range AS name, TIMESTAMPTZ '2024-01-01 00:00:00+00' + range * INTERVAL 1 HOUR AS "at" FROM range(${from}, ${to})`;

let fixture: SqlFixture;

beforeEach(() => {
  fixture = new SqlFixture({}, { topics: { 'my-topic.v1': 'people' } });
});

afterEach(() => fixture.stop());

async function fill(): Promise<void> {
  await fixture.table.commit({ added: [await fixture.write(rows(0, 10), { fieldIds: IDS })] });
  await fixture.table.commit({ added: [await fixture.write(rows(10, 30), { fieldIds: IDS })] });
}

test('a table answers to its name, in any case, with namespace, and to its topic', async () => {
  await fill();
  for (const name of ['people', 'PEOPLE', 'kafka.people', 'Kafka.People', '"my-topic.v1"'])
    expect(await fixture.rows(`SELECT count(*) FROM ${name}`), name).toEqual([[30]]);
  expect(await fixture.rows('SHOW TABLES')).toEqual([['kafka', 'people']]);
  expect((await fixture.rows('DESCRIBE people')).map((row) => row[0])).toEqual([
    'id',
    'name',
    'at',
  ]);
});

test('joins, CTEs that hide a table, subqueries and an empty table', async () => {
  expect(await fixture.rows('SELECT * FROM people')).toEqual([]);
  await fill();
  const joined = 'SELECT count(*) FROM people a JOIN kafka.people b USING (id) WHERE b.id < 5';
  expect(await fixture.rows(joined)).toEqual([[5]]);
  expect(await fixture.rows('WITH people AS (SELECT 1 AS x) SELECT * FROM people')).toEqual([[1]]);
  expect(await fixture.rows('WITH c AS (FROM people) SELECT max(id) FROM c')).toEqual([[29]]);
  expect(await fixture.rows('SELECT (SELECT min(id) FROM people)')).toEqual([[0]]);
});

const REFUSED = [
  ['SELECT * FROM nowhere', /"nowhere" does not exist: there are kafka.people/],
  ['SELEC 1', /syntax error/],
  ['SELECT nope FROM people', /nope/],
  ["COPY people TO '/tmp/x.csv'", /only SELECT is served/],
  ['INSERT INTO people VALUES (1)', /only SELECT is served/],
  ["ATTACH '/tmp/x.db'", /only SELECT is served/],
  ['PRAGMA version', /only SELECT is served/],
  ['SET threads = 1', /only SELECT is served/],
  ['INSTALL httpfs', /only SELECT is served/],
  ['SELECT 1; DROP VIEW people', /only SELECT is served/],
  ['SELECT 1; SELECT 2', /one SELECT at a time/],
  ["SELECT * FROM read_csv('/etc/passwd')", /read_csv\(\) is not served/],
  ["SELECT * FROM query_table('people')", /query_table\(\) is not served/],
  ['SELECT * FROM duckdb_settings()', /duckdb_settings\(\) is not served/],
  ["SELECT * FROM '/etc/passwd'", /does not exist/],
  ['SELECT * FROM information_schema.tables', /does not exist/],
  ['SELECT * FROM people AT (VERSION => 1)', /AT \(VERSION/],
  ['SELECT * FROM floe0.main.people', /before the namespace/],
  ['', /one SELECT at a time|SELECT/],
] as const;

test('nothing but one SELECT over tables is run', async () => {
  for (const [query, reason] of REFUSED) {
    const error = await fixture.rows(query).catch((caught: unknown) => caught);
    expect(error, query).toMatchObject({ code: 'invalid', message: expect.stringMatching(reason) });
  }
});

test('errors say where', async () => {
  await expect(fixture.rows('SELECT 1,\n  FROM WHERE')).rejects.toMatchObject({
    details: { line: 2 },
  });
  await expect(fixture.rows('SELECT *\nFROM nowhere')).rejects.toMatchObject({
    details: { line: 2, column: 6 },
  });
  await expect(fixture.rows('SELECT id,\n nope FROM people')).rejects.toMatchObject({
    details: { line: 2, column: 2 },
  });
});

test('columns are found by id: renamed, added and promoted ones in old and new files', async () => {
  await fixture.table.commit({
    added: [await fixture.write("SELECT 1::INTEGER AS n, 'a' AS s", { fieldIds: '{n: 1, s: 2}' })],
  });
  fixture.table.update(
    {
      action: 'add-schema',
      schema: {
        type: 'struct',
        'schema-id': 1,
        fields: [
          { id: 2, name: 'renamed', required: false, type: 'string' },
          { id: 1, name: 'id', required: true, type: 'long' },
          { id: 9, name: 's', required: false, type: 'decimal(9, 2)' },
        ],
      },
    },
    { action: 'set-current-schema', 'schema-id': -1 },
  );
  const file = await fixture.write("SELECT 5000000000 AS id, 'b' AS r, 1.5::DECIMAL(9,2) AS s", {
    fieldIds: '{id: 1, r: 2, s: 9}',
  });
  await fixture.table.commit({ added: [file] });
  expect(await fixture.rows('SELECT * FROM people ORDER BY id')).toEqual([
    ['a', 1, null],
    ['b', 5_000_000_000, '1.50'],
  ]);
});

test('position and equality deletes of other writers apply by sequence number and partition', async () => {
  const first = await fixture.write(rows(0, 10), { fieldIds: IDS });
  await fixture.table.commit({ added: [first] });
  const positions = await fixture.write(
    `SELECT '${first.filePath}' AS file_path, pos::BIGINT AS pos FROM (VALUES (0), (9)) t(pos)`,
    { fieldIds: '{file_path: 2147483546, pos: 2147483545}', changes: { content: 1 } },
  );
  const equality = await fixture.write("SELECT 'n5' AS name", {
    fieldIds: '{name: 2}',
    changes: { content: 2, equalityIds: [2] },
  });
  await fixture.table.commit({ added: [positions, equality] });
  // Written after the deletes: its rows stay, whatever their keys.
  await fixture.table.commit({ added: [await fixture.write(rows(5, 6), { fieldIds: IDS })] });
  expect(await fixture.rows('SELECT id, count(*) FROM people GROUP BY id ORDER BY id')).toEqual(
    [1, 2, 3, 4, 5, 6, 7, 8].map((id) => [id, 1]),
  );
});

test('files are left out by bounds, and only when that is certain', async () => {
  const bounds = (low: number, high: number) => ({
    ...NO_METRICS,
    valueCounts: new Map([[1, 10]]),
    nullValueCounts: new Map([[1, 0]]),
    lowerBounds: new Map([[1, encodeSingleValue('long', BigInt(low))]]),
    upperBounds: new Map([[1, encodeSingleValue('long', BigInt(high))]]),
  });
  const near = await fixture.write(rows(0, 10), {
    fieldIds: IDS,
    changes: { metrics: bounds(0, 9) },
  });
  // A file that doesn't exist: reading it would fail, so a correct answer proves that it was left out.
  const gone = fixture.table.file({
    filePath: `${fixture.root}/kafka/people/data/gone.parquet`,
    metrics: bounds(1000, 2000),
  });
  await fixture.table.commit({ added: [near, gone] });
  for (const condition of [
    'id < 500',
    'id = 3 OR id IN (4, 700)',
    'people.id BETWEEN 2 AND 400',
    '5 >= id',
    'id + 0 < 3 AND id < 100.5',
  ])
    expect((await fixture.rows(`SELECT id FROM people WHERE ${condition}`)).length).toBeGreaterThan(
      0,
    );
  for (const condition of ['id > 500', 'id < 500 OR name IS NULL', 'id + 0 < 500', 'true'])
    await expect(
      fixture.rows(`SELECT id FROM people WHERE ${condition}`),
      condition,
    ).rejects.toThrow();
  const twice = 'SELECT 1 FROM people a, people b WHERE a.id < 500 AND b.id < 500';
  await expect(fixture.rows(twice)).rejects.toThrow();
});

test('a query that takes too long ends, and so does one whose client has gone', async () => {
  await fixture.stop();
  fixture = new SqlFixture({}, { settings: { 'sql.timeout.ms': '300' } });
  const long =
    'SELECT count(*) FROM range(100000000) a, range(100000000) b WHERE a.range = b.range + 1';
  await expect(fixture.rows(long)).rejects.toMatchObject({ code: 'timeout' });
  const gone = new AbortController();
  const cancelled = fixture.rows(long, gone.signal);
  gone.abort();
  await expect(cancelled).rejects.toMatchObject({ code: 'cancelled' });
  expect(await fixture.rows('SELECT 1')).toEqual([[1]]);
});

test('slots come back: more queries than slots, in order, and a full queue is refused', async () => {
  await fill();
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, n) => fixture.rows(`SELECT id FROM people WHERE id = ${n}`)),
  );
  expect(answers.flat(2)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
  await fixture.stop();
  fixture = new SqlFixture({}, { settings: { 'sql.max.concurrent': '1', 'sql.max.waiting': '0' } });
  const held = await fixture.service.query('SELECT 1');
  await expect(fixture.rows('SELECT 2')).rejects.toMatchObject({ code: 'unavailable' });
  await held.close();
  expect(await fixture.rows('SELECT 2')).toEqual([[2]]);
});

test('values that JSON numbers would round are text', async () => {
  expect(
    await fixture.rows(`SELECT 9007199254740993, 9007199254740991, 1.10, 'NaN'::DOUBLE, 170141183460469231731687303715884105727,
      DATE '2024-02-29', TIME '01:02:03.5', TIMESTAMP '2024-01-01 00:00:00.000001', TIMESTAMPTZ '1969-12-31 23:59:59.5+00',
      '\\xFF'::BLOB, [1, NULL], {a: 1, b: 'x'}, MAP {'k': 1}, uuid '00000000-0000-0000-0000-000000000001', NULL`),
  ).toEqual([
    [
      '9007199254740993',
      9007199254740991,
      '1.10',
      'NaN',
      '170141183460469231731687303715884105727',
      '2024-02-29',
      '01:02:03.5',
      '2024-01-01T00:00:00.000001',
      '1969-12-31T23:59:59.500000Z',
      '/w==',
      [1, null],
      { a: 1, b: 'x' },
      { k: 1 },
      '00000000-0000-0000-0000-000000000001',
      null,
    ],
  ]);
});
