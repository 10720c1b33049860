// Floe beside Apache Kafka on this machine, in one run: rounds alternate between the brokers, results are ratios.
// The rival, the C clients and the load scripts come from a folder of peers (PEERS=…, see HACKING.md); without it
// there is nothing to compare with. Not for: absolute numbers; machines are noisy, ratios within a run move less.
//   npm run bench -- [--suites cproduce,cconsume,latency,many,idle] [--rounds 3] [--scale 1] [--out FILE]
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { startChild } from '../src/cli/child.ts';
import { textTable } from '../src/cli/text-table.ts';

const root = join(import.meta.dirname, '..');
const peers = resolve(process.env['PEERS'] ?? join(root, '..', 'shared', 'peers'));
const { values: args } = parseArgs({
  options: {
    suites: { type: 'string', default: 'cproduce,cconsume,latency,idle' },
    brokers: { type: 'string', default: 'floe,kafka,kafka-fsync' },
    rounds: { type: 'string', default: '3' },
    scale: { type: 'string', default: '1' },
    rates: { type: 'string', default: '1000,20000' },
    seconds: { type: 'string', default: '20' },
    out: { type: 'string', default: join(root, 'bench', 'results', 'brokers.jsonl') },
    help: { type: 'boolean', default: false },
  },
});

if (args.help) {
  process.stdout.write(
    'npm run bench -- [--suites cproduce,cconsume,latency,many,idle,jproduce,jconsume] [--brokers floe,kafka,kafka-fsync]\n' +
      '                 [--rounds 3] [--scale 1] [--rates 1000,20000] [--seconds 20] [--out FILE]\n' +
      'PEERS=folder of the rivals’ start scripts. In-process benchmarks: bench/*.ts, each by node_modules/.bin/node.\n',
  );
  process.exit(0);
}
if (!existsSync(join(peers, 'bench', 'bench.py'))) {
  process.stderr.write(
    `no peers at ${peers}: set PEERS to the folder with the rivals' start scripts\n`,
  );
  process.exit(1);
}

interface Target {
  readonly bootstrap: string;
  readonly pid: number;
  stop(): Promise<void>;
}

async function startFloe(): Promise<Target> {
  const dataDir = mkdtempSync(join(process.env['BENCH_DIR'] ?? tmpdir(), 'floe-bench-'));
  const node = await startChild(dataDir, ['--set', 'group.initial.rebalance.delay.ms=0']);
  process.stdout.write(`floe: ready in ${Math.round(node.readyMs)} ms\n`);
  return {
    bootstrap: node.addresses.kafka,
    pid: node.pid,
    async stop() {
      await node.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

function startKafka(fsync: boolean): Target {
  const said = execFileSync(join(peers, 'kafka', 'start.sh'), fsync ? ['--fsync'] : [], {
    encoding: 'utf8',
  });
  const [, pid, port] = /pid=(\d+) port=(\d+)/.exec(said)!;
  return {
    bootstrap: `127.0.0.1:${port}`,
    pid: Number(pid),
    async stop() {
      spawnSync(join(peers, 'kafka', 'stop.sh'), { stdio: 'ignore' });
    },
  };
}

async function measure(name: string): Promise<void> {
  const target = name === 'floe' ? await startFloe() : startKafka(name === 'kafka-fsync');
  try {
    const bench = join(peers, 'bench', 'bench.py');
    const flags = [
      '--name',
      name,
      '--bootstrap',
      target.bootstrap,
      '--pid',
      String(target.pid),
      '--out',
      args.out,
    ];
    flags.push(
      '--only',
      args.suites,
      '--reps',
      '1',
      '--scale',
      args.scale,
      '--rates',
      args.rates,
      '--seconds',
      args.seconds,
    );
    spawnSync('python3', [bench, ...flags], { stdio: ['ignore', 'inherit', 'inherit'] });
  } finally {
    await target.stop();
  }
}

type Row = Readonly<Record<string, string | number>>;
const CASE = ['suite', 'size', 'producers', 'rate', 'partitions'];
const FIGURES = [
  'mb_s',
  'mb_per_cpu_s',
  'e2e_p50',
  'e2e_p99',
  'broker_cpu_pct',
  'cpu_pct',
  'rss_mb',
];

/** min / median / max. */
function spread(values: readonly number[]): string {
  const sorted = values.toSorted((a, b) => a - b);
  const shown = [sorted[0]!, median(sorted), sorted.at(-1)!].map((value) =>
    Number(value.toPrecision(4)),
  );
  return shown.join(' / ');
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** One line a case and figure: each broker's spread, and Floe's median as a multiple of each rival's. */
function report(rows: readonly Row[], brokers: readonly string[]): string {
  const cases = Map.groupBy(rows, (row) =>
    CASE.filter((key) => key in row)
      .map((key) => `${key}=${row[key]}`)
      .join(' '),
  );
  const lines: unknown[][] = [];
  for (const [label, found] of cases) {
    for (const figure of FIGURES) {
      const of = (broker: string) =>
        found
          .filter((row) => row['name'] === broker && figure in row)
          .map((row) => Number(row[figure]));
      if (of('floe').length === 0) continue;
      const ratios = brokers
        .filter((broker) => broker !== 'floe' && of(broker).length > 0)
        .map((broker) => `${(median(of('floe')) / median(of(broker))).toFixed(2)} × ${broker}`);
      lines.push([
        label,
        figure,
        ...brokers.map((broker) => (of(broker).length > 0 ? spread(of(broker)) : '')),
        ratios.join(', '),
      ]);
    }
  }
  return textTable(['case', 'figure', ...brokers, 'floe is'], lines);
}

mkdirSync(join(args.out, '..'), { recursive: true });
writeFileSync(args.out, '');
const brokers = args.brokers.split(',');
for (let round = 1; round <= Number(args.rounds); round += 1) {
  for (const broker of brokers) {
    process.stdout.write(`\nround ${round}: ${broker}\n`);
    await measure(broker);
  }
}
const rows = readFileSync(args.out, 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Row);
process.stdout.write(`\n${report(rows, brokers)}`);
const broken = rows.filter((row) => 'error' in row);
for (const row of broken)
  process.stdout.write(`error: ${row['name']} ${row['suite']}: ${row['error']}\n`);
process.exit(broken.length === 0 ? 0 : 1);
