// A lane: some partitions of a table, read and staged one job after another. A table has as many lanes as there are
// workers to feed, so partitions are decoded side by side while each one's ranges chain.
// Not for: when to run (coordinator.ts), what the table becomes (binding.ts).
import { assert } from '../base/assert.ts';
import type { Clock } from '../base/clock.ts';
import { errorFromShape, FloeError, isFloeError } from '../base/error.ts';
import type { IdSource } from '../base/prng.ts';
import { Mutex } from '../base/queue.ts';
import type {
  OpenLetters,
  StagedRange,
  StageOutcome,
  StageRequest,
  TablesMetadata,
} from '../metadata/tables.ts';
import type { Topic } from '../metadata/topics.ts';
import { lastOffsetDelta } from '../protocol/record-batch.ts';
import type { AppendItem, Log, ReadPartitionResult } from '../storage/log/log.ts';
import type { TableBinding } from './binding.ts';
import type { JobRunner, JobSlice, JobStaged, JobTable, LetterBatch, TableJob } from './job.ts';
import type { TableSettings, TopicConfigs } from './settings/index.ts';
import { formatStagedFiles } from './stage.ts';
import { trouble } from './trouble.ts';
import { ENTRY_BYTES } from './upsert/entries.ts';
import type { UpsertTable } from './upsert/id-columns.ts';
import { upsertOf } from './upsert/table-upserts.ts';

/** Kafka's OFFSET_OUT_OF_RANGE: retention overtook us between look and read. */
const OFFSET_OUT_OF_RANGE = 1;
/** Least that is read of one partition at a time. */
const MIN_SHARE_BYTES = 64 * 2 ** 10;
/** Rounds of asking and running again; each brings what the one before lacked. */
const MAX_ROUNDS = 16;
/** Arrow bytes at which a job ends: one Parquet row group, a few times compressed. */
const MAX_COLUMN_BYTES = 96 * 2 ** 20;
/** Bytes of dead letters at which a job ends, when they go into a table. */
const MAX_LETTER_BYTES = 64 * 2 ** 20;
/** Dead letters of one range that are read back at most; a job that would meet more ends before. */
const MAX_KNOWN_LETTERS = 1_000_000;
/** Attempts to record abandoned files that are being swept, and the time between two. */
const MAX_LEAVINGS = 10;
const LEAVE_AGAIN_MS = 500;
/** Times that a topic of dead letters is looked up anew because it was deleted meanwhile. */
const MAX_PLACINGS = 3;

export interface LaneDeps {
  readonly log: Log;
  readonly tables: TablesMetadata;
  readonly runner: JobRunner;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly settings: TableSettings;
  /** Why a partition takes no records now, as the broker tells clients; missing: all do. @throws FloeError */
  readonly writeStop?: (topic: Topic, partition: number) => string | undefined;
}

/** The table as lanes see it: the coordinator's binding, or one that asks the coordinator for changes. */
export type LaneBinding = Pick<
  TableBinding,
  'identifier' | 'table' | 'jobTable' | 'jobDeadLetters' | 'deadLettersFrom' | 'satisfy'
>;

/** What all lanes of a table share. */
export interface LaneTable {
  readonly topicId: string;
  readonly topicName: string;
  readonly epoch: number;
  readonly configEpoch: number;
  readonly binding: LaneBinding;
  readonly config: TopicConfigs;
  /** Raised by rewinds while lanes run. */
  generation(): number;
  /** Partition id by partition index. */
  partitionId(partition: number): number;
  /** Next offset to stage; undefined for a partition that isn't set up yet. */
  stagedEnd(partition: number): number | undefined;
  setStagedEnd(partition: number, offset: number): void;
  /** What is known of earlier dead letters of a partition. */
  openLetters(partition: number): OpenLetters | undefined;
  /** A stage was refused: what is known may be old. */
  reloadLetters(): Promise<void>;
  /** The topic that dead letters are appended to; it is created when missing. */
  letterTopic(): Promise<Topic>;
  /** A stage entered: its bytes wait to be committed. */
  staged(bytes: number, result: JobStaged): void;
  /** File name prefixes of jobs under way: the sweep leaves them alone. */
  readonly jobsUnderWay: Set<string>;
}

export class Lane {
  readonly #deps: LaneDeps;
  readonly #table: LaneTable;
  readonly #partitions: number[];
  readonly #mutex = new Mutex();
  /** Log bytes per record, learnt: tells how much waits. */
  #recordBytes = 100;

  constructor(deps: LaneDeps, table: LaneTable, partitions: readonly number[]) {
    this.#deps = deps;
    this.#table = table;
    this.#partitions = [...partitions];
  }

  /** Records between staged ends and last stable offsets. */
  pendingRecords(): number {
    let pending = 0;
    for (const partition of this.#partitions) pending += this.#pending(partition);
    return pending;
  }

  /** An estimate, good enough to decide whether a job is worth starting. */
  pendingBytes(): number {
    return this.pendingRecords() * this.#recordBytes;
  }

  /** A partition of this lane is staged less far than one of `targets` says. */
  isShortOf(targets: ReadonlyMap<number, number>): boolean {
    return this.#partitions.some((partition) => {
      const staged = this.#table.stagedEnd(partition);
      return staged !== undefined && staged < (targets.get(partition) ?? 0);
    });
  }

  #pending(partition: number): number {
    const staged = this.#table.stagedEnd(partition);
    const marks = this.#deps.log.watermarks(this.#table.partitionId(partition));
    if (staged === undefined || marks === undefined) return 0;
    return Math.max(0, marks.lastStableOffset - staged);
  }

  /** Runs jobs while `goesOn` says so and records wait. One at a time per lane. */
  run(goesOn: (lane: Lane) => boolean): Promise<void> {
    return this.#mutex.run(async () => {
      while (goesOn(this) && this.pendingRecords() > 0) {
        if (!(await this.#job())) return;
      }
    });
  }

  /** One job, staged. False when nothing came of it: the caller looks again later. */
  async #job(): Promise<boolean> {
    const { log, settings } = this.#deps;
    const wanted = this.#partitions.filter((partition) => this.#pending(partition) > 0);
    const maxBytes = settings['table.job.bytes'];
    const starts = wanted.map((partition) => this.#startOf(partition));
    const read = await log.read({
      partitions: starts.map(({ partition, from }) => ({
        partitionId: this.#table.partitionId(partition),
        offset: from,
        // An even share, so that partitions keep pace with one another.
        maxBytes: Math.max(MIN_SHARE_BYTES, Math.ceil(maxBytes / starts.length)),
      })),
      maxBytes,
      isolation: 'read_committed',
      purpose: 'table',
    });
    try {
      const found = read.partitions.flatMap((result, i) => this.#slice(result, starts[i]!));
      if (found.length === 0) return false;
      const known = await Promise.all(found.map((slice) => this.#withKnownLetters(slice)));
      const slices = await this.#withCommits(known);
      // Whoever was served first is last next time.
      this.#partitions.push(...this.#partitions.splice(0, 1));
      return await this.#runUntilStaged(slices);
    } finally {
      read.release();
    }
  }

  #startOf(partition: number) {
    const staged = this.#table.stagedEnd(partition)!;
    const marks = this.#deps.log.watermarks(this.#table.partitionId(partition))!;
    // M3: what retention took is a gap of the range, said and counted, never a silent jump.
    const from = Math.max(staged, Math.min(marks.logStartOffset, marks.lastStableOffset));
    return { partition, staged, from };
  }

  #slice(
    result: ReadPartitionResult,
    at: { readonly partition: number; readonly staged: number; readonly from: number },
  ): JobSlice[] {
    if (result.errorCode === OFFSET_OUT_OF_RANGE) return [];
    if (result.errorCode !== 0) {
      throw new FloeError(
        'unavailable',
        `reading partition ${at.partition} of ${this.#table.topicName}: Kafka error ${result.errorCode}`,
      );
    }
    if (result.runs.length === 0 && at.from === at.staged) return [];
    const lost = { from: at.staged, to: at.from, reason: 'retention' as const };
    return [
      {
        partition: at.partition,
        start: at.staged,
        limit: result.lastStableOffset,
        deadLettersFrom: this.#deadLettersFrom(at.partition),
        runs: result.runs.map(({ baseOffset, bytes, patched }) => ({ baseOffset, bytes, patched })),
        aborted: result.abortedTransactions,
        ...(at.from > at.staged ? { lost } : {}),
      },
    ];
  }

  /** A table of dead letters says itself how far it is; of those in a topic, each one is known. */
  #deadLettersFrom(partition: number): number {
    const { binding, config } = this.#table;
    const inTable = config['table.topic.errors.tolerance'] === 'dlq_table';
    return inTable ? binding.deadLettersFrom(partition) : 0;
  }

  /** A range that is read again brings no dead letter twice: those it brought before come along. */
  async #withKnownLetters(slice: JobSlice): Promise<JobSlice> {
    const { partition, start: from } = slice;
    const open = this.#table.openLetters(partition);
    if (open === undefined || from >= open.end) return slice;
    const { tables } = this.#deps;
    const range = { partition, from, to: slice.limit };
    const known = await tables.letters(this.#table.topicId, range, MAX_KNOWN_LETTERS);
    if (known.length < MAX_KNOWN_LETTERS) return { ...slice, knownLetters: known };
    return { ...slice, knownLetters: known, limit: known.at(-1)! + 1 };
  }

  /** K1: changes of upsert tables are ordered by the commits that brought them. */
  async #withCommits(slices: readonly JobSlice[]): Promise<readonly JobSlice[]> {
    if (!this.#table.config['table.topic.upsert.enable']) return slices;
    return Promise.all(
      slices.map(async (slice) => {
        const id = this.#table.partitionId(slice.partition);
        const from = slice.lost?.to ?? slice.start;
        return { ...slice, commits: await this.#deps.log.commitSteps(id, from, slice.limit) };
      }),
    );
  }

  async #runUntilStaged(slices: readonly JobSlice[]): Promise<boolean> {
    const { binding, jobsUnderWay } = this.#table;
    const jobId = this.#deps.ids.uuid();
    const generation = this.#table.generation();
    const prefixes = new Set<string>();
    let final = false;
    try {
      for (let round = 0; round < MAX_ROUNDS; round += 1) {
        const job = this.#makeJob(jobId, slices, final);
        const needed = filePrefixes(job);
        for (const prefix of needed) jobsUnderWay.add(prefix);
        await this.#recordIntents(needed, prefixes);
        const result = await this.#deps.runner.run(job);
        switch (result.kind) {
          case 'needs':
            final = !(await binding.satisfy(result));
            break;
          case 'halted':
            throw trouble(
              `record at partition ${result.partition} offset ${result.offset} can't be a row (${result.reason}: ${result.error}) and table.topic.errors.tolerance is none`,
            );
          case 'failed':
            throw errorFromShape(result.error);
          case 'staged':
            this.#learn(slices, result);
            return await this.#stage({ job, result, prefixes: needed, generation });
        }
      }
    } finally {
      for (const prefix of prefixes) jobsUnderWay.delete(prefix);
    }
    throw new FloeError('unavailable', `records need more after ${MAX_ROUNDS} rounds of evolution`);
  }

  /** M2: names are recorded before anything is written under them. */
  async #recordIntents(needed: readonly string[], known: Set<string>): Promise<void> {
    const fresh = needed.filter((prefix) => !known.has(prefix));
    for (const prefix of fresh) known.add(prefix);
    if (fresh.length === 0) return;
    const createdMs = this.#deps.clock.now();
    const { topicId, binding } = this.#table;
    const { namespace, name: table } = binding.identifier;
    const intent = { topicId, createdMs, namespace, table, parent: null };
    await this.#deps.tables.addIntents(fresh.map((prefix) => ({ ...intent, prefix })));
  }

  #makeJob(jobId: string, slices: readonly JobSlice[], final: boolean): TableJob {
    const { binding, config, topicName } = this.#table;
    const table = withUpserts(binding.jobTable(), upsertOf(config, binding));
    const deadLetters = binding.jobDeadLetters();
    return {
      jobId,
      topic: topicName,
      slices,
      config,
      final,
      nowMs: this.#deps.clock.now(),
      maxBatchBytes: this.#deps.settings['table.batch.max.bytes'],
      maxColumnBytes: MAX_COLUMN_BYTES,
      maxLetterBytes: Math.min(this.#deps.log.maxAppendBytes, MAX_LETTER_BYTES),
      ...(table === undefined ? {} : { table }),
      ...(deadLetters === undefined ? {} : { deadLetters }),
    };
  }

  async #stage({
    job,
    result,
    prefixes,
    generation,
  }: {
    readonly job: TableJob;
    readonly result: JobStaged;
    readonly prefixes: readonly string[];
    readonly generation: number;
  }): Promise<boolean> {
    if (result.ranges.length === 0) return false;
    assert(job.table !== undefined, 'T10: a stage was written with a committed schema');
    const files = [...result.data, ...result.deadLetterFiles];
    const written = files.reduce((sum, file) => sum + file.fileSizeInBytes, 0);
    // At least one: a stage without files waits for its commit all the same.
    const bytes = Math.max(1, written + (result.sidecar?.changes ?? 0) * ENTRY_BYTES);
    const request: StageRequest = {
      stageId: job.jobId,
      topicId: this.#table.topicId,
      epoch: this.#table.epoch,
      generation,
      tableUuid: this.#table.binding.table!.metadata['table-uuid'],
      schemaId: job.table.schema['schema-id'],
      specId: job.table.spec['spec-id'],
      configEpoch: this.#table.configEpoch,
      ranges: result.ranges,
      rows: result.rows,
      deadLetters: result.deadLetters,
      skipped: result.skipped,
      bytes,
      filePrefixes: prefixes,
      payload: formatStagedFiles({
        data: result.data,
        deadLetters: result.deadLetterFiles,
        ...(result.sidecar === undefined ? {} : { sidecar: result.sidecar }),
      }),
      nowMs: this.#deps.clock.now(),
      ...(result.letters.length === 0
        ? {}
        : { letters: { place: this.#letterPlace(), of: result.letters } }),
    };
    const outcome =
      result.letterBatches.length === 0
        ? await this.#deps.tables.stage(request)
        : await this.#stageWithLetters(request, result.letterBatches);
    if (outcome.kind === 'refused') await this.#leaveFiles(prefixes);
    return this.#entered(outcome, { result, bytes });
  }

  #letterPlace() {
    const { config } = this.#table;
    return config['table.topic.errors.tolerance'] === 'dlq_topic' ? 'topic' : 'table';
  }

  /** Dead letters and stage in one transaction of the log: both or neither. */
  async #stageWithLetters(
    request: StageRequest,
    batches: readonly LetterBatch[],
  ): Promise<StageOutcome> {
    for (let placing = 0; placing < MAX_PLACINGS; placing += 1) {
      const topic = await this.#table.letterTopic();
      const items = batches.map((batch) => this.#letterItem(batch, topic));
      const outcome = await this.#deps.log.appendWithStage(items, request);
      if (outcome.kind === 'failed') {
        throw new FloeError('unavailable', `dead letters were not appended: ${outcome.message}`);
      }
      if (outcome.kind !== 'unplaced') return outcome;
    }
    throw new FloeError('unavailable', 'the topic of dead letters is deleted again and again');
  }

  /** @throws FloeError (trouble) where an operator has stopped writes: the table waits, no letter is passed over. */
  #letterItem(batch: LetterBatch, topic: Topic): AppendItem {
    const at = batch.partition % topic.partitions.length;
    const stop = this.#deps.writeStop?.(topic, at);
    if (stop !== undefined) throw trouble(`dead letters can't be appended: ${stop}`);
    return letterItem(batch, topic.partitions[at]!);
  }

  /**
   * M2: a sweep of another process may have been at the intents before the files were written: they are recorded again.
   * What a lost answer kept from us may be that they are the table's by now, so only history may say that they go.
   */
  async #leaveFiles(prefixes: readonly string[]): Promise<void> {
    const { tables, clock } = this.#deps;
    const { topicId, binding } = this.#table;
    const { namespace, name: table } = binding.identifier;
    const intent = { topicId, createdMs: clock.now(), namespace, table, parent: '' };
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await tables.addIntents(prefixes.map((prefix) => ({ ...intent, prefix })));
      } catch (caught) {
        // The sweep is at them: it may have looked too early.
        if (!isFloeError(caught, 'conflict') || attempt === MAX_LEAVINGS) throw caught;
      }
      await clock.sleep(LEAVE_AGAIN_MS);
    }
  }

  async #entered(
    outcome: StageOutcome,
    { result, bytes }: { readonly result: JobStaged; readonly bytes: number },
  ): Promise<boolean> {
    if (outcome.kind === 'refused') {
      // Somebody else staged, or rewound: go on from where the store says.
      for (const { partition, stagedEnd } of outcome.positions) {
        if (this.#partitions.includes(partition)) this.#table.setStagedEnd(partition, stagedEnd);
      }
      await this.#table.reloadLetters();
      return false;
    }
    for (const { partition, end } of result.ranges) this.#table.setStagedEnd(partition, end);
    this.#table.staged(bytes, result);
    return true;
  }

  #learn(slices: readonly JobSlice[], { ranges }: { readonly ranges: readonly StagedRange[] }) {
    const offsets = ranges.reduce((sum, range) => sum + range.end - range.start, 0);
    const bytes = slices.reduce(
      (sum, slice) => sum + slice.runs.reduce((part, run) => part + run.bytes.length, 0),
      0,
    );
    if (offsets > 0) this.#recordBytes = Math.max(1, bytes / offsets);
  }
}

function letterItem(batch: LetterBatch, partitionId: number): AppendItem {
  const { bytes, recordCount, maxTimestamp } = batch;
  return {
    partitionId,
    bytes,
    recordCount,
    lastOffsetDelta: lastOffsetDelta(bytes),
    producerId: -1,
    producerEpoch: -1,
    baseSequence: -1,
    maxTimestamp,
    logAppendTimeMs: -1,
  };
}

/** Equal keys mean equal contents, so what makes the key goes into it. */
function withUpserts(table: JobTable | undefined, upsert: UpsertTable | undefined) {
  if (table === undefined || upsert === undefined) return table;
  const { columns, nulls, operationField } = upsert;
  const ids = columns.map(({ fieldId }) => fieldId).join();
  return { ...table, key: `${table.key}/${ids}/${nulls}/${operationField}`, upsert };
}

/** Where a job's files will be: names start with the job's id. */
function filePrefixes({ jobId, table, deadLetters }: TableJob): string[] {
  if (table === undefined) return [];
  const prefixes = [`${table.dataFolder}/${jobId}`];
  if (deadLetters !== undefined) prefixes.push(`${deadLetters.dataFolder}/${jobId}`);
  return prefixes;
}
