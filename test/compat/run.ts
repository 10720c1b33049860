// Foreign Kafka clients and suites against a fresh node, each under the settings its authors assume.
// The suites come from a folder (CONFORMANCE=…) whose scripts end with `N passed, N failed, N skipped`.
// What may fail, and why: allow.txt beside this file. An entry that passes fails the run, so the list only shrinks.
//   npm run compat [-- protocol clients:kafkajs,kcat librdkafka:0001,0005 …]
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { startChild } from '../../src/cli/child.ts';

const root = join(import.meta.dirname, '..', '..');
const suites = resolve(process.env['CONFORMANCE'] ?? join(root, '..', 'shared', 'conformance'));
if (!existsSync(suites)) {
  process.stdout.write(
    `skipped: no suites at ${suites} (set CONFORMANCE)\n0 passed, 0 failed, 1 skipped\n`,
  );
  process.exit(0);
}

/** What the suites' authors assume of a test broker. */
const SETTINGS = {
  'num.partitions': '4',
  'auto.create.topics.enable': 'true',
  'group.initial.rebalance.delay.ms': '0',
  'group.min.session.timeout.ms': '1000',
  'message.max.bytes': '1048588',
};

const DEFAULT = [
  'protocol',
  'clients:kafkajs,platformatic,kcat,confluent-kafka,confluent-kafka-javascript',
];

interface TestResult {
  readonly state: 'passed' | 'failed' | 'skipped';
  readonly why?: string;
}

/** `suite/test` → reason, from allow.txt. */
function allowed(): Map<string, string> {
  const lines = readFileSync(join(import.meta.dirname, 'allow.txt'), 'utf8').split('\n');
  const entries = lines.filter((line) => line.trim() !== '' && !line.startsWith('#'));
  return new Map(entries.map((line) => line.split(/\s+#\s*/, 2) as [string, string]));
}

/** Runs a suite to its end and returns its results by test. */
async function runSuite(name: string, only: readonly string[], bootstrap: string, results: string) {
  const script = join(suites, name, 'run.sh');
  const child = spawn('bash', [script, ...only], {
    env: { ...process.env, BOOTSTRAP: bootstrap, RESULTS: results },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  await new Promise((done) => child.once('exit', done));
  const file = join(results, `${name}.json`);
  if (!existsSync(file)) throw new Error(`${name} left no results`);
  const { tests } = JSON.parse(readFileSync(file, 'utf8')) as { tests: Record<string, TestResult> };
  return tests;
}

const allow = allowed();
const totals = { passed: 0, failed: 0, skipped: 0 };
const wanted = process.argv.slice(2);
for (const spec of wanted.length > 0 ? wanted : DEFAULT) {
  const [name, only] = spec.split(':') as [string, string | undefined];
  const folder = mkdtempSync(join(tmpdir(), 'floe-compat-'));
  const sets = Object.entries(SETTINGS).flatMap(([key, value]) => ['--set', `${key}=${value}`]);
  const node = await startChild(join(folder, 'data'), sets);
  try {
    process.stdout.write(`\n${spec} at ${node.addresses.kafka}\n`);
    const tests = await runSuite(name, only?.split(',') ?? [], node.addresses.kafka, folder);
    for (const [test, { state, why }] of Object.entries(tests)) {
      const id = `${name}/${test}`;
      const reason = allow.get(id);
      if (state === 'failed' && reason === undefined)
        process.stdout.write(`FAIL ${id}: ${why ?? ''}\n`);
      if (state === 'passed' && reason !== undefined)
        process.stdout.write(`PASS ${id} is on allow.txt: take it off\n`);
      if (state === 'skipped' || (state === 'failed' && reason !== undefined)) totals.skipped += 1;
      else if (state === 'passed' && reason === undefined) totals.passed += 1;
      else totals.failed += 1;
    }
  } finally {
    await node.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}
process.stdout.write(
  `\n${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped\n`,
);
process.exit(totals.failed === 0 ? 0 : 1);
