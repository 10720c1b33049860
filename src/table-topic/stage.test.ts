import { expect, test } from 'vitest';
import type { DataFile } from '../formats/iceberg/types.ts';
import { formatStagedFiles, parseStagedFiles } from './stage.ts';

test('staged files survive their text: 64-bit, bytes, special floats, metrics', () => {
  const file: DataFile = {
    content: 0,
    filePath: 's3://b/t/data/x-0.parquet',
    fileFormat: 'PARQUET',
    specId: 2,
    partition: [
      null,
      'a',
      2n ** 62n,
      new Uint8Array([1, 255]),
      Number.NaN,
      -0,
      true,
      1.5,
      -Infinity,
    ],
    recordCount: 3,
    fileSizeInBytes: 99,
    splitOffsets: [4],
    metrics: {
      columnSizes: new Map([[1, 10]]),
      valueCounts: new Map([[1, 3]]),
      nullValueCounts: new Map([[1, 0]]),
      nanValueCounts: new Map(),
      lowerBounds: new Map([[1, new Uint8Array([0, 1])]]),
      upperBounds: new Map([[1, new Uint8Array([9])]]),
    },
  };
  const files = { data: [file], deadLetters: [] };
  expect(parseStagedFiles(formatStagedFiles(files))).toEqual(files);
  expect(() => parseStagedFiles('nonsense')).toThrow(/unreadable/);
});
