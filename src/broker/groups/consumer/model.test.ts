// Random histories against a simple model: members of both protocols that behave like consumers, a store that may fail,
// answers that get lost, topics that come, grow and go, restarts, time that jumps. The model knows who holds what, and
// what everybody was told; the machine's own assertions (K1–K5, K7) run inside every step.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ManualClock } from '../../../base/clock.ts';
import { FloeError } from '../../../base/error.ts';
import type {
  GroupChange,
  StoredConsumerGroup,
  StoredConsumerMember,
} from '../../../metadata/groups.ts';
import { ErrorCode } from '../../../protocol/errors.ts';
import { encodeSubscription } from '../../../protocol/messages/consumer-protocol.ts';
import { Deadlines } from '../deadlines.ts';
import type { Entry } from '../entry.ts';
import { GroupWriter } from '../writer.ts';
import {
  type ConsumerGroup,
  type ConsumerMember,
  consumerGroupState,
  newConsumerGroup,
  restoreConsumerGroup,
} from './group.ts';
import { ConsumerGroups } from './runner.ts';
import type { ConsumerEvent } from './step.ts';
import type { TopicView } from './topics.ts';

const SESSION_MS = 1_000;
const REBALANCE_MS = 2_000;
const CLIENTS = 5;
const RUNS = 100;
const TOPICS = ['a', 'b', 'ab'];

class Topics implements TopicView {
  version = 0;
  readonly #partitions = new Map<string, number[]>();
  #nextId = 1;

  partitionsOf(topic: string) {
    return this.#partitions.get(topic);
  }

  matching(pattern: string) {
    return [...this.#partitions.keys()].filter((name) => name.startsWith(pattern));
  }

  /** Makes the topic, or gives it more partitions, or deletes it. */
  resize(topic: string, count: number): void {
    const before = this.#partitions.get(topic) ?? [];
    this.version += 1;
    if (count === 0) this.#partitions.delete(topic);
    else if (count > before.length)
      this.#partitions.set(topic, [
        ...before,
        ...Array.from({ length: count - before.length }, () => this.#nextId++),
      ]);
  }

  all(): number[] {
    return [...this.#partitions.values()].flat();
  }
}

/** What a consumer believes and holds. */
interface Client {
  readonly name: string;
  readonly instanceId: string | null;
  readonly isClassic: boolean;
  memberId: string;
  /** −1 when it is no member. */
  epoch: number;
  /** Its member when it was last answered: another one of the same id is not what it believes to be. */
  known: ConsumerMember | undefined;
  /** What it works on. */
  held: ReadonlySet<number>;
  /** What it was told to work on. */
  told: ReadonlySet<number>;
  /** Its next request says everything. */
  full: boolean;
  /** What it last said it holds: said again only when it is another. */
  said: string;
  /** One request at a time, and nothing new is begun before its answer: what it said must stay true. */
  isWaiting: boolean;
  names: readonly string[];
  pattern: string;
}

class World {
  readonly clock = new ManualClock();
  readonly topics = new Topics();
  readonly clients: Client[] = Array.from({ length: CLIENTS }, (_, index) => ({
    name: `c${index}`,
    instanceId: index < 2 ? `i${index}` : null,
    isClassic: index === CLIENTS - 1,
    memberId: `c${index}`,
    epoch: -1,
    known: undefined,
    held: new Set(),
    told: new Set(),
    full: true,
    said: '',
    isWaiting: false,
    names: ['a'],
    pattern: '',
  }));
  entry: Entry = entryOf(newConsumerGroup('g', 0));
  runner = this.#newRunner();
  stored: StoredConsumerGroup | undefined;
  readonly writes: {
    changes: readonly GroupChange[];
    resolve(): void;
    reject(error: FloeError): void;
  }[] = [];
  readonly met = new Set<string>();
  /** True: writes succeed at once. */
  autoSettle = false;
  #nextId = 1;

  get group(): ConsumerGroup {
    return this.entry.group as ConsumerGroup;
  }

  #newRunner(): ConsumerGroups {
    const now = () => this.clock.now();
    return new ConsumerGroups({
      writer: new GroupWriter({ write: (changes) => this.#write(changes) }, () => {}),
      deadlines: new Deadlines(this.clock, now, () => this.runner.tick(this.entry)),
      topics: this.topics,
      configOf: () => ({
        sessionTimeoutMs: SESSION_MS,
        heartbeatIntervalMs: 100,
        maxSize: 10,
        defaultAssignor: 'uniform',
      }),
      now,
      stepped: (entry) => {
        const group = entry.group as ConsumerGroup;
        if (group.members.size > 1) this.met.add(consumerGroupState(group));
      },
    });
  }

  #write(changes: readonly GroupChange[]): Promise<readonly number[]> {
    return new Promise((resolve, reject) => {
      this.writes.push({ changes, resolve: () => resolve([]), reject });
      if (this.autoSettle) this.settle(true);
    });
  }

  /** The write under way ends, well or not. */
  settle(ok: boolean): void {
    const write = this.writes.shift();
    if (write === undefined) return;
    if (!ok) {
      write.reject(new FloeError('unavailable', 'the store is away'));
      return;
    }
    for (const change of write.changes) this.stored = applied(this.stored, change);
    write.resolve();
  }

  async ask<E extends ConsumerEvent>(event: E) {
    const before = { epoch: this.group.epoch, group: this.group };
    const answered = this.runner.ask(this.entry, event);
    if (before.group === this.group)
      expect(this.group.epoch, 'K2').toBeGreaterThanOrEqual(before.epoch);
    return answered;
  }

  /** Kill and start: what was stored is what there is, and nobody is answered. */
  restart(): void {
    this.writes.length = 0;
    const before = this.group;
    this.runner = this.#newRunner();
    const now = this.clock.now();
    this.entry = entryOf(
      this.stored === undefined
        ? newConsumerGroup('g', now)
        : restoreConsumerGroup(this.stored, { now, sessionTimeoutMs: SESSION_MS }),
    );
    for (const client of this.clients) {
      client.isWaiting = false;
      const survives = before.members.get(client.memberId) === client.known;
      client.known = survives ? this.group.members.get(client.memberId) : undefined;
    }
    this.runner.schedule(this.group);
  }

  newId(client: Client): string {
    return `${client.name}-${this.#nextId++}`;
  }

  /** K1 where it matters: of those who are members by the coordinator's word, no two work on the same partition. */
  checkHeld(): void {
    const holders = new Map<number, string>();
    // What is gone nobody can be given any more: whoever works on it hears of it in time.
    const existing = new Set(this.topics.all());
    for (const client of this.clients) {
      const member = this.group.members.get(client.memberId);
      // A zombie works on until it hears that it is none; its commits are refused.
      if (member === undefined || client.known !== member || client.epoch !== member.epoch)
        continue;
      const own = new Set([...member.assigned, ...member.revoking]);
      for (const id of client.held) {
        if (!existing.has(id)) continue;
        if (holders.has(id))
          throw new Error(`K1: ${client.name} and ${holders.get(id)} work on ${id}`);
        if (!own.has(id))
          throw new Error(`K8: ${client.name} works on ${id}, which is not its own`);
        holders.set(id, client.name);
      }
    }
  }
}

const HELD = { shard: 0, token: { name: 'groups/0', epoch: 1 }, loaded: true, dropped: false };

const entryOf = (group: ConsumerGroup): Entry => ({
  held: HELD,
  group,
  offsets: new Map(),
  commits: 0,
  saving: undefined,
});

function applied(
  stored: StoredConsumerGroup | undefined,
  change: GroupChange,
): StoredConsumerGroup {
  expect(change.kind).toBe('consumer-group');
  const { group, whole, gone } = change as Extract<GroupChange, { kind: 'consumer-group' }>;
  const members = new Map<string, StoredConsumerMember>();
  if (!whole) for (const member of stored?.members ?? []) members.set(member.memberId, member);
  for (const memberId of gone) members.delete(memberId);
  for (const member of group.members) members.set(member.memberId, structuredClone(member));
  return { ...group, members: [...members.values()] };
}

/** A heartbeat or JoinGroup of the client, and what it makes of the answer. `lost`: it never gets one. */
async function speak(world: World, client: Client, lost: boolean): Promise<void> {
  if (client.isWaiting) return;
  client.isWaiting = true;
  const { runner } = world;
  if (client.isClassic) await speakClassic(world, client, lost);
  else await speakConsumer(world, client, lost);
  if (world.runner === runner) client.isWaiting = false;
}

async function speakConsumer(world: World, client: Client, lost: boolean): Promise<void> {
  const joins = client.epoch < 0;
  if (joins && client.instanceId !== null) client.memberId = world.newId(client);
  const all = joins || client.full;
  const { memberId, instanceId } = client;
  client.full = true;
  const { names, pattern } = client;
  const holds = [...client.held].sort().join();
  const tells = all || holds !== client.said;
  client.said = holds;
  const answered = await world.ask({
    type: 'heartbeat',
    memberId,
    memberEpoch: joins ? 0 : client.epoch,
    instanceId,
    rackId: null,
    clientId: client.name,
    clientHost: '/h',
    rebalanceTimeoutMs: all ? REBALANCE_MS : -1,
    topicNames: all ? names : null,
    topicRegex: all ? pattern : null,
    assignor: null,
    owned: tells ? [...client.held] : null,
  });
  if (lost || client.memberId !== memberId || !('answer' in answered)) return;
  const { errorCode, memberEpoch, assigned } = answered.answer;
  if (errorCode !== 0) {
    drop(client);
    return;
  }
  expect(memberEpoch, 'K2: a member’s epoch never falls').toBeGreaterThanOrEqual(client.epoch);
  client.epoch = memberEpoch;
  client.known = world.group.members.get(memberId);
  // It may have changed its mind meanwhile.
  client.full = client.names !== names || client.pattern !== pattern;
  if (assigned === null) return;
  client.told = new Set(assigned);
  // Every assignment is acknowledged, even if nothing comes of it.
  client.said = 'unacknowledged';
}

async function speakClassic(world: World, client: Client, lost: boolean): Promise<void> {
  const { memberId, epoch } = client;
  const ids = { memberId, instanceId: client.instanceId };
  if (epoch >= 0 && !client.full) {
    const beat = await world.ask({ type: 'classic-heartbeat', ...ids, generation: epoch });
    if (lost || !('answer' in beat)) return;
    if (beat.answer === ErrorCode.REBALANCE_IN_PROGRESS) client.full = true;
    else if (beat.answer !== 0) drop(client);
    return;
  }
  const { names } = client;
  // It gives up first and joins then (cooperative).
  client.held = client.held.intersection(client.told);
  const joined = await world.ask({
    type: 'classic-join',
    ...ids,
    newMemberId: world.newId(client),
    clientId: client.name,
    clientHost: '/h',
    sessionTimeoutMs: SESSION_MS,
    rebalanceTimeoutMs: REBALANCE_MS,
    protocolType: 'consumer',
    protocols: [{ name: 'cooperative-sticky', metadata: subscription(world, client) }],
    requireMemberId: false,
  });
  if (lost || !('answer' in joined)) return;
  if (joined.answer.errorCode !== 0) {
    drop(client);
    return;
  }
  const generation = joined.answer.generation;
  client.epoch = generation;
  // Nothing new before it is told what.
  client.told = client.held;
  client.full = true;
  const member = world.group.members.get(memberId);
  const synced = await world.ask({
    type: 'classic-sync',
    ...ids,
    generation,
    protocolType: 'consumer',
    protocol: 'cooperative-sticky',
  });
  if (!('answer' in synced) || synced.answer.errorCode !== 0) return;
  client.told = new Set(synced.answer.assigned);
  // Only now it knows: whoever was away too long holds what is another's until here, as in Kafka.
  client.known = member;
  // It does at once what it is told; whoever had to give something up joins again.
  const givesUp = client.held.difference(client.told).size > 0;
  client.held = client.told;
  client.full = client.names !== names || givesUp;
  world.checkHeld();
}

function subscription(world: World, client: Client): Uint8Array {
  const ownedPartitions = TOPICS.map((topic) => {
    const ids = world.topics.partitionsOf(topic) ?? [];
    return { topic, partitions: ids.flatMap((id, index) => (client.held.has(id) ? [index] : [])) };
  });
  return encodeSubscription({ topics: [...client.names], ownedPartitions });
}

/** It was told that it is no member, and lets everything go. */
function drop(client: Client): void {
  client.epoch = -1;
  client.held = new Set();
  client.told = new Set();
  client.full = true;
}

/** The client does what it was told: it stops what it shall not do, and starts what it shall. */
function obey(world: World, client: Client): void {
  if (client.epoch < 0 || client.isWaiting) return;
  client.held = client.held.intersection(client.told);
  world.checkHeld();
  client.held = new Set(client.told);
  world.checkHeld();
}

type Action =
  | { kind: 'speak'; client: number; lost: boolean }
  | { kind: 'obey'; client: number }
  | { kind: 'leave'; client: number; forGood: boolean }
  | { kind: 'subscribe'; client: number; names: readonly string[]; pattern: string }
  | { kind: 'resize'; topic: string; count: number }
  | { kind: 'settle'; ok: boolean }
  | { kind: 'advance'; byMs: number }
  | { kind: 'converge' | 'restart' };

async function perform(world: World, action: Action): Promise<void> {
  switch (action.kind) {
    case 'speak':
      void speak(world, world.clients[action.client]!, action.lost);
      break;
    case 'obey':
      obey(world, world.clients[action.client]!);
      break;
    case 'leave':
      leave(world, world.clients[action.client]!, action.forGood);
      break;
    case 'subscribe': {
      const client = world.clients[action.client]!;
      client.names = action.names;
      client.pattern = client.isClassic ? '' : action.pattern;
      client.full = true;
      break;
    }
    case 'resize':
      world.topics.resize(action.topic, action.count);
      break;
    case 'settle':
      world.settle(action.ok);
      break;
    case 'advance':
      await world.clock.advance(action.byMs);
      break;
    case 'restart':
      world.restart();
      break;
    case 'converge':
      await converge(world);
  }
  await microtasks();
  world.checkHeld();
}

function leave(world: World, client: Client, forGood: boolean): void {
  const { memberId, instanceId, epoch } = client;
  if (epoch < 0 || client.isWaiting) return;
  drop(client);
  if (client.isClassic)
    void world.ask({ type: 'classic-leave', members: [{ memberId, instanceId }] });
  else
    void world.ask({
      type: 'leave',
      memberId,
      instanceId,
      forGood: forGood || instanceId === null,
    });
}

/** Everybody speaks and obeys, all is stored: the group must come to rest. */
async function converge(world: World): Promise<void> {
  world.autoSettle = true;
  world.settle(true);
  for (let round = 0; round < MAX_ROUNDS && !isAtRest(world); round += 1) {
    for (const client of world.clients) {
      await speak(world, client, false);
      obey(world, client);
    }
    await world.clock.advance(100);
  }
  world.autoSettle = false;
  const state = consumerGroupState(world.group);
  expect(state, 'K9: it comes to rest').toBe('Stable');
  checkShares(world);
}

/** Long enough for sessions and rebalance timeouts of members that were lost with their answers. */
const MAX_ROUNDS = 60;

/** Stable, and everybody has heard of it. */
function isAtRest({ group, clients, topics }: World): boolean {
  return (
    consumerGroupState(group) === 'Stable' &&
    group.topicsVersion === topics.version &&
    group.unresolved.size === 0 &&
    clients.every(
      ({ memberId, epoch, full, held }) =>
        epoch === group.epoch &&
        !full &&
        held.size === group.members.get(memberId)?.assigned.length,
    )
  );
}

/** K9: every partition that is subscribed to has exactly one holder; equals get equal shares. */
function checkShares({ clients, topics }: World): void {
  const wanted = new Set(
    clients.flatMap(({ names, pattern }) =>
      [...names, ...(pattern === '' ? [] : topics.matching(pattern))].flatMap(
        (name) => topics.partitionsOf(name) ?? [],
      ),
    ),
  );
  const held = clients.flatMap((client) => [...client.held]);
  expect([...held].sort(), 'K9: all are held, once').toEqual([...wanted].sort());
  const same = clients.every(({ names, pattern }) => names.join() === 'a' && pattern === '');
  if (!same) return;
  const counts = clients.map((client) => client.held.size);
  expect(Math.max(...counts) - Math.min(...counts), 'uniform').toBeLessThanOrEqual(1);
}

const microtasks = () => new Promise<void>((resolve) => setImmediate(resolve));

const client = fc.nat(CLIENTS - 1);
const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant('speak' as const),
      client,
      lost: fc.constantFrom(false, false, false, true),
    }),
  },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('obey' as const), client }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('leave' as const), client, forGood: fc.boolean() }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('subscribe' as const),
      client,
      names: fc.constantFrom(['a'], ['b'], ['a', 'b'], ['none']),
      pattern: fc.constantFrom('', '', 'a', 'x'),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('resize' as const),
      topic: fc.constantFrom(...TOPICS),
      count: fc.constantFrom(0, 2, 5, 9),
    }),
  },
  {
    weight: 10,
    arbitrary: fc.record({
      kind: fc.constant('settle' as const),
      ok: fc.constantFrom(true, true, true, false),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('advance' as const),
      byMs: fc.constantFrom(1, 100, 500, 1_100, 2_500),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constantFrom('converge' as const, 'restart' as const) }),
  },
);

test('random histories keep every invariant, and the group comes to rest', async () => {
  const met = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(fc.array(action, { maxLength: 60, size: 'max' }), async (actions) => {
      const world = new World();
      world.topics.resize('a', 4);
      for (const each of actions) await perform(world, each);
      await converge(world);
      // Nobody speaks any more: sessions end, the group empties.
      world.autoSettle = true;
      await world.clock.advance(SESSION_MS + REBALANCE_MS);
      expect(consumerGroupState(world.group), 'K6').toBe('Empty');
      expect(world.group.owners.size).toBe(0);
      for (const state of world.met) met.set(state, (met.get(state) ?? 0) + 1);
    }),
    { numRuns: RUNS, seed: 20_240_602, endOnFailure: true },
  );
  expect([...met.keys()].sort()).toEqual(['Assigning', 'Reconciling', 'Stable']);
  expect(Math.min(...met.values())).toBeGreaterThan(RUNS / 4);
});
