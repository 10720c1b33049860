// End to end across brokers: a record is produced on one broker and read on another by a consumer in a long poll, over
// PostgreSQL (fsync on) and the S3 double at 100 ms PUT and 30 ms GET, brokers as processes of their own. Sparse load, as
// a queue of work has it, and a load that fills every flush. Relays of the harness stand between brokers and stores.
// Run: node bench/two-brokers.ts [records of a case]
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { RawClient } from '../src/broker/testing/raw-client.ts';
import { batchOf, fetchRequest, produceRequest } from '../src/broker/testing/requests.ts';
import { produceApi } from '../src/protocol/messages/00-produce.ts';
import { fetchApi } from '../src/protocol/messages/01-fetch.ts';
import { createTopicsApi } from '../src/protocol/messages/19-create-topics.ts';
import { baseOffset, batchEnd, lastOffsetDelta } from '../src/protocol/record-batch.ts';
import { TestCluster } from '../test/cluster/cluster.ts';
import { quantile } from '../test/measured.ts';

const PUT_MS = 100;
const GET_MS = 30;
/** `log.flush.age.ms`. */
const FLUSH_AGE_MS = 250;
const LIMIT_MS = FLUSH_AGE_MS + 1.5 * PUT_MS + GET_MS;
const TOPIC = 'bench';
const VALUE = 'x'.repeat(1_024);
const count = Number(process.argv[2] ?? 300);

const ms = (values: readonly number[], q: number) => Math.round(quantile(values, q));

interface Times {
  /** By offset, `performance.now()`. */
  readonly sent: number[];
  readonly acked: number[];
  readonly read: number[];
}

interface Load {
  readonly everyMs: number;
  readonly count: number;
}

/** Sends a record every `everyMs`, whatever became of those before; resolves when all are acked. */
async function produce(client: RawClient, { everyMs, count }: Load, times: Times): Promise<void> {
  const first = times.sent.length;
  const receiving = (async () => {
    for (let n = 0; n < count; n += 1) {
      const { response } = await client.receive(produceApi, 11);
      const { errorCode, baseOffset: offset } = response.responses[0]!.partitionResponses[0]!;
      if (errorCode !== 0) throw new Error(`Produce answers ${errorCode}`);
      times.acked[Number(offset)] = performance.now();
    }
  })();
  const start = performance.now();
  for (let n = 0; n < count; n += 1) {
    const wait = start + n * everyMs - performance.now();
    if (wait > 0) await sleep(wait);
    times.sent[first + n] = performance.now();
    client.send(produceApi, 11, {
      transactionalId: null,
      ...produceRequest(TOPIC, batchOf([VALUE])),
    } as never);
  }
  await receiving;
}

/** Long polls until everything up to `end` has come. */
async function consume(client: RawClient, end: number, times: Times): Promise<void> {
  for (let offset = times.read.length; offset < end; ) {
    const asked = fetchRequest([{ topic: TOPIC, offset }], { maxWaitMs: 5_000 });
    const { responses } = await client.call(fetchApi, 11, asked as never);
    const { errorCode, records } = responses[0]!.partitions[0]!;
    if (errorCode !== 0) throw new Error(`Fetch answers ${errorCode}`);
    const nowMs = performance.now();
    for (
      let at = 0, next: number;
      (next = batchEnd(records ?? Buffer.alloc(0), at)) !== -1;
      at = next
    ) {
      const last = baseOffset(records!, at) + lastOffsetDelta(records!, at);
      for (; offset <= last; offset += 1) times.read[offset] = nowMs;
    }
  }
}

async function createTopic(client: RawClient): Promise<void> {
  await client.call(createTopicsApi, 5, {
    topics: [{ name: TOPIC, numPartitions: 1, replicationFactor: 1, assignments: [], configs: [] }],
    timeoutMs: 10_000,
  });
}

const folder = mkdtempSync(join(tmpdir(), 'floe-two-'));
const cluster = await TestCluster.start({ folder, brokers: 2, putMs: PUT_MS, getMs: GET_MS });
try {
  const [one, other] = await Promise.all(
    cluster.members.map(({ port }) => RawClient.connect(port)),
  );
  await createTopic(one!);
  // Until clients are no longer sent on to the broker that came last.
  await sleep(7_000);
  const times: Times = { sent: [], acked: [], read: [] };
  process.stdout.write(
    `limit: flush age ${FLUSH_AGE_MS} + 1.5 × PUT ${PUT_MS} + GET ${GET_MS} = ${LIMIT_MS} ms\n`,
  );
  for (const everyMs of [1_000, 100, 5]) {
    const from = times.sent.length;
    const few = everyMs === 1_000 ? Math.ceil(count / 10) : count;
    await Promise.all([
      produce(one!, { everyMs, count: few }, times),
      consume(other!, from + few, times),
    ]);
    // The first ones warm up.
    const offsets = Array.from({ length: few }, (_, n) => from + n).slice(Math.ceil(few / 10));
    const acks = offsets.map((at) => times.acked[at]! - times.sent[at]!);
    const ends = offsets.map((at) => times.read[at]! - times.sent[at]!);
    const lags = offsets.map((at) => times.read[at]! - times.acked[at]!);
    process.stdout.write(
      `a record every ${everyMs} ms (${few}): ack p50 ${ms(acks, 0.5)} p99 ${ms(acks, 0.99)}; read on the other broker p50 ${ms(ends, 0.5)} p99 ${ms(ends, 0.99)}; after the ack p50 ${ms(lags, 0.5)} p99 ${ms(lags, 0.99)} ms\n`,
    );
  }
  for (const client of [one!, other!]) client.close();
} finally {
  await cluster.stop();
  rmSync(folder, { recursive: true, force: true });
}
