// Many small tables on one node: so many table topics at so many records a second each. Every table should be fresh
// within its interval and two seconds, on one core and in 1.2 GB. Prints one line of JSON.
//   node_modules/.bin/node bench/tables.ts [--topics 200] [--rate 100] [--seconds 60] [--interval 10000] [--set K=V]…
// Not for: comparing with rivals, which have no such thing (bench/table.ts compares one table).
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import kafkajs, { type Producer } from 'kafkajs';
import { type ChildNode, startChild } from '../src/cli/child.ts';
import { call } from '../src/cli/http-client.ts';
import type { TableStatus } from '../src/table-topic/index.ts';
import { cpuSeconds, megabytes } from '../test/measured.ts';

const { values: args } = parseArgs({
  options: {
    topics: { type: 'string', default: '200' },
    rate: { type: 'string', default: '100' },
    seconds: { type: 'string', default: '60' },
    interval: { type: 'string', default: '10000' },
    set: { type: 'string', multiple: true, default: [] },
  },
});
const [topics, rate, seconds, interval] = [args.topics, args.rate, args.seconds, args.interval].map(
  Number,
) as [number, number, number, number];

/** Sends of a topic in a second. */
const SENDS = 2;
/** Topics of one request. */
const TOPICS_PER_REQUEST = 50;
const names = Array.from({ length: topics }, (_, n) => `t${n}`);

async function createTopics(kafka: kafkajs.Kafka): Promise<void> {
  const admin = kafka.admin();
  await admin.connect();
  const configEntries = Object.entries({
    'table.topic.enable': 'true',
    'table.topic.convert.value.type': 'json',
    'table.topic.commit.interval.ms': String(interval),
  }).map(([name, value]) => ({ name, value }));
  const all = names.map((topic) => ({ topic, numPartitions: 1, configEntries }));
  for (let at = 0; at < all.length; at += TOPICS_PER_REQUEST) {
    await admin.createTopics({ topics: all.slice(at, at + TOPICS_PER_REQUEST) });
  }
  await admin.disconnect();
}

let sequence = 0;
function messages(): { value: string }[] {
  return Array.from({ length: rate / SENDS }, () => {
    sequence += 1;
    return {
      value: `{"id":${sequence},"user":"user-${sequence % 1_000}","amount":${sequence % 977}.5,"kind":"click","ok":true}`,
    };
  });
}

/** Sends to every topic in turn until `until` (monotonic ms); falls behind rather than piling up. */
async function load(producer: Producer, until: number): Promise<void> {
  const step = 1_000 / SENDS / (topics / TOPICS_PER_REQUEST);
  let due = performance.now();
  for (let at = 0; performance.now() < until; at = (at + TOPICS_PER_REQUEST) % topics) {
    const topicMessages = names
      .slice(at, at + TOPICS_PER_REQUEST)
      .map((topic) => ({ topic, messages: messages() }));
    await producer.sendBatch({ acks: -1, topicMessages });
    due = Math.max(due + step, performance.now() - 1_000);
    await sleep(Math.max(0, due - performance.now()));
  }
}

async function statuses(node: ChildNode): Promise<readonly TableStatus[]> {
  const response = await call({ server: node.addresses.http, path: '/v1/tables' });
  return ((await response.json()) as { tables: TableStatus[] }).tables;
}

const folder = mkdtempSync(join(tmpdir(), 'floe-tables-'));
const node = await startChild(
  folder,
  args.set.flatMap((assignment) => ['--set', assignment]),
);
try {
  const brokers = [node.addresses.kafka];
  const kafka = new kafkajs.Kafka({ brokers, logLevel: kafkajs.logLevel.NOTHING });
  await createTopics(kafka);
  const producer = kafka.producer({ createPartitioner: kafkajs.Partitioners.DefaultPartitioner });
  await producer.connect();
  const warmMs = 2 * interval;
  const until = performance.now() + warmMs + seconds * 1_000;
  const loading = load(producer, until);
  await sleep(warmMs);
  const [cpu, sent, started] = [cpuSeconds(node.pid), sequence, performance.now()];
  let worst = 0;
  let late = 0;
  let looks = 0;
  while (performance.now() < until - 1_000) {
    for (const { lagSeconds } of await statuses(node)) {
      looks += 1;
      worst = Math.max(worst, lagSeconds);
      if (lagSeconds > interval / 1_000 + 2) late += 1;
    }
    await sleep(1_000);
  }
  const elapsed = (performance.now() - started) / 1_000;
  const used = cpuSeconds(node.pid) - cpu;
  const records = sequence - sent;
  await loading;
  await producer.disconnect();
  const states = new Set((await statuses(node)).map(({ state }) => state));
  const line = {
    topics,
    records_s: Math.round(records / elapsed),
    cores: Number((used / elapsed).toFixed(2)),
    rss_mb: megabytes(node.pid, 'VmHWM'),
    worst_lag_s: Number(worst.toFixed(1)),
    late_looks: `${late} of ${looks}`,
    states: [...states],
  };
  process.stdout.write(`${JSON.stringify(line)}\n`);
} finally {
  await node.stop();
  rmSync(folder, { recursive: true, force: true });
}
