import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { resolveSettings } from '../base/settings.ts';
import { openFile } from './log-dump/object-bytes.ts';
import { serverSettings } from './settings.ts';
import { openStoreToRead } from './stores.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'floe-stores-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

test('who only looks makes no folder, whether it is named or that of the data directory', async () => {
  const settings = resolveSettings(serverSettings, {});
  const absent = join(folder, 'absent');
  const named = { dataDir: folder, storage: pathToFileURL(absent).href, settings };
  await expect(openStoreToRead(named)).rejects.toThrow(
    `storage ${named.storage}: there is no such folder`,
  );
  const own = { dataDir: absent, storage: undefined, settings };
  await expect(openStoreToRead(own)).rejects.toMatchObject({ code: 'not-found' });
  expect(existsSync(absent)).toBe(false);
  const there = { dataDir: folder, storage: pathToFileURL(folder).href, settings };
  expect((await openStoreToRead(there)).uri).toBe(there.storage);
});

test('what is no plain file is refused at once: a pipe, a folder', async () => {
  const pipe = join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);
  await expect(openFile(pipe)).rejects.toThrow(`${pipe} is no file`);
  await expect(openFile(folder)).rejects.toThrow(`${folder} is no file`);
});
