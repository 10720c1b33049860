// Contract of `VersionsMetadata`, for every store: which change raises what. Not for production code.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Metadata } from '../metadata.ts';
import {
  TRACED_VERSIONS,
  type TracedDomain,
  type VersionDomain,
  versionDomains,
} from '../versions.ts';
import {
  cleaningOf,
  createTopic,
  Flushes,
  type OpenStore,
  ORDERS,
  type StoreUnderTest,
} from './store.ts';

const acl = {
  resourceType: 2,
  resourceName: 'orders',
  patternType: 3,
  principal: 'User:alice',
  host: '*',
  operation: 3,
  permission: 3,
};
const table = { topicId: ORDERS, topicName: 'orders', namespace: ['n'], table: 't' };
const node = {
  rack: null,
  roles: [],
  listeners: {},
  hints: null,
  http: null,
  version: '1',
  levels: { min: 1, max: 1 },
  nodeId: 1,
  session: 's',
};

type Change = (metadata: Metadata, partitions: readonly number[]) => Promise<unknown>;

/** One after the other on one store, with what each raises. */
const CHANGES: readonly (readonly [VersionDomain, Change])[] = [
  ['topics', ({ topics }) => topics.addPartitions(ORDERS, 3)],
  ['topics', ({ topics }) => topics.alterConfig(ORDERS, { 'retention.ms': '1' })],
  ['broker-configs', ({ topics }) => topics.alterBrokerConfig('', { a: '1' })],
  [
    'resource-configs',
    ({ resourceConfigs }) => resourceConfigs.alter('group', 'g', { 'a.b': '1' }),
  ],
  ['security', ({ security }) => security.alterAcls([acl], [])],
  ['security', ({ security }) => security.alterCredentials([], [])],
  [
    'quotas',
    ({ quotas }) => quotas.alter([{ entity: { user: 'u' }, values: { producer_byte_rate: 1 } }]),
  ],
  ['log-starts', ({ log }, [first]) => log.deleteRecords(first!, 1)],
  ['cleanings', ({ objects }, [first]) => objects.noteCleaned([cleaningOf(first!, 1)])],
  ['cleanings', ({ objects }, [first]) => objects.noteCleaned([cleaningOf(first!, 2)])],
  ['tables', ({ tables }) => tables.claim(table)],
  ['tables', ({ tables }) => tables.update(ORDERS, 1, { state: 'running' })],
  ['tables', ({ tables }) => tables.setPaused(ORDERS, true)],
  ['tables', ({ tables }) => tables.rewind(ORDERS, 1, { positions: [], nowMs: 1 })],
  ['nodes', ({ nodes }) => nodes.register(node, 5_000)],
  ['nodes', ({ nodes }) => nodes.heartbeat(1, 's', true)],
  ['nodes', ({ nodes }) => nodes.leave(1, 's')],
];

/** Runs the suite on stores that `open` makes. */
export function versionsContract(name: string, open: OpenStore): void {
  describe(`versions contract: ${name}`, () => {
    let store: StoreUnderTest;
    beforeEach(async () => {
      store = await open();
    });
    afterEach(() => store.close());

    const current = () => store.metadata.versions.current();

    test('each domain rises with its own changes and no other; nothing goes back', async () => {
      const partitions = await createTopic(store.metadata, 2);
      await store.metadata.log.commit([
        new Flushes().of([{ partitionId: partitions[0]!, records: 3 }]),
      ]);
      expect(Object.keys(await current()).sort()).toEqual([...versionDomains].sort());
      for (const [n, [domain, change]] of CHANGES.entries()) {
        const before = await current();
        await change(store.metadata, partitions);
        const after = await current();
        const risen = versionDomains.filter((one) => after[one] > before[one]);
        expect([n, risen]).toEqual([n, [domain]]);
        expect(versionDomains.filter((one) => after[one] < before[one])).toEqual([]);
      }
      const before = await current();
      await store.reopen();
      expect(await current()).toEqual(before);
    });

    test('a topic that goes raises what its table was in, too', async () => {
      await createTopic(store.metadata, 1);
      await store.metadata.tables.claim(table);
      const before = await current();
      await store.metadata.topics.delete(ORDERS);
      const after = await current();
      expect(versionDomains.filter((one) => after[one] > before[one])).toEqual([
        'topics',
        'tables',
      ]);
    });

    test('versions of topics and log starts say what they were about, for a while', async () => {
      const { topics, log, versions } = store.metadata;
      const [first, second] = await createTopic(store.metadata, 2);
      const before = await current();
      const changes = (domain: TracedDomain) => versions.changes(domain, before[domain]);
      expect(await changes('topics')).toEqual({ version: before.topics, ids: [] });
      await topics.addPartitions(ORDERS, 3);
      await topics.alterConfig(ORDERS, { 'retention.ms': '1' });
      expect(await changes('topics')).toEqual({ version: before.topics + 2, ids: [ORDERS] });
      await log.commit([
        new Flushes().of([
          { partitionId: first!, records: 3 },
          { partitionId: second!, records: 3 },
        ]),
      ]);
      await log.moveLogStarts([
        { partitionId: first!, logStartOffset: 1, freedBytes: 0 },
        { partitionId: second!, logStartOffset: 0, freedBytes: 0 },
      ]);
      expect((await changes('log-starts')).ids).toEqual([String(first)]);
      const sized = await current();
      await log.moveLogStarts([
        { partitionId: second!, logStartOffset: 0, freedBytes: 5 },
        { partitionId: first!, logStartOffset: 0, freedBytes: 0 },
        { partitionId: 999, logStartOffset: 0, freedBytes: 5 },
      ]);
      expect(await versions.changes('log-starts', sized['log-starts'])).toEqual({
        version: sized['log-starts'] + 1,
        ids: [String(second)],
      });
      await topics.delete(ORDERS);
      expect((await changes('topics')).ids).toEqual([ORDERS]);
      // A store that was put back, and one that has forgotten.
      const { version } = await changes('topics');
      expect(await versions.changes('topics', version + 1)).toEqual({ version, ids: undefined });
      await createTopic(store.metadata, 1);
      for (let n = 0; n < TRACED_VERSIONS; n += 1)
        await topics.alterConfig(ORDERS, { 'retention.ms': String(n) });
      const { version: newest, ids } = await changes('topics');
      expect(ids).toBeUndefined();
      expect((await versions.changes('topics', newest - TRACED_VERSIONS)).ids).toEqual([ORDERS]);
    });

    test('what fails or changes nothing raises nothing', async () => {
      const before = await current();
      const { topics, tables, nodes } = store.metadata;
      await expect(topics.delete(ORDERS)).rejects.toMatchObject({ code: 'not-found' });
      await expect(tables.setPaused(ORDERS, true)).rejects.toMatchObject({ code: 'not-found' });
      await expect(nodes.heartbeat(9, 's', false)).rejects.toMatchObject({ code: 'conflict' });
      await nodes.leave(9, 's');
      await nodes.forget(1);
      expect(await current()).toEqual(before);
    });
  });
}
