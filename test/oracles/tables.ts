// Strangers read our tables: records go in through an ordinary Kafka client, rows come out through pyiceberg, DuckDB's
// iceberg extension and chdb, and a checker reads every byte. Avro and JSON, partitioned and not, local folder and S3.
// The checkers come from a folder of oracles (ORACLES=…); without it there is nobody to ask.
//   npm run oracles [-- --storage local,s3] [--rows 3000] [--only WORD]
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import kafkajs from 'kafkajs';
import { avroEncoder, registerAvro } from '../../src/cli/avro-value.ts';
import { awaitRows } from '../../src/cli/await-rows.ts';
import { type ChildNode, startChild } from '../../src/cli/child.ts';
import { FLIGHT_SCHEMA, readFlights } from '../../src/cli/flights.ts';
import { freePort } from '../../src/metadata/testing/free-port.ts';

const root = join(import.meta.dirname, '..', '..');
const oracles = resolve(process.env['ORACLES'] ?? join(root, '..', 'shared', 'oracles'));
const { values: args } = parseArgs({
  options: {
    storage: { type: 'string', default: 'local,s3' },
    rows: { type: 'string', default: '3000' },
    /** Cases whose topic contains it. */
    only: { type: 'string', default: '' },
  },
});
if (!existsSync(join(oracles, 'read.py'))) {
  process.stdout.write(
    `skipped: no oracles at ${oracles} (set ORACLES)\n0 passed, 0 failed, 1 skipped\n`,
  );
  process.exit(0);
}

interface Case {
  readonly topic: string;
  readonly converter: 'by_schema_id' | 'json' | 'string' | 'raw';
  readonly partitionBy?: string;
  /** More configs of the topic. */
  readonly configs?: Readonly<Record<string, string>>;
  /** Configs that are set once half of the records are in. */
  readonly later?: Readonly<Record<string, string>>;
  /** Name of the table, when it isn't the topic's. */
  readonly table?: string;
  /** An engine that may refuse it on S3. */
  readonly refusedBy?: string;
  readonly values: () => Promise<Input[]>;
}

/** What is produced, and the columns that the row must show (system columns are added by offset). */
interface Input {
  readonly value: Buffer;
  readonly key: Buffer | null;
  readonly headers?: Readonly<Record<string, string>>;
  readonly row: Readonly<Record<string, unknown>>;
}

const iso = (ms: number) => new Date(ms).toISOString().replace('Z', '+00:00');

async function flights(
  rows: number,
  encode: (flight: object) => Buffer,
  date: (ms: number) => unknown,
): Promise<Input[]> {
  const inputs: Input[] = [];
  for await (const batch of readFlights(rows, 1_000)) {
    for (const flight of batch) {
      inputs.push({
        value: encode(flight),
        key: Buffer.from(flight.origin),
        row: { ...flight, date: date(flight.date) },
      });
    }
  }
  return inputs;
}

/** Shapes that break readers: nulls, nesting, unicode, large integers, empty and long strings. */
function oddJson(rows: number): Input[] {
  return Array.from({ length: rows }, (_, i) => {
    const row = {
      id: i,
      big: 9_007_199_254_740_000 + i,
      ratio: i / 7,
      text: i % 5 === 0 ? null : `zeile ${i} ${'雪'.repeat(i % 40)}`,
      flag: i % 2 === 0,
      nested: { a: i, b: { c: `c${i}` } },
      'odd name': i % 3 === 0 ? '' : 'x',
    };
    return { value: Buffer.from(JSON.stringify(row)), key: null, headers: { n: String(i) }, row };
  });
}

function cases(node: ChildNode, rows: number): Case[] {
  const avro = (topic: string) => async () => {
    const id = await registerAvro(node.addresses.registry, `${topic}-value`, FLIGHT_SCHEMA);
    const encoder = avroEncoder(FLIGHT_SCHEMA, id);
    return flights(rows, (flight) => encoder.encode(flight), iso);
  };
  const json = () =>
    flights(
      rows,
      (flight) => Buffer.from(JSON.stringify(flight)),
      (ms) => ms,
    );
  const text = async () =>
    Array.from({ length: rows }, (_, i) => ({
      value: Buffer.from(`line ${i}`),
      key: null,
      row: { _kafka_value: `line ${i}` },
    }));
  return (
    [
      { topic: 'avro_plain', converter: 'by_schema_id', values: avro('avro_plain') },
      {
        topic: 'avro_days',
        converter: 'by_schema_id',
        partitionBy: '[day(date), bucket(origin, 4)]',
        values: avro('avro_days'),
      },
      {
        topic: 'avro_kafka_hours',
        converter: 'by_schema_id',
        partitionBy: '[hour(_kafka_timestamp)]',
        values: avro('avro_kafka_hours'),
      },
      { topic: 'json_plain', converter: 'json', values: json },
      {
        topic: 'json_origin',
        converter: 'json',
        partitionBy: '[origin, truncate(destination, 1)]',
        values: json,
      },
      { topic: 'json_odd', converter: 'json', values: async () => oddJson(Math.min(rows, 2_000)) },
      { topic: 'text', converter: 'string', values: text },
      ...layoutCases(avro, rows),
    ] satisfies Case[]
  ).filter(({ topic }) => topic.includes(args.only));
}

/** How files lie: orders, filters, specs that change while records come, both format versions, odd names. */
function layoutCases(avro: (topic: string) => () => Promise<Input[]>, rows: number): Case[] {
  const property = (name: string) => `table.topic.properties.write.${name}`;
  const bloom = (column: string) => property(`parquet.bloom-filter-enabled.column.${column}`);
  const odd = async () => oddJson(Math.min(rows, 2_000));
  const layout = {
    'table.topic.sort.by': '[origin, date desc nulls last]',
    [property('parquet.compression-codec')]: 'gzip',
    [property('parquet.row-group-size-bytes')]: '65536',
    [property('metadata.metrics.default')]: 'full',
    [bloom('origin')]: 'true',
    [bloom('distance')]: 'true',
  };
  const later = {
    'table.topic.partition.by': '[bucket(origin, 4), month(date)]',
    'table.topic.sort.by': '[truncate(destination, 1) desc, distance]',
    [property('parquet.compression-codec')]: 'snappy',
  };
  const nested = {
    'table.topic.sort.by': '[nested.a desc]',
    'table.topic.partition.by': '[truncate(nested.b.c, 2), flag]',
    [bloom('nested.b.c')]: 'true',
    [bloom('id')]: 'true',
    [property('parquet.compression-codec')]: 'lz4',
  };
  return [
    {
      topic: 'layout_avro',
      converter: 'by_schema_id',
      configs: layout,
      later,
      values: avro('layout_avro'),
    },
    {
      topic: 'layout_avro_v3',
      converter: 'by_schema_id',
      configs: { ...layout, 'table.topic.format.version': '3' },
      later,
      values: avro('layout_avro_v3'),
    },
    {
      topic: 'layout_upgraded',
      converter: 'by_schema_id',
      later: { 'table.topic.format.version': '3', 'table.topic.partition.by': '[year(date)]' },
      values: avro('layout_upgraded'),
    },
    {
      topic: 'layout_nested',
      converter: 'json',
      configs: nested,
      later: { 'table.topic.partition.by': '[void(flag), bucket(nested.a, 3)]' },
      values: odd,
    },
    {
      topic: 'layout-names',
      converter: 'json',
      configs: { 'table.topic.name': 'таблица_表' },
      table: 'таблица_表',
      // ClickHouse's REST client puts the name into its URL as it is: "URI contains invalid characters".
      refusedBy: 'chdb',
      values: odd,
    },
  ];
}

let passed = 0;
let failed = 0;
function note(ok: boolean, what: string): void {
  if (ok) passed += 1;
  else failed += 1;
  process.stdout.write(`${ok ? 'ok  ' : 'FAIL'} ${what}\n`);
}

const PARTITIONS = 3;

async function produce(node: ChildNode, test: Case): Promise<Record<string, unknown>[]> {
  const kafka = new kafkajs.Kafka({
    brokers: [node.addresses.kafka],
    logLevel: kafkajs.logLevel.NOTHING,
  });
  const configs: Record<string, string> = {
    'table.topic.enable': 'true',
    'table.topic.convert.value.type': test.converter,
    'table.topic.commit.interval.ms': '500',
    ...(test.partitionBy === undefined ? {} : { 'table.topic.partition.by': test.partitionBy }),
    ...test.configs,
  };
  const inputs = await test.values();
  const admin = kafka.admin();
  await admin.connect();
  const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }));
  await admin.createTopics({
    topics: [{ topic: test.topic, numPartitions: PARTITIONS, configEntries }],
  });
  const producer = kafka.producer();
  await producer.connect();
  const expected: Record<string, unknown>[] = [];
  const ends = new Array<number>(PARTITIONS).fill(0);
  const start = Date.UTC(2026, 0, 1);
  for (let at = 0; at < inputs.length; at += 500) {
    const slice = inputs.slice(at, at + 500);
    const messages = slice.map((input, i) => {
      const partition = (at + i) % PARTITIONS;
      const ms = start + (at + i) * 1_000;
      const headers = Object.entries(input.headers ?? {});
      expected.push({
        ...input.row,
        _kafka_partition: partition,
        _kafka_offset: ends[partition]!++,
        _kafka_timestamp: iso(ms),
        _kafka_key: input.key === null ? null : input.key.toString('hex'),
        _kafka_headers: headers.map(([key, value]) => ({
          key,
          value: Buffer.from(value).toString('hex'),
        })),
      });
      return {
        key: input.key,
        value: input.value,
        headers: input.headers ?? {},
        partition,
        timestamp: String(ms),
      };
    });
    await producer.send({ topic: test.topic, messages, acks: -1 });
    if (test.later !== undefined && at <= inputs.length / 2 && at + 500 > inputs.length / 2) {
      // Some of what was sent is staged, some committed, some neither.
      const entries = Object.entries({ ...configs, ...test.later });
      await admin.alterConfigs({
        validateOnly: false,
        resources: [
          {
            type: kafkajs.ConfigResourceTypes.TOPIC,
            name: test.topic,
            configEntries: entries.map(([name, value]) => ({ name, value })),
          },
        ],
      });
    }
  }
  await producer.disconnect();
  await admin.disconnect();
  return expected;
}

function ask(env: NodeJS.ProcessEnv, script: string, argv: readonly string[]): boolean {
  const done = spawnSync(join(oracles, 'env.sh'), ['python', join(oracles, script), ...argv], {
    env,
    encoding: 'utf8',
  });
  if (done.status !== 0)
    process.stdout.write(`${done.stdout.slice(-3_000)}${done.stderr.slice(-3_000)}\n`);
  return done.status === 0;
}

async function check(
  node: ChildNode,
  storage: string,
  env: NodeJS.ProcessEnv,
  folder: string,
): Promise<void> {
  for (const test of cases(node, Number(args.rows))) {
    try {
      const expected = await produce(node, test);
      await awaitRows({ server: node.addresses.http, topic: test.topic, rows: expected.length });
      const file = join(folder, `${test.topic}.jsonl`);
      writeFileSync(file, expected.map((row) => `${JSON.stringify(row)}\n`).join(''));
      const table = [
        '--catalog',
        `http://${node.addresses.catalog}`,
        `kafka.${test.table ?? test.topic}`,
      ];
      const mayRefuse = storage === 's3' && test.refusedBy !== undefined;
      const refusals = mayRefuse ? ['--may-refuse', test.refusedBy!] : [];
      note(
        ask(env, 'fsck.py', [...table, '--no-orphans', '--no-equality-deletes']),
        `${storage} ${test.topic}: fsck`,
      );
      note(
        ask(env, 'read.py', [...table, '--expect', file, ...refusals]),
        `${storage} ${test.topic}: pyiceberg, DuckDB and chdb agree`,
      );
    } catch (caught) {
      note(false, `${storage} ${test.topic}: ${String(caught)}`);
    }
  }
}

/** An in-memory S3 of the oracles, stopped by the handle that its script keeps. */
async function startS3(): Promise<{ env: NodeJS.ProcessEnv; args: string[]; stop(): void }> {
  const port = String(await freePort());
  const said = execFileSync(join(oracles, 's3.sh'), ['start', port, 'floe'], { encoding: 'utf8' });
  const env: NodeJS.ProcessEnv = { ...process.env };
  for (const [, name, value] of said.matchAll(/(\w+)=(\S+)/g)) env[name!] = value!;
  Object.assign(process.env, env);
  return {
    env,
    args: [
      '--storage',
      's3://floe/test',
      '--set',
      `s3.endpoint=${env['FLOE_S3_ENDPOINT']}`,
      '--set',
      's3.path.style=true',
    ],
    stop: () => spawnSync(join(oracles, 's3.sh'), ['stop', port]),
  };
}

for (const storage of args.storage.split(',')) {
  const folder = mkdtempSync(join(tmpdir(), 'floe-oracles-'));
  const s3 = storage === 's3' ? await startS3() : undefined;
  try {
    const node = await startChild(join(folder, 'data'), s3?.args ?? []);
    try {
      await check(node, storage, s3?.env ?? process.env, folder);
    } finally {
      await node.stop();
    }
  } catch (caught) {
    note(false, `${storage}: ${String(caught)}`);
  } finally {
    s3?.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}
process.stdout.write(`${passed} passed, ${failed} failed\n`);
process.exit(failed === 0 ? 0 : 1);
