// What a commit of the log costs on PostgreSQL: a server of its own on this machine (fsync on), batches of idempotent
// producers. One broker at a time by number of partitions; several at once on the same partitions, which is the worst
// case; what following costs.
//   node bench/postgres.ts [SECONDS=3]
import { systemClock } from '../src/base/clock.ts';
import { systemPrng } from '../src/base/prng.ts';
import { resolveSettings } from '../src/base/settings.ts';
import type { FlushCommit } from '../src/metadata/log.ts';
import { openPostgresMetadata, type PostgresMetadata } from '../src/metadata/postgres/index.ts';
import { postgresSettings } from '../src/metadata/postgres/settings.ts';
import { startPostgres } from '../src/metadata/postgres/testing.ts';
import { testColumns } from '../src/metadata/test-batches.ts';

const [seconds = 3] = process.argv.slice(2).map(Number);
const PARTITIONS = 640;
const SIZES = [1, 100, PARTITIONS];
const WARM = 150;

/** One producer, which writes to every partition in turn. */
class Writer {
  readonly #broker: PostgresMetadata;
  readonly #partitions: readonly number[];
  readonly #producerId: number;
  readonly #sequences = new Map<number, number>();
  static #flushes = 0;

  constructor(broker: PostgresMetadata, partitions: readonly number[], producerId: number) {
    this.#broker = broker;
    this.#partitions = partitions;
    this.#producerId = producerId;
  }

  async commit(size: number): Promise<void> {
    const [done] = await this.#broker.log.commit([this.#flush(size)]);
    if (done!.errorCodes.some((code) => code !== 0)) throw new Error('a batch was refused');
  }

  #flush(size: number): FlushCommit {
    const n = ++Writer.#flushes;
    const flushId = systemPrng.bytes(16);
    const producerId = this.#producerId;
    const batches = this.#partitions.slice(0, size).map((partitionId) => {
      const sequence = this.#sequences.get(partitionId) ?? 0;
      this.#sequences.set(partitionId, sequence + 1);
      return { partitionId, producerId, sequence };
    });
    const object = { key: `bench/${n}`, kind: 'object', generation: 0, bytes: 1 } as const;
    return { flushId, object, nowMs: 0, batches: testColumns(batches) };
  }
}

const server = await startPostgres({ fsync: true });
try {
  const url = await server.empty();
  const brokers = await Promise.all(Array.from({ length: 4 }, () => openBroker(url)));
  const [first] = brokers as [PostgresMetadata];
  const topic = {
    topicId: 'bench',
    name: 'bench',
    partitionCount: PARTITIONS,
    config: {},
    nowMs: 0,
  };
  const { partitions } = await first.topics.create(topic);
  const writers: Writer[] = [];
  for (const broker of brokers) {
    const { producerId } = await broker.producers.initProducerId(0);
    writers.push(new Writer(broker, partitions, producerId));
  }
  for (const size of SIZES) await alone(writers[0]!, size);
  await together(writers);
  await following(first);
  await Promise.all(brokers.map((broker) => broker.close()));
} finally {
  await server.stop();
}

function openBroker(url: string): Promise<PostgresMetadata> {
  const settings = resolveSettings(postgresSettings, {});
  const applicationName = 'floe bench';
  return openPostgresMetadata({
    url,
    clock: systemClock,
    prng: systemPrng,
    settings,
    applicationName,
  });
}

async function alone(writer: Writer, size: number): Promise<void> {
  for (let n = 0; n < WARM; n += 1) await writer.commit(size);
  const times = await timed(() => writer.commit(size));
  report(`commit of ${size} partitions, one broker`, times);
}

async function together(writers: readonly Writer[]): Promise<void> {
  await Promise.all(writers.map((writer) => writer.commit(PARTITIONS)));
  const started = performance.now();
  const each = await Promise.all(writers.map((writer) => timed(() => writer.commit(PARTITIONS))));
  const elapsed = performance.now() - started;
  const times = each.flat();
  report(`commit of ${PARTITIONS} partitions, ${writers.length} brokers on the same`, times);
  console.log(`  ${((times.length / elapsed) * 1000).toFixed(0)} commits/s`);
}

async function following(broker: PostgresMetadata): Promise<void> {
  const last = await broker.log.lastCommitNumber();
  report('follow, nothing new', await timed(() => broker.log.follow(last, 100)));
  report('follow, one commit', await timed(() => broker.log.follow(last - 1, 100)));
  report('snapshot', await timed(() => broker.log.snapshot()));
}

/** Milliseconds of each call. */
async function timed(work: () => Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  const end = performance.now() + seconds * 1000;
  for (let now = performance.now(); now < end; ) {
    await work();
    const after = performance.now();
    times.push(after - now);
    now = after;
  }
  return times;
}

function report(what: string, times: readonly number[]): void {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.floor(share * (sorted.length - 1))]!.toFixed(2);
  console.log(`${what}: p50 ${at(0.5)} ms, p90 ${at(0.9)}, p99 ${at(0.99)} (${times.length})`);
}
