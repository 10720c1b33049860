// A node under load, looked at from outside again and again while it commits, seals, compacts, cleans by key, expires and
// writes tables: nothing of that is a finding. Then what is taken from under the running node is one.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Producer } from 'kafkajs';
import { afterAll, expect, test } from 'vitest';
import { systemClock } from '../../base/clock.ts';
import { seededPrng } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import { Database } from '../../metadata/sqlite/database.ts';
import { type ChildNode, startChild } from '../child.ts';
import type { Finding } from '../doctor/finding.ts';
import { kafkaClient, withAdmin } from '../kafka-client.ts';
import { serverSettings } from '../settings.ts';
import { fsck } from './fsck.ts';

const folder = mkdtempSync(join(tmpdir(), 'floe-fsck-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const QUICK = {
  'log.wal.file.bytes': '1048576',
  'log.compact.interval.ms': '200',
  'log.compact.age.ms': '500',
  'log.retention.check.interval.ms': '500',
  'log.collect.interval.ms': '500',
  'log.delete.grace.ms': '500',
  'log.cleaner.backoff.ms': '200',
};
const dataDir = join(folder, 'node');

function check(samplePercent = 100): Promise<readonly Finding[]> {
  return fsck({
    dataDir,
    metadata: undefined,
    storage: undefined,
    settings: resolveSettings(serverSettings, {}),
    samplePercent,
    prng: seededPrng(1),
    pause: () => systemClock.sleep(500),
  });
}

const wrongs = (findings: readonly Finding[]) =>
  findings.filter(({ severity }) => severity !== 'ok').map(({ what, value }) => [what, value]);

async function createTopics({ addresses }: ChildNode): Promise<void> {
  const table = {
    'table.topic.enable': 'true',
    'table.topic.convert.value.type': 'json',
    'table.topic.commit.interval.ms': '500',
  };
  const entries = (config: Readonly<Record<string, string>>) =>
    Object.entries(config).map(([name, value]) => ({ name, value }));
  await withAdmin(addresses.kafka, (admin) =>
    admin.createTopics({
      topics: [
        { topic: 'orders', numPartitions: 2, configEntries: entries(table) },
        {
          topic: 'keyed',
          numPartitions: 2,
          configEntries: entries({ 'cleanup.policy': 'compact' }),
        },
        {
          topic: 'brief',
          numPartitions: 1,
          configEntries: entries({ 'retention.bytes': '1000000' }),
        },
        { topic: 'paid', numPartitions: 1 },
      ],
    }),
  );
}

/** Until told to stop. */
async function load(
  { plain, transactional }: { readonly plain: Producer; readonly transactional: Producer },
  goesOn: () => boolean,
): Promise<void> {
  for (let n = 0; goesOn(); n += 1) {
    const value = JSON.stringify({ id: n, item: 'x'.repeat(1_000) });
    const messages = Array.from({ length: 50 }, (_, i) => ({ key: `${i % 7}`, value }));
    await plain.sendBatch({
      topicMessages: ['orders', 'keyed', 'brief'].map((topic) => ({ topic, messages })),
    });
    const transaction = await transactional.transaction();
    await transaction.send({ topic: 'paid', messages: messages.slice(0, 3) });
    await (n % 2 === 0 ? transaction.commit() : transaction.abort());
  }
}

/** Of the log, by the rows of the node's own database. */
function filesOf(place: 'stream' | 'file'): readonly string[] {
  const database = new Database(join(dataDir, 'metadata.db'), []);
  try {
    return database
      .prepare(
        `SELECT DISTINCT key FROM log_objects JOIN object_entries USING (object_id) ORDER BY key`,
      )
      .all()
      .map(({ key }) => key as string)
      .filter((key) => key.split('/')[1] === place);
  } finally {
    database.close();
  }
}

test('nothing that a busy node does is a finding; what it loses is', {
  timeout: 120_000,
}, async () => {
  const settings = Object.entries(QUICK).flatMap(([name, value]) => ['--set', `${name}=${value}`]);
  const node = await startChild(dataDir, settings);
  await createTopics(node);
  const kafka = kafkaClient(node.addresses.kafka);
  const plain = kafka.producer();
  const transactional = kafka.producer({ transactionalId: 'payer', maxInFlightRequests: 1 });
  await Promise.all([plain.connect(), transactional.connect()]);
  let goesOn = true;
  const loaded = load({ plain, transactional }, () => goesOn);
  const seen = new Set<string>();
  for (let n = 0; n < 8 || seen.size < 3; n += 1) {
    expect(wrongs(await check())).toEqual([]);
    for (const key of filesOf('stream')) seen.add(key);
  }
  goesOn = false;
  await loaded;
  await Promise.all([plain.disconnect(), transactional.disconnect()]);
  expect(await node.stop()).toBe(0);

  expect(wrongs(await check())).toEqual([]);
  const [lost] = [...filesOf('stream'), ...filesOf('file')];
  const storage = join(dataDir, 'storage');
  rmSync(join(storage, lost!));
  const names = readdirSync(storage, { recursive: true }) as string[];
  // Which of them the table has now, compaction decides.
  for (const name of names) if (name.endsWith('.parquet')) rmSync(join(storage, name));
  const found = await check();
  const [first, ...files] = wrongs(found);
  expect(first).toEqual(['missing', `${lost}: missing`]);
  expect(files[0]).toEqual([
    'file',
    expect.stringMatching(/^kafka\.orders: .*\.parquet: missing$/),
  ]);
  expect(files.every(([what]) => what === 'file')).toBe(true);
  expect(found.find(({ what }) => what === 'entries')?.severity).toBe('ok');
});
