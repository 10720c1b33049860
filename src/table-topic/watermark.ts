// How far a table is, written in the table itself (rules T1, T2): one property with the offsets of every partition,
// and in each of our snapshots the ranges that it added. Reading it back decides between "go on from here" and
// "somebody rolled this table back or replaced it".
// Pure: table metadata in, plain data out.
import { FloeError } from '../base/error.ts';
import { parseIcebergJson } from '../formats/iceberg/json.ts';
import type { Snapshot, TableMetadata } from '../formats/iceberg/types.ts';

/** The table property that holds the watermark. */
export const WATERMARK_PROPERTY = 'floe.watermark';
/** The tag that keeps our newest snapshot from other people's expiry. */
export const WATERMARK_TAG = 'floe-watermark';
/** The topic that a table belongs to. */
export const TOPIC_ID_PROPERTY = 'floe.topic-id';
export const TOPIC_NAME_PROPERTY = 'floe.topic-name';
/** Keys of the snapshot summary. */
export const COMMIT_ID_SUMMARY = 'floe.commit-id';
export const EPOCH_SUMMARY = 'floe.coordinator-epoch';
export const RANGES_SUMMARY = 'floe.ranges';
/** Whose ranges they are: several topics may fill one table. Missing in what older releases wrote. */
export const TOPIC_SUMMARY = 'floe.topic-id';

/** Stands for "none yet" in a watermark. */
export const NO_SNAPSHOT = -1n;

/** Begins what a commit asserted (metadata/tables.ts, Intent) when it was one of the dead-letter table. */
export const LETTERS_PARENT = 'dlq:';

/** Next offset to commit, by partition index. */
export type Offsets = ReadonlyMap<number, number>;

export interface Watermark {
  readonly commitId: string;
  /** Whose commit it was: epochs are counted by topic. Empty in what older releases wrote. */
  readonly topicId: string;
  readonly epoch: number;
  /** Our newest snapshot; {@link NO_SNAPSHOT} while only offsets without rows were committed. */
  readonly snapshotId: bigint;
  readonly sequenceNumber: number;
  /** By topic id: a table may have swallowed more than one topic of the same name. */
  readonly topics: ReadonlyMap<string, Offsets>;
}

/** Offsets `[start, end)` of one partition that a snapshot added. */
export interface CommittedRange {
  readonly partition: number;
  readonly start: number;
  readonly end: number;
}

export function formatWatermark(watermark: Watermark): string {
  const topics: Record<string, Record<string, number>> = {};
  for (const [topicId, offsets] of watermark.topics) {
    topics[topicId] = Object.fromEntries([...offsets].toSorted(([a], [b]) => a - b));
  }
  return JSON.stringify({
    'commit-id': watermark.commitId,
    'topic-id': watermark.topicId,
    epoch: watermark.epoch,
    // As text: the id has 64 bits, and this JSON is read by people's scripts too.
    'snapshot-id': String(watermark.snapshotId),
    'sequence-number': watermark.sequenceNumber,
    topics,
  });
}

/** @throws FloeError `corrupt` when the property isn't one of ours. */
export function parseWatermark(text: string): Watermark {
  try {
    const parsed = parseIcebergJson(text) as Record<string, unknown>;
    const topics = Object.entries(parsed['topics'] as Record<string, Record<string, number>>);
    return {
      commitId: String(parsed['commit-id']),
      topicId: String(parsed['topic-id'] ?? ''),
      epoch: Number(parsed['epoch']),
      snapshotId: BigInt(parsed['snapshot-id'] as string),
      sequenceNumber: Number(parsed['sequence-number']),
      topics: new Map(topics.map(([topicId, offsets]) => [topicId, toOffsets(offsets)])),
    };
  } catch (caught) {
    throw new FloeError('corrupt', `table property ${WATERMARK_PROPERTY} is unreadable`, {
      cause: caught,
    });
  }
}

const toOffsets = (offsets: Record<string, number>): Offsets =>
  new Map(
    Object.entries(offsets).map(([partition, offset]) => [Number(partition), Number(offset)]),
  );

/** `0:10-20,3:5-9`: short, because it stays in metadata.json as long as the snapshot. */
export function formatRanges(ranges: readonly CommittedRange[]): string {
  return ranges.map(({ partition, start, end }) => `${partition}:${start}-${end}`).join(',');
}

export function parseRanges(text: string): CommittedRange[] {
  if (text === '') return [];
  return text.split(',').map((item) => {
    const match = /^(\d+):(\d+)-(\d+)$/.exec(item);
    if (match === null) throw new FloeError('corrupt', `"${item}" is no committed range`);
    return { partition: Number(match[1]), start: Number(match[2]), end: Number(match[3]) };
  });
}

/** The snapshots from `main`'s back to the oldest retained one, newest first. */
export function ancestry(metadata: TableMetadata): Snapshot[] {
  const byId = new Map(metadata.snapshots?.map((one) => [one['snapshot-id'], one]));
  const found: Snapshot[] = [];
  const seen = new Set<bigint>();
  for (let id = mainSnapshotId(metadata); id !== undefined && !seen.has(id); ) {
    seen.add(id);
    const snapshot = byId.get(id);
    if (snapshot === undefined) break;
    found.push(snapshot);
    id = snapshot['parent-snapshot-id'];
  }
  return found;
}

/** The snapshot `main` points to, or undefined for a table without data. */
export function mainSnapshotId(metadata: TableMetadata): bigint | undefined {
  const id = metadata.refs?.['main']?.['snapshot-id'] ?? metadata['current-snapshot-id'];
  // Version 1 writers left −1 for "none".
  return id === undefined || id === -1n ? undefined : id;
}

/**
 * `fresh`: nothing of ours was ever committed. `at`: go on from there. `moved`: somebody rolled the table back
 * or replaced its history; `ancestor` is our newest snapshot that is still in it, if any.
 */
export type ReadBack =
  | { readonly kind: 'fresh' }
  | { readonly kind: 'at'; readonly watermark: Watermark }
  | { readonly kind: 'moved'; readonly watermark: Watermark; readonly ancestor?: Snapshot };

/** Reads the watermark back (rule T2). @throws FloeError `corrupt`. */
export function readBack(metadata: TableMetadata): ReadBack {
  const text = metadata.properties?.[WATERMARK_PROPERTY];
  if (text === undefined) return { kind: 'fresh' };
  const watermark = parseWatermark(text);
  const line = ancestry(metadata);
  const own = line.find((snapshot) => snapshot.summary?.[COMMIT_ID_SUMMARY] !== undefined);
  if (own !== undefined) {
    // The property moves with the snapshot in one commit, so the newest ancestor of ours must be the one it names.
    if (own['snapshot-id'] === watermark.snapshotId) return { kind: 'at', watermark };
    return { kind: 'moved', watermark, ancestor: own };
  }
  if (watermark.snapshotId === NO_SNAPSHOT) return { kind: 'at', watermark };
  const oldest = line.at(-1);
  const expired =
    oldest !== undefined && (oldest['sequence-number'] ?? 0) > watermark.sequenceNumber;
  // Ours was expired, not undone: history merely starts later.
  if (expired) return { kind: 'at', watermark };
  return { kind: 'moved', watermark };
}

/** True when `main` moved past `parent`, so that a request asserting it can't be applied any more (rule T5). */
export function movedPast(metadata: TableMetadata, parent: bigint | undefined): boolean {
  const line = ancestry(metadata).map((snapshot) => snapshot['snapshot-id']);
  return parent === undefined ? line.length > 0 : line.indexOf(parent) > 0;
}

/**
 * What a request on `metadata` asserts of `main`, as intents and replays keep it: `<snapshot id>@<sequence number>`, empty
 * where there is no snapshot. The number tells later, when the snapshot has expired, that it lies in the past.
 */
export function assertedMain(metadata: TableMetadata): string {
  const [main] = ancestry(metadata);
  return main === undefined ? '' : `${main['snapshot-id']}@${main['sequence-number'] ?? 0}`;
}

const ASSERTED = /^(?:(\d+)(?:@(\d+))?)?$/;

/**
 * As {@link movedPast}, of what {@link assertedMain} said. A snapshot that the table has no more, and whose number is below
 * the present one's, can't be what `main` points to again. False for a text of an older release that proves nothing.
 */
export function movedPastAsserted(metadata: TableMetadata, asserted: string): boolean {
  const match = ASSERTED.exec(asserted);
  if (match === null) return false;
  const parent = match[1] === undefined ? undefined : BigInt(match[1]);
  if (movedPast(metadata, parent)) return true;
  const there = metadata.snapshots?.some((snapshot) => snapshot['snapshot-id'] === parent) ?? false;
  const [main] = ancestry(metadata);
  // Format 1 has no numbers: all are 0.
  return match[2] !== undefined && !there && (main?.['sequence-number'] ?? 0) > Number(match[2]);
}

/** True when a snapshot of the present history carries this commit id. */
export function holdsCommit(metadata: TableMetadata, commitId: string): boolean {
  return ancestry(metadata).some((snapshot) => snapshot.summary?.[COMMIT_ID_SUMMARY] === commitId);
}

/**
 * Offsets of a topic as the history up to `ancestor` says, for going back to a rolled-back table: the newest range of
 * each partition among our retained snapshots. Partitions that none of them mentions are missing.
 */
export function offsetsUpTo(metadata: TableMetadata, topicId: string): Offsets {
  const offsets = new Map<number, number>();
  for (const snapshot of ancestry(metadata)) {
    if ((snapshot.summary?.[TOPIC_SUMMARY] ?? topicId) !== topicId) continue;
    for (const range of parseRanges(snapshot.summary?.[RANGES_SUMMARY] ?? '')) {
      if (!offsets.has(range.partition)) offsets.set(range.partition, range.end);
    }
  }
  return offsets;
}
