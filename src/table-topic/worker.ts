// A table worker: a plain async object that turns a job's records into Parquet files and a staged range.
// It runs in a thread (worker-thread.ts) or, in tests and simulation, in the caller's. It decides nothing about the
// table: what it lacks it asks for (`needs`), and it writes with committed schema ids only (rule T10).
// Not for: reading the log, staging, committing.
import { AssertionError } from '../base/assert.ts';
import { errorToShape, FloeError } from '../base/error.ts';
import { type PartitionGroup, partitionRows } from '../formats/arrow/partition.ts';
import type { TableColumns } from '../formats/arrow/table-columns.ts';
import type { DataFile } from '../formats/iceberg/types.ts';
import type { StagedLetters, StagedRange } from '../metadata/tables.ts';
import { RecordCursor } from '../protocol/record-cursor.ts';
import { walkSlice } from './batches.ts';
import { DeadLetters, type LetterSink } from './dead-letters.ts';
import { FileBuilder, type FileWriter, type WrittenFile } from './files.ts';
import type {
  JobHalted,
  JobInline,
  JobKeys,
  JobNeeds,
  JobResult,
  JobRunner,
  JobSlice,
  JobStaged,
  JobTable,
  TableJob,
} from './job.ts';
import { collectNeeds } from './needs.ts';
import { RowBuilder } from './rows.ts';
import { isLetter, TopicLetters } from './topic-letters.ts';
import { type Unwritable, unencodableRows, unfitPartitions } from './unwritable.ts';
import { encodeSidecar, type Sidecar, type SidecarRef } from './upsert/sidecar.ts';

/** Tables whose decoders and buffers a worker keeps; the least recently used goes. */
const KEPT_TABLES = 4;

/** Behind the job's prefix: its data files have numbers there. */
const SIDECAR_SUFFIX = '-keys.bin';

/** Rows between two looks at how large the buffers are: the look walks all columns. */
const MEASURE_ROWS = 1_000;

export class TableWorker implements JobRunner {
  readonly #write: FileWriter;
  readonly #files: FileBuilder;
  /** Encodes like the other and writes nothing. */
  readonly #probe: FileBuilder;
  readonly #cursor = new RecordCursor();
  readonly #prepared = new Map<string, RowBuilder>();

  constructor(write: FileWriter) {
    this.#write = write;
    this.#files = new FileBuilder(write);
    this.#probe = new FileBuilder(async () => {});
  }

  async run(job: TableJob): Promise<JobResult> {
    try {
      const { table } = job;
      if (table === undefined) return collectNeeds(job, this.#cursor);
      const refused = new Map<string, string>();
      for (let attempt = 1; ; attempt += 1) {
        const result = await this.#build(job, table, refused);
        if (!(result instanceof Unwritten)) return result;
        // Found rows are dead letters of the next attempt; where there are ever more, it isn't the rows.
        if (result.places.size === 0 || attempt === MAX_ATTEMPTS) throw result.cause;
        for (const [place, error] of result.places) refused.set(place, error);
      }
    } catch (caught) {
      if (caught instanceof AssertionError) throw caught;
      return { kind: 'failed', error: errorToShape(caught) };
    }
  }

  async #build(
    job: TableJob,
    table: JobTable,
    refused: ReadonlyMap<string, string>,
  ): Promise<JobResult | Unwritten> {
    const rows = this.#prepare(job, table);
    rows.clear(job);
    const pass = new Pass(job, rows, refused);
    pass.walk(this.#cursor);
    if (job.keysOnly === true) return keysOf(job, rows, pass);
    const needs = rows.needs();
    if (needs !== undefined) return needs;
    if (pass.halted !== undefined) return pass.halted;
    const { columns } = rows;
    rows.upserts?.changes.fill(job.slices);
    const { groups, cut } = partitionRows(
      columns,
      table.spec,
      job.config['table.topic.max.partitions.per.commit'],
    );
    if (cut < columns.rowCount) pass.cutAt(cut);
    const unfit = unfitPartitions(groups, table);
    if (unfit.size > 0) return pass.unwritten(unfit, new FloeError('invalid', 'unfit partitions'));
    if (pass.deadLetterCount > 0 && job.deadLetters === undefined && pass.keepsDeadLetters) {
      return nothingButDeadLetterTable;
    }
    if (job.inline === true) return inlineOf(job, { rows, pass, groups, table });
    const prefix = `${table.dataFolder}/${job.jobId}`;
    const settled = rows.upserts?.changes.settle(job.slices, groups);
    const request = { columns, table, prefix, groups: settled?.groups ?? groups };
    let data: WrittenFile[];
    try {
      data = await this.#files.writeAll(request);
    } catch (caught) {
      // The store's failures are nobody's row.
      if (caught instanceof FloeError || caught instanceof AssertionError) throw caught;
      const found = await unencodableRows(request, (probe) => this.#probe.writeAll(probe));
      return pass.unwritten(found, caught);
    }
    const placed = data.map(({ file, rows: order }) => ({ path: file.filePath, rows: order }));
    const changes = settled?.sidecar(placed, columns.rowCount);
    const sidecar = await this.#writeSidecar(table, `${prefix}${SIDECAR_SUFFIX}`, changes);
    return {
      ...pass.result(),
      data: data.map((written) => written.file),
      ...(sidecar === undefined ? {} : { sidecar }),
      deadLetterFiles: await this.#writeDeadLetters(job, pass.deadLetterColumns()),
    };
  }

  /** K4: what the rows mean by their keys goes beside them. */
  async #writeSidecar(
    { upsert }: JobTable,
    path: string,
    sidecar: Sidecar | undefined,
  ): Promise<SidecarRef | undefined> {
    if (sidecar === undefined) return undefined;
    const parts = encodeSidecar(sidecar);
    await this.#write(path, parts);
    return {
      path,
      idFields: upsert!.columns.map(({ fieldId }) => fieldId),
      changes: sidecar.changes.count,
    };
  }

  async #writeDeadLetters(
    { jobId, deadLetters }: TableJob,
    columns: TableColumns | undefined,
  ): Promise<readonly DataFile[]> {
    if (columns === undefined || deadLetters === undefined) return [];
    const { groups } = partitionRows(columns, deadLetters.spec);
    const prefix = `${deadLetters.dataFolder}/${jobId}-dead`;
    const request = { columns, table: deadLetters, prefix, groups };
    return (await this.#files.writeAll(request)).map((written) => written.file);
  }

  #prepare(job: TableJob, table: JobTable): RowBuilder {
    // Topics may share a table, each with sources of its own; and the config decides which fields are left out.
    const key = `${table.key}/${job.topic}/${JSON.stringify(job.config)}`;
    const kept = this.#prepared.get(key);
    this.#prepared.delete(key);
    const prepared = kept ?? new RowBuilder(table, job.config);
    this.#prepared.set(key, prepared);
    for (const oldest of this.#prepared.keys()) {
      if (this.#prepared.size <= KEPT_TABLES) break;
      this.#prepared.delete(oldest);
    }
    return prepared;
  }
}

/** What the records do by their keys; the rows themselves aren't wanted. */
function keysOf(job: TableJob, rows: RowBuilder, pass: Pass): JobKeys {
  const { columns } = rows;
  columns.align();
  const changes = rows.upserts?.changes.settle(job.slices, []).sidecar([], columns.rowCount);
  const [range] = pass.result().ranges;
  return {
    kind: 'keys',
    end: range?.end ?? job.slices[0]!.start,
    sidecar:
      changes === undefined ? undefined : new Uint8Array(Buffer.concat(encodeSidecar(changes))),
  };
}

/** The same files as bytes, for somebody who reads them at once. */
async function inlineOf(
  job: TableJob,
  made: {
    readonly rows: RowBuilder;
    readonly pass: Pass;
    readonly groups: readonly PartitionGroup[];
    readonly table: JobTable;
  },
): Promise<JobInline> {
  const { rows, pass, groups, table } = made;
  const { columns } = rows;
  const bodies = new Map<string, Uint8Array>();
  const builder = new FileBuilder(async (path, parts) => {
    bodies.set(path, new Uint8Array(Buffer.concat(parts)));
  });
  const settled = rows.upserts?.changes.settle(job.slices, groups);
  const prefix = `tail-${job.jobId}`;
  const data = await builder.writeAll({
    columns,
    table,
    prefix,
    groups: settled?.groups ?? groups,
  });
  const placed = data.map(({ file, rows: order }) => ({ path: file.filePath, rows: order }));
  const changes = settled?.sidecar(placed, columns.rowCount);
  return {
    kind: 'inline',
    ranges: pass.result().ranges,
    files: data.map(({ file }) => ({ file, bytes: bodies.get(file.filePath)! })),
    sidecar:
      changes === undefined ? undefined : new Uint8Array(Buffer.concat(encodeSidecar(changes))),
  };
}

const nothingButDeadLetterTable: JobNeeds = {
  kind: 'needs',
  valueSchemas: [],
  keySchemas: [],
  deadLetterTable: true,
};

/** Times that a job is begun again without rows that can't be written. */
const MAX_ATTEMPTS = 8;

/** A job whose rows couldn't all be written. */
class Unwritten {
  /** Slice and offset, as text, and why. */
  readonly places: ReadonlyMap<string, string>;
  readonly cause: unknown;

  constructor(places: ReadonlyMap<string, string>, cause: unknown) {
    this.places = places;
    this.cause = cause;
  }
}

const NONE: ReadonlySet<number> = new Set();

/** Where a record stood. */
interface Place {
  readonly slice: number;
  readonly offset: number;
}

interface SliceOutcome {
  readonly slice: JobSlice;
  range: StagedRange;
  /** Rows of the job before this slice's first. */
  readonly firstRow: number;
}

/** One walk over a job's slices: rows into columns, the rest into dead letters, actual ends noted. */
class Pass {
  readonly #job: TableJob;
  readonly #rows: RowBuilder;
  readonly #letters: DeadLetters | undefined;
  readonly #records: TopicLetters | undefined;
  /** Places of rows that turned out not to be writable, and why. */
  readonly #refused: ReadonlyMap<string, string>;
  readonly #outcomes: SliceOutcome[] = [];
  /** Offset of each row: a job may be cut between rows, or begun again without some. */
  #rowOffsets = new Float64Array(1_024);
  /** Of each dead letter. */
  readonly #letterAt: Place[] = [];
  #faults: Place[] = [];
  /** Records that are no rows by their kind: passed over under every policy, and counted. */
  #noRows: Place[] = [];
  /** Of the slice that is walked. */
  #knownLetters: ReadonlySet<number> = NONE;
  #full = false;
  #measuredRows = 0;
  halted: JobHalted | undefined;

  constructor(job: TableJob, rows: RowBuilder, refused: ReadonlyMap<string, string>) {
    this.#job = job;
    this.#rows = rows;
    this.#refused = refused;
    const context = { topic: job.topic, table: job.table?.name ?? '', nowMs: job.nowMs };
    if (this.keepsDeadLetters && job.deadLetters !== undefined) {
      this.#letters = new DeadLetters(job.deadLetters.schema, context);
    }
    if (this.#tolerance === 'dlq_topic') {
      this.#records = new TopicLetters(context, job.maxLetterBytes);
    }
  }

  get #tolerance() {
    return this.#job.config['table.topic.errors.tolerance'];
  }

  get #sink(): LetterSink | undefined {
    return this.#letters ?? this.#records;
  }

  get keepsDeadLetters(): boolean {
    return this.#tolerance === 'dlq_table';
  }

  /** Dead letters that belong into a dead-letter table, by now. */
  get deadLetterCount(): number {
    return this.#faults.length;
  }

  walk(cursor: RecordCursor): void {
    for (const [index, slice] of this.#job.slices.entries()) {
      if (this.#full || this.halted !== undefined) return;
      const firstRow = this.#rows.columns.rowCount;
      this.#knownLetters = slice.knownLetters === undefined ? NONE : new Set(slice.knownLetters);
      const { end, gaps } = walkSlice(slice, cursor, {
        maxBatchBytes: this.#job.maxBatchBytes,
        visitor: this.#visitor(slice, index),
      });
      const { partition, start, deadLettersFrom } = slice;
      const range = {
        partition,
        start,
        end,
        deadLettersFrom: Math.max(start, deadLettersFrom),
        gaps,
      };
      this.#outcomes.push({ slice, range, firstRow });
    }
  }

  #visitor(slice: JobSlice, index: number) {
    const rows = this.#rows;
    const { fault } = rows;
    return {
      record: (cursor: RecordCursor, offset: number) => {
        if (slice.onlyLetters === true && !this.#knownLetters.has(offset)) return true;
        if (this.#append(cursor, index, offset)) return true;
        // The job will come again: only what else it needs matters now.
        if (rows.hasNeeds) return true;
        // A dead letter that is no row here either stays where it is: sent on, it would go round for ever.
        const stays = this.#records !== undefined && isLetter(cursor);
        return this.#fault(index, offset, (letters) => {
          if (!stays) letters.add(cursor, { partition: slice.partition, offset }, fault);
          return !stays;
        });
      },
      batchDone: () => {
        const { columns } = rows;
        if (columns.rowCount - this.#measuredRows >= MEASURE_ROWS) {
          this.#measuredRows = columns.rowCount;
          this.#full ||= columns.byteSize() >= this.#job.maxColumnBytes;
        }
        return !this.#full;
      },
      unreadable: (batch: Uint8Array, first: number, _last: number, error: string) => {
        rows.columns.rollback();
        if (slice.onlyLetters === true && !this.#knownLetters.has(first)) return true;
        fault.set('batch', 'unreadable_batch', error);
        return this.#fault(index, first, (letters) => {
          letters.addBatch(batch, { partition: slice.partition, offset: first }, fault);
          return true;
        });
      },
    };
  }

  #append(cursor: RecordCursor, slice: number, offset: number): boolean {
    const rows = this.#rows;
    const refusal = this.#refused.size > 0 && this.#refused.get(`${slice}:${offset}`);
    if (refusal) return rows.fault.set('writer', 'unwritable', refusal);
    const before = rows.columns.rowCount;
    const from = this.#job.slices[slice]!;
    try {
      const taken =
        rows.upserts === undefined
          ? rows.append(cursor, from.partition, offset)
          : rows.upserts.append(cursor, from, { number: slice, offset });
      if (!taken) return false;
    } catch (caught) {
      if (caught instanceof AssertionError) throw caught;
      // Deeper than the stack, say: whatever a record does to its decoder, it does to itself.
      rows.columns.rollback();
      const { schemaId } = rows.fault;
      return rows.fault.set('value', 'undecodable', FloeError.from(caught).message, schemaId);
    }
    if (rows.columns.rowCount > before) this.#noteOffset(offset);
    return true;
  }

  /** Where the rows came from, which can't be written. */
  unwritten(rows: Unwritable, cause: unknown): Unwritten {
    const places = new Map<string, string>();
    for (const [row, error] of rows) {
      const slice = this.#outcomes.findLastIndex((outcome) => outcome.firstRow <= row);
      places.set(`${slice}:${this.#rowOffsets[row]!}`, error);
    }
    return new Unwritten(places, cause);
  }

  /** False: the job ends before this record. `keep` says whether it kept it. */
  #fault(slice: number, offset: number, keep: (letters: LetterSink) => boolean): boolean {
    const { fault } = this.#rows;
    if (fault.reason === 'no_row') {
      this.#noRows.push({ slice, offset });
      return true;
    }
    const { partition, deadLettersFrom } = this.#job.slices[slice]!;
    if (this.#tolerance === 'none') {
      const { stage, reason, error } = fault;
      this.halted = { kind: 'halted', partition, offset, stage, reason, error };
      return false;
    }
    const sink = this.#sink;
    const known = offset < deadLettersFrom || this.#knownLetters.has(offset);
    if (sink !== undefined && !known) {
      // What one stage takes along is bounded: the rest comes with the next.
      if (sink.byteSize >= this.#job.maxLetterBytes / 2) {
        this.#full = true;
        return false;
      }
      if (keep(sink)) this.#letterAt.push({ slice, offset });
      else this.#noRows.push({ slice, offset });
    }
    this.#faults.push({ slice, offset });
    return true;
  }

  #noteOffset(offset: number): void {
    const row = this.#rows.columns.rowCount - 1;
    if (row >= this.#rowOffsets.length) {
      const grown = new Float64Array(this.#rowOffsets.length * 2);
      grown.set(this.#rowOffsets);
      this.#rowOffsets = grown;
    }
    this.#rowOffsets[row] = offset;
  }

  /** Row `row` and everything after it belong to a later job: its partitions would be too many. */
  cutAt(row: number): void {
    const index = this.#outcomes.findLastIndex((outcome) => outcome.firstRow <= row);
    const outcome = this.#outcomes[index]!;
    const end = this.#rowOffsets[row]!;
    const gaps = outcome.range.gaps.filter((gap) => gap.from < end);
    outcome.range = {
      ...outcome.range,
      end,
      gaps: gaps.map((gap) => ({ ...gap, to: Math.min(gap.to, end) })),
    };
    this.#outcomes.length = index + 1;
    const before = (at: Place) => at.slice < index || (at.slice === index && at.offset < end);
    this.#faults = this.#faults.filter(before);
    this.#noRows = this.#noRows.filter(before);
    const { columns, upserts } = this.#rows;
    upserts?.changes.cutAt(index, end);
    columns.rowCount = row;
    columns.rollback();
  }

  /** The dead letters that are left after a cut, by their place in the sink. */
  #keptLetters(): number[] {
    const kept = new Set(this.#faults.map((at) => `${at.slice}:${at.offset}`));
    return this.#letterAt.flatMap((at, place) =>
      kept.has(`${at.slice}:${at.offset}`) ? [place] : [],
    );
  }

  /** What goes into the dead-letter table; undefined when nothing does. */
  deadLetterColumns(): TableColumns | undefined {
    if (this.#letters === undefined) return undefined;
    const rows = this.#keptLetters();
    if (rows.length === 0) return undefined;
    const { columns } = this.#letters;
    columns.align();
    return rows.length === columns.rowCount ? columns : columns.gather(Int32Array.from(rows));
  }

  result(): Omit<JobStaged, 'data' | 'deadLetterFiles'> {
    const skips = this.#tolerance === 'skip';
    const kept = this.#keptLetters();
    return {
      kind: 'staged',
      ranges: this.#outcomes.map((one) => one.range).filter((range) => range.end > range.start),
      letterBatches: this.#records?.take(kept) ?? [],
      letters: this.#byPartition(kept.map((place) => this.#letterAt[place]!)),
      ...(this.#job.slices[0]?.onlyLetters === true
        ? { stillLetters: this.#byPartition(this.#faults) }
        : {}),
      rows: this.#rows.columns.rowCount,
      deadLetters: skips ? 0 : kept.length,
      skipped: (skips ? this.#faults.length : 0) + this.#noRows.length,
    };
  }

  #byPartition(places: readonly Place[]): StagedLetters[] {
    const byPartition = new Map<number, number[]>();
    for (const { slice, offset } of places) {
      const { partition } = this.#job.slices[slice]!;
      const offsets = byPartition.get(partition);
      if (offsets === undefined) byPartition.set(partition, [offset]);
      else offsets.push(offset);
    }
    return [...byPartition].map(([partition, offsets]) => ({ partition, offsets }));
  }
}
