// floe demo: real flights, sent by an ordinary Kafka client, become rows of an Iceberg table that SQL answers from.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import type { Producer } from 'kafkajs';
import { FloeError } from '../../base/error.ts';
import { avroEncoder, registerAvro } from '../avro-value.ts';
import { awaitRows } from '../await-rows.ts';
import { type ChildNode, startChild } from '../child.ts';
import { FLIGHT_SCHEMA, type Flight, readFlights } from '../flights.ts';
import { call } from '../http-client.ts';
import { kafkaClient } from '../kafka-client.ts';
import { startProgress } from '../progress.ts';
import { type Answer, answerTable } from '../text-table.ts';

interface DemoOptions {
  readonly rows: string;
  readonly keep: boolean;
}

const TOPIC = 'flights';
const PARTITIONS = 4;
const BATCH = 5_000;
/** Requests under way at once. */
const IN_FLIGHT = 4;

const QUERIES: readonly (readonly [string, string])[] = [
  [
    'How many flights, and over which time?',
    'SELECT count(*) AS flights, min(date) AS first, max(date) AS last FROM flights',
  ],
  [
    'Which airports have the longest average delay?',
    'SELECT origin, count(*) AS flights, round(avg(delay), 1) AS minutes FROM flights GROUP BY origin HAVING count(*) > 1000 ORDER BY minutes DESC LIMIT 5',
  ],
  [
    'At which hours do long flights leave on time?',
    'SELECT hour(date) AS hour, count(*) AS flights, round(100 * avg((delay <= 0)::INT), 1) AS on_time_pct FROM flights WHERE distance > 1000 GROUP BY hour ORDER BY on_time_pct DESC LIMIT 5',
  ],
];

export function demoCommand(): Command {
  return new Command('demo')
    .description(
      'half a million real flights from a Kafka client to SQL answers, in a fresh folder',
    )
    .option('--rows <n>', 'how many flights to send (at most 3,000,000)', '500000')
    .option('--keep', 'leave the node running until interrupted', false)
    .action(demo);
}

async function demo(options: DemoOptions): Promise<void> {
  const rows = Number(options.rows);
  if (!Number.isInteger(rows) || rows < 1 || rows > 3_000_000) {
    throw new FloeError(
      'invalid',
      `--rows: "${options.rows}" is not a whole number from 1 to 3000000`,
    );
  }
  const dataDir = await mkdtemp(join(tmpdir(), 'floe-demo-'));
  const node = await startChild(dataDir);
  say(`Floe is up in ${seconds(node.readyMs)} (data in ${dataDir})`);
  try {
    await play(node, rows);
    sayAddresses(node);
    if (options.keep) await untilInterrupted();
  } finally {
    await node.stop();
    await rm(dataDir, { recursive: true, force: true });
  }
}

async function play(node: ChildNode, rows: number): Promise<void> {
  const { kafka, registry, http } = node.addresses;
  const schemaId = await registerAvro(registry, `${TOPIC}-value`, FLIGHT_SCHEMA);
  await createTopic(kafka);
  const encoder = avroEncoder(FLIGHT_SCHEMA, schemaId);
  const progress = startProgress('producing flights', rows);
  const started = performance.now();
  const producer = kafkaClient(kafka).producer({ allowAutoTopicCreation: false });
  await producer.connect();
  await sendAll(producer, rows, (flight) => encoder.encode(flight), progress.add);
  await producer.disconnect();
  progress.stop();
  const tookMs = performance.now() - started;
  say(
    `${rows.toLocaleString('en')} flights produced in ${seconds(tookMs)}, every one synced to disk before its acknowledgement`,
  );
  await call({ server: http, path: `/v1/tables/${TOPIC}/commit`, method: 'POST' });
  await awaitRows({ server: http, topic: TOPIC, rows });
  say(
    `committed to the Iceberg table kafka.${TOPIC} ${seconds(performance.now() - started - tookMs)} after the last one\n`,
  );
  for (const [question, query] of QUERIES) await ask(http, question, query);
}

async function createTopic(server: string): Promise<void> {
  const admin = kafkaClient(server).admin();
  await admin.connect();
  const configEntries = Object.entries({
    'table.topic.enable': 'true',
    'table.topic.convert.value.type': 'by_schema_id',
    'table.topic.commit.interval.ms': '2000',
  }).map(([name, value]) => ({ name, value }));
  await admin.createTopics({
    topics: [{ topic: TOPIC, numPartitions: PARTITIONS, configEntries }],
  });
  await admin.disconnect();
}

/** Keeps IN_FLIGHT requests under way; the client chooses partitions. */
async function sendAll(
  producer: Producer,
  rows: number,
  encode: (flight: Flight) => Buffer,
  sent: (count: number) => void,
): Promise<void> {
  const underWay = new Set<Promise<void>>();
  for await (const flights of readFlights(rows, BATCH)) {
    const messages = flights.map((flight) => ({ value: encode(flight) }));
    const sending = producer
      .send({ topic: TOPIC, messages, acks: -1 })
      .then(() => sent(messages.length));
    const tracked = sending.finally(() => underWay.delete(tracked));
    underWay.add(tracked);
    if (underWay.size >= IN_FLIGHT) await Promise.race(underWay);
  }
  await Promise.all(underWay);
}

async function ask(http: string, question: string, query: string): Promise<void> {
  const started = performance.now();
  const response = await call({ server: http, path: '/v1/sql', method: 'POST', body: { query } });
  const answer = (await response.json()) as Answer;
  const tookMs = performance.now() - started;
  say(`${question}  (${Math.round(tookMs)} ms)`);
  say(`  ${query}`);
  say(answerTable(answer).replace(/^/gm, '  ').trimEnd());
  say('');
}

function sayAddresses({ addresses }: ChildNode): void {
  const { kafka, registry, catalog, http } = addresses;
  say(`Try it yourself while a node runs (npm start, or this demo with -- --keep):
  Kafka            ${kafka}
  schema registry  http://${registry}/subjects
  Iceberg catalog  http://${catalog}/v1/config
  SQL              curl -s http://${http}/v1/sql -H 'content-type: application/json' -d '{"query":"SELECT count(*) FROM ${TOPIC}"}'
  tables           curl -s http://${http}/v1/tables`);
}

function untilInterrupted(): Promise<void> {
  say('\nStill running; Ctrl-C ends it.');
  return new Promise((resolve) => {
    process.once('SIGINT', resolve);
    process.once('SIGTERM', resolve);
    setInterval(() => {}, 60_000);
  });
}

const say = (text: string) => process.stdout.write(`${text}\n`);
const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;
