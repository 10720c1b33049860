// Row time to live: rows past their time leave the table, in one commit a pass: data files whose rows are all old as they
// are, the rows of others by position deletes or deletion vectors. Partitioning or sorting by the time column keeps
// deletes few. Rows without a time never end.
// Not for: finding them (expired-rows.ts); rewriting much-deleted files, which compaction does; deleting files, which
// expiry does once no snapshot needs them.
import { newSnapshotId, prepareCommit } from '../../formats/iceberg/index.ts';
import type { ColumnPath } from '../column-list.ts';
import {
  discard,
  fateOf,
  loadOwn,
  MAINTENANCE_ID_SUMMARY,
  type MaintainedTable,
  type RequestDeps,
  sendPrepared,
} from './requests.ts';
import type { MaintenanceTasks } from './task.ts';

export interface RowTtl {
  readonly ttlMs: number;
  /** A date or timestamp column. */
  readonly column: ColumnPath;
}

export interface RowTtlDeps extends RequestDeps {
  readonly tasks: Pick<MaintenanceTasks, 'expired'>;
}

export interface RowsGone {
  /** That left whole. */
  readonly files: number;
  readonly rows: number;
}

const NOTHING: RowsGone = { files: 0, rows: 0 };

/**
 * One pass. Somebody else's commit in between is no failure: the next pass looks again.
 * @throws FloeError of the catalog or the store; `invalid` when the column isn't there or holds no times.
 */
export async function expireRows(
  deps: RowTtlDeps,
  table: MaintainedTable,
  { ttlMs, column }: RowTtl,
): Promise<RowsGone> {
  const { metadata } = await loadOwn(deps, table);
  const commitId = deps.ids.uuid();
  const cutoffMs = deps.clock.now() - ttlMs;
  const found = await deps.tasks.expired({ metadata, column, cutoffMs, prefix: commitId });
  if (found.rows === 0) return NOTHING;
  const prepared = await prepareCommit({
    metadata,
    io: deps.warehouse,
    snapshotId: newSnapshotId(deps.ids, metadata),
    commitUuid: commitId,
    nowMs: deps.clock.now(),
    added: found.added,
    removed: found.removed,
    operation: 'delete',
    summary: { [MAINTENANCE_ID_SUMMARY]: commitId },
  });
  const bodies = [
    ...found.objects.map(({ path, parts }) => ({
      path,
      bytes: new Uint8Array(Buffer.concat(parts)),
    })),
    ...prepared.objects,
  ];
  const objects = bodies.map((object) => object.path);
  const sent = { commitId, parent: prepared.snapshot['parent-snapshot-id'], objects };
  for (const name of objects) deps.jobsUnderWay.add(name);
  try {
    const request = { prepared: { ...prepared, objects: bodies }, sent, metadata, files: [] };
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
  return { files: found.files, rows: found.rows };
}
