// One table's lanes and the clock of its commits: which lane is worth a job, when the next commit is due, and what
// is staged before it, here and by lanes on other nodes. New records arm the clock; enough of them start jobs before it
// rings. Not for: states (coordinator.ts), what a job does (lane.ts), commits (commit-rounds.ts).
import type { Topic } from '../metadata/topics.ts';
import { Lane, type LaneTable } from './lane.ts';
import { type LaneSetDeps, laneTable, makeLanes, readPartitions, settleAll } from './lane-set.ts';
import { LanesElsewhere } from './lanes-elsewhere.ts';
import type { TablePlacement } from './placement.ts';
import type { TableProgress } from './progress.ts';
import { resolveTopicConfigs } from './settings/index.ts';
import type { Signal } from './signal.ts';
import type { TableSession } from './table-session.ts';
import type { Offsets } from './watermark.ts';

/** Pending bytes are estimated at most this often while records stream in. */
const LOOK_EVERY_MS = 50;

export interface StagingDeps extends LaneSetDeps {
  readonly placement: TablePlacement;
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
  readonly #elsewhere: LanesElsewhere;
  #lanes: readonly Lane[] = [];
  /** The lanes' partitions. */
  #own: readonly number[] = [];
  #laneTable: LaneTable | undefined;
  /** Nodes came or went since the lanes were made. */
  #moved = false;
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
    this.#elsewhere = new LanesElsewhere(deps, table);
  }

  /** Fresh lanes for the session's binding; from now on the log's news count. */
  open(): void {
    const { topic, session, progress } = this.#table;
    const table = {
      topic,
      progress,
      binding: session.binding!,
      epoch: session.epoch,
      generation: () => session.record!.generation,
    };
    this.#laneTable = laneTable(this.#deps, table);
    const all = readPartitions(topic, topic.partitions.keys());
    this.#firstLane = new Lane(this.#deps, this.#laneTable, all);
    this.#place();
    this.close();
    const { log, placement } = this.#deps;
    const unsubscribe = log.subscribe(topic.partitions, () => this.#noticed());
    const unplace = placement.onChange(() => {
      this.#moved = true;
      this.#table.signal.set();
    });
    this.#unsubscribe = () => {
      unsubscribe();
      unplace();
    };
  }

  /** Lanes of the partitions that this node has. */
  #place(): void {
    this.#moved = false;
    const { topic } = this.#table;
    this.#own = readPartitions(topic, this.#deps.placement.lanesOf(topic));
    this.#lanes = makeLanes(this.#deps, this.#laneTable!, this.#own);
  }

  /**
   * Partitions came from other nodes or went there: they are gone on with from where the store says. What waits of them was
   * neither theirs nor ours when the clock was last looked at.
   */
  async #settleIn(): Promise<void> {
    if (!this.#moved) return;
    this.#moved = false;
    await this.#table.progress.loadPositions();
    this.#place();
    this.rearm();
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
      this.#table.progress.hasStaged() ||
      this.#lanes.some((lane) => lane.pendingRecords() > 0) ||
      this.#elsewhere.behind();
    if (waiting || this.#table.progress.quarantinedRecords() > 0)
      this.#behindSinceMs ??= this.#deps.clock.now();
    if (!waiting) return;
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

  /** Runs the lanes that are worth a job until a commit is due. False: nothing came of it, so looking again won't help. */
  async runWorthy(): Promise<boolean> {
    await this.#settleIn();
    const worthy = this.#workLanes().filter((lane) => this.#worthAJob(lane));
    if (worthy.length === 0) return false;
    const goesOn = (lane: Lane) =>
      this.#table.mayStage() &&
      !this.#moved &&
      !this.due() &&
      this.#sameLanes(lane) &&
      this.#worthAJob(lane);
    const before = this.#stagedEnds();
    await settleAll(worthy.map((lane) => lane.run(goesOn)));
    return this.#stagedEnds() > before;
  }

  /** Their sum, which rises with each stage. */
  #stagedEnds(): number {
    const { topic, progress } = this.#table;
    return topic.partitions.reduce((sum, _id, at) => sum + (progress.stagedEnd(at) ?? 0), 0);
  }

  /**
   * Stages up to `targets`, for an interval at most unless `patient`. `tableCame` says whether records called the
   * table into being just now: then all lanes stage the rest. Lanes on other nodes are told and waited for.
   */
  async stageUpTo(
    targets: Offsets,
    { patient, tableCame }: { readonly patient: boolean; readonly tableCame: () => boolean },
  ): Promise<void> {
    const { clock } = this.#deps;
    const deadline = clock.monotonic() + this.#intervalMs;
    const inTime = () => patient || clock.monotonic() < deadline;
    do {
      await this.#settleIn();
      await this.#stage(targets, { patient, inTime });
      if (tableCame()) await this.#stage(targets, { patient, inTime });
    } while (this.#moved && this.#table.mayStage() && inTime());
    this.#commitAtMs = undefined;
  }

  /** Side by side, here and elsewhere. */
  async #stage(
    targets: Offsets,
    { patient, inTime }: { readonly patient: boolean; readonly inTime: () => boolean },
  ): Promise<void> {
    const { progress, mayStage } = this.#table;
    const goesOn = () => mayStage() && !this.#moved && inTime();
    const lanes = this.#workLanes();
    // While there is no table, the first lane has them all.
    const first = lanes[0] === this.#firstLane;
    const own = first ? targets : new Map(this.#own.map((at) => [at, targets.get(at) ?? 0]));
    const laneGoesOn = (lane: Lane) =>
      goesOn() && this.#sameLanes(lane) && this.#hasRoom() && progress.isShortOf(own);
    const others = first ? [] : [this.#elsewhere.stage(targets, { patient, goesOn })];
    await settleAll([...lanes.map((lane) => lane.run(laneGoesOn)), ...others]);
  }

  /** How much waits, now that a commit took some of it: other nodes stage, too. */
  recount(): Promise<void> {
    return this.#elsewhere.recount();
  }

  /** Everything that was there at `tickMs` (wall time) is committed, but for what is quarantined. */
  caughtUp(tickMs: number): void {
    const { progress } = this.#table;
    if (progress.lagRecords() === 0) this.#behindSinceMs = undefined;
    else if (progress.quarantinedRecords() === 0) this.#behindSinceMs = tickMs;
    else this.#behindSinceMs ??= tickMs;
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
