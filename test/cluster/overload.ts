// Overload, with figures: a broker over PostgreSQL and an S3 double, one client that sends as much as it can on several
// connections, one that sends a small record now and then, and one that reads nothing of what it asked for. Then the bucket
// crawls, then the database. What must hold: nothing is refused or lost, latency grows, memory doesn't, the small client
// waits for the store but not for the greedy one, and once the trouble is over all is as before, by itself.
//   npm run overload [-- --seconds 12]
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { RawClient } from '../../src/broker/testing/raw-client.ts';
import { batchOf, fetchRequest, produceRequest } from '../../src/broker/testing/requests.ts';
import { kafkaClient } from '../../src/cli/kafka-client.ts';
import { produceApi } from '../../src/protocol/messages/00-produce.ts';
import { fetchApi } from '../../src/protocol/messages/01-fetch.ts';
import { megabytes, quantile } from '../measured.ts';
import { latencyOf } from '../s3/double-process.ts';
import { TestCluster } from './cluster.ts';

const { values: args } = parseArgs({ options: { seconds: { type: 'string', default: '12' } } });
const PHASE_MS = Number(args.seconds) * 1_000;
const CONNECTIONS = 6;
/** Requests that each of them keeps under way: far more than log.in.flight.bytes together. */
const PIPELINED = 20;
const GREEDY_BYTES = 500_000;
const MODEST_EVERY_MS = 100;
const TIMEOUT_MS = 60_000;
const MIB = 2 ** 20;
/** `log.in.flight.bytes`. */
const IN_FLIGHT_MIB = 24;
/** Under trouble, above what overload alone takes. */
const MORE_MEMORY_MIB = 96;
const [PUT_MS, CRAWL_PUT_MS, CRAWL_DATABASE_MS] = [50, 2_000, 250];

interface Seen {
  greedyBytes: number;
  readonly modestMs: number[];
  readonly rss: number[];
  readonly errors: Map<number, number>;
}
const nothing = (): Seen => ({ greedyBytes: 0, modestMs: [], rss: [], errors: new Map() });
let seen = nothing();
let over = false;

function note(errorCode: number): void {
  if (errorCode !== 0) seen.errors.set(errorCode, (seen.errors.get(errorCode) ?? 0) + 1);
}

async function produce(client: RawClient, topic: string, records: Uint8Array): Promise<void> {
  client.send(produceApi, 8, produceRequest(topic, records, { timeoutMs: TIMEOUT_MS }));
}

async function acked(client: RawClient): Promise<void> {
  const { response } = await client.receive(produceApi, 8);
  note(response.responses[0]!.partitionResponses[0]!.errorCode);
}

async function greedy(port: number): Promise<void> {
  const client = await RawClient.connect(port);
  const records = batchOf(['x'.repeat(GREEDY_BYTES)]);
  for (let n = 0; n < PIPELINED; n += 1) await produce(client, 'greedy', records);
  while (!over) {
    await acked(client);
    seen.greedyBytes += GREEDY_BYTES;
    if (!over) await produce(client, 'greedy', records);
  }
  client.close();
}

async function modest(port: number): Promise<void> {
  const client = await RawClient.connect(port);
  const records = batchOf(['a small record']);
  while (!over) {
    const startedMs = performance.now();
    await produce(client, 'modest', records);
    await acked(client);
    seen.modestMs.push(performance.now() - startedMs);
    await sleep(MODEST_EVERY_MS);
  }
  client.close();
}

/** Asks for everything, again and again, and never reads its socket. */
async function deaf(port: number): Promise<RawClient> {
  const client = await RawClient.connect(port);
  client.socket.pause();
  for (let n = 0; n < 50; n += 1)
    client.send(fetchApi, 11, fetchRequest([{ topic: 'greedy', maxBytes: 50 * MIB }]));
  return client;
}

interface Phase {
  readonly name: string;
  readonly p50: number;
  readonly p99: number;
  readonly rss: number;
  readonly mibs: number;
}

async function phase(name: string, pid: number): Promise<Phase> {
  seen = nothing();
  const mine = seen;
  for (const endMs = performance.now() + PHASE_MS; performance.now() < endMs; ) {
    mine.rss.push(megabytes(pid, 'VmRSS'));
    await sleep(200);
  }
  const found = {
    name,
    p50: quantile(mine.modestMs, 0.5),
    p99: quantile(mine.modestMs, 0.99),
    rss: Math.max(...mine.rss),
    mibs: mine.greedyBytes / MIB / (PHASE_MS / 1_000),
  };
  const ms = (value: number) => `${value.toFixed(0)} ms`.padStart(9);
  const errors = [...mine.errors].map(([code, count]) => `${count} × ${code}`).join(', ');
  process.stdout.write(
    `${name.padEnd(26)} ${ms(found.p50)} ${ms(found.p99)} ${String(mine.modestMs.length).padStart(6)} ${found.mibs.toFixed(1).padStart(8)} ${found.rss.toFixed(0).padStart(8)}  ${errors}\n`,
  );
  check(mine.errors.size === 0, `${name}: nothing is refused`);
  return found;
}

let failed = 0;
function check(holds: boolean, what: string): void {
  if (holds) return;
  failed += 1;
  process.stdout.write(`FAIL ${what}\n`);
}

const folder = mkdtempSync(join(tmpdir(), 'floe-overload-'));
const cluster = await TestCluster.start({ folder, brokers: 1, putMs: PUT_MS, getMs: 10 });
try {
  const [member] = cluster.members as [TestCluster['members'][number]];
  const port = Number(member.kafka.split(':')[1]);
  const { pid } = member.node;
  const admin = kafkaClient(member.kafka).admin();
  await admin.connect();
  const topics = ['greedy', 'modest'].map((topic) => ({ topic, numPartitions: 1 }));
  await admin.createTopics({ topics });
  await admin.disconnect();
  const clients = [modest(port), ...Array.from({ length: CONNECTIONS }, () => greedy(port))].map(
    (client) => client.catch((caught) => check(false, `a client ended: ${caught}`)),
  );
  const reader = await deaf(port);
  process.stdout.write(
    `${'small client:'.padEnd(26)}       p50       p99   acks  greedy MiB/s  RSS MiB\n`,
  );
  await phase('warming up', pid);
  const before = await phase('overload alone', pid);
  await cluster.s3.setLatency(latencyOf(CRAWL_PUT_MS, 500));
  const bucket = await phase('the bucket crawls', pid);
  await cluster.s3.setLatency(latencyOf(PUT_MS, 10));
  await phase('it recovers', pid);
  const between = await phase('as before', pid);
  member.postgres.trouble = { toServerMs: CRAWL_DATABASE_MS };
  const database = await phase('the database crawls', pid);
  member.postgres.trouble = {};
  await phase('it recovers', pid);
  const after = await phase('as before', pid);
  over = true;
  reader.close();
  await Promise.race([Promise.all(clients), sleep(30_000)]);
  const most = Math.max(bucket.rss, database.rss, after.rss);
  const memory = `${before.rss.toFixed(0)} MiB before, ${most.toFixed(0)} at most`;
  check(most < before.rss + MORE_MEMORY_MIB, `memory stays: ${memory}`);
  check(bucket.mibs < before.mibs, 'the bucket is what everybody waits for');
  for (const { name, p99, mibs } of [before, bucket, between, database, after]) {
    // What is under way goes first, and a few PUTs; the greedy client's queue of requests doesn't.
    const most = (1.5 * IN_FLIGHT_MIB * 1_000) / mibs + 4 * CRAWL_PUT_MS;
    check(
      p99 < most,
      `${name}: the small client waits for what is under way only: ${p99.toFixed(0)} ms`,
    );
  }
  for (const { mibs } of [between, after]) {
    const was = `${mibs.toFixed(1)} MiB/s after ${before.mibs.toFixed(1)}`;
    check(mibs > before.mibs / 2, `recovery is by itself: ${was}`);
  }
} finally {
  over = true;
  await cluster.stop();
  rmSync(folder, { recursive: true, force: true });
}
process.stdout.write(failed === 0 ? 'all holds\n' : `${failed} failed\n`);
process.exit(failed === 0 ? 0 : 1);
