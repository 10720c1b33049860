// Upserts and maintenance at the same table: keys that change, rewritten and expired in between, stay one row each.
import { expect, test } from 'vitest';
import { seededPrng } from '../../base/prng.ts';
import { Bench } from '../testing/bench.ts';
import { liveRows } from '../testing/live-rows.ts';
import { liveFiles } from '../testing/parquet-rows.ts';

const CONFIG = {
  'table.topic.convert.value.type': 'json',
  'table.topic.convert.key.type': 'json',
  'table.topic.upsert.enable': 'true',
  'table.topic.id.columns': '[id]',
  'table.topic.expire.snapshot.older.than.hours': '0',
  'table.topic.expire.snapshot.retain.last': '3',
};

test.each(['2', '3'])(
  'v%s: compacted and expired between commits, each key is its newest row',
  async (version) => {
    const bench = await Bench.open();
    bench.start();
    const topic = await bench.topic('t', { ...CONFIG, 'table.topic.format.version': version }, 2);
    const prng = seededPrng(Number(version));
    const expected = new Map<number, string>();
    for (let round = 0; round < 12; round += 1) {
      const records = Array.from({ length: 30 }, (_, n) => {
        const id = prng.int(40);
        const key = JSON.stringify({ id });
        if (prng.next() < 0.2) {
          expected.delete(id);
          return { key, value: null };
        }
        const text = `r${round}n${n}`;
        expected.set(id, text);
        return { key, value: JSON.stringify({ id, text }) };
      });
      bench.produce(topic, records, 0);
      await bench.tables.commit('t');
      if (round % 3 === 1) await bench.tables.maintain('t', 'compact');
      if (round % 3 === 2) await bench.tables.maintain('t', 'expire');
    }
    const rows = await liveRows(bench.warehouse, await bench.load('t'));
    const found = rows.map(({ values }) => `${values['id']}=${values['text']}`).toSorted();
    expect(found).toEqual([...expected].map(([id, text]) => `${id}=${text}`).toSorted());
    await bench.tables.maintain('t', 'compact');
    const metadata = await bench.load('t');
    const after = (await liveRows(bench.warehouse, metadata)).map(
      ({ values }) => `${values['id']}=${values['text']}`,
    );
    expect(after.toSorted()).toEqual(found);
    // One data file without a delete: nobody needs any of them any more.
    const files = await liveFiles(bench.warehouse, metadata);
    expect(files.map((file) => [file.content, file.recordCount])).toEqual([[0, found.length]]);
    await bench.stop();
  },
);

test('a delete file leaves though no data is rewritten, once its data file has', async () => {
  const bench = await Bench.open();
  bench.start();
  const topic = await bench.topic('t', CONFIG, 1);
  const change = (id: string, text: string) => ({
    key: JSON.stringify({ id }),
    value: JSON.stringify({ id, text }),
  });
  for (const records of [
    [change('a', '1'), change('b', '1')],
    [change('a', '2')],
    [change('a', '3'), change('b', '3')],
  ]) {
    bench.produce(topic, records, 0);
    await bench.tables.commit('t');
  }
  const contents = async () =>
    (await liveFiles(bench.warehouse, await bench.load('t'))).map(({ content }) => content);
  expect(await contents()).toEqual([0, 1]);
  await bench.tables.maintain('t', 'compact');
  expect(await contents()).toEqual([0]);
  await bench.stop();
});
