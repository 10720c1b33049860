import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { apisPage, settingsPage } from './pages.ts';

const docs = join(import.meta.dirname, '..', 'docs');

test.each([
  ['settings.md', settingsPage],
  ['apis.md', apisPage],
])('docs/%s is what the code says (npm run docs)', (name, page) => {
  expect(readFileSync(join(docs, name), 'utf8')).toBe(page());
});
