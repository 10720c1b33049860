// Where a table starts and goes on: initial offsets by the backfill setting, and how to recover when somebody
// moved the table's history (rule T2's policies).
import { FloeError } from '../base/error.ts';
import type { Catalog, LoadedTable, TableIdentifier } from '../catalog/catalog.ts';
import type { Log } from '../storage/log/log.ts';
import type { Backfill } from './settings/index.ts';
import {
  formatWatermark,
  mainSnapshotId,
  NO_SNAPSHOT,
  offsetsUpTo,
  readBack,
  WATERMARK_PROPERTY,
  type Watermark,
} from './watermark.ts';

/** What an operator chooses when a table was rolled back, rewritten, replaced or dropped. */
export const RECOVERY_POLICIES = ['rewind', 'keep', 'restart'] as const;
export type RecoveryPolicy = (typeof RECOVERY_POLICIES)[number];

/** First offset to stage of one partition. */
export async function backfillOffset(
  log: Log,
  partitionId: number,
  backfill: Backfill,
): Promise<number> {
  const marks = log.watermarks(partitionId);
  if (marks === undefined) return 0;
  if (backfill === 'earliest') return marks.logStartOffset;
  if (backfill === 'latest') return marks.lastStableOffset;
  const found = await log.offsetForTime(partitionId, backfill.timestampMs, 'read_committed');
  return found?.offset ?? marks.lastStableOffset;
}

export interface Recovered {
  readonly table: LoadedTable;
  /** Offsets to go on from; partitions that are missing start by the backfill setting. */
  readonly offsets: ReadonlyMap<number, number>;
}

/**
 * Makes the watermark agree with the table's history again.
 * `keep` goes on from the property's offsets (what the roll-back took is not written again), `rewind` from the
 * newest ranges that the history still has, `restart` from the beginning. `before`: what must be done before the
 * watermark moves to these offsets.
 */
export async function recover(
  catalog: Catalog,
  identifier: TableIdentifier,
  options: {
    readonly topicId: string;
    readonly policy: RecoveryPolicy;
    readonly epoch: number;
    readonly commitId: string;
  },
  before: (offsets: ReadonlyMap<number, number>) => Promise<void> = async () => {},
): Promise<Recovered> {
  const loaded = await catalog.loadTable(identifier);
  const { metadata } = loaded;
  const back = readBack(metadata);
  if (back.kind === 'at' && options.policy !== 'restart') {
    const offsets = back.watermark.topics.get(options.topicId) ?? new Map();
    await before(offsets);
    return { table: loaded, offsets };
  }
  const former = back.kind === 'fresh' ? undefined : back.watermark;
  const ancestor = back.kind === 'moved' ? back.ancestor : undefined;
  const { policy, topicId } = options;
  const offsets = offsetsFor(policy, { before: former, loaded, topicId });
  await before(offsets);
  const own = back.kind === 'at' ? back.watermark.snapshotId : ancestor?.['snapshot-id'];
  const watermark: Watermark = {
    commitId: options.commitId,
    topicId: options.topicId,
    epoch: options.epoch,
    snapshotId: own ?? NO_SNAPSHOT,
    sequenceNumber: ancestor?.['sequence-number'] ?? former?.sequenceNumber ?? 0,
    topics: new Map([...(former?.topics ?? []), [options.topicId, offsets]]),
  };
  const table = await catalog.commitTable(identifier, {
    requirements: [
      { type: 'assert-table-uuid', uuid: metadata['table-uuid'] },
      {
        type: 'assert-ref-snapshot-id',
        ref: 'main',
        'snapshot-id': mainSnapshotId(metadata) ?? null,
      },
    ],
    updates: [
      {
        action: 'set-properties',
        updates: { [WATERMARK_PROPERTY]: formatWatermark(watermark) },
      },
    ],
  });
  return { table, offsets };
}

function offsetsFor(
  policy: RecoveryPolicy,
  from: {
    readonly before: Watermark | undefined;
    readonly loaded: LoadedTable;
    readonly topicId: string;
  },
): ReadonlyMap<number, number> {
  switch (policy) {
    case 'restart':
      return new Map();
    case 'keep':
      return from.before?.topics.get(from.topicId) ?? new Map();
    case 'rewind':
      return offsetsUpTo(from.loaded.metadata, from.topicId);
  }
}

/** @throws FloeError `invalid` for another word. */
export function parsePolicy(text: string): RecoveryPolicy {
  const found = RECOVERY_POLICIES.find((policy) => policy === text);
  if (found === undefined) {
    throw new FloeError(
      'invalid',
      `policy "${text}" is not one of ${RECOVERY_POLICIES.join(', ')}`,
    );
  }
  return found;
}
