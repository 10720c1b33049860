// One table's commits: load, derive, prepare, commit, and find out what happened (rules T2–T6).
// Before every attempt the table is loaded and the plan derived afresh; a prepared snapshot is never rebased. An
// attempt whose outcome is unknown is remembered until the table's history proves it in or out; only what is
// proven out is deleted.
// Not for: reading the log, staging, evolution, or when to commit (coordinator.ts).
import type { Clock } from '../base/clock.ts';
import { FloeError, isFloeError } from '../base/error.ts';
import type { Logger } from '../base/log.ts';
import type { IdSource, Prng } from '../base/prng.ts';
import type { Catalog, CommitTableRequest, TableIdentifier } from '../catalog/catalog.ts';
import type { Warehouse } from '../catalog/index.ts';
import { newSnapshotId, type PreparedObject, prepareCommit } from '../formats/iceberg/index.ts';
import type { TableMetadata } from '../formats/iceberg/types.ts';
import { type CommitPlan, type PlannedStage, planCommit, type TableRole } from './plan.ts';
import { retryDelayMs } from './retry-delay.ts';
import type { TableUpserts, UpsertDraft } from './upsert/table-upserts.ts';
import {
  assertedMain,
  COMMIT_ID_SUMMARY,
  EPOCH_SUMMARY,
  formatRanges,
  formatWatermark,
  holdsCommit,
  movedPast,
  NO_SNAPSHOT,
  type Offsets,
  parseWatermark,
  RANGES_SUMMARY,
  TOPIC_SUMMARY,
  WATERMARK_PROPERTY,
  WATERMARK_TAG,
  type Watermark,
} from './watermark.ts';

export interface CommitterDeps {
  readonly catalog: Catalog;
  readonly warehouse: Warehouse;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly ids: IdSource;
  readonly logger: Logger;
  readonly settings: {
    readonly 'table.commit.attempts': number;
    readonly 'table.retry.first.ms': number;
    readonly 'table.retry.max.ms': number;
  };
}

export interface CommitRequest {
  readonly stages: readonly PlannedStage[];
  readonly epoch: number;
  readonly maxPartitions: number;
  /** Of an upsert table: what the stages' changes do to the snapshot that will be asserted. */
  readonly upserts?: TableUpserts;
  /** Records the names of the files about to be written (M2), and what the commit will assert (`assertedMain`). */
  readonly onFiles: (prefixes: readonly string[], parent: string) => Promise<void>;
  /** Those files are the table's, or deleted. */
  readonly onFilesSettled: (prefixes: readonly string[]) => Promise<void>;
  /** Called before a commit request holding these stages is sent (T5). */
  readonly onAttempt: (sequences: readonly number[], parent: string) => Promise<void>;
  readonly signal?: AbortSignal;
}

export interface Committed {
  readonly kind: 'committed';
  /** Sequences that the table holds now. */
  readonly sequences: readonly number[];
  /** Next offset to commit, by partition, of this topic. */
  readonly offsets: Offsets;
  /** Set when rows were added, by this call or by an attempt of before that turned out to have landed. */
  readonly snapshotId?: bigint;
  readonly files: number;
  readonly metadata: TableMetadata;
  /** Staged data files without a live row, which entered no snapshot: superseded within their own commit. */
  readonly leftOut: readonly string[];
  /** Of `sequences`, those that an earlier life brought in: which of their files it left out, the table knows. */
  readonly inherited: readonly number[];
}

export type CommitOutcome = Committed | Exclude<CommitPlan, { kind: 'commit' | 'nothing' }>;

/** A request whose answer never came. */
interface OpenAttempt {
  readonly commitId: string;
  readonly parent: bigint | undefined;
  readonly snapshotId: bigint | undefined;
  readonly files: number;
  readonly objects: readonly string[];
  readonly prefixes: readonly string[];
  readonly sequences: readonly number[];
  readonly leftOut: readonly string[];
}

type Ready = Extract<CommitPlan, { kind: 'commit' }>;

interface Draft extends OpenAttempt {
  readonly request: CommitTableRequest;
  readonly bodies: readonly PreparedObject[];
  /** Of the snapshot; 0 when none is made. */
  readonly sequenceNumber: number;
  readonly upserts?: UpsertDraft;
}

export class TableCommitter {
  readonly #deps: CommitterDeps;
  readonly #identifier: TableIdentifier;
  readonly #topicId: string;
  readonly #role: TableRole;
  readonly #tableUuid: string;
  #open: OpenAttempt[] = [];
  /** What an attempt of unknown outcome turned out to have added, for the counters. */
  #landed: OpenAttempt | undefined;
  /** Sequences that attempts of this life brought in, and what those left out, until told. */
  readonly #brought = new Set<number>();
  readonly #leftOut: string[] = [];

  constructor(
    deps: CommitterDeps,
    table: {
      readonly identifier: TableIdentifier;
      readonly topicId: string;
      readonly role: TableRole;
      readonly tableUuid: string;
    },
  ) {
    this.#deps = deps;
    this.#identifier = table.identifier;
    this.#topicId = table.topicId;
    this.#role = table.role;
    this.#tableUuid = table.tableUuid;
  }

  /**
   * Brings the stages into the table, as far as `maxPartitions` allows in one snapshot.
   * @throws FloeError `unavailable` or `timeout` when the attempts are used up, and what else the catalog refuses.
   */
  async commit(request: CommitRequest): Promise<CommitOutcome> {
    const { settings, clock } = this.#deps;
    let last: FloeError | undefined;
    for (let attempt = 1; attempt <= settings['table.commit.attempts']; attempt += 1) {
      if (attempt > 1) {
        await clock.sleep(retryDelayMs(this.#deps, attempt - 1), request.signal);
      }
      const result = await this.#attempt(request);
      if (!(result instanceof FloeError)) return result;
      last = result;
      this.#deps.logger.warn(
        { table: this.#identifier, attempt, code: result.code, error: result.message },
        'commit not made yet',
      );
    }
    throw last ?? new FloeError('unavailable', 'no commit attempt was allowed');
  }

  /** One attempt, derived afresh (T4). A FloeError returned is worth another; a thrown one isn't. */
  async #attempt(request: CommitRequest): Promise<CommitOutcome | FloeError> {
    let metadata: TableMetadata;
    try {
      metadata = (await this.#deps.catalog.loadTable(this.#identifier)).metadata;
    } catch (caught) {
      return retryableOrThrow(caught);
    }
    await this.#settle(metadata, request);
    const plan = planCommit({
      metadata,
      topicId: this.#topicId,
      role: this.#role,
      tableUuid: this.#tableUuid,
      ...request,
      ...(request.upserts === undefined ? {} : { idFields: request.upserts.idFields }),
    });
    if (plan.kind === 'nothing') return this.#found(metadata, plan.done, plan.offsets);
    if (plan.kind !== 'commit') return plan;
    return this.#send(metadata, plan, request);
  }

  async #send(
    metadata: TableMetadata,
    plan: Ready,
    request: CommitRequest,
  ): Promise<CommitOutcome | FloeError> {
    const parent = assertedMain(metadata);
    let draft: Draft;
    try {
      draft = await this.#prepare(metadata, plan, request);
      await request.onFiles(draft.prefixes, parent);
      for (const { path, bytes } of draft.bodies) await this.#deps.warehouse.write(path, bytes);
    } catch (caught) {
      // Nothing was sent: what was written is swept by its intents.
      return retryableOrThrow(caught);
    }
    await request.onAttempt(plan.adding, parent);
    let after: TableMetadata;
    try {
      const made = await this.#deps.catalog.commitTable(this.#identifier, draft.request);
      after = made.metadata;
    } catch (caught) {
      return this.#failed(draft, FloeError.from(caught), request);
    }
    // From here on the table has it: whatever fails now is no answer of the catalog (T5).
    this.#note(draft);
    // K3: the index moves after the table, never before.
    const offsets = plan.topics.get(this.#topicId)!;
    if (draft.upserts !== undefined) {
      await request.upserts!.landed(draft.upserts, {
        tableUuid: this.#tableUuid,
        commitId: draft.commitId,
        snapshotId: draft.snapshotId ?? draft.parent,
        sequenceNumber: draft.sequenceNumber,
        offsets,
      });
    }
    await this.#settled(draft, request);
    return this.#found(after, [...plan.done, ...plan.adding], offsets);
  }

  /** Its files are the table's. Intents that can't be dropped now are by the sweep, which finds them named. */
  async #settled({ prefixes }: OpenAttempt, { onFilesSettled }: CommitRequest): Promise<void> {
    try {
      await onFilesSettled(prefixes);
    } catch (caught) {
      const { message } = FloeError.from(caught);
      this.#deps.logger.warn(
        { table: this.#identifier, error: message },
        'names of committed files are left to the sweep',
      );
    }
  }

  async #failed(draft: Draft, error: FloeError, request: CommitRequest): Promise<FloeError> {
    if (isFloeError(error, 'conflict', 'invalid', 'unauthorized', 'unsupported', 'not-found')) {
      // T5: the catalog answered this very request with a refusal.
      await this.#discard(draft, request);
      if (error.code === 'conflict') return error;
      throw error;
    }
    this.#open.push(draft);
    if (isFloeError(error, 'cancelled')) throw error;
    return error;
  }

  async #prepare(metadata: TableMetadata, plan: Ready, commit: CommitRequest): Promise<Draft> {
    const { ids, clock, warehouse } = this.#deps;
    const { epoch } = commit;
    const commitId = ids.uuid();
    const upserts = await commit.upserts?.prepare(metadata, { commitId, ...plan });
    const added = upserts?.changes.added ?? plan.files;
    const removed = upserts?.changes.removed ?? [];
    const kept = new Set(added.map((file) => file.filePath));
    const base = {
      commitId,
      parent: plan.parent,
      files: plan.files.length,
      sequences: plan.adding,
      leftOut: plan.files.map((file) => file.filePath).filter((path) => !kept.has(path)),
      ...(upserts === undefined ? {} : { upserts }),
    };
    const properties = upserts?.properties ?? {};
    if (added.length + removed.length === 0) {
      const request = this.#watermarkOnly(metadata, plan, { commitId, epoch, properties });
      const nothing = { objects: [], prefixes: [], bodies: [], sequenceNumber: 0 };
      return { ...base, ...nothing, snapshotId: undefined, request };
    }
    const snapshotId = newSnapshotId(ids, metadata);
    const prepared = await prepareCommit({
      metadata,
      io: warehouse,
      snapshotId,
      commitUuid: commitId,
      nowMs: clock.now(),
      added,
      removed,
      summary: {
        ...upserts?.summary,
        [COMMIT_ID_SUMMARY]: commitId,
        [EPOCH_SUMMARY]: String(epoch),
        [TOPIC_SUMMARY]: this.#topicId,
        [RANGES_SUMMARY]: formatRanges(plan.ranges),
      },
    });
    const watermark: Watermark = {
      commitId,
      topicId: this.#topicId,
      epoch,
      snapshotId,
      sequenceNumber: prepared.snapshot['sequence-number'] ?? 0,
      topics: plan.topics,
    };
    const { sequenceNumber } = watermark;
    const bodies = [...(upserts?.changes.objects ?? []), ...prepared.objects];
    const objects = bodies.map((object) => object.path);
    return {
      ...base,
      snapshotId,
      sequenceNumber,
      objects,
      // Every file of the attempt by its full name: two kinds of name, one of them known only now.
      prefixes: objects,
      bodies,
      request: {
        requirements: prepared.requirements,
        updates: [
          ...prepared.updates,
          {
            action: 'set-snapshot-ref',
            'ref-name': WATERMARK_TAG,
            type: 'tag',
            'snapshot-id': snapshotId,
          },
          setWatermark(watermark, properties),
        ],
      },
    };
  }

  /** Offsets without rows (all dead letters, skipped or aborted): the property moves, no snapshot is made. */
  #watermarkOnly(
    metadata: TableMetadata,
    plan: Ready,
    commit: {
      readonly commitId: string;
      readonly epoch: number;
      readonly properties: Readonly<Record<string, string>>;
    },
  ): CommitTableRequest {
    const { commitId, epoch, properties } = commit;
    const watermark: Watermark = {
      commitId,
      topicId: this.#topicId,
      epoch,
      snapshotId: plan.before?.snapshotId ?? NO_SNAPSHOT,
      sequenceNumber: plan.before?.sequenceNumber ?? 0,
      topics: plan.topics,
    };
    return {
      requirements: [
        { type: 'assert-table-uuid', uuid: metadata['table-uuid'] },
        { type: 'assert-ref-snapshot-id', ref: 'main', 'snapshot-id': plan.parent ?? null },
        {
          type: 'assert-current-schema-id',
          'current-schema-id': metadata['current-schema-id'],
        },
      ],
      updates: [setWatermark(watermark, properties)],
    };
  }

  /** What became of earlier attempts, as far as this table's history tells (T5). */
  async #settle(metadata: TableMetadata, request: CommitRequest): Promise<void> {
    const still: OpenAttempt[] = [];
    for (const attempt of this.#open) {
      if (landed(metadata, attempt)) {
        this.#note(attempt);
        await this.#settled(attempt, request);
      } else if (movedPast(metadata, attempt.parent)) await this.#discard(attempt, request);
      else still.push(attempt);
    }
    this.#open = still;
  }

  async #discard(attempt: OpenAttempt, request: CommitRequest): Promise<void> {
    try {
      await this.#deps.warehouse.delete(attempt.objects);
      await request.onFilesSettled(attempt.prefixes);
    } catch (caught) {
      // The sweep comes by again: their intents are still there.
      this.#deps.logger.warn(
        { table: this.#identifier, error: FloeError.from(caught).message },
        'files of a refused commit are left to the sweep',
      );
    }
  }

  #note(attempt: OpenAttempt): void {
    this.#landed = attempt;
    for (const sequence of attempt.sequences) this.#brought.add(sequence);
    this.#leftOut.push(...attempt.leftOut);
  }

  #found(metadata: TableMetadata, sequences: readonly number[], offsets: Offsets): Committed {
    const made = this.#landed;
    this.#landed = undefined;
    const inherited = sequences.filter((sequence) => !this.#brought.has(sequence));
    this.#brought.clear();
    return {
      kind: 'committed',
      leftOut: this.#leftOut.splice(0),
      inherited,
      sequences,
      offsets,
      files: made?.files ?? 0,
      metadata,
      ...(made?.snapshotId === undefined ? {} : { snapshotId: made.snapshotId }),
    };
  }
}

const setWatermark = (watermark: Watermark, properties: Readonly<Record<string, string>>) => ({
  action: 'set-properties',
  updates: { ...properties, [WATERMARK_PROPERTY]: formatWatermark(watermark) },
});

function landed(metadata: TableMetadata, attempt: OpenAttempt): boolean {
  if (holdsCommit(metadata, attempt.commitId)) return true;
  const text = metadata.properties?.[WATERMARK_PROPERTY];
  return text !== undefined && parseWatermark(text).commitId === attempt.commitId;
}

/** What the outside world may get over by itself comes back as a value. */
function retryableOrThrow(caught: unknown): FloeError {
  const error = FloeError.from(caught);
  if (isFloeError(error, 'unavailable', 'timeout', 'conflict')) return error;
  throw error;
}
