// Strangers check our HTTP faces: the schema registry's scenarios and compatibility verdicts, the REST catalog's
// scenarios with every answer validated by the OpenAPI. The checkers come from a folder of oracles (ORACLES=…).
//   npm run oracles:http
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { startChild } from '../../src/cli/child.ts';

const root = join(import.meta.dirname, '..', '..');
const oracles = resolve(process.env['ORACLES'] ?? join(root, '..', 'shared', 'oracles'));
if (!existsSync(join(oracles, 'env.sh'))) {
  process.stdout.write(
    `skipped: no oracles at ${oracles} (set ORACLES)\n0 passed, 0 failed, 1 skipped\n`,
  );
  process.exit(0);
}

/** Scenario names that may fail, by suite, with the reason: known.json beside this file. */
const known = JSON.parse(readFileSync(join(import.meta.dirname, 'known.json'), 'utf8')) as Record<
  string,
  Record<string, string>
>;

const folder = mkdtempSync(join(tmpdir(), 'floe-oracles-'));
const node = await startChild(join(folder, 'data'));
let failed = 0;
try {
  const { registry, catalog } = node.addresses;
  const suites: [string, string[]][] = [
    ['schema-registry/scenarios.py', [`http://${registry}`]],
    ['schema-registry/compat_run.py', [`http://${registry}`]],
    [join(import.meta.dirname, 'registry_client.py'), [`http://${registry}`]],
    ['rest-catalog/scenarios.py', [`http://${catalog}`]],
  ];
  for (const [script, argv] of suites) {
    const names = Object.keys(known[script] ?? {});
    if (names.length > 0) argv.push('--known', names.join(','));
    process.stdout.write(`\n${script} ${argv.join(' ')}\n`);
    const done = spawnSync(join(oracles, 'env.sh'), ['python', resolve(oracles, script), ...argv], {
      stdio: 'inherit',
    });
    if (done.status !== 0) failed += 1;
  }
  process.stdout.write(`\n${suites.length - failed} passed, ${failed} failed\n`);
} finally {
  await node.stop();
  rmSync(folder, { recursive: true, force: true });
}
process.exit(failed === 0 ? 0 : 1);
