// The maintenance worker: a plain async object with all that reads or writes a table's files. It runs in a thread of its
// own (thread.ts) or, in tests and simulation, in the caller's. Between calls it holds only what rewrites left until
// their commits are certain. It decides nothing about the catalog.
import { assert } from '../../base/assert.ts';
import { prepareCommit } from '../../formats/iceberg/commit.ts';
import { currentSnapshot } from '../../formats/iceberg/history.ts';
import { PrefixSet } from '../prefix-set.ts';
import { CHECKPOINT_FOLDER } from '../upsert/checkpoint.ts';
import { chooseGroups } from './choose.ts';
import { deriveCommit, liveFiles, type RewriteState } from './derive.ts';
import { type Expired, ExpiredRows, type ExpiredTask, type RangedReader } from './expired-rows.ts';
import { currentManifests, reachableFiles, unreachableFiles } from './reach.ts';
import { type FileStore, rewriteGroup } from './rewrite.ts';
import type {
  Derived,
  DeriveTask,
  MaintenanceTasks,
  MergeTask,
  OrphansTask,
  PlanResult,
  PlanTask,
  RewriteResult,
  RewriteTask,
  UnreachableTask,
} from './task.ts';

/** A store whose files can be listed: `list` gives those whose URIs start so. */
export interface ListingStore extends FileStore, RangedReader {
  list(prefix: string): AsyncIterable<{ readonly uri: string; readonly modifiedMs: number }>;
}

export class MaintenanceWorker implements MaintenanceTasks {
  readonly #store: ListingStore;
  readonly #rewrites = new Map<string, RewriteState>();
  readonly #expired: ExpiredRows;

  constructor(store: ListingStore) {
    this.#store = store;
    this.#expired = new ExpiredRows(store);
  }

  async plan({ metadata, policy, maxGroups, leftAlone }: PlanTask): Promise<PlanResult> {
    const live = await liveFiles(metadata, this.#store);
    const scans = [...live.scans.values()];
    const { deletes } = live;
    const { groups, more } = chooseGroups(scans, policy, { maxGroups, leftAlone, deletes });
    return {
      groups,
      more,
      figures: {
        dataFiles: scans.length,
        deleteFiles: deletes.length,
        bytes: scans.reduce((sum, { file }) => sum + file.fileSizeInBytes, 0),
        manifests: (await currentManifests(metadata, this.#store)).length,
      },
    };
  }

  async rewrite(task: RewriteTask): Promise<RewriteResult> {
    const { group, metadata, jobId, dataFolder } = task;
    const startSequence = currentSnapshot(metadata)?.['sequence-number'] ?? 0;
    const before = process.threadCpuUsage();
    const rewritten =
      group.kind === 'data' ? await rewriteGroup(task, this.#store) : nothingYet(group.bytes);
    this.#rewrites.set(jobId, {
      group,
      startSequence,
      files: rewritten.result.files,
      places: rewritten.places,
      dataFolder,
    });
    const { user, system } = process.threadCpuUsage(before);
    return { ...rewritten.result, cpuSeconds: (user + system) / 1e6 };
  }

  async derive(task: DeriveTask): Promise<Derived> {
    const state = this.#rewrites.get(task.jobId);
    assert(state !== undefined, 'M1: a rewrite is held until its commit is certain');
    return deriveCommit(state, task, this.#store);
  }

  async forget(jobId: string): Promise<void> {
    this.#rewrites.delete(jobId);
  }

  async merge({ minCount, ...task }: MergeTask) {
    const { metadata } = task;
    const manifests = await currentManifests(metadata, this.#store);
    const prepared = await prepareCommit({
      ...task,
      io: this.#store,
      added: [],
      operation: 'replace',
      mergeFrom: minCount,
    });
    // The manifest list is always one of the objects: a merge has made more.
    return manifests.length === 0 || prepared.objects.length < 2 ? undefined : prepared;
  }

  unreachable({ metadata, expiring }: UnreachableTask): Promise<readonly string[]> {
    return unreachableFiles(metadata, new Set(expiring), this.#store);
  }

  expired(task: ExpiredTask): Promise<Expired> {
    return this.#expired.find(task);
  }

  async orphans(task: OrphansTask): Promise<readonly string[]> {
    const { metadata, metadataLocation, olderThanMs, inUse, limit } = task;
    // Listed first: what a commit adds after the look at the metadata is younger than the age anyway.
    const old: string[] = [];
    for await (const { uri, modifiedMs } of this.#store.list(`${metadata.location}/`))
      if (modifiedMs < olderThanMs) old.push(uri);
    if (old.length === 0) return [];
    const reachable = await reachableFiles(metadata, metadataLocation, this.#store);
    const used = new PrefixSet(inUse);
    const orphans = old.filter(
      (uri) =>
        !reachable.has(uri) &&
        // Checkpoints of the key index come and go by themselves.
        !uri.includes(`/${CHECKPOINT_FOLDER}/`) &&
        !used.covers(uri),
    );
    return orphans.slice(0, limit);
  }
}

/** Delete files are read when their commit is prepared: they are small, and what they name may be gone by then. */
const nothingYet = (bytes: number) => ({
  places: [],
  result: { files: [], rowsIn: 0, rowsOut: 0, bytesIn: bytes, plainBytes: 0, bytesOut: 0 },
});
