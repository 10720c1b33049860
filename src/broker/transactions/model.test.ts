// Clients of both protocols and their zombies against two nodes over the real store: either may coordinate, the groups
// are on the first, batches go to whichever, and wait between their admission and their commit. Answers of the store get
// lost, leases move with and without their holder's knowledge, nodes restart, time passes. Whatever happened, an auditor finds every transaction whole (X1–X4, X9, X10): all its batches and offsets have one fate, the one answered.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { assert } from '../../base/assert.ts';
import { ManualClock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import { silentLogger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import { resolveSettings } from '../../base/settings.ts';
import { openIndex } from '../../metadata/packed-index.ts';
import { COORDINATOR_SHARDS } from '../../metadata/shards.ts';
import type { Database } from '../../metadata/sqlite/database.ts';
import { metadataOn, openDatabase, type SqliteMetadata } from '../../metadata/sqlite/index.ts';
import { type TestBatch, testColumns } from '../../metadata/test-batches.ts';
import type { Producer, TransactionsMetadata } from '../../metadata/transactions.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import { allOf, leaseBoard, type TestLeases } from '../testing/leases.ts';
import { AgreeableGroups } from '../testing/transactional-groups.ts';
import { TransactionCoordinator } from './coordinator.ts';
import { transactionSettings } from './settings.ts';

const IDS = ['a', 'b'] as const;
const PARTITIONS = [1, 2];
const TIMEOUT_MS = 5_000;
const LOST: ReadonlySet<number> = new Set([
  ErrorCode.COORDINATOR_NOT_AVAILABLE,
  ErrorCode.NOT_COORDINATOR,
]);

/** One transaction as its client sees it. */
interface Told {
  readonly number: number;
  readonly acked: { readonly partitionId: number; readonly offset: number; producerId: number }[];
  hasOffsets: boolean;
  /** What the client asked for and was told; `unknown`: asked to commit, never told. */
  outcome: 'open' | 'committed' | 'aborted' | 'unknown';
}

interface Waiting {
  readonly batch: TestBatch;
  readonly told: Told;
}

/** A producer instance; it stops for good once it is fenced. */
class Client {
  readonly id: string;
  readonly isV2: boolean;
  identity: Producer | undefined;
  told: Told;
  readonly sequences = new Map<number, number>();
  /** A batch of the present transaction was refused: it can only abort. */
  mustAbort = false;

  constructor(id: string, isV2: boolean, told: Told) {
    this.id = id;
    this.isV2 = isV2;
    this.told = told;
  }
}

type Action =
  | { readonly do: 'start'; readonly id: number; readonly isV2: boolean }
  | {
      readonly do: 'write';
      readonly client: number;
      readonly partition: number;
      /** The node that admits it. */
      readonly via: number;
    }
  | { readonly do: 'stage'; readonly client: number }
  | {
      readonly do: 'end';
      readonly client: number;
      readonly commit: boolean;
      /** Batches are still on their way: no client does that, a network does. */
      readonly isHasty: boolean;
    }
  | { readonly do: 'flush'; readonly count: number }
  | { readonly do: 'lose'; readonly how: 'before' | 'after' }
  | { readonly do: 'pass'; readonly ms: number }
  /** The other node coordinates from now on; the one before is told so, or finds that its time is up. */
  | { readonly do: 'move'; readonly isTold: boolean }
  | { readonly do: 'restart' };

class World {
  readonly #database: Database = openDatabase(':memory:');
  readonly #clock = new ManualClock();
  readonly #clients: Client[] = [];
  readonly #all: Told[] = [];
  readonly #identities = new Set<string>();
  /** Where groups are coordinated: what ends on the other node is not told to them. */
  #groups = new AgreeableGroups();
  #leases!: readonly TestLeases[];
  /** Which node coordinates. */
  #holder = 0;
  #asked = 0;
  #waiting: Waiting[] = [];
  #metadata: SqliteMetadata = metadataOn(this.#database);
  #nodes!: readonly TransactionCoordinator[];
  #lose: 'before' | 'after' | undefined;
  #flushes = 0;

  async start(): Promise<void> {
    await this.#metadata.topics.create({
      topicId: '22222222-2222-4222-8222-222222222222',
      name: 't',
      partitionCount: PARTITIONS.length,
      config: {},
      nowMs: 0,
    });
    await this.#load();
  }

  async act(action: Action): Promise<void> {
    switch (action.do) {
      case 'start':
        return this.#begin(IDS[action.id]!, action.isV2);
      case 'write':
        return this.#write(this.#pick(action.client), PARTITIONS[action.partition]!, action.via);
      case 'stage':
        return this.#stage(this.#pick(action.client));
      case 'end':
        return this.#end(this.#pick(action.client), action.commit, action.isHasty);
      case 'flush':
        return this.#flush(this.#waiting.splice(0, action.count));
      case 'lose':
        this.#lose = action.how;
        return;
      case 'pass':
        return this.#clock.advance(action.ms);
      case 'move':
        return this.#move(action.isTold);
      case 'restart':
        await this.#stop();
        this.#waiting = [];
        this.#metadata = metadataOn(this.#database);
        return this.#load();
    }
  }

  /** Lets everything come to an end, then looks at what is stored. */
  async audit(): Promise<void> {
    this.#lose = undefined;
    await this.#flush(this.#waiting.splice(0));
    await this.#clock.advance(TIMEOUT_MS + 3_000);
    expect((await this.#metadata.transactions.open(0, 1)).count, 'X9').toBe(0);
    const markers = await this.#markers();
    const stored = await this.#metadata.groups.load();
    const offsets = new Map(
      stored.map(({ group, offsets: [row] }) => [group.groupId, row!.offset]),
    );
    expect(await this.#groups.settle(this.#metadata.transactions, this.#metadata.groups)).toBe(0);
    const known = this.#groups.applied.map(([groupId, [offset]]) => [groupId, offset] as const);
    expect(offsets, 'X10: groups know what is stored').toEqual(new Map(known));
    for (const told of this.#all) {
      const fates = told.acked.map(({ partitionId, offset, producerId }) => {
        const marks = markers.get(partitionId) ?? [];
        const mark = marks.find((one) => one.offset > offset && one.producerId === producerId);
        assert(mark !== undefined, 'X2: every transaction has its marker');
        return mark.committed;
      });
      if (told.hasOffsets) fates.push(offsets.has(`g${told.number}`));
      expect(new Set(fates).size, 'X2, X3: a transaction is whole').toBeLessThanOrEqual(1);
      if (fates.length > 0 && told.outcome !== 'unknown')
        expect(fates[0], `transaction ${told.number}`).toBe(told.outcome === 'committed');
    }
    await this.#stop();
    this.#database.close();
  }

  async #stop(): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node.stop()));
  }

  async #move(isTold: boolean): Promise<void> {
    const names = allOf('transactions');
    const [from, to] = [this.#leases[this.#holder]!, this.#leases[1 - this.#holder]!];
    if (isTold) await from.lose(...names);
    else from.isLate = true;
    to.isLate = false;
    await to.take(...names);
    this.#holder = 1 - this.#holder;
  }

  async #load(): Promise<void> {
    // A restart reads groups anew, what is staged before their offsets.
    this.#groups = new AgreeableGroups();
    const shards = Array.from({ length: COORDINATOR_SHARDS }, (_, shard) => shard);
    for (const { transactionalId, groupIds } of await this.#metadata.transactions.staging(shards))
      this.#groups.pending.found(transactionalId, groupIds);
    for (const { group, offsets } of await this.#metadata.groups.load())
      this.#groups.applied.push([group.groupId, [offsets[0]!.offset]]);
    this.#leases = leaseBoard(this.#metadata.leases, 2);
    const [first, second] = this.#leases as [TestLeases, TestLeases];
    this.#nodes = [
      await this.#node(first, this.#groups),
      await this.#node(second, new AgreeableGroups()),
    ];
    await this.#leases[this.#holder]!.take(...allOf('transactions'));
  }

  #node(leases: TestLeases, groups: AgreeableGroups): Promise<TransactionCoordinator> {
    return TransactionCoordinator.load({
      metadata: this.#flaky(),
      leases,
      groups,
      settings: resolveSettings(transactionSettings, {}),
      clock: this.#clock,
      logger: silentLogger,
      metrics: noMetrics,
    });
  }

  /** The store, which does nothing, or whose answer is lost, where told so. */
  #flaky(): TransactionsMetadata {
    const store = this.#metadata.transactions;
    return new Proxy(store, {
      get: (_target, name: keyof TransactionsMetadata) => {
        if (name !== 'apply') return store[name].bind(store);
        return async (...args: Parameters<TransactionsMetadata['apply']>) => {
          const how = this.#lose;
          this.#lose = undefined;
          if (how === 'before') throw new FloeError('unavailable', 'the store is away');
          const outcomes = structuredClone(await store.apply(...args));
          if (how === 'after') throw new FloeError('timeout', 'the answer is lost');
          return outcomes;
        };
      },
    });
  }

  #pick(n: number): Client | undefined {
    const alive = this.#clients.filter(({ identity }) => identity !== undefined);
    return alive.length === 0 ? undefined : alive[n % alive.length];
  }

  #tell(): Told {
    const told: Told = { number: this.#all.length, acked: [], hasOffsets: false, outcome: 'open' };
    this.#all.push(told);
    return told;
  }

  async #begin(id: string, isV2: boolean): Promise<void> {
    const client = new Client(id, isV2, this.#tell());
    const reply = await this.#untilTold((node) =>
      node.initProducerId(id, { timeoutMs: TIMEOUT_MS }),
    );
    expect(reply.errorCode).toBe(0);
    const { producerId, producerEpoch } = reply;
    const name = `${producerId}/${producerEpoch}`;
    expect(this.#identities.has(name), `X4: ${name} is handed out once`).toBe(false);
    this.#identities.add(name);
    client.identity = { producerId, producerEpoch };
    this.#clients.push(client);
  }

  async #write(client: Client | undefined, partitionId: number, via: number): Promise<void> {
    if (client === undefined || client.mustAbort) return;
    const { id, isV2, identity, told } = client;
    if (!isV2) {
      const code = await this.#untilTold((node) =>
        node.addPartitions(id, identity!, [partitionId]),
      );
      if (code !== 0) return this.#fence(client, code);
    }
    const mode = isV2 ? 'implicit' : 'verify';
    const node = this.#nodes[via]!;
    const learnt = await node.learn(id, identity!, mode);
    const request = { transactionalId: id, ...identity!, partitionId, mode } as const;
    const admission = node.admit(request, learnt);
    if (typeof admission === 'number') {
      // Retriable: a real client sends it again, this one gives the transaction up.
      if (admission === ErrorCode.NOT_ENOUGH_REPLICAS) client.mustAbort = true;
      else this.#fence(client, admission);
      return;
    }
    const { producerId, producerEpoch: epoch } = identity!;
    const sequence = client.sequences.get(partitionId) ?? 0;
    client.sequences.set(partitionId, sequence + 1);
    const batch = { partitionId, producerId, epoch, sequence, transaction: admission };
    this.#waiting.push({ batch, told });
  }

  async #stage(client: Client | undefined): Promise<void> {
    if (client === undefined || client.mustAbort) return;
    const { id, identity, told } = client;
    const groupId = `g${told.number}`;
    const row = { partitionId: 1, offset: told.number, leaderEpoch: 0, metadata: '' };
    const offsets = [{ ...row, commitMs: 0, expireMs: -1 }];
    const staged = { groupId, offsets, mode: 'implicit' } as const;
    const code = await this.#untilTold(() => this.#nodes[0]!.stageOffsets(id, identity!, staged));
    if (code !== 0) return this.#fence(client, code);
    told.hasOffsets = true;
    expect(this.#groups.pending.has(groupId, 1)).toBe(true);
  }

  /** As clients do it: what is under way first, then the end, again until it is answered. */
  async #end(client: Client | undefined, commit: boolean, isHasty: boolean): Promise<void> {
    if (client === undefined) return;
    const { told, id, identity, isV2 } = client;
    const mine = this.#waiting.filter((one) => one.told === told);
    if (!isHasty) {
      this.#waiting = this.#waiting.filter((one) => one.told !== told);
      await this.#flush(mine);
    }
    const committed = commit && !client.mustAbort;
    if (told.acked.length === 0 && !told.hasOffsets && !(isV2 && !committed)) return;
    if (isHasty) this.#takeBack(client, mine);
    const { errorCode, ...next } = await this.#untilTold((node) =>
      node.end(id, identity!, { committed, bump: isV2 }),
    );
    if (errorCode !== 0) {
      // Fenced after a lost answer: nobody will ever tell this client.
      if (committed) told.outcome = 'unknown';
      return this.#fence(client, errorCode);
    }
    told.outcome = committed ? 'committed' : 'aborted';
    client.told = this.#tell();
    client.mustAbort = false;
    if (!isV2) return;
    client.identity = next;
    client.sequences.clear();
  }

  /** Batches that will be too late: their sequences are used again. */
  #takeBack({ sequences }: Client, late: readonly Waiting[]): void {
    for (const { batch } of late.toReversed()) sequences.set(batch.partitionId, batch.sequence!);
  }

  #fence(client: Client, code: number): void {
    expect([
      ErrorCode.PRODUCER_FENCED,
      ErrorCode.INVALID_PRODUCER_EPOCH,
      ErrorCode.INVALID_PRODUCER_ID_MAPPING,
      ErrorCode.INVALID_TXN_STATE,
    ]).toContain(code);
    client.identity = undefined;
  }

  async #untilTold<T extends number | { readonly errorCode: number }>(
    ask: (node: TransactionCoordinator) => Promise<T>,
  ): Promise<T> {
    // As clients do that look for the coordinator; they may begin with the wrong one.
    for (;;) {
      this.#asked += 1;
      const answer = await ask(this.#nodes[this.#asked % 2]!);
      const code = typeof answer === 'number' ? answer : answer.errorCode;
      if (!LOST.has(code)) return answer;
    }
  }

  async #flush(waiting: readonly Waiting[]): Promise<void> {
    if (waiting.length === 0) return;
    this.#flushes += 1;
    const flushId = new Uint8Array(16);
    new DataView(flushId.buffer).setUint32(0, this.#flushes);
    const key = `wal/${this.#flushes}`;
    const [done] = await this.#metadata.log.commit([
      {
        flushId,
        object: { key, kind: 'object', generation: 0, bytes: 0 },
        nowMs: this.#clock.now(),
        batches: testColumns(waiting.map(({ batch }) => batch)),
      },
    ]);
    for (const [n, { batch, told }] of waiting.entries()) {
      const { partitionId, producerId } = batch;
      if (done!.errorCodes[n] === 0)
        told.acked.push({ partitionId, offset: done!.baseOffsets[n]!, producerId: producerId! });
      else for (const client of this.#clients) if (client.told === told) client.mustAbort = true;
    }
  }

  async #markers() {
    const found = new Map<number, { offset: number; producerId: number; committed: boolean }[]>();
    for (const { index: bytes } of await this.#metadata.log.flushesAfter(0, 10_000)) {
      const index = openIndex(bytes);
      for (let n = 0; n < index.count; n += 1) {
        if (index.kinds[n] === 0) continue;
        const { producerId, committed } = index.marker(n);
        const marks = found.get(index.partitionIds[n]!) ?? [];
        marks.push({ offset: index.baseOffsets[n]!, producerId, committed });
        found.set(index.partitionIds[n]!, marks);
      }
    }
    return found;
  }
}

const client = fc.nat(2);
const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('start'), id: fc.nat(1), isV2: fc.boolean() }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('write'),
      client,
      partition: fc.nat(1),
      via: fc.nat(1),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('stage'), client }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('end'),
      client,
      commit: fc.boolean(),
      isHasty: fc.boolean(),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('flush'), count: fc.integer({ min: 1, max: 3 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('lose'), how: fc.constantFrom('before', 'after') }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('pass'), ms: fc.constantFrom(500, 4_000, 9_000) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('move'), isTold: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart') }) },
) as fc.Arbitrary<Action>;

test('every transaction is whole and as it was answered, whatever gets lost (X1–X4, X9, X10, X12)', {
  timeout: 60_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.boolean(),
      fc.array(action, { minLength: 10, maxLength: 60 }),
      async (isV2, actions) => {
        const world = new World();
        await world.start();
        await world.act({ do: 'start', id: 0, isV2 });
        for (const one of actions) await world.act(one);
        await world.audit();
      },
    ),
    { seed: 20_261_129, numRuns: 80 },
  );
});
