import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { silentLogger } from '../../base/log.ts';
import { type Disk, nodeDisk } from './disk.ts';
import { DiskSpace } from './disk-space.ts';
import { WalFiles } from './wal-file.ts';

let root: string;
let disk: Disk;
let free = 0;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'floe-disk-'));
  disk = { ...nodeDisk(root), freeBytes: () => free };
});
afterEach(() => rmSync(root, { recursive: true }));

test('below the mark Produce is refused with the remedy, the ballast goes, and comes back with room', async () => {
  const clock = new ManualClock();
  free = 10_000;
  let released = 0;
  const space = new DiskSpace({
    disk,
    clock,
    logger: silentLogger,
    reserveBytes: 1_000,
    ballastBytes: 500,
    release: () => {
      released += 1;
    },
  });
  space.check();
  expect(statSync(join(root, 'ballast')).size).toBe(500);
  free = 900;
  space.check();
  await clock.advance(1_000);
  expect(() => space.check()).toThrow(/log\.disk\.reserve\.bytes \(1000\).*delete topics/);
  expect(released).toBeGreaterThan(0);
  expect(disk.list('')).not.toContain('ballast');
  free = 1_100;
  await clock.advance(1_000);
  expect(() => space.check()).toThrow('disk is free');
  free = 2_000;
  await clock.advance(1_000);
  space.check();
  expect(disk.list('')).toContain('ballast');
});

test('files are recycled under a new number, and a missing one is made for its index', () => {
  const wal = () =>
    new WalFiles({
      disk,
      clusterId: 'c',
      fileBytes: 5_000,
      extendBytes: 4_096,
      recycleFiles: 1,
      direct: true,
      firstNumber: 1,
      logger: silentLogger,
    });
  let files = wal();
  const first = files.current();
  expect(first.number).toBe(1);
  files.write({ parts: [new Uint8Array(100).fill(1), new Uint8Array(900).fill(2)], bytes: 1_000 });
  files.sync();
  // The next flush begins at a page.
  expect(files.current().position).toBe(4_096);
  expect(files.full).toBe(false);
  files.write({ parts: [new Uint8Array(4_500).fill(3)], bytes: 4_500 });
  expect(files.full).toBe(true);
  files.finish();
  expect(files.seal(first.key, 5_000, new Uint8Array(10).fill(9))).toBe(5_010);
  const stored = readFileSync(join(root, first.key));
  expect([stored.length, stored[99], stored[100], stored[4_999], stored[5_000]]).toEqual([
    5_010, 1, 2, 3, 9,
  ]);
  files.retire(first.key);
  expect(files.names()).toEqual([]);
  files = wal();
  const synced = vi.spyOn(disk, 'syncDirectory');
  const second = files.current();
  expect(second.number).toBe(2);
  // Both directories of the rename that took it into use again.
  expect(synced.mock.calls.flat().sort()).toEqual(['c/file', 'c/free']);
  expect(readFileSync(join(root, second.key)).length).toBe(5_010);
  files.retire(second.key);
  expect(files.names()).toEqual([second.key]);
  files.finish();
  rmSync(join(root, second.key));
  expect(files.seal(second.key, 70, new Uint8Array(10))).toBe(80);
  writeFileSync(join(root, 'c/free/000000000000009.wal'), '');
  expect(wal().current().number).toBe(10);
});
