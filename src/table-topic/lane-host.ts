// The lanes of a table that another node coordinates: follows the table's head, stages what the coordinator orders, and
// ahead of that whatever is worth a job. Begins anew with every epoch and generation, and after every failure. It decides
// nothing about the table: what is staged by two nodes at once, or for an epoch that is over, the store refuses (T1, T6).
// Not for: which partitions (placement.ts), jobs (lane.ts), commits (coordinator.ts). SPEC.md has the states.
import { AssertionError } from '../base/assert.ts';
import { FloeError } from '../base/error.ts';
import type { Component } from '../base/lifecycle.ts';
import type { Logger } from '../base/log.ts';
import type { Prng } from '../base/prng.ts';
import type { TableHead, TableLanesMetadata } from '../metadata/table-lanes.ts';
import type { Topic } from '../metadata/topics.ts';
import { AskingBinding } from './asking-binding.ts';
import type { BindingDeps } from './binding.ts';
import type { JobNeeds } from './job.ts';
import type { Lane } from './lane.ts';
import { formatAsk, type LaneAsk } from './lane-asks.ts';
import { type LaneSetDeps, laneTable, makeLanes, readPartitions, settleAll } from './lane-set.ts';
import type { TablePlacement } from './placement.ts';
import { TableProgress } from './progress.ts';
import { readOnlyBinding } from './read-only-binding.ts';
import { needsCoordinator } from './read-only-catalog.ts';
import { retryDelayMs } from './retry-delay.ts';
import { resolveTopicConfigs } from './settings/index.ts';
import { Signal } from './signal.ts';
import { tableVersion } from './table-version.ts';
import type { HeadFollower, TableWatch } from './table-watch.ts';

export interface LaneHostDeps extends LaneSetDeps, BindingDeps {
  readonly placement: TablePlacement;
  readonly words: TableLanesMetadata;
  readonly watch: TableWatch;
  readonly prng: Prng;
  readonly logger: Logger;
}

/** What the lanes work by, until the table's head says otherwise. */
interface Opened {
  readonly head: TableHead;
  readonly binding: AskingBinding;
  readonly own: readonly number[];
  readonly lanes: readonly Lane[];
  /** Number of the last order whose version was compared. */
  order: number;
}

/** How long a coordinator has for an answer: it may be busy with the catalog. */
const ASK_MS = 30_000;
/** Pending bytes are estimated at most this often while records stream in. */
const LOOK_EVERY_MS = 50;

export class LaneHost implements Component, HeadFollower {
  readonly #deps: LaneHostDeps;
  readonly #topic: Topic;
  readonly #logger: Logger;
  readonly #signal: Signal;
  readonly #progress: TableProgress;
  readonly #ends: (() => void)[] = [];
  #head: TableHead | undefined;
  /** What the newest order says. */
  #targets: ReadonlyMap<number, number> = new Map();
  #opened: Opened | undefined;
  #driving: Promise<void> | undefined;
  #stopped = false;
  #moved = false;
  #busy = false;
  #failures = 0;
  #lookedAtMs = Number.NEGATIVE_INFINITY;

  /** @throws FloeError `invalid` for a config that can't be resolved. */
  constructor(deps: LaneHostDeps, topic: Topic) {
    this.#deps = deps;
    this.#topic = topic;
    // Whether it can be is known at once.
    resolveTopicConfigs(topic.config);
    this.#logger = deps.logger.child({ topic: topic.name });
    this.#signal = new Signal(deps.clock);
    this.#progress = new TableProgress(deps, topic);
  }

  get topicId(): string {
    return this.#topic.topicId;
  }

  start(): void {
    if (this.#driving !== undefined) return;
    const { watch, placement, log } = this.#deps;
    this.#ends.push(
      watch.follow(this),
      log.subscribe(this.#topic.partitions, () => this.#noticed()),
      placement.onChange(() => {
        this.#moved = true;
        this.#signal.set();
      }),
    );
    this.#driving = this.#drive();
  }

  /** Ends after the jobs under way: what they staged is the coordinator's. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const end of this.#ends.splice(0)) end();
    this.#signal.set();
    await this.#driving;
  }

  busy(): boolean {
    return this.#busy;
  }

  follow(head: TableHead | undefined): void {
    this.#head = head;
    const { stagedBytes = 0, order } = head ?? {};
    this.#progress.stagedBytes = stagedBytes;
    this.#targets = new Map(order?.targets.map(({ partition, offset }) => [partition, offset]));
    this.#signal.set();
  }

  /** New records. Must be cheap: it is called at every commit of the log. */
  #noticed(): void {
    this.#busy = true;
    const now = this.#deps.clock.monotonic();
    if (now - this.#lookedAtMs < LOOK_EVERY_MS) return;
    this.#lookedAtMs = now;
    const { lanes } = this.#opened ?? {};
    if (lanes?.some((lane) => this.#wanted(lane)) === true) this.#signal.set();
  }

  async #drive(): Promise<void> {
    while (!this.#stopped) {
      try {
        const staged = await this.#turn();
        this.#busy = this.#opened?.lanes.some((lane) => lane.pendingRecords() > 0) ?? false;
        if (!staged) await this.#signal.wait();
        else this.#failures = 0;
      } catch (caught) {
        if (caught instanceof AssertionError) throw caught;
        this.#opened = undefined;
        if (!this.#stopped) await this.#failed(FloeError.from(caught));
      }
    }
  }

  /** Whether something was staged: then there may be more. */
  async #turn(): Promise<boolean> {
    const head = this.#head;
    if (head === undefined || !isAtWork(head)) {
      this.#opened = undefined;
      return false;
    }
    const opened = await this.#open(head);
    await this.#compare(opened, head);
    const wanted = opened.lanes.filter((lane) => this.#wanted(lane));
    if (wanted.length === 0) return false;
    const before = this.#staged(opened);
    const goesOn = (lane: Lane) => !this.#stopped && this.#isCurrent(opened) && this.#wanted(lane);
    await settleAll(wanted.map((lane) => lane.run(goesOn)));
    return this.#staged(opened) > before;
  }

  /** The sum of the staged ends: it rises with each stage. */
  #staged({ own }: Opened): number {
    return own.reduce((sum, partition) => sum + (this.#progress.stagedEnd(partition) ?? 0), 0);
  }

  /** The head, the partitions and the generation are those that the lanes began with. */
  #isCurrent({ head }: Opened): boolean {
    const now = this.#head;
    return !this.#moved && now !== undefined && isAtWork(now) && isSameWork(now, head);
  }

  async #open(head: TableHead): Promise<Opened> {
    if (this.#opened !== undefined && this.#isCurrent(this.#opened)) return this.#opened;
    this.#moved = false;
    const kept = this.#opened;
    const again = kept !== undefined && isSameWork(kept.head, head);
    // Of another generation: what the table of dead letters holds has to be looked up, too.
    const binding = again ? kept.binding : await this.#bind(head);
    await this.#progress.loadPositions();
    const own = readPartitions(this.#topic, this.#deps.placement.lanesOf(this.#topic));
    const table = laneTable(this.#deps, {
      topic: this.#topic,
      progress: this.#progress,
      binding,
      epoch: head.epoch,
      generation: () => head.generation,
    });
    const lanes = makeLanes(this.#deps, table, own);
    this.#opened = { head, binding, own, lanes, order: 0 };
    return this.#opened;
  }

  async #bind({ tableUuid, epoch }: TableHead): Promise<AskingBinding> {
    const binding = readOnlyBinding(this.#deps, this.#topic, tableUuid);
    await binding.open();
    return new AskingBinding(binding, (needs) => this.#askFor(epoch, needs));
  }

  /** With each order the table is held against the coordinator's. */
  async #compare(opened: Opened, { order }: TableHead): Promise<void> {
    if (order.number <= opened.order) return;
    const { inner } = opened.binding;
    if (order.version !== tableVersion(inner)) await inner.reload();
    opened.order = order.number;
  }

  /** Ordered, or worth a job. */
  #wanted(lane: Lane): boolean {
    const { settings } = this.#deps;
    if (this.#progress.stagedBytes >= settings['table.staged.max.bytes']) return false;
    if (lane.pendingRecords() === 0) return false;
    return (
      lane.pendingBytes() >= settings['table.job.start.bytes'] || lane.isShortOf(this.#targets)
    );
  }

  async #askFor(epoch: number, needs: JobNeeds): Promise<void> {
    const { words, ids, clock, settings } = this.#deps;
    const { topicId } = this;
    const askId = ids.uuid();
    const until = clock.monotonic() + ASK_MS;
    await words.ask(epoch, { askId, topicId, payload: formatAsk({ kind: 'needs', needs }) });
    for (;;) {
      await clock.sleep(settings['table.lanes.poll.ms']);
      if (this.#stopped) throw new FloeError('cancelled', 'the lanes of this table end');
      const [head] = await words.heads([topicId]);
      if (head === undefined || head.epoch !== epoch || !isAtWork(head)) {
        throw new FloeError('unavailable', 'the table has another coordinator, or stands still');
      }
      if (!head.asks.includes(askId)) return;
      if (clock.monotonic() >= until) {
        throw new FloeError('timeout', 'the coordinator of the table answers no lane');
      }
    }
  }

  async #failed(error: FloeError): Promise<void> {
    this.#failures += 1;
    const waits = needsCoordinator(error) || error.code === 'conflict';
    this.#logger[waits ? 'debug' : 'warn'](
      { code: error.code, error: error.message },
      'lanes of a table begin anew',
    );
    if (error.details['trouble'] === true && error.details['lost'] !== true) {
      await this.#tell({ kind: 'trouble', reason: error.message });
    }
    // The end cuts the delay short.
    await this.#signal.waitOut(retryDelayMs(this.#deps, this.#failures), () => !this.#stopped);
  }

  /** What only an operator can end is for the coordinator to report. */
  async #tell(ask: LaneAsk): Promise<void> {
    const { words, ids } = this.#deps;
    const { topicId } = this;
    const head = this.#head;
    if (head === undefined) return;
    try {
      await words.ask(head.epoch, { askId: ids.uuid(), topicId, payload: formatAsk(ask) });
    } catch (caught) {
      this.#logger.debug({ error: FloeError.from(caught).message }, 'trouble not told');
    }
  }
}

/** Lanes may stage: there is a table, and nobody said otherwise. */
const isAtWork = ({ state, paused, tableUuid }: TableHead): boolean =>
  state === 'running' && !paused && tableUuid !== '';

const isSameWork = (a: TableHead, b: TableHead): boolean =>
  a.epoch === b.epoch && a.generation === b.generation && a.tableUuid === b.tableUuid;
