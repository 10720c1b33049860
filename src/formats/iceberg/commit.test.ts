import { expect, test } from 'vitest';
import { currentSnapshot } from './history.ts';
import { STATUS_DELETED } from './manifest.ts';
import { checkRequirements } from './requirements.ts';
import { manifestsOf, readManifests } from './table-files.ts';
import { TestTable } from './test-table.ts';

async function liveFiles(table: TestTable) {
  const manifests = await manifestsOf(table, currentSnapshot(table.metadata));
  const entries = (await readManifests(table, table.metadata, manifests)).flat();
  return entries.filter((entry) => entry.status !== STATUS_DELETED);
}

test('appends add up: sequence numbers are inherited, totals carried, manifests kept', async () => {
  const table = new TestTable();
  await table.commit({ added: [table.file(), table.file()], summary: { 'floe.commit-id': 'a' } });
  await table.commit({ added: [table.file({ recordCount: 5, fileSizeInBytes: 7 })] });
  const snapshot = currentSnapshot(table.metadata)!;
  expect(snapshot.summary).toMatchObject({
    operation: 'append',
    'added-data-files': '1',
    'added-records': '5',
    'total-data-files': '3',
    'total-records': '25',
    'total-files-size': '2007',
    'total-delete-files': '0',
    'changed-partition-count': '1',
  });
  const live = await liveFiles(table);
  expect(live.map((entry) => entry.sequenceNumber).sort()).toEqual([1, 1, 2]);
  expect(new Set(live.map((entry) => entry.snapshotId)).size).toBe(2);
  expect(await manifestsOf(table, snapshot)).toHaveLength(2);
  expect(table.metadata['snapshot-log']).toHaveLength(2);
});

test('a commit asserts uuid, parent and schema, so that a second one from the same parent fails', async () => {
  const table = new TestTable();
  await table.commit({ added: [table.file()] });
  const first = await table.prepare({ added: [table.file()] });
  const second = await table.prepare({ added: [table.file()] });
  for (const { path, bytes } of first.objects) table.files.set(path, bytes);
  checkRequirements(table.metadata, first.requirements);
  table.update(...first.updates);
  expect(() => checkRequirements(table.metadata, second.requirements)).toThrow(
    /branch main has changed/,
  );
  expect(() => table.update(...second.updates)).toThrow(/sequence number/);
});

test('values of every partition type come back through manifest and summary', async () => {
  const table = new TestTable({
    partitionFields: [
      { 'source-id': 1, name: 'bucket', transform: 'bucket[16]' },
      { 'source-id': 2, name: 'odd name+', transform: 'identity' },
      { 'source-id': 3, name: 'hour', transform: 'hour' },
    ],
  });
  const tuples = [
    [3, 'zürich', 480_000],
    [null, null, null],
  ];
  await table.commit({ added: tuples.map((partition) => table.file({ partition })) });
  const live = await liveFiles(table);
  expect(live.map((entry) => entry.file.partition)).toEqual(tuples);
  const [manifest] = await manifestsOf(table, currentSnapshot(table.metadata));
  expect(manifest!.partitions!.map((one) => one.containsNull)).toEqual([true, true, true]);
  expect(Buffer.from(manifest!.partitions![1]!.lowerBound!).toString()).toBe('zürich');
});

test('metrics survive, with ids and byte bounds', async () => {
  const table = new TestTable();
  const metrics = {
    columnSizes: new Map([[1, 100]]),
    valueCounts: new Map([[1, 10]]),
    nullValueCounts: new Map([[2, 3]]),
    nanValueCounts: new Map<number, number>(),
    lowerBounds: new Map([[1, Uint8Array.of(1, 0, 0, 0, 0, 0, 0, 0)]]),
    upperBounds: new Map([[2, new Uint8Array(Buffer.from('zz'))]]),
  };
  await table.commit({ added: [table.file({ metrics, splitOffsets: [4], sortOrderId: 0 })] });
  const [entry] = await liveFiles(table);
  expect(entry!.file.metrics).toEqual(metrics);
  expect(entry!.file.splitOffsets).toEqual([4]);
});

test('removed files leave their manifest; a file that is not live is a conflict', async () => {
  const table = new TestTable();
  const [a, b] = [table.file(), table.file()];
  await table.commit({ added: [a, b] });
  await table.commit({
    removed: [a],
    added: [table.file({ recordCount: 1 })],
    operation: 'replace',
  });
  expect(currentSnapshot(table.metadata)!.summary).toMatchObject({
    operation: 'replace',
    'deleted-data-files': '1',
    'total-data-files': '2',
    'total-records': '11',
  });
  const live = await liveFiles(table);
  expect(live.map((entry) => entry.file.filePath)).not.toContain(a.filePath);
  expect(live.find((entry) => entry.file.filePath === b.filePath)!.sequenceNumber).toBe(1);
  await expect(table.prepare({ removed: [a] })).rejects.toMatchObject({ code: 'conflict' });
});

test('many small manifests are merged once they reach the minimum; entries keep their history', async () => {
  const table = new TestTable({ properties: { 'commit.manifest.min-count-to-merge': '5' } });
  for (let n = 0; n < 12; n += 1) await table.commit({ added: [table.file()] });
  const manifests = await manifestsOf(table, currentSnapshot(table.metadata));
  expect(manifests.length).toBeLessThanOrEqual(5);
  const live = await liveFiles(table);
  expect(live.map((entry) => entry.sequenceNumber).sort((x, y) => x! - y!)).toEqual(
    Array.from({ length: 12 }, (_, n) => n + 1),
  );
  expect(currentSnapshot(table.metadata)!.summary?.['total-data-files']).toBe('12');
});

test('totals are counted anew when a foreign parent left them out', async () => {
  const table = new TestTable();
  await table.commit({ added: [table.file()] });
  const snapshots = table.metadata.snapshots!.map(({ summary: _gone, ...rest }) => rest);
  table.metadata = { ...table.metadata, snapshots };
  await table.commit({ added: [table.file()] });
  expect(currentSnapshot(table.metadata)!.summary?.['total-records']).toBe('20');
});

test('v3: row ids are assigned without gaps', async () => {
  const table = new TestTable({ properties: { 'format-version': '3' } });
  await table.commit({ added: [table.file(), table.file({ recordCount: 3 })] });
  await table.commit({ added: [table.file()] });
  expect(table.metadata['next-row-id']).toBe(23);
  const live = await liveFiles(table);
  expect(live.map((entry) => entry.file.firstRowId).sort((x, y) => x! - y!)).toEqual([0, 10, 13]);
});

test('a file of a spec that does not exist is refused (T8)', async () => {
  const table = new TestTable();
  await expect(table.prepare({ added: [table.file({ specId: 4 })] })).rejects.toMatchObject({
    code: 'invalid',
  });
});
