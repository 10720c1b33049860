// A query of a topic's table sees each record once, committed or not (rule K6): table work and SQL as serve.ts joins
// them, over files in a folder.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { noMetrics } from '../../src/base/metrics.ts';
import { seededIds, seededPrng } from '../../src/base/prng.ts';
import { resolveSettings } from '../../src/base/settings.ts';
import { openQueries, type QueryService, querySettings } from '../../src/queries/index.ts';
import { LocalObjectStore } from '../../src/storage/objects/local.ts';
import { Bench } from '../../src/table-topic/testing/bench.ts';

let folder: string;
let bench: Bench;
let queries: QueryService;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'floe-tail-'));
  const ids = seededIds(seededPrng(3));
  const store = await LocalObjectStore.open(join(folder, 'store'), { clock: systemClock, ids });
  bench = await Bench.open({ store });
  bench.start();
  queries = await openQueries({
    catalog: bench.catalog,
    warehouse: bench.warehouse,
    dataDir: folder,
    settings: resolveSettings(querySettings, { 'sql.max.concurrent': '1' }),
    clock: systemClock,
    metrics: noMetrics,
    tableOfTopic: (topic) => bench.tables.tableOf(topic),
    tail: { read: (identifier, metadata) => bench.tables.tail(identifier, metadata) },
  });
});

afterEach(async () => {
  await queries.stop();
  await bench.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function rows(sql: string): Promise<string[]> {
  const result = await queries.query(sql);
  const found: string[] = [];
  for await (const chunk of result.chunks())
    found.push(...chunk.getRows().map((row) => row.join('=')));
  return found.toSorted();
}

const put = (id: number, text: string) => ({
  key: JSON.stringify({ id }),
  value: JSON.stringify({ id, text }),
});

// Commits only when asked to.
const LATE = {
  'table.topic.commit.interval.ms': '900000',
  'table.topic.convert.value.type': 'json',
};

test('append-only: committed and tail, each record once', async () => {
  const topic = await bench.topic('t', LATE, 2);
  bench.produce(topic, [put(1, 'a'), put(2, 'b')]);
  await bench.tables.commit('t');
  bench.produce(topic, [put(1, 'c')]);
  bench.produce(topic, [put(3, 'd')], 1);
  expect(await rows('SELECT id, text FROM t')).toEqual(['1=a', '1=c', '2=b', '3=d']);
  await bench.tables.commit('t');
  expect(await rows('SELECT id, text FROM t')).toEqual(['1=a', '1=c', '2=b', '3=d']);
  expect(await rows("SELECT count(*) FROM t WHERE text = 'd'")).toEqual(['1']);
});

test.each(['2', '3'])('upserts, format version %s: the newest of each key', async (version) => {
  const topic = await bench.topic(
    't',
    {
      ...LATE,
      'table.topic.convert.key.type': 'json',
      'table.topic.upsert.enable': 'true',
      'table.topic.id.columns': '[id]',
      'table.topic.format.version': version,
    },
    2,
  );
  bench.produce(topic, [put(1, 'a'), put(2, 'b'), put(3, 'c')]);
  await bench.tables.commit('t');
  bench.produce(topic, [put(1, 'aa'), put(1, 'aaa')]);
  bench.produce(topic, [{ key: '{"id":2}', value: null }, put(4, 'd')], 1);
  bench.produce(topic, [put(4, 'dd')]);
  const expected = ['1=aaa', '3=c', '4=dd'];
  expect(await rows('SELECT id, text FROM t')).toEqual(expected);
  await bench.tables.commit('t');
  expect(await rows('SELECT id, text FROM t')).toEqual(expected);
});

test('cells that Debezium didn’t send are those of before, in the tail too', async () => {
  const topic = await bench.topic('t', {
    ...LATE,
    'table.topic.convert.key.type': 'json',
    'table.topic.transform.value.type': 'flatten_debezium',
    'table.topic.upsert.enable': 'true',
    'table.topic.id.columns': '[id]',
  });
  const event = (id: number, text: string, n: number) => ({
    key: JSON.stringify({ id }),
    value: JSON.stringify({
      before: null,
      after: { id, text, n },
      source: { table: 't' },
      op: 'u',
    }),
  });
  const unsent = '__debezium_unavailable_value';
  bench.produce(topic, [event(1, 'a', 1), event(2, 'b', 1)]);
  await bench.tables.commit('t');
  bench.produce(topic, [event(1, unsent, 2), event(3, unsent, 2), event(2, 'bb', 2)]);
  bench.produce(topic, [event(2, unsent, 3)]);
  const wanted = ['1=a=2', '2=bb=3', '3==2'];
  expect(await rows("SELECT id, coalesce(text, ''), n FROM t")).toEqual(wanted);
  await bench.tables.commit('t');
  expect(await rows("SELECT id, coalesce(text, ''), n FROM t")).toEqual(wanted);
});
