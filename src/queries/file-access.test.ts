import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { FloeError } from '../base/error.ts';
import { CopiedFiles, LocalFiles } from './file-access.ts';

const folder = mkdtempSync(join(tmpdir(), 'floe-copies-'));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('local files lie in the warehouse or are refused', async () => {
  const files = new LocalFiles('file:///data/warehouse');
  const open = await files.open([{ uri: 'file:///data/warehouse/t/a b%20.parquet', bytes: 1 }]);
  expect(open.pathOf('file:///data/warehouse/t/a b%20.parquet')).toBe(
    '/data/warehouse/t/a b%20.parquet',
  );
  for (const uri of [
    'file:///etc/passwd',
    'file:///data/warehouse/../x',
    's3://b/x',
    '/etc/passwd',
  ])
    await expect(files.open([{ uri, bytes: 1 }]), uri).rejects.toMatchObject({ code: 'invalid' });
});

test('remote files are copied once, kept while in use, and give way when others come', async () => {
  const reads: string[] = [];
  const io = {
    async read(uri: string) {
      reads.push(uri);
      if (uri.endsWith('gone')) throw new FloeError('not-found', uri);
      return new TextEncoder().encode(uri.padEnd(10, '.'));
    },
  };
  const files = await CopiedFiles.create(folder, io, 25);
  const need = (...uris: string[]) => uris.map((uri) => ({ uri, bytes: 10 }));
  const [first, second] = await Promise.all([files.open(need('a')), files.open(need('a', 'b'))]);
  expect(reads.toSorted()).toEqual(['a', 'b']);
  expect(readFileSync(first.pathOf('a'), 'utf8')).toBe('a.........');
  const third = await files.open(need('c'));
  // Over the limit, but every copy is in use: nothing may go.
  expect(readdirSync(folder)).toHaveLength(3);
  for (const open of [first, second, third]) open.close();
  (await files.open(need('c'))).close();
  expect(readdirSync(folder)).toHaveLength(2);
  await expect(files.open(need('d', 'e', 'f'))).rejects.toMatchObject({ code: 'exhausted' });
  await expect(files.open(need('c', 'gone'))).rejects.toMatchObject({ code: 'not-found' });
});
