// The coordinator of one table: its life from state to state and an operator's commands. Everything a table waits for
// it waits for alone (rule T9): own queue, own backoff, own budget. SPEC.md has the states and the invariants.
// Not for: which topics are tables (table-topics.ts), what it holds of the table (table-session.ts), lanes and the
// commit clock (staging.ts), commits (commit-rounds.ts).

import { AssertionError } from '../base/assert.ts';
import { FloeError } from '../base/error.ts';
import type { Component } from '../base/lifecycle.ts';
import { within } from '../base/lifecycle.ts';
import type { Logger } from '../base/log.ts';
import type { LoadedTable, TableIdentifier } from '../catalog/catalog.ts';
import type { TableAsk } from '../metadata/table-lanes.ts';
import type { Topic } from '../metadata/topics.ts';
import { CommitRounds, type CommitRoundsDeps } from './commit-rounds.ts';
import { parseAsk } from './lane-asks.ts';
import type { ReplayDeps, Replayed } from './operations/replay.ts';
import type { RewindDeps, Rewound } from './operations/rewind.ts';
import type { RecoveryPolicy } from './positions.ts';
import { TableProgress } from './progress.ts';
import { retryDelayMs } from './retry-delay.ts';
import type { TableSettings } from './settings/index.ts';
import { Signal } from './signal.ts';
import { type StagingDeps, TableStaging } from './staging.ts';
import { countTrouble } from './table-metrics.ts';
import { type SessionDeps, TableSession } from './table-session.ts';
import { mayCommit, mayStage, nextState, type TableEvent, type TableState } from './table-state.ts';
import type { AskTaker, TableWatch } from './table-watch.ts';
import { trouble } from './trouble.ts';
import type { Offsets } from './watermark.ts';

export interface CoordinatorDeps
  extends StagingDeps,
    SessionDeps,
    Omit<RewindDeps, 'settings' | 'logger'>,
    Omit<ReplayDeps, 'settings'>,
    Omit<CommitRoundsDeps, 'settings'> {
  readonly settings: TableSettings;
  /** Looks for what lanes on other nodes ask; undefined: there are no other nodes. */
  readonly watch: TableWatch | undefined;
  /** Called when another coordinator's epoch was seen. */
  readonly onFenced?: () => void;
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

/** What an operator asked for, until it is done or can't be any more. */
interface Operation {
  /** Before the table is looked up, or as soon as it is. */
  readonly when: 'before' | 'opened';
  readonly run: () => Promise<void>;
  readonly drop: () => void;
}

const ENDED: readonly TableState[] = ['stopping', 'stopped', 'fenced'];

export class TableCoordinator implements Component, AskTaker {
  readonly #deps: CoordinatorDeps;
  readonly #topic: Topic;
  readonly #logger: Logger;
  readonly #signal: Signal;
  readonly #abort = new AbortController();
  readonly #progress: TableProgress;
  readonly #session: TableSession;
  readonly #staging: TableStaging;
  readonly #rounds: CommitRounds;
  #state: TableState = 'starting';
  #reason = '';
  #failures = 0;
  #commitWanted: (() => void)[] = [];
  #committing: Promise<void> | undefined;
  #inCommit = false;
  #driving: Promise<void> | undefined;
  #policy: RecoveryPolicy | undefined;
  #operations: readonly Operation[] = [];
  /** Asks of lanes on other nodes that are being answered, by id. */
  readonly #asked = new Set<string>();
  #untake: () => void = () => {};

  constructor(deps: CoordinatorDeps, topic: Topic) {
    this.#deps = deps;
    this.#topic = topic;
    this.#logger = deps.logger.child({ topic: topic.name });
    this.#signal = new Signal(deps.clock);
    this.#progress = new TableProgress(deps, topic);
    this.#session = new TableSession({ ...deps, logger: this.#logger }, topic, this.#progress);
    const table = { topic, session: this.#session, progress: this.#progress };
    this.#staging = new TableStaging(deps, {
      ...table,
      signal: this.#signal,
      mayStage: () => mayStage(this.#state),
    });
    this.#rounds = new CommitRounds(
      { ...deps, logger: this.#logger },
      {
        ...table,
        signal: this.#abort.signal,
        state: () => this.#state,
        mayCommit: () => mayCommit(this.#state),
      },
    );
  }

  get topic(): Topic {
    return this.#topic;
  }

  get topicId(): string {
    return this.#topic.topicId;
  }

  start(): void {
    if (this.#driving !== undefined) return;
    this.#untake = this.#deps.watch?.take(this) ?? this.#untake;
    this.#driving = this.#drive();
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

  /** Sends the table back to these offsets, by partition: rows from there on are made again. */
  rewind(to: Offsets): Promise<Rewound> {
    return this.#operate('before', () => this.#session.rewind(this.#deps, to));
  }

  /** Tries the dead letters again; those that are rows by now enter the table. */
  async replay(): Promise<Replayed> {
    if (this.#state === 'paused') {
      throw new FloeError('unavailable', 'the table is paused: resume it, then replay');
    }
    return this.#operate('opened', () => this.#session.replay(this.#deps));
  }

  /** Runs an operator's work between two pieces of this table's life, when nothing else is under way. */
  #operate<T>(when: Operation['when'], work: () => Promise<T>): Promise<T> {
    const ended = ENDED.includes(this.#state);
    if (ended) throw new FloeError('unavailable', `the table is ${this.#state}: ${this.#reason}`);
    return new Promise<T>((resolve, reject) => {
      const run = async () => {
        try {
          resolve(await work());
        } catch (caught) {
          reject(caught);
        }
      };
      const drop = () =>
        reject(new FloeError('unavailable', `the table is ${this.#state}: nothing was done`));
      this.#operations = [...this.#operations, { when, run, drop }];
      this.#step('retry');
      this.#signal.set();
    });
  }

  async #runOperations(now: Operation['when']): Promise<void> {
    const due = this.#operations.filter(({ when }) => when === now);
    this.#operations = this.#operations.filter(({ when }) => when !== now);
    for (const { run } of due) await run();
  }

  /** What can't wait for the table: it may be suspended for long. */
  #dropOperations(): void {
    const dropped = this.#operations;
    this.#operations = [];
    for (const { drop } of dropped) drop();
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
    this.#staging.expedite();
    this.#signal.set();
    await done;
    if (this.#is('suspended')) throw new FloeError('unavailable', this.#reason);
    if (!this.#abort.signal.aborted) return;
    throw new FloeError('unavailable', 'the table is coordinated anew, or elsewhere: try again');
  }

  /** Read afresh: a compiler can't know that the state moves while we wait. */
  #is(state: TableState): boolean {
    return this.#state === state;
  }

  view(): CoordinatorView {
    const lagRecords = this.#progress.lagRecords();
    const { record, identifier, tableUuid } = this.#session;
    return {
      state: this.#state,
      reason: this.#reason,
      identifier,
      tableUuid,
      epoch: record?.epoch ?? 0,
      generation: record?.generation ?? 0,
      lagRecords,
      lagSeconds: lagRecords === 0 ? 0 : this.#staging.lagSeconds(),
      stagedBytes: this.#progress.stagedBytes,
    };
  }

  /** What a query needs to read the table's tail; undefined while there is no table. */
  tailParts() {
    const binding = this.#session.binding;
    if (binding === undefined) return undefined;
    const startOf = (partition: number) => this.#progress.committedEnd(partition);
    return { topic: this.#topic, binding, startOf };
  }

  /** Retention stays behind this offset (M3); undefined while it isn't known. */
  committedOffset(partition: number): number | undefined {
    return this.#progress.committedEnd(partition);
  }

  /** A commit is under way: between its look at the table and the catalog's answer. */
  get committing(): boolean {
    return this.#inCommit;
  }

  /** The tables whose upkeep this coordinator answers for: none unless it is at work (rule T6). */
  upkept(): readonly LoadedTable[] {
    const { binding } = this.#session;
    if (this.#state !== 'running' || binding === undefined) return [];
    return [binding.table, binding.deadLetterTable].filter((table) => table !== undefined);
  }

  /** Records wait, so lanes elsewhere may have something to ask. */
  busy(): boolean {
    return this.#staging.dueInMs() !== undefined || this.#inCommit;
  }

  /** What lanes on other nodes may not do themselves (T10). What can't be answered now is seen again. */
  take(asks: readonly TableAsk[]): void {
    for (const ask of asks) {
      if (this.#asked.has(ask.askId)) continue;
      this.#asked.add(ask.askId);
      void this.#guard(() => this.#answer(ask)).finally(() => this.#asked.delete(ask.askId));
    }
  }

  async #answer({ askId, payload }: TableAsk): Promise<void> {
    const { binding } = this.#session;
    const words = this.#deps.placement.words;
    if (this.#state !== 'running' || binding === undefined || words === undefined) return;
    const { epoch } = this.#session;
    try {
      const ask = parseAsk(payload);
      if (ask.kind === 'trouble') throw trouble(ask.reason);
      await binding.satisfy(ask.needs);
    } finally {
      // Whatever came of it: who still misses something asks anew.
      await words.answer(this.topicId, epoch, [askId]);
    }
  }

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
          if (this.#operations.length > 0) await this.#guard(() => this.#operatePaused());
          else await this.#signal.wait();
          break;
        case 'suspended': {
          this.#releaseWaiters();
          this.#dropOperations();
          // A word of an operator cuts the delay short.
          const delayMs = retryDelayMs(this.#deps, this.#failures);
          await this.#signal.waitOut(delayMs, () => this.#is('suspended'));
          this.#step('retry');
          break;
        }
        case 'stopping':
          await this.#finish();
          this.#step('stopped');
          break;
        case 'stopped':
        case 'fenced':
          this.#releaseWaiters();
          this.#dropOperations();
          this.#staging.close();
          this.#session.close();
          this.#untake();
          await this.#committing;
          if (this.#is('fenced')) this.#deps.onFenced?.();
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
    countTrouble(this.#deps.metrics, error.code);
    this.#logger.warn({ code: error.code, error: error.message }, 'table suspended');
    this.#step('trouble', error.message);
    this.#signal.set();
  }

  #step(event: TableEvent, reason = ''): void {
    const next = nextState(this.#state, event);
    if (next === this.#state && event !== 'trouble') return;
    this.#state = next;
    this.#reason = reason;
    if (next !== 'fenced' && next !== 'stopped') void this.#session.report(next, reason);
  }

  async #open(): Promise<void> {
    await this.#committing;
    const held = await this.#session.claim();
    if (held === 'fenced') return this.#step('fenced', 'another coordinator holds this table');
    await this.#runOperations('before');
    if (held === 'paused') return this.#step('pause', 'paused by an operator');
    if (this.#policy !== undefined) {
      await this.#session.recover(this.#policy);
      this.#policy = undefined;
    }
    const there = await this.#session.open();
    if (there) {
      await this.#session.settleReplays();
      await this.#runOperations('opened');
    } else this.#dropOperations();
    this.#rounds.forget();
    this.#staging.open();
    this.#failures = 0;
    this.#step(there ? 'opened' : 'no-columns');
    this.#staging.rearm();
    // What was asked for while the table was being opened.
    if (this.#operations.length > 0) this.#step('retry');
  }

  async #operatePaused(): Promise<void> {
    await this.#committing;
    if ((await this.#session.claim()) === 'fenced') {
      return this.#step('fenced', 'another coordinator holds this table');
    }
    await this.#runOperations('before');
    this.#dropOperations();
  }

  async #turn(): Promise<void> {
    if (this.#staging.due()) return this.#commitTurn();
    if (await this.#staging.runWorthy()) return;
    await this.#signal.wait(this.#staging.dueInMs());
  }

  /** Stages what is in the log by now, then commits beside the next interval's jobs. */
  async #commitTurn(): Promise<void> {
    const waiters = this.#commitWanted;
    this.#commitWanted = [];
    try {
      // What fails is the table's state before those who wait look at it.
      await this.#guard(() => this.#stageAndCommit(waiters.length > 0));
    } finally {
      for (const done of waiters) done();
    }
  }

  /** `patient`: somebody waits until all of it is committed. */
  async #stageAndCommit(patient: boolean): Promise<void> {
    const tickMs = this.#deps.clock.now();
    const tableCame = () => this.#noteTable();
    await this.#staging.stageUpTo(this.#progress.targets(), { patient, tableCame });
    await this.#committing;
    this.#committing = this.#guard(() => this.#commit(tickMs));
    if (patient) await this.#committing;
    this.#staging.rearm();
  }

  /** True when records called the table into being just now. */
  #noteTable(): boolean {
    if (this.#state !== 'waiting' || this.#session.binding?.table === undefined) return false;
    this.#step('opened');
    return true;
  }

  /** Up to what was in the log at `tickMs` (wall time). */
  async #commit(tickMs: number): Promise<void> {
    this.#inCommit = true;
    const end = await this.#rounds.run().finally(() => {
      this.#inCommit = false;
    });
    if (end.kind === 'fenced') return this.#step('fenced', end.reason);
    if (end.kind === 'rewound') this.#staging.rearm();
    await this.#staging.recount();
    this.#failures = 0;
    this.#staging.caughtUp(tickMs);
  }

  async #finish(): Promise<void> {
    const { clock, settings } = this.#deps;
    const last = async () => {
      await this.#committing;
      await this.#rounds.run();
    };
    try {
      await within(clock, settings['table.stop.commit.ms'], last(), 'the last commit');
    } catch (caught) {
      this.#abort.abort(new FloeError('cancelled', 'the process stops'));
      // A request may still be on its way: whoever comes next finds it in the table, or it is refused (T4, T6).
      this.#committing = undefined;
      this.#logger.info(
        { error: FloeError.from(caught).message },
        'staged ranges are left for the next start',
      );
    }
  }

  #releaseWaiters(): void {
    for (const done of this.#commitWanted.splice(0)) done();
  }
}
