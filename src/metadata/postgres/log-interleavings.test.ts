// Two transactions that meet on a real server, stopped between their statements by a third one's locks: each case says who
// is first, and what is right then. And connections that die before, in and after COMMIT.
import { connect, createServer, type Server, type Socket } from 'node:net';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../base/clock.ts';
import { cleaningOf, createTopic, Flushes } from '../contract/store.ts';
import type { CommittedFlush } from '../log.ts';
import { openIndex } from '../packed-index.ts';
import type { TransactionState } from '../transactions.ts';
import { clockedDatabase, openBroker } from './contract-store.ts';
import { type PostgresMetadata, postgresMigrations } from './index.ts';
import { startPostgres, type TestServer } from './testing.ts';

let server: TestServer;
let url: string;
/** Two brokers. */
let one: PostgresMetadata;
let two: PostgresMetadata;
let watcher: pg.Client;
let topicId: string;
let a: number;
let b: number;
let topics = 0;
let before: number;
const flushes = new Flushes();

beforeAll(async () => {
  server = await startPostgres();
  url = await clockedDatabase(server);
  [one, two] = await Promise.all([openBroker(url), openBroker(url)]);
  watcher = new pg.Client({ connectionString: url });
  await watcher.connect();
});
afterAll(async () => {
  await watcher.end();
  await Promise.all([one.close(), two.close()]);
  await server.stop();
});
beforeEach(async () => {
  topicId = `topic ${++topics}`;
  [a, b] = (await createTopic(one, 2, { topicId, name: topicId })) as [number, number];
  before = await one.log.lastCommitNumber();
});

/** Holds rows, or whatever `sql` changes, until it is let go of. */
async function hold(sql: string, values: unknown[] = []) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query('BEGIN');
  await client.query(sql, values);
  const end = async (how: 'COMMIT' | 'ROLLBACK') => {
    await client.query(how);
    await client.end();
  };
  return { release: () => end('ROLLBACK'), commit: () => end('COMMIT') };
}

const holdPartition = (partitionId: number) =>
  hold('SELECT 1 FROM log_partitions WHERE partition_id = $1 FOR UPDATE', [partitionId]);
/** Whoever commits has written all and waits for its number. */
const holdCounter = () => hold('SELECT 1 FROM log_counter FOR UPDATE');
const holdVersions = () => hold('SELECT 1 FROM versions FOR UPDATE');

/** Until exactly so many sessions wait for locks. @returns their process ids. */
async function blocked(count: number): Promise<readonly number[]> {
  for (;;) {
    const { rows } = await watcher.query(
      `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    if (rows.length === count) return rows.map(({ pid }) => pid as number);
    await systemClock.sleep(5);
  }
}

/** Under way; whether it fails is looked at later. */
function started<T>(work: Promise<T>): Promise<T> {
  work.catch(() => {});
  return work;
}

const batch = (partitionId: number) => ({ partitionId });
const offsets = ([done]: readonly CommittedFlush[]) => [...done!.baseOffsets];
const codes = ([done]: readonly CommittedFlush[]) => [...done!.errorCodes];
const number = ([done]: readonly CommittedFlush[]) => done!.commitNumber - before;

async function begin(): Promise<TransactionState> {
  const init = { type: 'init', timeoutMs: 60_000 } as const;
  const [outcome] = await one.transactions.apply([{ transactionalId: topicId, event: init }], 1);
  const { producerId, producerEpoch } = outcome!.state!;
  const event = { type: 'add-partitions', partitionIds: [a], producerId, producerEpoch } as const;
  const [added] = await one.transactions.apply([{ transactionalId: topicId, event }], 1);
  return added!.state!;
}

function transactional({ producerId, producerEpoch: epoch, incarnation }: TransactionState) {
  const transaction = { incarnation, mode: 'verify' } as const;
  return flushes.of([{ partitionId: a, producerId, epoch, sequence: 0, transaction }]);
}

function ending({ producerId, producerEpoch }: TransactionState) {
  const event = { type: 'end', committed: true, bump: false, producerId, producerEpoch } as const;
  return two.transactions.apply([{ transactionalId: topicId, event }], 1);
}

test('two commits that name the same partitions in opposite order follow one another', async () => {
  const gate = await holdPartition(b);
  const first = started(one.log.commit([flushes.of([batch(a), batch(b)])]));
  await blocked(1);
  const second = started(two.log.commit([flushes.of([batch(b), batch(a)])]));
  await blocked(2);
  await gate.release();
  expect(offsets(await first)).toEqual([0, 0]);
  expect(offsets(await second)).toEqual([1, 1]);
  expect([number(await first), number(await second)]).toEqual([1, 2]);
});

test('a commit that has locked its transaction is before the end of it (L6)', async () => {
  const state = await begin();
  const gate = await holdPartition(a);
  const written = started(one.log.commit([transactional(state)]));
  await blocked(1);
  const ended = started(ending(state));
  await blocked(2);
  await gate.release();
  expect(codes(await written)).toEqual([0]);
  expect((await ended)[0]).toMatchObject({ errorCode: 0, commitNumber: before + 2 });
  expect(await one.log.partitions([a])).toMatchObject([{ highWatermark: 2, lastStableOffset: 2 }]);
});

test('a commit that finds its transaction ending waits, and is refused (L6)', async () => {
  const state = await begin();
  const gate = await holdPartition(a);
  const ended = started(ending(state));
  await blocked(1);
  const written = started(one.log.commit([transactional(state)]));
  await blocked(2);
  await gate.release();
  expect((await ended)[0]).toMatchObject({ errorCode: 0 });
  expect(codes(await written)).toEqual([48]);
  expect(await one.log.partitions([a])).toMatchObject([{ highWatermark: 1, lastStableOffset: 1 }]);
});

test('a commit before the deletion of its topic counts; nothing of it outlasts the topic', async () => {
  const { producerId } = await one.producers.initProducerId(1);
  const gate = await holdCounter();
  const written = started(
    one.log.commit([flushes.of([{ partitionId: a, producerId, sequence: 0 }])]),
  );
  await blocked(1);
  const deleted = started(two.topics.delete(topicId));
  await blocked(2);
  await gate.release();
  expect(codes(await written)).toEqual([0]);
  await deleted;
  expect(await one.log.partitions([a, b])).toEqual([]);
  const left = await watcher.query('SELECT 1 FROM producer_sequences WHERE partition_id = $1', [a]);
  expect(left.rows).toEqual([]);
  expect((await one.log.follow(before, 10)).rows).toHaveLength(1);
});

test('a commit after the deletion of its topic hears so and brings nothing back', async () => {
  const gate = await holdVersions();
  const deleted = started(two.topics.delete(topicId));
  await blocked(1);
  const written = started(one.log.commit([flushes.of([batch(a), batch(b)])]));
  await blocked(2);
  await gate.release();
  await deleted;
  expect(codes(await written)).toEqual([3, 3]);
  expect(await one.log.partitions([a, b])).toEqual([]);
});

test('a retry while the first attempt is under way waits for it and gets its outcome', async () => {
  const flush = flushes.of([batch(a), batch(b)]);
  const hedge = { ...flush, object: { ...flush.object, key: `${flush.object.key}/hedge` } };
  const gate = await holdCounter();
  const first = started(one.log.commit([flush]));
  await blocked(1);
  const again = started(two.log.commit([hedge]));
  await blocked(2);
  await gate.release();
  const [done] = await first;
  expect(done).toMatchObject({ fresh: true, commitNumber: before + 1 });
  expect((await again)[0]).toEqual({ ...done, fresh: false });
  expect(await one.log.lastCommitNumber()).toBe(before + 1);
  // The key of the second attempt stays free for the sweeper.
  expect(await one.objects.claimKeys([hedge.object.key], 1)).toEqual([hedge.object.key]);
});

test('a key that the sweeper has claimed, and not yet committed, decides about the commit', async () => {
  for (const how of ['commit', 'release'] as const) {
    const flush = flushes.of([batch(a)]);
    const sweeper = await hold(
      `INSERT INTO log_objects (key, kind, generation, state, bytes, created_ms, changed_ms)
       VALUES ($1, 'object', 0, 'deleting', 0, 1, 1)`,
      [flush.object.key],
    );
    const written = started(one.log.commit([flush]));
    await blocked(1);
    await sweeper[how]();
    if (how === 'commit') await expect(written).rejects.toMatchObject({ code: 'conflict' });
    else expect([number(await written), ...offsets(await written)]).toEqual([1, 0]);
  }
});

test('a key that a commit has used, and not yet committed, is no orphan (L10)', async () => {
  const [flush, last] = [flushes.of([batch(a)]), flushes.of([batch(b)])];
  const gate = await hold(
    `INSERT INTO log_objects (key, kind, generation, state, bytes, created_ms, changed_ms)
     VALUES ($1, 'object', 0, 'deleting', 0, 1, 1)`,
    [last.object.key],
  );
  const written = started(one.log.commit([flush, last]));
  await blocked(1);
  const claimed = started(two.objects.claimKeys([flush.object.key], 1));
  await blocked(2);
  await gate.release();
  expect(await written).toHaveLength(2);
  expect(await claimed).toEqual([]);
});

/** Two sealed objects with four and two records of `a`. */
async function sealedObjects() {
  const done = await one.log.commit([
    flushes.of([{ partitionId: a, records: 4 }]),
    flushes.of([{ partitionId: a, records: 2 }]),
  ]);
  const entries = [entryOf(0, 4), entryOf(4, 6)];
  for (const [n, { objectId }] of done.entries())
    await one.log.seal({ objectId, bytes: 1, entries: [entries[n]!] });
  return done.map(({ objectId }, n) => ({ ...entries[n]!, objectId }));
}

function entryOf(baseOffset: number, endOffset: number) {
  const bytes = (endOffset - baseOffset) * 100;
  const counts = { recordCount: 1, runCount: 1, maxTimestamp: -1, commitNumber: before + 2 };
  const place = { indexPosition: 0, indexLength: 1, bytes };
  return { partitionId: a, baseOffset, endOffset, ...place, ...counts };
}

test('compaction after retention leaves out what lies below the log start', async () => {
  const [old, young] = await sealedObjects();
  const gate = await holdVersions();
  const moved = started(
    one.log.moveLogStarts([{ partitionId: a, logStartOffset: 4, freedBytes: 0 }]),
  );
  await blocked(1);
  const replaced = started(
    two.objects.replace({
      object: { key: `stream/${topicId}/1`, bytes: 1 },
      entries: [entryOf(0, 4), entryOf(4, 6)],
      replaced: [old!, young!],
      openObjects: [],
      nowMs: 1,
    }),
  );
  await blocked(2);
  await gate.release();
  await moved;
  const entries = await one.objects.entriesOf([await replaced]);
  expect(entries.map((entry) => entry.baseOffset)).toEqual([4]);
  expect(await one.log.partitions([a])).toMatchObject([{ logStartOffset: 4, sizeBytes: 200 }]);
});

test('compaction finds entries dropped by retention gone, which is fine, or swapped, which is not', async () => {
  const [old, young] = await sealedObjects();
  await one.log.deleteRecords(a, 4);
  expect(await one.objects.dropExpired(10)).toEqual([{ partitionId: a, bytes: 400 }]);
  const swap = (key: string) => ({
    object: { key: `stream/${topicId}/${key}`, bytes: 1 },
    entries: [entryOf(4, 6)],
    replaced: [old!, young!],
    openObjects: [],
    nowMs: 1,
  });
  const gate = await holdPartition(a);
  const first = started(one.objects.replace(swap('1')));
  await blocked(1);
  const second = started(two.objects.replace(swap('2')));
  await blocked(2);
  await gate.release();
  await first;
  await expect(second).rejects.toMatchObject({ code: 'conflict' });
  expect(await one.log.partitions([a])).toMatchObject([{ sizeBytes: 200 }]);
});

test('markers join the newest object, or one of their own while that is being compacted', async () => {
  for (const compacted of [false, true]) {
    const state = await begin();
    const [done] = await one.log.commit([transactional(state)]);
    const gate = compacted
      ? await hold('SELECT 1 FROM log_objects WHERE object_id = $1 FOR NO KEY UPDATE', [
          done!.objectId,
        ])
      : undefined;
    const [outcome] = await ending(state);
    const commitNumber = outcome!.commitNumber!;
    await gate?.release();
    const { rows } = await one.log.follow(commitNumber - 1, 1);
    expect(openIndex(rows[0]!.index).count).toBe(1);
    if (compacted) expect(rows[0]!.objectKey).toBe(`markers/${commitNumber}`);
    else expect(rows[0]!.objectId).toBe(done!.objectId);
  }
});

test('a marker that joined an object before it was swapped makes the swap void', async () => {
  const state = await begin();
  const [done] = await one.log.commit([transactional(state)]);
  // As the end of a transaction does it.
  const marker = await hold(
    `WITH object AS MATERIALIZED (SELECT object_id FROM log_objects WHERE object_id = $1 FOR SHARE)
     INSERT INTO flushes (commit_number, flush_id, object_id, committed_ms, packed_index)
     SELECT $2, 'x', object_id, 1, packed_index FROM flushes JOIN object USING (object_id)`,
    [done!.objectId, before + 2],
  );
  const replaced = started(
    two.objects.replace({
      object: { key: `stream/${topicId}`, bytes: 1 },
      entries: [entryOf(0, 1)],
      replaced: [],
      openObjects: [done!.objectId],
      openCommit: before + 1,
      nowMs: 1,
    }),
  );
  await blocked(1);
  await marker.commit();
  await expect(replaced).rejects.toMatchObject({ code: 'conflict' });
  expect(await one.objects.notOpen([done!.objectId])).toEqual([]);
  await watcher.query('DELETE FROM flushes WHERE commit_number = $1', [before + 2]);
});

test('nobody sees a number before those below it, and a rollback leaves no gap', async () => {
  const other = await hold('UPDATE log_counter SET last_commit = last_commit + 1');
  const written = started(one.log.commit([flushes.of([batch(a)])]));
  await blocked(1);
  expect(await two.log.follow(before, 10)).toMatchObject({ rows: [], lastCommit: before });
  await other.release();
  expect(number(await written)).toBe(1);
  expect((await two.log.follow(before, 10)).rows).toMatchObject([{ commitNumber: before + 1 }]);
});

/** As the program of the version before writes it. */
const NOTE_CLEANED = `
  INSERT INTO log_cleanings (partition_id, clean_end, clean_bytes, tombstone_bytes, horizon_ms, cleaned_ms)
  VALUES ($1, $2, 0, 0, 0, 1)
  ON CONFLICT (partition_id) DO UPDATE SET clean_end = excluded.clean_end, cleaned_ms = excluded.cleaned_ms`;

test('nobody hears of a compaction by key before those below its version (L7)', async () => {
  const { version } = await one.objects.cleanedSince(-1);
  for (const [how, end] of [
    ['commit', 1],
    ['release', 2],
  ] as const) {
    const other = await hold(NOTE_CLEANED, [a, end]);
    const noted = started(one.objects.noteCleaned([cleaningOf(b, end)]));
    await blocked(1);
    const before = await two.objects.cleanedSince(version);
    await other[how]();
    await noted;
    const after = await two.objects.cleanedSince(before.version);
    const last = { partitionId: b, cleanEnd: end };
    expect(before.cleanings).toHaveLength(how === 'commit' ? 0 : 2);
    expect(after.cleanings).toEqual(
      how === 'commit' ? [{ partitionId: a, cleanEnd: end }, last] : [last],
    );
    expect((await two.objects.cleanedSince(after.version)).cleanings).toEqual([]);
  }
});

test('compactions that name the same partitions in opposite order follow one another', async () => {
  const gate = await holdVersions();
  const first = started(one.objects.noteCleaned([cleaningOf(a, 1), cleaningOf(b, 1)]));
  await blocked(1);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const second = started(client.query(NOTE_CLEANED.replace('$1, $2', `${b}, 2`)));
  await blocked(2);
  await gate.release();
  await Promise.all([first, second]);
  await client.end();
  const { cleanings } = await two.objects.cleanedSince(-1);
  expect(cleanings.slice(-2)).toEqual([
    { partitionId: a, cleanEnd: 1 },
    { partitionId: b, cleanEnd: 2 },
  ]);
});

test('a broker of the version before reads and notes compactions by key, and is heard', async () => {
  const names = postgresMigrations.map(({ name }) => name);
  const since = names.indexOf('objects-3');
  const upgraded = await server.migrated(postgresMigrations.filter((_, n) => n !== since));
  const old = new pg.Client({ connectionString: upgraded });
  await old.connect();
  await old.query(
    'INSERT INTO log_partitions SELECT n, 0, 0, -1, 0 FROM generate_series(1, 2) AS n',
  );
  const read = () => old.query({ name: 'read', text: 'SELECT * FROM log_cleanings' });
  const note = (...values: number[]) => old.query({ name: 'note', text: NOTE_CLEANED, values });
  await note(1, 5);
  await read();
  const broker = await openBroker(upgraded);
  const heard = await broker.objects.cleanedSince(-1);
  expect(heard.cleanings).toEqual([{ partitionId: 1, cleanEnd: 5 }]);
  await note(1, 6);
  await note(2, 7);
  expect((await read()).rows).toHaveLength(2);
  expect((await broker.objects.cleanedSince(heard.version)).cleanings).toEqual([
    { partitionId: 1, cleanEnd: 6 },
    { partitionId: 2, cleanEnd: 7 },
  ]);
  await old.query('DELETE FROM log_cleanings WHERE partition_id = 1');
  expect((await broker.objects.cleanedSince(heard.version)).cleanings).toEqual([
    { partitionId: 2, cleanEnd: 7 },
  ]);
  await old.end();
  await broker.close();
});

test('whoever waits for a lock for too long has done nothing', async () => {
  const hasty = await openBroker(url, { 'metadata.postgres.lock.timeout.ms': '50' });
  const gate = await holdPartition(b);
  const flush = flushes.of([batch(a), batch(b)]);
  await expect(hasty.log.commit([flush])).rejects.toMatchObject({ code: 'unavailable' });
  await gate.release();
  expect(await one.log.partitions([a])).toMatchObject([{ highWatermark: 0 }]);
  expect(offsets(await hasty.log.commit([flush]))).toEqual([0, 0]);
  await hasty.close();
});

test('a connection that dies while it waits for locks has done nothing: unavailable', async () => {
  const gate = await holdPartition(a);
  const flush = flushes.of([batch(a)]);
  const written = started(one.log.commit([flush]));
  const [pid] = await blocked(1);
  await watcher.query('SELECT pg_terminate_backend($1)', [pid]);
  await expect(written).rejects.toMatchObject({ code: 'unavailable' });
  await gate.release();
  expect((await one.log.commit([flush]))[0]).toMatchObject({ fresh: true });
});

test('one that dies between its writes and COMMIT may have done it: unknown, and the retry is the first', async () => {
  const gate = await holdCounter();
  const flush = flushes.of([batch(a)]);
  const written = started(one.log.commit([flush]));
  const [pid] = await blocked(1);
  await watcher.query('SELECT pg_terminate_backend($1)', [pid]);
  await expect(written).rejects.toMatchObject({ code: 'timeout' });
  await gate.release();
  const [done] = await one.log.commit([flush]);
  expect(done).toMatchObject({ fresh: true, commitNumber: before + 1 });
});

test('the answer to COMMIT that never comes: unknown, and the retry learns what happened', async () => {
  const relay = await Relay.to(url);
  const far = await openBroker(relay.url);
  const flush = flushes.of([batch(a), batch(b)]);
  const gate = await holdCounter();
  const written = started(far.log.commit([flush]));
  await blocked(1);
  relay.swallow();
  await gate.release();
  while ((await one.log.lastCommitNumber()) === before) await systemClock.sleep(5);
  relay.cut();
  await expect(written).rejects.toMatchObject({ code: 'timeout' });
  const [done] = await two.log.commit([flush]);
  expect(done).toMatchObject({ fresh: false, commitNumber: before + 1 });
  expect([...done!.baseOffsets]).toEqual([0, 0]);
  expect((await far.log.commit([flush]))[0]).toEqual(done);
  await far.close();
  await relay.close();
});

/** Between a broker and the server: passes everything on until it is told not to bring answers back. */
class Relay {
  readonly #server: Server;
  readonly #sockets: Socket[] = [];
  readonly url: string;
  #swallows = false;

  private constructor(listening: Server, url: string) {
    this.#server = listening;
    this.url = url;
  }

  static async to(target: string): Promise<Relay> {
    const { hostname, port } = new URL(target);
    const listening = createServer();
    await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve));
    const through = new URL(target);
    through.port = String((listening.address() as { port: number }).port);
    const relay = new Relay(listening, through.href);
    listening.on('connection', (near) => {
      const far = connect(Number(port), hostname);
      relay.#sockets.push(near, far);
      for (const socket of [near, far]) socket.on('error', () => {});
      near.on('data', (bytes) => far.write(bytes)).on('close', () => far.destroy());
      far.on('close', () => near.destroy());
      far.on('data', (bytes) => {
        if (!relay.#swallows) near.write(bytes);
      });
    });
    return relay;
  }

  swallow(): void {
    this.#swallows = true;
  }

  /** Ends what is connected; new connections work again. */
  cut(): void {
    this.#swallows = false;
    for (const socket of this.#sockets.splice(0)) socket.destroy();
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
