// What broke others (test/FAILURES.md), end to end: hostile names, sizes and depths, transactions over partitions,
// null headers, catalogs and registries that answer nonsense. Each with the right value.
import avsc from 'avsc';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FloeError } from '../base/error.ts';
import type { Catalog, LoadedTable } from '../catalog/catalog.ts';
import type { RecordInput } from '../protocol/record-builder.ts';
import { Bench, framed } from './testing/bench.ts';
import { readRows } from './testing/parquet-rows.ts';

let bench: Bench;

const json = { 'table.topic.convert.value.type': 'json' };
const rowsOf = async (name: string) =>
  (await readRows(bench.warehouse, await bench.load(name))).toSorted(
    (a, b) => Number(a['_kafka_offset']) - Number(b['_kafka_offset']),
  );
const columnsOf = async (name: string) => {
  const metadata = await bench.load(name);
  const current = metadata.schemas.find(
    (one) => one['schema-id'] === metadata['current-schema-id'],
  )!;
  return current.fields.map((field) => field.name);
};

afterEach(() => bench.stop());

describe('records', () => {
  beforeEach(async () => {
    bench = await Bench.open();
    bench.start();
  });

  test('a header without value is null, an empty one empty; null, empty and absent keys and values differ', async () => {
    const topic = await bench.topic('t', { 'table.topic.convert.value.type': 'raw' });
    bench.produce(topic, [
      { key: '', value: '', headers: [['only', null]] },
      {
        value: null,
        headers: [
          ['a', ''],
          ['a', null],
          ['', 'x'],
        ],
      },
    ]);
    await bench.tables.commit('t');
    const [first, second] = await rowsOf('t');
    expect(first).toMatchObject({ _kafka_headers: [{ key: 'only', value: null }] });
    expect(
      [first!['_kafka_key'], second!['_kafka_key']].map(
        (key) => (key as Uint8Array | null)?.length,
      ),
    ).toEqual([0, undefined]);
    const headers = second!['_kafka_headers'] as { key: string; value: Uint8Array | null }[];
    expect(headers.map(({ key, value }) => [key, value?.length])).toEqual([
      ['a', 0],
      ['a', undefined],
      ['', 1],
    ]);
  });

  test('fields named like our columns, by case only, in any script, empty or reserved: each its own column', async () => {
    const topic = await bench.topic('t', json);
    const value = {
      Id: 1,
      id: 2,
      _kafka_offset: 3,
      '': 4,
      select: 5,
      'größe-日本 🧊': 6,
      'a.b': 7,
      ['x'.repeat(300)]: 8,
    };
    bench.produce(topic, [{ value: JSON.stringify(value) }, { value: JSON.stringify(value) }]);
    await bench.tables.commit('t');
    const columns = await columnsOf('t');
    expect(new Set(columns.map((name) => name.toLowerCase())).size).toBe(columns.length);
    const rows = await rowsOf('t');
    expect(rows).toHaveLength(2);
    for (const [n, row] of rows.entries()) {
      const ours = ['partition', 'offset', 'timestamp', 'key', 'headers'];
      const numbers = Object.entries(row).filter(
        ([name]) => !ours.some((one) => name === `_kafka_${one}`),
      );
      const values = numbers.map(([, cell]) => Number(cell)).filter((cell) => cell > 0);
      expect(values.toSorted()).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
      expect(Number(row['_kafka_offset'])).toBe(n);
    }
  });

  test('a thousand columns, a hundred levels, ten megabytes: rows beside small ones', async () => {
    const topic = await bench.topic('t', json);
    const wide = Object.fromEntries(Array.from({ length: 1_100 }, (_, n) => [`c${n}`, n]));
    const deep = `{"d":${'{"a":'.repeat(100)}1${'}'.repeat(100)}}`;
    bench.produce(topic, [{ value: JSON.stringify(wide) }]);
    bench.produce(topic, [{ value: deep }]);
    bench.produce(topic, [{ value: JSON.stringify({ big: 'x'.repeat(10_000_000) }) }]);
    bench.produce(topic, [{ value: '{"c0":7}' }]);
    await bench.tables.commit('t');
    const rows = await rowsOf('t');
    expect(rows.map((row) => Number(row['_kafka_offset']))).toEqual([0, 1, 2, 3]);
    expect(Number(rows[3]!['c0'])).toBe(7);
    const rest = JSON.parse(rows[0]!['_rest'] as string) as Record<string, number>;
    expect(Number(rows[0]!['c999'] ?? rest['c999'])).toBe(999);
    expect(Number(rows[0]!['c1099'] ?? rest['c1099'])).toBe(1_099);
    expect(await bench.tables.status('t')).toMatchObject({
      state: 'running',
      lagRecords: 0,
      counters: { deadLetters: 0 },
    });
  });

  test('an open transaction in one partition: nothing behind it is lost, whatever other partitions do', async () => {
    const topic = await bench.topic('t', { 'table.topic.convert.value.type': 'string' }, 2);
    const text = (n: number) => ({ value: `v${n}` });
    bench.produce(topic, [0, 1, 2].map(text), 0);
    bench.produce(topic, [3, 4, 5, 6, 7, 8].map(text), 0);
    bench.log.setLastStable(topic.partitions[0]!, 3);
    bench.produce(topic, [0, 1, 2, 3].map(text), 1);
    await bench.tables.commit('t');
    expect(await rowsOf('t')).toHaveLength(7);
    bench.log.setLastStable(topic.partitions[0]!, undefined);
    await bench.tables.commit('t');
    const places = (await rowsOf('t')).map(
      (row) => `${row['_kafka_partition']}:${row['_kafka_offset']}`,
    );
    expect(new Set(places).size).toBe(13);
    expect(places).toHaveLength(13);
  });

  test('hundreds of partitions of a wide table in one commit', async () => {
    const topic = await bench.topic('t', {
      ...json,
      'table.topic.partition.by': '[n]',
      'table.topic.max.partitions.per.commit': '150',
    });
    const wide = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`c${n}`, n]));
    const records: RecordInput[] = Array.from({ length: 150 }, (_, n) => ({
      value: JSON.stringify({ n, ...wide }),
    }));
    bench.produce(topic, records);
    await bench.tables.commit('t');
    const metadata = await bench.load('t');
    expect(metadata.snapshots).toHaveLength(1);
    expect(metadata.snapshots![0]!.summary).toMatchObject({
      'added-data-files': '150',
      'changed-partition-count': '150',
    });
  });

  test('an empty topic, then a first record, then another schema', async () => {
    const topic = await bench.topic('t', json);
    await bench.tables.commit('t');
    bench.produce(topic, [{ value: '{}' }]);
    await bench.tables.commit('t');
    bench.produce(topic, [
      { value: '{"a":{"b":[{"c":null}]}}' },
      { value: '{"a":{"b":[{"c":{"d":1}}]}}' },
    ]);
    await bench.tables.commit('t');
    expect((await rowsOf('t')).at(-1)).toMatchObject({ a: { b: [{ c: { d: 1n } }] } });
  });
});

describe('the world', () => {
  const order = { type: 'record', name: 'Order', fields: [{ name: 'id', type: 'int' }] } as const;
  const orders = avsc.Type.forSchema(order as unknown as avsc.Schema);

  test('a registry that answers nonsense: dead letters, and rows once it makes sense', async () => {
    bench = await Bench.open();
    bench.start();
    const good = await bench.schemas.register('t-value', JSON.stringify(order));
    const nonsense = await bench.schemas.register('x', '{{{ no schema');
    const stranger = await bench.schemas.register('y', '{"type":"record"}');
    const topic = await bench.topic('t');
    const value = (id: number, n: number) => framed(id, orders.toBuffer({ id: n }));
    bench.produce(topic, [
      { value: value(good, 1) },
      { value: value(nonsense, 2) },
      { value: value(stranger, 3) },
      { value: value(good, 4) },
    ]);
    await bench.tables.commit('t');
    expect((await rowsOf('t')).map((row) => row['id'])).toEqual([1, 4]);
    const letters = await readRows(bench.warehouse, await bench.load('t_dlq'));
    expect(letters.map((row) => row['reason'])).toEqual([
      'unsupported_schema',
      'unsupported_schema',
    ]);
  });

  test('a catalog that shows an old table for a while: suspended at most, and each row once', async () => {
    let stale: LoadedTable | undefined;
    let looks = 0;
    const wrapCatalog = (catalog: Catalog): Catalog =>
      new Proxy(catalog, {
        get(target, name) {
          const value = Reflect.get(target, name) as unknown;
          if (name === 'loadTable' && looks > 0 && stale !== undefined) {
            return async () => {
              looks -= 1;
              return stale!;
            };
          }
          return typeof value === 'function' ? value.bind(target) : value;
        },
      });
    bench = await Bench.open({ wrapCatalog });
    bench.start();
    const topic = await bench.topic('t', { 'table.topic.convert.value.type': 'string' });
    bench.produce(topic, [{ value: 'a' }]);
    await bench.tables.commit('t');
    stale = await bench.catalog.loadTable({ namespace: ['kafka'], name: 't' });
    bench.produce(topic, [{ value: 'b' }]);
    await bench.tables.commit('t');
    looks = 40;
    bench.produce(topic, [{ value: 'c' }]);
    await expect.poll(async () => (await rowsOf('t')).length, { timeout: 20_000 }).toBe(3);
    expect((await rowsOf('t')).map((row) => Number(row['_kafka_offset']))).toEqual([0, 1, 2]);
  });

  test('a table taken away and put back: suspended with the reason, and it goes on by itself', async () => {
    bench = await Bench.open();
    bench.start();
    const topic = await bench.topic('t', { 'table.topic.convert.value.type': 'string' });
    bench.produce(topic, [{ value: 'a' }]);
    await bench.tables.commit('t');
    const [there, away] = ['t', 'elsewhere'].map((name) => ({ namespace: ['kafka'], name }));
    await bench.catalog.renameTable!(there!, away!);
    bench.produce(topic, [{ value: 'b' }]);
    await expect.poll(async () => (await bench.tables.status('t')).state).toBe('suspended');
    expect((await bench.tables.status('t')).reason).toMatch(/t/);
    await bench.catalog.renameTable!(away!, there!);
    await expect
      .poll(async () => (await bench.tables.status('t')).lagRecords, { timeout: 10_000 })
      .toBe(0);
    expect((await rowsOf('t')).map((row) => Number(row['_kafka_offset']))).toEqual([0, 1]);
  });

  test('T6: a store that refuses a stage is not asked again at once: the next commit finds out why', async () => {
    bench = await Bench.open({ settings: { 'table.job.start.bytes': '1' } });
    bench.start();
    const topic = await bench.topic('t', {
      'table.topic.convert.value.type': 'string',
      'table.topic.commit.interval.ms': '900000',
    });
    const { tables } = bench.metadata;
    let stages = 0;
    tables.stage = async ({ topicId }) => {
      stages += 1;
      return { kind: 'refused', positions: await tables.positions(topicId) };
    };
    bench.produce(topic, [{ value: 'a' }]);
    await expect.poll(() => stages).toBe(1);
    for (let n = 0; n < 200; n += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(stages).toBeLessThan(3);
  });

  test('a catalog that never answers: a process that stops waits for no longer than it may', async () => {
    let asked = 0;
    let silent = true;
    const wrapCatalog = (catalog: Catalog): Catalog =>
      new Proxy(catalog, {
        get(target, name) {
          const value = Reflect.get(target, name) as unknown;
          if (typeof value !== 'function') return value;
          return (...args: unknown[]) => {
            if (name !== 'commitTable' || !silent) return Reflect.apply(value, target, args);
            asked += 1;
            return new Promise(() => {});
          };
        },
      });
    bench = await Bench.open({ wrapCatalog, settings: { 'table.stop.commit.ms': '50' } });
    bench.start();
    const topic = await bench.topic('t', { 'table.topic.convert.value.type': 'string' });
    bench.produce(topic, [{ value: 'a' }]);
    await expect.poll(() => asked).toBe(1);
    await bench.tables.stop();
    // What was staged is there for the next start.
    silent = false;
    bench.start();
    await bench.tables.commit('t');
    expect(await rowsOf('t')).toHaveLength(1);
  });

  test('refusals of every kind from the catalog: one table waits with the reason, others commit on', async () => {
    const answers = [
      new FloeError('conflict', '409'),
      new FloeError('exhausted', '429 too many requests'),
      new FloeError('unavailable', '503'),
      new FloeError('internal', '500'),
      new FloeError('unauthorized', '403 not yours'),
      new FloeError('timeout', '504'),
    ];
    const wrapCatalog = (catalog: Catalog): Catalog =>
      new Proxy(catalog, {
        get(target, name) {
          const value = Reflect.get(target, name) as unknown;
          if (typeof value !== 'function') return value;
          if (name !== 'commitTable') return value.bind(target);
          return async (...args: unknown[]) => {
            const mine = (args[0] as { name: string }).name === 'bad';
            const answer = mine ? answers.shift() : undefined;
            if (answer === undefined) return Reflect.apply(value, target, args);
            // After the deed, as lost answers come.
            if (answer.code === 'timeout' || answer.code === 'internal')
              await Reflect.apply(value, target, args);
            throw answer;
          };
        },
      });
    bench = await Bench.open({ wrapCatalog });
    bench.start();
    const [bad, fine] = [
      await bench.topic('bad', { 'table.topic.convert.value.type': 'string' }),
      await bench.topic('fine', { 'table.topic.convert.value.type': 'string' }),
    ];
    bench.produce(bad, [{ value: 'a' }, { value: 'b' }]);
    bench.produce(fine, [{ value: 'c' }]);
    await bench.tables.commit('fine');
    expect(await rowsOf('fine')).toHaveLength(1);
    await expect
      .poll(async () => (await bench.tables.status('bad')).lagRecords, { timeout: 20_000 })
      .toBe(0);
    bench.produce(bad, [{ value: 'd' }]);
    await expect
      .poll(async () => (await bench.tables.status('bad')).lagRecords, { timeout: 20_000 })
      .toBe(0);
    expect(answers).toEqual([]);
    expect((await rowsOf('bad')).map((row) => Number(row['_kafka_offset']))).toEqual([0, 1, 2]);
  });
});
