// One table's lanes and the clock of its commits: which lane is worth a job, when the next commit is due, and what
// is staged before it. New records arm the clock; enough of them start jobs before it rings.
// Not for: states (coordinator.ts), what a job does (lane.ts), commits (commit-rounds.ts).
import type { Metrics } from '../base/metrics.ts';
import type { TopicDirectory } from '../metadata/topic-directory.ts';
import type { Topic } from '../metadata/topics.ts';
import { Lane, type LaneDeps } from './lane.ts';
import { letterPartitions } from './letter-topics.ts';
import type { TableProgress } from './progress.ts';
import { letterTopicName, resolveTopicConfigs } from './settings/index.ts';
import type { Signal } from './signal.ts';
import { countStaged } from './table-metrics.ts';
import type { TableSession } from './table-session.ts';
import type { Offsets } from './watermark.ts';

/** Pending bytes are estimated at most this often while records stream in. */
const LOOK_EVERY_MS = 50;

export interface StagingDeps extends LaneDeps {
  readonly metrics: Metrics;
  /** Lanes per table at most: what the workers can do side by side. */
  readonly lanes: number;
  /** File name prefixes of jobs under way in this process. */
  readonly jobsUnderWay: Set<string>;
  readonly directory: TopicDirectory;
}

export interface StagingTable {
  readonly topic: Topic;
  readonly session: TableSession;
  readonly progress: TableProgress;
  /** Set when there is something to do. */
  readonly signal: Signal;
  /** The table's state allows reading and staging. */
  readonly mayStage: () => boolean;
}

export class TableStaging {
  readonly #deps: StagingDeps;
  readonly #table: StagingTable;
  readonly #intervalMs: number;
  #lanes: readonly Lane[] = [];
  /** While there is no table: one lane over all partitions, so that its first columns fit them all. */
  #firstLane: Lane | undefined;
  #unsubscribe: () => void = () => {};
  /** Monotonic; undefined while nothing waits for a commit. */
  #commitAtMs: number | undefined;
  #first = true;
  #lookedAtMs = 0;
  /** Wall time since when a record waits. */
  #behindSinceMs: number | undefined;

  constructor(deps: StagingDeps, table: StagingTable) {
    this.#deps = deps;
    this.#table = table;
    const config = resolveTopicConfigs(table.topic.config);
    this.#intervalMs = config['table.topic.commit.interval.ms'];
  }

  /** Fresh lanes for the session's binding; from now on the log's news count. */
  open(): void {
    const { topic, session, progress } = this.#table;
    const { partitions, topicId, name, version } = topic;
    const count = Math.min(this.#deps.lanes, partitions.length);
    const config = resolveTopicConfigs(topic.config);
    const table = {
      topicId,
      topicName: name,
      epoch: session.epoch,
      configEpoch: version,
      binding: session.binding!,
      config,
      generation: () => session.record!.generation,
      partitionId: (partition: number) => partitions[partition]!,
      stagedEnd: (partition: number) => progress.stagedEnd(partition),
      setStagedEnd: (partition: number, offset: number) => progress.setStagedEnd(partition, offset),
      staged: (bytes: number, result: Parameters<typeof countStaged>[1]) => {
        progress.stagedBytes += bytes;
        countStaged(this.#deps.metrics, result);
      },
      openLetters: (partition: number) => progress.openLetters(partition),
      reloadLetters: () => progress.loadLetters(),
      letterPartitions: () => letterPartitions(this.#deps, letterTopicName(name, config)),
      jobsUnderWay: this.#deps.jobsUnderWay,
    };
    this.#firstLane = new Lane(this.#deps, table, [...partitions.keys()]);
    this.#lanes = Array.from({ length: count }, (_, lane) => {
      const own = [...partitions.keys()].filter((partition) => partition % count === lane);
      return new Lane(this.#deps, table, own);
    });
    this.close();
    this.#unsubscribe = this.#deps.log.subscribe(partitions, () => this.#noticed());
  }

  /** The log's news don't count any more. */
  close(): void {
    this.#unsubscribe();
  }

  /** A commit is due. */
  due(): boolean {
    return this.#commitAtMs !== undefined && this.#deps.clock.monotonic() >= this.#commitAtMs;
  }

  /** Undefined while nothing waits for a commit. */
  dueInMs(): number | undefined {
    const at = this.#commitAtMs;
    return at === undefined ? undefined : at - this.#deps.clock.monotonic();
  }

  /** Somebody wants a commit now. */
  expedite(): void {
    this.#commitAtMs = this.#deps.clock.monotonic();
  }

  /** Arms the commit clock when something waits. */
  rearm(): void {
    const waiting =
      this.#table.progress.stagedBytes > 0 || this.#lanes.some((lane) => lane.pendingRecords() > 0);
    if (!waiting) return;
    this.#behindSinceMs ??= this.#deps.clock.now();
    this.#commitAtMs ??= this.#deps.clock.monotonic() + this.#nextIntervalMs();
  }

  /**
   * The first one is shorter, by another part for each topic: tables that start together, as after a restart, would
   * commit together ever after, each waiting for all.
   */
  #nextIntervalMs(): number {
    if (!this.#first) return this.#intervalMs;
    this.#first = false;
    return this.#intervalMs * phaseOf(this.#table.topic.topicId);
  }

  /** Runs the lanes that are worth a job until a commit is due. False: none is. */
  async runWorthy(): Promise<boolean> {
    const worthy = this.#workLanes().filter((lane) => this.#worthAJob(lane));
    if (worthy.length === 0) return false;
    const goesOn = (lane: Lane) =>
      this.#table.mayStage() && !this.due() && this.#sameLanes(lane) && this.#worthAJob(lane);
    await settleAll(worthy.map((lane) => lane.run(goesOn)));
    return true;
  }

  /**
   * Stages up to `targets`, for an interval at most unless `patient`. `tableCame` says whether records called the
   * table into being just now: then all lanes stage the rest.
   */
  async stageUpTo(
    targets: Offsets,
    { patient, tableCame }: { readonly patient: boolean; readonly tableCame: () => boolean },
  ): Promise<void> {
    const { clock } = this.#deps;
    const deadline = clock.monotonic() + this.#intervalMs;
    const goesOn = (lane: Lane) =>
      this.#table.mayStage() &&
      this.#sameLanes(lane) &&
      this.#hasRoom() &&
      (patient || clock.monotonic() < deadline) &&
      this.#table.progress.isShortOf(targets);
    await settleAll(this.#workLanes().map((lane) => lane.run(goesOn)));
    if (tableCame()) await settleAll(this.#workLanes().map((lane) => lane.run(goesOn)));
    this.#commitAtMs = undefined;
  }

  /** Everything that was there at `tickMs` (wall time) is committed. */
  caughtUp(tickMs: number): void {
    this.#behindSinceMs = this.#table.progress.lagRecords() === 0 ? undefined : tickMs;
  }

  /** Since when the oldest uncommitted record waits, at most. */
  lagSeconds(): number {
    const since = this.#behindSinceMs;
    if (since === undefined) return 0;
    return Math.max(0, (this.#deps.clock.now() - since) / 1_000);
  }

  /** New records. Must be cheap: it is called at every commit of the log. */
  #noticed(): void {
    this.#behindSinceMs ??= this.#deps.clock.now();
    const now = this.#deps.clock.monotonic();
    if (this.#commitAtMs === undefined) {
      this.#commitAtMs = now + this.#nextIntervalMs();
      this.#table.signal.set();
    } else if (now - this.#lookedAtMs >= LOOK_EVERY_MS) {
      this.#lookedAtMs = now;
      if (this.#lanes.some((lane) => this.#worthAJob(lane))) this.#table.signal.set();
    }
  }

  #worthAJob(lane: Lane): boolean {
    return this.#hasRoom() && lane.pendingBytes() >= this.#deps.settings['table.job.start.bytes'];
  }

  #hasRoom(): boolean {
    return this.#table.progress.stagedBytes < this.#deps.settings['table.staged.max.bytes'];
  }

  /** The first lane hands over once the table is there. */
  #sameLanes(lane: Lane): boolean {
    return lane !== this.#firstLane || this.#table.session.binding?.table === undefined;
  }

  #workLanes(): readonly Lane[] {
    const there = this.#table.session.binding?.table !== undefined;
    if (there || this.#firstLane === undefined) return this.#lanes;
    return [this.#firstLane];
  }
}

/** Within 0.5 and 1, the same for a topic always. */
function phaseOf(topicId: string): number {
  const digits = Number.parseInt(topicId.replaceAll('-', '').slice(-6), 16);
  return 0.5 + (Number.isNaN(digits) ? 0.5 : digits / 2 ** 25);
}

/** Waits for all, then throws the first failure: no lane is left running behind the state's back. */
async function settleAll(work: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(work);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}
