// What a table's status says: from its coordinator where that is in this process, else from what the metadata store and
// this node's copy of the log say. Plain data; not for: commands (table-topics.ts).
import { QUARANTINE_CONFIG, quarantinedPartitions } from '../metadata/quarantine.ts';
import type { TableHead, TopicPositions } from '../metadata/table-lanes.ts';
import type { TableCounters, TableRecord } from '../metadata/tables.ts';
import type { Topic } from '../metadata/topics.ts';
import type { Log } from '../storage/log/log.ts';
import type { CoordinatorView } from './coordinator.ts';
import type { UpkeepStatus } from './maintenance/status.ts';
import { TABLE_STATES, type TableState } from './table-state.ts';

/** What `floe tables status` shows. */
export interface TableStatus {
  readonly topic: string;
  readonly topicId: string;
  readonly namespace: readonly string[];
  readonly table: string;
  /** Empty until the table exists. */
  readonly tableUuid: string;
  readonly state: TableState;
  /** Why it isn't running, or what it leaves out; empty when it does all its work. */
  readonly reason: string;
  /** Partitions that are left out while they are quarantined; missing where none is. */
  readonly quarantinedPartitions?: readonly number[];
  readonly lagRecords: number;
  /** Since when the oldest uncommitted record waits, at most. */
  readonly lagSeconds: number;
  readonly stagedBytes: number;
  readonly commitIntervalMs: number;
  readonly counters: TableCounters;
  /** In a cluster: the node that coordinates the table; null while none does. */
  readonly coordinator?: number | null;
  /** Compaction, expiry, orphans of the table and of its dead-letter table; missing where another node sees to them. */
  readonly maintenance?: UpkeepStatus;
  readonly deadLetterMaintenance?: UpkeepStatus;
}

/** The part of a status that a coordinator knows. */
export type TableView = Pick<
  TableStatus,
  | 'namespace'
  | 'table'
  | 'tableUuid'
  | 'state'
  | 'reason'
  | 'lagRecords'
  | 'lagSeconds'
  | 'stagedBytes'
>;

/** Partitions of the topic that its table leaves out. */
export function leftOut(topic: Topic): readonly number[] {
  const quarantined = quarantinedPartitions(topic);
  return [...topic.partitions.keys()].filter((partition) => quarantined.has(partition));
}

/** What a table says that does its work, all but these partitions'. */
export function leftOutReason(partitions: readonly number[]): string {
  if (partitions.length === 0) return '';
  const [are, list] = [partitions.length === 1 ? ' is' : 's are', partitions.join(', ')];
  return `partition${are} quarantined and left out: ${list} (${QUARANTINE_CONFIG} of the topic)`;
}

/** `fault`: why there is no coordinator. */
export function localView(view: CoordinatorView | undefined, fault: string): TableView {
  return {
    namespace: view?.identifier.namespace ?? [],
    table: view?.identifier.name ?? '',
    tableUuid: view?.tableUuid ?? '',
    state: view?.state ?? 'suspended',
    reason: view?.reason ?? fault,
    lagRecords: view?.lagRecords ?? 0,
    lagSeconds: view?.lagSeconds ?? 0,
    stagedBytes: view?.stagedBytes ?? 0,
  };
}

/** What the metadata store says of one table. */
export interface StoredTable {
  readonly record: TableRecord | undefined;
  readonly head: TableHead | undefined;
  readonly positions: TopicPositions | undefined;
  readonly counters: TableCounters;
}

/** A table that another node coordinates, or none yet. */
export function storedView(
  stored: StoredTable,
  at: { readonly topic: Topic; readonly log: Log; readonly nowMs: number },
): TableView {
  const { record, head, counters } = stored;
  const lagRecords = storedLag(stored.positions, at);
  const { lastCommitMs } = counters;
  // What is committed by the last commit doesn't wait; who waits since when, only the coordinator knows.
  const sinceMs = lagRecords === 0 || lastCommitMs === 0 ? at.nowMs : lastCommitMs;
  return {
    namespace: record?.namespace ?? [],
    table: record?.table ?? '',
    tableUuid: record?.tableUuid ?? '',
    state: stateOf(record),
    reason: record?.reason ?? 'no node coordinates this table yet',
    lagRecords,
    lagSeconds: Math.max(0, (at.nowMs - sinceMs) / 1_000),
    stagedBytes: head?.stagedBytes ?? 0,
  };
}

function storedLag(
  found: TopicPositions | undefined,
  { topic, log }: { readonly topic: Topic; readonly log: Log },
): number {
  const committed = new Map(found?.positions.map((one) => [one.partition, one.committedEnd]));
  let lag = 0;
  for (const [partition, partitionId] of topic.partitions.entries()) {
    const marks = log.watermarks(partitionId);
    if (marks === undefined) continue;
    const end = committed.get(partition) ?? marks.logStartOffset;
    lag += Math.max(0, marks.lastStableOffset - end);
  }
  return lag;
}

function stateOf(record: TableRecord | undefined): TableState {
  if (record?.paused === true) return 'paused';
  return TABLE_STATES.find((state) => state === record?.state) ?? 'starting';
}
