// The month itself: a library of flushes from the flush stage, what readers at the tail ask for, then the log for as many
// days as wanted on a sample of the load. Compaction's rules know bytes and partitions, not rates, once objects fill by size: so
// the log is run with 1/sample of the bytes in whole flushes, and what it counts is multiplied.
import { assert } from '../../src/base/assert.ts';
import { seededPrng } from '../../src/base/prng.ts';
import { objectFlushPolicy } from '../../src/storage/log/flush-policy.ts';
import { SlabPool } from '../../src/storage/log/slab.ts';
import { CatchUp } from './catch-up.ts';
import { COMMIT_MS, type FlushStage, runFlushStage } from './flushes.ts';
import { LogWorld, type MonthSettings } from './log-world.ts';
import { MACHINE, type MonthUsage, machinesFor } from './prices.ts';
import { INDEX_ENTRY_BYTES, measureTail, type TailCost, type WrittenFlush } from './tail.ts';
import { assignments, DAY_MS, GIB, partitionsOf, type Workload } from './workload.ts';

export interface MonthOptions {
  readonly workload: Workload;
  readonly settings: MonthSettings;
  /** Only one in so many bytes is run through the log. */
  readonly sample: number;
  readonly days: number;
  /** Of the flush stage, for each broker. */
  readonly flushSeconds: number;
  readonly seed: number;
  readonly maintainers?: number;
  readonly onHour?: (point: Point) => void;
}

/** The whole cluster in an hour. */
export interface Point {
  readonly day: number;
  readonly storedBytes: number;
  /** Requests a second since the point before, by `<purpose> <operation>`. */
  readonly perSecond: Readonly<Record<string, number>>;
  /** Bytes of flushes that nobody has compacted yet. */
  readonly backlogBytes: number;
  readonly rewrittenBytesPerSecond: number;
}

export interface MonthResult {
  readonly points: readonly Point[];
  readonly flush: FlushSummary;
  readonly tail: TailCost;
  readonly catchUp: { readonly bytes: number; readonly gets: number };
  /** Of stream objects at the end. */
  readonly rows: number;
  readonly objects: number;
  readonly usage: MonthUsage;
}

export interface FlushSummary {
  readonly putsPerSecond: number;
  readonly meanBytes: number;
  readonly partitionsPerFlush: number;
  readonly ackP50Ms: number;
  readonly ackP99Ms: number;
  readonly maxInFlightBytes: number;
}

export interface Library {
  readonly written: readonly WrittenFlush[];
  readonly summary: FlushSummary;
}

/** Every broker's flushes for a while, at the month's load. */
export async function makeLibrary(options: MonthOptions): Promise<Library> {
  const { workload, settings, flushSeconds, seed } = options;
  const slabs = SlabPool.create(settings['log.slab.bytes'], settings['log.slab.count']);
  const written: WrittenFlush[] = [];
  const stages: FlushStage[] = [];
  for (const [broker, partitions] of assignments(workload)) {
    const stage = await runFlushStage({
      partitions,
      policy: objectFlushPolicy(settings),
      slabs,
      inFlightBytes: settings['log.in.flight.bytes'],
      lingerMs: workload.lingerMs,
      recordBytes: workload.recordBytes,
      seconds: flushSeconds,
      seed: seed + broker.nodeId,
    });
    stages.push(stage);
    written.push(...stage.flushes.map((flush) => ({ flush, broker })));
  }
  return { written, summary: summaryOf(stages, written) };
}

function summaryOf(stages: readonly FlushStage[], written: readonly WrittenFlush[]): FlushSummary {
  const acks = stages.flatMap(({ ackMs }) => ackMs).sort((a, b) => a - b);
  const sum = (pick: (flush: WrittenFlush['flush']) => number) =>
    written.reduce((total, { flush }) => total + pick(flush), 0);
  return {
    putsPerSecond: written.length / stages[0]!.seconds,
    meanBytes: sum(({ bytes }) => bytes) / written.length,
    partitionsPerFlush: sum(({ partitionIds }) => partitionIds.length) / written.length,
    ackP50Ms: acks[acks.length >> 1]!,
    ackP99Ms: acks[Math.floor(acks.length * 0.99)]!,
    maxInFlightBytes: Math.max(...stages.map(({ maxInFlightBytes }) => maxInFlightBytes)),
  };
}

/** Flushes looked at by the stage of the tail. */
const TAIL_FLUSHES = 200;
const HOUR_MS = 3_600_000;

export async function runMonth(options: MonthOptions): Promise<MonthResult> {
  const { workload, settings } = options;
  const library = await makeLibrary(options);
  const every = Math.max(1, Math.floor(library.written.length / TAIL_FLUSHES));
  const looked = library.written.filter((_, n) => n % every === 0);
  const tail = await measureTail(looked, workload, settings);
  const world = new LogWorld({
    partitionIds: partitionsOf(workload).map(({ partitionId }) => partitionId),
    retentionMs: workload.retentionMs,
    settings,
    seed: options.seed,
    ...(options.maintainers === undefined ? {} : { maintainers: options.maintainers }),
  });
  const catchUp = new CatchUp(world);
  const points = await runLog({ options, library, world, catchUp });
  world.metadata.audit();
  const usage = usageOf({ options, library, tail, world, points });
  const { rowCount, sealedCount } = world.metadata;
  await world.stop();
  const sealed = { rows: rowCount * options.sample, objects: sealedCount * options.sample };
  return { points, flush: library.summary, tail, catchUp: catchUp.tally, ...sealed, usage };
}

interface Running {
  readonly options: MonthOptions;
  readonly library: Library;
  readonly world: LogWorld;
  readonly catchUp: CatchUp;
}

async function runLog({ options, library, world, catchUp }: Running): Promise<Point[]> {
  const { workload, sample, days } = options;
  const prng = seededPrng(options.seed + 1);
  const startedMs = world.clock.monotonic();
  const points = new Points(world, options);
  let failed: unknown;
  let reading: Promise<void> = Promise.resolve();
  let dueMs = 0;
  let hour = 1;
  while (dueMs < days * DAY_MS) {
    const { flush } = library.written[prng.int(library.written.length)]!;
    dueMs += (flush.bytes / (workload.bytesPerSecond / sample)) * 1_000;
    for (; hour * HOUR_MS <= dueMs && hour <= days * 24; hour += 1) {
      await world.clock.advance(startedMs + hour * HOUR_MS - world.clock.monotonic());
      points.add(hour / 24);
      if (hour % 24 !== 0) continue;
      world.metadata.audit();
      const ids = rereadPartitions(options, hour / 24);
      reading = reading
        .then(() => catchUp.read(ids))
        .catch((caught: unknown) => {
          failed = caught;
        });
    }
    await world.clock.advance(startedMs + dueMs - world.clock.monotonic());
    if (failed !== undefined) throw failed;
    world.flush(flush);
  }
  return points.points;
}

/** Partitions that are read from the start of their logs on a day: as many bytes in all as `rereadShare` asks for. */
function rereadPartitions({ workload, seed }: MonthOptions, day: number): number[] {
  const prng = seededPrng(seed + 1_000 + day);
  // Half of each is read.
  const share = (2 * workload.rereadShare * DAY_MS) / Math.min(workload.retentionMs, day * DAY_MS);
  return partitionsOf(workload)
    .map(({ partitionId }) => partitionId)
    .filter(() => prng.next() < share);
}

/** Hourly figures of the whole cluster from counts of the sample. */
class Points {
  readonly points: Point[] = [];
  readonly #world: LogWorld;
  readonly #options: MonthOptions;
  #before: Record<string, number> = {};
  #rewritten = 0;

  constructor(world: LogWorld, options: MonthOptions) {
    this.#world = world;
    this.#options = options;
  }

  add(day: number): void {
    const { store, metadata, busy } = this.#world;
    const { sample, onHour } = this.#options;
    const scale = sample / 3_600;
    const now: Record<string, number> = {};
    for (const [key, { requests }] of store.tallies) now[key] = requests;
    const perSecond = Object.fromEntries(
      Object.entries(now).map(([key, n]) => [key, (n - (this.#before[key] ?? 0)) * scale]),
    );
    const point = {
      day,
      storedBytes: store.storedBytes * sample,
      perSecond,
      backlogBytes: metadata.openBytes * sample,
      rewrittenBytesPerSecond: (busy.bytesWritten - this.#rewritten) * scale,
    };
    this.#before = now;
    this.#rewritten = busy.bytesWritten;
    this.points.push(point);
    onHour?.(point);
  }
}

const SECONDS_PER_MONTH = 30 * 24 * 3_600;
/** Bytea comes as hexadecimal text to brokers that follow (docs/benchmarks.md, "Commits on PostgreSQL"). */
const FOLLOW_ENCODING = 2;
/** A hint, with its frame and TCP's. */
const HINT_BYTES = 100;

interface Measured {
  readonly options: MonthOptions;
  readonly library: Library;
  readonly tail: TailCost;
  readonly world: LogWorld;
  readonly points: readonly Point[];
}

/** The steady days, those after the log is as long as retention lets it become, and what a month of such days takes. */
function usageOf({ options, library, tail, world, points }: Measured): MonthUsage {
  const { workload, sample, days } = options;
  const warm = Math.min(workload.retentionMs / DAY_MS + 1, days / 2);
  const steady = points.filter(({ day }) => day > warm);
  const mean = (pick: (point: Point) => number) =>
    steady.reduce((sum, point) => sum + pick(point), 0) / steady.length;
  const keys = [...new Set(points.flatMap((point) => Object.keys(point.perSecond)))];
  const { putsPerSecond } = library.summary;
  const perSecond: Record<string, number> = Object.fromEntries(
    keys.map((key) => [key, mean((point) => point.perSecond[key] ?? 0)]),
  );
  perSecond['tail get'] = tail.getsPerFlush * putsPerSecond;
  const rate = (...operations: string[]) =>
    Object.entries(perSecond)
      .filter(([key]) => operations.includes(key.split(' ')[1]!))
      .reduce((sum, [, n]) => sum + n, 0);
  const rewrites = mean((point) => point.rewrittenBytesPerSecond) / workload.bytesPerSecond;
  const networkBytesPerSecond = network(workload, tail, rewrites);
  const ranMs = days * DAY_MS;
  return {
    writeRequests: rate('put', 'list') * SECONDS_PER_MONTH,
    readRequests: rate('get') * SECONDS_PER_MONTH,
    storedBytes: mean((point) => point.storedBytes),
    crossZoneBytes: crossZone(workload, library.summary) * SECONDS_PER_MONTH,
    machines: machinesFor(networkBytesPerSecond, workload.zones.length),
    rewrites,
    busyMaintainers: (world.busy.busyMs * sample) / ranMs,
    networkBytesPerSecond,
    commitsPerSecond: (world.metadata.work.commits * sample * 1_000) / ranMs,
    rowsPerSecond:
      ((world.metadata.work.rowsWritten + world.metadata.work.rowsDeleted) * sample * 1_000) /
      ranMs,
    perSecond,
    unsteadiness: unsteadiness(steady),
  };
}

/** What leaves the machines, which is more than what enters them: to consumers, to the bucket, to brokers of the zone. */
function network(workload: Workload, tail: TailCost, rewrites: number): number {
  const { bytesPerSecond, tailReaders, rereadShare } = workload;
  return bytesPerSecond * (tailReaders + rereadShare + 1 + rewrites + tail.peerBytesPerByte);
}

/** Bytes a second that cross zones: what brokers follow of the database, what they tell it, hints. */
function crossZone(
  workload: Workload,
  { putsPerSecond, partitionsPerFlush }: FlushSummary,
): number {
  const brokers = workload.zones.length * workload.brokersPerZone;
  const elsewhere = 1 - 1 / workload.zones.length;
  const index = partitionsPerFlush * INDEX_ENTRY_BYTES;
  const perCommit = index * FOLLOW_ENCODING * (brokers + 1) + HINT_BYTES * brokers;
  return putsPerSecond * perCommit * elsewhere;
}

function unsteadiness(steady: readonly Point[]): number {
  const days = Map.groupBy(steady, ({ day }) => Math.ceil(day));
  const totals = [...days.values()]
    .filter((points) => points.length === 24)
    .map((points) =>
      points.reduce(
        (sum, { perSecond }) => sum + Object.values(perSecond).reduce((a, b) => a + b, 0),
        0,
      ),
    );
  if (totals.length < 2) return 0;
  const mean = totals.reduce((a, b) => a + b, 0) / totals.length;
  return Math.max(...totals.map((total) => Math.abs(total / mean - 1)));
}

/** What must hold of any month, whatever it costs. @throws AssertionError. */
export function checkMonth({ usage, flush }: MonthResult): void {
  assert(
    usage.networkBytesPerSecond < usage.machines * MACHINE.networkBytesPerSecond,
    'machines carry it',
  );
  assert(flush.ackP99Ms < 1_000, 'producers wait for less than a second');
  assert(flush.putsPerSecond * COMMIT_MS < 1_000, 'the database commits as fast as brokers flush');
}

/** GETs per 4 MiB of a reader far behind. */
export const getsPer4Mib = ({ catchUp: { gets, bytes } }: MonthResult): number =>
  gets / (bytes / (GIB / 256));
