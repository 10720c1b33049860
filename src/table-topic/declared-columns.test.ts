import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { declaredStruct, formatDeclared, parseDeclared } from './declared-columns.ts';
import { Bench } from './testing/bench.ts';
import { readRows } from './testing/parquet-rows.ts';

describe('table.topic.columns', () => {
  test('read, written and read again', () => {
    const text =
      '[at timestamptz, price decimal(12, 2), a.b long, `odd, name` list<map<string, double>>, raw json]';
    const columns = parseDeclared(text);
    expect(formatDeclared(columns)).toBe(text);
    expect(parseDeclared(formatDeclared(columns))).toEqual(columns);
    expect(declaredStruct(columns).fields.map((field) => [field.path, field.name])).toEqual([
      ['at', 'at'],
      ['price', 'price'],
      ['a', 'a'],
      ['odd, name', 'odd, name'],
      ['raw\\json', 'raw'],
    ]);
    expect(parseDeclared('')).toEqual([]);
  });

  test.each([
    ['[a]', 'not of the form'],
    ['[a text]', 'no type that JSON fills'],
    ['[a time]', 'no type that JSON fills'],
    ['[a list<json>]', 'no type that JSON fills'],
    ['[a decimal(50, 2)]', 'decimal'],
    ['[a int, a long]', 'declared twice'],
    ['[a int, a.b long]', 'as a struct and as a column'],
    ['[_kafka_offset long]', 'Floe’s own'],
    [`[a ${'list<'.repeat(40)}int${'>'.repeat(40)}]`, 'nested that deep'],
  ])('%s is refused', (text, why) => {
    expect(() => parseDeclared(text)).toThrow(why);
  });
});

describe('on a table', () => {
  let bench: Bench;

  beforeEach(async () => {
    bench = await Bench.open();
    bench.start();
  });

  afterEach(() => bench.stop());

  const json = (value: unknown) => ({ value: JSON.stringify(value) });

  async function rows() {
    const found = await readRows(bench.warehouse, await bench.load('t'));
    return found.toSorted((a, b) => Number(a['_kafka_offset']) - Number(b['_kafka_offset']));
  }

  const topic = (columns: string, more: Record<string, string> = {}) =>
    bench.topic('t', {
      'table.topic.convert.value.type': 'json',
      'table.topic.commit.interval.ms': '900000',
      'table.topic.columns': columns,
      ...more,
    });

  test('declared types are there from the start; what doesn’t fit takes a column of its own', async () => {
    const t = await topic(
      '[at timestamptz, price decimal(12, 2), d double, raw json, m map<string, int>, s.x int]',
    );
    bench.produce(t, [
      json({ at: '2024-01-01T00:00:00Z', price: '1.50', d: 1, raw: {}, m: { k: 1 }, s: { x: 1 } }),
      json({ at: 'soon', price: 2.25, d: 2 ** 40, raw: 'text', m: { '2024': 2 }, other: true }),
      json({ raw: [1, { a: null }], m: {}, s: { x: 2 ** 40, y: 1 } }),
    ]);
    await bench.tables.commit('t');
    const found = await rows();
    expect(found[0]).toMatchObject({ price: 1.5, d: 1, raw: '{}', m: { k: 1 }, s: { x: 1 } });
    expect(Number(found[0]!['at'])).toBe(Date.UTC(2024, 0, 1));
    expect(found[1]).toMatchObject({
      at: null,
      at__string: 'soon',
      price: 2.25,
      d: 2 ** 40,
      raw: '"text"',
      m: { '2024': 2 },
      other: true,
    });
    expect(found[2]).toMatchObject({
      raw: '[1,{"a":null}]',
      s: { x: null, x__long: BigInt(2 ** 40), y: 1n },
    });
    const { fields } = (await bench.load('t')).schemas.at(-1)!;
    expect(fields.map((field) => field.name)).not.toContain('raw__string');
  });

  test('declared later: a new column, or a sentence when one of another type is there', async () => {
    const t = await topic('');
    bench.produce(t, [json({ a: 1 })]);
    await bench.tables.commit('t');
    const change = (columns: string) =>
      bench.directory.alterConfig(t.topicId, { 'table.topic.columns': columns });
    await change('[b date]');
    bench.produce(t, [json({ a: 2, b: '2024-02-29' })]);
    await bench.tables.commit('t').catch(() => undefined);
    await expect.poll(async () => (await rows()).length).toBe(2);
    expect(Number((await rows())[1]!['b'])).toBe(Date.UTC(2024, 1, 29));
    await change('[a string]');
    const reason = async () => (await bench.tables.status('t')).reason;
    await expect
      .poll(reason)
      .toMatch(/table.topic.columns: column "a" is long and can't become string/);
  });
});
