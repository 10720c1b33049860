// Random histories of three processes over one store: paused and continued, killed and started again, drained, in good
// and bad weather. After every step nobody holds what another holds; in the end, in good weather, everything is held.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ManualClock } from '../base/clock.ts';
import { silentLogger } from '../base/log.ts';
import { seededIds, seededPrng } from '../base/prng.ts';
import { LeaseKeeper } from './lease-keeper.ts';
import { ClusterMember } from './node.ts';
import { memoryLeases, memoryNodes } from './testing/memory-store.ts';
import { countingMetrics } from './testing/metrics.ts';
import { nodeDescription } from './testing/nodes.ts';
import { ModelProcess, type Weather } from './testing/process.ts';

const NAMES = ['groups/0', 'groups/1', 'groups/2', 'groups/3', 'groups/4', 'groups/5'];
const IDS = [1, 2, 3];
const SETTINGS = {
  'cluster.heartbeat.ms': 1_000,
  'cluster.alive.ms': 5_000,
  'cluster.forget.ms': 86_400_000,
  'cluster.lease.ms': 5_000,
};

type Step =
  | { readonly kind: 'pause' | 'resume' | 'kill' | 'drain'; readonly id: number }
  | { readonly kind: 'pass'; readonly ms: number }
  | { readonly kind: 'weather'; readonly faults: number; readonly maxDelayMs: number };

const node = fc.constantFrom(...IDS);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('pass' as const),
      ms: fc.integer({ min: 1, max: 4_000 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constantFrom('pause' as const, 'resume' as const), id: node }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constantFrom('kill' as const, 'drain' as const), id: node }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('weather' as const),
      faults: fc.constantFrom(0, 0.2, 0.6, 1),
      maxDelayMs: fc.constantFrom(2, 300, 3_000),
    }),
  },
);

/** One life of a process. */
interface Life {
  readonly process: ModelProcess;
  member?: ClusterMember;
  keeper?: LeaseKeeper;
  draining: boolean;
}

class World {
  readonly clock = new ManualClock();
  readonly weather: Weather;
  readonly lives = new Map<number, Life>();
  readonly #prng;
  readonly #nodes = memoryNodes(this.clock);
  readonly #leases = memoryLeases(this.clock);
  /** What went wrong in work, whose errors its caller catches. */
  readonly #faults: string[] = [];
  /** Who began to work at which epoch of a name. */
  readonly #epochs = new Map<string, Life>();

  constructor(seed: number) {
    this.#prng = seededPrng(seed);
    this.weather = { prng: this.#prng, faults: 0, maxDelayMs: 2 };
    for (const id of IDS) this.start(id);
  }

  start(id: number): void {
    const process = new ModelProcess(this.clock);
    const life: Life = { process, draining: false };
    this.lives.set(id, life);
    void this.#run(id, life).catch(() => {
      // It did not come up in this weather: its supervisor starts it again.
      if (this.lives.get(id) === life) this.clock.setTimer(1_000, () => this.#again(id, life));
    });
  }

  #again(id: number, life: Life): void {
    if (this.lives.get(id) === life) this.start(id);
  }

  async #run(id: number, life: Life): Promise<void> {
    const { process } = life;
    const common = {
      settings: SETTINGS,
      clock: process.clock,
      logger: silentLogger,
      metrics: countingMetrics(),
    };
    const member = await ClusterMember.join({
      ...common,
      nodes: process.link(this.#nodes, this.weather),
      description: nodeDescription(),
      nodeId: id,
      ids: seededIds(this.#prng),
      onReplaced: () => expect.unreachable('its id was given'),
    });
    life.member = member;
    const leases = process.link(this.#leases, this.weather);
    const keeper = new LeaseKeeper({ ...common, node: member, leases, watched: ['groups/'] });
    life.keeper = keeper;
    for (const name of NAMES) this.#want(life, keeper, name);
    await member.announce({ listeners: {}, hints: null, http: null });
  }

  #want(life: Life, keeper: LeaseKeeper, name: string): void {
    const pause = () => life.process.clock.sleep(this.#prng.int(400));
    let working = false;
    keeper.want({
      name,
      role: 'coordinator',
      gained: async ({ epoch }) => {
        if (working) this.#faults.push(`C2: ${name} is gained twice`);
        working = true;
        const first = this.#epochs.get(`${name} ${epoch}`) ?? life;
        if (first !== life) this.#faults.push(`C3: epoch ${epoch} of ${name} has two holders`);
        this.#epochs.set(`${name} ${epoch}`, life);
        if (this.#prng.next() < 0.5) await pause();
        if (this.#prng.next() < 0.05) throw new Error('work that does not begin');
      },
      lost: async () => {
        if (!working) this.#faults.push(`C2: ${name} is lost but was not gained`);
        if (this.#prng.next() < 0.5) await pause();
        working = false;
      },
    });
  }

  take(taken: Step): void {
    if (taken.kind === 'weather') Object.assign(this.weather, taken);
    else if (taken.kind !== 'pass') this.#disturb(taken.kind, taken.id);
  }

  #disturb(kind: 'pause' | 'resume' | 'kill' | 'drain', id: number): void {
    const life = this.lives.get(id)!;
    if (kind === 'pause') life.process.pause();
    else if (kind === 'resume') life.process.resume();
    else if (kind === 'kill') {
      life.process.pause();
      this.start(id);
    } else if (!life.process.paused && life.member !== undefined && !life.draining) {
      life.draining = true;
      void life.member.drain().then(() => life.keeper!.giveUp());
    }
  }

  /** Moves on in steps small enough to see what happens between. */
  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 100) {
      await this.clock.advance(Math.min(left, 100));
      this.check();
    }
  }

  check(): void {
    expect(this.#faults).toEqual([]);
    for (const name of NAMES) {
      const holders = IDS.filter((id) => this.lives.get(id)!.keeper?.held(name) !== undefined);
      expect(holders.length, `C1: ${name} is held by ${holders}`).toBeLessThanOrEqual(1);
    }
  }
}

test('at most one holds, and in good weather somebody does', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.nat(),
      fc.array(step, { minLength: 5, maxLength: 40 }),
      async (seed, steps) => {
        const world = new World(seed);
        await world.pass(1_000);
        for (const taken of steps) {
          world.take(taken);
          world.check();
          await world.pass(taken.kind === 'pass' ? taken.ms : 10);
        }
        Object.assign(world.weather, { faults: 0, maxDelayMs: 2 });
        for (const { process } of world.lives.values()) process.resume();
        const ids = IDS.filter((id) => !world.lives.get(id)!.draining);
        // Two lives' ends, a lease's, a quarantine.
        await world.pass(30_000);
        if (ids.length === 0) return;
        for (const name of NAMES) {
          const chosen = world.lives.get(ids[0]!)!.member!.cluster.chosen(name, 'coordinator');
          const life = world.lives.get(chosen!.nodeId)!;
          expect(life.keeper!.held(name), `${name} at ${chosen!.nodeId}`).toBeDefined();
          for (const id of ids)
            expect(world.lives.get(id)!.keeper!.holder(name)).toBe(chosen!.nodeId);
        }
      },
    ),
    { numRuns: Number(process.env['FLOE_MODEL_RUNS'] ?? 15), seed: 20261130 },
  );
}, 120_000);
