// The upkeep of one table: each run looks at the table once and does what is due, compaction first, then manifests,
// expiry, orphans. A run is over within a few rewrites, so that many tables take turns.
// Not for: when a table's turn is (maintenance.ts), how one rewrite goes (rewrite-life.ts).
import { AssertionError } from '../../base/assert.ts';
import { FloeError, isFloeError } from '../../base/error.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { LoadedTable } from '../../catalog/catalog.ts';
import { newSnapshotId } from '../../formats/iceberg/index.ts';
import type { TableMetadata } from '../../formats/iceberg/types.ts';
import type { ColumnPath } from '../column-list.ts';
import { inWindow } from '../settings/maintenance.ts';
import { parseStagedFiles } from '../stage.ts';
import { mainSnapshotId } from '../watermark.ts';
import { expireSnapshots } from './expire-run.ts';
import {
  fateOf,
  intentsOf,
  loadOwn,
  MAINTENANCE_ID_SUMMARY,
  type MaintainedTable,
  sendPrepared,
} from './requests.ts';
import { type RewriteDeps, type RewriteEnd, RewriteLife } from './rewrite-life.ts';
import { expireRows } from './row-ttl.ts';
import { NO_TOTALS, type UpkeepState, type UpkeepStatus, type UpkeepTotals } from './status.ts';
import type { PlanResult, RewriteGroup, TableFigures } from './task.ts';

/** What a topic's configs say of its table's upkeep. */
export interface UpkeepConfig {
  readonly 'table.topic.compact.enable': boolean;
  readonly 'table.topic.compact.min.input.files': number;
  readonly 'table.topic.compact.target.file.bytes': number;
  readonly 'table.topic.compact.delete.percent': number;
  readonly 'table.topic.compact.interval.ms': number;
  readonly 'table.topic.compact.pause': { readonly from: number; readonly to: number } | undefined;
  readonly 'table.topic.expire.snapshot.enable': boolean;
  readonly 'table.topic.expire.snapshot.older.than.hours': number;
  readonly 'table.topic.expire.snapshot.retain.last': number;
  readonly 'table.topic.expire.snapshot.max.count': number;
  readonly 'table.topic.expire.snapshot.interval.ms': number;
  readonly 'table.topic.row.ttl.ms': number;
  readonly 'table.topic.row.ttl.column': ColumnPath;
  readonly 'table.topic.orphan.enable': boolean;
  readonly 'table.topic.orphan.older.than.hours': number;
}

export interface UpkeepDeps extends RewriteDeps {
  readonly metrics: Metrics;
  /** Waits so long that the bytes of a rewrite stay within the budget. */
  readonly pace: (bytes: number, tookMs: number, signal: AbortSignal) => Promise<void>;
}

export interface UpkeepRun {
  /** By order of an operator. */
  readonly force?: 'compact' | 'expire';
  readonly config: UpkeepConfig;
  readonly signal: AbortSignal;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Rewrites in one run; further ones wait for the table's next turn, which is then at once. */
const GROUPS_PER_RUN = 4;

/** Manifests from which on maintenance merges them, so that commits, whose limit is 100, never have to. */
const MERGE_FROM = 40;

/** Looks at a table whose `main` moved while its snapshots were being expired. */
const EXPIRE_ATTEMPTS = 5;

/** Orphans deleted in one pass. */
const ORPHANS_PER_PASS = 10_000;

/** Files remembered as not rewritable. */
const LEFT_ALONE_FILES = 10_000;

/** Staged ranges whose files are looked up before orphans are. */
const STAGES = 100_000;

export class TableUpkeep {
  readonly #deps: UpkeepDeps;
  readonly #leftAlone = new Set<string>();
  #state: UpkeepState = 'idle';
  #totals: UpkeepTotals = NO_TOTALS;
  #figures: TableFigures | undefined;
  #lastRunMs = 0;
  #error = '';
  /** `main` when nothing was left to rewrite. */
  #restedAt: bigint | undefined;
  #expiredAtMs = Number.NEGATIVE_INFINITY;
  #rowsExpiredAtMs = Number.NEGATIVE_INFINITY;
  #orphansAtMs: number;

  constructor(deps: UpkeepDeps) {
    this.#deps = deps;
    // Not at every start of the process: a day after it at the earliest.
    this.#orphansAtMs = deps.clock.monotonic();
  }

  status(nextRunMs: number): UpkeepStatus {
    return {
      state: this.#state,
      lastRunMs: this.#lastRunMs,
      nextRunMs,
      files: this.#figures,
      totals: this.#totals,
      leftAlone: this.#leftAlone.size,
      error: this.#error,
    };
  }

  /** One run. Returns whether more waits to be done at once. @throws what kept it from its work. */
  async run(table: MaintainedTable, run: UpkeepRun): Promise<boolean> {
    try {
      const more = await this.#run(table, run);
      this.#error = '';
      return more;
    } catch (caught) {
      if (caught instanceof AssertionError) throw caught;
      const error = FloeError.from(caught);
      if (error.code !== 'cancelled') this.#error = error.message;
      throw error;
    } finally {
      this.#state = 'idle';
      this.#lastRunMs = this.#deps.clock.now();
    }
  }

  async #run(table: MaintainedTable, run: UpkeepRun): Promise<boolean> {
    this.#state = 'planning';
    const loaded = await loadOwn(this.#deps, table);
    let more = false;
    if (run.force !== 'expire') more = await this.#compact(table, loaded.metadata, run);
    if (run.force !== 'compact') {
      await this.#expireRows(table, run);
      await this.#expire(table, run);
    }
    if (run.force === undefined) await this.#orphans(table, run);
    return more;
  }

  // Compaction.

  async #compact(
    table: MaintainedTable,
    metadata: TableMetadata,
    run: UpkeepRun,
  ): Promise<boolean> {
    const { config, force } = run;
    const main = mainSnapshotId(metadata);
    if (main === undefined) return false;
    const paused = inWindow(config['table.topic.compact.pause'], this.#deps.clock.now());
    const wanted = config['table.topic.compact.enable'] && !paused && this.#restedAt !== main;
    if (!wanted && force === undefined) return false;
    const plan = await this.#plan(metadata, run);
    this.#figures = plan.figures;
    for (const group of plan.groups) {
      run.signal.throwIfAborted();
      this.#state = 'compacting';
      await this.#rewrite(table, { group, metadata }, run);
    }
    if (plan.figures.manifests >= MERGE_FROM) await this.#merge(table);
    if (plan.groups.length === 0) this.#restedAt = main;
    return plan.more;
  }

  #plan(metadata: TableMetadata, { config, force }: UpkeepRun): Promise<PlanResult> {
    return this.#deps.tasks.plan({
      metadata,
      policy: {
        minInputFiles: config['table.topic.compact.min.input.files'],
        targetFileBytes: config['table.topic.compact.target.file.bytes'],
        deletePercent: config['table.topic.compact.delete.percent'],
        force: force !== undefined,
      },
      maxGroups: force === undefined ? GROUPS_PER_RUN : Number.MAX_SAFE_INTEGER,
      leftAlone: this.#leftAlone,
    });
  }

  async #rewrite(
    table: MaintainedTable,
    { group, metadata }: { readonly group: RewriteGroup; readonly metadata: TableMetadata },
    { config, signal }: UpkeepRun,
  ): Promise<void> {
    const { clock, logger, metrics } = this.#deps;
    const started = clock.monotonic();
    try {
      const end = await new RewriteLife(this.#deps, table, {
        group,
        metadata,
        targetFileBytes: config['table.topic.compact.target.file.bytes'],
        signal,
      }).run();
      const tookMs = clock.monotonic() - started;
      this.#count(end, group);
      countRewrite(metrics, end, group);
      logger.info(
        {
          ...{ table: table.identifier, kind: group.kind, end: end.stage, reason: end.reason },
          ...{ filesRemoved: end.removedFiles, filesAdded: end.addedFiles, bytes: group.bytes },
          ...{ remappedRows: end.remappedRows, tookMs: Math.round(tookMs) },
        },
        'data files rewritten',
      );
      await this.#deps.pace(group.bytes, tookMs, signal);
    } catch (caught) {
      if (!isFloeError(caught, 'unsupported', 'corrupt')) throw caught;
      const { file } = caught.details;
      if (typeof file !== 'string') throw caught;
      this.#leaveAlone(file);
      logger.warn({ table: table.identifier, file, error: caught.message }, 'file left as it is');
    }
  }

  #leaveAlone(file: string): void {
    if (this.#leftAlone.size >= LEFT_ALONE_FILES) this.#leftAlone.clear();
    this.#leftAlone.add(file);
  }

  #count(end: RewriteEnd, group: RewriteGroup): void {
    const done = end.stage === 'committed';
    this.#add({
      rewrites: done ? 1 : 0,
      lost: done ? 0 : 1,
      filesRemoved: done ? end.removedFiles : 0,
      filesAdded: done ? end.addedFiles : 0,
      bytesRead: group.bytes,
      plainBytes: end.result?.plainBytes ?? 0,
      bytesWritten: end.result?.bytesOut ?? 0,
      workerSeconds: end.result?.cpuSeconds ?? 0,
      deletesMoved: done ? end.remappedRows : 0,
    });
  }

  #add(more: Partial<UpkeepTotals>): void {
    const sums = Object.entries(this.#totals).map(([name, value]) => [
      name,
      value + (more[name as keyof UpkeepTotals] ?? 0),
    ]);
    this.#totals = Object.fromEntries(sums) as unknown as UpkeepTotals;
  }

  /** One try: if somebody commits meanwhile, the next run looks again. */
  async #merge(table: MaintainedTable): Promise<void> {
    this.#state = 'merging';
    const { ids, clock, tables, jobsUnderWay } = this.#deps;
    await this.#deps.whenQuiet(table);
    const { metadata } = await loadOwn(this.#deps, table);
    const commitId = ids.uuid();
    const prepared = await this.#deps.tasks.merge({
      metadata,
      snapshotId: newSnapshotId(ids, metadata),
      commitUuid: commitId,
      nowMs: clock.now(),
      summary: { [MAINTENANCE_ID_SUMMARY]: commitId },
      minCount: MERGE_FROM / 2,
    });
    if (prepared === undefined) return;
    const objects = prepared.objects.map((object) => object.path);
    const parent = prepared.snapshot['parent-snapshot-id'];
    const sent = { commitId, parent, objects };
    for (const name of objects) jobsUnderWay.add(name);
    try {
      const answer = await sendPrepared(this.#deps, table, {
        prepared,
        sent,
        metadata,
        files: [],
      });
      if (answer.kind === 'accepted') {
        await tables.dropIntents(objects);
        this.#add({ manifestMerges: 1 });
      } else if (answer.kind === 'refused') {
        await this.#deps.warehouse.delete(objects);
        await tables.dropIntents(objects);
      } else {
        // History may tell at once; else the sweep asks it later.
        const now = await loadOwn(this.#deps, table);
        if (fateOf(now.metadata, sent) === 'found') await tables.dropIntents(objects);
      }
    } finally {
      for (const name of objects) jobsUnderWay.delete(name);
    }
  }

  // Expiry and orphans.

  async #expire(table: MaintainedTable, { config, force, signal }: UpkeepRun): Promise<void> {
    const now = this.#deps.clock.monotonic();
    const due =
      config['table.topic.expire.snapshot.enable'] &&
      now - this.#expiredAtMs >= config['table.topic.expire.snapshot.interval.ms'];
    if (!due && force !== 'expire') return;
    this.#state = 'expiring';
    const policy = {
      maxAgeMs: config['table.topic.expire.snapshot.older.than.hours'] * HOUR_MS,
      minSnapshots: config['table.topic.expire.snapshot.retain.last'],
      maxCount: config['table.topic.expire.snapshot.max.count'],
    };
    for (let attempt = 1; attempt <= EXPIRE_ATTEMPTS; attempt += 1) {
      signal.throwIfAborted();
      await this.#deps.whenQuiet(table);
      const loaded = await loadOwn(this.#deps, table);
      const outcome = await expireSnapshots(this.#deps, table, { loaded, policy });
      if (outcome === 'moved') continue;
      const { snapshots, files } = outcome;
      this.#expiredAtMs = now;
      this.#add({ snapshotsExpired: snapshots, filesDeleted: files });
      if (snapshots === 0) return;
      const { metrics, logger } = this.#deps;
      metrics.count('floe_table_snapshots_expired_total', 'Snapshots expired', {}, snapshots);
      metrics.count('floe_table_files_deleted_total', 'Files of expired snapshots', {}, files);
      logger.info({ table: table.identifier, snapshots, files }, 'snapshots expired');
      return;
    }
  }

  /** Rows past their time to live, looked for a few times within it. */
  async #expireRows(table: MaintainedTable, { config, force }: UpkeepRun): Promise<void> {
    const ttlMs = config['table.topic.row.ttl.ms'];
    if (ttlMs === 0 || table.role !== 'data') return;
    const { clock, metrics, logger } = this.#deps;
    const everyMs = Math.min(HOUR_MS, Math.max(MINUTE_MS, ttlMs / 20));
    const due = clock.monotonic() - this.#rowsExpiredAtMs >= everyMs;
    if (!due && force === undefined) return;
    this.#rowsExpiredAtMs = clock.monotonic();
    this.#state = 'expiring';
    await this.#deps.whenQuiet(table);
    const column = config['table.topic.row.ttl.column'];
    const { files, rows } = await expireRows(this.#deps, table, { ttlMs, column });
    if (rows === 0) return;
    metrics.count('floe_table_rows_expired_total', 'Rows past their time to live', {}, rows);
    logger.info({ table: table.identifier, files, rows }, 'rows past their time left the table');
  }

  async #orphans(table: MaintainedTable, { config }: UpkeepRun): Promise<void> {
    const { clock, tasks, tables, warehouse, metrics, logger, jobsUnderWay } = this.#deps;
    const due = clock.monotonic() - this.#orphansAtMs >= DAY_MS;
    if (!config['table.topic.orphan.enable'] || !due) return;
    this.#orphansAtMs = clock.monotonic();
    this.#state = 'sweeping';
    // What is staged or intended is named before the table is looked at: it can only come to be in it later.
    const stages = await tables.stages(table.topicId, STAGES);
    const intents = await tables.intents(Number.MAX_SAFE_INTEGER, STAGES);
    if (stages.length >= STAGES || intents.length >= STAGES) return;
    const inUse = [
      ...stages.flatMap((stage) => stage.filePrefixes),
      ...stages.flatMap(({ payload }) => {
        const { data, deadLetters } = parseStagedFiles(payload);
        return [...data, ...deadLetters].map((file) => file.filePath);
      }),
      ...intents.map((intent) => intent.prefix),
      ...jobsUnderWay,
    ].filter((prefix) => prefix !== '');
    const loaded: LoadedTable = await loadOwn(this.#deps, table);
    if (!ownsFolder(loaded.metadata)) return;
    const orphans = await tasks.orphans({
      metadata: loaded.metadata,
      metadataLocation: loaded.metadataLocation,
      olderThanMs: clock.now() - config['table.topic.orphan.older.than.hours'] * HOUR_MS,
      inUse,
      limit: ORPHANS_PER_PASS,
    });
    if (orphans.length === 0) return;
    await tables.addIntents(intentsOf(this.#deps, table, orphans, 'none'));
    await warehouse.delete(orphans);
    await tables.dropIntents(orphans);
    this.#add({ orphansDeleted: orphans.length });
    const count = orphans.length;
    metrics.count('floe_table_orphans_deleted_total', 'Unknown files deleted', {}, count);
    logger.info({ table: table.identifier, files: count }, 'orphans deleted');
  }
}

/** A folder that the catalog chose has the table's uuid in its name: nobody else's files lie there. */
function ownsFolder(metadata: TableMetadata): boolean {
  const suffix = metadata['table-uuid'].replaceAll('-', '').slice(0, 12);
  return metadata.location.endsWith(`-${suffix}`);
}

function countRewrite(metrics: Metrics, end: RewriteEnd, group: RewriteGroup): void {
  const labels = { end: end.stage };
  metrics.count('floe_table_rewrites_total', 'Rewrites of data files by their end', labels);
  metrics.count('floe_table_rewrite_bytes_total', 'Bytes of files rewritten', {}, group.bytes);
  if (end.remappedRows > 0) {
    metrics.count(
      'floe_table_deletes_moved_total',
      'Deletes that arrived during a rewrite and were moved along',
      {},
      end.remappedRows,
    );
  }
}
