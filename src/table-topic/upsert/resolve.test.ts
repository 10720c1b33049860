// Random histories of changes against a model: whatever the order in which partitions are committed, the rows that are
// left are those of a replay in the order of stamps (K1), and each key has one row at most (K4).
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { DataFile } from '../../formats/iceberg/types.ts';
import { Entries, NO_FILE, orderByHash, sortedByHash } from './entries.ts';
import { type IndexedFile, KeyStore } from './key-store.ts';
import { resolveChanges } from './resolve.ts';
import { isSorted } from './run.ts';
import { MemoryRunFiles } from './run-files.ts';
import { decodeSidecar, encodeSidecar, type Stamp } from './sidecar.ts';

const IDENTITY = { tableUuid: 't', idFields: [1], topicId: 'x' };

const dataFile = (path: string, recordCount: number): DataFile => ({
  content: 0,
  filePath: path,
  fileFormat: 'PARQUET',
  specId: 0,
  partition: [],
  recordCount,
  fileSizeInBytes: 1,
  metrics: {
    columnSizes: new Map(),
    valueCounts: new Map(),
    nullValueCounts: new Map(),
    nanValueCounts: new Map(),
    lowerBounds: new Map(),
    upperBounds: new Map(),
  },
});

interface Change {
  readonly key: number;
  readonly kind: 'put' | 'delete' | 'truncate';
}

/** A table of rows that knows nothing of keys, beside the index that decides. */
class World {
  readonly runFiles = new MemoryRunFiles();
  readonly store = KeyStore.open(':memory:', this.runFiles, IDENTITY);
  /** `file/position` of live rows, with what they hold. */
  readonly rows = new Map<string, string>();
  commits = 0;

  /** One commit of some stages, each the changes of one partition. */
  commit(stages: readonly (readonly (Change & { readonly stamp: Stamp })[])[], floor: number) {
    const sidecars = stages.map((stage, n) => this.#stage(stage, `f${this.commits}-${n}`));
    const files = sidecars.map(({ path, rows }) => dataFile(path, rows.length));
    const ids = new Map(files.map((file) => [file.filePath, this.store.newFileId()]));
    const pathOf = new Map([...ids].map(([path, id]) => [id, path]));
    for (const { path, rows } of sidecars)
      for (const [position, text] of rows.entries()) this.rows.set(`${path}/${position}`, text);
    const resolved = resolveChanges(
      this.store,
      sidecars.map(({ sidecar }) => sidecar),
      ids,
    );
    expect(isSorted(resolved.entries)).toBe(true);
    for (const [id, positions] of resolved.deleted) {
      const path = pathOf.get(id) ?? this.store.files.get(id)!.file.filePath;
      for (const position of positions)
        expect(this.rows.delete(`${path}/${position}`), 'each row is deleted once').toBe(true);
    }
    const added = files.map(
      (file): IndexedFile => ({
        id: ids.get(file.filePath)!,
        file,
        sequenceNumber: this.commits,
        deleted: 0,
      }),
    );
    this.commits += 1;
    this.store.apply({
      snapshotId: String(this.commits),
      entries: resolved.entries,
      files: added,
      truncate: resolved.truncate,
    });
    this.store.join(floor);
  }

  #stage(stage: readonly (Change & { readonly stamp: Stamp })[], path: string) {
    const changes = new Entries();
    const rows: string[] = [];
    let truncate: Stamp | undefined;
    for (const { key, kind, stamp } of stage) {
      if (kind === 'truncate') {
        truncate = stamp;
        continue;
      }
      const n = changes.count;
      changes.copy(ONE, 0);
      // Only few first words, so that some keys share them.
      changes.hashes.set([key % 3, key, 0, 0], n * 4);
      changes.files[n] = kind === 'delete' ? NO_FILE : 0;
      changes.positions[n] = kind === 'delete' ? 0 : rows.length;
      changes.commits[n] = stamp.commit;
      changes.partitions[n] = stamp.partition;
      changes.offsets[n] = stamp.offset;
      if (kind === 'put') rows.push(`${key}@${stamp.commit}/${stamp.partition}/${stamp.offset}`);
    }
    const sidecar = { files: [path], changes, ...(truncate === undefined ? {} : { truncate }) };
    const bytes = new Uint8Array(Buffer.concat(encodeSidecar(sidecar)));
    return { path, rows, sidecar: decodeSidecar(bytes, path) };
  }
}

const ONE = new Entries(1);
ONE.count = 1;

const change = fc.record({
  key: fc.nat(12),
  partition: fc.nat(2),
  kind: fc.constantFrom<Change['kind']>('put', 'put', 'put', 'delete', 'put', 'delete'),
  truncate: fc.nat(40).map((n) => n === 0),
});
/** How many of each partition's changes the next commit takes, and whether it comes in two stages. */
const step = fc.record({
  takes: fc.tuple(fc.nat(6), fc.nat(6), fc.nat(6)),
  split: fc.boolean(),
});

describe('the table equals the replay of the log', () => {
  test('whatever order partitions are committed in', () => {
    fc.assert(
      fc.property(
        fc.array(change, { maxLength: 60 }),
        fc.array(step, { minLength: 1, maxLength: 25 }),
        (history, steps) => {
          const world = new World();
          const logs: (Change & { readonly stamp: Stamp })[][] = [[], [], []];
          const model = new Map<number, string>();
          for (const [n, { key, partition, kind, truncate }] of history.entries()) {
            // Several records share a commit of the log, and then partition and offset decide.
            const stamp = { commit: n >> 2, partition, offset: logs[partition]!.length };
            logs[partition]!.push({ key, kind: truncate ? 'truncate' : kind, stamp });
          }
          const replay = logs
            .flat()
            .toSorted(
              (a, b) =>
                a.stamp.commit - b.stamp.commit ||
                a.stamp.partition - b.stamp.partition ||
                a.stamp.offset - b.stamp.offset,
            );
          for (const { key, kind, stamp } of replay) {
            if (kind === 'truncate') model.clear();
            else if (kind === 'delete') model.delete(key);
            else model.set(key, `${key}@${stamp.commit}/${stamp.partition}/${stamp.offset}`);
          }
          const done = [0, 0, 0];
          const all = [...steps, { takes: [99, 99, 99], split: true }];
          for (const { takes, split } of all) {
            const stages = logs.flatMap((log, partition) => {
              const part = log.slice(done[partition]!, done[partition]! + takes[partition]!);
              done[partition]! += part.length;
              if (!split || part.length < 2) return [part];
              return [part.slice(0, part.length >> 1), part.slice(part.length >> 1)];
            });
            const pending = logs.flatMap((log, partition) => log.slice(done[partition]!));
            const floor = Math.min(...pending.map(({ stamp }) => stamp.commit), history.length) - 1;
            world.commit(stages, floor);
          }
          expect([...world.rows.values()].toSorted()).toEqual([...model.values()].toSorted());
          world.store.close();
        },
      ),
      { numRuns: 200, seed: 11 },
    );
  });
});

test('runs of many blocks, looked up densely and sparsely', () => {
  const store = KeyStore.open(':memory:', new MemoryRunFiles(), IDENTITY);
  const file = { id: store.newFileId(), file: dataFile('a', 1e6), sequenceNumber: 1, deleted: 0 };
  const fill = (from: number, to: number, step: number, commit: number) => {
    const entries = new Entries();
    for (let n = from; n < to; n += step) {
      entries.copy(ONE, 0);
      const at = entries.count - 1;
      entries.hashes.set([Math.imul(n, 0x9e3779b1), n, 0, 0], at * 4);
      entries.files[at] = file.id;
      entries.positions[at] = n;
      entries.commits[at] = commit;
    }
    return sortedByHash(entries);
  };
  store.apply({ snapshotId: '1', entries: fill(0, 210_000, 1, 1), files: [file] });
  store.apply({ snapshotId: '2', entries: fill(0, 30_000, 3, 2) });
  for (const probes of [fill(0, 215_000, 1, 0), fill(5, 215_000, 30_001, 0)]) {
    const found = store.lookup(probes);
    const wrong: number[] = [];
    for (let n = 0; n < probes.count; n += 1) {
      const key = probes.positions[n]!;
      const at = found.starts[n]!;
      const commit = key < 30_000 && key % 3 === 0 ? 2 : 1;
      const right =
        found.sizes[n] === (key < 210_000 ? 1 : 0) &&
        (key >= 210_000 ||
          (found.entries.positions[at] === key && found.entries.commits[at] === commit));
      if (!right) wrong.push(key);
    }
    expect(wrong).toEqual([]);
  }
  expect(orderByHash(fill(0, 210_000, 1, 1)).every((n, at) => n === at)).toBe(true);
  store.close();
});
