// From one broker to four under load, over PostgreSQL and the S3 double: how soon each of them has its share of what
// unmodified clients (kafkajs, its defaults) send, what clients notice, and what was read from the bucket for it.
// Run: node bench/scale-out.ts [seconds of load after the change]
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import kafkajs from 'kafkajs';
import { call } from '../src/cli/http-client.ts';
import { type Member, TestCluster } from '../test/cluster/cluster.ts';

const PARTITIONS = 64;
const PRODUCERS = 4;
const TOPIC = 'bench';
const VALUE = 'x'.repeat(1_024);
const EVERY_MS = 50;
/** One reading of every broker's counter. */
const LOOK_MS = 500;
/** Of the average of all brokers, from which on one counts as having its share. */
const SHARE = 0.4;
const seconds = Number(process.argv[2] ?? 20);

const say = (text: string) => process.stdout.write(`${text}\n`);

interface Seen {
  acked: number;
  failed: number;
  slowestMs: number;
}

function client(brokers: string): kafkajs.Kafka {
  return new kafkajs.Kafka({
    clientId: 'bench',
    brokers: [brokers],
    logLevel: kafkajs.logLevel.NOTHING,
  });
}

async function produce(brokers: string, seen: Seen, running: () => boolean): Promise<void> {
  const producer = client(brokers).producer({ allowAutoTopicCreation: false });
  await producer.connect();
  const messages = Array.from({ length: PARTITIONS }, (_, partition) => ({
    partition,
    value: VALUE,
  }));
  while (running()) {
    const startedMs = performance.now();
    try {
      await producer.send({ topic: TOPIC, acks: -1, messages });
      seen.acked += messages.length;
    } catch {
      seen.failed += messages.length;
    }
    const tookMs = performance.now() - startedMs;
    seen.slowestMs = Math.max(seen.slowestMs, tookMs);
    if (tookMs < EVERY_MS) await sleep(EVERY_MS - tookMs);
  }
  await producer.disconnect();
}

/** Bytes of records that a broker has taken; 0: it isn't up. */
async function taken({ up, node }: Member): Promise<number> {
  if (!up) return 0;
  const response = await call({ server: node.addresses.http, path: '/metrics' });
  const line = /^floe_log_flush_bytes_total(?:\{[^}]*\})? (\S+)$/m.exec(await response.text());
  return Number(line?.[1] ?? 0);
}

const folder = mkdtempSync(join(tmpdir(), 'floe-scale-'));
const cluster = await TestCluster.start({ folder, brokers: 4, putMs: 100, getMs: 30 });
try {
  const [first, ...others] = cluster.members;
  for (const member of others) await member.stop();
  const admin = client(first!.kafka).admin();
  await admin.connect();
  await admin.createTopics({ topics: [{ topic: TOPIC, numPartitions: PARTITIONS }] });
  await admin.disconnect();
  const seen: Seen = { acked: 0, failed: 0, slowestMs: 0 };
  let on = true;
  const load = Array.from({ length: PRODUCERS }, () => produce(first!.kafka, seen, () => on));
  await sleep(5_000);
  const before = { ...seen };
  seen.slowestMs = 0;
  await cluster.s3.resetCounters();
  const startedMs = performance.now();
  await Promise.all(others.map((member) => member.start()));
  const ready = performance.now();
  say(`three more are ready after ${Math.round(ready - startedMs)} ms`);
  let last = await Promise.all(cluster.members.map(taken));
  let balancedMs: number | undefined;
  while (performance.now() - ready < seconds * 1_000) {
    await sleep(LOOK_MS);
    const now = await Promise.all(cluster.members.map(taken));
    const gained = now.map((bytes, n) => bytes - last[n]!);
    last = now;
    const sum = gained.reduce((a, b) => a + b, 0);
    const balanced = gained.every((bytes) => bytes >= (SHARE * sum) / gained.length) && sum > 0;
    if (balanced) balancedMs ??= performance.now() - ready;
    const shares = gained.map((bytes) => `${Math.round((100 * bytes) / Math.max(1, sum))} %`);
    say(`${Math.round(performance.now() - ready)} ms: ${shares.join(', ')}`);
  }
  on = false;
  await Promise.all(load);
  const { acked, failed } = seen;
  say(
    balancedMs === undefined
      ? `not every broker has its share after ${seconds} s`
      : `every broker has its share ${Math.round(balancedMs)} ms after they were ready`,
  );
  say(`acked ${acked - before.acked}, failed ${failed}; slowest ${Math.round(seen.slowestMs)} ms`);
  say(`the bucket: ${JSON.stringify(await cluster.s3.counters())}`);
} finally {
  await cluster.stop();
  rmSync(folder, { recursive: true, force: true });
}
