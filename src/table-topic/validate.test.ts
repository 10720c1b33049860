import { beforeEach, expect, test } from 'vitest';
import { FloeError } from '../base/error.ts';
import { Bench } from './testing/bench.ts';
import { createTopicConfigValidator, type TopicConfigValidator } from './validate.ts';

let bench: Bench;
let validator: TopicConfigValidator;
const ON = { 'table.topic.enable': 'true' };

beforeEach(async () => {
  bench = await Bench.open();
  validator = createTopicConfigValidator(bench);
});

test('values are judged even while the topic is no table', async () => {
  await validator.validate('t', { 'table.topic.name': 'fine', 'retention.ms': 'not ours' });
  await expect(validator.validate('t', { 'table.topic.name': 'a b' })).rejects.toThrow(
    /table.topic.name: "a b" is not a table name/,
  );
  expect(validator.concerns('table.topic.enable')).toBe(true);
  expect(validator.concerns('automq.table.topic.enable')).toBe(true);
  expect(validator.concerns('retention.ms')).toBe(false);
});

test('a converter must be chosen unless the subject is registered', async () => {
  await expect(validator.validate('t', ON)).rejects.toThrow(/by_schema_id, json, string or raw/);
  await bench.schemas.register(
    't-value',
    '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}',
  );
  await validator.validate('t', ON);
  await validator.validate('u', { ...ON, 'table.topic.convert.value.type': 'json' });
});

test('two topics never share a table, nor one the other’s dead letters', async () => {
  await bench.topic('a.b', { 'table.topic.convert.value.type': 'raw' });
  const config = { ...ON, 'table.topic.convert.value.type': 'raw' };
  await validator.validate('a.b', config);
  await expect(validator.validate('A-B', config)).rejects.toThrow(/belongs to topic "a.b"/);
  await expect(validator.validate('a_b_dlq', config)).rejects.toThrow(/kafka.a_b_dlq/);
  await validator.validate('A-B', { ...config, 'table.topic.namespace': 'other' });
});

test('partitions are checked as soon as the columns are known', async () => {
  const by = (text: string) => ({
    ...ON,
    'table.topic.convert.value.type': 'string',
    'table.topic.partition.by': text,
  });
  await validator.validate(
    't',
    by('[day(_kafka_timestamp), truncate(_kafka_value, 3), bucket(_kafka_offset, 2)]'),
  );
  await expect(validator.validate('t', by('[a]'))).rejects.toThrow(
    /no column "a" to go by; columns are _kafka_value/,
  );
  await expect(validator.validate('t', by('[hour(_kafka_value)]'))).rejects.toThrow(
    /hour can't take/,
  );
  await expect(
    validator.validate('t', by('[day(_kafka_timestamp), day(_kafka_timestamp)]')),
  ).rejects.toThrow(/twice/);
  await expect(validator.validate('t', by('[_kafka_headers]'))).rejects.toThrow(/partition.by/);
  // JSON's columns are only known from records.
  await validator.validate('t', { ...by('[a]'), 'table.topic.convert.value.type': 'json' });
});

test('what the catalog can’t take is refused with the topic’s config', async () => {
  const asked: unknown[] = [];
  const picky = createTopicConfigValidator({
    ...bench,
    directory: bench.directory,
    schemas: bench.schemas,
    catalog: {
      checkTable(table) {
        asked.push(table);
        throw new FloeError('invalid', 'no such name here');
      },
    },
  });
  const config = {
    ...ON,
    'table.topic.convert.value.type': 'json',
    'table.topic.partition.by': '[bucket(a.b, 4)]',
  };
  await expect(picky.validate('Orders', config)).rejects.toThrow('no such name here');
  expect(asked).toEqual([
    { identifier: { namespace: ['kafka'], name: 'Orders' }, partitionSources: ['a.b'] },
  ]);
});

test('dead letters go only where the client may write, never into their own topic', async () => {
  const config = {
    ...ON,
    'table.topic.convert.value.type': 'raw',
    'table.topic.errors.tolerance': 'dlq_topic',
  };
  const nowhere = () => false;
  await validator.validate('t', config, nowhere);
  const named = { ...config, 'table.topic.errors.dlq.topic': 'salaries' };
  await expect(validator.validate('t', named, nowhere)).rejects.toThrow(
    /table.topic.errors.dlq.topic: writing into topic "salaries" is not allowed/,
  );
  await validator.validate('t', named, (name) => name === 'salaries');
  await bench.topic('t-dlq', { 'table.topic.enable': 'false' });
  await expect(validator.validate('t', config, nowhere)).rejects.toThrow(/"t-dlq" is not allowed/);
  const own = { ...config, 'table.topic.errors.dlq.topic': 't' };
  await expect(validator.validate('t', own)).rejects.toThrow(/can't go to itself/);
  const long = 'x'.repeat(247);
  await expect(validator.validate(long, config)).rejects.toThrow(/longer than 249 characters/);
});

test('a format version never goes back, and nanoseconds need the third', async () => {
  const raw = { ...ON, 'table.topic.convert.value.type': 'raw' };
  const version = (value: string) => ({ ...raw, 'table.topic.format.version': value });
  await bench.topic('t', version('3'));
  await validator.validate('t', version('3'));
  await expect(validator.validate('t', version('2'))).rejects.toThrow(
    /format version 3 and can't go back to 2/,
  );
  await expect(
    validator.validate('u', { ...version('2'), 'table.topic.types.nanos': 'true' }),
  ).rejects.toThrow(/need table\.topic\.format\.version=3/);
  await validator.validate('u', { ...version('3'), 'table.topic.types.nanos': 'true' });
});
