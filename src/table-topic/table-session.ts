// What a coordinator holds of its table: the record in the metadata store, whose epoch fences it (rule T6), and the
// binding to the table in the catalog. Opened anew after every trouble; the epoch is claimed once.
// Not for: states (coordinator.ts), reading and staging (staging.ts), commits (commit-rounds.ts).
import { assert } from '../base/assert.ts';
import { FloeError, isFloeError } from '../base/error.ts';
import type { Logger } from '../base/log.ts';
import type { IdSource } from '../base/prng.ts';
import type { TableIdentifier } from '../catalog/catalog.ts';
import type { TableRecord, TablesMetadata } from '../metadata/tables.ts';
import type { Topic } from '../metadata/topics.ts';
import type { Log } from '../storage/log/log.ts';
import { type BindingDeps, TableBinding } from './binding.ts';
import { recoverTable } from './operations/recover-table.ts';
import {
  type ReplayDeps,
  type Replayed,
  type ReplayTable,
  replayLetters,
  settleReplays,
} from './operations/replay.ts';
import {
  lettersBack,
  type RewindDeps,
  type Rewound,
  rewindTable,
  rewindTarget,
} from './operations/rewind.ts';
import type { TablePlace } from './own-table.ts';
import type { RecoveryPolicy } from './positions.ts';
import type { TableProgress } from './progress.ts';
import { forgetTable, relocate } from './relocate.ts';
import { resolveTopicConfigs, tableIdentifier } from './settings/index.ts';
import type { TableState } from './table-state.ts';
import { isLost } from './trouble.ts';
import type { Offsets } from './watermark.ts';

export interface SessionDeps extends BindingDeps {
  readonly tables: TablesMetadata;
  readonly log: Log;
  readonly ids: IdSource;
  readonly logger: Logger;
}

export class TableSession {
  readonly #deps: SessionDeps;
  readonly #topic: Topic;
  readonly #progress: TableProgress;
  readonly identifier: TableIdentifier;
  #record: TableRecord | undefined;
  #binding: TableBinding | undefined;
  /** What the store isn't known to say yet. */
  #report: { readonly state: TableState; readonly reason: string } | undefined;
  #reporting = false;

  constructor(deps: SessionDeps, topic: Topic, progress: TableProgress) {
    this.#deps = deps;
    this.#topic = topic;
    this.#progress = progress;
    this.identifier = tableIdentifier(topic.name, resolveTopicConfigs(topic.config));
  }

  /** Undefined until the epoch is claimed. */
  get record(): TableRecord | undefined {
    return this.#record;
  }

  /** Undefined until the table was looked up. */
  get binding(): TableBinding | undefined {
    return this.#binding;
  }

  get epoch(): number {
    assert(this.#record !== undefined, 'T6: nothing is done before the epoch is claimed');
    return this.#record.epoch;
  }

  get tableUuid(): string {
    return this.#binding?.table?.metadata['table-uuid'] ?? this.#record?.tableUuid ?? '';
  }

  /** Claims the epoch the first time; later looks whether it is still ours, and whether an operator paused. */
  async claim(): Promise<'held' | 'paused' | 'fenced'> {
    const { tables } = this.#deps;
    const { topicId, name: topicName } = this.#topic;
    const { namespace, name: table } = this.identifier;
    this.#record ??= await tables.claim({ topicId, topicName, namespace, table });
    const known = await tables.get(topicId);
    if (known === undefined || known.epoch !== this.#record.epoch) return 'fenced';
    this.#record = known;
    return known.paused ? 'paused' : 'held';
  }

  /** Goes on as an operator chose, from a table that somebody moved. */
  async recover(policy: RecoveryPolicy): Promise<void> {
    const backfill = resolveTopicConfigs(this.#topic.config)['table.topic.backfill'];
    const { identifier, epoch } = this;
    const request = { topic: this.#topic, identifier, epoch, policy, backfill };
    this.#record = await recoverTable(this.#deps, request);
  }

  /** Finds or creates the table and reads back how far it is. False: its columns aren't known yet. */
  async open(): Promise<boolean> {
    const config = resolveTopicConfigs(this.#topic.config);
    const place = { topic: this.#topic, identifier: this.identifier, config };
    this.#record = await relocate(this.#deps, { ...place, record: this.#record! });
    const there = await this.#find(config);
    if (there) {
      await this.noteUuid('starting');
      await this.#progress.adopt(this.#binding!.table!.metadata, this.epoch);
    }
    await this.#progress.init(config['table.topic.backfill']);
    return there;
  }

  async #find(config: TablePlace['config']): Promise<boolean> {
    try {
      return await this.#bind(config);
    } catch (caught) {
      if (!isLost(caught) || config['table.topic.dropped'] !== 'restart') throw caught;
      const record = this.#record!;
      this.#record = await forgetTable(this.#deps, { topic: this.#topic, record, config });
      return this.#bind(config);
    }
  }

  async #bind(config: TablePlace['config']): Promise<boolean> {
    const { topicId, name: topicName } = this.#topic;
    const binding = new TableBinding(this.#deps, {
      owner: { topicId, topicName, shared: config['table.topic.shared'] },
      identifier: this.identifier,
      config,
      tableUuid: this.#record!.tableUuid,
    });
    const there = await binding.open();
    this.#binding = binding;
    return there;
  }

  /** The uuid is stored before the first commit, so that a table of the same name never passes for ours (T3). */
  async noteUuid(state: TableState): Promise<void> {
    const uuid = this.#binding?.table?.metadata['table-uuid'];
    if (uuid === undefined || this.#record!.tableUuid === uuid) return;
    const changes = { tableUuid: uuid, state };
    this.#record = await this.#deps.tables.update(this.#topic.topicId, this.epoch, changes);
  }

  /**
   * Sends the table back to these offsets. Dead letters go back with it, each one known: none comes twice.
   * @throws FloeError, and the table is where it was.
   */
  async rewind(deps: RewindDeps, to: Offsets): Promise<Rewound> {
    const { topicId, name: topicName } = this.#topic;
    const { identifier, tableUuid, epoch } = this;
    const upserts = resolveTopicConfigs(this.#topic.config)['table.topic.upsert.enable'];
    const request = { topicId, topicName, epoch, identifier, tableUuid, to, upserts };
    const target = await rewindTarget(deps, request);
    const letters = await lettersBack(deps, { topicId, epoch, table: identifier, to });
    // The store first: should the table not follow, its own offsets win again at the next look (T4).
    this.#record = await this.#progress.rewindAll(target, epoch, letters);
    return rewindTable(deps, request);
  }

  /** Tries the table's dead letters again. @throws FloeError; what was done until then stays done. */
  async replay(deps: ReplayDeps): Promise<Replayed> {
    return replayLetters(deps, this.#replayTable());
  }

  /** Finds out about replays whose outcome an earlier life left open. */
  async settleReplays(): Promise<void> {
    await settleReplays(this.#deps, this.#replayTable());
  }

  #replayTable(): ReplayTable {
    const committedEnd = (partition: number) => this.#progress.committedEnd(partition) ?? 0;
    return { topic: this.#topic, epoch: this.epoch, binding: this.#binding!, committedEnd };
  }

  /** T8, T4: what is staged is dropped, and read again from where the table is. */
  async rewindToTable(): Promise<void> {
    const binding = this.#binding!;
    await binding.reload();
    const { metadata } = binding.table!;
    const letters = binding.deadLetterOffsets;
    this.#record = await this.#progress.rewindTo(metadata, this.epoch, letters);
  }

  /**
   * For people who look at the metadata, and for lanes on other nodes, which stand still unless the table is at work. One
   * report after the other, and the newest is told again when it isn't known to have arrived.
   */
  async report(state: TableState, reason: string): Promise<void> {
    this.#report = { state, reason };
    if (this.#reporting) return;
    this.#reporting = true;
    try {
      for (let tries = 1; this.#report !== undefined && tries <= MAX_REPORTS; tries += 1) {
        if (!(await this.#told(this.#report))) await this.#deps.clock.sleep(REPORT_AGAIN_MS);
      }
    } finally {
      this.#reporting = false;
    }
  }

  /** What wasn't told yet is told no more. */
  close(): void {
    this.#report = undefined;
  }

  /** False: it has to be told again. */
  async #told(report: { readonly state: TableState; readonly reason: string }): Promise<boolean> {
    let arrived = true;
    try {
      if (this.#record !== undefined) {
        await this.#deps.tables.update(this.#topic.topicId, this.epoch, report);
      }
    } catch (caught) {
      this.#deps.logger.debug({ error: FloeError.from(caught).message }, 'state not reported');
      arrived = !isFloeError(caught, 'unavailable', 'timeout');
    }
    if (arrived && this.#report === report) this.#report = undefined;
    return arrived;
  }
}

/** Between two attempts to report, and how many there are: a store that is away for longer is told of the next change. */
const REPORT_AGAIN_MS = 1_000;
const MAX_REPORTS = 600;
