// A key index on a disk: it comes back as it was, or empty when it can't be trusted, never half.
import { mkdirSync, mkdtempSync, readdirSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { DataFile } from '../../formats/iceberg/types.ts';
import { Entries, sortedByHash } from './entries.ts';
import { KeyStore } from './key-store.ts';
import { FolderRunFiles } from './run-files.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'floe-keys-'));
  mkdirSync(folder, { recursive: true });
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const IDENTITY = { tableUuid: 't', idFields: [1, 4], topicId: 'x' };
const open = (identity = IDENTITY) =>
  KeyStore.open(join(folder, 'index.db'), new FolderRunFiles(folder), identity);

const FILE: DataFile = {
  content: 0,
  filePath: 'file:///t/a.parquet',
  fileFormat: 'PARQUET',
  specId: 0,
  partition: [12n, 'x', null, Uint8Array.of(1, 2)],
  recordCount: 1_000,
  fileSizeInBytes: 5,
  metrics: {
    columnSizes: new Map(),
    valueCounts: new Map(),
    nullValueCounts: new Map(),
    nanValueCounts: new Map(),
    lowerBounds: new Map(),
    upperBounds: new Map(),
  },
};

function keys(count: number, commit: number, file: number): Entries {
  const entries = new Entries();
  const one = new Entries(1);
  one.count = 1;
  for (let n = 0; n < count; n += 1) {
    entries.copy(one, 0);
    entries.hashes.set([Math.imul(n, 0x9e3779b1), n, 1, 2], n * 4);
    entries.files[n] = file;
    entries.positions[n] = n;
    entries.commits[n] = commit;
  }
  return sortedByHash(entries);
}

function fill(store: KeyStore): number {
  const id = store.newFileId();
  store.apply({
    snapshotId: '7',
    commitId: 'c7',
    entries: keys(1_000, 5, id),
    files: [{ id, file: FILE, sequenceNumber: 3, deleted: 0 }],
    deletes: [{ file: { ...FILE, content: 1, filePath: 'file:///t/d' }, sequenceNumber: 4 }],
    truncate: { commit: 1, partition: 0, offset: 9 },
  });
  return id;
}

test('what was applied is there after a restart', () => {
  const first = open();
  const id = fill(first);
  first.close();
  const store = open();
  expect(store.snapshotId).toBe('7');
  expect(store.commitId).toBe('c7');
  expect(store.truncate).toEqual({ commit: 1, partition: 0, offset: 9 });
  expect(store.fileByPath(FILE.filePath)).toMatchObject({ id, sequenceNumber: 3, file: FILE });
  expect([...store.deletes.keys()]).toEqual(['file:///t/d']);
  const found = store.lookup(keys(1_000, 0, id));
  expect(found.foundCount).toBe(1_000);
  expect(store.newFileId()).toBe(id + 1);
  store.close();
});

test('another key, another topic or a damaged run: it starts empty', () => {
  fill(open());
  expect(open({ ...IDENTITY, idFields: [1] }).snapshotId).toBeUndefined();
  fill(open());
  expect(open({ ...IDENTITY, topicId: 'y' }).snapshotId).toBeUndefined();
  const last = open();
  fill(last);
  last.close();
  const run = readdirSync(folder).find((name) => name.endsWith('.run'))!;
  truncateSync(join(folder, run), 4_000);
  const store = open();
  expect(store.snapshotId).toBeUndefined();
  expect(store.entryCount).toBe(0);
  store.close();
});

test('K1: joins keep stamps above the floor and drop what nobody can ask for', () => {
  const store = open();
  const id = fill(store);
  store.apply({ snapshotId: '8', filesGone: [id], entries: keys(500, 9, -1) });
  store.join(4);
  expect(store.entryCount).toBe(1_000);
  store.apply({ snapshotId: '9', entries: keys(400, 10, -1) });
  store.join(9);
  expect(store.runs).toHaveLength(1);
  expect(store.entryCount).toBe(400);
  store.close();
});
