// A full scan of tables as Floe leaves them beside the same rows written once: an append table of many small commits and an
// upsert table half of whose rows were replaced, as they grow, with maintenance, and after it. Every scan reads every
// column of every row by SQL (DuckDB over the snapshot's files, deletes applied); `ideal` are the same rows in one
// Parquet file that DuckDB wrote itself. Prints medians of processor and wall time, and their ratios to the ideal.
// Run: node_modules/.bin/node bench/scan.ts [keys] [commits] [rounds] [append|upsert]
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import avsc from 'avsc';
import { systemClock } from '../src/base/clock.ts';
import { noMetrics } from '../src/base/metrics.ts';
import { seededPrng } from '../src/base/prng.ts';
import { resolveSettings } from '../src/base/settings.ts';
import { manifestSource, planScan } from '../src/formats/iceberg/index.ts';
import type { Topic } from '../src/metadata/topics.ts';
import { openQueries, querySettings } from '../src/queries/index.ts';
import { framed } from '../src/table-topic/testing/bench.ts';
import { openTableBench } from './table-bench.ts';

const keys = Number(process.argv[2] ?? 400_000);
const commits = Number(process.argv[3] ?? 20);
const rounds = Number(process.argv[4] ?? 9);
const only = process.argv[5];
const PARTITIONS = 2;
const BATCH = 2_000;

const SCHEMA = JSON.stringify({
  type: 'record',
  name: 'Order',
  fields: [
    { name: 'id', type: 'long' },
    { name: 'name', type: 'string' },
    { name: 'amount', type: 'double' },
    { name: 'city', type: 'string' },
    { name: 'ordered', type: { type: 'long', logicalType: 'timestamp-millis' } },
  ],
});
const type = avsc.Type.forSchema(JSON.parse(SCHEMA) as avsc.Schema);

const folder = mkdtempSync(join(tmpdir(), 'floe-scan-'));
const prng = seededPrng(1);
const bench = await openTableBench(folder, prng, {
  'table.maintenance.enable': 'false',
  'table.compact.bytes.per.second': '0',
});
bench.start();
const queries = await openQueries({
  catalog: bench.catalog,
  warehouse: bench.warehouse,
  dataDir: join(folder, 'sql'),
  settings: resolveSettings(querySettings, { 'sql.threads': '2', 'sql.timeout.ms': '600000' }),
  clock: systemClock,
  metrics: noMetrics,
});
const duckdb = await DuckDBInstance.create(':memory:', { threads: '2' });
const plain = await duckdb.connect();

let schemaId = 0;
/** Two tables that get the same rows: one is left as it grows, one is maintained. */
async function twins(name: string, config: Readonly<Record<string, string>>): Promise<Topic[]> {
  const all = { 'table.topic.commit.interval.ms': '900000', ...config };
  const made: Topic[] = [];
  for (const topic of [`${name}_left`, `${name}_kept`]) {
    schemaId = await bench.schemas.register(`${topic}-value`, SCHEMA);
    made.push(await bench.topic(topic, all, PARTITIONS));
  }
  return made;
}

const AT = 1_700_000_000_000;

/** One commit of these keys in each table, with values of their own each time. */
async function commit(topics: readonly Topic[], ids: readonly number[]): Promise<void> {
  const record = (id: number) => ({
    timestamp: AT,
    value: framed(
      schemaId,
      type.toBuffer({
        ...{ id, name: `name of ${id}`, amount: prng.int(1_000_000) / 100 },
        ...{ city: `city ${id % 1_000}`, ordered: AT + prng.int(86_400_000) },
      }),
    ),
  });
  for (let partition = 0; partition < PARTITIONS; partition += 1) {
    const records = ids.filter((id) => id % PARTITIONS === partition).map(record);
    for (let from = 0; from < records.length; from += BATCH)
      for (const topic of topics)
        bench.produce(topic, records.slice(from, from + BATCH), partition);
  }
  for (const topic of topics) {
    await bench.tables.commit(topic.name);
    for (const id of topic.partitions)
      bench.log.expire(id, bench.log.watermarks(id)!.highWatermark);
  }
}

const COLUMNS =
  'id, name, amount, city, ordered, _kafka_partition, _kafka_offset, _kafka_timestamp, _kafka_key, _kafka_headers';
/** Order doesn't matter, every cell does. */
const checksum = (from: string) => `SELECT count(*), bit_xor(hash(${COLUMNS})) FROM ${from}`;

interface Scan {
  readonly name: string;
  /** Number of rows and checksum. */
  readonly run: () => Promise<string>;
}

const byFloe = (name: string, topic: string): Scan => ({
  name,
  async run() {
    const result = await queries.query(checksum(`kafka.${topic}`));
    let row = '';
    for await (const chunk of result.chunks()) row += String(chunk.getRows()[0]);
    await result.close();
    return row;
  },
});

/** `files`: a list of paths in SQL. */
const byDuckDb = (name: string, files: string): Scan => ({
  name,
  run: async () =>
    String((await plain.runAndReadAll(checksum(`read_parquet(${files})`))).getRows()[0]),
});

const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1]!;

/** Scans in turns; the last one is the ideal. @throws unless all find the same rows. */
async function compare(scans: readonly Scan[]): Promise<void> {
  const wall = scans.map((): number[] => []);
  const cpu = scans.map((): number[] => []);
  const found = new Set<string>();
  for (let round = -1; round < rounds; round += 1) {
    for (const [at, { run }] of scans.entries()) {
      const [before, started] = [process.cpuUsage(), performance.now()];
      found.add(await run());
      const { user, system } = process.cpuUsage(before);
      if (round < 0) continue;
      wall[at]!.push(performance.now() - started);
      cpu[at]!.push((user + system) / 1_000);
    }
  }
  if (found.size > 1) throw new Error(`the scans disagree: ${[...found].join(' and ')}`);
  for (const [at, { name }] of scans.entries()) {
    const of = (times: number[][]) => {
      const [own, ideal] = [median(times[at]!), median(times.at(-1)!)];
      return `${own.toFixed(0).padStart(6)} ms, ${(own / ideal).toFixed(2)} ×`;
    };
    process.stdout.write(`${name.padEnd(40)} CPU ${of(cpu)}   wall ${of(wall)}\n`);
  }
}

/** The rows that a table has now, deletes applied, in one file of DuckDB's. */
async function ideals(topic: string): Promise<readonly Scan[]> {
  const metadata = await bench.load(topic);
  const { files } = await planScan({ metadata, source: manifestSource(bench.warehouse) });
  const list = (paths: Iterable<string>) => `[${[...paths].map((path) => `'${path}'`).join()}]`;
  const data = list(files.map(({ file }) => localPath(file.filePath)));
  const deletes = new Set(
    files.flatMap((scan) => scan.positionDeletes.map(({ file }) => localPath(file.filePath))),
  );
  const live =
    deletes.size === 0
      ? ''
      : `WHERE NOT EXISTS (FROM read_parquet(${list(deletes)}) d
           WHERE d.file_path = 'file://' || r.filename AND d.pos = r.file_row_number)`;
  const file = join(folder, `${topic}.parquet`);
  await plain.run(
    `COPY (SELECT ${COLUMNS} FROM read_parquet(${data}, filename = true, file_row_number = true) r ${live})
     TO '${file}' (FORMAT parquet, COMPRESSION zstd)`,
  );
  const rewritten = byDuckDb('the ideal: written once by DuckDB', `'${file}'`);
  // Without deletes its files are the table: what they cost without Floe's SQL around them.
  return deletes.size === 0
    ? [byDuckDb('maintained, its files by DuckDB', data), rewritten]
    : [rewritten];
}

const localPath = (uri: string) => uri.replace(/^file:\/*/, '/');

async function shown(topic: string): Promise<void> {
  const summary = (await bench.load(topic)).snapshots!.at(-1)!.summary!;
  const { 'total-records': records, 'total-data-files': files } = summary;
  const deleted = summary['total-position-deletes'];
  process.stdout.write(`${topic}: ${records} rows in ${files} files, ${deleted} of them deleted\n`);
}

async function measure([left, kept]: readonly Topic[]): Promise<void> {
  await bench.tables.maintain(kept!.name, 'compact');
  await shown(left!.name);
  await shown(kept!.name);
  await compare([
    byFloe('left as it grew', left!.name),
    byFloe('maintained', kept!.name),
    ...(await ideals(kept!.name)),
  ]);
}

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => from + n);

async function append(): Promise<void> {
  const topics = await twins('append', {});
  for (let n = 0; n < commits; n += 1)
    await commit(topics, range((n * keys) / commits, ((n + 1) * keys) / commits));
  await measure(topics);
}

/** All keys, then half as many changes of any of them. */
async function upsert(): Promise<void> {
  const topics = await twins('upsert', {
    'table.topic.upsert.enable': 'true',
    'table.topic.id.columns': '[id]',
  });
  await commit(topics, range(0, keys));
  for (let n = 0; n < commits; n += 1)
    await commit(
      topics,
      range(0, keys / commits / 2).map(() => prng.int(keys)),
    );
  await measure(topics);
}

try {
  if (only !== 'upsert') await append();
  if (only !== 'append') await upsert();
} finally {
  await queries.stop();
  plain.closeSync();
  await bench.stop();
  rmSync(folder, { recursive: true, force: true });
}
