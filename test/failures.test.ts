// FAILURES.md names a test for everything that broke others: they must be there, by file and by words of their titles.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..');
const text = readFileSync(join(import.meta.dirname, 'FAILURES.md'), 'utf8');

const find = (path: string) => [path, `src/${path}`].find((one) => existsSync(join(root, one)));

test('every test named is there, with the words of its title', () => {
  const named = [...text.matchAll(/`([\w/.-]+\.test\.ts)`(?: \(([^)]*)\))?/g)];
  expect(named.length).toBeGreaterThan(60);
  const missing: string[] = [];
  for (const [, path, titles = ''] of named) {
    const found = find(path!);
    if (found === undefined) {
      missing.push(path!);
      continue;
    }
    const source = readFileSync(join(root, found), 'utf8');
    for (const [, words] of titles.matchAll(/"([^"]+)"/g)) {
      if (!source.includes(words!)) missing.push(`${path}: ${words}`);
    }
  }
  expect(missing).toEqual([]);
});

test('every row names a test', () => {
  const rows = text
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| failure'));
  for (const row of rows) if (!row.startsWith('| ---')) expect(row).toMatch(/\.test\.ts`/);
});
