import { beforeEach, expect, test } from 'vitest';
import { openSqliteMetadata } from '../../metadata/sqlite/index.ts';
import { TopicDirectory } from '../../metadata/topic-directory.ts';
import { PatternTopics, patternFault } from './patterns.ts';

let directory: TopicDirectory;
let topics: PatternTopics;
let nextId = 1;

const create = (name: string, partitionCount = 1) => {
  const topicId = `00000000-0000-4000-8000-${String(nextId++).padStart(12, '0')}`;
  return directory.create({ topicId, name, partitionCount, config: {}, nowMs: 0 });
};

beforeEach(async () => {
  directory = await TopicDirectory.load(openSqliteMetadata(':memory:'));
  topics = new PatternTopics(directory);
});

test('a pattern means whole names, and follows topics as they come and go', async () => {
  await create('orders');
  await create('orders-eu');
  expect(topics.matching('orders')).toEqual(['orders']);
  expect(topics.matching('orders.*')).toEqual(['orders', 'orders-eu']);
  const { version } = topics;
  const other = await create('other');
  const eu = await create('orders-us');
  expect(topics.version).toBeGreaterThan(version);
  expect(topics.matching('orders.*')).toEqual(['orders', 'orders-eu', 'orders-us']);
  await directory.delete(eu.topicId);
  expect(topics.matching('orders.*')).toEqual(['orders', 'orders-eu']);
  const before = topics.version;
  const same = topics.matching('orders.*');
  await directory.alterConfig(other.topicId, { 'retention.ms': '1' });
  expect(topics.version).toBe(before);
  expect(topics.matching('orders.*')).toBe(same);
  await directory.addPartitions(other.topicId, 3);
  expect(topics.version).toBeGreaterThan(before);
  expect(topics.partitionsOf('other')).toHaveLength(3);
});

test.each([
  ['(x', 'closing'],
  ['(?=x)y', 'Perl'],
  ['x'.repeat(1_001), 'longer than'],
  ['((.{1,50}){1,50}){1,50}', ''],
  ['(a{0,100}b{0,100}){0,100}', ''],
])('%s is refused', (pattern, why) => {
  expect(patternFault(pattern)).toContain(why);
});

test('what stalls a backtracking engine does not stall this one', async () => {
  const name = `${'a'.repeat(200)}-x`;
  await create(name);
  for (const pattern of ['(a+)+b', '(a|a)*b', '(a*)*b', '.*a.{12}b', '(.{0,20}){0,20}b']) {
    expect(patternFault(pattern), pattern).toBeUndefined();
    expect(topics.matching(pattern), pattern).toEqual([]);
  }
  expect(topics.matching('(a+)+-x')).toEqual([name]);
});
