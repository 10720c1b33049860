// The flush stage of one broker, batch by batch: the product's admission, slabs and flush policy on the virtual clock,
// fed with batches of zeros. What comes out are flushes as they would be PUT: which partitions, how many bytes of each.
// Not for: what becomes of flushes (log-world.ts).
import { ManualClock } from '../../src/base/clock.ts';
import { noMetrics } from '../../src/base/metrics.ts';
import { type Prng, seededPrng } from '../../src/base/prng.ts';
import { groupByPartition, viewColumns } from '../../src/metadata/batch-columns.ts';
import { Admission } from '../../src/storage/log/admission.ts';
import type { ObjectFlushPolicy } from '../../src/storage/log/flush-policy.ts';
import type { AppendItem } from '../../src/storage/log/log.ts';
import type { OpenFlush } from '../../src/storage/log/open-flush.ts';
import type { SlabPool } from '../../src/storage/log/slab.ts';
import { BLOCK_HEADER_BYTES, TRAILER_BYTES } from '../../src/storage/log/wal-format.ts';
import { putMs } from './store.ts';
import type { Partition } from './workload.ts';

/** A flush as its sizes; element n of each column is its n-th partition, ascending. */
export interface Flush {
  readonly partitionIds: Uint32Array;
  readonly lengths: Uint32Array;
  readonly records: Uint32Array;
  readonly batches: Uint32Array;
  /** Of batches alone. */
  readonly bytes: number;
}

export interface FlushStage {
  readonly flushes: readonly Flush[];
  readonly seconds: number;
  /** Milliseconds from the first batch of a flush to its commit, ascending. */
  readonly ackMs: readonly number[];
  readonly maxInFlightBytes: number;
}

export interface FlushStageOptions {
  readonly partitions: readonly Partition[];
  readonly policy: ObjectFlushPolicy;
  readonly slabs: SlabPool;
  readonly inFlightBytes: number;
  readonly lingerMs: number;
  readonly recordBytes: number;
  readonly seconds: number;
  readonly seed: number;
}

/** A commit of a hundred partitions on PostgreSQL, measured (docs/benchmarks.md). */
export const COMMIT_MS = 4;
/** Kafka's producers send batches up to this with `batch.size` as rivals' benchmarks set it. */
const MAX_BATCH_BYTES = 1024 * 1024;
/** A partition's batches differ by so much in size. */
const SIZE_SPREAD = 0.6;
const MIN_BATCH_BYTES = 256;

/** Runs a broker for some virtual seconds after a first one that isn't counted. */
export async function runFlushStage(options: FlushStageOptions): Promise<FlushStage> {
  const clock = new ManualClock(0);
  const prng = seededPrng(options.seed);
  const flushes: Flush[] = [];
  const ackMs: number[] = [];
  let [inFlight, maxInFlightBytes] = [0, 0];
  let before: Promise<void> = Promise.resolve();
  const warmMs = 1_000;
  const admission = new Admission({
    slabs: options.slabs,
    policy: options.policy,
    clock,
    metrics: noMetrics,
    inFlightBytes: options.inFlightBytes,
    freeSlab: () => false,
    send: (flush) => {
      inFlight += flush.bytes;
      maxInFlightBytes = Math.max(maxInFlightBytes, inFlight);
      if (clock.monotonic() >= warmMs) flushes.push(sizesOf(flush));
      const previous = before;
      before = land(clock, putMs(flush.bytes, prng), previous).then(() => {
        inFlight -= flush.bytes;
        ackMs.push(clock.monotonic() - flush.startedMs);
        options.slabs.release(flush.slab.number);
        admission.landed(flush, () => {});
      });
    },
  });
  for (const { atMs, items } of arrivals(options, warmMs + options.seconds * 1_000, prng)) {
    await clock.advance(atMs - clock.monotonic());
    void admission.append(items);
  }
  const { seconds } = options;
  // What the end makes go out early doesn't count.
  const done = {
    flushes: flushes.slice(),
    seconds,
    ackMs: ackMs.toSorted((a, b) => a - b),
    maxInFlightBytes,
  };
  await drain(clock, admission);
  return done;
}

/** PUTs go side by side, commits in order. */
async function land(clock: ManualClock, ms: number, previous: Promise<void>): Promise<void> {
  await clock.sleep(ms);
  await previous;
  await clock.sleep(COMMIT_MS);
}

async function drain(clock: ManualClock, admission: Admission): Promise<void> {
  let stopped = false;
  const stopping = admission.stop().then(() => {
    stopped = true;
  });
  while (!stopped) {
    await clock.advance(100);
    admission.settle();
  }
  await stopping;
}

interface Arrival {
  readonly atMs: number;
  readonly items: readonly AppendItem[];
}

/** Batches by the millisecond of their arrival: each partition's at its own time within the linger. */
function* arrivals(options: FlushStageOptions, untilMs: number, prng: Prng): Generator<Arrival> {
  const { partitions, lingerMs, recordBytes } = options;
  const zeros = new Uint8Array(MAX_BATCH_BYTES);
  const phases = partitions.map(() => prng.int(lingerMs));
  // A batch is at least a few records: who has less to send sends less often.
  const every = partitions.map(({ bytesPerSecond }) =>
    Math.max(1, Math.ceil(MIN_BATCH_BYTES / ((bytesPerSecond * lingerMs) / 1_000))),
  );
  for (let atMs = 0; atMs < untilMs; atMs += 1) {
    const round = Math.floor(atMs / lingerMs);
    const items: AppendItem[] = [];
    for (const [n, { partitionId, bytesPerSecond }] of partitions.entries()) {
      if (phases[n] !== atMs % lingerMs || round % every[n]! !== n % every[n]!) continue;
      const mean = (bytesPerSecond * lingerMs * every[n]!) / 1_000;
      let left = Math.round(mean * (1 + SIZE_SPREAD * (prng.next() - 0.5)));
      for (; left > 0; left -= MAX_BATCH_BYTES) {
        const bytes = zeros.subarray(0, Math.min(left, MAX_BATCH_BYTES));
        items.push(itemOf(partitionId, bytes, recordBytes));
      }
    }
    if (items.length > 0) yield { atMs, items };
  }
}

function itemOf(partitionId: number, bytes: Uint8Array, recordBytes: number): AppendItem {
  const recordCount = Math.max(1, Math.round(bytes.length / recordBytes));
  return {
    partitionId,
    bytes,
    recordCount,
    lastOffsetDelta: recordCount - 1,
    producerId: -1,
    producerEpoch: -1,
    baseSequence: -1,
    maxTimestamp: 0,
    logAppendTimeMs: -1,
  };
}

function sizesOf(flush: OpenFlush): Flush {
  const { buffer, capacity, count } = flush.take();
  const columns = viewColumns(buffer, capacity, count);
  const ids = [...new Set(columns.partitionIds)].sort((a, b) => a - b);
  const sizes = {
    partitionIds: Uint32Array.from(ids),
    lengths: new Uint32Array(ids.length),
    records: new Uint32Array(ids.length),
    batches: new Uint32Array(ids.length),
    bytes: flush.bytes,
  };
  let at = -1;
  for (const n of groupByPartition(columns)) {
    if (columns.partitionIds[n] !== sizes.partitionIds[at]) at += 1;
    sizes.lengths[at]! += columns.lengths[n]!;
    sizes.records[at]! += columns.recordCounts[n]!;
    sizes.batches[at]! += 1;
  }
  return sizes;
}

/** Bytes of a flush's object before its footer, and with it (layout.ts, wal-format.ts). */
export function objectSizes(
  { bytes, partitionIds }: Flush,
  indexBytes: number,
): { readonly footerPosition: number; readonly bytes: number } {
  const footerPosition = bytes + partitionIds.length * BLOCK_HEADER_BYTES;
  return {
    footerPosition,
    bytes: footerPosition + BLOCK_HEADER_BYTES + indexBytes + TRAILER_BYTES,
  };
}
