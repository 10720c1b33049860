// The key indexes of this node, one per upsert table, behind plain data: brought to the snapshot that a commit will
// assert, asked what staged changes do to it, and moved once the commit is certain (rules K3, K4). Runs in a thread of
// its own (key-index-thread.ts) or, in tests and simulation, in the caller's.
// Nothing here commits: what it prepared and nobody confirmed is forgotten, and found out again by reading.
import { assert } from '../../base/assert.ts';
import type { IdSource } from '../../base/prng.ts';
import { Mutex } from '../../base/queue.ts';
import { metadataFolder } from '../../formats/iceberg/commit.ts';
import { currentSnapshot } from '../../formats/iceberg/history.ts';
import type { DataFile, TableMetadata } from '../../formats/iceberg/types.ts';
import {
  CHECKPOINT_FOLDER,
  type CheckpointFiles,
  restoreCheckpoint,
  writeCheckpoint,
} from './checkpoint.ts';
import { writeDeletes } from './delete-files.ts';
import { compareHashes, Entries, groupEnd, orderByHash, sortedByHash } from './entries.ts';
import { type FilledRows, fillRows } from './fill-rows.ts';
import { type Followed, follow } from './follow.ts';
import { applyHistory } from './history.ts';
import type { UpsertTable } from './id-columns.ts';
import { deleteKey, type IndexedFile, type IndexStep, KeyStore } from './key-store.ts';
import { KEYS_GENERATION_PROPERTY } from './keys-generation.ts';
import { ManifestReader } from './live-files.ts';
import { type Resolution, resolveChanges } from './resolve.ts';
import type { RunFiles } from './run.ts';
import { decodeSidecar, type SidecarRef } from './sidecar.ts';

/** Where an index keeps its state: a SQLite file (or `:memory:`) and its runs. */
export interface IndexPlace {
  readonly database: string;
  readonly runs: RunFiles;
}

export interface KeyIndexDeps {
  /** The warehouse's files. */
  readonly io: CheckpointFiles;
  readonly ids: IdSource;
  /** By the table's uuid. */
  readonly place: (tableUuid: string) => IndexPlace;
}

export interface PrepareRequest {
  /** As the catalog returned it: only its newest snapshot is needed. */
  readonly metadata: TableMetadata;
  readonly upsert: UpsertTable;
  /** New data files of the commit. */
  readonly files: readonly DataFile[];
  readonly sidecars: readonly SidecarRef[];
  /** Beginning of the names of delete files. */
  readonly prefix: string;
  /** Id of our newest commit that the table has; empty before the first. */
  readonly commitId: string;
  /** Committed changes above the floor, as sidecars: given when the last answer asked for them. */
  readonly history?: readonly Uint8Array[];
  /** Set when rows of before may have equal keys: upserts were turned on just now (K2). */
  readonly turnedOn?: {
    readonly partition: number | undefined;
    readonly offset: number | undefined;
  };
}

export interface PreparedChanges {
  /** For {@link KeyIndexes.landed}; the next prepare for the table voids it. */
  readonly token: number;
  /** New data files that keep a row, and delete files. */
  readonly added: readonly DataFile[];
  readonly removed: readonly DataFile[];
  readonly objects: readonly { readonly path: string; readonly bytes: Uint8Array }[];
  readonly keys: number;
  readonly deletedRows: number;
  /** Rows that turning upserts on takes away. */
  readonly duplicateRows: number;
  /** Rows that were made whole with cells of the rows before them. */
  readonly filledRows: number;
  /** Cells that stayed as they came, since the row before them can't be read exactly. */
  readonly unreadableCells: number;
  /** Files that were read to bring the index up to date. */
  readonly filesRead: number;
}

/** The index has taken in commits without their order: it must be told the committed changes above the floor. */
export interface NeedsHistory {
  readonly kind: 'needs-history';
}

export interface LandedRequest {
  readonly tableUuid: string;
  readonly token: number;
  /** Decimal text. Of the snapshot that was made, or of the one that stayed when no file changed. */
  readonly snapshotId: string;
  readonly sequenceNumber: number;
  /** Id of the commit. */
  readonly commitId: string;
  /** Deleted keys up to this commit of the log may be forgotten (K1). */
  readonly floor: number;
}

/** Changes that aren't committed, beside a snapshot: of a query. */
export interface LookupRequest
  extends Pick<PrepareRequest, 'metadata' | 'upsert' | 'files' | 'commitId'> {
  readonly sidecars: readonly Uint8Array[];
  /** Those of `files` whose rows wait for cells, by path. */
  readonly partial: ReadonlyMap<string, Uint8Array>;
  /** Beginning of the names of files made of them. */
  readonly prefix: string;
  /**
   * Set where nobody commits with this index: it is brought to the snapshot first, with the history if the last answer
   * asked for one.
   */
  readonly follow?: { readonly history?: readonly Uint8Array[] };
}

export interface LookedUp {
  /** Rows that don't count any more if the changes do, by path of their file. */
  readonly gone: ReadonlyMap<string, Float64Array>;
  /** Rows that were made whole. */
  readonly files: readonly { readonly file: DataFile; readonly bytes: Uint8Array }[];
}

export interface CheckpointRequest {
  readonly tableUuid: string;
  /** The table's metadata folder. */
  readonly folder: string;
}

/** What a coordinator asks; all of it crosses threads. */
export interface KeyIndexes {
  /** @throws FloeError as reads of the warehouse do, `unsupported`, `corrupt`. */
  prepare(request: PrepareRequest): Promise<PreparedChanges | NeedsHistory>;
  landed(request: LandedRequest): Promise<void>;
  /**
   * What the changes would do to the snapshot; of the table nothing moves (K6).
   * Undefined when the index isn't at that snapshot and may not follow, or a commit is under way.
   */
  lookup(request: LookupRequest): Promise<LookedUp | NeedsHistory | undefined>;
  /** Writes the index to the table's metadata folder. @throws FloeError as writes do. */
  checkpoint(request: CheckpointRequest): Promise<void>;
  /** Ends the use of a table's index on this node; its files stay unless `forget`. */
  release(tableUuid: string, forget?: boolean): Promise<void>;
  stop(): Promise<void>;
}

interface Pending {
  readonly token: number;
  readonly step: Omit<IndexStep, 'snapshotId'>;
  readonly files: readonly IndexedFile[];
  readonly deletes: readonly DataFile[];
}

interface OpenIndex {
  readonly store: KeyStore;
  readonly identity: string;
  pending: Pending | undefined;
}

export class KeyIndexHost implements KeyIndexes {
  readonly #deps: KeyIndexDeps;
  readonly #manifests: ManifestReader;
  readonly #open = new Map<string, OpenIndex>();
  /** One call at a time: what is prepared may not be overtaken by what landed. */
  readonly #mutex = new Mutex();
  /** What turning upserts on has found, for the attempt that comes with the history. */
  readonly #duplicates = new WeakMap<KeyStore, Followed>();
  #nextToken = 1;

  constructor(deps: KeyIndexDeps) {
    this.#deps = deps;
    this.#manifests = new ManifestReader(deps.io);
  }

  prepare(request: PrepareRequest): Promise<PreparedChanges | NeedsHistory> {
    return this.#mutex.run(() => this.#prepare(request));
  }

  async #prepare(request: PrepareRequest): Promise<PreparedChanges | NeedsHistory> {
    const index = this.#index(request);
    index.pending = undefined;
    const { filesRead, duplicates } = await this.#catchUp(index.store, request);
    const { store } = index;
    if (!putInOrder(store, request)) return { kind: 'needs-history' };
    const ids = new Map(request.files.map((file) => [file.filePath, store.newFileId()]));
    const sidecars = await Promise.all(
      request.sidecars.map(async ({ path }) => decodeSidecar(await this.#deps.io.read(path), path)),
    );
    const resolution = resolveChanges(store, sidecars, ids);
    const { readRange } = reachOf(this.#deps.io);
    const filled = await this.#fill(store, { ...request, resolution, ids, readRange });
    const duplicateRows = dropDuplicates(store, duplicates, resolution);
    return this.#write(index, request, { resolution, ids, filled, filesRead, duplicateRows });
  }

  /** Rows that lack cells are made anew; the entries of their keys point at the new ones. */
  async #fill(store: KeyStore, request: FillingRequest): Promise<FilledRows> {
    const { metadata, resolution, ids, files, prefix, readRange } = request;
    const { fills, entries } = resolution;
    if (fills === undefined) return NOTHING_FILLED;
    const staged = new Map(files.map((file) => [ids.get(file.filePath)!, file]));
    const filled = await fillRows({
      fills,
      metadata,
      prefix: `${prefix}-filled`,
      fileOf: (id) => staged.get(id) ?? store.files.get(id)!.file,
      readRange,
    });
    for (const { file, rows } of filled.files) {
      const id = store.newFileId();
      ids.set(file.filePath, id);
      for (const [position, n] of rows.entries()) {
        entries.files[fills.rows[n]!] = id;
        entries.positions[fills.rows[n]!] = position;
      }
    }
    return filled;
  }

  async #write(
    index: OpenIndex,
    request: PrepareRequest,
    found: {
      readonly resolution: Resolution;
      readonly ids: ReadonlyMap<string, number>;
      readonly filled: FilledRows;
      readonly filesRead: number;
      readonly duplicateRows: number;
    },
  ): Promise<PreparedChanges> {
    const { store } = index;
    const { resolution, ids, filled } = found;
    const made = filled.files.map(({ file }) => file);
    const fresh = new Map(
      [...request.files, ...made].map((file): [number, IndexedFile] => {
        const id = ids.get(file.filePath)!;
        return [id, { id, file, sequenceNumber: 0, deleted: 0 }];
      }),
    );
    const fileOf = (id: number) => {
      const indexed = fresh.get(id) ?? store.files.get(id);
      assert(indexed !== undefined, 'K4: only rows of live files are deleted');
      return indexed;
    };
    const written = await writeDeletes({
      formatVersion: request.metadata['format-version'],
      deleted: resolution.deleted,
      fileOf,
      fileByPath: (path) => store.fileByPath(path),
      deletes: store.deletes,
      prefix: request.prefix,
      read: (uri) => this.#deps.io.read(uri),
    });
    const dead = new Set(written.dead);
    const added = [...fresh.values()].filter(({ id }) => !dead.has(id));
    const removed = written.removed.filter((file) => !ids.has(file.filePath));
    const token = this.#nextToken;
    this.#nextToken += 1;
    index.pending = {
      token,
      files: [
        ...added.map((file) => ({ ...file, deleted: written.counts.get(file.id) ?? 0 })),
        ...[...written.counts]
          .filter(([id]) => !fresh.has(id))
          .map(([id, deleted]) => ({ ...store.files.get(id)!, deleted })),
      ],
      deletes: written.added,
      step: {
        entries: resolution.entries,
        truncate: resolution.truncate,
        filesGone: written.dead.filter((id) => !fresh.has(id)),
        deletesGone: removed.filter((file) => file.content !== 0).map(deleteKey),
      },
    };
    return {
      token,
      added: [...added.map(({ file }) => file), ...written.added],
      removed,
      objects: [
        ...filled.files.map(({ file, bytes }) => ({ path: file.filePath, bytes })),
        ...written.objects,
      ],
      filledRows: resolution.fills?.rows.length ?? 0,
      unreadableCells: filled.unreadable,
      keys: resolution.keys,
      deletedRows: [...resolution.deleted.values()].reduce((sum, rows) => sum + rows.length, 0),
      duplicateRows: found.duplicateRows,
      filesRead: found.filesRead,
    };
  }

  landed(request: LandedRequest): Promise<void> {
    const moved = this.#mutex.run(async () => this.#landed(request));
    // Behind the answer: a commit doesn't wait for it. What fails here is met again by the next step.
    moved.then(() => this.#mutex.run(async () => this.#join(request))).catch(() => {});
    return moved;
  }

  #join({ tableUuid, floor }: LandedRequest): void {
    this.#open.get(tableUuid)?.store.join(floor);
  }

  #landed(request: LandedRequest): void {
    const index = this.#open.get(request.tableUuid);
    const pending = index?.pending;
    // Prepared by a process before: what it did is read from the table.
    if (index === undefined || pending?.token !== request.token) return;
    index.pending = undefined;
    this.#duplicates.delete(index.store);
    const { sequenceNumber, snapshotId } = request;
    index.store.apply({
      ...pending.step,
      snapshotId,
      commitId: request.commitId,
      files: pending.files.map((file) =>
        file.sequenceNumber === 0 ? { ...file, sequenceNumber } : file,
      ),
      deletes: pending.deletes.map((file) => ({ file, sequenceNumber })),
    });
  }

  lookup(request: LookupRequest): Promise<LookedUp | NeedsHistory | undefined> {
    return this.#mutex.run(async () => {
      const index = this.#index(request);
      const { store } = index;
      if (index.pending !== undefined) return undefined;
      if (request.follow !== undefined) {
        const { history } = request.follow;
        const known = { ...request, ...(history === undefined ? {} : { history }) };
        await this.#catchUp(store, known);
        if (!putInOrder(store, known)) return { kind: 'needs-history' };
      }
      if (store.commitId !== request.commitId) return undefined;
      const snapshot = currentSnapshot(request.metadata);
      const at = snapshot === undefined ? '' : String(snapshot['snapshot-id']);
      if (store.snapshotId !== at) return undefined;
      const ids = new Map(request.files.map((file) => [file.filePath, store.newFileId()]));
      const pathOf = new Map([...ids].map(([path, id]) => [id, path]));
      const sidecars = request.sidecars.map((bytes) => decodeSidecar(bytes, 'of a tail'));
      const resolution = resolveChanges(store, sidecars, ids);
      const { readRange } = reachOf(this.#deps.io, request.partial);
      const { files } = await this.#fill(store, { ...request, resolution, ids, readRange });
      const gone = [...resolution.deleted].map(
        ([id, rows]) => [pathOf.get(id) ?? store.files.get(id)!.file.filePath, rows] as const,
      );
      return { gone: new Map(gone), files: files.map(({ file, bytes }) => ({ file, bytes })) };
    });
  }

  checkpoint({ tableUuid, folder }: CheckpointRequest): Promise<void> {
    return this.#mutex.run(async () => {
      const index = this.#open.get(tableUuid);
      if (index === undefined) return;
      await writeCheckpoint(index.store, this.#deps.io, `${folder}/${CHECKPOINT_FOLDER}`);
    });
  }

  release(tableUuid: string, forget = false): Promise<void> {
    return this.#mutex.run(async () => {
      const index = this.#open.get(tableUuid);
      this.#open.delete(tableUuid);
      if (forget) index?.store.reset();
      index?.store.close();
    });
  }

  stop(): Promise<void> {
    return this.#mutex.run(async () => {
      for (const { store } of this.#open.values()) store.close();
      this.#open.clear();
    });
  }

  #index({ metadata, upsert }: Pick<PrepareRequest, 'metadata' | 'upsert'>): OpenIndex {
    const tableUuid = metadata['table-uuid'];
    const idFields = upsert.columns.map(({ fieldId }) => fieldId);
    const generation = metadata.properties?.[KEYS_GENERATION_PROPERTY];
    const identity = `${upsert.topicId}/${idFields.join()}/${generation}`;
    const known = this.#open.get(tableUuid);
    if (known?.identity === identity) return known;
    known?.store.close();
    const { database, runs } = this.#deps.place(tableUuid);
    const store = KeyStore.open(database, runs, {
      tableUuid,
      idFields,
      topicId: upsert.topicId,
      ...(generation === undefined ? {} : { generation }),
      newOrigin: () => this.#deps.ids.uuid(),
    });
    const index = { store, identity, pending: undefined };
    this.#open.set(tableUuid, index);
    return index;
  }

  async #catchUp(
    store: KeyStore,
    request: Pick<PrepareRequest, 'metadata' | 'upsert' | 'turnedOn' | 'history'>,
  ) {
    const { metadata, upsert, turnedOn } = request;
    const snapshot = currentSnapshot(metadata);
    const snapshotId = snapshot === undefined ? '' : String(snapshot['snapshot-id']);
    if (
      store.snapshotId === snapshotId &&
      (turnedOn === undefined || request.history !== undefined)
    )
      return this.#duplicates.get(store) ?? UP_TO_DATE;
    // Rows are told apart by age only where all of them are read.
    if (turnedOn !== undefined) store.reset();
    else if (store.snapshotId === undefined && snapshot !== undefined) {
      const folder = `${metadataFolder(metadata)}/${CHECKPOINT_FOLDER}`;
      await restoreCheckpoint(store, this.#deps.io, folder);
      if (store.snapshotId === snapshotId) return UP_TO_DATE;
    }
    const live = await this.#manifests.live(metadata, snapshot);
    const followed = await follow({
      store,
      io: this.#deps.io,
      live,
      snapshotId,
      metadata,
      upsert,
      ...(turnedOn === undefined ? {} : { order: turnedOn }),
    });
    if (turnedOn === undefined) return { ...followed, duplicates: UP_TO_DATE.duplicates };
    this.#duplicates.set(store, followed);
    return followed;
  }
}

type FillingRequest = Pick<PrepareRequest, 'metadata' | 'files' | 'prefix'> & {
  readonly resolution: Resolution;
  /** Gains the files that are made. */
  readonly ids: Map<string, number>;
  readonly readRange: CheckpointFiles['readRange'];
};

const NOTHING_FILLED: FilledRows = { files: [], unreadable: 0 };

/** Reads ranges of files that are at hand, and of the warehouse's. */
const reachOf = (io: CheckpointFiles, atHand: ReadonlyMap<string, Uint8Array> = new Map()) => ({
  readRange: async (uri: string, start: number, end: number) =>
    atHand.get(uri)?.subarray(start, end) ?? (await io.readRange(uri, start, end)),
});

/** Whether the index knows the order of the commits that it has; with the history it does from then on. */
function putInOrder(
  store: KeyStore,
  { commitId, history }: Pick<PrepareRequest, 'commitId' | 'history'>,
): boolean {
  if (store.commitId === commitId && history === undefined) return true;
  if (history === undefined) return false;
  const changes = history.map((bytes) => decodeSidecar(bytes, 'of the history'));
  applyHistory(store, changes, commitId);
  return true;
}

const UP_TO_DATE: Followed = { filesRead: 0, rowsRead: 0, duplicates: new Entries(1) };

/**
 * K2: of rows with equal keys the newest stays: by its file's sequence number, then partition and offset. Keys that the
 * commit changes anyway are left to it. Adds to the resolution; returns how many rows go.
 */
function dropDuplicates(store: KeyStore, duplicates: Entries, resolution: Resolution): number {
  if (duplicates.count === 0) return 0;
  const keys = sortedByHash(duplicates);
  const distinct = new Entries(keys.count);
  for (let n = 0; n < keys.count; n = groupEnd(keys, n)) distinct.copy(keys, n);
  const { entries, starts, sizes } = store.lookup(distinct);
  const deleted = resolution.deleted as Map<number, Float64Array>;
  const taken = new Map<number, number[]>();
  const survivors = new Entries();
  const sequence = (n: number) => store.files.get(entries.files[n]!)!.sequenceNumber;
  for (let n = 0; n < distinct.count; n += 1) {
    const rows = Array.from({ length: sizes[n]! }, (_, m) => starts[n]! + m)
      .filter((m) => store.isLive(entries, m))
      .sort(
        (a, b) =>
          sequence(a) - sequence(b) ||
          entries.partitions[a]! - entries.partitions[b]! ||
          entries.offsets[a]! - entries.offsets[b]! ||
          entries.files[a]! - entries.files[b]! ||
          entries.positions[a]! - entries.positions[b]!,
      );
    const newest = rows.at(-1);
    if (newest !== undefined) survivors.copy(entries, newest);
    for (const m of rows.slice(0, -1)) {
      const file = entries.files[m]!;
      taken.set(file, [...(taken.get(file) ?? []), entries.positions[m]!]);
    }
  }
  resolution.entries = withSurvivors(resolution.entries, survivors);
  let count = 0;
  for (const [file, positions] of taken) {
    const before = deleted.get(file) ?? new Float64Array(0);
    const all = Float64Array.from(new Set([...before, ...positions])).sort();
    count += all.length - before.length;
    deleted.set(file, all);
  }
  return count;
}

/** The index then says of each such key that one row is left; what the commit itself says of a key counts. */
function withSurvivors(entries: Entries, survivors: Entries): Entries {
  const all = new Entries(entries.count + survivors.count + 1);
  for (let n = 0; n < entries.count; n += 1) all.copy(entries, n);
  for (let n = 0; n < survivors.count; n += 1) all.copy(survivors, n);
  const order = orderByHash(all);
  const kept = new Entries(all.count + 1);
  let last = -1;
  for (const n of order) {
    // Equal hashes come in the order they were put in: the commit's own first.
    if (last !== -1 && compareHashes(all, last, all, n) === 0) continue;
    kept.copy(all, n);
    last = n;
  }
  return kept;
}
