// Kafka Connect in distributed mode, which keeps its configs, offsets and status in compacted topics: two workers copy a
// file into a topic exactly once and out of it again, are killed with SIGKILL in turn and both at a time, and go on.
//   npm run compat:connect                       BOOTSTRAP=host:port: against another broker than a fresh node
//   npm run compat:connect -- cluster            three brokers over PostgreSQL and an S3 double; with a worker a broker is killed
import assert from 'node:assert/strict';
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import kafkajs from 'kafkajs';
import { startChild } from '../../../src/cli/child.ts';
import { TestCluster } from '../../cluster/cluster.ts';
import { SETTINGS } from '../suites.ts';
import { startWorker, until, type Worker } from './worker.ts';

const { ConfigResourceTypes, Kafka, logLevel } = kafkajs;
const LINES_A_STEP = 1_000;
const folder = mkdtempSync(join(tmpdir(), 'floe-connect-'));
const [input, output] = [join(folder, 'in.txt'), join(folder, 'out.txt')];
const sets = Object.entries(SETTINGS).flatMap(([key, value]) => ['--set', `${key}=${value}`]);

interface Brokers {
  /** HOST:PORT, … */
  readonly addresses: string;
  /** Kills one of several, which is back at once as an empty one. */
  killOne(): Promise<void>;
  stop(): Promise<unknown>;
}

async function oneNode(): Promise<Brokers> {
  const node = await startChild(join(folder, 'data'), sets);
  return { addresses: node.addresses.kafka, killOne: async () => {}, stop: () => node.stop() };
}

async function threeBrokers(): Promise<Brokers> {
  const latency = { putMs: 20, getMs: 5 };
  const cluster = await TestCluster.start({ folder, brokers: 3, ...latency, arguments: sets });
  let next = 0;
  return {
    addresses: cluster.brokers,
    async killOne() {
      const member = cluster.members[next]!;
      next = (next + 1) % cluster.members.length;
      await member.kill();
      await member.start();
    },
    stop: () => cluster.stop(),
  };
}

const elsewhere = process.env['BOOTSTRAP'];
const brokers: Brokers =
  elsewhere !== undefined
    ? { addresses: elsewhere, killOne: async () => {}, stop: async () => {} }
    : await (process.argv[2] === 'cluster' ? threeBrokers() : oneNode());
const bootstrap = brokers.addresses;
const kafka = new Kafka({
  brokers: bootstrap.split(','),
  clientId: 'check',
  logLevel: logLevel.NOTHING,
});
const workers: Worker[] = [];
let [passed, failed, written] = [0, 0, 0];

async function step(what: string, act: () => Promise<void>): Promise<void> {
  const startedMs = performance.now();
  const trouble = await act().then(
    () => undefined,
    (error: Error) => error,
  );
  if (trouble === undefined) passed += 1;
  else failed += 1;
  const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1);
  process.stdout.write(`${trouble === undefined ? 'passed' : 'FAILED'} ${what}, ${seconds} s\n`);
  if (trouble !== undefined) process.stdout.write(`${trouble.message}\n`);
}

function writeLines(): void {
  const lines = Array.from({ length: LINES_A_STEP }, (_, n) => `line ${written + n}\n`);
  appendFileSync(input, lines.join(''));
  written += LINES_A_STEP;
}

const start = async (name: string) => workers.push(await startWorker(bootstrap, folder, name));

/** Waits until every line written so far has come out at the far end, whatever was copied twice by the sink. */
async function allOut(): Promise<void> {
  await until(`${written} lines at the sink`, async () => {
    if (!existsSync(output)) return undefined;
    const found = new Set(readFileSync(output, 'utf8').trimEnd().split('\n'));
    return found.size >= written ? true : undefined;
  });
}

async function running(name: string): Promise<void> {
  await until(`${name} running`, async () => {
    type Status = { tasks: { state: string }[] };
    const { tasks } = await workers.at(-1)!.call<Status>(`/connectors/${name}/status`);
    return tasks.length > 0 && tasks.every(({ state }) => state === 'RUNNING') ? true : undefined;
  });
}

/** All committed values of the topic, in order. */
async function committedLines(): Promise<string[]> {
  const consumer = kafka.consumer({ groupId: `check-${written}` });
  await consumer.connect();
  await consumer.subscribe({ topics: ['lines'], fromBeginning: true });
  const lines: string[] = [];
  const run = consumer.run({
    eachMessage: async ({ message }) => void lines.push(message.value!.toString()),
  });
  await until('the topic read', async () => (lines.length >= written ? true : undefined));
  await consumer.disconnect();
  await run;
  return lines;
}

try {
  await step('two workers form a group', async () => {
    const admin = kafka.admin();
    await admin.connect();
    await admin.createTopics({ topics: [{ topic: 'lines', numPartitions: 1 }] });
    await admin.disconnect();
    await start('first');
    await start('second');
  });
  await step('a file goes through a topic into a file', async () => {
    writeLines();
    await workers[0]!.call('/connectors/source/config', {
      'connector.class': 'org.apache.kafka.connect.file.FileStreamSourceConnector',
      'tasks.max': '1',
      file: input,
      topic: 'lines',
      'exactly.once.support': 'required',
      'transaction.boundary': 'poll',
    });
    await workers[0]!.call('/connectors/sink/config', {
      'connector.class': 'org.apache.kafka.connect.file.FileStreamSinkConnector',
      'tasks.max': '1',
      topics: 'lines',
      file: output,
      'consumer.override.isolation.level': 'read_committed',
    });
    await allOut();
  });
  await step('one worker is killed, the other takes over', async () => {
    writeLines();
    await workers.shift()!.kill();
    await brokers.killOne();
    await allOut();
  });
  await step('both are killed, a new one finds connectors and offsets in its topics', async () => {
    writeLines();
    await workers.shift()!.kill();
    await brokers.killOne();
    await start('third');
    const found = await workers[0]!.call<string[]>('/connectors');
    assert.deepEqual(found.toSorted(), ['sink', 'source']);
    await running('source');
    await running('sink');
    writeLines();
    await allOut();
  });
  await step('the topic holds every line once, in order', async () => {
    const lines = await committedLines();
    const wrong = lines.findIndex((line, n) => line !== `line ${n}`);
    assert.equal(wrong, -1, `at ${wrong} stands "${lines[wrong]}"`);
    assert.equal(lines.length, written);
  });
  await step('the internal topics are compacted ones', async () => {
    const admin = kafka.admin();
    await admin.connect();
    const names = ['connect-configs', 'connect-offsets', 'connect-status'];
    const resources = names.map((name) => ({ type: ConfigResourceTypes.TOPIC, name }));
    const described = await admin.describeConfigs({ resources, includeSynonyms: false });
    await admin.disconnect();
    for (const { configEntries } of described.resources) {
      const policy = configEntries.find(({ configName }) => configName === 'cleanup.policy');
      assert.equal(policy?.configValue, 'compact');
    }
  });
} finally {
  for (const worker of workers) await worker.kill();
  await brokers.stop();
  if (failed === 0) rmSync(folder, { recursive: true, force: true });
  else process.stdout.write(`logs are in ${folder}\n`);
}
process.stdout.write(`\n${passed} passed, ${failed} failed\n`);
process.exit(failed === 0 ? 0 : 1);
