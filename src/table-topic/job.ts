// What goes to a table worker and what comes back: plain data that crosses a thread border.
// A job is stateless: log bytes of some partitions and the table as committed in, one staged range out. It may be run
// again, by any worker, until its range is staged; then its number is used up.
import type { ErrorShape } from '../base/error.ts';
import type { ProposedStruct } from '../formats/arrow/proposed-schema.ts';
import type { DataFile } from '../formats/iceberg/types.ts';
import type { RangeGap, StagedLetters, StagedRange } from '../metadata/tables.ts';
import type { CommitSteps } from '../storage/log/log.ts';
import type { FieldMap } from './evolve.ts';
import type { FileTable } from './files.ts';
import type { SystemColumn, TopicConfigs } from './settings/index.ts';
import type { SchemaText } from './sources/source.ts';
import type { SourceKey } from './sources/wire.ts';
import type { DeadLetterReason, DeadLetterStage } from './system-columns.ts';
import type { UpsertTable } from './upsert/id-columns.ts';
import type { SidecarRef } from './upsert/sidecar.ts';

/** Batches of one partition, in shared memory where possible. */
export interface JobSlice {
  /** Partition index. */
  readonly partition: number;
  /** The staged end: the range starts here whatever the batches start with. */
  readonly start: number;
  /** Exclusive; the last stable offset when the batches were read. */
  readonly limit: number;
  /** First offset whose dead letters aren't in the dead-letter table yet. */
  readonly deadLettersFrom: number;
  /** Offsets whose dead letters are kept already, ascending: the range is read again. */
  readonly knownLetters?: readonly number[];
  /** Nothing but the known letters is looked at: they are tried again. */
  readonly onlyLetters?: boolean;
  readonly runs: readonly {
    readonly baseOffset: number;
    readonly bytes: Uint8Array;
    readonly patched: boolean;
  }[];
  readonly aborted: readonly { readonly producerId: number; readonly firstOffset: number }[];
  /** Offsets that retention took before they were staged. */
  readonly lost?: RangeGap;
  /** Which commits of the log brought the records: of upsert tables only (K1). */
  readonly commits?: CommitSteps;
}

/** How values (or keys) of one registered schema become columns, or why they can't. */
export type SourceBinding =
  | {
      readonly kind: 'bound';
      readonly text: SchemaText;
      readonly bindings: ReadonlyMap<string, number>;
    }
  /** A Protobuf file: its messages are bound one by one. */
  | { readonly kind: 'messages' }
  | { readonly kind: 'refused'; readonly reason: DeadLetterReason; readonly error: string };

/** By source key, see sources/wire.ts. */
export type Sources = ReadonlyMap<SourceKey, SourceBinding>;

/** The committed table that a job writes for. */
export interface JobTable extends FileTable {
  /** Equal keys mean equal contents: what a worker keeps compiled decoders and buffers under. */
  readonly key: string;
  /** Name for dead letters: `namespace.table`. */
  readonly name: string;
  /** Absolute URI without trailing slash. */
  readonly dataFolder: string;
  /** Field ids of the system columns that the table has. */
  readonly system: Partial<Readonly<Record<SystemColumn, number>>>;
  /** Field ids of JSON paths, or of `_kafka_value`; by_schema_id has its own in `values`. */
  readonly bindings: ReadonlyMap<string, number>;
  /** The field map as it stands in the table's property: with what was dropped, and further types of a path. */
  readonly fields: FieldMap;
  readonly values: Sources;
  readonly keys: Sources;
  /** Of an upsert table: what makes two records the same row. */
  readonly upsert?: UpsertTable;
}

export interface DeadLetterTable extends FileTable {
  readonly key: string;
  readonly dataFolder: string;
}

export type JobConfig = Pick<
  TopicConfigs,
  | 'table.topic.convert.value.type'
  | 'table.topic.convert.key.type'
  | 'table.topic.transform.value.type'
  | 'table.topic.errors.tolerance'
  | 'table.topic.max.partitions.per.commit'
  | 'table.topic.columns.include'
  | 'table.topic.columns.exclude'
  | 'table.topic.json.max.columns'
  | 'table.topic.json.infer.timestamps'
  | 'table.topic.types.time'
  | 'table.topic.types.nanos'
  | 'table.topic.evolution.incompatible'
>;

export interface TableJob {
  /** Names the job's files and its stage. */
  readonly jobId: string;
  readonly topic: string;
  readonly slices: readonly JobSlice[];
  readonly config: JobConfig;
  /** Missing: only look at the records and say what they need. */
  readonly table?: JobTable;
  readonly deadLetters?: DeadLetterTable;
  /** The table won't change for this job any more: what finds no place is a dead letter. */
  readonly final: boolean;
  /** Nothing is written: only what the records do by their keys is wanted (upsert tables). */
  readonly keysOnly?: boolean;
  /** Files come back as bytes instead of going to the warehouse: a query's. */
  readonly inline?: boolean;
  readonly nowMs: number;
  readonly maxBatchBytes: number;
  /** Bytes of column buffers at which the job ends early. */
  readonly maxColumnBytes: number;
  /** Bytes of dead letters at which it does: what one append takes when they go to a topic. */
  readonly maxLetterBytes: number;
}

/** What must exist before the job can be run again. */
export interface JobNeeds {
  readonly kind: 'needs';
  /** Registered schemas that values and keys were written with and the table doesn't know. */
  readonly valueSchemas: readonly SourceKey[];
  readonly keySchemas: readonly SourceKey[];
  /** Columns that JSON values would like. */
  readonly columns?: ProposedStruct;
  /** Columns of schemas that values brought along. */
  readonly schemas?: readonly ProposedStruct[];
  readonly deadLetterTable: boolean;
}

/** Records of one partition of the source, as they are appended. */
export interface LetterBatch {
  /** Of the source topic. */
  readonly partition: number;
  readonly bytes: Uint8Array;
  readonly recordCount: number;
  readonly maxTimestamp: number;
}

export interface JobStaged {
  readonly kind: 'staged';
  /** Actual ends; slices that were not reached are missing. */
  readonly ranges: readonly StagedRange[];
  readonly data: readonly DataFile[];
  readonly deadLetterFiles: readonly DataFile[];
  /** Of an upsert table whose rows change. */
  readonly sidecar?: SidecarRef;
  /** Dead letters for a topic, appended with the stage. */
  readonly letterBatches: readonly LetterBatch[];
  /** Offsets of the dead letters that are new with this stage. */
  readonly letters: readonly StagedLetters[];
  /** Of letters that were tried again: those that still are no rows. */
  readonly stillLetters?: readonly StagedLetters[];
  readonly rows: number;
  readonly deadLetters: number;
  readonly skipped: number;
}

/** `errors.tolerance=none` met a record that can't be a row. */
export interface JobHalted {
  readonly kind: 'halted';
  readonly partition: number;
  readonly offset: number;
  readonly stage: DeadLetterStage;
  readonly reason: DeadLetterReason;
  readonly error: string;
}

/** Of a job for keys only. */
export interface JobKeys {
  readonly kind: 'keys';
  /** Exclusive end of what was read of the one slice. */
  readonly end: number;
  /** As upsert/sidecar.ts encodes it. */
  readonly sidecar: Uint8Array | undefined;
}

/** Of an inline job. */
export interface JobInline {
  readonly kind: 'inline';
  readonly ranges: readonly StagedRange[];
  readonly files: readonly { readonly file: DataFile; readonly bytes: Uint8Array }[];
  readonly sidecar: Uint8Array | undefined;
}

export interface JobFailed {
  readonly kind: 'failed';
  readonly error: ErrorShape;
}

export type JobResult = JobNeeds | JobStaged | JobKeys | JobInline | JobHalted | JobFailed;

/** What runs jobs: a worker in this thread, or a pool of threads. */
export interface JobRunner {
  run(job: TableJob): Promise<JobResult>;
  /** A job will come soon. */
  warm?(): void;
}
