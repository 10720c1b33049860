import { existsSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TableColumns } from '../arrow/table-columns.ts';
import { type CommittedForTest, commitForTest } from '../arrow/testing.ts';
import { compileJsonDecoder, type JsonDecoderOptions, UNFIT } from './decoder.ts';
import { type InferenceOptions, JsonInference } from './infer.ts';

const utf8 = (text: string) => new TextEncoder().encode(text);

/** A table that evolves as a worker and its coordinator would let it. */
class TestTable {
  committed: CommittedForTest = commitForTest({ type: 'struct', fields: [] });
  readonly rows: Record<string, unknown>[] = [];
  readonly #options: InferenceOptions & JsonDecoderOptions;

  constructor(options: InferenceOptions & JsonDecoderOptions = {}) {
    this.#options = options;
  }

  infer(...records: unknown[]): void {
    const inference = new JsonInference(this.#options);
    for (const record of records) {
      const bytes = utf8(typeof record === 'string' ? record : JSON.stringify(record));
      expect(inference.add(bytes, 0, bytes.length)).toBeUndefined();
    }
    this.#commit(inference);
  }

  #commit(inference: JsonInference): void {
    const { committed } = this.committed;
    this.committed = commitForTest(inference.proposed(committed), this.committed);
  }

  /** Decodes one record, evolving at most once. The row, or the reason. */
  write(record: unknown): string | Record<string, unknown> {
    const text = typeof record === 'string' ? record : JSON.stringify(record);
    // Between other bytes, as values stand in batches.
    const bytes = utf8(`7${text}7`);
    const [start, end] = [1, bytes.length - 1];
    for (let round = 0; ; round++) {
      const { schema, bindings } = this.committed;
      const columns = new TableColumns(schema);
      const decoder = compileJsonDecoder(columns, bindings, this.#options);
      const reason = decoder.decode(bytes, start, end);
      if (reason === undefined) {
        columns.endRow();
        columns.align();
        const row: Record<string, unknown> = {};
        schema.fields.forEach((field, i) => {
          const value = columns.columns[i]!.valueAt(0);
          if (value !== null) row[field.name] = value;
        });
        return row;
      }
      columns.align();
      expect(columns.columns.every((column) => column.length === 0)).toBe(true);
      if (reason !== UNFIT || round > 0) return reason;
      const inference = new JsonInference(this.#options);
      inference.add(bytes, start, end);
      inference.force(decoder.misfits);
      this.#commit(inference);
    }
  }

  types(): Record<string, unknown> {
    return Object.fromEntries(this.committed.schema.fields.map((f) => [f.name, f.type]));
  }
}

describe('inference', () => {
  const typesOf = (...records: unknown[]) => {
    const table = new TestTable();
    table.infer(...records);
    return table.types();
  };

  it('finds scalar types and leaves null, {} and [] without column', () => {
    expect(
      typesOf({ b: true, l: 1, d: 1.5, s: 'x', n: null, o: {}, a: [], e: { x: null } }),
    ).toEqual({
      b: 'boolean',
      l: 'long',
      d: 'double',
      s: 'string',
    });
  });

  it('makes integers and fractions double, or text when an integer exceeds 2^53', () => {
    expect(typesOf({ x: 1 }, { x: 1.5 })).toEqual({ x: 'double' });
    expect(typesOf('{"x":9007199254740993}', { x: 1.5 })).toEqual({ x: 'string' });
    expect(typesOf('{"x":9007199254740993}', { x: 1 })).toEqual({ x: 'long' });
    expect(typesOf('{"x":99999999999999999999}')).toEqual({ x: 'string' });
    expect(typesOf('{"x":1e400}')).toEqual({ x: 'string' });
  });

  it('gives a field of several types one column each', () => {
    expect(typesOf({ x: 1 }, { x: 'a' }, { x: true }, { x: { y: 1 } })).toMatchObject({
      x: 'long',
      x__string: 'string',
      x__boolean: 'boolean',
      x__struct: { type: 'struct' },
    });
  });

  it('makes lists whose elements disagree JSON text', () => {
    expect(typesOf({ x: [1, 'a'] })).toEqual({ x: 'string' });
    expect(typesOf({ x: [1, 2.5] })).toMatchObject({ x: { type: 'list', element: 'double' } });
    expect(typesOf({ x: [[1], ['a']] })).toEqual({ x: 'string' });
    expect(typesOf({ x: [{ a: 1 }, { b: 2 }] })).toMatchObject({
      x: { element: { type: 'struct', fields: [{ name: 'a' }, { name: 'b' }] } },
    });
  });

  it('renames what clashes with own columns or only by case', () => {
    const row = { _kafka_offset: 1, Id: 1, id: 2, _REST: 'x' };
    expect(Object.keys(typesOf(row))).toEqual(['_kafka_offset_', 'Id', 'id_2', '_REST_']);
    const table = new TestTable();
    expect(table.write(row)).toEqual({ _kafka_offset_: 1n, Id: 1n, id_2: 2n, _REST_: 'x' });
  });

  it('knows timestamps only when asked', () => {
    const records = [
      {
        t: '2026-01-01T00:00:00.123+05:30',
        d: '2026-01-01',
        l: '2026-01-01 10:00:00',
        x: '2026-01-01',
      },
      { x: 'no' },
    ];
    expect(typesOf(...records)).toEqual({ t: 'string', d: 'string', l: 'string', x: 'string' });
    const table = new TestTable({ timestamps: true });
    table.infer(...records);
    expect(table.types()).toEqual({ t: 'timestamptz', d: 'date', l: 'timestamp', x: 'string' });
    expect(table.write(records[0])).toEqual({
      t: 1767205800123000n,
      d: 20454,
      l: 1767261600000000n,
      x: '2026-01-01',
    });
    // What is no timestamp goes beside it.
    expect(table.write({ t: 'yesterday', d: '2026-02-30' })).toEqual({
      t__string: 'yesterday',
      d__string: '2026-02-30',
    });
  });

  it('puts fields past the limit of columns into _rest', () => {
    const table = new TestTable({ maxColumns: 3 });
    table.infer({ a: 1, b: { c: 1, d: 2, e: 'x' }, f: [1] });
    expect(table.write({ a: 1, b: { c: 1, d: 2, e: 'x' }, f: [1] })).toEqual({
      a: 1n,
      b: { c: 1n, d: 2n },
      _rest: '{"b.e":"x","f":[1]}',
    });
    expect(table.write({ a: 'text', 'odd.name': null, new: 5 })).toEqual({
      _rest: '{"a":"text","new":5}',
    });
  });

  it('puts what lies deeper than 32 levels into _rest', () => {
    let deep: unknown = 1;
    for (let i = 0; i < 40; i++) deep = { n: deep };
    const table = new TestTable();
    const row = table.write({ deep, x: 1 }) as Record<string, unknown>;
    expect(row['x']).toBe(1n);
    expect(Object.values(JSON.parse(row['_rest'] as string))).toHaveLength(1);
    // Side by side with shallow content.
    const both = table.write({ deep: { n: { shallow: 2, n: { n: deep } } } }) as Record<
      string,
      unknown
    >;
    expect(both).toMatchObject({ deep: { n: { shallow: 2n } } });
    expect(both['_rest']).toBeDefined();
  });
});

describe('JSON decoder', () => {
  it('keeps integers beyond 2^53 exact and numbers that fit no type as text', () => {
    const table = new TestTable();
    expect(table.write('{"a":9223372036854775807,"b":-9007199254740993}')).toEqual({
      a: 9223372036854775807n,
      b: -9007199254740993n,
    });
    expect(table.write('{"a":9223372036854775808}')).toEqual({ a__number: '9223372036854775808' });
    expect(table.write('{"c":1.5}')).toEqual({ c: 1.5 });
    expect(table.write('{"c":9007199254740993}')).toEqual({ c__long: 9007199254740993n });
    expect(table.write('{"c":-1e400}')).toEqual({ c__number: '-1e400' });
  });

  it('lets the last of duplicate keys win, of whatever type', () => {
    const table = new TestTable();
    table.infer({ a: 1 }, { a: 'x' }, { s: { t: 1, u: 2 } }, { l: [1] });
    expect(table.write('{"a":1,"a":2}')).toEqual({ a: 2n });
    expect(table.write('{"a":1,"a":"x"}')).toEqual({ a__string: 'x' });
    expect(table.write('{"a":"x","a":1}')).toEqual({ a: 1n });
    expect(table.write('{"a":1,"a":null}')).toEqual({});
    expect(table.write('{"s":{"t":1,"u":2},"s":{"t":3,"t":4}}')).toEqual({ s: { t: 4n, u: null } });
    expect(table.write('{"l":[1,2],"l":[3]}')).toEqual({ l: [3n] });
  });

  it('tells null, empty and absent apart as far as columns can', () => {
    const table = new TestTable();
    table.infer({ s: { a: 1 }, l: [1], t: 'x' });
    expect(table.write('{"s":{},"l":[],"t":""}')).toEqual({ s: { a: null }, l: [], t: '' });
    expect(table.write('{"s":null,"l":null,"t":null}')).toEqual({});
    expect(table.write('{"l":[null,1,null]}')).toEqual({ l: [null, 1n, null] });
  });

  it('keeps lists that stop fitting as text, and leaves the rest of the row alone', () => {
    const table = new TestTable();
    table.infer({ l: [{ a: 1 }], x: 1 });
    expect(table.write('{"l": [{"a":1}, 5 ,{"b":2}], "x":2}')).toEqual({
      l__json: '[{"a":1}, 5 ,{"b":2}]',
      x: 2n,
    });
    expect(table.write('{"l":[{"a":1},{"a":"s","c":[true]}]}')).toEqual({
      l: [
        { a: 1n, a__string: null, c: null },
        { a: null, a__string: 's', c: [true] },
      ],
    });
  });

  it('puts roots that are no objects into _kafka_value as text', () => {
    const table = new TestTable();
    expect(table.write('[1,2]')).toEqual({ _kafka_value: '[1,2]' });
    expect(table.write('"x"')).toEqual({ _kafka_value: '"x"' });
    expect(table.write('null')).toContain('null value');
    expect(table.write(' ')).toContain('empty value');
  });

  it('takes keys in any order, escaped keys, and odd names', () => {
    const table = new TestTable();
    const names = { ':x:y': 7, 'a.b': 1, 'a[]': 2, 'c{key}': 3, 'd\\string': 4, '': 5, 'é😀': 6 };
    table.infer({ a: { b: 9 }, ...names });
    expect(
      table.write('{":x:y":7,"\\u00e9\\ud83d\\ude00":6,"":5,"d\\\\string":4,"a.b":1,"a":{"b":7}}'),
    ).toEqual({
      ':x:y': 7n,
      'é😀': 6n,
      _: 5n,
      'd\\string': 4n,
      'a.b': 1n,
      a: { b: 7n },
    });
  });

  it('tells an escape in a key from a backslash in a name', () => {
    const table = new TestTable();
    table.infer({ 'a\\b': 1, 'c"': 2, x: 3 });
    expect(table.write({ 'a\\b': 4, 'c"': 5, x: 6 })).toEqual({ 'a\\b': 4n, 'c"': 5n, x: 6n });
    expect(table.write('{"a\\b":7,"x":8}')).toEqual({ 'a\b': 7n, x: 8n });
    expect(table.write('{"c"":9}')).toMatch(/^invalid JSON/);
  });

  it('returns the reason with its place and rolls back', () => {
    const table = new TestTable();
    table.infer({ a: 1, b: 'x' });
    expect(table.write('{"a":1,"b":"unfinished}')).toMatch(/^invalid JSON: .* at byte \d+$/);
    expect(table.write('{"a":1 "b":2}')).toMatch(/"," or "}" expected at byte 7/);
  });

  it('loses nothing: what goes in comes out of some column', () => {
    const scalar = fc.oneof(
      fc.boolean(),
      fc.integer(),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.string({ unit: 'grapheme', maxLength: 4 }),
      fc.constant(null),
    );
    const key = fc.constantFrom('a', 'b', 'c', 'A', 'x.y', '_rest');
    const { record } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        scalar,
        tie('record'),
        fc.array(tie('value'), { maxLength: 3 }),
      ),
      record: fc.dictionary(key, tie('value'), { maxKeys: 4 }),
    }));
    fc.assert(
      fc.property(fc.array(record, { minLength: 1, maxLength: 6 }), fc.nat(3), (records, known) => {
        const table = new TestTable({ maxColumns: 12 });
        table.infer(...records.slice(0, known));
        for (const record of records) {
          const row = table.write(record);
          expect(typeof row, String(row)).toBe('object');
          expect(contentOf(row)).toEqual(contentOf(record));
        }
      }),
      { numRuns: 150, seed: 21 },
    );
  });

  const events = new URL('../../../../shared/data/gharchive/events.ndjson', import.meta.url);
  it.skipIf(!existsSync(events))('takes real nested events', () => {
    const lines = readFileSync(events, 'utf8').trim().split('\n').slice(0, 60);
    const table = new TestTable();
    table.infer(...lines.slice(0, 30));
    for (const line of lines) {
      const row = table.write(line);
      expect(contentOf(row)).toEqual(contentOf(JSON.parse(line)));
    }
  });
});

/** All scalars of a value, sorted: texts that are JSON (of `_rest`, `__json`, `__number`) are looked into. */
function contentOf(value: unknown): string[] {
  const found: string[] = [];
  const visit = (item: unknown): void => {
    if (item === null || item === undefined) return;
    if (Array.isArray(item)) item.forEach(visit);
    else if (typeof item === 'object') Object.values(item).forEach(visit);
    else if (typeof item === 'string') {
      const parsed = parsedText(item);
      if (parsed === undefined) found.push(`s:${item}`);
      else visit(parsed);
    } else if (typeof item === 'bigint') found.push(`n:${Number(item)}`);
    else found.push(typeof item === 'number' ? `n:${item === 0 ? 0 : item}` : String(item));
  };
  visit(value);
  return found.sort();
}

function parsedText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
