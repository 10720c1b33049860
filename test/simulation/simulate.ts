// One seeded run: clients act, faults come and go, the node dies now and then; in the end faults stop, everything must
// come to rest within a bound (L8), and the auditor looks, before and after one more crash (L11).
import { audit, auditObjects } from './auditor.ts';
import { Changelog } from './changelog.ts';
import { Keyed } from './keyed.ts';
import { RacingProducer } from './racing.ts';
import { auditTableFiles, auditTables } from './table-auditor.ts';
import { TABLE_CONFIG } from './table-side.ts';
import { TransactionalProducer } from './transactional.ts';
import { Workload } from './workload.ts';
import { type Mode, World } from './world.ts';

export interface Outcome {
  readonly seed: number;
  /** Equal for equal seeds. */
  readonly fingerprint: string;
  readonly lives: number;
  readonly commits: number;
  readonly batches: number;
  readonly acked: number;
  /** Snapshots of ours that tables hold in the end. */
  readonly snapshots: number;
  readonly rows: number;
  /** Rows of the table that has one for each key. */
  readonly keys: number;
  /** Records of the changelog that compaction by key took. */
  readonly compacted: number;
}

const STEPS = 120;
/** Simulated milliseconds in which everything must end once faults have. */
const REST_MS = 20_000;

/** @throws Error naming the broken invariant; the message carries the seed. */
export async function simulate(seed: number, mode: Mode): Promise<Outcome> {
  const world = new World(seed, mode);
  const workload = new Workload(world);
  const producers = [
    ...['a', 'a', 'b'].map((id) => new TransactionalProducer(world, workload, id)),
    new RacingProducer(world, workload, 'verify'),
    new RacingProducer(world, workload, 'implicit'),
  ];
  const changelog = new Changelog(world);
  const keyed = new Keyed(world);
  const run = { world, workload, producers, changelog, keyed };
  let tables = { snapshots: 0, rows: 0, keys: 0 };
  try {
    await world.start();
    await createTopic(run, 'first');
    await changelog.create();
    await keyed.create(seed % 2 === 0 ? 2 : 3);
    for (let step = 0; step < STEPS; step += 1) {
      await oneStep(run, step);
      if (world.violations.length > 0) throw new Error(world.violations[0]);
    }
    await endFaults(run);
    await audit(world, workload);
    await changelog.audit();
    await auditTables(run);
    await restart(run);
    await audit(world, workload);
    await changelog.audit();
    await rest(world);
    await audit(world, workload);
    await changelog.audit();
    await auditObjects(world);
    tables = await auditTables(run);
    await rest(world);
    await auditTableFiles(world);
    await world.maintenance.stop();
  } catch (cause) {
    throw new Error(`seed ${seed} (${mode}): ${cause instanceof Error ? cause.message : cause}`, {
      cause,
    });
  }
  const acked = [...workload.batches.values()].filter((batch) => batch.state === 'acked').length;
  const { lives, commits } = world;
  const fingerprint = hash(workload.trace);
  const { compacted } = changelog;
  const counts = { batches: workload.batches.size, acked, compacted, ...tables };
  return { seed, fingerprint, lives, commits, ...counts };
}

interface Run {
  readonly world: World;
  readonly workload: Workload;
  readonly producers: readonly (TransactionalProducer | RacingProducer)[];
  readonly changelog: Changelog;
  readonly keyed: Keyed;
}

async function createTopic({ world, workload }: Run, name: string): Promise<void> {
  const topic = await world.node.directory.create({
    topicId: world.ids.uuid(),
    name,
    partitionCount: 2,
    config: TABLE_CONFIG,
    nowMs: world.clock.now(),
  });
  await workload.addPartitions(topic.partitions);
}

async function oneStep(run: Run, step: number): Promise<void> {
  const { world, workload, producers } = run;
  const { prng, disk } = world;
  if (prng.next() < 0.1) setFaults(world);
  if (prng.next() < 0.06) disk.crashAfter(prng.int(40));
  if (step === 40) await createTopic(run, 'second').catch(ignoreWhenDead(world));
  if (step === 80) await deleteTopic(run).catch(ignoreWhenDead(world));
  if (step === 95) await createTopic(run, 'first').catch(ignoreWhenDead(world));
  for (let n = prng.int(5); n >= 0 && !world.dead; n -= 1) workload.act();
  if (!world.dead && prng.next() < 0.6) run.changelog.act();
  if (!world.dead && prng.next() < 0.4) run.keyed.act();
  if (!world.dead) producers[prng.int(producers.length)]!.act();
  if (!world.dead) await actOnTables(world).catch(ignoreWhenDead(world));
  await world.settle(2);
  await world.clock.advance(prng.int(60));
  if (world.dead || prng.next() < 0.01) await restart(run);
}

/** Requests that were under way arrive; an operator pauses a table, resumes it, changes its pace. */
async function actOnTables({ prng, side, node }: World): Promise<void> {
  const dice = prng.next();
  if (dice < 0.1) void side.catalog.deliver();
  const [topic] = node.directory.all();
  if (topic === undefined || dice < 0.97) return;
  if (dice < 0.98) {
    const interval = String(200 + prng.int(400));
    await node.directory.alterConfig(topic.topicId, { 'table.topic.commit.interval.ms': interval });
  } else if (dice < 0.99) void side.tables.pause(topic.name).catch(() => {});
  else void side.tables.resume(topic.name).catch(() => {});
}

function ignoreWhenDead(world: World) {
  return (caught: unknown) => {
    if (!world.dead) throw caught;
  };
}

async function deleteTopic({ world, workload }: Run): Promise<void> {
  const topic = world.node.directory.byName('first')!;
  await world.node.directory.delete(topic.topicId);
  for (const partitionId of topic.partitions) workload.deletedPartitions.add(partitionId);
}

function setFaults(world: World): void {
  const { prng, disk } = world;
  const some = (chance: number, size: number) => (prng.next() < chance ? prng.next() * size : 0);
  disk.faults = { sync: some(0.3, 0.3), write: some(0.3, 0.3) };
  disk.room = prng.next() < 0.1 ? prng.int(20_000) : Infinity;
  world.loseReply = some(0.4, 0.5);
  world.storeFaults = {
    refuse: some(0.4, 0.8),
    loseReply: some(0.4, 0.5),
    late: some(0.4, 0.5),
    lateMs: 3_000,
    delayMs: some(0.5, 600),
  };
  world.side.loseReply = some(0.4, 0.1);
  world.side.catalog.faults = {
    loadFails: some(0.4, 0.2),
    conflict: some(0.4, 0.3),
    lostRequest: some(0.4, 0.3),
    lostReply: some(0.4, 0.4),
    late: some(0.4, 0.3),
    raced: some(0.4, 0.3),
  };
}

/** Crash and restart; a start may itself meet faults, and is tried again until one succeeds. */
async function restart({ world, workload, producers, changelog }: Run): Promise<void> {
  for (;;) {
    workload.forget();
    changelog.forget();
    for (const producer of producers) producer.forget();
    try {
      await world.crash();
      return;
    } catch (caught) {
      const passing = world.dead || /EIO|ENOSPC|injected/.test(String(caught));
      if (!passing) throw caught;
      world.disk.faults = { sync: 0, write: 0 };
      world.disk.room = Infinity;
    }
  }
}

async function endFaults(run: Run): Promise<void> {
  const { world, workload, producers } = run;
  const { disk, side } = world;
  disk.crashAfter(Infinity);
  disk.faults = { sync: 0, write: 0 };
  disk.room = Infinity;
  world.loseReply = 0;
  world.storeFaults = { refuse: 0, loseReply: 0, late: 0, lateMs: 0, delayMs: 0 };
  side.loseReply = 0;
  side.catalog.faults = undefined;
  if (world.dead) await restart(run);
  for (let waited = 0; ; waited += 100) {
    const open = workload.resendAll();
    const unfinished = producers.filter((producer) => !producer.finish()).length;
    await world.settle();
    await world.clock.advance(100);
    if (workload.pending === 0 && open === 0 && unfinished === 0) break;
    if (waited > REST_MS)
      throw new Error(`L8: ${workload.pending} requests pending, ${open} batches unacked at rest`);
  }
  await world.drive(side.catalog.deliver());
  for (const { topic } of await side.tables.list()) await world.drive(side.tables.resume(topic));
}

/** Long enough for orphans to come of age and be swept, twice over. */
async function rest(world: World): Promise<void> {
  for (let waited = 0; waited < 30_000; waited += 100) await world.clock.advance(100);
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
