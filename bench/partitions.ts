// One commit into very many partitions of a table: 10,000 days, a few rows each, as a wild clock or a fine spec make them.
// Prints the time from log to commit, what it took of the processor, and what became of it.
// Run: node bench/partitions.ts [partitions]
import { Bench } from '../src/table-topic/testing/bench.ts';

const PARTITIONS = Number(process.argv[2] ?? 10_000);
const ROWS_EACH = 3;
const DAY_MS = 86_400_000;

const bench = await Bench.open({ settings: { 'table.maintenance.enable': 'false' } });
bench.start();
const topic = await bench.topic('t', {
  'table.topic.convert.value.type': 'string',
  'table.topic.partition.by': '[day(_kafka_timestamp)]',
  'table.topic.max.partitions.per.commit': String(PARTITIONS),
  'table.topic.commit.interval.ms': '900000',
});
const records = Array.from({ length: PARTITIONS * ROWS_EACH }, (_, n) => ({
  value: `value ${n}`,
  timestamp: ((n * 7919) % PARTITIONS) * DAY_MS,
}));
for (let from = 0; from < records.length; from += 5_000)
  bench.produce(topic, records.slice(from, from + 5_000));
const before = process.cpuUsage();
const started = performance.now();
await bench.tables.commit('t');
const seconds = (performance.now() - started) / 1_000;
const { user, system } = process.cpuUsage(before);
const { snapshots = [] } = await bench.load('t');
const { lagRecords } = await bench.tables.status('t');
const show = (what: string, value: string | number) =>
  process.stdout.write(`${what.padEnd(34)}${value}\n`);
show('partitions', PARTITIONS);
show('seconds, of CPU', `${seconds.toFixed(1)}, ${((user + system) / 1e6).toFixed(1)}`);
show('snapshots', snapshots.length);
show('files of the last', snapshots.at(-1)?.summary?.['added-data-files'] ?? '0');
show('partitions of the last', snapshots.at(-1)?.summary?.['changed-partition-count'] ?? '0');
show('records left', lagRecords);
show('peak RSS, MB', Math.round(process.resourceUsage().maxRSS / 1_024));
await bench.stop();
