// Several brokers on one PostgreSQL, at once: what must happen once happens once, whoever is first.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { ORDERS } from '../contract/store.ts';
import type { AddVersion } from '../registry.ts';
import type { StageRequest } from '../tables.ts';
import { SharedStore } from './contract-shared.ts';
import type { PostgresMetadata } from './index.ts';
import { assertLeases } from './leases.ts';
import { startPostgres, type TestServer } from './testing.ts';

let server: TestServer;
let store: SharedStore;
let brokers: PostgresMetadata[];
beforeAll(async () => {
  server = await startPostgres();
  store = await SharedStore.on(server);
  brokers = await Promise.all([store.broker(), store.broker(), store.broker()]);
});
afterAll(async () => {
  for (const broker of brokers) await broker.close();
  await store.close();
  await server.stop();
});
beforeEach(() => store.open());

/** `count` calls at once, spread over the brokers. */
function together<T>(
  count: number,
  call: (broker: PostgresMetadata, n: number) => Promise<T>,
): Promise<PromiseSettledResult<T>[]> {
  return Promise.allSettled(
    Array.from({ length: count }, (_, n) => call(brokers[n % brokers.length]!, n)),
  );
}

const done = <T>(results: readonly PromiseSettledResult<T>[]): T[] =>
  results.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
const failures = (results: readonly PromiseSettledResult<unknown>[]): string[] =>
  results.flatMap((one) =>
    one.status === 'rejected' ? [(one.reason as { code: string }).code] : [],
  );

const table = { topicId: ORDERS, topicName: 'orders', namespace: ['n'], table: 't' };

const stage = (stageId: string, from: number, epoch = 1): StageRequest => ({
  stageId,
  topicId: ORDERS,
  epoch,
  generation: 1,
  tableUuid: 'u',
  schemaId: 0,
  specId: 0,
  configEpoch: 1,
  ranges: [{ partition: 0, start: from, end: from + 10, deadLettersFrom: from, gaps: [] }],
  rows: 10,
  deadLetters: 0,
  skipped: 0,
  bytes: 1,
  filePrefixes: [`data/${stageId}`],
  payload: '{}',
  nowMs: 1,
});

const schema = (subject: string, stamp: number, text: string): AddVersion => ({
  subject,
  context: '.',
  stamp,
  targets: [],
  content: { type: 'AVRO', schema: text, references: [], contract: '', guid: `guid of ${text}` },
});

test('every claim of a table has an epoch of its own, and only the newest writes (T6)', async () => {
  const claims = done(await together(9, ({ tables }) => tables.claim(table)));
  const epochs = claims.map(({ epoch }) => epoch).toSorted((a, b) => a - b);
  expect(epochs).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  const updates = await together(9, ({ tables }, n) =>
    tables.update(ORDERS, n + 1, { state: `by ${n + 1}` }),
  );
  expect(failures(updates)).toEqual(Array(8).fill('conflict'));
  expect((await brokers[0]!.tables.get(ORDERS))?.state).toBe('by 9');
});

test('T1: of lanes that stage the same range one enters, the chain has no gap and no overlap', async () => {
  const { tables } = brokers[0]!;
  await tables.claim(table);
  await tables.initPositions(ORDERS, [{ partition: 0, offset: 0 }]);
  for (let from = 0; from < 30; from += 10) {
    const ids = [0, 1, 2, 3, 4, 5].map((n) => `${from}-${n}`);
    const intent = { topicId: ORDERS, createdMs: 1, namespace: ['n'], table: 't', parent: null };
    await tables.addIntents(ids.map((id) => ({ ...intent, prefix: `data/${id}` })));
    const outcomes = done(
      await together(6, (broker, n) => broker.tables.stage(stage(ids[n]!, from))),
    );
    expect(outcomes.map(({ kind }) => kind).toSorted()).toEqual([
      ...Array(5).fill('duplicate'),
      'staged',
    ]);
  }
  const stages = await tables.stages(ORDERS, 10);
  expect(stages.map(({ ranges }) => ranges[0]!.start)).toEqual([0, 10, 20]);
  expect(await tables.positions(ORDERS)).toMatchObject([{ stagedEnd: 30 }]);
  expect((await tables.counters(ORDERS)).rows).toBe(30);
  expect(await tables.intents(100, 100)).toHaveLength(15);
});

test('M2: files are either staged or swept, never both', async () => {
  const { tables } = brokers[0]!;
  await tables.claim(table);
  await tables.initPositions(ORDERS, [{ partition: 0, offset: 0 }]);
  for (let n = 0; n < 10; n += 1) {
    const from = (await tables.positions(ORDERS))[0]!.stagedEnd;
    const intent = { prefix: `data/s${n}`, topicId: ORDERS, createdMs: 1, parent: null };
    await tables.addIntents([{ ...intent, namespace: ['n'], table: 't' }]);
    const [staged, swept] = await Promise.all([
      brokers[1]!.tables.stage(stage(`s${n}`, from)),
      brokers[2]!.tables.claimIntents([intent]),
    ]);
    expect([staged.kind, swept.length]).toEqual(
      staged.kind === 'staged' ? ['staged', 0] : ['refused', 1],
    );
  }
});

test('schema ids have no gap and are one per content, whoever registers at the same time', async () => {
  // Twelve subjects, four contents, each several times over.
  const ids = done(
    await together(12, ({ registry }, n) => registry.addVersion(schema(`s${n}`, 0, `${n % 4}`))),
  );
  expect(ids).toHaveLength(12);
  const byContent = new Map(ids.map(({ id }, n) => [n % 4, id]));
  expect(ids.map(({ id }) => id)).toEqual(ids.map((_, n) => byContent.get(n % 4)));
  expect([...byContent.values()].toSorted()).toEqual([1, 2, 3, 4]);
  expect(await brokers[0]!.registry.counts()).toEqual({ schemas: 4, versions: 12 });
});

test('of changes to one subject upon one stamp one lands', async () => {
  const results = await together(6, ({ registry }, n) =>
    registry.addVersion(schema('s', 0, `${n}`)),
  );
  expect(done(results)).toEqual([{ id: 1, version: 1 }]);
  expect(failures(results)).toEqual(Array(5).fill('conflict'));
});

test('a schema is never left referring to a version that is gone', async () => {
  const [a, b] = [brokers[0]!.registry, brokers[1]!.registry];
  for (let n = 0; n < 8; n += 1) {
    const base = `base${n}`;
    await a.addVersion(schema(base, 0, base));
    const [refers, deletes] = await Promise.allSettled([
      a.addVersion({ ...schema(`user${n}`, 0, `u${n}`), targets: [{ subject: base, version: 1 }] }),
      b.deleteVersions({ subject: base, stamp: 1, versions: [1], permanent: true }),
    ]);
    expect([refers.status, deletes.status].toSorted()).toEqual(['fulfilled', 'rejected']);
  }
});

test('a pointer moves once from where it was seen; crossing moves of two never block for good', async () => {
  const { catalog } = brokers[0]!;
  await catalog.createNamespace('a', {});
  const move = (name: string, from: string | undefined, to: string) =>
    ({ kind: 'table', namespace: 'a', name, from, to }) as const;
  const made = await together(6, (broker, n) =>
    broker.catalog.movePointers([move('t', undefined, `t${n}`)]),
  );
  expect(failures(made)).toEqual(Array(5).fill('conflict'));
  await catalog.movePointers([move('u', undefined, 'u0')]);
  for (let n = 0; n < 5; n += 1) {
    const at = async (name: string) => (await catalog.pointer('a', name))!.metadataLocation;
    const [t, u] = [await at('t'), await at('u')];
    const results = await together(6, (broker, k) => {
      const both = [move('t', t, `t${n}.${k}`), move('u', u, `u${n}.${k}`)];
      return broker.catalog.movePointers(k % 2 === 0 ? both : both.toReversed());
    });
    expect(failures(results)).toEqual(Array(5).fill('conflict'));
    expect((await at('t')).slice(1)).toBe((await at('u')).slice(1));
  }
});

test('a namespace is dropped, or something enters it, never both', async () => {
  for (let n = 0; n < 8; n += 1) {
    const namespace = `n${n}`;
    await brokers[0]!.catalog.createNamespace(namespace, {});
    const pointer = { kind: 'table', namespace, name: 't', from: undefined, to: 'm' } as const;
    const results = await Promise.allSettled([
      brokers[0]!.catalog.dropNamespace(namespace),
      brokers[1]!.catalog.movePointers([pointer]),
    ]);
    expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
  }
});

test('a takeover waits for a write that holds the lease; renewals pass it by; the next write fails', async () => {
  const [first, second] = [brokers[0]!, brokers[1]!];
  const holder = (nodeId: number) => ({ nodeId, session: `s${nodeId}` });
  const acquire = (broker: PostgresMetadata, nodeId: number, durationMs: number) =>
    broker.leases.acquire({ names: ['groups/1'], holder: holder(nodeId), durationMs });
  const [mine] = await acquire(first, 1, 60_000);
  const order: string[] = [];
  let takeover: Promise<unknown> | undefined;
  await first.database.transaction('write', async (tx) => {
    await assertLeases(tx, [mine!]);
    // Its own renewal isn't held up by its own write; it makes the lease end at once.
    expect(await acquire(first, 1, 0)).toEqual([mine]);
    takeover = acquire(second, 2, 60_000).then(() => order.push('taken'));
    const waits = async () =>
      (await second.database.on('read').row<{ n: number }>(
        `SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock'
           AND datname = current_database()`,
      ))!.n;
    await expect.poll(waits).toBe(1);
    order.push('written');
  });
  await takeover;
  expect(order).toEqual(['written', 'taken']);
  const late = first.groups.write([], [mine!]);
  await expect(late).rejects.toMatchObject({ code: 'conflict' });
});

test('versions rise once for each change, whatever runs beside', async () => {
  const quota = (n: number) => [{ entity: { user: `u${n}` }, values: { producer_byte_rate: n } }];
  const before = (await brokers[0]!.versions.current()).quotas;
  const results = await together(9, ({ quotas }, n) => quotas.alter(quota(n)));
  expect(failures(results)).toEqual([]);
  expect((await brokers[0]!.versions.current()).quotas).toBe(before + 9);
  expect(await brokers[0]!.quotas.list()).toHaveLength(9);
});

test('a name or note with characters that PostgreSQL lacks holds up no other group', async () => {
  const { groups, topics, leases } = brokers[0]!;
  const topic = { topicId: ORDERS, name: 'orders', partitionCount: 1, config: {}, nowMs: 1 };
  const [partitionId] = (await topics.create(topic)).partitions as [number];
  const holder = { nodeId: 1, session: 's' };
  const tokens = await leases.acquire({ names: ['groups/0'], holder, durationMs: 60_000 });
  const position = { partitionId, offset: 1, leaderEpoch: -1, commitMs: 1, expireMs: -1 };
  const odd = { ...position, metadata: 'a\0b\u001b1 \u{1f600}' };
  const ids = ['g\0\u001b', 'plain'];
  await groups.write(
    ids.map((groupId) => ({ kind: 'offsets', groupId, offsets: [odd] })),
    tokens,
  );
  expect((await groups.load()).map(({ group }) => group.groupId)).toEqual(ids);
  expect(await groups.offsets(ids)).toEqual([[odd], [odd]]);
});
