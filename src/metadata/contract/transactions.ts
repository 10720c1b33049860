// Contract of `TransactionsMetadata` and of transactions in the log: a store against a naive model, states by the pure
// transition, the log as a list of records that is looked through from the start. Batches are admitted at one moment and
// committed at another, ends and restarts come between. Not for production code.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Metadata } from '../metadata.ts';
import { openIndex } from '../packed-index.ts';
import { type TestBatch, testColumns } from '../test-batches.ts';
import { step, type TransactionEvent, type TransactionState } from '../transactions.ts';
import {
  createTopic,
  type OpenStore,
  pendingOffsets,
  type StoreUnderTest,
  settled,
} from './store.ts';

const IDS = ['a', 'b'] as const;
type Id = (typeof IDS)[number];
const PARTITIONS = 2;
const TIMEOUT_MS = 100;

/** A record of the naive log; `open` until a marker ends its transaction. */
interface Rec {
  readonly producerId: number;
  readonly fate: 'plain' | 'open' | 'committed' | 'aborted' | 'marker';
}

interface Sent {
  readonly epoch: number;
  readonly sequence: number;
  readonly records: number;
  readonly offset: number;
}

class Model {
  readonly states = new Map<Id, TransactionState>();
  /** Raised by whatever ends the right to write. */
  readonly lives = new Map<Id, number>();
  readonly logs: Rec[][] = Array.from({ length: PARTITIONS }, () => []);
  readonly sent = new Map<string, Sent[]>();
  readonly fences = new Map<string, number>();
  nextProducerId = 0;

  apply(id: Id, event: TransactionEvent, nowMs: number): number {
    const newProducerId = () => this.nextProducerId++;
    const before = this.states.get(id);
    const { errorCode, next, ended } = step(id, before, event, { nowMs, newProducerId });
    if (next !== undefined) this.states.set(id, next);
    if (next?.incarnation !== before?.incarnation)
      this.lives.set(id, (this.lives.get(id) ?? 0) + 1);
    for (const p of ended?.partitions ?? []) {
      const fate = ended!.committed ? 'committed' : 'aborted';
      const log = this.logs[p - 1]!;
      for (const [n, rec] of log.entries())
        if (rec.producerId === ended!.producerId && rec.fate === 'open') log[n] = { ...rec, fate };
      log.push({ producerId: ended!.producerId, fate: 'marker' });
      this.fences.set(`${p}/${ended!.producerId}`, ended!.markerEpoch);
    }
    return errorCode;
  }

  /** [error code, base offset] of a batch. */
  produce(batch: Admitted, nowMs: number): readonly [number, number] {
    const { partitionId, producerId, epoch, sequence, records, mode, id, life } = batch;
    const log = this.logs[partitionId - 1]!;
    if (mode !== 'none') {
      const outside = mode === 'verify' ? 48 : 120;
      const state = this.states.get(id)!;
      if (state.producerId !== producerId) return [49, -1];
      if (state.producerEpoch !== epoch) return [47, -1];
      if (life !== this.lives.get(id)) return [outside, -1];
      if (mode !== 'implicit' && !state.partitions.has(partitionId)) return [outside, -1];
    }
    const key = `${partitionId}/${producerId}`;
    const all = this.sent.get(key) ?? [];
    const current = Math.max(all.at(-1)?.epoch ?? -1, this.fences.get(key) ?? -1);
    const same = all.filter((sent) => sent.epoch === current);
    const twin = same.slice(-5).find((s) => s.sequence === sequence && s.records === records);
    if (epoch === current && twin !== undefined) return [0, twin.offset];
    if (epoch < current) return [47, -1];
    const last = epoch === current ? same.at(-1) : undefined;
    if (sequence !== (last === undefined ? 0 : last.sequence + last.records)) return [45, -1];
    const open = log.some((rec) => rec.producerId === producerId && rec.fate === 'open');
    if (mode === 'none' && open) return [48, -1];
    const offset = log.length;
    this.sent.set(key, [...all, { epoch, sequence, records, offset }]);
    const fate = mode === 'none' ? 'plain' : 'open';
    for (let n = 0; n < records; n += 1) log.push({ producerId, fate });
    if (mode === 'implicit') {
      const incarnation = this.states.get(id)!.incarnation;
      const by = { producerId, producerEpoch: epoch };
      this.apply(id, { type: 'produce', partitionId, incarnation, mode, ...by }, nowMs);
    }
    return [0, offset];
  }

  stable(partitionId: number): number {
    const log = this.logs[partitionId - 1]!;
    const open = log.findIndex((rec) => rec.fate === 'open');
    return open === -1 ? log.length : open;
  }

  /** First offset and producer of aborted transactions that reach into [from, to), by their markers. */
  aborted(partitionId: number, from: number, to: number) {
    const first = new Map<number, number>();
    const found: { producerId: number; firstOffset: number }[] = [];
    for (const [offset, { producerId, fate }] of this.logs[partitionId - 1]!.entries()) {
      if (fate === 'aborted' && !first.has(producerId)) first.set(producerId, offset);
      const firstOffset = first.get(producerId);
      if (fate !== 'marker' || firstOffset === undefined) continue;
      first.delete(producerId);
      if (offset >= from && firstOffset < to) found.push({ producerId, firstOffset });
    }
    return found;
  }
}

interface Admitted {
  readonly id: Id;
  readonly partitionId: number;
  readonly producerId: number;
  readonly epoch: number;
  readonly sequence: number;
  readonly records: number;
  readonly mode: 'verify' | 'verify-abortable' | 'implicit' | 'none';
  readonly incarnation: number;
  readonly life: number;
}

const id = fc.constantFrom(...IDS);
const partitionId = fc.constantFrom(1, 2);
const action = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('admit' as const),
      id,
      partitionId,
      mode: fc.constantFrom('verify', 'verify-abortable', 'implicit', 'implicit', 'none' as const),
      records: fc.constantFrom(1, 2),
      /** 0 the next one, −1 the last again, 1 a gap. */
      step: fc.constantFrom(0, 0, 0, 0, 0, -1, 1),
      stale: fc.constantFrom(0, 0, 0, 0, 1),
    }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('flush' as const), count: fc.nat(4) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('add' as const), id, partitionId }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('end' as const),
      id,
      committed: fc.boolean(),
      bump: fc.boolean(),
      fails: fc.constantFrom(false, false, true),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('init' as const), id }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('time-out' as const), id }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('restart' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('checkpoint' as const) }) },
);

type Action = typeof action extends fc.Arbitrary<infer T> ? T : never;

class Run {
  readonly store: StoreUnderTest;
  readonly model = new Model();
  readonly waiting: Admitted[] = [];
  /** Next sequence by partition, producer and epoch, as a client counts. */
  readonly counters = new Map<string, { sequence: number; records: number }>();
  nowMs = 1_000;
  #flushes = 0;
  readonly #stable = [0, 0];

  constructor(store: StoreUnderTest) {
    this.store = store;
  }

  get metadata(): Metadata {
    return this.store.metadata;
  }

  async start(): Promise<void> {
    await this.store.at(this.nowMs);
    // In a fresh store: 1 and 2.
    await createTopic(this.metadata, PARTITIONS);
    for (const each of IDS) await this.apply(each, { type: 'init', timeoutMs: TIMEOUT_MS });
  }

  async apply(transactionalId: Id, event: TransactionEvent): Promise<void> {
    const [outcome] = await this.metadata.transactions.apply(
      [{ transactionalId, event }],
      this.nowMs,
    );
    const expected = this.model.apply(transactionalId, event, this.nowMs);
    expect(outcome!.errorCode).toBe(expected);
    expect(outcome!.state).toEqual(this.model.states.get(transactionalId));
  }

  async act(what: Action): Promise<void> {
    this.nowMs += 7;
    await this.store.at(this.nowMs);
    switch (what.do) {
      case 'admit':
        this.#admit(what);
        return;
      case 'flush':
        await this.#flush(what.count);
        return;
      case 'add': {
        const event = { type: 'add-partitions', partitionIds: [what.partitionId] } as const;
        await this.apply(what.id, { ...event, ...this.#identity(what.id) });
        return;
      }
      case 'end': {
        const { committed, bump } = what;
        const event = { type: 'end', committed, bump, ...this.#identity(what.id) } as const;
        if (what.fails) await this.#fails(what.id, event);
        await this.apply(what.id, event);
        return;
      }
      case 'init':
        await this.apply(what.id, { type: 'init', timeoutMs: TIMEOUT_MS });
        return;
      case 'time-out':
        await this.apply(what.id, { type: 'time-out' });
        return;
      case 'checkpoint':
        await settled(this.store, 1);
        return;
      case 'restart':
        await this.store.reopen();
    }
  }

  #identity(of: Id) {
    const { producerId, producerEpoch } = this.model.states.get(of)!;
    return { producerId, producerEpoch };
  }

  /** A transaction of the database that is rolled back changes nothing, on disk and in memory. */
  async #fails(of: Id, event: TransactionEvent): Promise<void> {
    if (this.model.states.get(of)!.partitions.size === 0) return;
    const restore = this.store.failMarkers?.('injected');
    if (restore === undefined) return;
    const request = { transactionalId: of, event };
    await this.metadata.transactions.apply([request], this.nowMs).then(
      ([outcome]) => expect(outcome!.ended).toBeUndefined(),
      (caught) => expect(String(caught)).toContain('injected'),
    );
    restore();
  }

  #admit(what: Extract<Action, { do: 'admit' }>): void {
    const { producerId, producerEpoch, incarnation } = this.model.states.get(what.id)!;
    const epoch = Math.max(0, producerEpoch - what.stale);
    const key = `${what.partitionId}/${producerId}/${epoch}`;
    const last = this.counters.get(key);
    const next = last === undefined ? 0 : last.sequence + last.records;
    const again = what.step === -1 && last !== undefined;
    const { sequence, records } = again
      ? last
      : { sequence: next + Math.max(0, what.step), records: what.records };
    if (what.step === 0) this.counters.set(key, { sequence, records });
    const { partitionId: to, mode } = what;
    const life = this.model.lives.get(what.id)!;
    const who = { id: what.id, producerId, epoch, incarnation, life };
    this.waiting.push({ ...who, partitionId: to, sequence, records, mode });
  }

  async #flush(count: number): Promise<void> {
    // Two flushes of one commit: the second sees what the first did.
    const flushes = [this.waiting.splice(0, count), this.waiting.splice(0, count)].map(
      (batches) => {
        const flushId = new Uint8Array(16).fill(1);
        flushId[15] = ++this.#flushes % 256;
        flushId[14] = this.#flushes >> 8;
        const object = {
          key: `wal/${this.#flushes >> 2}`,
          kind: 'file',
          generation: 1,
          bytes: 0,
        } as const;
        return {
          batches,
          commit: { flushId, object, nowMs: this.nowMs, batches: columns(batches) },
        };
      },
    );
    const done = await this.metadata.log.commit(flushes.map(({ commit }) => commit));
    for (const [f, { batches }] of flushes.entries()) {
      const expected = batches
        .map((batch, n) => ({ batch, n }))
        // Within a flush partitions come one after the other.
        .sort((x, y) => x.batch.partitionId - y.batch.partitionId || x.n - y.n)
        .map(({ batch, n }) => ({ n, outcome: this.model.produce(batch, this.nowMs) }));
      for (const { n, outcome } of expected)
        expect([done[f]!.errorCodes[n], done[f]!.baseOffsets[n]]).toEqual(outcome);
    }
  }

  async check(): Promise<void> {
    const { log, transactions } = this.metadata;
    expect(new Map((await transactions.load()).map((s) => [s.transactionalId, s]))).toEqual(
      this.model.states,
    );
    for (const partition of await log.partitions()) {
      const p = partition.partitionId;
      const stable = this.model.stable(p);
      expect(partition.highWatermark).toBe(this.model.logs[p - 1]!.length);
      expect(partition.lastStableOffset).toBe(stable);
      expect(stable).toBeGreaterThanOrEqual(this.#stable[p - 1]!);
      this.#stable[p - 1] = stable;
      for (let from = 0; from < stable; from += 1) {
        for (const to of [from + 1, from + 3, stable]) {
          if (to > stable) continue;
          expect(await log.abortedTransactions(p, from, to)).toEqual(
            this.model.aborted(p, from, to),
          );
        }
      }
    }
    await this.#checkMarkers();
    await this.#checkProducers();
  }

  async #checkProducers(): Promise<void> {
    const { model } = this;
    const described = await this.metadata.transactions.describeProducers([1, 2, 99]);
    expect(described[2]).toBeUndefined();
    const found = described
      .slice(0, 2)
      .flatMap((producers, p) =>
        producers!.map((state) => [
          `${p + 1}/${state.producerId}`,
          state.producerEpoch,
          state.lastSequence,
          state.currentTransactionStart,
        ]),
      );
    const keys = new Set([...model.sent.keys(), ...model.fences.keys()]);
    const expected = [...keys].map((key) => {
      const [p, producerId] = key.split('/').map(Number) as [number, number];
      const sent = model.sent.get(key) ?? [];
      const epoch = Math.max(sent.at(-1)?.epoch ?? -1, model.fences.get(key) ?? -1);
      const last = sent.findLast((batch) => batch.epoch === epoch);
      const start = model.logs[p - 1]!.findIndex(
        (rec) => rec.producerId === producerId && rec.fate === 'open',
      );
      return [key, epoch, last === undefined ? -1 : last.sequence + last.records - 1, start];
    });
    expect(found.sort()).toEqual(expected.sort());
  }

  /** Every marker of the index stands where the model has one. */
  async #checkMarkers(): Promise<void> {
    const found: string[] = [];
    for (const row of await this.metadata.log.flushesAfter(0, 10_000)) {
      const { count, kinds, partitionIds, baseOffsets, marker } = openIndex(row.index);
      for (let n = 0; n < count; n += 1)
        if (kinds[n] !== 0)
          found.push(`${partitionIds[n]}@${baseOffsets[n]} ${marker(n).producerId}`);
    }
    const expected = this.model.logs.flatMap((log, p) =>
      log.flatMap(({ fate, producerId }, offset) =>
        fate === 'marker' ? [`${p + 1}@${offset} ${producerId}`] : [],
      ),
    );
    expect(found.sort()).toEqual(expected.sort());
  }
}

function columns(batches: readonly Admitted[]) {
  return testColumns(
    batches.map(({ mode, incarnation, ...batch }): TestBatch => {
      return mode === 'none' ? batch : { ...batch, transaction: { incarnation, mode } };
    }),
  );
}

const offset = (partition: number, value: number) => ({
  partitionId: partition,
  offset: value,
  leaderEpoch: -1,
  metadata: 'm',
  commitMs: 5,
  expireMs: -1,
});

/** Runs the suite on stores that `open` makes; `runs` of the model, each on a store of its own. */
export function transactionsContract(name: string, open: OpenStore, runs: number): void {
  describe(`transactions contract: ${name}`, () => {
    test('store and model agree on every outcome, restarts and rolled back ends included (L5, L6, L7)', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(action, { minLength: 5, maxLength: 45 }), async (actions) => {
          const run = new Run(await open());
          await run.start();
          for (const what of actions) await run.act(what);
          await run.check();
          await run.store.reopen();
          await run.check();
          await run.store.close();
        }),
        { seed: 20_261_130, numRuns: runs },
      );
    });

    test('staged offsets go with their commit, over a restart, or not at all', async () => {
      const run = new Run(await open());
      await run.start();
      const topicId = '22222222-2222-4222-8222-222222222222';
      const [gone] = (await createTopic(run.metadata, 1, { topicId, name: 'other' })) as [number];
      const stage = (id: Id, groupId: string, offsets: ReturnType<typeof offset>[]) => {
        const { producerId, producerEpoch } = run.model.states.get(id)!;
        const by = { producerId, producerEpoch, mode: 'implicit' } as const;
        return run.apply(id, { type: 'stage-offsets', groupId, offsets, ...by });
      };
      await stage('a', 'g', [offset(1, 10), offset(gone, 3)]);
      await stage('b', 'g', [offset(2, 99)]);
      expect([...(await pendingOffsets(run.metadata.transactions, 'g'))].sort()).toEqual([
        1,
        2,
        gone,
      ]);
      await run.metadata.topics.delete(topicId);
      await run.store.reopen();
      const { transactions, groups } = run.metadata;
      expect([...(await pendingOffsets(transactions, 'g'))].sort()).toEqual([1, 2]);
      await run.store.at(run.nowMs + TIMEOUT_MS + 1);
      expect(await transactions.open(run.nowMs + TIMEOUT_MS + 1, 1)).toEqual({
        count: 2,
        oldestStartMs: 1_000,
        pastTimeout: ['a'],
      });
      await run.store.at(2_000);
      const end = async (transactionalId: Id, committed: boolean) => {
        const { producerId, producerEpoch } = run.model.states.get(transactionalId)!;
        const event = { type: 'end', committed, bump: true, producerId, producerEpoch } as const;
        return (await transactions.apply([{ transactionalId, event }], 2_000))[0]!;
      };
      const done = await end('a', true);
      expect(done).toMatchObject({ errorCode: 0, commitNumber: -1 });
      expect([...done.applied!.get('g')!.keys()]).toEqual([1]);
      expect((await end('b', false)).applied!.size).toBe(0);
      const [group] = await groups.load();
      expect(group!.offsets).toEqual([offset(1, 10)]);
      expect(await pendingOffsets(transactions, 'g')).toEqual([]);
      // What nobody uses goes, and its producer id with it.
      expect([...(await transactions.unused(2_000, 10))].sort()).toEqual(['a', 'b']);
      const expire = { type: 'expire', unusedSinceMs: 2_000 } as const;
      await transactions.apply([{ transactionalId: 'a', event: expire }], 3_000);
      expect(await transactions.describe(['a', 'b'])).toMatchObject([undefined, { producerId: 1 }]);
      await run.store.reopen();
      expect((await run.metadata.transactions.load()).length).toBe(1);
      await run.store.close();
    });

    test('producers with an open transaction are not forgotten, however long they are idle', async () => {
      const run = new Run(await open());
      await run.start();
      const sent = {
        id: 'a',
        partitionId: 1,
        mode: 'implicit',
        records: 1,
        step: 0,
        stale: 0,
      } as const;
      await run.act({ do: 'admit', ...sent });
      await run.act({ do: 'flush', count: 1 });
      await settled(run.store);
      expect(await run.metadata.producers.expire(1_000_000, 10)).toBe(0);
      await run.act({ do: 'end', id: 'a', committed: true, bump: false, fails: false });
      await settled(run.store);
      expect(await run.metadata.producers.expire(1_000_000, 10)).toBe(1);
      await run.store.close();
    });
  });
}
