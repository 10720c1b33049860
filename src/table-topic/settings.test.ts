import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  formatColumns,
  formatPartitionBy,
  formatSortBy,
  parseColumns,
  parsePartitionBy,
  parseSortBy,
} from './column-list.ts';
import {
  isEnabled,
  parseTopicConfig,
  resolveTopicConfigs,
  tableIdentifier,
  topicConfigs,
  unservedConfigs,
} from './settings/index.ts';

test('lists: names, paths, odd names', () => {
  expect(parseColumns('[a, b.c, `odd name`, `tick``y`.d]')).toEqual([
    ['a'],
    ['b', 'c'],
    ['odd name'],
    ['tick`y', 'd'],
  ]);
  expect(parseColumns('a,b')).toEqual([['a'], ['b']]);
  expect(parseColumns('')).toEqual([]);
  expect(parseColumns('[]')).toEqual([]);
  for (const bad of ['[a', 'a]', '[a b]', '[,]', '[a,,b]', '[`a]', 'a.', '[a](b)']) {
    expect(() => parseColumns(bad), bad).toThrow(/expected/);
  }
});

test('partition expressions: every transform, and what is wrong said by name', () => {
  const text =
    '[hour(_kafka_timestamp), bucket(id, 16), truncate(name, 4), country, year(a.b), month(d), day(`o d`), void(v)]';
  expect(formatPartitionBy(parsePartitionBy(text))).toBe(text);
  expect(parsePartitionBy('identity(x)')).toEqual([{ transform: 'identity', column: ['x'] }]);
  expect(() => parsePartitionBy('week(ts)')).toThrow(/"week" is no partition transform/);
  expect(() => parsePartitionBy('bucket(id)')).toThrow(/bucket needs a number: bucket\(id, 16\)/);
  expect(() => parsePartitionBy('hour(ts, 3)')).toThrow(/hour takes a column only/);
  expect(() => parsePartitionBy('bucket(id, 0)')).toThrow(/within 1/);
  expect(() => parsePartitionBy('bucket(id, x)')).toThrow(/not a number/);
});

test('sort expressions: directions and places of nulls, said or by custom', () => {
  const text =
    '[customer asc nulls first, hour(ts) desc nulls last, desc asc nulls last, bucket(id, 16) desc nulls first]';
  expect(formatSortBy(parseSortBy(text))).toBe(text);
  expect(parseSortBy('a, b DESC, c.d Nulls Last')).toEqual([
    { transform: 'identity', column: ['a'], direction: 'asc', nulls: 'first' },
    { transform: 'identity', column: ['b'], direction: 'desc', nulls: 'last' },
    { transform: 'identity', column: ['c', 'd'], direction: 'asc', nulls: 'last' },
  ]);
  expect(() => parseSortBy('[a up]')).toThrow(/expected/);
  expect(() => parseSortBy('[a nulls]')).toThrow(/first or last/);
  expect(() => parseSortBy('[a description]')).toThrow(/expected/);
});

test('lists survive their text, whatever the names', () => {
  const name = fc.string({ minLength: 1, maxLength: 8 }).filter((text) => text.trim() !== '');
  const column = fc.array(name, { minLength: 1, maxLength: 3 });
  fc.assert(
    fc.property(fc.array(column, { maxLength: 4 }), (columns) => {
      expect(parseColumns(formatColumns(columns))).toEqual(columns);
    }),
    { seed: 2, numRuns: 300 },
  );
});

test('every config has a doc and its default survives its text', () => {
  for (const [name, setting] of Object.entries(topicConfigs)) {
    expect(setting.doc.length, name).toBeGreaterThan(20);
    const {
      parse,
      format,
      default: value,
    } = setting as {
      parse(text: string): unknown;
      format(value: unknown): string;
      default: unknown;
    };
    expect(parse(format(value)), name).toEqual(value);
  }
});

test('unknown, unserved and wrong configs are refused with the reason', () => {
  expect(() => parseTopicConfig('table.topic.nonsense', '1')).toThrow(/unknown topic config/);
  for (const [name, reason] of Object.entries(unservedConfigs)) {
    expect(() => parseTopicConfig(name, 'true'), name).toThrow(reason);
    // Turning off what isn't there asks for nothing.
    expect(parseTopicConfig(name, 'false').value).toBe('false');
  }
  expect(parseTopicConfig('table.topic.errors.tolerance', 'dlq_topic').value).toBe('dlq_topic');
  expect(() => parseTopicConfig('table.topic.errors.tolerance', 'all')).toThrow(/dlq_table/);
  expect(() => parseTopicConfig('table.topic.errors.dlq.topic', 'a b')).toThrow(/a topic name/);
  expect(() => parseTopicConfig('table.topic.commit.interval.ms', '5')).toThrow(/100…900000/);
  expect(() => parseTopicConfig('automq.table.topic.errors.tolerance', 'all')).toThrow(
    /set table.topic.errors.tolerance to dlq_table, dlq_topic, skip or none/,
  );
  const property = 'table.topic.properties';
  expect(() => parseTopicConfig(`${property}.floe.watermark`, 'x')).toThrow(/own/);
  expect(() => parseTopicConfig(`${property}.format-version`, '3')).toThrow(/format\.version/);
  expect(() => parseTopicConfig(`${property}.write.format.default`, 'orc')).toThrow(/parquet/);
  expect(() => parseTopicConfig(`${property}.write.parquet.compression-codec`, 'lzo')).toThrow(
    /properties\.write\.parquet\.compression-codec: "lzo" is not one of zstd/,
  );
  for (const reason of Object.values(unservedConfigs)) expect(reason.length).toBeGreaterThan(15);
});

test('AutoMQ’s names are aliases where they mean the same', () => {
  const config = resolveTopicConfigs({
    'automq.table.topic.enable': 'true',
    'automq.table.topic.partition.by': '[bucket(a, 4)]',
    'table.topic.properties.write.target-file-size-bytes': '1',
    'retention.ms': '5',
  });
  expect(config['table.topic.enable']).toBe(true);
  expect(config['table.topic.partition.by']).toHaveLength(1);
  expect(config.properties).toEqual({ 'write.target-file-size-bytes': '1' });
  expect(isEnabled({ 'automq.table.topic.enable': 'TRUE' })).toBe(true);
});

test('the table’s name: the topic’s unless configured', () => {
  const config = resolveTopicConfigs({});
  expect(tableIdentifier('a.b-c', config)).toEqual({ namespace: ['kafka'], name: 'a_b_c' });
  expect(
    tableIdentifier(
      'x',
      resolveTopicConfigs({ 'table.topic.namespace': 'a.b', 'table.topic.name': 'n' }),
    ),
  ).toEqual({ namespace: ['a', 'b'], name: 'n' });
});

test('backfill: words, milliseconds, UTC times', () => {
  const at = (value: string) =>
    resolveTopicConfigs({ 'table.topic.backfill': value })['table.topic.backfill'];
  expect(at('latest')).toBe('latest');
  expect(at('1700000000000')).toEqual({ timestampMs: 1_700_000_000_000 });
  for (const iso of ['2026-01-31T00:00:00Z', '2024-02-29T23:59:59.125Z', '1970-01-01T00:00Z']) {
    expect(at(iso), iso).toEqual({ timestampMs: Date.parse(iso) });
  }
  expect(() => at('yesterday')).toThrow(/is not earliest/);
});
