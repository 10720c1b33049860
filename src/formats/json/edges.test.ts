// JSON at its edges, held against JSON.parse: what is JSON, what isn't, and what size or depth does.
import { expect, test } from 'vitest';
import { TableColumns } from '../arrow/table-columns.ts';
import { commitForTest } from '../arrow/testing.ts';
import { compileJsonDecoder, UNFIT } from './decoder.ts';
import { JsonInference } from './infer.ts';
import { MAX_COLUMN_DEPTH } from './paths.ts';

const bytesOf = (text: string | Uint8Array) =>
  typeof text === 'string' ? new TextEncoder().encode(text) : text;

/** Infers over all records, commits, decodes each; rows by column name. */
function load(texts: readonly (string | Uint8Array)[], options: { maxColumns?: number } = {}) {
  const inference = new JsonInference(options);
  const records = texts.map(bytesOf);
  for (const bytes of records) inference.add(bytes, 0, bytes.length);
  const { schema, bindings } = commitForTest(inference.proposed());
  const columns = new TableColumns(schema);
  const decoder = compileJsonDecoder(columns, bindings, options);
  const reasons = records.map((bytes) => {
    const reason = decoder.decode(bytes, 0, bytes.length);
    if (reason === undefined) columns.endRow();
    return reason;
  });
  columns.align();
  const rows = Array.from({ length: columns.rowCount }, (_, row) =>
    Object.fromEntries(
      schema.fields.flatMap((field, i) => {
        const value = columns.columns[i]!.valueAt(row);
        return value === null ? [] : [[field.name, value] as const];
      }),
    ),
  );
  return { rows, reasons, schema };
}

test('a byte order mark before the record is nothing; anywhere else it is no JSON', () => {
  const mark = '\ufeff';
  const { rows, reasons } = load([`${mark}{"a":1}`, `{"a":${mark}1}`, `${mark}${mark}{}`, mark]);
  expect(rows).toEqual([{ a: 1n }]);
  expect(reasons.map((reason) => reason === undefined)).toEqual([true, false, false, false]);
});

test('what JSON.parse refuses is refused, and leaves no column behind', () => {
  const broken = [
    '{"a":NaN}',
    '{"a":Infinity}',
    '{"a":-}',
    '{"a":01}',
    '{"a":1.}',
    '{"a":.5}',
    '{"a":+1}',
    '{"a":0x10}',
    '{"a":1,}',
    '{"a":[1,]}',
    "{'a':1}",
    '{a:1}',
    '{"a":"\u0001"}',
    '{"a":"\\x41"}',
    '{"a":"\\u12"}',
    '{"a":tru}',
    '{"a":1}{"b":2}',
    '{"a":1',
    '{"a"',
    '',
    ' ',
    '//x\n{}',
  ];
  const { rows, reasons, schema } = load(['{"ok":1}', ...broken]);
  for (const text of broken) expect(() => JSON.parse(text) as unknown, text).toThrow();
  expect(rows).toEqual([{ ok: 1n }]);
  expect(reasons.slice(1).every((reason) => typeof reason === 'string')).toBe(true);
  expect(schema.fields.map((field) => field.name)).toEqual(['ok']);
});

test('bytes that are no UTF-8 are refused, lone surrogates in escapes become U+FFFD', () => {
  const bad = Uint8Array.from([...bytesOf('{"a":"'), 0xff, ...bytesOf('"}')]);
  const overlong = Uint8Array.from([...bytesOf('{"a":"'), 0xc0, 0x80, ...bytesOf('"}')]);
  const surrogate = Uint8Array.from([...bytesOf('{"a":"'), 0xed, 0xa0, 0x80, ...bytesOf('"}')]);
  const { rows, reasons } = load([
    '{"a":"\\ud83d\\ude80"}',
    '{"a":"\\ud83d"}',
    '{"a":"\\ude80\\ud83d"}',
    '{"\\ud83d":"key"}',
    bad,
    overlong,
    surrogate,
  ]);
  expect(rows).toEqual([{ a: '🚀' }, { a: '\ufffd' }, { a: '\ufffd\ufffd' }, { '\ufffd': 'key' }]);
  expect(reasons.slice(4).every((reason) => typeof reason === 'string')).toBe(true);
});

test('numbers that no column holds are kept as they were written', () => {
  const huge = '9'.repeat(400);
  const { rows } = load([
    `{"a":${huge},"b":1e400,"c":9223372036854775807,"d":-9223372036854775808,"e":9223372036854775808}`,
    '{"f":-0,"g":-0.0,"h":5e-324,"i":1.7976931348623157e308,"j":123456789012345678901234567890.5}',
  ]);
  expect(rows[0]).toEqual({
    a: huge,
    b: '1e400',
    c: 9_223_372_036_854_775_807n,
    d: -9_223_372_036_854_775_808n,
    e: '9223372036854775808',
  });
  expect(rows[1]).toEqual({
    f: 0n,
    g: -0,
    h: 5e-324,
    i: Number.MAX_VALUE,
    j: 1.2345678901234568e29,
  });
});

test('the last of duplicate keys wins, whatever its type', () => {
  const { rows } = load([
    '{"a":1,"a":2}',
    '{"a":1,"a":"x"}',
    '{"a":"x","a":3}',
    '{"a":1,"a":null}',
    '{"s":{"x":1},"s":{"y":2}}',
    '{"l":[1,2],"l":[3]}',
  ]);
  expect(rows).toEqual([
    { a: 2n },
    { a__string: 'x' },
    { a: 3n },
    {},
    { s: { x: null, y: 2n } },
    { l: [3n] },
  ]);
});

test('a hundred levels: columns down to the limit, the rest kept as text', () => {
  const levels = 100;
  const text = `${'{"n":'.repeat(levels)}1${'}'.repeat(levels)}`;
  const { rows, reasons } = load([text]);
  expect(reasons).toEqual([undefined]);
  // Nothing above the limit has content, so the whole of it is kept under its first name.
  const rest = JSON.parse(rows[0]!['_rest'] as string) as unknown;
  expect(rest).toEqual(JSON.parse(text));
  const mixed = load([`${'{"v":0,"n":'.repeat(levels)}1${'}'.repeat(levels)}`]);
  const deep = `n${'.n'.repeat(MAX_COLUMN_DEPTH - 1)}`;
  expect(mixed.reasons).toEqual([undefined]);
  expect(Object.keys(JSON.parse(mixed.rows[0]!['_rest'] as string) as object)).toEqual([deep]);
});

test('deeper than the reader goes is refused with a reason, arrays too', () => {
  const objects = `${'{"n":'.repeat(2_000)}1${'}'.repeat(2_000)}`;
  const arrays = `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
  const { reasons } = load(['{"ok":1}', objects, arrays]);
  expect(reasons.slice(1)).toEqual([
    expect.stringContaining('deeper than'),
    expect.stringContaining('deeper than'),
  ]);
});

test('a thousand columns, and what comes after them kept in _rest', () => {
  const wide = Object.fromEntries(Array.from({ length: 1_200 }, (_, i) => [`c${i}`, i]));
  const { rows, schema } = load([JSON.stringify(wide)], { maxColumns: 1_000 });
  expect(schema.fields).toHaveLength(1_001);
  const rest = JSON.parse(rows[0]!['_rest'] as string) as Record<string, number>;
  const both = {
    ...rest,
    ...Object.fromEntries(Object.entries(rows[0]!).map(([name, v]) => [name, Number(v)])),
  };
  for (const [name, value] of Object.entries(wide)) expect(both[name]).toBe(value);
});

test('a record of ten megabytes, in one string, and one of many parts', () => {
  const long = 'ü'.repeat(5 * 2 ** 20);
  const many = Array.from({ length: 20_000 }, (_, i) => ({
    id: i,
    text: `value ${i} \u2028 "quoted"`,
  }));
  const { rows, reasons } = load([JSON.stringify({ long }), JSON.stringify({ many })]);
  expect(reasons).toEqual([undefined, undefined]);
  expect(rows[0]!['long'] === long).toBe(true);
  const list = rows[1]!['many'] as { id: bigint; text: string }[];
  expect(list).toHaveLength(many.length);
  expect(list.at(-1)).toEqual({ id: 19_999n, text: many.at(-1)!.text });
});

test('names: empty, reserved, odd, in any script, differing in case only', () => {
  const names = [
    '',
    '_kafka_offset',
    '_rest',
    'a.b',
    'a[0]',
    '{x}',
    'naïve',
    '名前',
    '🚀',
    'A',
    'a',
    '\\',
    '"',
    ':x',
  ];
  const record = Object.fromEntries(names.map((name, i) => [name, i]));
  const { rows } = load([JSON.stringify(record)]);
  expect(
    Object.values(rows[0]!)
      .map(Number)
      .toSorted((a, b) => a - b),
  ).toEqual(names.map((_, i) => i));
  const columns = Object.keys(rows[0]!).map((name) => name.toLowerCase());
  expect(new Set(columns).size).toBe(names.length);
});

test('nothing in it makes no column and no misfit', () => {
  const { rows, schema } = load([
    '{"a":null,"b":{},"c":[],"d":[null,{}],"e":{"f":null,"g":[[]]}}',
    '{"ok":1}',
  ]);
  expect(schema.fields.map((field) => field.name)).toEqual(['ok']);
  expect(rows).toEqual([{}, { ok: 1n }]);
});

test('a column filled later asks for what is missing instead of dropping it', () => {
  const { schema, bindings } = commitForTest(
    (() => {
      const inference = new JsonInference();
      const bytes = bytesOf('{"a":1}');
      inference.add(bytes, 0, bytes.length);
      return inference.proposed();
    })(),
  );
  const columns = new TableColumns(schema);
  const decoder = compileJsonDecoder(columns, bindings);
  for (const text of [
    '{"a":"x"}',
    '{"a":1.5}',
    '{"b":1}',
    '{"a":[1]}',
    '{"a":{"b":1}}',
    '[1]',
    '"x"',
  ]) {
    const bytes = bytesOf(text);
    expect(decoder.decode(bytes, 0, bytes.length), text).toBe(UNFIT);
    expect(columns.rowCount).toBe(0);
  }
});
