// The coordinator of one table: its state, its clock, its lanes, its commits. Everything a table waits for it waits
// for alone (rule T9): own queue, own backoff, own budget. SPEC.md has the states and the invariants.
// Not for: which topics are tables (table-topics.ts), what a job or a commit does (lane.ts, commit.ts).

import { AssertionError } from '../base/assert.ts';
import { FloeError } from '../base/error.ts';
import type { Component } from '../base/lifecycle.ts';
import { within } from '../base/lifecycle.ts';
import type { Logger } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import { backoffMs } from '../base/retry.ts';
import type { TableIdentifier } from '../catalog/catalog.ts';
import type { TableRecord } from '../metadata/tables.ts';
import type { Topic } from '../metadata/topics.ts';
import type { BindingDeps } from './binding.ts';
import { TableBinding, trouble } from './binding.ts';
import type { Committed, CommitterDeps } from './commit.ts';
import { Lane, type LaneDeps } from './lane.ts';
import type { RecoveryPolicy } from './positions.ts';
import { movedTrouble, TableProgress } from './progress.ts';
import { resolveTopicConfigs, type TableSettings, tableIdentifier } from './settings.ts';
import { Signal } from './signal.ts';
import { type Refused, TableCommits } from './table-commits.ts';
import { mayCommit, mayStage, nextState, type TableEvent, type TableState } from './table-state.ts';

/** Pending bytes are estimated at most this often while records stream in. */
const LOOK_EVERY_MS = 50;

export interface CoordinatorDeps
  extends LaneDeps,
    Omit<BindingDeps, 'clock'>,
    Omit<CommitterDeps, 'clock' | 'ids' | 'settings'> {
  readonly settings: TableSettings;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Lanes per table at most: what the workers can do side by side. */
  readonly lanes: number;
  /** File name prefixes of jobs under way in this process. */
  readonly jobsUnderWay: Set<string>;
}

export interface CoordinatorView {
  readonly state: TableState;
  readonly reason: string;
  readonly identifier: TableIdentifier;
  readonly tableUuid: string;
  readonly epoch: number;
  readonly generation: number;
  readonly lagRecords: number;
  readonly lagSeconds: number;
  readonly stagedBytes: number;
}

export class TableCoordinator implements Component {
  readonly #deps: CoordinatorDeps;
  readonly #topic: Topic;
  readonly #identifier: TableIdentifier;
  readonly #logger: Logger;
  readonly #signal: Signal;
  readonly #abort = new AbortController();
  #state: TableState = 'starting';
  #reason = '';
  #record: TableRecord | undefined;
  #binding: TableBinding | undefined;
  readonly #commits: TableCommits;
  #lanes: readonly Lane[] = [];
  /** While there is no table: one lane over all partitions, so that its first columns fit them all. */
  #firstLane: Lane | undefined;
  #unsubscribe: () => void = () => {};
  readonly #progress: TableProgress;
  #failures = 0;
  /** Monotonic; undefined while nothing waits for a commit. */
  #commitAtMs: number | undefined;
  #commitWanted: (() => void)[] = [];
  #committing: Promise<void> | undefined;
  #lookedAtMs = 0;
  /** Wall time since when a record waits. */
  #behindSinceMs: number | undefined;
  #driving: Promise<void> | undefined;
  #policy: RecoveryPolicy | undefined;

  constructor(deps: CoordinatorDeps, topic: Topic) {
    this.#deps = deps;
    this.#topic = topic;
    this.#identifier = tableIdentifier(topic.name, resolveTopicConfigs(topic.config));
    this.#logger = deps.logger.child({ topic: topic.name });
    this.#signal = new Signal(deps.clock);
    this.#commits = new TableCommits(deps, topic);
    this.#progress = new TableProgress(deps, topic);
  }

  get topic(): Topic {
    return this.#topic;
  }

  start(): void {
    this.#driving ??= this.#drive();
  }

  /** Commits what is staged within `table.stop.commit.ms`, leaves the rest staged, ends. */
  async stop(): Promise<void> {
    this.#step('stop');
    this.#signal.set();
    await this.#driving;
  }

  /** Ends at once and leaves everything as it is: the topic is gone, or a newer coordinator follows. */
  async abandon(): Promise<void> {
    this.#step('stop');
    this.#step('stopped');
    this.#abort.abort(new FloeError('cancelled', 'the table work of this topic ends'));
    this.#signal.set();
    await this.#driving;
  }

  async pause(): Promise<void> {
    await this.#deps.tables.setPaused(this.#topic.topicId, true);
    this.#step('pause', 'paused by an operator');
    this.#signal.set();
  }

  /** `policy`: what to do about a table that somebody rolled back, replaced or dropped. */
  async resume(policy?: RecoveryPolicy): Promise<void> {
    await this.#deps.tables.setPaused(this.#topic.topicId, false);
    this.#policy = policy ?? this.#policy;
    this.#failures = 0;
    this.#step('resume');
    this.#signal.set();
  }

  /** Stages and commits what was in the log when called. @throws what kept the table from it. */
  async commitNow(): Promise<void> {
    if (!mayStage(this.#state) && this.#state !== 'starting') {
      throw new FloeError(
        'unavailable',
        `the table of topic "${this.#topic.name}" is ${this.#state}${this.#reason === '' ? '' : `: ${this.#reason}`}`,
      );
    }
    const done = new Promise<void>((resolve) => this.#commitWanted.push(resolve));
    this.#commitAtMs = this.#deps.clock.monotonic();
    this.#signal.set();
    await done;
    if (this.#is('suspended')) throw new FloeError('unavailable', this.#reason);
  }

  /** Read afresh: a compiler can't know that the state moves while we wait. */
  #is(state: TableState): boolean {
    return this.#state === state;
  }

  view(): CoordinatorView {
    const lagRecords = this.#progress.lagRecords();
    const since = this.#behindSinceMs;
    const lagSeconds =
      lagRecords === 0 || since === undefined
        ? 0
        : Math.max(0, (this.#deps.clock.now() - since) / 1_000);
    return {
      state: this.#state,
      reason: this.#reason,
      identifier: this.#identifier,
      tableUuid: this.#binding?.table?.metadata['table-uuid'] ?? this.#record?.tableUuid ?? '',
      epoch: this.#record?.epoch ?? 0,
      generation: this.#record?.generation ?? 0,
      lagRecords,
      lagSeconds,
      stagedBytes: this.#progress.stagedBytes,
    };
  }

  /** Retention stays behind this offset (M3); undefined while it isn't known. */
  committedOffset(partition: number): number | undefined {
    return this.#progress.committedEnd(partition);
  }

  // The life.

  async #drive(): Promise<void> {
    for (;;) {
      switch (this.#state) {
        case 'starting':
          await this.#guard(() => this.#open());
          break;
        case 'waiting':
        case 'running':
          await this.#guard(() => this.#turn());
          break;
        case 'paused':
          this.#releaseWaiters();
          await this.#signal.wait();
          break;
        case 'suspended':
          this.#releaseWaiters();
          await this.#sitOut(this.#retryDelayMs());
          this.#step('retry');
          break;
        case 'stopping':
          await this.#finish();
          this.#step('stopped');
          break;
        case 'stopped':
        case 'fenced':
          this.#releaseWaiters();
          this.#unsubscribe();
          await this.#committing;
          return;
      }
    }
  }

  /** Runs a piece of the life; what fails becomes this table's trouble and nobody else's. */
  async #guard(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (caught) {
      this.#failed(caught);
    }
  }

  #failed(caught: unknown): void {
    if (caught instanceof AssertionError) throw caught;
    const error = FloeError.from(caught);
    if (error.code === 'cancelled' && this.#abort.signal.aborted) return;
    if (error.code === 'conflict' && error.message.startsWith('T6')) {
      this.#step('fenced', error.message);
      return;
    }
    this.#failures += 1;
    this.#deps.metrics.count('floe_table_troubles_total', 'Times a table ran into trouble', {
      code: error.code,
    });
    this.#logger.warn({ code: error.code, error: error.message }, 'table suspended');
    this.#step('trouble', error.message);
    this.#signal.set();
  }

  #step(event: TableEvent, reason = ''): void {
    const next = nextState(this.#state, event);
    if (next === this.#state && event !== 'trouble') return;
    this.#state = next;
    this.#reason = reason;
    void this.#report(next, reason);
  }

  /** For people who look at the metadata; the truth is here. */
  async #report(state: TableState, reason: string): Promise<void> {
    const record = this.#record;
    if (record === undefined || state === 'fenced' || state === 'stopped') return;
    try {
      await this.#deps.tables.update(this.#topic.topicId, record.epoch, { state, reason });
    } catch (caught) {
      this.#logger.debug({ error: FloeError.from(caught).message }, 'state not reported');
    }
  }

  /** New records don't cut the delay short; a word of an operator does. */
  async #sitOut(delayMs: number): Promise<void> {
    const until = this.#deps.clock.monotonic() + delayMs;
    while (this.#is('suspended')) {
      const left = until - this.#deps.clock.monotonic();
      if (left <= 0) return;
      await this.#signal.wait(left);
    }
  }

  #retryDelayMs(): number {
    const { settings, prng } = this.#deps;
    const backoff = {
      prng,
      firstDelayMs: settings['table.retry.first.ms'],
      maxDelayMs: settings['table.retry.max.ms'],
    };
    return Math.ceil(backoffMs(backoff, this.#failures));
  }

  // Opening.

  async #open(): Promise<void> {
    await this.#committing;
    const { tables } = this.#deps;
    const { topicId, name, version } = this.#topic;
    const config = resolveTopicConfigs(this.#topic.config);
    this.#record ??= await tables.claim({
      topicId,
      topicName: name,
      namespace: this.#identifier.namespace,
      table: this.#identifier.name,
    });
    const known = await tables.get(topicId);
    if (known === undefined || known.epoch !== this.#record.epoch) {
      this.#step('fenced', 'another coordinator holds this table');
      return;
    }
    this.#record = known;
    if (known.paused) {
      this.#step('pause', 'paused by an operator');
      return;
    }
    if (this.#policy !== undefined) {
      const identifier = this.#identifier;
      const { epoch } = known;
      const backfill = config['table.topic.backfill'];
      const table = { identifier, epoch, backfill };
      this.#record = await this.#progress.recover(this.#policy, table);
      this.#policy = undefined;
    }
    const binding = new TableBinding(this.#deps, {
      owner: { topicId, topicName: name },
      identifier: this.#identifier,
      config,
      tableUuid: this.#record.tableUuid,
    });
    const there = await binding.open();
    this.#binding = binding;
    this.#commits.forget();
    if (there) {
      await this.#noteUuid();
      await this.#progress.adopt(binding.table!.metadata, this.#record.epoch);
    }
    await this.#progress.init(config['table.topic.backfill']);
    this.#makeLanes(config, version);
    this.#failures = 0;
    this.#step(there ? 'opened' : 'no-columns');
    this.#rearm();
  }

  #makeLanes(config: ReturnType<typeof resolveTopicConfigs>, configEpoch: number): void {
    const { partitions, topicId, name } = this.#topic;
    const count = Math.min(this.#deps.lanes, partitions.length);
    const table = {
      topicId,
      topicName: name,
      epoch: this.#record!.epoch,
      configEpoch,
      binding: this.#binding!,
      config,
      generation: () => this.#record!.generation,
      partitionId: (partition: number) => partitions[partition]!,
      stagedEnd: (partition: number) => this.#progress.stagedEnd(partition),
      setStagedEnd: (partition: number, offset: number) =>
        this.#progress.setStagedEnd(partition, offset),
      staged: (bytes: number, result: { rows: number; deadLetters: number; skipped: number }) => {
        this.#progress.stagedBytes += bytes;
        this.#countStaged(result);
      },
      jobsUnderWay: this.#deps.jobsUnderWay,
    };
    this.#firstLane = new Lane(this.#deps, table, [...partitions.keys()]);
    this.#lanes = Array.from({ length: count }, (_, lane) => {
      const own = [...partitions.keys()].filter((partition) => partition % count === lane);
      return new Lane(this.#deps, table, own);
    });
    this.#unsubscribe();
    this.#unsubscribe = this.#deps.log.subscribe(partitions, () => this.#noticed());
  }

  // Turns.

  /** New records. Must be cheap: it is called at every commit of the log. */
  #noticed(): void {
    this.#behindSinceMs ??= this.#deps.clock.now();
    const now = this.#deps.clock.monotonic();
    if (this.#commitAtMs === undefined) {
      this.#commitAtMs = now + this.#intervalMs();
      this.#signal.set();
    } else if (now - this.#lookedAtMs >= LOOK_EVERY_MS) {
      this.#lookedAtMs = now;
      if (this.#lanes.some((lane) => this.#worthAJob(lane))) this.#signal.set();
    }
  }

  #intervalMs(): number {
    return resolveTopicConfigs(this.#topic.config)['table.topic.commit.interval.ms'];
  }

  #worthAJob(lane: Lane): boolean {
    const { settings } = this.#deps;
    const room = this.#progress.stagedBytes < settings['table.staged.max.bytes'];
    return room && lane.pendingBytes() >= settings['table.job.start.bytes'];
  }

  /** Arms the commit clock when something waits. */
  #rearm(): void {
    const waiting =
      this.#progress.stagedBytes > 0 || this.#lanes.some((lane) => lane.pendingRecords() > 0);
    if (!waiting) return;
    this.#behindSinceMs ??= this.#deps.clock.now();
    this.#commitAtMs ??= this.#deps.clock.monotonic() + this.#intervalMs();
  }

  #due(): boolean {
    return this.#commitAtMs !== undefined && this.#deps.clock.monotonic() >= this.#commitAtMs;
  }

  async #turn(): Promise<void> {
    if (this.#due()) return this.#commitTurn();
    const busy = this.#workLanes().filter((lane) => this.#worthAJob(lane));
    if (busy.length > 0) {
      const goesOn = (lane: Lane) =>
        mayStage(this.#state) && !this.#due() && this.#sameLanes(lane) && this.#worthAJob(lane);
      await settleAll(busy.map((lane) => lane.run(goesOn)));
      return;
    }
    const at = this.#commitAtMs;
    await this.#signal.wait(at === undefined ? undefined : at - this.#deps.clock.monotonic());
  }

  /** Stages what is in the log by now, then commits beside the next interval's jobs. */
  async #commitTurn(): Promise<void> {
    const { clock, settings } = this.#deps;
    const tickMs = clock.now();
    const waiters = this.#commitWanted;
    this.#commitWanted = [];
    try {
      const started = clock.monotonic();
      const deadline = started + this.#intervalMs();
      const targets = this.#progress.targets();
      const goesOn = (lane: Lane) =>
        mayStage(this.#state) &&
        this.#sameLanes(lane) &&
        this.#progress.stagedBytes < settings['table.staged.max.bytes'] &&
        (waiters.length > 0 || clock.monotonic() < deadline) &&
        this.#progress.isShortOf(targets);
      await settleAll(this.#workLanes().map((lane) => lane.run(goesOn)));
      if (this.#noteTable()) await settleAll(this.#workLanes().map((lane) => lane.run(goesOn)));
      this.#commitAtMs = undefined;
      await this.#committing;
      this.#committing = this.#guard(async () => {
        await this.#commit();
        this.#failures = 0;
        this.#behindSinceMs = this.#progress.lagRecords() === 0 ? undefined : tickMs;
      });
      if (waiters.length > 0) await this.#committing;
      this.#rearm();
    } finally {
      for (const done of waiters) done();
    }
  }

  /** The first lane hands over once the table is there. */
  #sameLanes(lane: Lane): boolean {
    return lane !== this.#firstLane || this.#binding?.table === undefined;
  }

  #workLanes(): readonly Lane[] {
    if (this.#binding?.table !== undefined || this.#firstLane === undefined) return this.#lanes;
    return [this.#firstLane];
  }

  /** True when records called the table into being just now. */
  #noteTable(): boolean {
    if (this.#state !== 'waiting' || this.#binding?.table === undefined) return false;
    this.#step('opened');
    return true;
  }

  // Commits.

  async #commit(): Promise<void> {
    const started = this.#deps.clock.monotonic();
    while (mayCommit(this.#state) && (await this.#commitOnce())) {
      // More was staged than one snapshot takes.
    }
    this.#deps.metrics.seconds(
      'floe_table_commit_seconds',
      'Time to commit what was staged',
      (this.#deps.clock.monotonic() - started) / 1_000,
    );
  }

  /** True when there is more to commit. */
  async #commitOnce(): Promise<boolean> {
    await this.#noteUuid();
    const binding = this.#binding;
    if (binding === undefined) return false;
    const { signal } = this.#abort;
    const round = await this.#commits.round({ binding, epoch: this.#record!.epoch, signal });
    if (round.kind === 'idle') return false;
    if (round.kind === 'refused') return this.#notCommitted(round.outcome);
    const { outcome } = round;
    this.#progress.committed(outcome.offsets, round.bytes);
    this.#countCommit(outcome);
    return round.more;
  }

  /** The uuid is stored before the first commit, so that a table of the same name never passes for ours (T3). */
  async #noteUuid(): Promise<void> {
    const uuid = this.#binding?.table?.metadata['table-uuid'];
    if (uuid === undefined || this.#record!.tableUuid === uuid) return;
    const { topicId } = this.#topic;
    this.#record = await this.#deps.tables.update(topicId, this.#record!.epoch, {
      tableUuid: uuid,
      state: this.#state,
    });
  }

  async #notCommitted(outcome: Refused): Promise<boolean> {
    switch (outcome.kind) {
      case 'fenced':
        this.#step('fenced', `T6: the table has a commit of coordinator epoch ${outcome.epoch}`);
        return false;
      case 'moved':
        throw movedTrouble();
      case 'replaced':
        throw trouble(
          `the table was replaced by another of the same name (uuid ${outcome.tableUuid}): resume with policy "restart" to fill that one`,
        );
      case 'discard':
        this.#logger.warn({ reason: outcome.reason }, 'staged ranges are read again');
        await this.#rewindToTable();
        return false;
    }
  }

  /** T8, T4: what is staged is dropped, and read again from where the table is. */
  async #rewindToTable(): Promise<void> {
    const binding = this.#binding!;
    await binding.reload();
    this.#record = await this.#progress.rewindTo(binding.table!.metadata, this.#record!.epoch);
    this.#rearm();
  }

  async #finish(): Promise<void> {
    const { clock, settings } = this.#deps;
    const limitMs = settings['table.stop.commit.ms'];
    try {
      await this.#committing;
      await within(clock, limitMs, this.#commit(), 'the last commit');
    } catch (caught) {
      this.#abort.abort(new FloeError('cancelled', 'the process stops'));
      this.#logger.info(
        { error: FloeError.from(caught).message },
        'staged ranges are left for the next start',
      );
    }
  }

  #releaseWaiters(): void {
    for (const done of this.#commitWanted.splice(0)) done();
  }

  #countStaged(result: { rows: number; deadLetters: number; skipped: number }): void {
    const { metrics } = this.#deps;
    metrics.count('floe_table_rows_total', 'Rows staged', {}, result.rows);
    metrics.count('floe_table_dead_letters_total', 'Dead letters staged', {}, result.deadLetters);
    metrics.count('floe_table_skipped_total', 'Records skipped', {}, result.skipped);
  }

  #countCommit(outcome: Committed): void {
    const { metrics } = this.#deps;
    metrics.count('floe_table_files_total', 'Data files committed', {}, outcome.files);
    if (outcome.snapshotId !== undefined) {
      metrics.count('floe_table_commits_total', 'Snapshots committed');
    }
  }
}

/** Waits for all, then throws the first failure: no lane is left running behind the state's back. */
async function settleAll(work: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(work);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}
