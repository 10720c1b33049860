// The life of one rewrite: from the names of its files to the certain end of its commit (rules M1, M2, T4, T5).
// Files that the table may have are never deleted here; what is uncertain at the end is left to the intents, which
// the sweep settles by the table's history.
import { AssertionError, assert } from '../../base/assert.ts';
import { FloeError, isFloeError } from '../../base/error.ts';
import { currentSchema } from '../../formats/iceberg/history.ts';
import { dataFolder, newSnapshotId } from '../../formats/iceberg/index.ts';
import type { TableMetadata } from '../../formats/iceberg/types.ts';
import { fileLayout } from '../../formats/parquet/layout.ts';
import { retryDelayMs } from '../retry-delay.ts';
import {
  discard,
  fateOf,
  intentsOf,
  loadOwn,
  MAINTENANCE_ID_SUMMARY,
  type MaintainedTable,
  type RequestDeps,
  type Sent,
  sendPrepared,
} from './requests.ts';
import { isOver, nextStage, type RewriteEvent, type RewriteStage } from './rewrite-state.ts';
import type { Derived, MaintenanceTasks, RewriteGroup, RewriteResult } from './task.ts';

export interface RewriteDeps extends RequestDeps {
  readonly tasks: MaintenanceTasks;
  readonly settings: {
    readonly 'table.compact.memory.bytes': number;
    readonly 'table.compact.commit.attempts': number;
    readonly 'table.retry.first.ms': number;
    readonly 'table.retry.max.ms': number;
  };
  /** Waits, within a bound, until the coordinator isn't between its look at the table and its commit. */
  readonly whenQuiet: (table: MaintainedTable) => Promise<void>;
}

export interface RewriteRequest {
  readonly group: RewriteGroup;
  /** What the group was chosen from. */
  readonly metadata: TableMetadata;
  readonly targetFileBytes: number;
  readonly signal: AbortSignal;
}

export interface RewriteEnd {
  readonly stage: Extract<RewriteStage, 'committed' | 'abandoned' | 'left'>;
  readonly result: RewriteResult | undefined;
  readonly removedFiles: number;
  readonly addedFiles: number;
  readonly remappedRows: number;
  /** Why it came to nothing. */
  readonly reason: string;
}

export class RewriteLife {
  readonly #deps: RewriteDeps;
  readonly #table: MaintainedTable;
  readonly #request: RewriteRequest;
  readonly #jobId: string;
  readonly #folder: string;
  #stage: RewriteStage = 'writing';
  #result: RewriteResult | undefined;
  #open: Sent[] = [];
  #derived: Extract<Derived, { kind: 'ready' }> | undefined;
  #reason = '';
  /** Its files have names of their own among the intents, in place of their common prefix. */
  #named = false;

  constructor(deps: RewriteDeps, table: MaintainedTable, request: RewriteRequest) {
    this.#deps = deps;
    this.#table = table;
    this.#request = request;
    this.#jobId = deps.ids.uuid();
    this.#folder = dataFolder(request.metadata);
  }

  get #prefix(): string {
    return `${this.#folder}/${this.#jobId}-`;
  }

  get #files(): string[] {
    return (this.#result?.files ?? []).map((file) => file.filePath);
  }

  /** @throws FloeError `unsupported` with details.file, or what kept the table from being read. */
  async run(): Promise<RewriteEnd> {
    const { jobsUnderWay, tasks } = this.#deps;
    jobsUnderWay.add(this.#prefix);
    try {
      await this.#write();
      await this.#commit();
    } catch (caught) {
      if (caught instanceof AssertionError) throw caught;
      await this.#giveUp(FloeError.from(caught));
      if (isFloeError(caught, 'unsupported', 'corrupt')) throw caught;
    } finally {
      for (const name of [this.#prefix, ...this.#files]) jobsUnderWay.delete(name);
      // A dead thread has forgotten by itself.
      await tasks.forget(this.#jobId).catch(() => {});
    }
    assert(isOver(this.#stage), 'M1: a rewrite ends certain, abandoned or left to its intents');
    return {
      stage: this.#stage as RewriteEnd['stage'],
      result: this.#result,
      removedFiles: this.#derived?.removedFiles ?? 0,
      addedFiles: this.#derived?.addedFiles ?? 0,
      remappedRows: this.#derived?.remappedRows ?? 0,
      reason: this.#reason,
    };
  }

  #step(event: RewriteEvent): void {
    this.#stage = nextStage(this.#stage, event);
  }

  async #write(): Promise<void> {
    const { tables, tasks, settings, jobsUnderWay } = this.#deps;
    const { metadata, group, targetFileBytes } = this.#request;
    await tables.addIntents(intentsOf(this.#deps, this.#table, [this.#prefix], undefined));
    const schema = currentSchema(metadata);
    const sortOrder = metadata['sort-orders'].find(
      (order) => order['order-id'] === metadata['default-sort-order-id'],
    ) ?? { 'order-id': 0, fields: [] };
    this.#result = await tasks.rewrite({
      jobId: this.#jobId,
      group,
      metadata,
      schema,
      sortOrder,
      layout: fileLayout(metadata.properties ?? {}, schema, sortOrder),
      dataFolder: this.#folder,
      targetFileBytes,
      memoryBytes: settings['table.compact.memory.bytes'],
    });
    for (const name of this.#files) jobsUnderWay.add(name);
    this.#step('wrote');
  }

  async #commit(): Promise<void> {
    const { clock, settings } = this.#deps;
    const attempts = settings['table.compact.commit.attempts'];
    let last: FloeError | undefined;
    for (let attempt = 1; attempt <= attempts && !isOver(this.#stage); attempt += 1) {
      if (attempt > 1) {
        await clock.sleep(retryDelayMs(this.#deps, attempt - 1), this.#request.signal);
      }
      await this.#deps.whenQuiet(this.#table);
      this.#request.signal.throwIfAborted();
      last = await this.#attempt();
    }
    if (!isOver(this.#stage)) throw last ?? new FloeError('unavailable', 'no attempt was allowed');
  }

  /** One attempt, derived afresh (T4). An error returned is worth another; a thrown one isn't. */
  async #attempt(): Promise<FloeError | undefined> {
    let metadata: TableMetadata;
    try {
      metadata = (await loadOwn(this.#deps, this.#table)).metadata;
    } catch (caught) {
      if (isFloeError(caught, 'unavailable', 'timeout')) return caught;
      throw caught;
    }
    await this.#settle(metadata);
    if (isOver(this.#stage)) return undefined;
    const commitId = this.#deps.ids.uuid();
    const derived = await this.#deps.tasks.derive({
      jobId: this.#jobId,
      metadata,
      snapshotId: newSnapshotId(this.#deps.ids, metadata),
      commitUuid: commitId,
      nowMs: this.#deps.clock.now(),
      summary: { [MAINTENANCE_ID_SUMMARY]: commitId },
    });
    if (derived.kind === 'lost') throw new FloeError('conflict', derived.reason);
    this.#derived = derived;
    return this.#send({ derived, metadata, commitId });
  }

  async #send({
    derived,
    metadata,
    commitId,
  }: {
    readonly derived: Extract<Derived, { kind: 'ready' }>;
    readonly metadata: TableMetadata;
    readonly commitId: string;
  }): Promise<FloeError | undefined> {
    const { prepared } = derived;
    const objects = prepared.objects.map((object) => object.path);
    const sent: Sent = {
      commitId,
      parent: prepared.snapshot['parent-snapshot-id'],
      objects,
    };
    for (const name of objects) this.#deps.jobsUnderWay.add(name);
    try {
      // From here on its files have names of their own, known to belong to a request.
      const request = {
        ...{ prepared, sent, metadata, files: this.#files },
        ...(this.#named ? {} : { instead: this.#prefix }),
      };
      this.#step('send');
      this.#named = true;
      const answer = await sendPrepared(this.#deps, this.#table, request);
      const later = answer.kind === 'refused' && this.#open.length > 0;
      this.#step(later ? 'refusedLater' : answer.kind);
      if (answer.kind === 'accepted') return await this.#landed(sent);
      if (answer.kind === 'unanswered') this.#open.push(sent);
      else await discard(this.#deps, objects);
      if (answer.kind === 'refused' && answer.error.code !== 'conflict') throw answer.error;
      return answer.error;
    } finally {
      for (const name of objects) this.#deps.jobsUnderWay.delete(name);
    }
  }

  /** What became of earlier requests, as far as the table's history tells (T5). */
  async #settle(metadata: TableMetadata): Promise<void> {
    const still: Sent[] = [];
    for (const sent of this.#open) {
      const fate = fateOf(metadata, sent);
      if (fate === 'found') {
        this.#step('found');
        await this.#landed(sent);
      } else if (fate === 'disproved') await discard(this.#deps, sent.objects);
      else still.push(sent);
    }
    this.#open = still;
    if (still.length === 0) this.#step('disproved');
  }

  async #landed(sent: Sent): Promise<undefined> {
    await this.#deps.tables.dropIntents([...sent.objects, ...this.#files, this.#prefix]);
    return undefined;
  }

  async #giveUp(error: FloeError): Promise<void> {
    this.#reason = error.message;
    if (this.#stage === 'committed') return;
    const uncertain = this.#open.length > 0 || this.#stage === 'sent';
    this.#stage = nextStage(uncertain ? 'unknown' : this.#stage, 'giveUp');
    // A rewrite that failed half-way has files nobody listed: its prefix is swept.
    if (this.#stage !== 'abandoned' || this.#result === undefined) return;
    await discard(this.#deps, this.#files);
    await this.#deps.tables.dropIntents([this.#prefix]);
  }
}
