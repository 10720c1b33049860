// Installs the pinned dependencies when they are missing or the lock file changed since.
// Runs before every npm script on whatever Node the machine has (20 is enough), so it uses no dependency.
// Not for: building anything. Floe runs from its sources.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const stamp = join(root, 'node_modules', '.floe-setup');
const wanted = createHash('sha256')
  .update(readFileSync(join(root, 'package-lock.json')))
  .digest('hex');
const installed = existsSync(stamp) ? readFileSync(stamp, 'utf8') : '';
if (installed !== wanted) {
  process.stderr.write('Installing the pinned dependencies (once, about a minute)…\n');
  // `npm ci` empties node_modules first, under the feet of whatever runs from it: only for a fresh checkout.
  const command = existsSync(join(root, 'node_modules')) ? 'install' : 'ci';
  const done = spawnSync('npm', [command, '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
    shell: process.platform === 'win32',
  });
  if (done.status !== 0) {
    process.stderr.write(`npm ${command} failed: is the npm registry reachable?\n`);
    process.exit(done.status ?? 1);
  }
  writeFileSync(stamp, wanted);
}
