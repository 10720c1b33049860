// How far a table is, partition by partition: staged, committed, and what waits in between. Kept in memory beside the
// metadata store's copy; the table itself is the truth about what is committed (rule T4).
// Not for: when to read or commit (coordinator.ts).
import type { Clock } from '../base/clock.ts';
import type { FloeError } from '../base/error.ts';
import type { TableMetadata } from '../formats/iceberg/types.ts';
import { quarantinedPartitions } from '../metadata/quarantine.ts';
import type { OpenLetters, TableRecord, TablesMetadata } from '../metadata/tables.ts';
import type { Topic } from '../metadata/topics.ts';
import type { Log } from '../storage/log/log.ts';
import { backfillOffset } from './positions.ts';
import type { Backfill } from './settings/index.ts';
import { STAGES_PER_COMMIT } from './table-commits.ts';
import { trouble } from './trouble.ts';
import { type Offsets, readBack } from './watermark.ts';

export interface ProgressDeps {
  readonly tables: TablesMetadata;
  readonly log: Log;
  readonly clock: Clock;
}

export class TableProgress {
  readonly #deps: ProgressDeps;
  readonly #topic: Topic;
  /** Lanes begin anew when it changes. */
  readonly #quarantined: ReadonlySet<number>;
  readonly #stagedEnds = new Map<number, number>();
  readonly #committedEnds = new Map<number, number>();
  #letters: ReadonlyMap<number, OpenLetters> = new Map();
  /** Of stages that wait to be committed. */
  stagedBytes = 0;

  constructor(deps: ProgressDeps, topic: Topic) {
    this.#deps = deps;
    this.#topic = topic;
    this.#quarantined = quarantinedPartitions(topic);
  }

  /** Undefined for a partition that isn't set up yet. */
  stagedEnd(partition: number): number | undefined {
    return this.#stagedEnds.get(partition);
  }

  setStagedEnd(partition: number, offset: number): void {
    this.#stagedEnds.set(partition, offset);
  }

  /** Undefined while it isn't known. */
  committedEnd(partition: number): number | undefined {
    return this.#committedEnds.get(partition);
  }

  /** The table holds everything below `offsets` now, and stages of so many bytes have left. */
  committed(offsets: Offsets, bytes: number): void {
    for (const [partition, offset] of offsets) this.#committedEnds.set(partition, offset);
    // What other nodes staged isn't counted before it is looked at.
    this.stagedBytes = Math.max(0, this.stagedBytes - bytes);
  }

  /** Dead letters that are kept already of a partition's ranges, as of the last look. */
  openLetters(partition: number): OpenLetters | undefined {
    return this.#letters.get(partition);
  }

  async loadLetters(): Promise<void> {
    const letters = await this.#deps.tables.openLetters(this.#topic.topicId);
    this.#letters = new Map(letters.map((one) => [one.partition, one]));
  }

  /** Last stable offsets as of now, of all partitions but the quarantined. */
  targets(): Offsets {
    const targets = new Map<number, number>();
    for (const [partition, partitionId] of this.#topic.partitions.entries()) {
      if (this.#quarantined.has(partition)) continue;
      targets.set(partition, this.#deps.log.watermarks(partitionId)?.lastStableOffset ?? 0);
    }
    return targets;
  }

  /** True while something below `targets` isn't staged. */
  isShortOf(targets: Offsets): boolean {
    return [...targets].some(
      ([partition, target]) => (this.#stagedEnds.get(partition) ?? target) < target,
    );
  }

  /** Something is staged and not committed, whoever staged it. */
  hasStaged(): boolean {
    return [...this.#stagedEnds].some(
      ([partition, end]) => end > (this.#committedEnds.get(partition) ?? end),
    );
  }

  /** Those of quarantined partitions among them. */
  lagRecords(): number {
    let lag = 0;
    for (const partition of this.#topic.partitions.keys()) lag += this.#lagOf(partition);
    return lag;
  }

  /** Records that wait because their partitions are quarantined. */
  quarantinedRecords(): number {
    let lag = 0;
    for (const partition of this.#quarantined) lag += this.#lagOf(partition);
    return lag;
  }

  #lagOf(partition: number): number {
    const marks = this.#deps.log.watermarks(this.#topic.partitions[partition] ?? -1);
    if (marks === undefined) return 0;
    // A table that never got as far as its position has everything before it.
    const committed = this.#committedEnds.get(partition) ?? marks.logStartOffset;
    return Math.max(0, marks.lastStableOffset - committed);
  }

  /** The table's own offsets win over what is stored here (T4). @throws FloeError (trouble) when it was moved. */
  async adopt(metadata: TableMetadata, epoch: number): Promise<void> {
    const offsets = this.#ownOffsets(metadata);
    if (offsets === undefined) return;
    const positions = [...offsets].map(([partition, committedEnd]) => ({
      partition,
      committedEnd,
    }));
    const { topicId } = this.#topic;
    await this.#deps.tables.markCommitted({ topicId, epoch, sequences: [], positions });
  }

  /** Undefined when nothing of this topic was ever committed. */
  #ownOffsets(metadata: TableMetadata): Offsets | undefined {
    const back = readBack(metadata);
    if (back.kind === 'moved') throw movedTrouble();
    return back.kind === 'at' ? back.watermark.topics.get(this.#topic.topicId) : undefined;
  }

  /** Gives partitions without position their first one, then loads all. */
  async init(backfill: Backfill): Promise<void> {
    const { tables, log } = this.#deps;
    const { topicId, partitions } = this.#topic;
    const known = await tables.positions(topicId);
    const missing = partitions.keys().filter((at) => !known.some((one) => one.partition === at));
    // Partitions added to a table's topic hold only what came after it was enabled.
    const from = known.length === 0 ? backfill : 'earliest';
    const fresh = await Promise.all(
      missing.map(async (partition) => ({
        partition,
        offset: await backfillOffset(log, partitions[partition]!, from),
      })),
    );
    if (fresh.length > 0) await tables.initPositions(topicId, fresh);
    await this.#load();
  }

  /** Where every partition is by the store, and which dead letters are kept. */
  async loadPositions(): Promise<void> {
    const { tables } = this.#deps;
    for (const one of await tables.positions(this.#topic.topicId)) {
      this.#stagedEnds.set(one.partition, one.stagedEnd);
      this.#committedEnds.set(one.partition, one.committedEnd);
    }
    await this.loadLetters();
  }

  async #load(): Promise<void> {
    const { tables } = this.#deps;
    const { topicId } = this.#topic;
    await this.loadPositions();
    const stages = await tables.stages(topicId, STAGES_PER_COMMIT);
    this.stagedBytes = stages.reduce((sum, stage) => sum + stage.bytes, 0);
  }

  /** T8, T4: what is staged doesn't fit the table; it is read again from where the table is. */
  async rewindTo(
    metadata: TableMetadata,
    epoch: number,
    lettersCommitted: Offsets,
  ): Promise<TableRecord> {
    const { tables, clock } = this.#deps;
    const { topicId } = this.#topic;
    const offsets = this.#ownOffsets(metadata);
    const positions = (await tables.positions(topicId)).map(({ partition, committedEnd }) => ({
      partition,
      offset: offsets?.get(partition) ?? committedEnd,
    }));
    const request = { positions, nowMs: clock.now(), lettersCommitted };
    const record = await tables.rewind(topicId, epoch, request);
    await this.#load();
    return record;
  }

  /** An operator sent the table back to these offsets, all of its partitions'. */
  async rewindAll(offsets: Offsets, epoch: number, letters: Offsets): Promise<TableRecord> {
    const { tables, clock } = this.#deps;
    const { topicId } = this.#topic;
    const positions = (await tables.positions(topicId)).map(({ partition, committedEnd }) => ({
      partition,
      offset: offsets.get(partition) ?? committedEnd,
    }));
    const request = { positions, nowMs: clock.now(), lettersCommitted: letters };
    const record = await tables.rewind(topicId, epoch, request);
    await this.#load();
    return record;
  }
}

/** What the status of a table says whose history isn't ours any more (T2). */
export function movedTrouble(): FloeError {
  return trouble(
    'the table was rolled back or its history rewritten by somebody: resume with policy "rewind" (write again what it lost), "keep" (go on without it) or "restart"',
  );
}
