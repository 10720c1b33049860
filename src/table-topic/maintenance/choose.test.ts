import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ScanDelete, ScanFile } from '../../formats/iceberg/scan.ts';
import { NO_METRICS } from '../../formats/iceberg/test-table.ts';
import type { DataFile } from '../../formats/iceberg/types.ts';
import { chooseGroups } from './choose.ts';
import type { CompactPolicy } from './task.ts';

const POLICY: CompactPolicy = {
  minInputFiles: 4,
  targetFileBytes: 1_000,
  deletePercent: 20,
  force: false,
};
const LIMITS = { maxGroups: 100, leftAlone: new Set<string>(), deletes: [] };

let files = 0;
function scan(
  bytes: number,
  changes: Partial<Omit<ScanFile, 'file'>> & { readonly file?: Partial<DataFile> } = {},
): ScanFile {
  files += 1;
  return {
    sequenceNumber: files,
    positionDeletes: [],
    equalityDeletes: [],
    ...changes,
    file: {
      content: 0,
      filePath: `f${files}`,
      fileFormat: 'PARQUET',
      specId: 0,
      partition: [],
      recordCount: 100,
      fileSizeInBytes: bytes,
      metrics: NO_METRICS,
      ...changes.file,
    },
  };
}

function deletes(recordCount: number, changes: Partial<DataFile> = {}): ScanDelete {
  const { file } = scan(50, { file: { content: 1, recordCount, ...changes } });
  return { file, sequenceNumber: files };
}

const chosen = (scans: readonly ScanFile[], policy: Partial<CompactPolicy> = {}) =>
  chooseGroups(scans, { ...POLICY, ...policy }, LIMITS).groups.map(
    ({ kind, inputs, deleteFiles }) =>
      kind === 'data'
        ? inputs.map(({ file }) => file.filePath)
        : deleteFiles.map((f) => f.filePath),
  );
const paths = (scans: readonly ScanFile[]) => scans.map(({ file }) => file.filePath);

describe('which files are rewritten', () => {
  test('small files once they are enough, in the order in which their rows came', () => {
    const three = [scan(30), scan(10), scan(20)];
    expect(chosen(three)).toEqual([]);
    const four = [...three, scan(15)];
    expect(chosen(four)).toEqual([paths(four)]);
    expect(chosen(three, { force: true })).toEqual([paths(three)]);
  });

  test('by partition and spec, old specs too', () => {
    const of = (specId: number, partition: readonly number[]) =>
      Array.from({ length: 4 }, () => scan(10, { file: { specId, partition } }));
    const groups = [of(0, []), of(1, [1]), of(1, [2])];
    expect(chosen(groups.flat()).toSorted()).toEqual(groups.map(paths).toSorted());
  });

  test('not with one that is larger than all the others together', () => {
    const small = [scan(10), scan(10), scan(10), scan(10)];
    expect(chosen([...small, scan(300)])).toEqual([paths(small)]);
  });

  test('large ones only when much of them is deleted', () => {
    const kept = scan(900, { positionDeletes: [deletes(19)] });
    const heavy = scan(900, { positionDeletes: [deletes(20)] });
    expect(chosen([kept, heavy, scan(900)])).toEqual([paths([heavy])]);
  });

  test('a delete file about many data files weighs by rows', () => {
    const shared = deletes(50);
    const many = Array.from({ length: 10 }, () => scan(900, { positionDeletes: [shared] }));
    expect(chosen(many)).toEqual([]);
  });

  test('small delete files that are many become one; vectors are left', () => {
    const files = Array.from({ length: 4 }, () => deletes(1));
    const vector = deletes(1, { fileFormat: 'PUFFIN', contentOffset: 4 });
    const data = scan(900, { positionDeletes: [...files, vector] });
    expect(chosen([data])).toEqual([files.map(({ file }) => file.filePath)]);
  });

  test('delete files whose data files have left go, many together, unless data is rewritten anyway', () => {
    const used = deletes(1);
    const vector = deletes(1, { fileFormat: 'PUFFIN', contentOffset: 4 });
    const dangling = Array.from({ length: 4 }, () => deletes(1));
    const limits = { ...LIMITS, deletes: [used, vector, ...dangling] };
    const still = [scan(900, { positionDeletes: [used] })];
    const { groups } = chooseGroups(still, POLICY, limits);
    expect(groups.map(({ deleteFiles }) => deleteFiles)).toEqual([dangling.map((d) => d.file)]);
    const few = { ...limits, deletes: [used, vector, ...dangling.slice(1)] };
    expect(chooseGroups(still, POLICY, few).groups).toEqual([]);
    expect(chooseGroups(still, { ...POLICY, force: true }, few).groups).toHaveLength(1);
    const small = Array.from({ length: 4 }, () => scan(10));
    expect(chooseGroups(small, POLICY, limits).groups.map(({ kind }) => kind)).toEqual(['data']);
  });

  test('other formats, encrypted files and those that were refused stay', () => {
    const some = [
      scan(10, { file: { fileFormat: 'AVRO' } }),
      scan(10, { file: { keyMetadata: new Uint8Array(1) } }),
      scan(10),
      scan(10),
      scan(10),
    ];
    expect(chosen(some)).toEqual([]);
    const refused = new Set(paths(some.slice(2)));
    const limits = { ...LIMITS, leftAlone: refused };
    expect(chooseGroups(some, { ...POLICY, force: true }, limits).groups).toEqual([]);
  });

  test('rewriting comes to rest, and a row is rewritten a few times only', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 60 }), { maxLength: 400 }), (sizes) => {
        let live: ScanFile[] = [];
        let written = 0;
        let total = 0;
        for (const bytes of sizes) {
          live.push(scan(bytes));
          total += bytes;
          for (let round = 0; ; round += 1) {
            expect(round).toBeLessThan(20);
            const { groups } = chooseGroups(live, POLICY, LIMITS);
            if (groups.length === 0) break;
            for (const { inputs, bytes: size } of groups) {
              written += size;
              live = live.filter((one) => !inputs.includes(one));
              live.push(scan(size));
            }
          }
        }
        expect(written).toBeLessThanOrEqual(total * 8);
      }),
      { numRuns: 30, seed: 3 },
    );
  });
});
