// Row time to live: data files whose rows are all past their time leave the table, by their bounds alone; no file is
// read or rewritten. A row therefore stays until the youngest row of its file is too old: partitioning or sorting by
// the time column keeps that short. Rows without a time never end.
// Not for: deleting the files themselves, which expiry does once no snapshot needs them.
import { FloeError } from '../../base/error.ts';
import { currentSnapshot } from '../../formats/iceberg/history.ts';
import {
  currentSchema,
  manifestsOf,
  newSnapshotId,
  prepareCommit,
  readManifests,
} from '../../formats/iceberg/index.ts';
import { STATUS_DELETED } from '../../formats/iceberg/manifest.ts';
import { findField } from '../../formats/iceberg/schema.ts';
import type { DataFile, TableMetadata } from '../../formats/iceberg/types.ts';
import { decodeSingleValue } from '../../formats/iceberg/value.ts';
import { type ColumnPath, formatPath } from '../column-list.ts';
import {
  discard,
  fateOf,
  loadOwn,
  MAINTENANCE_ID_SUMMARY,
  type MaintainedTable,
  type RequestDeps,
  sendPrepared,
} from './requests.ts';

export interface RowTtl {
  readonly ttlMs: number;
  /** A date or timestamp column. */
  readonly column: ColumnPath;
}

export interface ExpiredRows {
  readonly files: number;
  readonly rows: number;
}

const NOTHING: ExpiredRows = { files: 0, rows: 0 };
const DAY_MS = 86_400_000;

/** Ticks of the column's type in a millisecond; days have fewer. */
const TICKS: Readonly<Record<string, (ms: number) => bigint>> = {
  date: (ms) => BigInt(Math.floor(ms / DAY_MS)),
  timestamp: (ms) => BigInt(Math.floor(ms)) * 1_000n,
  timestamptz: (ms) => BigInt(Math.floor(ms)) * 1_000n,
  timestamp_ns: (ms) => BigInt(Math.floor(ms)) * 1_000_000n,
  timestamptz_ns: (ms) => BigInt(Math.floor(ms)) * 1_000_000n,
};

/**
 * Of the live files those that leave: data files with every row older than `cutoffMs`, and the deletes of those files
 * alone.
 * @throws FloeError `invalid` when the column isn't there or holds no times.
 */
export function expiredFiles(
  files: readonly DataFile[],
  metadata: TableMetadata,
  { column, cutoffMs }: { readonly column: ColumnPath; readonly cutoffMs: number },
): DataFile[] {
  const field = findField(currentSchema(metadata), column.join('.'));
  const type = typeof field?.type === 'string' && !field.repeated ? field.type : undefined;
  const ticks = type === undefined ? undefined : TICKS[type];
  if (field === undefined || type === undefined || ticks === undefined) {
    throw new FloeError(
      'invalid',
      `table.topic.row.ttl.column: "${formatPath(column)}" is no date or timestamp column of the table`,
    );
  }
  const cutoff = ticks(cutoffMs);
  const old = files.filter(({ content, metrics }) => {
    const upper = metrics.upperBounds.get(field.id);
    if (content !== 0 || upper === undefined) return false;
    if (metrics.nullValueCounts.get(field.id) !== 0) return false;
    return BigInt(decodeSingleValue(type, upper) as bigint | number) < cutoff;
  });
  const gone = new Set(old.map((file) => file.filePath));
  const deletes = files.filter(
    ({ content, referencedDataFile }) =>
      content !== 0 && referencedDataFile !== undefined && gone.has(referencedDataFile),
  );
  return [...old, ...deletes];
}

/**
 * One pass. Somebody else's commit in between is no failure: the next pass looks again.
 * @throws FloeError of the catalog or the store; `invalid` as {@link expiredFiles}.
 */
export async function expireRows(
  deps: RequestDeps,
  table: MaintainedTable,
  { ttlMs, column }: RowTtl,
): Promise<ExpiredRows> {
  const { metadata } = await loadOwn(deps, table);
  const io = deps.warehouse;
  const manifests = await manifestsOf(io, currentSnapshot(metadata));
  const entries = (await readManifests(io, metadata, manifests)).flat();
  const live = entries.filter((entry) => entry.status !== STATUS_DELETED).map(({ file }) => file);
  const cutoffMs = deps.clock.now() - ttlMs;
  const removed = expiredFiles(live, metadata, { column, cutoffMs });
  if (removed.length === 0) return NOTHING;
  const commitId = deps.ids.uuid();
  const prepared = await prepareCommit({
    metadata,
    io,
    snapshotId: newSnapshotId(deps.ids, metadata),
    commitUuid: commitId,
    nowMs: deps.clock.now(),
    added: [],
    removed,
    operation: 'delete',
    summary: { [MAINTENANCE_ID_SUMMARY]: commitId },
  });
  const objects = prepared.objects.map((object) => object.path);
  const sent = { commitId, parent: prepared.snapshot['parent-snapshot-id'], objects };
  for (const name of objects) deps.jobsUnderWay.add(name);
  try {
    const request = { prepared, sent, metadata, files: [] };
    const answer = await sendPrepared(deps, table, request);
    if (answer.kind === 'refused') {
      await discard(deps, objects);
      return NOTHING;
    }
    if (answer.kind === 'unanswered') {
      // History may tell at once; else the sweep asks it later.
      const now = await loadOwn(deps, table);
      if (fateOf(now.metadata, sent) !== 'found') return NOTHING;
    }
    await deps.tables.dropIntents(objects);
  } finally {
    for (const name of objects) deps.jobsUnderWay.delete(name);
  }
  const data = removed.filter((file) => file.content === 0);
  return { files: data.length, rows: data.reduce((sum, file) => sum + file.recordCount, 0) };
}
