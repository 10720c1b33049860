// One round of a table's commits: what is staged, dead letters first, then rows; then the store told what the table
// holds. Not for: when, and what to do about a table that moved (coordinator.ts); one commit (commit.ts).
import type { Stage, TablesMetadata } from '../metadata/tables.ts';
import type { Topic } from '../metadata/topics.ts';
import type { TableBinding } from './binding.ts';
import {
  type CommitOutcome,
  type Committed,
  type CommitterDeps,
  TableCommitter,
} from './commit.ts';
import type { PlannedStage, TableRole } from './plan.ts';
import { resolveTopicConfigs } from './settings.ts';
import { parseStagedFiles, type StagedFiles } from './stage.ts';
import { LETTERS_PARENT } from './watermark.ts';

/** Stages that one commit looks at; the rest follow in the next. */
export const STAGES_PER_COMMIT = 1_000;

export interface TableCommitsDeps extends CommitterDeps {
  readonly tables: TablesMetadata;
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

  constructor(deps: TableCommitsDeps, topic: Topic) {
    this.#deps = deps;
    this.#topic = topic;
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
    const planned = parsed.map(({ stage, files }) => asPlanned(stage, 'data', files.data));
    const outcome = await this.#send('data', planned, request);
    if (outcome.kind !== 'committed') return { kind: 'refused', outcome };
    binding.observe(outcome.metadata);
    await this.#markCommitted(outcome, request.epoch);
    const gone = new Set(outcome.sequences);
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
    return this.#committer(role, binding).commit({
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
          parent: asText(parent),
        };
        return tables.addIntents(prefixes.map((prefix) => ({ ...intent, prefix })));
      },
      onFilesSettled: (prefixes) => tables.dropIntents(prefixes),
      onAttempt: (sequences, parent) =>
        tables.markAttempted(topicId, epoch, {
          sequences,
          parent: role === 'data' ? asText(parent) : `${LETTERS_PARENT}${asText(parent)}`,
        }),
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

const asText = (snapshotId: bigint | undefined) =>
  snapshotId === undefined ? '' : String(snapshotId);

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
