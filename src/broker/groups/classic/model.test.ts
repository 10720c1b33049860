// Random histories against a simple model: clients that behave like consumers, a store that may fail, time that jumps.
// The model knows what a client may be told; the machine's own assertions (G1–G7) run inside every step.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { resolveSettings } from '../../../base/settings.ts';
import { ErrorCode } from '../../../protocol/errors.ts';
import { groupSettings } from '../settings.ts';
import type { Effect, PersistReason } from './effects.ts';
import { type Group, newGroup, nextDeadline, restoreGroup, snapshotGroup } from './group.ts';
import { type GroupEvent, step } from './step.ts';

const settings = resolveSettings(groupSettings, {
  'group.initial.rebalance.delay.ms': '100',
  'group.max.size': '6',
});
const SESSION_MS = 1_000;
const REBALANCE_MS = 2_000;
const CLIENTS = 5;
const RUNS = 250;

/** What a client believes, as a consumer's library would keep it. */
interface Client {
  memberId: string;
  generation: number;
  leader: boolean;
  members: readonly string[];
  assignment: string | undefined;
  readonly instanceId: string | null;
}

class World {
  now = 1_000_000;
  group: Group = newGroup('g', this.now);
  stored = snapshotGroup(this.group);
  readonly clients: Client[] = Array.from({ length: CLIENTS }, (_, index) => ({
    memberId: '',
    generation: -1,
    leader: false,
    members: [],
    assignment: undefined,
    instanceId: index < 2 ? `i${index}` : null,
  }));
  /** Who asked, as which instance and in which generation. */
  readonly owners = new Map<number, { client: Client; as: string; generation: number }>();
  readonly writes: { reason: PersistReason; snapshot: ReturnType<typeof snapshotGroup> }[] = [];
  /** Assignment text per generation and member, as its leader made it; and whether it was stored. */
  readonly assigned = new Map<string, string>();
  readonly storedGenerations = new Set<number>();
  readonly memberships = new Map<number, string>();
  /** States met with at least two members: a history that never gets there proves nothing. */
  readonly met = new Set<string>();
  nextToken = 1;
  nextId = 1;

  run(event: GroupEvent): void {
    const before = this.group.generation;
    const effects = step(this.group, event, { now: this.now, settings });
    expect(this.group.generation, 'G9').toBeGreaterThanOrEqual(before);
    if (this.group.members.size > 1) this.met.add(this.group.state);
    for (const effect of effects) this.apply(effect);
  }

  ask(client: number): number {
    const token = this.nextToken++;
    const { memberId, instanceId, generation } = this.clients[client]!;
    const owner = { client: this.clients[client]!, as: instanceId ?? memberId, generation };
    this.owners.set(token, owner);
    return token;
  }

  apply(effect: Effect): void {
    if (effect.kind === 'persist') {
      this.writes.push({ reason: effect.reason, snapshot: snapshotGroup(this.group) });
      return;
    }
    const owner = this.owners.get(effect.token);
    expect(owner, 'G10: an answer for a question, once').toBeDefined();
    this.owners.delete(effect.token);
    const { client } = owner!;
    if (effect.kind === 'join-reply') this.joined(client, effect.reply);
    else if (effect.kind === 'sync-reply') this.synced(owner!, effect.reply);
    else if (effect.kind === 'reply') refused(client, effect.errorCode);
  }

  joined(client: Client, reply: Extract<Effect, { kind: 'join-reply' }>['reply']): void {
    if (reply.errorCode === ErrorCode.MEMBER_ID_REQUIRED) client.memberId = reply.memberId;
    if (reply.errorCode !== 0) {
      refused(client, reply.errorCode);
      return;
    }
    client.memberId = reply.memberId;
    client.generation = reply.generation;
    client.leader = reply.leaderId === reply.memberId && !reply.skipAssignment;
    client.members = reply.members.map(({ memberId }) => memberId);
    client.assignment = undefined;
    if (!client.leader) return;
    const list = [...client.members].sort().join();
    const known = this.memberships.get(reply.generation);
    if (known !== undefined) expect(list, 'G9: one membership per generation').toBe(known);
    this.memberships.set(reply.generation, list);
  }

  synced(
    { client, as, generation }: { client: Client; as: string; generation: number },
    reply: Extract<Effect, { kind: 'sync-reply' }>['reply'],
  ): void {
    if (reply.errorCode !== 0) {
      refused(client, reply.errorCode);
      return;
    }
    client.assignment = Buffer.from(reply.assignment).toString();
    expect(this.storedGenerations.has(generation), 'G8: stored before it is told').toBe(true);
    expect(client.assignment, 'G11').toBe(this.assigned.get(`${generation} ${as}`) ?? '');
  }

  /** The oldest write ends, well or not. */
  settle(ok: boolean): void {
    const write = this.writes.shift();
    if (write === undefined) return;
    if (ok) {
      this.stored = write.snapshot;
      if (write.reason.kind === 'assignment') this.storedGenerations.add(write.reason.generation);
    }
    const errorCode = ok ? 0 : ErrorCode.COORDINATOR_NOT_AVAILABLE;
    this.run({ type: 'persisted', reason: write.reason, errorCode });
  }

  /** Kill and start: what was stored is what there is; connections are gone. */
  restart(): void {
    this.writes.length = 0;
    this.owners.clear();
    this.group = restoreGroup(this.stored, this.now);
    // A generation that was never stored may be given again, to others.
    for (const generation of [...this.memberships.keys()])
      if (generation > this.group.generation) this.memberships.delete(generation);
    for (const generation of [...this.storedGenerations])
      if (generation > this.group.generation) this.storedGenerations.delete(generation);
  }

  /** Lets due timers fire, one by one, as the coordinator does. */
  advance(byMs: number): void {
    const target = this.now + byMs;
    for (let next = nextDeadline(this.group); next <= target; next = nextDeadline(this.group)) {
      this.now = Math.max(this.now, next);
      this.run({ type: 'tick' });
    }
    this.now = target;
  }
}

function refused(client: Client, errorCode: number): void {
  const lost: number[] = [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID];
  if (lost.includes(errorCode)) client.memberId = '';
  if (lost.includes(errorCode) || errorCode === ErrorCode.ILLEGAL_GENERATION)
    client.generation = -1;
}

type Action =
  | { kind: 'join'; client: number; forget: boolean; protocols: readonly string[] }
  | { kind: 'sync' | 'heartbeat' | 'leave'; client: number }
  | { kind: 'settle'; ok: boolean }
  | { kind: 'advance'; byMs: number }
  | { kind: 'converge'; clients: readonly number[] }
  | { kind: 'restart' };

function perform(world: World, action: Action): void {
  switch (action.kind) {
    case 'settle':
      world.settle(action.ok);
      break;
    case 'advance':
      world.advance(action.byMs);
      break;
    case 'restart':
      world.restart();
      break;
    case 'converge':
      converge(world, action.clients);
      break;
    default:
      request(world, action);
  }
}

/** Well-behaved clients reach a common generation: the state that trouble should then hit. */
function converge(world: World, clients: readonly number[]): void {
  for (let round = 0; round < 3; round += 1) {
    for (const client of clients)
      request(world, { kind: 'join', client, forget: false, protocols: ['a', 'b'] });
    world.advance(150);
    for (const client of clients) request(world, { kind: 'sync', client });
    while (world.writes.length > 0) world.settle(true);
  }
}

function request(world: World, action: Extract<Action, { client: number }>): void {
  const client = world.clients[action.client]!;
  const { memberId, instanceId, generation } = client;
  if (action.kind === 'sync' && generation < 0) return;
  const token = world.ask(action.client);
  switch (action.kind) {
    case 'join':
      world.run({
        type: 'join',
        token,
        memberId: action.forget ? '' : memberId,
        instanceId,
        clientId: 'c',
        clientHost: '/h',
        sessionTimeoutMs: SESSION_MS,
        rebalanceTimeoutMs: REBALANCE_MS,
        protocolType: 'consumer',
        protocols: action.protocols.map((name) => ({ name, metadata: Buffer.from(name) })),
        requireMemberId: true,
        canSkipAssignment: action.client % 2 === 0,
        newMemberId: `m${world.nextId++}`,
      });
      break;
    case 'sync': {
      const assignments = client.leader ? assign(world, client) : [];
      const group = { protocolType: null, protocol: null };
      world.run({ type: 'sync', token, memberId, instanceId, generation, ...group, assignments });
      break;
    }
    case 'heartbeat':
      world.run({ type: 'heartbeat', token, memberId, instanceId, generation });
      break;
    case 'leave':
      world.run({ type: 'leave', token, members: [{ memberId, instanceId }] });
  }
}

/** The leader's work: every member gets a text that says generation and member. Made once per generation. */
function assign(world: World, leader: Client) {
  return leader.members.map((memberId) => {
    const member = world.group.members.get(memberId);
    const key = `${leader.generation} ${member?.instanceId ?? memberId}`;
    if (!world.storedGenerations.has(leader.generation)) world.assigned.set(key, key);
    return { memberId, assignment: Buffer.from(key) };
  });
}

const client = fc.nat(CLIENTS - 1);
const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('join' as const),
      client,
      forget: fc.boolean(),
      protocols: fc.constantFrom(['a', 'b'], ['a', 'b'], ['b', 'a'], ['b'], ['z'], []),
    }),
  },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('sync' as const), client }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('heartbeat' as const), client }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('leave' as const), client }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('settle' as const),
      ok: fc.constantFrom(true, true, true, false),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('advance' as const),
      byMs: fc.constantFrom(1, 50, 100, 500, 1_100, 2_500),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('converge' as const),
      clients: fc.uniqueArray(client, { minLength: 1, maxLength: CLIENTS }),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'restart' as const }) },
);

test('random histories keep every invariant, and all questions are answered in the end', () => {
  const met = new Map<string, number>();
  fc.assert(
    fc.property(fc.array(action, { maxLength: 60, size: 'max' }), (actions) => {
      const world = new World();
      for (const each of actions) perform(world, each);
      while (world.writes.length > 0) world.settle(true);
      // Nobody speaks any more: sessions end, joins and syncs are answered, the group empties.
      for (let round = 0; round < 20 && world.owners.size > 0; round += 1) {
        world.advance(300_000);
        while (world.writes.length > 0) world.settle(true);
      }
      expect([...world.owners], 'G10: nobody waits for ever').toEqual([]);
      world.advance(600_000);
      while (world.writes.length > 0) world.settle(true);
      world.advance(600_000);
      expect(world.group.state).toBe('Empty');
      expect(nextDeadline(world.group)).toBe(Infinity);
      for (const state of world.met) met.set(state, (met.get(state) ?? 0) + 1);
    }),
    { numRuns: RUNS, seed: 20_240_601 },
  );
  expect(Math.min(...met.values())).toBeGreaterThan(RUNS / 4);
  expect([...met.keys()].sort()).toEqual(['CompletingRebalance', 'PreparingRebalance', 'Stable']);
});
