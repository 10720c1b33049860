// Floe beside its rivals on this machine, in one run: rounds alternate between the systems, results are ratios.
// The rivals, the C clients and the load scripts come from a folder of peers (PEERS=…, see HACKING.md); without it
// there is nothing to compare with. Not for: absolute numbers; machines are noisy, ratios within a run move less.
import { spawnSync } from 'node:child_process';

import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import {
  type Broker,
  type Format,
  peersFolder,
  python,
  startFloe,
  startFloeOnS3,
  startKafka,
} from './peers.ts';
import { type Row, report } from './report.ts';
import { measureTable } from './table.ts';

const HELP = `npm run bench -- [--suites LIST] [--brokers LIST] [--rounds 3] [--scale 1] [--out FILE]
                 [--set KEY=VALUE]… (settings of Floe)

  brokers   cproduce, cconsume (C client), latency, many (1,000 partitions), idle, jproduce, jconsume (JVM client)
            transactions, rebalance, crowd (5,000 connections, 1,000 groups)
            --brokers floe,kafka,kafka-fsync (and floe-s3: over the S3 double)   --rates 1000,20000   --seconds 20 (of latency)
  table     topic to Iceberg table
            --writers floe,connect,pyiceberg   --formats avro,json (and protobuf,jsonschema)   --bursts 2

PEERS=folder of the rivals' start scripts. Without sockets, each by node_modules/.bin/node:
bench/protocol.ts, bench/produce-path.ts, bench/read-path.ts, bench/decode.ts.
`;

const { values: args } = parseArgs({
  options: {
    suites: { type: 'string', default: 'cproduce,cconsume,latency,idle' },
    brokers: { type: 'string', default: 'floe,kafka,kafka-fsync' },
    writers: { type: 'string', default: 'floe,connect,pyiceberg' },
    formats: { type: 'string', default: 'avro,json' },
    bursts: { type: 'string', default: '2' },
    rounds: { type: 'string', default: '3' },
    scale: { type: 'string', default: '1' },
    rates: { type: 'string', default: '1000,20000' },
    seconds: { type: 'string', default: '20' },
    set: { type: 'string', multiple: true, default: [] },
    out: { type: 'string', default: join(import.meta.dirname, 'results', 'rows.jsonl') },
    help: { type: 'boolean', default: false },
  },
});

const FIGURES = [
  'mb_s',
  'mb_per_cpu_s',
  'e2e_p50',
  'e2e_p99',
  'broker_cpu_pct',
  'cpu_pct',
  'tx_s',
  'join_s',
  'grow_s',
  'rows_per_cpu_s',
  'after_last_ack_s',
  'rss_mb',
];

/** More arguments of `floe serve`. */
const settings = args.set.flatMap((assignment) => ['--set', assignment]);

/** Suites of bench/clients.py; the others of brokers are the peers'. */
const OF_CLIENTS = ['transactions', 'rebalance', 'crowd'];

function startBroker(name: string): Promise<Broker> | Broker {
  switch (name) {
    case 'floe':
      return startFloe(settings);
    case 'floe-s3':
      return startFloeOnS3(settings);
    case 'kafka':
    case 'kafka-fsync':
      return startKafka(name === 'kafka-fsync');
    default:
      throw new Error(`--brokers: "${name}" is not floe, floe-s3, kafka or kafka-fsync`);
  }
}

/** Runs suites against one broker and appends their rows to the file of results. */
async function measureBroker(name: string, suites: readonly string[]): Promise<void> {
  const target = await startBroker(name);
  try {
    for (const suite of suites.filter((one) => OF_CLIENTS.includes(one)))
      runClients(suite, name, target);
    const others = suites.filter((one) => !OF_CLIENTS.includes(one));
    if (others.length === 0) return;
    const flags = {
      name,
      bootstrap: target.bootstrap,
      pid: String(target.pid),
      out: args.out,
      only: others.join(','),
      reps: '1',
      scale: args.scale,
      rates: args.rates,
      seconds: args.seconds,
    };
    const list = Object.entries(flags).flatMap(([flag, value]) => [`--${flag}`, value]);
    const script = join(peersFolder, 'bench', 'bench.py');
    spawnSync('python3', [script, ...list], { stdio: ['ignore', 'inherit', 'inherit'] });
  } finally {
    await target.stop();
  }
}

function runClients(suite: string, name: string, { bootstrap, pid }: Broker): void {
  const script = join(import.meta.dirname, 'clients.py');
  const { stdout } = spawnSync(python, [script, bootstrap, String(pid), suite], {
    encoding: 'utf8',
    timeout: 300_000,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  for (const line of stdout.split('\n').filter((one) => one.startsWith('{'))) {
    const row = JSON.stringify({ name, ...(JSON.parse(line) as object) });
    process.stdout.write(`${row}\n`);
    appendFileSync(args.out, `${row}\n`);
  }
}

async function measureRound(suites: readonly string[]): Promise<void> {
  const ofBrokers = suites.filter((suite) => suite !== 'table');
  if (ofBrokers.length > 0) {
    for (const broker of args.brokers.split(',')) {
      process.stdout.write(`\n${broker}\n`);
      await measureBroker(broker, ofBrokers);
    }
  }
  if (suites.includes('table')) {
    const rows = await measureTable({
      systems: args.writers.split(','),
      formats: args.formats.split(',') as Format[],
      bursts: Number(args.bursts),
      settings,
    });
    for (const row of rows) appendFileSync(args.out, `${JSON.stringify(row)}\n`);
  }
}

async function main(): Promise<number> {
  if (args.help) {
    process.stdout.write(HELP);
    return 0;
  }
  if (!existsSync(join(peersFolder, 'bench', 'bench.py'))) {
    const remedy = "set PEERS to the folder with the rivals' start scripts";
    process.stderr.write(`no peers at ${peersFolder}: ${remedy}\n`);
    return 1;
  }
  mkdirSync(join(args.out, '..'), { recursive: true });
  writeFileSync(args.out, '');
  for (let round = 1; round <= Number(args.rounds); round += 1) {
    process.stdout.write(`\nround ${round}\n`);
    await measureRound(args.suites.split(','));
  }
  const text = readFileSync(args.out, 'utf8').trim();
  const rows = text.split('\n').map((line) => JSON.parse(line) as Row);
  const by = ['suite', 'size', 'producers', 'rate', 'partitions', 'format'];
  const present = new Set(rows.map((row) => String(row['name'])));
  const names = [...new Set([...args.brokers.split(','), ...args.writers.split(',')])];
  const options = { by, figures: FIGURES, names: names.filter((name) => present.has(name)) };
  process.stdout.write(`\n${report(rows, options)}`);
  const broken = rows.filter((row) => 'error' in row);
  for (const row of broken)
    process.stdout.write(`error: ${row['name']} ${row['suite']}: ${row['error']}\n`);
  return broken.length === 0 ? 0 : 1;
}

process.exit(await main());
