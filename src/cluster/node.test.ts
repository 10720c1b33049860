import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../base/clock.ts';
import { FloeError } from '../base/error.ts';
import { silentLogger } from '../base/log.ts';
import { seededIds, seededPrng } from '../base/prng.ts';
import type { NodesMetadata } from '../metadata/nodes.ts';
import { ClusterMember, type JoinOptions } from './node.ts';
import { memoryNodes } from './testing/memory-store.ts';
import { countingMetrics } from './testing/metrics.ts';
import { nodeDescription } from './testing/nodes.ts';
import { ModelProcess } from './testing/process.ts';

const ids = seededIds(seededPrng(1));
const HERE = {
  listeners: { PLAINTEXT: { host: 'here', port: 9092 } },
  hints: { host: 'here', port: 1 },
  http: null,
};
const NOWHERE = { listeners: {}, hints: null, http: null };

let clock: ManualClock;
let nodes: NodesMetadata;
const members: ClusterMember[] = [];

beforeEach(() => {
  clock = new ManualClock();
  nodes = memoryNodes(clock);
});

afterEach(async () => {
  for (const member of members.splice(0)) await member.stop();
});

async function join(changes: Partial<JoinOptions> = {}): Promise<ClusterMember> {
  const member = await ClusterMember.join({
    nodes,
    description: nodeDescription(),
    nodeId: undefined,
    settings: {
      'cluster.heartbeat.ms': 1_000,
      'cluster.alive.ms': 5_000,
      'cluster.forget.ms': 86_400_000,
    },
    clock,
    ids,
    logger: silentLogger,
    metrics: countingMetrics(),
    onReplaced: () => expect.unreachable('nobody takes the id'),
    ...changes,
  });
  members.push(member);
  return member;
}

const living = (member: ClusterMember) => member.cluster.nodes().map(({ nodeId }) => nodeId);

test('nodes get ids, see each other come, work and go', async () => {
  const [one, two] = [await join(), await join()];
  expect([one.nodeId, two.nodeId]).toEqual([1, 2]);
  await clock.advance(1_000);
  expect(living(one)).toEqual([1, 2]);
  // Before it is announced nobody is sent to it.
  expect(one.cluster.chosen('p/1', 'front')).toBeUndefined();
  expect(one.working).toBe(false);
  await two.announce(HERE);
  await one.refresh();
  expect(one.cluster.chosen('p/1', 'front')).toMatchObject({ nodeId: 2, ...HERE });
  expect(two.working).toBe(true);
  await two.stop();
  await one.refresh();
  expect(living(one)).toEqual([1]);
});

test('a node that falls silent is gone for the others after its time', async () => {
  const process = new ModelProcess(clock);
  const [one, two] = [await join(), await join({ clock: process.clock })];
  await clock.advance(1_000);
  process.pause();
  await clock.advance(4_000);
  expect(living(one)).toEqual([1, 2]);
  await clock.advance(2_000);
  expect(living(one)).toEqual([1]);
  expect(two.holder).toBeUndefined();
});

test('a node whose process is seen to be gone is missed in half the time, unless it still speaks', async () => {
  const process = new ModelProcess(clock);
  const [one, two] = [await join(), await join({ clock: process.clock })];
  await clock.advance(1_000);
  one.suspect(two.holder!.session);
  await clock.advance(10_000);
  expect(living(one)).toEqual([1, 2]);
  one.suspect(two.holder!.session);
  process.pause();
  await clock.advance(2_000);
  expect(living(one)).toEqual([1, 2]);
  await clock.advance(1_500);
  expect(living(one)).toEqual([1]);
});

test('a node that slept is no member from the first moment, and joins under a new session', async () => {
  const process = new ModelProcess(clock);
  const metrics = countingMetrics();
  const member = await join({ clock: process.clock, metrics });
  await member.announce(HERE);
  const before = member.holder!.session;
  const sessions: unknown[] = [];
  member.onSession(() => sessions.push(member.holder?.session));
  process.pause();
  await clock.advance(60_000);
  expect(member.holder).toBeUndefined();
  expect(member.working).toBe(false);
  process.resume();
  await clock.advance(10);
  const after = member.holder!.session;
  expect(after).not.toBe(before);
  expect(sessions).toEqual([undefined, after]);
  expect(member.working).toBe(true);
  expect(metrics.value('floe_cluster_rejoins_total')).toBe(1);
  expect((await nodes.list())[0]).toMatchObject({ nodeId: 1, session: after, ...HERE });
});

test('the store out of reach for short costs nothing, for long the membership', async () => {
  let away = false;
  const store = nodes;
  const metrics = countingMetrics();
  const flaky = new Proxy(store, {
    get: (target, method: keyof NodesMetadata) =>
      away
        ? async () => {
            throw new FloeError('unavailable', 'not now');
          }
        : target[method],
  });
  const member = await join({ nodes: flaky, metrics });
  const { session } = member.holder!;
  away = true;
  await clock.advance(3_000);
  away = false;
  await clock.advance(1_000);
  expect(member.holder?.session).toBe(session);
  expect(metrics.value('floe_cluster_heartbeats_failed_total')).toBe(3);
  away = true;
  await clock.advance(10_000);
  expect(member.holder).toBeUndefined();
  away = false;
  await clock.advance(1_000);
  expect(member.holder).toBeDefined();
});

test('a node that was forgotten or replaced notices with its next heartbeat', async () => {
  const member = await join({ nodeId: 7 });
  const { session } = member.holder!;
  await nodes.leave(7, session);
  await clock.advance(1_000);
  expect(member.holder).toBeUndefined();
  await clock.advance(1_000);
  expect(member.holder!.session).not.toBe(session);
});

test('an id that was assigned and is another’s now ends the program', async () => {
  const process = new ModelProcess(clock);
  const replaced: string[] = [];
  const sleeper = await join({
    clock: process.clock,
    onReplaced: ({ code }) => replaced.push(code),
  });
  process.pause();
  await clock.advance(60_000);
  const other = await join();
  expect(other.nodeId).toBe(sleeper.nodeId);
  process.resume();
  await clock.advance(10);
  expect(sleeper.holder).toBeUndefined();
  expect(replaced).toEqual(['conflict']);
});

test('an id that is in use is refused, but for an earlier life that ended without a word', async () => {
  await join({ nodeId: 3 });
  const second = join({ nodeId: 3 }).catch((caught: unknown) => caught);
  await clock.advance(10_000);
  expect(await second).toMatchObject({ code: 'conflict' });

  const process = new ModelProcess(clock);
  await join({ nodeId: 4, clock: process.clock });
  process.pause();
  const again = join({ nodeId: 4 });
  await clock.advance(5_500);
  expect((await again).nodeId).toBe(4);
});

test('a draining node works no more and is chosen only for want of another', async () => {
  const [one, two] = [await join(), await join()];
  await one.announce(NOWHERE);
  await two.announce(NOWHERE);
  await one.refresh();
  const changes: boolean[] = [];
  two.cluster.onChange(() => changes.push(two.cluster.nodes()[0]!.draining));
  await one.drain();
  await two.refresh();
  expect(one.working).toBe(false);
  expect(changes).toEqual([true]);
  for (const key of ['p/1', 'p/2', 'p/3', 'p/4']) {
    expect(one.cluster.chosen(key, 'front')!.nodeId).toBe(2);
    expect(two.cluster.chosen(key, 'front')!.nodeId).toBe(2);
  }
});

test('a program that does not speak the level of the living does not start, and leaves no trace', async () => {
  const old = await join({ description: nodeDescription({ levels: { min: 1, max: 1 } }) });
  const modern = { levels: { min: 2, max: 3 }, version: '9.0.0' };
  await expect(join({ description: nodeDescription(modern) })).rejects.toMatchObject({
    code: 'conflict',
  });
  expect((await nodes.list()).map(({ nodeId }) => nodeId)).toEqual([old.nodeId]);
});

test('the level rises when the last old node has gone, and never falls', async () => {
  const old = await join({ description: nodeDescription({ levels: { min: 1, max: 1 } }) });
  const modern = await join({ description: nodeDescription({ levels: { min: 1, max: 2 } }) });
  expect(modern.cluster.level()).toBe(1);
  await old.stop();
  await modern.refresh();
  expect(modern.cluster.level()).toBe(2);
});

test('a node that slept through the end of an upgrade is refused its old program', async () => {
  const process = new ModelProcess(clock);
  const replaced: string[] = [];
  const old = await join({
    clock: process.clock,
    description: nodeDescription({ levels: { min: 1, max: 1 } }),
    onReplaced: ({ message }) => replaced.push(message),
  });
  const modern = await join({ description: nodeDescription({ levels: { min: 1, max: 2 } }) });
  await clock.advance(1_000);
  process.pause();
  await clock.advance(10_000);
  expect(modern.cluster.level()).toBe(2);
  process.resume();
  await clock.advance(100);
  expect(old.holder).toBeUndefined();
  expect(replaced[0]).toContain('start their version here');
  expect((await nodes.list()).map(({ nodeId }) => nodeId)).toEqual([modern.nodeId]);
});
