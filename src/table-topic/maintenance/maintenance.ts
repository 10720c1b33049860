// The maintenance of all tables of a process: whose turn it is, on which worker, within which budget. Off the commit
// path: it shares nothing with commits but the catalog, waits while a table's commit is under way, and its thread
// gives way to the others. One table's trouble delays no other (rule T9): it only loses its turn.
// One maintainer per table: whoever holds the coordinator's epoch (rule T6).
import { AssertionError } from '../../base/assert.ts';
import type { Timer } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import type { Component } from '../../base/lifecycle.ts';
import type { MaintainedTable } from './requests.ts';
import type { UpkeepStatus } from './status.ts';
import type { MaintenanceTasks } from './task.ts';
import { TableUpkeep, type UpkeepConfig, type UpkeepDeps, type UpkeepRun } from './upkeep.ts';

/** A table that this process coordinates, as it is now. */
export interface MaintenanceSubject {
  /** Of the topic; the dead-letter table has its own. */
  readonly key: string;
  readonly table: MaintainedTable;
  readonly config: UpkeepConfig;
  /** The coordinator is between its look at the table and its commit. */
  readonly committing: () => boolean;
}

export interface MaintenanceOptions
  extends Omit<UpkeepDeps, 'tasks' | 'pace' | 'whenQuiet' | 'settings'> {
  readonly settings: UpkeepDeps['settings'] & {
    readonly 'table.maintenance.enable': boolean;
    readonly 'table.compact.bytes.per.second': number;
  };
  /** One per run at the same time. */
  readonly workers: readonly MaintenanceTasks[];
  readonly subjects: () => readonly MaintenanceSubject[];
}

/** Between two looks at whose turn it is: as long as nobody's is, within these. */
const MIN_TICK_MS = 1_000;
const MAX_TICK_MS = 10_000;

/** A commit is waited for in steps of this, so many at most: then optimistic concurrency has to do. */
const QUIET_STEP_MS = 5;
const QUIET_STEPS = 400;

interface Entry {
  readonly upkeep: (tasks: MaintenanceTasks) => TableUpkeep;
  readonly view: TableUpkeep;
  /** Monotonic. */
  dueMs: number;
  running: Promise<unknown> | undefined;
}

export class TableMaintenance implements Component {
  readonly #options: MaintenanceOptions;
  readonly #abort = new AbortController();
  readonly #entries = new Map<string, Entry>();
  readonly #free: MaintenanceTasks[];
  readonly #waiting: ((tasks: MaintenanceTasks) => void)[] = [];
  #timer: Timer | undefined;

  constructor(options: MaintenanceOptions) {
    this.#options = options;
    this.#free = [...options.workers];
  }

  start(): void {
    if (this.#options.settings['table.maintenance.enable']) this.#schedule();
  }

  async stop(): Promise<void> {
    this.#abort.abort(new FloeError('cancelled', 'table maintenance stops'));
    this.#timer?.cancel();
    await Promise.allSettled([...this.#entries.values()].map((entry) => entry.running));
  }

  /** Undefined for a table that was never looked at. */
  status(key: string): UpkeepStatus | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    const { clock, settings } = this.#options;
    const inMs = Math.max(0, entry.dueMs - clock.monotonic());
    return entry.view.status(
      settings['table.maintenance.enable'] ? Math.round(clock.now() + inMs) : 0,
    );
  }

  /** Runs at once, by order of an operator. @throws FloeError `not-found`, or what kept it from its work. */
  async runNow(key: string, force: 'compact' | 'expire'): Promise<void> {
    const subject = this.#options.subjects().find((one) => one.key === key);
    if (subject === undefined)
      throw new FloeError('unavailable', 'the table is not at work: see its state and reason');
    const entry = this.#entry(subject);
    // Whoever waited with us may have been first.
    while (entry.running !== undefined) await entry.running.catch(() => {});
    await this.#occupy(entry, this.#run(subject, entry, force));
  }

  /** One run at a time per table, whoever ordered it: the entry has one worker. */
  async #occupy(entry: Entry, run: Promise<unknown>): Promise<void> {
    const running = run.finally(() => {
      entry.running = undefined;
    });
    entry.running = running;
    await running;
  }

  #schedule(): void {
    const { clock } = this.#options;
    const now = clock.monotonic();
    // One that is at work may be due again as soon as it is done.
    const dueMs = [...this.#entries.values()].map((one) => (one.running ? now : one.dueMs));
    const waitMs = Math.min(MAX_TICK_MS, Math.max(MIN_TICK_MS, Math.min(...dueMs) - now));
    this.#timer = clock.setTimer(this.#entries.size === 0 ? MIN_TICK_MS : waitMs, () => {
      this.#tick();
      if (!this.#abort.signal.aborted) this.#schedule();
    });
  }

  #tick(): void {
    const now = this.#options.clock.monotonic();
    const subjects = this.#options.subjects();
    // Whoever has waited longest first: else the same tables would take every turn.
    const turns = subjects.map((subject) => ({ subject, entry: this.#entry(subject) }));
    for (const { subject, entry } of turns.toSorted((a, b) => a.entry.dueMs - b.entry.dueMs)) {
      if (entry.running !== undefined || now < entry.dueMs || this.#free.length === 0) continue;
      void this.#occupy(entry, this.#turn(subject, entry));
    }
    const present = new Set(subjects.map((one) => one.key));
    for (const [key, entry] of this.#entries)
      if (!present.has(key) && entry.running === undefined) this.#entries.delete(key);
  }

  async #turn(subject: MaintenanceSubject, entry: Entry): Promise<void> {
    const { clock, logger } = this.#options;
    const intervalMs = subject.config['table.topic.compact.interval.ms'];
    try {
      const more = await this.#run(subject, entry);
      entry.dueMs = clock.monotonic() + (more ? 0 : intervalMs);
    } catch (caught) {
      if (caught instanceof AssertionError) throw caught;
      entry.dueMs = clock.monotonic() + intervalMs;
      const error = FloeError.from(caught);
      if (error.code === 'cancelled') return;
      logger.warn(
        { table: subject.table.identifier, code: error.code, error: error.message },
        'table maintenance failed, the next turn tries again',
      );
    }
  }

  async #run(
    subject: MaintenanceSubject,
    entry: Entry,
    force?: UpkeepRun['force'],
  ): Promise<boolean> {
    const tasks = await this.#lease();
    const { signal } = this.#abort;
    try {
      signal.throwIfAborted();
      const { config, table } = subject;
      const run = { config, signal, ...(force === undefined ? {} : { force }) };
      return await entry.upkeep(tasks).run(table, run);
    } finally {
      this.#release(tasks);
    }
  }

  #lease(): Promise<MaintenanceTasks> {
    const free = this.#free.pop();
    if (free !== undefined) return Promise.resolve(free);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #release(tasks: MaintenanceTasks): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free.push(tasks);
    else next(tasks);
  }

  /** A new table's first turn is somewhere in its first interval, so that tables don't come all at once. */
  #entry(subject: MaintenanceSubject): Entry {
    const known = this.#entries.get(subject.key);
    if (known !== undefined) return known;
    const { clock, prng } = this.#options;
    let leased: MaintenanceTasks = this.#options.workers[0]!;
    const view = new TableUpkeep({
      ...this.#options,
      // One run at a time per table: the worker that it leased.
      get tasks() {
        return leased;
      },
      pace: (bytes, tookMs, signal) => this.#pace(bytes, tookMs, signal),
      whenQuiet: (table) => this.#whenQuiet(table),
    });
    const entry: Entry = {
      view,
      upkeep: (tasks) => {
        leased = tasks;
        return view;
      },
      dueMs: clock.monotonic() + prng.next() * subject.config['table.topic.compact.interval.ms'],
      running: undefined,
    };
    this.#entries.set(subject.key, entry);
    return entry;
  }

  async #pace(bytes: number, tookMs: number, signal: AbortSignal): Promise<void> {
    const { settings, clock } = this.#options;
    const rate = settings['table.compact.bytes.per.second'];
    const waitMs = rate === 0 ? 0 : (bytes / rate) * 1_000 - tookMs;
    if (waitMs > 1) await clock.sleep(Math.ceil(waitMs), signal);
  }

  async #whenQuiet(table: MaintainedTable): Promise<void> {
    const { clock } = this.#options;
    const committing = () =>
      this.#options
        .subjects()
        .find((one) => one.table.topicId === table.topicId)
        ?.committing() ?? false;
    for (let step = 0; step < QUIET_STEPS && committing(); step += 1)
      await clock.sleep(QUIET_STEP_MS, this.#abort.signal);
  }
}
