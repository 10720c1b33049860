// One round of a table's commits: what is staged, dead letters first, then rows; then the store told what the table
// holds. Not for: when, and what to do about a table that moved (coordinator.ts); one commit (commit.ts).
import { FloeError } from '../base/error.ts';
import type { Metrics } from '../base/metrics.ts';
import { metadataFolder } from '../formats/iceberg/index.ts';
import type { Stage, TablesMetadata } from '../metadata/tables.ts';
import type { Topic } from '../metadata/topics.ts';
import type { Log } from '../storage/log/log.ts';
import type { TableBinding } from './binding.ts';
import {
  type CommitOutcome,
  type Committed,
  type CommitterDeps,
  TableCommitter,
} from './commit.ts';
import type { JobRunner, JobTable } from './job.ts';
import type { PlannedStage, TableRole } from './plan.ts';
import { resolveTopicConfigs, type TableSettings } from './settings/index.ts';
import { parseStagedFiles, type StagedFiles } from './stage.ts';
import { committedFloor } from './upsert/floor.ts';
import { readHistory } from './upsert/history-reader.ts';
import type { KeyIndexes } from './upsert/key-index.ts';
import { TableUpserts, upsertOf } from './upsert/table-upserts.ts';
import { LETTERS_PARENT, type Offsets } from './watermark.ts';

/** Stages that one commit looks at; the rest follow in the next. */
export const STAGES_PER_COMMIT = 1_000;

export interface TableCommitsDeps extends Omit<CommitterDeps, 'settings'> {
  readonly tables: TablesMetadata;
  readonly log: Log;
  /** Key indexes of upsert tables. */
  readonly keys: KeyIndexes;
  readonly runner: JobRunner;
  readonly metrics: Metrics;
  readonly settings: TableSettings;
}

export type Refused = Exclude<CommitOutcome, { kind: 'committed' }>;

export type CommitRound =
  | { readonly kind: 'idle' }
  | { readonly kind: 'refused'; readonly outcome: Refused }
  | {
      readonly kind: 'done';
      readonly outcome: Committed;
      /** Bytes of the stages that left. */
      readonly bytes: number;
      /** More was staged than one snapshot takes. */
      readonly more: boolean;
    };

export interface RoundRequest {
  readonly binding: TableBinding;
  readonly epoch: number;
  readonly signal: AbortSignal;
}

interface ParsedStage {
  readonly stage: Stage;
  readonly files: StagedFiles;
}

export class TableCommits {
  readonly #deps: TableCommitsDeps;
  readonly #topic: Topic;
  #committers: Partial<Record<TableRole, TableCommitter>> = {};
  /** Monotonic. */
  #checkpointAtMs: number;

  constructor(deps: TableCommitsDeps, topic: Topic) {
    this.#deps = deps;
    this.#topic = topic;
    this.#checkpointAtMs = deps.clock.monotonic() + deps.settings['table.keys.checkpoint.ms'];
  }

  /** The table was looked up anew: it may be another one. */
  forget(): void {
    this.#committers = {};
  }

  async round(request: RoundRequest): Promise<CommitRound> {
    const { tables } = this.#deps;
    const { binding } = request;
    const stages = await tables.stages(this.#topic.topicId, STAGES_PER_COMMIT);
    if (stages.length === 0 || binding.table === undefined) return { kind: 'idle' };
    const parsed = stages.map((stage) => ({ stage, files: parseStagedFiles(stage.payload) }));
    // Dead letters first: a record that is missing from both tables would be lost without a trace.
    const letters = await this.#deadLetters(parsed, request);
    if (letters !== undefined && letters.kind !== 'committed') {
      return { kind: 'refused', outcome: letters };
    }
    if (letters !== undefined) binding.observeDeadLetters(letters.metadata, letters.offsets);
    const planned = parsed.map(({ stage, files }) => ({
      ...asPlanned(stage, 'data', files.data),
      ...(files.sidecar === undefined ? {} : { sidecar: files.sidecar }),
    }));
    const outcome = await this.#send('data', planned, request);
    if (outcome.kind !== 'committed') return { kind: 'refused', outcome };
    binding.observe(outcome.metadata);
    const gone = new Set(outcome.sequences);
    const done = planned.filter((stage) => gone.has(stage.sequence));
    const spent = spentFiles(done, outcome);
    await this.#noteSpent(spent, binding);
    await this.#markCommitted(outcome, request.epoch);
    await this.#drop(spent.files);
    this.#checkpoint(binding);
    const left = stages.filter((stage) => gone.has(stage.sequence));
    return {
      kind: 'done',
      outcome,
      bytes: left.reduce((sum, stage) => sum + stage.bytes, 0),
      more: left.length > 0 && stages.length > left.length,
    };
  }

  async #deadLetters(
    parsed: readonly ParsedStage[],
    request: RoundRequest,
  ): Promise<CommitOutcome | undefined> {
    const planned = parsed
      .filter(({ files }) => files.deadLetters.length > 0)
      .map(({ stage, files }) => asPlanned(stage, 'deadLetters', files.deadLetters));
    return planned.length === 0 ? undefined : this.#send('deadLetters', planned, request);
  }

  #send(
    role: TableRole,
    stages: readonly PlannedStage[],
    { binding, epoch, signal }: RoundRequest,
  ): Promise<CommitOutcome> {
    const { tables, clock } = this.#deps;
    const { topicId } = this.#topic;
    const config = resolveTopicConfigs(this.#topic.config);
    const upserts = role === 'data' ? this.#upserts(binding) : undefined;
    return this.#committer(role, binding).commit({
      ...(upserts === undefined ? {} : { upserts }),
      stages,
      epoch,
      signal,
      maxPartitions: config['table.topic.max.partitions.per.commit'],
      onFiles: (prefixes, parent) => {
        const { namespace, name: table } =
          role === 'data' ? binding.identifier : binding.deadLetterIdentifier;
        const intent = {
          topicId,
          createdMs: clock.now(),
          namespace,
          table,
          parent,
        };
        return tables.addIntents(prefixes.map((prefix) => ({ ...intent, prefix })));
      },
      onFilesSettled: (prefixes) => tables.dropIntents(prefixes),
      onAttempt: (sequences, parent) =>
        tables.markAttempted(topicId, epoch, {
          sequences,
          parent: role === 'data' ? parent : `${LETTERS_PARENT}${parent}`,
        }),
    });
  }

  /** K3: now and then the key index goes to the object store, beside the next commits' work. */
  #checkpoint(binding: TableBinding): void {
    const { keys, clock, settings, logger } = this.#deps;
    const table = binding.table?.metadata;
    const on = resolveTopicConfigs(this.#topic.config)['table.topic.upsert.enable'];
    if (!on || table === undefined || clock.monotonic() < this.#checkpointAtMs) return;
    this.#checkpointAtMs = clock.monotonic() + settings['table.keys.checkpoint.ms'];
    const request = { tableUuid: table['table-uuid'], folder: metadataFolder(table) };
    keys.checkpoint(request).catch((caught: unknown) => {
      logger.warn({ error: FloeError.from(caught).message }, 'no checkpoint of the key index');
    });
  }

  /** What has served once its stage is committed is the sweep's from then on, if it comes to that (M2). */
  async #noteSpent({ files, doubtful }: SpentFiles, binding: TableBinding): Promise<void> {
    if (files.length + doubtful.length === 0) return;
    const { namespace, name: table } = binding.identifier;
    const createdMs = this.#deps.clock.now();
    const intent = { topicId: this.#topic.topicId, createdMs, namespace, table };
    await this.#deps.tables.addIntents([
      ...files.map((prefix) => ({ ...intent, prefix, parent: null })),
      // Whoever asserted that the table was empty is proven out: all that counts is whether a snapshot names them.
      ...doubtful.map((prefix) => ({ ...intent, prefix, parent: '' })),
    ]);
  }

  async #drop(paths: readonly string[]): Promise<void> {
    if (paths.length === 0) return;
    try {
      await this.#deps.warehouse.delete(paths);
      await this.#deps.tables.dropIntents(paths);
    } catch (caught) {
      const { message } = FloeError.from(caught);
      this.#deps.logger.warn({ error: message }, 'spent files are left to the sweep');
    }
  }

  /** Undefined for a table that only grows. @throws FloeError `invalid` when the key is none. */
  #upserts(binding: TableBinding): TableUpserts | undefined {
    const table = binding.jobTable()!;
    const upsert = upsertOf(resolveTopicConfigs(this.#topic.config), binding);
    if (upsert === undefined) return undefined;
    const { keys, metrics, logger } = this.#deps;
    const { partition, offset } = table.system;
    return new TableUpserts({
      indexes: keys,
      upsert,
      order: { partition, offset },
      floor: (offsets) => committedFloor(this.#deps.log, this.#topic.partitions, offsets),
      metrics,
      history: (topics) => this.#history(topics.get(this.#topic.topicId), { ...table, upsert }),
      logger,
    });
  }

  /** Committed changes whose order the key index has lost. */
  async #history(offsets: Offsets | undefined, table: JobTable): Promise<Uint8Array[]> {
    if (offsets === undefined) return [];
    const { log } = this.#deps;
    const { partitions, name: topic, config } = this.#topic;
    return readHistory(this.#deps, {
      topic,
      partitions,
      offsets,
      floor: await committedFloor(log, partitions, offsets),
      table: { ...table, key: `${table.key}/history` },
      config: resolveTopicConfigs(config),
    });
  }

  #committer(role: TableRole, binding: TableBinding): TableCommitter {
    const table = role === 'data' ? binding.table! : binding.deadLetterTable!;
    return (this.#committers[role] ??= new TableCommitter(this.#deps, {
      identifier: table.identifier,
      topicId: this.#topic.topicId,
      role,
      tableUuid: table.metadata['table-uuid'],
    }));
  }

  #markCommitted(outcome: Committed, epoch: number): Promise<void> {
    const { tables, clock } = this.#deps;
    const { snapshotId, files } = outcome;
    const made = { files, nowMs: clock.now(), snapshotId: String(snapshotId) };
    return tables.markCommitted({
      topicId: this.#topic.topicId,
      epoch,
      sequences: outcome.sequences,
      positions: [...outcome.offsets].map(([partition, committedEnd]) => ({
        partition,
        committedEnd,
      })),
      ...(snapshotId === undefined ? {} : { commit: made }),
    });
  }
}

interface SpentFiles {
  /** In no snapshot, ever. */
  readonly files: readonly string[];
  /** In a snapshot, or left out by a commit that an earlier life made. */
  readonly doubtful: readonly string[];
}

/** Sidecars, and data files all of whose rows were superseded within their commit. */
function spentFiles(done: readonly PlannedStage[], outcome: Committed): SpentFiles {
  const sidecars = done.flatMap(({ sidecar }) => (sidecar === undefined ? [] : [sidecar.path]));
  const inherited = new Set(outcome.inherited);
  const doubtful = done
    .filter(({ sequence, sidecar }) => sidecar !== undefined && inherited.has(sequence))
    .flatMap(({ files }) => files.map((file) => file.filePath));
  return { files: [...sidecars, ...outcome.leftOut], doubtful };
}

/** A stage as the table of one role sees it. */
function asPlanned(stage: Stage, role: TableRole, files: PlannedStage['files']): PlannedStage {
  return {
    sequence: stage.sequence,
    schemaId: stage.schemaId,
    files,
    ranges: stage.ranges
      .map(({ partition, start, end, deadLettersFrom }) => ({
        partition,
        start: role === 'data' ? start : deadLettersFrom,
        end,
      }))
      .filter((range) => range.end > range.start),
  };
}
