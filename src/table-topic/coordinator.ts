// The coordinator of one table: its state, its clock, its lanes, its commits. Everything a table waits for it waits
// for alone (rule T9): own queue, own backoff, own budget. SPEC.md has the states and the invariants.
// Not for: which topics are tables (table-topics.ts), what a job or a commit does (lane.ts, commit.ts).

import { AssertionError } from '../base/assert.ts';
import { FloeError, isFloeError } from '../base/error.ts';
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
import { backfillOffset, type RecoveryPolicy, recover } from './positions.ts';
import { resolveTopicConfigs, type TableSettings, tableIdentifier } from './settings.ts';
import { Signal } from './signal.ts';
import { type Refused, STAGES_PER_COMMIT, TableCommits } from './table-commits.ts';
import { mayCommit, mayStage, nextState, type TableEvent, type TableState } from './table-state.ts';
import { readBack } from './watermark.ts';

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
  readonly #stagedEnds = new Map<number, number>();
  readonly #committedEnds = new Map<number, number>();
  #stagedBytes = 0;
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
    const lagRecords = this.#lagRecords();
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
      stagedBytes: this.#stagedBytes,
    };
  }

  /** Retention stays behind this offset (M3); undefined while it isn't known. */
  committedOffset(partition: number): number | undefined {
    return this.#committedEnds.get(partition);
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
    if (this.#policy !== undefined) await this.#recover(this.#policy, config);
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
      await this.#adoptPosition();
    }
    await this.#initPositions(config);
    this.#makeLanes(config, version);
    this.#failures = 0;
    this.#step(there ? 'opened' : 'no-columns');
    this.#rearm();
  }

  /** The table's own offsets win over what is stored here (T4). */
  async #adoptPosition(): Promise<void> {
    const { metadata } = this.#binding!.table!;
    const back = readBack(metadata);
    if (back.kind === 'moved') throw movedTrouble();
    if (back.kind !== 'at') return;
    const offsets = back.watermark.topics.get(this.#topic.topicId);
    if (offsets === undefined) return;
    const positions = [...offsets].map(([partition, committedEnd]) => ({
      partition,
      committedEnd,
    }));
    const { topicId } = this.#topic;
    await this.#deps.tables.markCommitted({
      topicId,
      epoch: this.#record!.epoch,
      sequences: [],
      positions,
    });
  }

  async #initPositions(config: ReturnType<typeof resolveTopicConfigs>): Promise<void> {
    const { tables, log } = this.#deps;
    const { topicId, partitions } = this.#topic;
    const known = await tables.positions(topicId);
    const missing = partitions.keys().filter((at) => !known.some((one) => one.partition === at));
    // Partitions added to a table's topic hold only what came after it was enabled.
    const backfill = known.length === 0 ? config['table.topic.backfill'] : 'earliest';
    const fresh = await Promise.all(
      missing.map(async (partition) => ({
        partition,
        offset: await backfillOffset(log, partitions[partition]!, backfill),
      })),
    );
    if (fresh.length > 0) await tables.initPositions(topicId, fresh);
    await this.#loadPositions();
  }

  async #loadPositions(): Promise<void> {
    const { tables } = this.#deps;
    for (const { partition, stagedEnd, committedEnd } of await tables.positions(
      this.#topic.topicId,
    )) {
      this.#stagedEnds.set(partition, stagedEnd);
      this.#committedEnds.set(partition, committedEnd);
    }
    const stages = await tables.stages(this.#topic.topicId, STAGES_PER_COMMIT);
    this.#stagedBytes = stages.reduce((sum, stage) => sum + stage.bytes, 0);
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
      stagedEnd: (partition: number) => this.#stagedEnds.get(partition),
      setStagedEnd: (partition: number, offset: number) => {
        this.#stagedEnds.set(partition, offset);
      },
      staged: (bytes: number, result: { rows: number; deadLetters: number; skipped: number }) => {
        this.#stagedBytes += bytes;
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
    const room = this.#stagedBytes < settings['table.staged.max.bytes'];
    return room && lane.pendingBytes() >= settings['table.job.start.bytes'];
  }

  /** Arms the commit clock when something waits. */
  #rearm(): void {
    const waiting = this.#stagedBytes > 0 || this.#lanes.some((lane) => lane.pendingRecords() > 0);
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
      const targets = this.#targets();
      const goesOn = (lane: Lane) =>
        mayStage(this.#state) &&
        this.#sameLanes(lane) &&
        this.#stagedBytes < settings['table.staged.max.bytes'] &&
        (waiters.length > 0 || clock.monotonic() < deadline) &&
        this.#short(targets);
      await settleAll(this.#workLanes().map((lane) => lane.run(goesOn)));
      if (this.#noteTable()) await settleAll(this.#workLanes().map((lane) => lane.run(goesOn)));
      this.#commitAtMs = undefined;
      await this.#committing;
      this.#committing = this.#guard(async () => {
        await this.#commit();
        this.#failures = 0;
        this.#behindSinceMs = this.#lagRecords() === 0 ? undefined : tickMs;
      });
      if (waiters.length > 0) await this.#committing;
      this.#rearm();
    } finally {
      for (const done of waiters) done();
    }
  }

  #targets(): ReadonlyMap<number, number> {
    const { log } = this.#deps;
    return new Map(
      this.#topic.partitions.map((partitionId, partition) => [
        partition,
        log.watermarks(partitionId)?.lastStableOffset ?? 0,
      ]),
    );
  }

  #short(targets: ReadonlyMap<number, number>): boolean {
    return [...targets].some(
      ([partition, target]) => (this.#stagedEnds.get(partition) ?? target) < target,
    );
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
    for (const [partition, offset] of outcome.offsets) this.#committedEnds.set(partition, offset);
    this.#stagedBytes -= round.bytes;
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

  /** T8, T4: what is staged doesn't fit the table; it is read again from where the table is. */
  async #rewindToTable(): Promise<void> {
    const { tables, clock } = this.#deps;
    const { topicId } = this.#topic;
    await this.#binding!.reload();
    const back = readBack(this.#binding!.table!.metadata);
    if (back.kind === 'moved') throw movedTrouble();
    const offsets = back.kind === 'at' ? back.watermark.topics.get(topicId) : undefined;
    const positions = (await tables.positions(topicId)).map(({ partition, committedEnd }) => ({
      partition,
      offset: offsets?.get(partition) ?? committedEnd,
    }));
    this.#record = await tables.rewind(topicId, this.#record!.epoch, {
      positions,
      nowMs: clock.now(),
    });
    await this.#loadPositions();
    this.#rearm();
  }

  async #recover(
    policy: RecoveryPolicy,
    config: ReturnType<typeof resolveTopicConfigs>,
  ): Promise<void> {
    const { catalog, tables, ids, clock, log } = this.#deps;
    const { topicId, partitions } = this.#topic;
    let offsets: ReadonlyMap<number, number> = new Map();
    try {
      const commitId = ids.uuid();
      const epoch = this.#record!.epoch;
      ({ offsets } = await recover(catalog, this.#identifier, {
        topicId,
        policy,
        epoch,
        commitId,
      }));
    } catch (caught) {
      if (!isFloeError(caught, 'not-found')) throw caught;
    }
    const positions = await Promise.all(
      partitions.map(async (partitionId, partition) => ({
        partition,
        offset:
          offsets.get(partition) ??
          (await backfillOffset(log, partitionId, config['table.topic.backfill'])),
      })),
    );
    await tables.rewind(topicId, this.#record!.epoch, { positions, nowMs: clock.now() });
    const changes = policy === 'restart' ? { tableUuid: '' } : {};
    this.#record = await tables.update(topicId, this.#record!.epoch, changes);
    this.#policy = undefined;
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

  #lagRecords(): number {
    let lag = 0;
    for (const [partition, partitionId] of this.#topic.partitions.entries()) {
      const marks = this.#deps.log.watermarks(partitionId);
      if (marks === undefined) continue;
      // A table that never got as far as its position has everything before it.
      const committed = this.#committedEnds.get(partition) ?? marks.logStartOffset;
      lag += Math.max(0, marks.lastStableOffset - committed);
    }
    return lag;
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

function movedTrouble(): FloeError {
  return trouble(
    'the table was rolled back or its history rewritten by somebody: resume with policy "rewind" (write again what it lost), "keep" (go on without it) or "restart"',
  );
}

/** Waits for all, then throws the first failure: no lane is left running behind the state's back. */
async function settleAll(work: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(work);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}
