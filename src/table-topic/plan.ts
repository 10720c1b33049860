// What to commit: derived afresh from the table's own metadata and the staged ranges before every attempt (rule T4).
// Pure: the table as the catalog returned it and the stages in; a decision as plain data out.
// Not for: writing manifests or talking to the catalog (commit.ts).
import { assert } from '../base/assert.ts';
import { partitionKey } from '../formats/iceberg/partition.ts';
import { findField, isPromotionAllowed, walkFields } from '../formats/iceberg/schema.ts';
import type { DataFile, Schema, TableMetadata } from '../formats/iceberg/types.ts';
import type { SidecarRef } from './upsert/sidecar.ts';
import {
  type CommittedRange,
  mainSnapshotId,
  type Offsets,
  readBack,
  type Watermark,
} from './watermark.ts';

/** Both tables of a topic are committed by the same rules, each by its own watermark. */
export type TableRole = 'data' | 'deadLetters';

/** A stage as one of the two tables sees it. */
export interface PlannedStage {
  readonly sequence: number;
  readonly schemaId: number;
  /** In the dead-letter table a range starts where its dead letters do. */
  readonly ranges: readonly CommittedRange[];
  readonly files: readonly DataFile[];
  /** Of an upsert table's stage that changes rows. */
  readonly sidecar?: SidecarRef;
}

export interface PlanRequest {
  readonly metadata: TableMetadata;
  readonly topicId: string;
  readonly role: TableRole;
  readonly tableUuid: string;
  readonly epoch: number;
  /** In order of staging; for the dead-letter table only those with dead letters. */
  readonly stages: readonly PlannedStage[];
  /** Distinct partition tuples that one commit may touch; a single stage may exceed it. */
  readonly maxPartitions: number;
  /** Field ids of an upsert table's key; undefined for tables that only grow. */
  readonly idFields?: readonly number[];
}

export type CommitPlan =
  /** T6: another coordinator has a higher epoch. */
  | { readonly kind: 'fenced'; readonly epoch: number }
  /** T3: this is not the table that was enabled. */
  | { readonly kind: 'replaced'; readonly tableUuid: string }
  /** T2: history was rolled back or rewritten by somebody. */
  | { readonly kind: 'moved'; readonly watermark: Watermark }
  /** Staged ranges don't fit the table: drop them and read again from `offsets` (the table's own). */
  | { readonly kind: 'discard'; readonly reason: string; readonly offsets: Offsets }
  /** The table holds everything staged. */
  | { readonly kind: 'nothing'; readonly done: readonly number[]; readonly offsets: Offsets }
  | {
      readonly kind: 'commit';
      readonly parent: bigint | undefined;
      /** What the table says now; undefined before the first commit. */
      readonly before: Watermark | undefined;
      /** Sequences the table holds already. */
      readonly done: readonly number[];
      /** Sequences this commit adds. */
      readonly adding: readonly number[];
      /** Empty when all of it was dead letters, skipped or aborted: then only the watermark moves. */
      readonly files: readonly DataFile[];
      /** What the stages do by their keys (upsert tables). */
      readonly sidecars: readonly SidecarRef[];
      /** Only what changes. */
      readonly ranges: readonly CommittedRange[];
      /** Of every topic and partition, after this commit. */
      readonly topics: ReadonlyMap<string, Offsets>;
    };

export function planCommit(request: PlanRequest): CommitPlan {
  const { metadata, topicId } = request;
  if (metadata['table-uuid'] !== request.tableUuid) {
    return { kind: 'replaced', tableUuid: metadata['table-uuid'] };
  }
  const back = readBack(metadata);
  if (back.kind === 'moved') return { kind: 'moved', watermark: back.watermark };
  const watermark = back.kind === 'at' ? back.watermark : undefined;
  if (watermark !== undefined && isFenced(watermark, request)) {
    return { kind: 'fenced', epoch: watermark.epoch };
  }
  const offsets = watermark?.topics.get(topicId) ?? new Map<number, number>();
  const sorted = sortStages(request, offsets);
  if (sorted.broken !== undefined) return { kind: 'discard', reason: sorted.broken, offsets };
  const unfit =
    firstUnfit(metadata, sorted.open, request.role) ??
    (request.role === 'data' ? firstOtherKey(sorted.open, request.idFields) : undefined);
  if (unfit !== undefined) return { kind: 'discard', reason: unfit, offsets };
  const chosen = withinPartitions(sorted.open, request.maxPartitions);
  const files = chosen.flatMap((stage) => stage.files);
  const ranges = mergeRanges(chosen, request.role);
  if (ranges.length === 0) return { kind: 'nothing', done: sorted.done, offsets };
  const next = new Map(offsets);
  for (const { partition, start, end } of ranges) {
    const at = next.get(partition);
    // Only dead letters may leave holes: in between, every record became a row.
    const continues =
      at === undefined || at === start || (request.role === 'deadLetters' && at < start);
    assert(continues, 'T4: a commit starts where the table is');
    next.set(partition, end);
  }
  return {
    kind: 'commit',
    parent: mainSnapshotId(metadata),
    before: watermark,
    done: sorted.done,
    adding: chosen.map((stage) => stage.sequence),
    files,
    sidecars: chosen.flatMap((stage) => (stage.sidecar === undefined ? [] : [stage.sidecar])),
    ranges,
    topics: new Map([...(watermark?.topics ?? []), [topicId, next]]),
  };
}

/** T6. A topic that took over the table of a deleted namesake counts its epochs from the start. */
function isFenced({ topicId, epoch }: Watermark, request: PlanRequest): boolean {
  return epoch > request.epoch && (topicId === '' || topicId === request.topicId);
}

interface SortedStages {
  readonly done: readonly number[];
  readonly open: readonly PlannedStage[];
  readonly broken?: string;
}

/** Parts what the table holds from what it doesn't. Stages chain, so the first misfit ends the walk. */
function sortStages({ stages, role }: PlanRequest, offsets: Offsets): SortedStages {
  const at = new Map(offsets);
  const done: number[] = [];
  const open: PlannedStage[] = [];
  for (const stage of stages) {
    const where = placeOf(stage, at, role);
    if (where === 'done') {
      done.push(stage.sequence);
      continue;
    }
    if (where === 'broken') {
      const text = stage.ranges
        .map(
          (r) =>
            `partition ${r.partition}: ${r.start}…${r.end}, table at ${at.get(r.partition) ?? 'none'}`,
        )
        .join('; ');
      return { done, open, broken: `a staged range doesn't continue the table (${text})` };
    }
    open.push(stage);
    for (const { partition, end } of stage.ranges) at.set(partition, end);
  }
  return { done, open };
}

/** A stage is committed whole or not at all, so ranges that disagree break the chain. */
function placeOf(stage: PlannedStage, at: Offsets, role: TableRole): 'done' | 'open' | 'broken' {
  const places = new Set(
    stage.ranges.map(({ partition, start, end }) => {
      const offset = at.get(partition);
      if (offset === undefined || offset === start) return 'open' as const;
      if (end <= offset) return 'done' as const;
      return role === 'deadLetters' && offset < start ? ('open' as const) : ('broken' as const);
    }),
  );
  return places.size === 1 ? [...places][0]! : 'broken';
}

/** T8: why the first stage that the table can't take doesn't fit, or undefined. */
function firstUnfit(
  metadata: TableMetadata,
  stages: readonly PlannedStage[],
  role: TableRole,
): string | undefined {
  const current = metadata.schemas.find(
    (one) => one['schema-id'] === metadata['current-schema-id'],
  );
  assert(current !== undefined, 'a table has its current schema');
  const specs = new Set(metadata['partition-specs'].map((spec) => spec['spec-id']));
  const checked = new Map<number, string | undefined>();
  for (const stage of stages) {
    if (stage.files.length === 0) continue;
    const missing = stage.files.find((file) => !specs.has(file.specId));
    if (missing !== undefined) return `partition spec ${missing.specId} is gone`;
    // The dead-letter table's columns are fixed; what somebody adds or drops there doesn't concern its files.
    if (role === 'deadLetters') continue;
    if (!checked.has(stage.schemaId)) {
      const written = metadata.schemas.find((one) => one['schema-id'] === stage.schemaId);
      checked.set(stage.schemaId, unfitSchema(stage.schemaId, written, current));
    }
    const unfit = checked.get(stage.schemaId);
    if (unfit !== undefined) return unfit;
  }
  return undefined;
}

/** K4: why the first stage can't be resolved by the key as it is now, or undefined. */
function firstOtherKey(
  stages: readonly PlannedStage[],
  idFields: readonly number[] | undefined,
): string | undefined {
  for (const { files, sidecar } of stages) {
    if (idFields === undefined) {
      if (sidecar !== undefined) return 'it was staged for upserts, which are off';
    } else if (sidecar === undefined) {
      if (files.length > 0) return 'it was staged before upserts were turned on';
    } else if (sidecar.idFields.join() !== idFields.join())
      return 'the id columns are others by now';
  }
  return undefined;
}

function unfitSchema(id: number, written: Schema | undefined, current: Schema): string | undefined {
  if (written === undefined) return `schema ${id} is gone`;
  if (written['schema-id'] === current['schema-id']) return undefined;
  for (const field of walkFields(written)) {
    const now = findField(current, field.id);
    if (now === undefined) return `column "${field.fullName}" was dropped`;
    const both = typeof field.type === 'string' && typeof now.type === 'string';
    const fits = both
      ? isPromotionAllowed(field.type, now.type)
      : typeof field.type !== 'string' &&
        typeof now.type !== 'string' &&
        field.type.type === now.type.type;
    if (!fits) return `column "${field.fullName}" changed its type`;
  }
  const filled = new Set(written.fields.map((field) => field.id));
  const required = current.fields.find((field) => field.required && !filled.has(field.id));
  return required === undefined ? undefined : `column "${required.name}" is required now`;
}

/** The longest beginning of `stages` that stays within the bound, at least one. */
function withinPartitions(stages: readonly PlannedStage[], maximum: number): PlannedStage[] {
  const tuples = new Set<string>();
  const chosen: PlannedStage[] = [];
  for (const stage of stages) {
    for (const file of stage.files) tuples.add(partitionKey(file.specId, file.partition));
    if (chosen.length > 0 && tuples.size > maximum) break;
    chosen.push(stage);
  }
  return chosen;
}

/** Adjacent ranges of a partition become one. */
function mergeRanges(stages: readonly PlannedStage[], role: TableRole): CommittedRange[] {
  const byPartition = new Map<number, CommittedRange>();
  for (const range of stages.flatMap((stage) => stage.ranges)) {
    const before = byPartition.get(range.partition);
    const adjacent = before === undefined || before.end === range.start || role === 'deadLetters';
    assert(adjacent, 'T7: ranges leave no hole');
    byPartition.set(range.partition, { ...range, start: before?.start ?? range.start });
  }
  return [...byPartition.values()].toSorted((a, b) => a.partition - b.partition);
}
