// BAD-INPUT.md names a test for every kind of bad input: they must be there, by file and by words of their titles.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..');
const text = readFileSync(join(import.meta.dirname, 'BAD-INPUT.md'), 'utf8');

const find = (path: string) => [path, `src/${path}`].find((one) => existsSync(join(root, one)));

test('every test named is there, with the words of its title', () => {
  const named = [...text.matchAll(/`([\w/.-]+\.test\.ts)`(?: \(([^)]*)\))?/g)];
  expect(named.length).toBeGreaterThan(40);
  for (const [, path, titles = ''] of named) {
    const found = find(path!);
    expect(found, path).toBeDefined();
    const source = readFileSync(join(root, found!), 'utf8');
    for (const [, words] of titles.matchAll(/"([^"]+)"/g)) expect(source, path).toContain(words);
  }
});
