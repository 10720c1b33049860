// Prepares one commit: manifests, manifest list, snapshot, and the requirements and updates that make it the table's.
// Nothing is written here: the caller puts `objects` into the store, then gives `requirements` and `updates` to the
// catalog. A prepared commit belongs to the metadata it was made from; after a conflict it is made afresh (T4).
// Source: Iceberg table spec, "Snapshots", "Optimistic Concurrency".
import { FloeError } from '../../base/error.ts';
import { currentSchema, currentSnapshot, MAIN_BRANCH } from './history.ts';
import {
  type ManifestEntry,
  STATUS_ADDED,
  STATUS_DELETED,
  STATUS_EXISTING,
  syncMarker,
  writeManifest,
} from './manifest.ts';
import { type ManifestFile, writeManifestList } from './manifest-list.ts';
import { mergePlan } from './manifest-merge.ts';
import { bindTableSpec } from './partition.ts';
import {
  buildSummary,
  type Operation,
  type Summary,
  totalsFromSummary,
  totalsOf,
} from './summary.ts';
import { type FileReader, manifestsOf, readManifests } from './table-files.ts';
import type { DataFile, Snapshot, TableMetadata } from './types.ts';

export interface CommitInput {
  /** The table as just loaded. */
  readonly metadata: TableMetadata;
  /** Reads the manifest list, and manifests where files are removed or manifests merged. */
  readonly io: FileReader;
  /** New to the table (history.ts, newSnapshotId). */
  readonly snapshotId: bigint;
  /** Names the files of this attempt; a new one for each attempt. */
  readonly commitUuid: string;
  readonly nowMs: number;
  /** Data and delete files, each written with a spec of the table. */
  readonly added: readonly DataFile[];
  /** Live files that go: by path and, for deletion vectors, offset. */
  readonly removed?: readonly Pick<DataFile, 'filePath' | 'contentOffset'>[];
  /** By default `append` for data alone, `delete` for removals alone, else `overwrite`. */
  readonly operation?: Operation;
  /** Own entries of the summary. */
  readonly summary?: Summary;
  /** Data sequence number of the added data files (compaction keeps the one it started from). */
  readonly dataSequenceNumber?: number;
  /** Manifests of a kind from which on they are merged; by default what the table's properties say. */
  readonly mergeFrom?: number;
}

export interface PreparedObject {
  /** Absolute URI. */
  readonly path: string;
  readonly bytes: Uint8Array;
}

export interface PreparedCommit {
  /** To be written before the commit; all of them are this attempt's own. */
  readonly objects: readonly PreparedObject[];
  readonly snapshot: Snapshot;
  readonly requirements: readonly ({ readonly type: string } & Readonly<Record<string, unknown>>)[];
  readonly updates: readonly ({ readonly action: string } & Readonly<Record<string, unknown>>)[];
}

/** A fast append of data files: existing manifests are kept, small ones merged when many accumulate. */
export function prepareAppend(
  input: Omit<CommitInput, 'removed' | 'operation' | 'dataSequenceNumber'>,
): Promise<PreparedCommit> {
  return prepareCommit({ ...input, operation: 'append' });
}

/**
 * @throws FloeError `invalid` (a spec that doesn't exist), `conflict` (a removed file isn't live),
 *   `unsupported` (format v1), `corrupt` or what `io` throws.
 */
export async function prepareCommit(input: CommitInput): Promise<PreparedCommit> {
  const { metadata, added } = input;
  if (metadata['format-version'] < 2) {
    throw new FloeError(
      'unsupported',
      'tables of format v1 are read only: upgrade-format-version to 2 first',
    );
  }
  const draft = new Draft(input);
  const existing = await draft.existingManifests();
  const kept = await draft.removeFiles(existing);
  const merged = await draft.merge(kept);
  draft.addFiles(added);
  return draft.finish(merged);
}

/** Bytes of manifests whose rest goes into one. */
const REWRITTEN_BYTES = 8 * 1024 * 1024;

/** Manifests of one spec and content that are written anew as one. */
interface Rewritten {
  readonly manifest: ManifestFile;
  readonly entries: ManifestEntry[];
  bytes: number;
}

/** A commit in the making: the files it has written so far and what it counted. */
class Draft {
  readonly #input: CommitInput;
  readonly #objects: PreparedObject[] = [];
  readonly #new: ManifestFile[] = [];
  readonly #removed: DataFile[] = [];
  readonly #sequenceNumber: number;
  readonly #parent: Snapshot | undefined;
  #totals = totalsOf([]);

  constructor(input: CommitInput) {
    this.#input = input;
    this.#sequenceNumber = input.metadata['last-sequence-number'] + 1;
    this.#parent = currentSnapshot(input.metadata);
  }

  /** The parent's manifests that still say something, with every count known. */
  async existingManifests(): Promise<ManifestFile[]> {
    const { io, metadata } = this.#input;
    const manifests = await manifestsOf(io, this.#parent);
    const stated = totalsFromSummary(this.#parent?.summary);
    const uncounted = manifests.some((manifest) => manifest.addedFilesCount === undefined);
    if (this.#parent === undefined) return [];
    if (stated !== undefined && !uncounted) {
      this.#totals = stated;
      return manifests.filter(hasLiveFiles);
    }
    const entries = await readManifests(io, metadata, manifests);
    this.#totals =
      stated ??
      totalsOf(
        entries
          .flat()
          .filter(isLive)
          .map((entry) => entry.file),
      );
    return manifests
      .map((manifest, index) => withCounts(manifest, entries[index]!))
      .filter(hasLiveFiles);
  }

  /** Rewrites the manifests that hold removed files; those of a spec and content become one, up to a size. */
  async removeFiles(manifests: readonly ManifestFile[]): Promise<ManifestFile[]> {
    const wanted = new Set((this.#input.removed ?? []).map(fileKey));
    if (wanted.size === 0) return [...manifests];
    const entries = await readManifests(this.#input.io, this.#input.metadata, manifests);
    const rewritten = new Map<string, Rewritten>();
    const kept = manifests.filter((manifest, index) => {
      const gone = entries[index]!.filter(
        (entry) => isLive(entry) && wanted.delete(fileKey(entry.file)),
      );
      if (gone.length === 0) return true;
      this.#removed.push(...gone.map((entry) => entry.file));
      this.#rewrite(rewritten, manifest, this.#without(entries[index]!, new Set(gone)));
      return false;
    });
    for (const { manifest, entries: joined } of rewritten.values()) this.#write(manifest, joined);
    if (wanted.size > 0) {
      throw new FloeError('conflict', `no longer live in the table: ${[...wanted].join(', ')}`);
    }
    return kept;
  }

  #without(
    entries: readonly ManifestEntry[],
    gone: ReadonlySet<ManifestEntry>,
  ): readonly ManifestEntry[] {
    return entries
      .filter(isLive)
      .map((entry) =>
        gone.has(entry)
          ? { ...entry, status: STATUS_DELETED, snapshotId: this.#input.snapshotId }
          : { ...entry, status: STATUS_EXISTING },
      );
  }

  #rewrite(
    rewritten: Map<string, Rewritten>,
    manifest: ManifestFile,
    entries: readonly ManifestEntry[],
  ): void {
    const key = `${manifest.partitionSpecId}/${manifest.content}`;
    const open = rewritten.get(key);
    const bytes = manifest.manifestLength + (open?.bytes ?? 0);
    if (open !== undefined && bytes > REWRITTEN_BYTES) {
      this.#write(open.manifest, open.entries);
      rewritten.delete(key);
    }
    const found = rewritten.get(key) ?? { manifest, entries: [], bytes: 0 };
    found.entries.push(...entries);
    found.bytes += manifest.manifestLength;
    rewritten.set(key, found);
  }

  /** Joins small manifests of one spec and content once enough of them have accumulated. */
  async merge(manifests: readonly ManifestFile[]): Promise<ManifestFile[]> {
    const { io, metadata } = this.#input;
    const plan = mergePlan(manifests, metadata.properties ?? {}, this.#input.mergeFrom);
    for (const bin of plan.bins) {
      const entries = await readManifests(io, metadata, bin);
      this.#write(
        bin[0]!,
        entries
          .flat()
          .filter(isLive)
          .map((entry) => ({ ...entry, status: STATUS_EXISTING })),
      );
    }
    return plan.kept;
  }

  /** One manifest per spec and content (T8). */
  addFiles(files: readonly DataFile[]): void {
    const groups = new Map<string, DataFile[]>();
    for (const file of files) {
      const key = `${file.specId}/${file.content === 0 ? 0 : 1}`;
      const group = groups.get(key);
      if (group === undefined) groups.set(key, [file]);
      else group.push(file);
    }
    for (const group of groups.values()) {
      const { specId, content } = group[0]!;
      this.#write(
        { partitionSpecId: specId, content: content === 0 ? 0 : 1 },
        group.map((file) => ({
          status: STATUS_ADDED,
          snapshotId: this.#input.snapshotId,
          sequenceNumber: file.content === 0 ? this.#input.dataSequenceNumber : undefined,
          fileSequenceNumber: undefined,
          file,
        })),
      );
    }
  }

  #write(
    like: Pick<ManifestFile, 'partitionSpecId' | 'content'>,
    entries: readonly ManifestEntry[],
  ): void {
    const { metadata, commitUuid, snapshotId } = this.#input;
    const path = `${metadataFolder(metadata)}/${commitUuid}-m${this.#objects.length}.avro`;
    const { bytes, manifest } = writeManifest({
      path,
      formatVersion: metadata['format-version'],
      schema: currentSchema(metadata),
      spec: bindTableSpec(metadata, like.partitionSpecId),
      content: like.content,
      snapshotId,
      sequenceNumber: this.#sequenceNumber,
      entries,
    });
    this.#objects.push({ path, bytes });
    this.#new.push(manifest);
  }

  finish(kept: readonly ManifestFile[]): PreparedCommit {
    const { metadata, snapshotId, commitUuid, nowMs } = this.#input;
    const parentId = this.#parent?.['snapshot-id'];
    const path = `${metadataFolder(metadata)}/snap-${snapshotId}-1-${commitUuid}.avro`;
    const lineage = assignRowIds([...this.#new, ...kept], metadata);
    this.#objects.push({
      path,
      bytes: writeManifestList({
        formatVersion: metadata['format-version'],
        snapshotId,
        parentSnapshotId: parentId,
        sequenceNumber: this.#sequenceNumber,
        manifests: lineage.manifests,
        sync: syncMarker(path),
        ...(lineage.rows === undefined ? {} : { firstRowId: lineage.rows['first-row-id'] }),
      }),
    });
    const snapshot: Snapshot = {
      'snapshot-id': snapshotId,
      ...(parentId === undefined ? {} : { 'parent-snapshot-id': parentId }),
      'sequence-number': this.#sequenceNumber,
      'timestamp-ms': Math.max(nowMs, this.#parent?.['timestamp-ms'] ?? 0),
      'manifest-list': path,
      summary: this.#summary(),
      'schema-id': metadata['current-schema-id'],
      ...lineage.rows,
    };
    return { objects: this.#objects, snapshot, ...asCommit(metadata, snapshot) };
  }

  #summary(): Summary {
    const { added, operation, summary } = this.#input;
    return buildSummary({
      operation: operation ?? operationOf(added, this.#removed),
      before: this.#totals,
      added,
      removed: this.#removed,
      extra: summary ?? {},
    });
  }
}

/** Requirements and updates that make `snapshot` the head of `main`, and fail when anybody else was first (T3). */
function asCommit(
  metadata: TableMetadata,
  snapshot: Snapshot,
): Pick<PreparedCommit, 'requirements' | 'updates'> {
  return {
    requirements: [
      { type: 'assert-table-uuid', uuid: metadata['table-uuid'] },
      {
        type: 'assert-ref-snapshot-id',
        ref: MAIN_BRANCH,
        'snapshot-id': snapshot['parent-snapshot-id'] ?? null,
      },
      { type: 'assert-current-schema-id', 'current-schema-id': metadata['current-schema-id'] },
    ],
    updates: [
      { action: 'add-snapshot', snapshot },
      {
        action: 'set-snapshot-ref',
        // Retention that somebody set on the branch stays.
        ...metadata.refs?.[MAIN_BRANCH],
        'ref-name': MAIN_BRANCH,
        type: 'branch',
        'snapshot-id': snapshot['snapshot-id'],
      },
    ],
  };
}

/** v3: data manifests without a first row id get the next ones, in order of the list (spec, "Row Lineage"). */
function assignRowIds(manifests: readonly ManifestFile[], metadata: TableMetadata) {
  if (metadata['format-version'] < 3) return { manifests, rows: undefined };
  const first = metadata['next-row-id'] ?? 0;
  let next = first;
  const numbered = manifests.map((manifest) => {
    if (manifest.content !== 0 || manifest.firstRowId !== undefined) return manifest;
    const firstRowId = next;
    next += (manifest.addedRowsCount ?? 0) + (manifest.existingRowsCount ?? 0);
    return { ...manifest, firstRowId };
  });
  return { manifests: numbered, rows: { 'first-row-id': first, 'added-rows': next - first } };
}

function operationOf(added: readonly DataFile[], removed: readonly DataFile[]): Operation {
  if (removed.length === 0 && added.every((file) => file.content === 0)) return 'append';
  return added.some((file) => file.content === 0) ? 'overwrite' : 'delete';
}

const isLive = (entry: ManifestEntry) => entry.status !== STATUS_DELETED;

/** A manifest whose files are all deleted says nothing any more. */
const hasLiveFiles = (manifest: ManifestFile) =>
  (manifest.addedFilesCount ?? 1) + (manifest.existingFilesCount ?? 1) > 0;

function withCounts(manifest: ManifestFile, entries: readonly ManifestEntry[]): ManifestFile {
  if (manifest.addedFilesCount !== undefined && manifest.addedRowsCount !== undefined)
    return manifest;
  const of = (status: number) => entries.filter((entry) => entry.status === status);
  const rows = (status: number) =>
    of(status).reduce((sum, entry) => sum + entry.file.recordCount, 0);
  return {
    ...manifest,
    addedFilesCount: of(STATUS_ADDED).length,
    existingFilesCount: of(STATUS_EXISTING).length,
    deletedFilesCount: of(STATUS_DELETED).length,
    addedRowsCount: rows(STATUS_ADDED),
    existingRowsCount: rows(STATUS_EXISTING),
    deletedRowsCount: rows(STATUS_DELETED),
  };
}

/** Data files are known by path, deletion vectors by path and offset (K5). */
export function fileKey(file: Pick<DataFile, 'filePath' | 'contentOffset'>): string {
  return file.contentOffset === undefined
    ? file.filePath
    : `${file.filePath}#${file.contentOffset}`;
}

/** Where metadata files, manifests and lists go: `write.metadata.path`, else `<location>/metadata`. */
export function metadataFolder(metadata: Pick<TableMetadata, 'location' | 'properties'>): string {
  const path = metadata.properties?.['write.metadata.path'] ?? `${metadata.location}/metadata`;
  return path.endsWith('/') ? path.slice(0, -1) : path;
}

/** Where data files go: `write.data.path`, else `<location>/data`. */
export function dataFolder(metadata: Pick<TableMetadata, 'location' | 'properties'>): string {
  const path = metadata.properties?.['write.data.path'] ?? `${metadata.location}/data`;
  return path.endsWith('/') ? path.slice(0, -1) : path;
}
