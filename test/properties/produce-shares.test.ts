// Shares of the bytes in flight (decision 0039), as a whole: users and connections of any number, sizes and haste, over
// stores of any speed.
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestBroker, type TestBroker } from '../../src/broker/testing/harness.ts';
import { type Client, type Store, World, type WorldOptions } from './produce-world.ts';

const KIB = 1024;
const LIMIT_BYTES = 512 * KIB;
const LARGEST_BYTES = 120 * KIB;
/** Longer than any run. */
const NEVER_MS = 10_000_000;

let broker: TestBroker;
beforeAll(async () => {
  broker = await startTestBroker();
  const topicId = '00000000-0000-4000-8000-000000000001';
  await broker.directory.create({ topicId, name: 't', partitionCount: 1, config: {}, nowMs: 1 });
});
afterAll(() => broker.stop());

const worldOf = (options: Omit<WorldOptions, 'services' | 'limitBytes'>) =>
  new World({ ...options, services: broker.broker.services, limitBytes: LIMIT_BYTES });

const sizes = fc.array(fc.constantFrom(KIB, 4 * KIB, 16 * KIB, 60 * KIB, 70 * KIB, LARGEST_BYTES), {
  minLength: 1,
  maxLength: 4,
});
const bytesPerMs = fc.constantFrom(200, 2_000, 20_000);
const latencyMs = fc.constantFrom(1, 30, 300);
const factor = fc.constantFrom(0.5, 2, 8);

/** Wants more than there is, always. */
const flood = (user: string, of: readonly number[]): Client => ({
  user,
  sizes: of,
  depth: Math.ceil((2 * LIMIT_BYTES * of.length) / of.reduce((sum, bytes) => sum + bytes)),
  pauseMs: 0,
  timeoutMs: NEVER_MS,
});

/** How long the store takes for everything that may be before it, and for one flush. */
const roundMs = ({ bytesPerMs: rate, latencyMs: latency }: Store) =>
  (LIMIT_BYTES + 2 * LARGEST_BYTES) / rate + latency + 50;

test('limits hold, nobody waits for what is free, and all is given back', async () => {
  const client = fc.record({
    user: fc.constantFrom('a', 'b', 'c'),
    sizes,
    depth: fc.constantFrom(1, 5, 60),
    pauseMs: fc.constantFrom(0, 3, 200),
    timeoutMs: fc.constantFrom(1_000, NEVER_MS),
    leavesMs: fc.option(fc.integer({ min: 1, max: 3_000 }), { nil: undefined }),
  });
  const stall = fc.record({
    every: fc.integer({ min: 1, max: 6 }),
    ms: fc.constantFrom(10, 4_000),
    fails: fc.boolean(),
  });
  const store = fc.record({ bytesPerMs, latencyMs, stall: fc.option(stall, { nil: undefined }) });
  await fc.assert(
    fc.asyncProperty(
      fc.array(client, { minLength: 1, maxLength: 8 }),
      store,
      factor,
      fc.constantFrom(undefined, 3, 400),
      async (clients, slow, times, learnMs) => {
        const world = worldOf({
          store: slow as Store,
          clients: clients as Client[],
          factor: times,
          ...(learnMs === undefined ? {} : { learnMs }),
        });
        await world.run(3_000);
        await world.end(3_600_000);
        expect(world.log.landedBytes).toBeGreaterThan(0);
      },
    ),
    { numRuns: 50, seed: 1 },
  );
});

/** Bytes answered, by user and connection. */
function answered({ senders }: World): readonly (readonly number[])[] {
  const of = new Map<string, number[]>();
  for (const { client, answeredBytes } of senders)
    of.set(client.user, [...(of.get(client.user) ?? []), answeredBytes]);
  return [...of.values()];
}

const sum = (all: readonly number[]) => all.reduce((a, b) => a + b, 0);

/** Nobody has less than so much of what would be the same for all. */
function expectShares(all: readonly number[], share: number): void {
  const least = Math.min(...all);
  expect(least, all.join()).toBeGreaterThan((sum(all) / all.length) * share);
}

test('users that want all get about as much, and so do connections of one user', async () => {
  const user = fc.array(sizes, { minLength: 1, maxLength: 3 });
  await fc.assert(
    fc.asyncProperty(
      fc.array(user, { minLength: 1, maxLength: 7 }),
      fc.record({ bytesPerMs, latencyMs }),
      factor,
      async (users, store, times) => {
        const clients = users.flatMap((all, n) => all.map((of) => flood(`user ${n}`, of)));
        const world = worldOf({ store, clients, factor: times });
        await world.run(25 * roundMs(store));
        const each = answered(world);
        // Of unequal requests of which few fit, the larger take more.
        expectShares(each.map(sum), 0.25);
        for (const mine of each) expectShares(mine, 0.25);
      },
    ),
    { numRuns: 12, seed: 1 },
  );
});

/** Connections of each of twelve users. */
const CROWDS = {
  'one user with many connections': [12],
  'many users': Array.from({ length: 12 }, () => 1),
  'users with several connections before others': [2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1],
};

test.each(Object.entries(CROWDS))(
  'of large requests few fit, all have their turn: %s',
  async (_, connections) => {
    const clients = connections.flatMap((count, n) =>
      Array.from({ length: count }, () => flood(`user ${n}`, [LARGEST_BYTES])),
    );
    const world = worldOf({ store: { bytesPerMs: 10_000, latencyMs: 20 }, clients, factor: 8 });
    await world.run(3_000);
    const each = answered(world);
    expectShares(each.map(sum), 0.7);
    for (const mine of each) expectShares(mine, 0.7);
  },
);

test('room is left for who comes, and no more than that', async () => {
  const store = { bytesPerMs: 2_000, latencyMs: 100 };
  for (const [connections, most] of [
    [['a'], 4 / 5],
    [['a', 'a'], 22 / 25],
    [['a', 'b'], 24 / 25],
  ] as const) {
    const clients = connections.map((user) => flood(user, [KIB]));
    const world = worldOf({ store, clients, factor: 8 });
    await world.run(2_000);
    expect(world.log.mostInFlight / LIMIT_BYTES).toBeGreaterThan(most - 0.1);
    expect(world.log.mostInFlight / LIMIT_BYTES).toBeLessThan(most + 0.01);
  }
});

test('who sends a little is answered soon, however much others send', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.constantFrom('a', 'b', 'small'), sizes), { minLength: 1, maxLength: 6 }),
      fc.record({ bytesPerMs, latencyMs }),
      factor,
      async (floods, store, times) => {
        const clients = floods.map(([user, of]) => flood(user, of));
        const small = { user: 'small', depth: 1, timeoutMs: NEVER_MS };
        const pauseMs = roundMs(store) / 10;
        clients.push({ ...small, sizes: [KIB], pauseMs }, { ...small, sizes: [], pauseMs });
        const world = worldOf({ store, clients, factor: times, maxRequests: 100 });
        await world.run(25 * roundMs(store));
        const [producer, asker] = world.senders.slice(-2);
        expect(producer!.slowestMs).toBeLessThan(3 * roundMs(store));
        expect(asker!.answered).toBeGreaterThan(100);
        expect(asker!.slowestMs).toBe(0);
      },
    ),
    { numRuns: 12, seed: 1 },
  );
});
