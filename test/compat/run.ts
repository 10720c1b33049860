// Foreign Kafka clients and suites against a fresh node each, under the settings their authors assume.
// A suite says itself which of its tests Apache Kafka passes ("must pass"); each of those must pass here, except what
// allow.txt lists with a reason. A listed test that passes fails the run, so that list only shrinks.
//   npm run compat [-- protocol clients:kafkajs,kcat librdkafka:0001,0005 …]      npm run compat -- quick|all
//   npm run compat -- cluster …   the same against three brokers over PostgreSQL and an S3 double
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { startChild } from '../../src/cli/child.ts';
import { TestCluster } from '../cluster/cluster.ts';
import { startOneAddress } from './one-address.ts';
import { BUCKET_SETTINGS, RUNS, SETTINGS, SUITES, type Suite } from './suites.ts';

const root = join(import.meta.dirname, '..', '..');
const folder = resolve(process.env['CONFORMANCE'] ?? join(root, '..', 'shared', 'conformance'));
if (!existsSync(folder)) {
  process.stdout.write(
    `skipped: no suites at ${folder} (set CONFORMANCE)\n0 passed, 0 failed, 1 skipped\n`,
  );
  process.exit(0);
}

interface Report {
  readonly tests: Readonly<Record<string, { readonly state: string; readonly why?: string }>>;
  /** Tests that Apache Kafka passes and this run didn't. */
  readonly must_pass_failed: readonly string[];
}

/** `suite/test`, or `cluster/suite/test` for three brokers only, → reason, from allow.txt. */
function exceptions(): Map<string, string> {
  const lines = readFileSync(join(import.meta.dirname, 'allow.txt'), 'utf8').split('\n');
  const entries = lines.filter((line) => line.trim() !== '' && !line.startsWith('#'));
  return new Map(entries.map((line) => line.split(/\s+#\s*/, 2) as [string, string]));
}

/** Runs a suite to its end and returns what it reports. */
async function runSuite(
  suite: Suite,
  only: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<Report> {
  const file = join(env['RESULTS']!, suite.result);
  rmSync(file, { force: true });
  const child = spawn('bash', [join(folder, suite.folder, 'run.sh'), ...only], {
    env: { ...process.env, ...suite.env, ...env },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  await new Promise((done) => child.once('exit', done));
  if (!existsSync(file)) throw new Error(`${suite.folder} left no results`);
  return JSON.parse(readFileSync(file, 'utf8')) as Report;
}

const [first, ...others] = process.argv.slice(2);
const clustered = first === 'cluster';
const allowed = exceptions();

/** Why a test may fail here, if it may. */
const reasonOf = (test: string) =>
  allowed.get(test) ?? (clustered ? allowed.get(`cluster/${test}`) : undefined);
const totals = { passed: 0, failed: 0, skipped: 0 };

/** Counts one suite's results and names what is wrong. */
function judge(name: string, { tests, must_pass_failed: missed }: Report): void {
  for (const [test, { state, why }] of Object.entries(tests)) {
    const reason = reasonOf(`${name}/${test}`);
    if (state.toLowerCase() === 'passed' && reason === undefined) totals.passed += 1;
    else if (state.toLowerCase() === 'passed') {
      totals.failed += 1;
      process.stdout.write(`PASS ${name}/${test} is on allow.txt: take it off\n`);
    } else if (!missed.includes(test) || reason !== undefined) {
      totals.skipped += 1;
      if (state.toLowerCase() === 'failed')
        process.stdout.write(`may fail: ${name}/${test}: ${reason ?? 'not required of Kafka'}\n`);
    } else {
      totals.failed += 1;
      process.stdout.write(`FAIL ${name}/${test}: ${why ?? ''}\n`);
    }
  }
  for (const test of missed.filter(
    (id) => tests[id] === undefined && reasonOf(`${name}/${id}`) === undefined,
  )) {
    totals.failed += 1;
    process.stdout.write(`FAIL ${name}/${test}: it did not run\n`);
  }
}

function wanted(args: readonly string[]): readonly string[] {
  if (args.length === 0) return RUNS.usual;
  const [first] = args;
  return first === 'all' || first === 'quick' ? RUNS[first] : args;
}

interface Running {
  /** HOST:PORT,… */
  readonly bootstrap: string;
  readonly brokers: number;
  stop(): Promise<unknown>;
}

async function startNode(folder: string, sets: readonly string[]): Promise<Running> {
  const node = await startChild(join(folder, 'data'), sets);
  return { bootstrap: node.addresses.kafka, brokers: 1, stop: () => node.stop() };
}

async function startCluster(
  folder: string,
  sets: readonly string[],
  { oneAddress }: Suite,
): Promise<Running> {
  const brokers = 3;
  const latency = { putMs: 20, getMs: 5 };
  const cluster = await TestCluster.start({ folder, brokers, ...latency, arguments: sets });
  if (oneAddress !== true)
    return { bootstrap: cluster.brokers, brokers, stop: () => cluster.stop() };
  const front = await startOneAddress(cluster.members.map(({ port }) => port));
  return {
    bootstrap: front.address,
    brokers,
    stop() {
      front.stop();
      return cluster.stop();
    },
  };
}

const start = clustered ? startCluster : startNode;
for (const run of wanted(clustered ? others : process.argv.slice(2))) {
  const [name, only] = run.split(':') as [string, string | undefined];
  const suite = SUITES[name];
  if (suite === undefined)
    throw new Error(`no suite "${name}"; there are ${Object.keys(SUITES).join(', ')}`);
  const results = mkdtempSync(join(tmpdir(), 'floe-compat-'));
  const ground = clustered ? { ...SETTINGS, ...BUCKET_SETTINGS } : SETTINGS;
  const settings = Object.entries({ ...ground, ...suite.settings });
  const sets = settings.flatMap(([key, value]) => ['--set', `${key}=${value}`]);
  const { bootstrap, brokers, stop } = await start(results, sets, suite);
  try {
    process.stdout.write(`\n${run} at ${bootstrap}\n`);
    const env = {
      BOOTSTRAP: bootstrap,
      NODES: String(brokers),
      RESULTS: process.env['RESULTS'] ?? results,
    };
    judge(name, await runSuite(suite, only?.split(',') ?? [], env));
  } finally {
    await stop();
    rmSync(results, { recursive: true, force: true });
  }
}
process.stdout.write(
  `\n${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped\n`,
);
process.exit(totals.failed === 0 ? 0 : 1);
