// Topic to table: 3 million flights, 4 partitions, in each format; Floe's table topic beside the Iceberg sink of Kafka
// Connect and the plain pyiceberg script. A burst is sent at full speed; it ends when the table counts all its rows.
// What is compared is the processor time of the writer alone: for the rivals that is their process; for Floe, whose
// broker is in the same process, what the burst costs more than one to a topic without a table.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { cpuSeconds, megabytes } from '../test/measured.ts';
import { FLIGHT_SCHEMAS, makeFlightData } from './flight-data.ts';
import {
  type Broker,
  type Format,
  peersFolder,
  python,
  scratchFolder,
  script,
  startConnect,
  startFloe,
  startKafka,
  startPyiceberg,
} from './peers.ts';
import type { Row } from './report.ts';

const PARTITIONS = '4';
/** A burst that isn't in the table by then has failed. */
const LIMIT_MS = 300_000;
const POLL_MS = 50;
const FILES = {
  avro: { file: 'flights.avro.framed', framing: 'framed' },
  protobuf: { file: 'flights.protobuf.framed', framing: 'framed' },
  jsonschema: { file: 'flights.jsonschema.framed', framing: 'framed' },
  json: { file: 'flights.jsonl', framing: 'lines' },
} as const;

interface Sent {
  readonly records: number;
  readonly last_ack_ms: number;
}

/** Sends the whole file at full speed by the C client; returns after the last acknowledgement. */
function send(bootstrap: string, topic: string, format: Format): Sent {
  const { file, framing } = FILES[format];
  const kfile = join(scratchFolder, 'rdkafka', 'bin', 'kfile');
  const args = [bootstrap, topic, PARTITIONS, join(scratchFolder, 'data', file), framing];
  return JSON.parse(execFileSync(kfile, args, { encoding: 'utf8' })) as Sent;
}

interface Writer {
  readonly bootstrap: string;
  readonly topic: string;
  readonly format: Format;
  readonly pid: number;
  /** Rows in the current snapshot of the table. */
  rows(): Promise<number>;
}

/** One burst; `baseCpu` is what it costs without a table. */
async function burst(writer: Writer, baseCpu: number): Promise<Row> {
  const before = await writer.rows();
  const cpu = cpuSeconds(writer.pid);
  const sent = send(writer.bootstrap, writer.topic, writer.format);
  const want = before + sent.records;
  while ((await writer.rows()) < want) {
    if (Date.now() - sent.last_ack_ms > LIMIT_MS) return { error: `no ${want} rows in time` };
    await sleep(POLL_MS);
  }
  const lag = (Date.now() - sent.last_ack_ms) / 1000;
  const used = cpuSeconds(writer.pid) - cpu - baseCpu;
  return {
    rows_per_cpu_s: Math.round(sent.records / used),
    after_last_ack_s: Number(lag.toFixed(2)),
  };
}

/** Bursts after a first one that warms up. */
async function bursts(name: string, writer: Writer, options: { bursts: number; baseCpu: number }) {
  const rows: Row[] = [];
  for (let n = 0; n <= options.bursts; n += 1) {
    const figures = await burst(writer, options.baseCpu);
    process.stdout.write(`${name} ${writer.format} ${n}: ${JSON.stringify(figures)}\n`);
    if (n > 0) rows.push({ name, suite: 'table', format: writer.format, ...figures });
    if ('error' in figures) break;
  }
  return rows;
}

/** Rows in the current snapshot of a table's metadata. Ids that a double can't hold are rounded alike. */
function totalRecords(metadata: {
  readonly 'current-snapshot-id'?: number;
  readonly snapshots?: readonly {
    readonly 'snapshot-id': number;
    readonly summary: Readonly<Record<string, string>>;
  }[];
}): number {
  const current = metadata.snapshots?.find(
    (snapshot) => snapshot['snapshot-id'] === metadata['current-snapshot-id'],
  );
  return Number(current?.summary['total-records'] ?? 0);
}

/** Registers the schema of a topic. @throws unless it gets the id that stands in the file of its records. */
async function register(
  registry: string,
  topic: string,
  wanted: { readonly id: number; readonly schemaType: string; readonly schema: string },
): Promise<void> {
  const { id, schemaType, schema } = wanted;
  const answer = await fetch(`http://${registry}/subjects/${topic}-value/versions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ schemaType, schema }),
  });
  const text = await answer.text();
  if (!answer.ok || (JSON.parse(text) as { id: number }).id !== id) throw new Error(text);
}

async function measureFloe(
  formats: readonly Format[],
  count: number,
  settings: readonly string[],
): Promise<Row[]> {
  const floe = await startFloe(settings);
  const { registry, catalog } = floe.node.addresses;
  try {
    const create = (topic: string, configs: readonly string[]) =>
      execFileSync(process.execPath, [
        '--disable-warning=ExperimentalWarning',
        join(import.meta.dirname, '..', 'src', 'cli', 'main.ts'),
        ...['topics', 'create', topic, '--partitions', PARTITIONS, '--server', floe.bootstrap],
        ...configs.flatMap((config) => ['--config', config]),
      ]);
    for (const { format, ...one } of FLIGHT_SCHEMAS) await register(registry, format, one);
    const rows: Row[] = [];
    for (const format of formats) {
      create(`plain-${format}`, []);
      create(format, [
        'table.topic.enable=true',
        'table.topic.commit.interval.ms=2000',
        `table.topic.convert.value.type=${format === 'json' ? 'json' : 'by_schema_id'}`,
      ]);
      let baseCpu = 0;
      // The second one: by then the code that it runs is compiled.
      for (let n = 0; n < 2; n += 1) {
        const before = cpuSeconds(floe.pid);
        send(floe.bootstrap, `plain-${format}`, format);
        baseCpu = cpuSeconds(floe.pid) - before;
      }
      const url = `http://${catalog}/v1/namespaces/kafka/tables/${format}`;
      const writer: Writer = {
        ...{ bootstrap: floe.bootstrap, topic: format, format, pid: floe.pid },
        async rows() {
          const answer = await fetch(url);
          if (!answer.ok) return 0;
          return totalRecords(((await answer.json()) as { metadata: object }).metadata);
        },
      };
      rows.push(...(await bursts('floe', writer, { bursts: count, baseCpu })));
    }
    rows.push({ name: 'floe', suite: 'table', rss_mb: megabytes(floe.pid, 'VmHWM') });
    return rows;
  } finally {
    await floe.stop();
  }
}

/** Rows of `db.TABLE` in a catalog that is a SQLite file, as Java's JDBC catalog and pyiceberg's make it. */
function rowsInSqlite(lake: string, table: string): number {
  const file = join(lake, 'catalog.db');
  if (!existsSync(file)) return 0;
  const db = new DatabaseSync(file, { readOnly: true, timeout: 10_000 });
  try {
    const row = db
      .prepare(
        `select metadata_location as at from iceberg_tables where table_namespace = 'db' and table_name = ?`,
      )
      .get(table);
    if (row === undefined) return 0;
    const path = String(row['at']).replace(/^file:\/*/, '/');
    return totalRecords(JSON.parse(readFileSync(path, 'utf8')) as object);
  } finally {
    db.close();
  }
}

/** A rival that reads a topic of Kafka and writes the table `db.TOPIC`. */
interface Rival {
  readonly name: 'connect' | 'pyiceberg';
  readonly format: Format;
  readonly lake: string;
  start(topic: string, bootstrap: string): { readonly pid: number; stop(): Promise<void> };
}

async function measureRival(kafka: Broker, rival: Rival, count: number): Promise<Row[]> {
  const { name, format, lake } = rival;
  const topic = `${name}_${format}`;
  mkdirSync(lake, { recursive: true });
  script('kafka/tool.sh', [
    ...['topics', '--bootstrap-server', kafka.bootstrap, '--create', '--topic', topic],
    ...['--partitions', PARTITIONS],
  ]);
  execFileSync(python, [join(peersFolder, 'connect', 'table.py'), topic, '--lake', lake]);
  const target = rival.start(topic, kafka.bootstrap);
  try {
    const writer: Writer = {
      ...{ bootstrap: kafka.bootstrap, topic, format, pid: target.pid },
      rows: async () => rowsInSqlite(lake, topic),
    };
    const rows = await bursts(name, writer, { bursts: count, baseCpu: 0 });
    const rss_mb = megabytes(target.pid, 'VmHWM') + megabytes(kafka.pid, 'VmHWM');
    rows.push({ name, suite: 'table', rss_mb });
    return rows;
  } finally {
    await target.stop();
  }
}

/** One round: every system in turn, each with bursts of its own after one to warm up. */
export async function measureTable(options: {
  /** Of `floe`, `connect`, `pyiceberg`. */
  readonly systems: readonly string[];
  readonly formats: readonly Format[];
  readonly bursts: number;
  /** More arguments of `floe serve`. */
  readonly settings: readonly string[];
}): Promise<Row[]> {
  const { systems, formats } = options;
  if (formats.includes('protobuf') || formats.includes('jsonschema')) await makeFlightData();
  const rows: Row[] = [];
  if (systems.includes('floe'))
    rows.push(...(await measureFloe(formats, options.bursts, options.settings)));
  const scripts = mkdtempSync(join(tmpdir(), 'floe-bench-lake-'));
  const rivals: Rival[] = [
    ...formats.map((format): Rival => {
      const lake = join(scratchFolder, 'connect', 'lake');
      return {
        ...{ name: 'connect', format, lake },
        start: (topic, bootstrap) => startConnect(topic, bootstrap, format),
      };
    }),
    {
      ...{ name: 'pyiceberg', format: 'json', lake: scripts },
      start: (topic, bootstrap) => startPyiceberg(topic, bootstrap, scripts),
    },
  ];
  const wanted = rivals.filter(
    ({ name, format }) => systems.includes(name) && formats.includes(format),
  );
  if (wanted.length === 0) return rows;
  const kafka = startKafka(false);
  try {
    for (const rival of wanted) rows.push(...(await measureRival(kafka, rival, options.bursts)));
  } finally {
    await kafka.stop();
    rmSync(scripts, { recursive: true, force: true });
  }
  return rows;
}
