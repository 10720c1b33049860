// One seeded run of three brokers: clients act and move between brokers, faults come and go, brokers die, are paused for
// long and come back; in the end faults stop, everything must come to rest within a bound (L8), and the auditor looks
// through the eyes of each broker, before and after all of them start anew.
import { audit, auditObjects } from '../auditor.ts';
import { Changelog } from '../changelog.ts';
import { RacingProducer } from '../racing.ts';
import { TransactionalProducer } from '../transactional.ts';
import { Workload } from '../workload.ts';
import { noMetadataFaults, type SimulatedBroker } from './broker.ts';
import { Seat } from './seat.ts';
import { ClusterWorld } from './world.ts';

export interface ClusterOutcome {
  readonly seed: number;
  /** Equal for equal seeds. */
  readonly fingerprint: string;
  readonly lives: number;
  readonly batches: number;
  readonly acked: number;
  /** How often a client went to another broker. */
  readonly moves: number;
  /** How often a broker was paused, and how often one could not follow any more. */
  readonly pauses: number;
  readonly leftBehind: number;
  readonly compacted: number;
  /** Swaps of the log's maintainers, and how many brokers made some. */
  readonly swaps: number;
  readonly maintainers: number;
  /** Swaps that were refused: something had changed under them. */
  readonly lostSwaps: number;
}

const STEPS = 120;
/** Simulated milliseconds in which everything must end once faults have. */
const REST_MS = 20_000;

interface Client {
  readonly seat: Seat;
  readonly forget: () => void;
}

interface Run {
  readonly world: ClusterWorld;
  readonly workload: Workload;
  readonly producers: readonly (TransactionalProducer | RacingProducer)[];
  readonly changelog: Changelog;
  /** Those that the workload doesn't seat itself. */
  readonly clients: readonly Client[];
  readonly counts: { moves: number; pauses: number; leftBehind: number };
  readonly resumeAt: Map<SimulatedBroker, number>;
  readonly startAt: Map<SimulatedBroker, number>;
}

/** @throws Error naming the broken invariant; the message carries the seed. */
export async function simulateCluster(seed: number): Promise<ClusterOutcome> {
  const world = new ClusterWorld(seed);
  const run = setUp(world);
  const { workload, changelog, counts } = run;
  try {
    for (const broker of world.brokers) await world.drive(broker.start());
    await createTopic(run, 'first');
    await changelog.create();
    for (let step = 0; step < STEPS; step += 1) {
      await oneStep(run, step);
      if (world.violations.length > 0) throw new Error(world.violations[0]);
    }
    await endFaults(run);
    await auditAll(run);
    for (const broker of world.brokers) await restart(run, broker);
    await auditAll(run);
    await rest(run);
    await auditAll(run);
    await auditObjects(world);
    if (world.violations.length > 0) throw new Error(world.violations[0]);
  } catch (cause) {
    throw new Error(`seed ${seed} (cluster): ${cause instanceof Error ? cause.message : cause}`, {
      cause,
    });
  } finally {
    world.stop();
  }
  const acked = [...workload.batches.values()].filter((batch) => batch.state === 'acked').length;
  const { lives } = world;
  const fingerprint = hash(workload.trace);
  const { compacted } = changelog;
  const { done, lost: lostSwaps } = world.swaps;
  const swaps = done.reduce((sum, count) => sum + count, 0);
  const maintainers = done.filter((count) => count > 0).length;
  const batches = workload.batches.size;
  const maintained = { compacted, swaps, maintainers, lostSwaps };
  return { seed, fingerprint, lives, batches, acked, ...maintained, ...counts };
}

function setUp(world: ClusterWorld): Run {
  const seat = () => world.seat() as Seat;
  const workload = new Workload(seat());
  const clients: Client[] = [];
  const seated = <T extends { forget(): void }>(make: (at: Seat) => T): T => {
    const at = seat();
    const client = make(at);
    clients.push({ seat: at, forget: () => client.forget() });
    return client;
  };
  const producers = [
    ...['a', 'a', 'b'].map((id) => seated((at) => new TransactionalProducer(at, workload, id))),
    seated((at) => new RacingProducer(at, workload, 'verify')),
    seated((at) => new RacingProducer(at, workload, 'implicit')),
  ];
  const changelog = seated((at) => new Changelog(at));
  const counts = { moves: 0, pauses: 0, leftBehind: 0 };
  const [resumeAt, startAt] = [new Map(), new Map()];
  return { world, workload, producers, changelog, clients, counts, resumeAt, startAt };
}

/** By some broker; whether it is there shows in the store, whatever was answered. */
async function createTopic({ world, workload }: Run, name: string): Promise<void> {
  const [broker] = world.reachable();
  const request = {
    topicId: world.ids.uuid(),
    name,
    partitionCount: 2,
    config: {},
    nowMs: world.clock.now(),
  };
  await world.drive(
    broker?.node.directory.create(request).catch(ignoreFaults) ?? Promise.resolve(),
  );
  const found = (await world.metadata.topics.list()).find((topic) => topic.name === name);
  await workload.addPartitions((found ?? (await world.metadata.topics.create(request))).partitions);
}

async function deleteTopic({ world, workload }: Run): Promise<void> {
  const [broker] = world.reachable();
  const topic = broker?.node.directory.byName('first');
  if (broker === undefined || topic === undefined) return;
  // From here on nobody knows whether it is there.
  for (const partitionId of topic.partitions) workload.deletedPartitions.add(partitionId);
  await world.drive(broker.node.directory.delete(topic.topicId));
}

async function oneStep(run: Run, step: number): Promise<void> {
  const { world, workload, producers, changelog } = run;
  const { prng } = world;
  if (prng.next() < 0.1) setFaults(world);
  await liveAndDie(run);
  moveClients(run);
  await world.maintain();
  if (step === 40) await createTopic(run, 'second');
  if (step === 80) await deleteTopic(run).catch(ignoreFaults);
  if (step === 95) await createTopic(run, 'third');
  for (let n = prng.int(6); n >= 0; n -= 1) if (world.reachable().length > 0) workload.act();
  if (prng.next() < 0.6 && isServed(run.clients.at(-1)!.seat)) changelog.act();
  const n = prng.int(producers.length);
  if (isServed(run.clients[n]!.seat)) producers[n]!.act();
  await world.settle(2);
  await world.clock.advance(prng.int(60));
}

const isServed = ({ broker }: Seat): boolean => !broker.dead && !broker.paused;

function ignoreFaults(caught: unknown): void {
  if (!/injected|over|power|name is taken|exists/.test(String(caught))) throw caught;
}

/** Brokers die at a moment of their own, start again after a while, are paused and resumed. */
async function liveAndDie(run: Run): Promise<void> {
  const { world, counts, resumeAt, startAt } = run;
  const { prng, clock } = world;
  const nowMs = clock.now();
  for (const broker of world.brokers) {
    if (broker.fatal && !broker.dead) {
      counts.leftBehind += 1;
      broker.kill();
    }
    if (broker.dead) {
      if (!startAt.has(broker)) startAt.set(broker, nowMs + prng.int(1_000));
      resumeAt.delete(broker);
      if (nowMs >= startAt.get(broker)!) await restart(run, broker);
      continue;
    }
    if (broker.paused) {
      if (nowMs >= resumeAt.get(broker)!) broker.resume();
      continue;
    }
    const dice = prng.next();
    if (dice < 0.015) broker.disk.crashAfter(prng.int(60));
    else if (dice < 0.03) {
      counts.pauses += 1;
      broker.pause();
      resumeAt.set(broker, nowMs + prng.int(prng.next() < 0.3 ? 6_000 : 600));
    }
  }
}

/** Clients of a broker that died hear nothing more, and go to one that answers, as some do of their own accord. */
function moveClients({ world, workload, clients, counts }: Run): void {
  const { prng } = world;
  const reachable = world.reachable();
  for (const seat of world.seats) {
    const client = clients.find((one) => one.seat === seat);
    const lost = !isServed(seat);
    if (lost && seat.broker.dead) forget(workload, seat, client);
    if (reachable.length === 0 || prng.next() > (lost ? 0.5 : 0.03)) continue;
    forget(workload, seat, client);
    seat.move(reachable[prng.int(reachable.length)]!);
    counts.moves += 1;
  }
}

function forget(workload: Workload, seat: Seat, client: Client | undefined): void {
  workload.forget(seat);
  client?.forget();
}

/** A start may itself meet faults, or be the next death; it is tried again until one succeeds. */
async function restart(run: Run, broker: SimulatedBroker): Promise<void> {
  const { world, workload, clients } = run;
  broker.kill();
  for (const seat of world.seats)
    if (seat.broker === broker)
      forget(
        workload,
        seat,
        clients.find((one) => one.seat === seat),
      );
  await world.settle();
  for (let attempt = 0; ; attempt += 1) {
    try {
      await world.drive(broker.start());
      run.startAt.delete(broker);
      return;
    } catch (caught) {
      const passing = broker.dead || /injected|start over/.test(String(caught));
      if (!passing) throw caught;
      broker.kill();
      // A start asks for many things, each of which may fail: some day it is let through.
      if (attempt > 30) world.metadataFaults = noMetadataFaults;
      await world.clock.advance(50);
    }
  }
}

function setFaults(world: ClusterWorld): void {
  const { prng } = world;
  const some = (chance: number, size: number) => (prng.next() < chance ? prng.next() * size : 0);
  world.storeFaults = {
    refuse: some(0.4, 0.8),
    loseReply: some(0.4, 0.5),
    late: some(0.4, 0.5),
    lateMs: 3_000,
    delayMs: some(0.5, 600),
  };
  world.metadataFaults = {
    refuse: some(0.3, 0.3),
    loseReply: some(0.4, 0.3),
    late: some(0.4, 0.3),
    lateMs: 3_000,
    delayMs: some(0.5, 200),
  };
  world.loseHint = some(0.5, 1);
}

async function endFaults(run: Run): Promise<void> {
  const { world, workload, producers } = run;
  world.storeFaults = { refuse: 0, loseReply: 0, late: 0, lateMs: 0, delayMs: 0 };
  world.metadataFaults = noMetadataFaults;
  for (const broker of world.brokers) {
    broker.disk.crashAfter(Infinity);
    broker.resume();
  }
  await world.settle();
  for (let waited = 0; ; waited += 100) {
    for (const broker of world.brokers) if (broker.dead || broker.fatal) await restart(run, broker);
    await world.maintain();
    const open = workload.resendAll();
    const unfinished = producers.filter((producer) => !producer.finish()).length;
    await world.settle();
    await world.clock.advance(100);
    if (workload.pending === 0 && open === 0 && unfinished === 0) return;
    if (waited > REST_MS)
      throw new Error(`L8: ${workload.pending} requests pending, ${open} batches unacked at rest`);
  }
}

/** Each broker shows the same log, once it has caught up. */
async function auditAll(run: Run): Promise<void> {
  const { world, workload, changelog, clients } = run;
  for (const broker of world.brokers) {
    // One that was left behind learns it when it asks.
    await world.drive(broker.node.log.caughtUp()).catch(async (caught) => {
      if (!broker.fatal) throw caught;
      await restart(run, broker);
    });
    // Topics are read again meanwhile.
    await world.settle();
    const seat = new Seat(world, broker);
    await audit(seat, workload);
    const writer = clients.at(-1)!.seat;
    writer.move(broker);
    await changelog.audit();
  }
}

/** Long enough for orphans to come of age and be swept, twice over. */
async function rest({ world }: Run): Promise<void> {
  for (let waited = 0; waited < 30_000; waited += 100) {
    await world.maintain();
    await world.clock.advance(100);
  }
}

/** FNV-1a over the trace. */
function hash(trace: readonly string[]): string {
  let value = 0x811c9dc5;
  for (const line of trace) {
    for (let n = 0; n < line.length; n += 1)
      value = Math.imul(value ^ line.charCodeAt(n), 0x01000193) >>> 0;
  }
  return value.toString(16);
}
