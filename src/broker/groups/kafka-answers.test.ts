// Our answers to the scenes of testing/scenarios.ts are those that Apache Kafka gave, code for code and epoch for epoch.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../base/clock.ts';
import { silentLogger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import { seededIds, seededPrng } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import { openSqliteMetadata } from '../../metadata/sqlite/index.ts';
import { TopicDirectory } from '../../metadata/topic-directory.ts';
import { startTestBroker, type TestBroker } from '../testing/harness.ts';
import { allLeases } from '../testing/leases.ts';
import { GroupCoordinator, groupHandlers, groupSettings } from './index.ts';
import { answersOf, kafkaAnswers } from './testing/scenarios.ts';

const recorded = kafkaAnswers();
let broker: TestBroker;
let groups: GroupCoordinator;
let answers: Readonly<Record<string, unknown>>;

beforeAll(async () => {
  const metadata = openSqliteMetadata(':memory:');
  const directory = await TopicDirectory.load(metadata);
  groups = await GroupCoordinator.load({
    metadata: metadata.groups,
    transactions: metadata.transactions,
    leases: allLeases(),
    directory,
    settings: resolveSettings(groupSettings, {
      'group.initial.rebalance.delay.ms': '0',
      'group.consumer.max.size': '4',
    }),
    clock: systemClock,
    ids: seededIds(seededPrng(5)),
    logger: silentLogger,
    metrics: noMetrics,
  });
  broker = await startTestBroker({ metadata, directory, handlers: () => groupHandlers(groups) });
  answers = await answersOf(broker.port, { run: 'run', settleMs: 0 });
});

afterAll(async () => {
  await groups.stop();
  await broker.stop();
});

describe('as Apache Kafka', () => {
  test.each(Object.keys(recorded))('%s', (scene) => {
    expect(answers[scene]).toEqual(recorded[scene]);
  });
});
