// Writes what code knows best: docs/settings.md, docs/apis.md, dashboard and alarms in docs/operations. `--check` only compares, and
// is part of the tests, so the pages can't fall behind.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { alarms, dashboard } from './operations.ts';
import { apisPage, settingsPage } from './pages.ts';

const docs = join(import.meta.dirname, '..', 'docs');
for (const [name, text] of [
  ['settings.md', settingsPage()],
  ['apis.md', apisPage()],
  ['operations/grafana.json', dashboard()],
  ['operations/alarms.yaml', alarms()],
] as const) {
  const path = join(docs, name);
  if (process.argv.includes('--check')) {
    if (readFileSync(path, 'utf8') !== text) {
      process.stderr.write(`docs/${name} is behind the code: npm run docs\n`);
      process.exitCode = 1;
    }
  } else {
    writeFileSync(path, text);
  }
}
