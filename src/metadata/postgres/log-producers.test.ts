// Where a producer's state lies: within the partition's row or in a row of its own, at one place, found by every broker.
import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createTopic, Flushes } from '../contract/store.ts';
import { appendSequence, newSequences, type Sequences } from '../sequences.ts';
import { clockedDatabase, openBroker } from './contract-store.ts';
import type { PostgresMetadata } from './index.ts';
import {
  INLINE_IDLE_MS,
  INLINE_PRODUCERS,
  indexOfProducer,
  keptProducers,
  NO_PRODUCERS,
  oldestActiveMs,
  producerCount,
  SpilledProducers,
  sequencesAt,
  withProducer,
} from './log-producers.ts';
import { startPostgres, type TestServer } from './testing.ts';

function sequencesOf(epoch: number, nowMs: number, batches: number): Sequences {
  const sequences = newSequences();
  for (let n = 0; n < batches; n += 1)
    appendSequence(sequences, { epoch, first: n, last: n, offset: 2 ** 40 + n, nowMs: nowMs + n });
  return sequences;
}

describe('packed', () => {
  test('states come back as they were, whoever else is there', () => {
    const state = fc.tuple(
      fc.integer({ min: 0, max: 2 ** 50 }),
      fc.integer({ min: 0, max: 32_767 }),
      fc.integer({ min: 0, max: 2 ** 42 }),
      fc.integer({ min: 0, max: 7 }),
    );
    const states = fc.uniqueArray(state, {
      maxLength: INLINE_PRODUCERS,
      selector: ([producerId]) => producerId,
    });
    fc.assert(
      fc.property(states, (given) => {
        let packed = NO_PRODUCERS;
        for (const [producerId] of given) packed = withProducer(packed, producerId, newSequences());
        for (const [producerId, epoch, nowMs, batches] of given)
          packed = withProducer(packed, producerId, sequencesOf(epoch, nowMs, batches));
        expect(producerCount(packed)).toBe(given.length);
        for (const [producerId, epoch, nowMs, batches] of given) {
          const found = sequencesAt(packed, indexOfProducer(packed, producerId));
          expect(found).toEqual(sequencesOf(epoch, nowMs, batches));
          const rest = keptProducers(packed, (id) => id !== producerId);
          expect(indexOfProducer(rest, producerId)).toBe(-1);
          expect(producerCount(rest)).toBe(given.length - 1);
        }
      }),
      { seed: 7 },
    );
  });

  test('there is room for few; the longest idle is known', () => {
    let packed = NO_PRODUCERS;
    expect(oldestActiveMs(packed)).toBeNull();
    for (let id = 0; id < INLINE_PRODUCERS; id += 1)
      packed = withProducer(packed, id, sequencesOf(0, 100 - id, 1));
    expect(oldestActiveMs(packed)).toBe(101 - INLINE_PRODUCERS);
    expect(() => withProducer(packed, 99, newSequences())).toThrow(/few/);
  });

  test('hints are forgotten before they fill memory', () => {
    const hints = new SpilledProducers();
    for (let n = 0; n < 200_000; n += 1) hints.add(n, 1);
    expect(hints.has(0, 1)).toBe(true);
    hints.add(0, 2);
    expect([hints.has(0, 1), hints.has(0, 2)]).toEqual([false, true]);
  });
});

describe('in the store', () => {
  let server: TestServer;
  let url: string;
  let one: PostgresMetadata;
  let watcher: pg.Client;
  let partitionId: number;
  let topics = 0;
  const flushes = new Flushes();

  beforeAll(async () => {
    server = await startPostgres();
    url = await clockedDatabase(server);
    one = await openBroker(url);
    watcher = new pg.Client({ connectionString: url });
    await watcher.connect();
  });
  afterAll(async () => {
    await watcher.end();
    await one.close();
    await server.stop();
  });
  beforeEach(async () => {
    const topicId = `topic ${++topics}`;
    [partitionId] = (await createTopic(one, 1, { topicId, name: topicId })) as [number];
  });

  const producers = async (count: number): Promise<number[]> => {
    const ids: number[] = [];
    for (let n = 0; n < count; n += 1) ids.push((await one.producers.initProducerId(0)).producerId);
    return ids;
  };

  async function write(broker: PostgresMetadata, producerIds: readonly number[], sequence: number) {
    const batches = producerIds.map((producerId) => ({ partitionId, producerId, sequence }));
    const [done] = await broker.log.commit([flushes.of(batches)]);
    return { codes: [...done!.errorCodes], duplicates: [...done!.duplicates] };
  }

  /** Ids of producers by where their states lie. */
  async function places() {
    const row = await watcher.query(
      'SELECT producers, spilled, oldest_producer_ms FROM log_partitions WHERE partition_id = $1',
      [partitionId],
    );
    const rows = await watcher.query<{ producer_id: string }>(
      'SELECT producer_id FROM producer_sequences WHERE partition_id = $1 ORDER BY producer_id',
      [partitionId],
    );
    const { producers: packed, spilled } = row.rows[0];
    return {
      inline: packed === null ? 0 : producerCount(new Uint8Array(packed)),
      rows: rows.rows.map(({ producer_id: id }) => Number(id)),
      spilled,
    };
  }

  test('L5: the first lie in the partition’s row, others beside it; every broker finds them all', async () => {
    const ids = await producers(INLINE_PRODUCERS + 2);
    const none = ids.map(() => 0);
    const all = ids.map(() => 1);
    expect(await write(one, ids.slice(0, INLINE_PRODUCERS), 0)).toMatchObject({
      codes: none.slice(2),
    });
    expect(await places()).toEqual({ inline: INLINE_PRODUCERS, rows: [], spilled: false });
    expect(await write(one, ids, 0)).toEqual({ codes: none, duplicates: [...all.slice(2), 0, 0] });
    const beside = { inline: INLINE_PRODUCERS, rows: ids.slice(INLINE_PRODUCERS), spilled: true };
    expect(await places()).toEqual(beside);
    // One that has no hints yet, twice: without and with them.
    const two = await openBroker(url);
    for (const broker of [two, two, one])
      expect(await write(broker, ids, 0)).toEqual({ codes: none, duplicates: all });
    expect(await write(two, ids, 1)).toEqual({ codes: none, duplicates: none });
    expect(await write(one, ids, 1)).toEqual({ codes: none, duplicates: all });
    expect(await write(one, ids, 3)).toMatchObject({ codes: ids.map(() => 45) });
    expect(await places()).toEqual(beside);
    const [described] = await two.transactions.describeProducers([partitionId]);
    expect(described!.map(({ producerId, lastSequence }) => [producerId, lastSequence])).toEqual(
      ids.map((id) => [id, 1]),
    );
    await two.close();
  });

  test('who is idle gives its place to a newcomer, and is known on', async () => {
    const ids = await producers(INLINE_PRODUCERS + 1);
    const [first, ...others] = ids as [number, ...number[]];
    const newcomer = others.pop()!;
    await write(one, [first, ...others], 0);
    await watcher.query(`SELECT setval('test_clock', store_ms() + $1)`, [INLINE_IDLE_MS + 1_000]);
    await write(one, others, 1);
    await write(one, [newcomer], 0);
    expect(await places()).toEqual({ inline: INLINE_PRODUCERS, rows: [first], spilled: true });
    expect(await write(one, [first, newcomer], 0)).toEqual({ codes: [0, 0], duplicates: [1, 1] });
    expect(await write(one, [first, newcomer], 1)).toEqual({ codes: [0, 0], duplicates: [0, 0] });
  });

  test('states before there was room in rows are found, and expire with the others', async () => {
    const ids = await producers(2);
    await write(one, ids, 0);
    const state = Buffer.from(sequencesOf(0, 5, 1).buffer);
    await watcher.query(
      'UPDATE log_partitions SET producers = NULL, oldest_producer_ms = NULL, spilled = true WHERE partition_id = $1',
      [partitionId],
    );
    await watcher.query('INSERT INTO producer_sequences VALUES ($1, $2, 5, $3)', [
      partitionId,
      ids[0],
      state,
    ]);
    expect(await write(one, ids, 0)).toEqual({ codes: [0, 0], duplicates: [1, 0] });
    expect(await places()).toEqual({ inline: 1, rows: [ids[0]], spilled: true });
    const idleSinceMs = (await one.log.storeMs()) + 1;
    expect(await one.producers.expire(idleSinceMs, 1_000)).toBeGreaterThanOrEqual(2);
    expect(await places()).toEqual({ inline: 0, rows: [], spilled: false });
    expect(await one.producers.expire(idleSinceMs, 1_000)).toBe(0);
  });
});
