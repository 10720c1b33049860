// All table topics of a process: which topics are tables, one coordinator each, their status and commands.
// Follows the topic directory; a topic's trouble stays with its coordinator.
// Not for: what a coordinator does (coordinator.ts), HTTP (routes.ts).
import type { Timer } from '../base/clock.ts';
import { FloeError } from '../base/error.ts';
import type { Component } from '../base/lifecycle.ts';
import type { TableIdentifier } from '../catalog/catalog.ts';
import type { ClusterNode } from '../cluster/index.ts';
import type { TableMetadata } from '../formats/iceberg/types.ts';
import { QUARANTINE_CONFIG, quarantinedPartitions } from '../metadata/quarantine.ts';
import type { TableLanesMetadata } from '../metadata/table-lanes.ts';
import type { TableCounters, TableRecord } from '../metadata/tables.ts';
import type { TopicChange } from '../metadata/topic-directory.ts';
import type { Topic } from '../metadata/topics.ts';
import { type CoordinatorDeps, type CoordinatorView, TableCoordinator } from './coordinator.ts';
import { LaneHost } from './lane-host.ts';
import { DeadLetterTables } from './maintenance/dead-letter-tables.ts';
import { type MaintenanceSubject, TableMaintenance } from './maintenance/maintenance.ts';
import type { MaintenanceTasks } from './maintenance/task.ts';
import type { Replayed } from './operations/replay.ts';
import type { Rewound } from './operations/rewind.ts';
import { type RewindTo, rewindOffsets } from './operations/rewind-to.ts';
import { soloPlacement, type TablePlacement } from './placement.ts';
import type { RecoveryPolicy } from './positions.ts';
import { retireTable } from './relocate.ts';
import {
  isEnabled,
  isTableTopicConfig,
  resolveTopicConfigs,
  tableIdentifier,
} from './settings/index.ts';
import { sweep } from './sweep.ts';
import { TableRecords } from './table-records.ts';
import type { TableState } from './table-state.ts';
import { leftOut, leftOutReason, localView, storedView, type TableStatus } from './table-status.ts';
import { TableTails, tailTable } from './table-tails.ts';
import { TableWatch } from './table-watch.ts';
import { readTail, type TableTail, type TailAnswer } from './tail.ts';

export interface TableTopicsOptions extends Omit<CoordinatorDeps, 'placement' | 'watch'> {
  /** Which node does what; missing: this one is alone. */
  readonly placement?: TablePlacement;
  /** False while a restore of the metadata isn't confirmed: what it forgot may be a table's. Missing: true. */
  readonly mayDelete?: () => Promise<boolean>;
  /** Missing: tables aren't maintained by this process. */
  readonly maintenanceWorkers?: readonly MaintenanceTasks[];
}

/** What a node is asked to do for a table: its commits and its place, or its files. */
export type TableDuty = 'coordinator' | 'upkeep';

interface Entry {
  topic: Topic;
  /** False while it is being made: nothing of it has begun. */
  entered: boolean;
  /** This node is the one that coordinates the table. */
  held: boolean;
  coordinator: TableCoordinator | undefined;
  /** Of a table that another node coordinates: this node's share of its partitions. */
  lanes: LaneHost | undefined;
  /** Why there is neither: a config that can't be resolved. */
  fault: string;
  /** Changes of one topic happen one after the other. */
  work: Promise<void>;
  /** Ends the wish to coordinate it. */
  unwant: () => Promise<void>;
}

export class TableTopics implements Component {
  readonly #options: TableTopicsOptions;
  readonly #placement: TablePlacement;
  /** Of a node among others. */
  readonly #watch: TableWatch | undefined;
  readonly #records: TableRecords | undefined;
  readonly #tails: TableTails | undefined;
  readonly #letterTables: DeadLetterTables;
  readonly #entries = new Map<string, Entry>();
  readonly #unsubscribe: () => void;
  readonly #maintenance: TableMaintenance | undefined;
  #sweeping: Timer | undefined;
  #stopped = false;

  constructor(options: TableTopicsOptions) {
    this.#options = options;
    this.#placement = options.placement ?? soloPlacement;
    const { words } = this.#placement;
    this.#letterTables = new DeadLetterTables(options);
    if (words !== undefined) {
      this.#watch = new TableWatch({ ...options, words });
      this.#records = new TableRecords({ ...options, words });
      this.#tails = new TableTails(options, words);
    }
    for (const topic of options.directory.all()) this.#changed(topic);
    this.#unsubscribe = options.directory.onChange((change) => this.#onChange(change));
    options.metrics.observeGauge('floe_table_suspended', 'Tables in trouble', () =>
      this.#count('suspended'),
    );
    options.metrics.observeGauge('floe_table_running', 'Tables at work', () =>
      this.#count('running'),
    );
    options.metrics.observeGauge('floe_table_lag_seconds', 'The slowest table’s lag', () =>
      Math.max(0, ...this.#views().map(({ lagSeconds }) => lagSeconds)),
    );
    options.metrics.observeGauge('floe_table_lag_records', 'Records not committed yet', () =>
      this.#lag(),
    );
    const quarantined = 'Partitions that tables leave out while they are quarantined';
    options.metrics.observeGauge('floe_table_quarantined_partitions', quarantined, () =>
      this.#leftOut(),
    );
    this.#scheduleSweep();
    const { maintenanceWorkers: workers } = options;
    if (workers === undefined) return;
    const subjects = () => this.#subjects();
    this.#maintenance = new TableMaintenance({ ...options, workers, subjects });
    this.#maintenance.start();
  }

  /** Commits or leaves staged, within `table.stop.commit.ms` per table, all at once. */
  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#unsubscribe();
    this.#sweeping?.cancel();
    await this.#maintenance?.stop();
    await Promise.all(
      [...this.#entries.values()].map(async (entry) => {
        await entry.work;
        await Promise.all([entry.coordinator?.stop(), entry.lanes?.stop()]);
        await entry.unwant();
      }),
    );
    await Promise.all([this.#watch?.stop(), this.#records?.stop(), this.#placement.stop()]);
  }

  /** By topic name. @throws FloeError `not-found`. */
  async status(name: string): Promise<TableStatus> {
    const entry = this.#byName(name);
    return this.#statusOf(entry);
  }

  /** A table that another node coordinates is told of from the metadata store. */
  async list(): Promise<readonly TableStatus[]> {
    const entries = [...this.#entries.values()].toSorted((a, b) =>
      a.topic.name < b.topic.name ? -1 : 1,
    );
    return Promise.all(entries.map((entry) => this.#statusOf(entry)));
  }

  async pause(name: string): Promise<void> {
    await (await this.#coordinator(name)).pause();
  }

  async resume(name: string, policy?: RecoveryPolicy): Promise<void> {
    await (await this.#coordinator(name)).resume(policy);
  }

  /**
   * Sends the table back: its rows from the asked offset or time on are taken out and made again from the log.
   * Offsets the log has no more are cut to its start: rows from before stay as they are.
   * @throws FloeError `invalid`, `unsupported`, or what kept it from it; the table is then as it was.
   */
  async rewind(name: string, to: RewindTo): Promise<Rewound> {
    const coordinator = await this.#coordinator(name);
    const offsets = await rewindOffsets(this.#options.log, coordinator.topic, to);
    return coordinator.rewind(offsets);
  }

  /** Tries the table's dead letters again, from the log. @throws FloeError; what was done until then stays done. */
  async replay(name: string): Promise<Replayed> {
    return (await this.#coordinator(name)).replay();
  }

  /** Returns once what was in the log when called is committed. @throws FloeError `unavailable` with the reason. */
  async commit(name: string): Promise<void> {
    await (await this.#coordinator(name)).commitNow();
  }

  /** Compacts the table, or expires its snapshots, at once. @throws FloeError `unavailable`, or what kept it from it. */
  async maintain(name: string, what: 'compact' | 'expire'): Promise<void> {
    const { topic } = this.#byName(name);
    if (this.#maintenance === undefined)
      throw new FloeError('unavailable', 'this process maintains no tables');
    const keys = this.#subjects().filter(({ table }) => table.topicId === topic.topicId);
    for (const { key } of keys) await this.#maintenance.runNow(key, what);
    if (keys.length > 0) return;
    const { state, reason } = await this.status(name);
    const why = reason === '' ? '' : `: ${reason}`;
    throw new FloeError('unavailable', `the table of topic "${name}" is ${state}${why}`);
  }

  /** The node to send a command to; undefined: this one, or nobody knows. @throws FloeError `not-found`. */
  async elsewhere(
    name: string,
    duty: TableDuty,
  ): Promise<{ readonly node: ClusterNode; readonly self: number } | undefined> {
    const { clock } = this.#options;
    const { self } = this.#placement;
    const entry = this.#byName(name);
    const until = clock.monotonic() + FIND_MS;
    // Who holds a lease that nobody here asked about lately is looked up behind the question.
    while (self !== undefined && !this.#isHere(entry, duty)) {
      const node = this.#nodeOf(entry.topic.topicId, duty);
      if (node !== undefined && node.nodeId !== self) return { node, self };
      if (clock.monotonic() >= until) break;
      await clock.sleep(FIND_STEP_MS);
    }
    return undefined;
  }

  #isHere({ topic, held }: Entry, duty: TableDuty): boolean {
    return duty === 'coordinator' ? held : this.#placement.maintains(topic.topicId);
  }

  #nodeOf(topicId: string, duty: TableDuty): ClusterNode | undefined {
    return duty === 'coordinator'
      ? this.#placement.coordinatorOf(topicId)
      : this.#placement.maintainerOf(topicId);
  }

  /** The tables that this process maintains now. */
  #subjects(): MaintenanceSubject[] {
    return [...this.#entries.values()].flatMap((entry) =>
      this.#placement.maintains(entry.topic.topicId) ? this.#subjectsOf(entry) : [],
    );
  }

  #subjectsOf({ topic, coordinator, held }: Entry): MaintenanceSubject[] {
    const { topicId } = topic;
    const view = coordinator?.view();
    const record = held ? undefined : this.#records?.get(topicId);
    const tables = held ? (coordinator?.upkept() ?? []) : this.#recordedTables(record);
    return tables.map((table, at) => ({
      key: upkeepKey(topic, at),
      config: resolveTopicConfigs(topic.config),
      committing: () => coordinator?.committing ?? false,
      table: {
        topicId,
        identifier: table.identifier,
        role: at === 0 ? ('data' as const) : ('deadLetters' as const),
        mainName: view?.identifier.name ?? record?.table ?? '',
        tableUuid: table.metadata['table-uuid'],
        epoch: view?.epoch ?? record?.epoch ?? 0,
      },
    }));
  }

  /** Of a table that another node coordinates, while that one is at work. */
  #recordedTables(record: TableRecord | undefined) {
    if (record?.state !== 'running' || record.paused || record.tableUuid === '') return [];
    const { namespace, table: name, tableUuid } = record;
    const main = { identifier: { namespace, name }, metadata: { 'table-uuid': tableUuid } };
    const letters = this.#letterTables.of(record);
    return letters === undefined ? [main] : [main, letters];
  }

  /**
   * Offset of a partition (by id) up to which retention may delete: committed rows; 0 while a table doesn't know yet
   * how far it is. Undefined when no table holds it back.
   */
  retentionPin(partitionId: number): number | undefined {
    const ref = this.#options.directory.byPartition(partitionId);
    if (ref === undefined) return undefined;
    const { topicId, config } = ref.topic;
    const entry = this.#entries.get(topicId);
    if (this.#records === undefined || entry?.held === true) {
      return entry === undefined ? undefined : (entry.coordinator?.committedOffset(ref.index) ?? 0);
    }
    return isEnabled(config) ? (this.#records.committedEnd(topicId, ref.index) ?? 0) : undefined;
  }

  /** Bytes that retention leaves to a lagging table of the partition's topic; past them it may delete (M3). */
  retentionHoldBytes(partitionId: number): number {
    const ref = this.#options.directory.byPartition(partitionId);
    if (ref === undefined) return 0;
    try {
      return resolveTopicConfigs(ref.topic.config)['table.topic.retention.hold.bytes'];
    } catch {
      return 0;
    }
  }

  /** The identifier of a topic's table, for queries and clash checks. */
  tableOf(topicName: string): TableIdentifier | undefined {
    const entry = [...this.#entries.values()].find(({ topic }) => topic.name === topicName);
    return entry === undefined ? undefined : this.#identifierOf(entry);
  }

  /** Of a table that another node coordinates, as the topic's configs say. */
  #identifierOf({ topic, coordinator, fault }: Entry): TableIdentifier | undefined {
    if (coordinator !== undefined || fault !== '') return coordinator?.view().identifier;
    if (this.#placement.words === undefined) return undefined;
    return tableIdentifier(topic.name, resolveTopicConfigs(topic.config));
  }

  /**
   * The tail of a table beside the snapshot that `metadata` says is the newest, of every topic it is filled from (K6).
   * Undefined when this process fills no such table. @throws FloeError as reads of the log do.
   */
  async tail(
    identifier: TableIdentifier,
    metadata: TableMetadata,
  ): Promise<TailAnswer | undefined> {
    const path = [...identifier.namespace, identifier.name].join('\0');
    const entries = [...this.#entries.values()].filter((entry) => {
      const table = this.#identifierOf(entry);
      return table !== undefined && [...table.namespace, table.name].join('\0') === path;
    });
    // The snapshot was loaded before: from here on the log has all that it hasn't.
    if (entries.length > 0) await this.#options.log.caughtUp();
    const answers: TableTail[] = [];
    for (const entry of entries) {
      const answer = await this.#tailPart(entry, metadata);
      if (answer === 'behind') return answer;
      if (answer !== undefined) answers.push(answer);
    }
    if (answers.length === 0) return undefined;
    return {
      files: answers.flatMap(({ files }) => files),
      gone: new Map(answers.flatMap(({ gone }) => [...gone])),
    };
  }

  async #tailPart(
    { topic, held, coordinator }: Entry,
    metadata: TableMetadata,
  ): Promise<TailAnswer | undefined> {
    if (this.#tails !== undefined) return this.#tails.read(topic, metadata, held);
    const parts = coordinator?.tailParts();
    return parts === undefined ? undefined : this.#tailOf(parts, metadata);
  }

  async #tailOf(
    { topic, binding, startOf }: NonNullable<ReturnType<TableCoordinator['tailParts']>>,
    metadata: TableMetadata,
  ): Promise<TailAnswer> {
    const config = resolveTopicConfigs(topic.config);
    const table = tailTable(binding, config);
    const same = binding.table?.metadata['table-uuid'] === metadata['table-uuid'];
    if (table === undefined || !same) return { files: [], gone: new Map() };
    const { name, topicId, partitions } = topic;
    const quarantined = quarantinedPartitions(topic);
    const place = { topic: name, topicId, partitions, quarantined, startOf };
    const request = { ...place, config, metadata, table };
    return readTail(this.#options, request);
  }

  /** The topics whose table, or table of dead letters, this is: several may share one. */
  topicsOf({ namespace, name }: TableIdentifier): readonly string[] {
    const path = namespace.join('\0');
    const topics: string[] = [];
    for (const entry of this.#entries.values()) {
      const table = this.#identifierOf(entry);
      if (table === undefined || table.namespace.join('\0') !== path) continue;
      if (table.name === name || `${table.name}_dlq` === name) topics.push(entry.topic.name);
    }
    return topics;
  }

  #onChange(change: TopicChange): void {
    if (change.kind === 'deleted') this.#gone(change.topic);
    else this.#changed(change.topic);
  }

  #changed(topic: Topic): void {
    const entry = this.#entries.get(topic.topicId);
    const enabled = isEnabled(topic.config);
    if (entry === undefined) {
      if (enabled) this.#enter(topic);
      return;
    }
    const before = entry.topic;
    entry.topic = topic;
    if (enabled && sameForTables(before, topic)) return;
    this.#then(entry, async () => {
      // A disabled topic's last rows still belong into its table; a changed one goes on from its stages.
      await Promise.all([
        enabled ? entry.coordinator?.abandon() : entry.coordinator?.stop(),
        entry.lanes?.stop(),
      ]);
      entry.coordinator = undefined;
      entry.lanes = undefined;
      if (enabled) this.#begin(entry);
      else this.#forget(entry);
    });
  }

  #enter(topic: Topic): void {
    const entry: Entry = {
      topic,
      entered: false,
      held: false,
      coordinator: undefined,
      lanes: undefined,
      fault: '',
      work: Promise.resolve(),
      unwant: async () => {},
    };
    this.#entries.set(topic.topicId, entry);
    entry.unwant = this.#placement.coordinate(topic.topicId, {
      gained: () => this.#gained(entry),
      lost: () => this.#lost(entry),
    });
    entry.entered = true;
    if (!entry.held) this.#begin(entry);
  }

  #forget(entry: Entry): void {
    if (this.#entries.get(entry.topic.topicId) === entry) {
      this.#entries.delete(entry.topic.topicId);
    }
    // Not awaited: it ends with `lost`, which waits for its turn behind this change.
    void entry.unwant();
  }

  /** This node is to coordinate the table. */
  #gained(entry: Entry): Promise<void> | void {
    entry.held = true;
    if (!entry.entered) return this.#begin(entry);
    this.#then(entry, async () => {
      await entry.lanes?.stop();
      entry.lanes = undefined;
      if (entry.held) this.#begin(entry);
    });
    return entry.work;
  }

  /** Another one is to: what is under way ends at once, staged ranges are left to it. */
  #lost(entry: Entry): Promise<void> {
    entry.held = false;
    const ending = entry.coordinator?.abandon();
    this.#then(entry, async () => {
      await ending;
      await entry.coordinator?.abandon();
      entry.coordinator = undefined;
      if (this.#entries.get(entry.topic.topicId) === entry) this.#begin(entry);
    });
    return entry.work;
  }

  #gone(topic: Topic): void {
    const entry = this.#entries.get(topic.topicId);
    if (entry === undefined) return;
    this.#entries.delete(topic.topicId);
    this.#then(entry, async () => {
      const { coordinator, lanes } = entry;
      await Promise.all([coordinator?.abandon(), lanes?.stop()]);
      this.#forget(entry);
      if (coordinator === undefined) return;
      const { identifier, tableUuid } = coordinator.view();
      // Of an upsert table: its key index goes from this node's disk.
      await this.#options.keys.release(tableUuid, true);
      const policy = resolveTopicConfigs(topic.config)['table.topic.deleted'];
      await retireTable(this.#options.catalog, { identifier, tableUuid, policy });
    });
  }

  /** The coordinator, or this node's lanes of a table that is coordinated elsewhere. */
  #begin(entry: Entry): void {
    if (this.#stopped || entry.coordinator !== undefined || entry.lanes !== undefined) return;
    try {
      if (entry.held) entry.coordinator = this.#coordinate(entry);
      else entry.lanes = this.#hostLanes(entry.topic);
      entry.fault = '';
    } catch (caught) {
      // Configs are checked when they are set; one of an older release may still surprise.
      entry.fault = FloeError.from(caught).message;
      this.#options.logger.warn(
        { topic: entry.topic.name, error: entry.fault },
        'table not started',
      );
    }
  }

  #coordinate(entry: Entry): TableCoordinator {
    const { topic } = entry;
    const shared = { placement: this.#placement, watch: this.#watch };
    const onFenced = () => this.#fenced(entry);
    const coordinator = new TableCoordinator({ ...this.#options, ...shared, onFenced }, topic);
    coordinator.start();
    this.#options.runner.warm?.();
    return coordinator;
  }

  /**
   * A higher epoch was seen while the lease is ours: somebody claimed late who had the lease before. Whoever has the
   * lease then claims again.
   */
  #fenced(entry: Entry): void {
    const { clock } = this.#options;
    if (this.#placement.words === undefined) return;
    clock.setTimer(FENCED_MS, () => {
      const { topicId } = entry.topic;
      if (this.#stopped || !entry.held || !this.#placement.coordinates(topicId)) return;
      this.#then(entry, async () => {
        if (!entry.held || entry.coordinator?.view().state !== 'fenced') return;
        await entry.coordinator.abandon();
        entry.coordinator = undefined;
        this.#begin(entry);
      });
    });
  }

  /** Undefined on a node that is alone: it coordinates all tables itself. */
  #hostLanes(topic: Topic): LaneHost | undefined {
    const { words } = this.#placement;
    if (words === undefined || this.#watch === undefined) return undefined;
    const shared = { placement: this.#placement, watch: this.#watch, words };
    const lanes = new LaneHost({ ...this.#options, ...shared }, topic);
    lanes.start();
    return lanes;
  }

  #then(entry: Entry, work: () => Promise<void>): void {
    entry.work = entry.work.then(work).catch((caught) => {
      this.#options.logger.error(
        { topic: entry.topic.name, error: FloeError.from(caught).message },
        'table change failed',
      );
    });
  }

  #byName(name: string): Entry {
    for (const entry of this.#entries.values()) if (entry.topic.name === name) return entry;
    throw new FloeError(
      'not-found',
      `topic "${name}" is no table: set table.topic.enable=true on it`,
    );
  }

  /** Once a change of the topic's config is through: a command is for the coordinator that follows. */
  async #coordinator(name: string): Promise<TableCoordinator> {
    const entry = this.#byName(name);
    await entry.work;
    if (entry.coordinator === undefined) {
      const nobody = `the table of topic "${name}" is starting, or no node coordinates it: try again`;
      throw new FloeError('unavailable', entry.fault || nobody);
    }
    return entry.coordinator;
  }

  async #statusOf(entry: Entry): Promise<TableStatus> {
    const { topic, coordinator, fault } = entry;
    const { tables } = this.#options;
    const counters = await tables.counters(topic.topicId).catch(() => NO_COUNTERS);
    const here = coordinator !== undefined || fault !== '' || this.#placement.words === undefined;
    const view = here
      ? localView(coordinator?.view(), fault)
      : await this.#storedView(topic, this.#placement.words!, counters);
    const partitions = leftOut(topic);
    return {
      topic: topic.name,
      topicId: topic.topicId,
      ...view,
      reason: view.reason || leftOutReason(partitions),
      ...present('quarantinedPartitions', partitions.length > 0 ? partitions : undefined),
      commitIntervalMs:
        fault === '' ? resolveTopicConfigs(topic.config)['table.topic.commit.interval.ms'] : 0,
      counters,
      ...present('coordinator', this.#coordinatorNode(entry)),
      ...present('maintenance', this.#maintenance?.status(upkeepKey(topic, 0))),
      ...present('deadLetterMaintenance', this.#maintenance?.status(upkeepKey(topic, 1))),
    };
  }

  async #storedView(topic: Topic, words: TableLanesMetadata, counters: TableCounters) {
    const { tables, log, clock } = this.#options;
    const { topicId } = topic;
    const [record, heads, positions] = await Promise.all([
      tables.get(topicId),
      words.heads([topicId]),
      words.positions([topicId]),
    ]);
    const stored = { record, head: heads[0], positions: positions[0], counters };
    return storedView(stored, { topic, log, nowMs: clock.now() });
  }

  /** Undefined for a node that is alone. */
  #coordinatorNode({ topic, held }: Entry): number | null | undefined {
    const { self } = this.#placement;
    if (self === undefined) return undefined;
    if (held) return self;
    return this.#placement.coordinatorOf(topic.topicId)?.nodeId ?? null;
  }

  #views(): CoordinatorView[] {
    return [...this.#entries.values()].flatMap(({ coordinator }) => coordinator?.view() ?? []);
  }

  #count(state: TableState): number {
    let count = 0;
    for (const { coordinator } of this.#entries.values()) {
      if (coordinator?.view().state === state) count += 1;
    }
    return count;
  }

  /** Of the tables that this node coordinates. */
  #leftOut(): number {
    let count = 0;
    for (const { topic, coordinator } of this.#entries.values())
      if (coordinator !== undefined) count += leftOut(topic).length;
    return count;
  }

  #lag(): number {
    let lag = 0;
    for (const { coordinator } of this.#entries.values())
      lag += coordinator?.view().lagRecords ?? 0;
    return lag;
  }

  /** Dead letters of records that the log has no more can't come again: nobody needs to know them. */
  async #pruneLetters(): Promise<void> {
    const { tables, log } = this.#options;
    for (const { topic } of this.#entries.values()) {
      for (const { partition } of await tables.openLetters(topic.topicId)) {
        const marks = log.watermarks(topic.partitions[partition] ?? -1);
        if (marks === undefined) continue;
        await tables.pruneLetters(topic.topicId, partition, marks.logStartOffset);
      }
    }
  }

  /** Of a cluster's nodes, one does it for all. */
  async #sweep(ageMs: number): Promise<number> {
    if (!this.#placement.sweeps()) return 0;
    if ((await this.#options.mayDelete?.()) === false) return 0;
    await this.#pruneLetters();
    return sweep({ ...this.#options, ageMs });
  }

  #scheduleSweep(): void {
    const { clock, settings, logger } = this.#options;
    const ageMs = settings['table.sweep.age.ms'];
    this.#sweeping = clock.setTimer(ageMs, () => {
      void this.#sweep(ageMs)
        .then((files) => {
          if (files > 0) logger.info({ files }, 'files of abandoned jobs deleted');
        })
        .catch((caught) =>
          logger.warn({ error: FloeError.from(caught).message }, 'sweep of table files failed'),
        )
        .finally(() => {
          if (!this.#stopped) this.#scheduleSweep();
        });
    });
  }
}

/** After a higher epoch was seen: time enough for a lease to be found lost. */
const FENCED_MS = 1_000;

/** How long, and how often, one looks for the node that is at a table. */
const FIND_MS = 3_000;
const FIND_STEP_MS = 100;

/** The table itself, then its dead-letter table. */
const upkeepKey = (topic: Topic, at: number) => `${topic.topicId}/${at}`;

const present = <K extends string, V>(key: K, value: V | undefined) =>
  value === undefined ? {} : ({ [key]: value } as { readonly [P in K]: V });

const NO_COUNTERS: TableCounters = {
  rows: 0,
  deadLetters: 0,
  skipped: 0,
  lostOffsets: 0,
  files: 0,
  commits: 0,
  lastCommitMs: 0,
  lastSnapshotId: '',
};

/** Whether a change of the topic leaves its table's work as it is. */
function sameForTables(before: Topic, after: Topic): boolean {
  if (before.partitions.length !== after.partitions.length) return false;
  if (before.config[QUARANTINE_CONFIG] !== after.config[QUARANTINE_CONFIG]) return false;
  const relevant = (topic: Topic) =>
    JSON.stringify(
      Object.entries(topic.config)
        .filter(([name]) => isTableTopicConfig(name))
        .toSorted(),
    );
  return relevant(before) === relevant(after);
}
