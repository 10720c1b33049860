// Dead letters of an upsert table, tried again: an old change has its place among those of its key. What the key index
// knows of order is only what can still come (K1), so the committed changes since the oldest letter are read once more,
// keys and stamps alone, and put in before the letters are resolved: a letter that a newer row, deletion or truncate
// followed changes nothing.
// Not for: the commit itself (replay.ts).
import { FloeError } from '../../base/error.ts';
import type { Logger } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { TableMetadata } from '../../formats/iceberg/types.ts';
import type { Topic } from '../../metadata/topics.ts';
import type { Log } from '../../storage/log/log.ts';
import type { TableBinding } from '../binding.ts';
import type { JobRunner, JobStaged, JobTable } from '../job.ts';
import { resolveTopicConfigs, type TableSettings } from '../settings/index.ts';
import { commitAt } from '../upsert/commit-steps.ts';
import { committedFloor } from '../upsert/floor.ts';
import { readHistory } from '../upsert/history-reader.ts';
import type { UpsertTable } from '../upsert/id-columns.ts';
import type { KeyIndexes } from '../upsert/key-index.ts';
import {
  ID_COLUMNS_PROPERTY,
  TableUpserts,
  type UpsertDraft,
  upsertOf,
} from '../upsert/table-upserts.ts';

export interface ReplayUpsertsDeps {
  readonly log: Log;
  readonly runner: JobRunner;
  readonly keys: KeyIndexes;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly settings: TableSettings;
}

/** One replay of an upsert table. */
export class ReplayUpserts {
  readonly #deps: ReplayUpsertsDeps;
  readonly #topic: Topic;
  readonly #binding: TableBinding;
  readonly #upsert: UpsertTable;
  readonly #committedEnd: (partition: number) => number;
  /** The commit before that of the oldest letter. */
  readonly #before: number;
  #history: readonly Uint8Array[] | undefined;
  /** The index was told the history. */
  #told = false;

  private constructor(
    deps: ReplayUpsertsDeps,
    table: ReplayedTable,
    { upsert, before }: { readonly upsert: UpsertTable; readonly before: number },
  ) {
    this.#deps = deps;
    this.#topic = table.topic;
    this.#binding = table.binding;
    this.#committedEnd = table.committedEnd;
    this.#upsert = upsert;
    this.#before = before;
  }

  /** Undefined for a table that only grows. `oldest`: of each partition its first letter that is tried. */
  static async begin(
    deps: ReplayUpsertsDeps,
    table: ReplayedTable,
    oldest: ReadonlyMap<number, number>,
  ): Promise<ReplayUpserts | undefined> {
    const upsert = upsertOf(resolveTopicConfigs(table.topic.config), table.binding);
    if (upsert === undefined) return undefined;
    let before = deps.log.lastCommitNumber;
    for (const [partition, offset] of oldest) {
      const id = table.topic.partitions[partition]!;
      const steps = await deps.log.commitSteps(id, offset, offset + 1);
      before = Math.min(before, commitAt(steps, offset) - 1);
    }
    return new ReplayUpserts(deps, table, { upsert, before });
  }

  /** The table as a job writes for it. */
  jobTable(table: JobTable): JobTable {
    return { ...table, key: `${table.key}/replay`, upsert: this.#upsertNow() };
  }

  /** Columns may have come since the replay began. */
  #upsertNow(): UpsertTable {
    const config = resolveTopicConfigs(this.#topic.config);
    return upsertOf(config, this.#binding) ?? this.#upsert;
  }

  /** What the letters' changes do to the table's newest snapshot. @throws FloeError as key indexes do. */
  async prepare(
    metadata: TableMetadata,
    staged: JobStaged,
    commitId: string,
  ): Promise<{ readonly upserts: TableUpserts; readonly draft: UpsertDraft }> {
    const upserts = this.#tableUpserts();
    const idColumns = upserts.idFields.join(',');
    if (metadata.properties?.[ID_COLUMNS_PROPERTY] !== idColumns) {
      throw new FloeError(
        'unavailable',
        'upserts were turned on, or got other id columns, and nothing was committed since: commit, then replay',
      );
    }
    const history = this.#told ? {} : { history: await this.#read() };
    const draft = await upserts.prepare(metadata, {
      commitId,
      files: staged.data,
      sidecars: staged.sidecar === undefined ? [] : [staged.sidecar],
      ...history,
    });
    this.#told = true;
    return { upserts, draft };
  }

  #tableUpserts(): TableUpserts {
    const { keys, metrics, logger, log } = this.#deps;
    const { partition, offset } = this.#binding.jobTable()!.system;
    return new TableUpserts({
      indexes: keys,
      upsert: this.#upsertNow(),
      order: { partition, offset },
      // Stamps that later rounds ask for stay.
      floor: async (offsets) =>
        Math.min(this.#before, await committedFloor(log, this.#topic.partitions, offsets)),
      metrics,
      logger,
      history: () => this.#read(),
    });
  }

  async #read(): Promise<readonly Uint8Array[]> {
    const { log } = this.#deps;
    const { partitions, name: topic, config } = this.#topic;
    const offsets = new Map(partitions.map((_, at) => [at, this.#committedEnd(at)]));
    const table = this.jobTable(this.#binding.jobTable()!);
    this.#history ??= await readHistory(this.#deps, {
      topic,
      partitions,
      offsets,
      floor: Math.min(this.#before, await committedFloor(log, partitions, offsets)),
      table: { ...table, key: `${table.key}/history` },
      config: resolveTopicConfigs(config),
    });
    return this.#history;
  }
}

interface ReplayedTable {
  readonly topic: Topic;
  readonly binding: TableBinding;
  readonly committedEnd: (partition: number) => number;
}
