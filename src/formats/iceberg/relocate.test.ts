// Locations move, all else stays: checked on every kind of file that names them.
import { expect, test } from 'vitest';
import { openContainer, writeContainer } from '../avro/container.ts';
import { readManifestList, writeManifestList } from './manifest-list.ts';
import { writeVectors } from './puffin.ts';
import {
  avroKind,
  relocateJson,
  relocateManifest,
  relocateManifestList,
  relocatePuffin,
} from './relocate.ts';

const moved = (text: string) => text.replaceAll('file:///old/', 's3://new/');

test('metadata keeps 64-bit ids', () => {
  const text =
    '{"location":"file:///old/t","snapshots":[{"snapshot-id":9007199254740993}],"n":1.5}';
  expect(relocateJson(text, moved)).toBe(text.replace('file:///old/', 's3://new/'));
});

test('a manifest list names manifests where they are, with the lengths that they have now', () => {
  const manifest = {
    manifestPath: 'file:///old/m.avro',
    manifestLength: 10,
    partitionSpecId: 0,
    content: 0 as const,
    sequenceNumber: 1,
    minSequenceNumber: 1,
    addedSnapshotId: 9_007_199_254_740_993n,
    addedFilesCount: 1,
    existingFilesCount: 0,
    deletedFilesCount: 0,
    addedRowsCount: 5,
    existingRowsCount: 0,
    deletedRowsCount: 0,
    partitions: [],
  };
  const list = writeManifestList({
    formatVersion: 2,
    snapshotId: 9_007_199_254_740_993n,
    parentSnapshotId: undefined,
    sequenceNumber: 1,
    manifests: [manifest],
    sync: new Uint8Array(16),
  });
  expect(avroKind(list)).toBe('manifest-list');
  const lengths = new Map([['file:///old/m.avro', 77]]);
  expect(readManifestList(relocateManifestList(list, moved, lengths))).toEqual([
    { ...manifest, manifestPath: 's3://new/m.avro', manifestLength: 77 },
  ]);
});

test("a manifest's fields of other writers stay; files written anew have their new size", () => {
  const schema = {
    type: 'record',
    name: 'manifest_entry',
    fields: [
      { name: 'status', type: 'int', 'field-id': 0 },
      {
        name: 'data_file',
        'field-id': 2,
        type: {
          type: 'record',
          name: 'r2',
          fields: [
            { name: 'content', type: 'int', 'field-id': 134 },
            { name: 'file_path', type: 'string', 'field-id': 100 },
            { name: 'file_size_in_bytes', type: 'long', 'field-id': 104 },
            { name: 'extra', type: ['null', 'string'], 'field-id': 9_999 },
          ],
        },
      },
    ],
  };
  const file = { content: 1, file_path: 'file:///old/d.puffin', file_size_in_bytes: 5, extra: 'e' };
  const bytes = writeContainer([{ status: 1, data_file: file }], {
    schema,
    metadata: { 'format-version': '3' },
    sync: new Uint8Array(16),
  });
  expect(avroKind(bytes)).toBe('manifest');
  const anew = new Map([['file:///old/d.puffin', { fileSizeInBytes: 9 }]]);
  const written = openContainer(relocateManifest(bytes, moved, anew));
  expect(written.metadata.get('format-version')).toBe('3');
  expect(written.records()).toEqual([
    { status: 1, data_file: { ...file, file_path: 's3://new/d.puffin', file_size_in_bytes: 9 } },
  ]);
});

test('a deletion vector names its data file where it is; its blob stays in its place', async () => {
  const { bytes, files } = await writeVectors('file:///old/v.puffin', [
    {
      filePath: 'file:///old/data.parquet',
      positions: Float64Array.of(1, 5),
      data: { specId: 0, partition: [] },
    },
  ]);
  const written = relocatePuffin(bytes, moved);
  const end = files[0]!.contentOffset! + files[0]!.contentSizeInBytes!;
  expect(Buffer.compare(written.subarray(0, end), bytes.subarray(0, end))).toBe(0);
  const text = Buffer.from(written).toString('latin1');
  expect(text).toContain('s3://new/data.parquet');
  expect(text).not.toContain('file:///old/');
  expect(text.slice(-4)).toBe('PFA1');
});
