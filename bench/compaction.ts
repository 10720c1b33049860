// Compaction of a table in one process, without sockets: small files of flights, as ingestion leaves them, rewritten by
// the maintenance thread while rows of another burst are committed every interval. Figures: input per CPU second of
// that thread (as files and as columns), and how late commits were.
// Run: node_modules/.bin/node bench/compaction.ts [files] [rows per file]
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import avsc from 'avsc';
import { seededPrng } from '../src/base/prng.ts';
import { FLIGHT_SCHEMA, readFlights } from '../src/cli/flights.ts';
import { framed } from '../src/table-topic/testing/bench.ts';
import { openTableBench } from './table-bench.ts';

const files = Number(process.argv[2] ?? 24);
const rowsPerFile = Number(process.argv[3] ?? 40_000);
const folder = mkdtempSync(join(tmpdir(), 'floe-compaction-'));
const bench = await openTableBench(folder, seededPrng(1), {
  'table.compact.bytes.per.second': '0',
});
bench.start();
const id = await bench.schemas.register('flights-value', FLIGHT_SCHEMA);
const type = avsc.Type.forSchema(JSON.parse(FLIGHT_SCHEMA) as avsc.Schema);
const topic = await bench.topic('flights', { 'table.topic.commit.interval.ms': '1000' });
const burst: { value: Uint8Array; timestamp: number }[][] = [];
for await (const flights of readFlights(files * rowsPerFile, rowsPerFile)) {
  burst.push(
    flights.map((flight, n) => ({
      value: framed(id, type.toBuffer(flight)),
      timestamp: 1_700_000_000_000 + n,
    })),
  );
}
const produce = (records: (typeof burst)[number]) => {
  for (let from = 0; from < records.length; from += 2_000)
    bench.produce(topic, records.slice(from, from + 2_000));
};
for (const records of burst) {
  produce(records);
  await bench.tables.commit('flights');
}
const before = await bench.load('flights');
const summary = before.snapshots!.at(-1)!.summary!;
process.stdout.write(
  `${summary['total-data-files']} files, ${(Number(summary['total-files-size']) / 1e6).toFixed(1)} MB, ${summary['total-records']} rows\n`,
);

/** Lateness of commits beside the compaction: from a record to its row, less the interval. */
const late: number[] = [];
let compacting = true;
const commits = (async () => {
  for (let n = 0; compacting && n < 1_000; n += 1) {
    const { counters } = await bench.tables.status('flights');
    const at = performance.now();
    produce(burst[n % burst.length]!.slice(0, 200));
    while ((await bench.tables.status('flights')).counters.commits === counters.commits)
      await sleep(5);
    late.push(performance.now() - at - 1_000);
  }
})();
await sleep(1_200);
const started = performance.now();
const cpu = process.cpuUsage();
await bench.tables.maintain('flights', 'compact');
const seconds = (performance.now() - started) / 1_000;
const used = process.cpuUsage(cpu);
compacting = false;
await commits;
const { maintenance } = await bench.tables.status('flights');
const after = (await bench.load('flights')).snapshots!.at(-1)!.summary!;
const { bytesRead, plainBytes, workerSeconds } = maintenance!.totals;
process.stdout.write(
  `${JSON.stringify({
    ...{ filesAfter: Number(after['total-data-files']), rows: Number(after['total-records']) },
    ...{ seconds: round(seconds), processCpu: round((used.user + used.system) / 1e6) },
    threadCpu: round(workerSeconds),
    fileMbPerCpuSecond: round(bytesRead / 1e6 / workerSeconds),
    plainMbPerCpuSecond: round(plainBytes / 1e6 / workerSeconds),
    commitLateMs: late.map((ms) => Math.round(ms)),
    totals: maintenance!.totals,
  })}\n`,
);
await bench.stop();
rmSync(folder, { recursive: true });

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
