// Which partitions of compacted topics are due for compaction by key: pure, from a look at each. Rules of Kafka's log
// cleaner: the share of bytes that were never compacted, or a record that waits longer than it may. What lies in the
// file that is being filled is Kafka's active segment: not compacted, and rolled when a segment would be.
import type { ObjectEntry } from '../../metadata/log.ts';

/** What a compacted topic's configs say. Infinity: no limit. */
export interface CompactionPolicy {
  /** `min.compaction.lag.ms`: records younger than this stay as they are. */
  readonly minLagMs: number;
  /** `max.compaction.lag.ms`: no record waits longer, whatever the ratio. */
  readonly maxLagMs: number;
  /** `min.cleanable.dirty.ratio`. */
  readonly minDirtyRatio: number;
  /** `delete.retention.ms`. */
  readonly deleteRetentionMs: number;
  /** `segment.ms` and `segment.bytes`: what is not yet sealed is sealed at this age and size. */
  readonly segmentMs: number;
  readonly segmentBytes: number;
}

/** A partition of a compacted topic. */
export interface CompactedPartition {
  readonly partitionId: number;
  readonly policy: CompactionPolicy;
}

/** A partition as it stands. */
export interface CleanLook {
  readonly policy: CompactionPolicy;
  readonly nowMs: number;
  readonly logStart: number;
  /** Nothing at or above it may be compacted: the last stable offset, the lag, what a table still has to read. */
  readonly cleanableEnd: number;
  /** All rows, by offset. */
  readonly rows: readonly ObjectEntry[];
  /** Records below it were compacted. */
  readonly cleanEnd: number;
  /** Bytes of compacted rows that go with tombstones whose time has come. */
  readonly expiredBytes: number;
  readonly sizeBytes: number;
  readonly highWatermark: number;
  /** Time of the oldest record that was never compacted, and of the oldest in unsealed objects; −1: none. */
  readonly oldestDirtyMs: number;
  readonly oldestUnsealedMs: number;
}

export interface CleanVerdict {
  /** The file that is being filled holds what is due. */
  readonly roll: boolean;
  /** Compaction is due. */
  readonly clean: boolean;
  /** Bytes that were never compacted, of all that may be. */
  readonly dirtyRatio: number;
}

/** End of what lies in sealed objects, the log start if nothing does. */
export function sealedEnd({ rows, logStart }: Pick<CleanLook, 'rows' | 'logStart'>): number {
  return Math.max(rows.at(-1)?.endOffset ?? logStart, logStart);
}

export function judge(look: CleanLook): CleanVerdict {
  const { policy, nowMs, rows, cleanEnd, cleanableEnd, expiredBytes } = look;
  let clean = 0;
  let dirty = 0;
  for (const row of rows) {
    if (row.endOffset <= cleanEnd) clean += row.bytes;
    else if (row.baseOffset < cleanableEnd) dirty += row.bytes;
  }
  const dirtyRatio = (dirty + expiredBytes) / Math.max(1, clean + dirty);
  const waits = (oldestMs: number) => oldestMs >= 0 && nowMs - oldestMs > policy.maxLagMs;
  const hasDirty = dirty > 0 && cleanEnd < Math.min(cleanableEnd, sealedEnd(look));
  const due = dirtyRatio > policy.minDirtyRatio || (hasDirty && waits(look.oldestDirtyMs));
  return {
    roll: mustRoll(look),
    clean: due && (hasDirty || expiredBytes > 0),
    dirtyRatio: Math.min(1, dirtyRatio),
  };
}

function mustRoll(look: CleanLook): boolean {
  const { policy, nowMs, rows, sizeBytes, highWatermark, oldestUnsealedMs } = look;
  if (highWatermark <= sealedEnd(look)) return false;
  const unsealed = sizeBytes - rows.reduce((sum, row) => sum + row.bytes, 0);
  const rollMs = Math.min(policy.segmentMs, policy.maxLagMs);
  return (
    unsealed >= policy.segmentBytes || (oldestUnsealedMs >= 0 && nowMs - oldestUnsealedMs > rollMs)
  );
}

/** Rows taken together: neighbours up to `bytes`, at least one each; all that begin below `end`. */
export function groupRows(
  rows: readonly ObjectEntry[],
  {
    logStart,
    end,
    bytes,
  }: { readonly logStart: number; readonly end: number; readonly bytes: number },
): ObjectEntry[][] {
  const groups: ObjectEntry[][] = [];
  let size = 0;
  for (const row of rows) {
    if (row.endOffset <= logStart || row.baseOffset >= end) continue;
    const last = groups.at(-1);
    if (
      last === undefined ||
      size + row.bytes > bytes ||
      last.at(-1)!.endOffset !== row.baseOffset
    ) {
      groups.push([row]);
      size = 0;
    } else last.push(row);
    size += row.bytes;
  }
  return groups;
}
