// Deletes written here are read back as any reader would: vectors by our reader of other writers' vectors, position
// delete files by hyparquet.
import fc from 'fast-check';
import { parquetReadObjects } from 'hyparquet';
import { describe, expect, test } from 'vitest';
import { readDeletionVector } from './deletion-vector.ts';
import { DELETE_FILE_PATH_ID, writePositionDeletes } from './position-deletes.ts';
import { vectorBlob, writeVectors } from './puffin.ts';

const ascending = fc
  .uniqueArray(fc.oneof(fc.nat(200), fc.nat(100_000), fc.integer({ min: 2 ** 32, max: 2 ** 34 })), {
    minLength: 1,
    maxLength: 200,
  })
  .map((list) => Float64Array.from(list).sort());

const plain = { specId: 0, partition: [] };

describe('deletion vectors', () => {
  test('what is written is read', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(ascending, { minLength: 1, maxLength: 4 }), async (lists) => {
        const inputs = lists.map((positions, n) => ({
          filePath: `file:///t/data/${n}.parquet`,
          positions,
          data: plain,
        }));
        const { files, bytes } = await writeVectors('file:///t/data/d.puffin', inputs);
        for (const [n, file] of files.entries()) {
          expect(file.referencedDataFile).toBe(inputs[n]!.filePath);
          expect(file.recordCount).toBe(lists[n]!.length);
          const read = await readDeletionVector(vectorBlob(bytes, file), 1_000_000);
          expect(read).toEqual(lists[n]);
        }
      }),
      { numRuns: 50, seed: 7 },
    );
  });

  test('the footer is where readers look for it', async () => {
    const positions = Float64Array.of(1, 5, 9);
    const input = { filePath: 'file:///t/a.parquet', positions, data: plain };
    const { bytes, files } = await writeVectors('file:///t/d.puffin', [input]);
    const view = new DataView(bytes.buffer);
    const size = view.getUint32(bytes.length - 12, true);
    const json = new TextDecoder().decode(
      bytes.subarray(bytes.length - 12 - size, bytes.length - 12),
    );
    expect(JSON.parse(json).blobs).toEqual([
      {
        type: 'deletion-vector-v1',
        fields: [2147483645],
        'snapshot-id': -1,
        'sequence-number': -1,
        offset: files[0]!.contentOffset,
        length: files[0]!.contentSizeInBytes,
        properties: { 'referenced-data-file': input.filePath, cardinality: '3' },
      },
    ]);
  });
});

describe('position delete files', () => {
  const rows = [
    { filePath: 'file:///t/data/b.parquet', positions: Float64Array.of(0, 7) },
    { filePath: 'file:///t/data/a.parquet', positions: Float64Array.of(3) },
  ];

  test('sorted by file, then position', async () => {
    const { file, parts } = writePositionDeletes({ path: 'file:///t/d.parquet', ...plain, rows });
    const whole = new Uint8Array(Buffer.concat(parts));
    expect(whole.length).toBe(file.fileSizeInBytes);
    const read = await parquetReadObjects({
      file: whole.buffer,
      compressors: {},
    });
    expect(read).toEqual([
      { file_path: 'file:///t/data/a.parquet', pos: 3n },
      { file_path: 'file:///t/data/b.parquet', pos: 0n },
      { file_path: 'file:///t/data/b.parquet', pos: 7n },
    ]);
    expect(file).toMatchObject({ content: 1, recordCount: 3, specId: 0 });
    expect(file.referencedDataFile).toBeUndefined();
  });

  test('about one file only: it is named, and its bounds are whole', () => {
    const one = { path: 'file:///t/d.parquet', ...plain, rows: [rows[0]!] };
    const { file } = writePositionDeletes(one);
    expect(file.referencedDataFile).toBe(rows[0]!.filePath);
    expect(Buffer.from(file.metrics.lowerBounds.get(DELETE_FILE_PATH_ID)!).toString()).toBe(
      rows[0]!.filePath,
    );
  });
});
