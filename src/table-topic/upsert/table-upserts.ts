// One upsert table's commits, as its committer sees them: what staged changes do to the snapshot about to be asserted,
// and word to the index once the commit is certain. Also how far deleted keys may be forgotten.
// Not for: the index itself (key-index.ts), the commit (../commit.ts).

import { assert } from '../../base/assert.ts';
import { FloeError } from '../../base/error.ts';
import type { Logger } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import { dataFolder } from '../../formats/iceberg/commit.ts';
import { currentSnapshot } from '../../formats/iceberg/history.ts';
import type { DataFile, TableMetadata } from '../../formats/iceberg/types.ts';
import type { TableBinding } from '../binding.ts';
import type { TopicConfigs } from '../settings/index.ts';
import { type Offsets, readBack, TOPIC_ID_PROPERTY } from '../watermark.ts';
import { type UpsertTable, upsertTable } from './id-columns.ts';
import type { KeyIndexes, PreparedChanges, PrepareRequest } from './key-index.ts';
import { countChanges } from './metrics.ts';
import type { SidecarRef } from './sidecar.ts';

/** The table property that says which columns the rows are unique by, once they are. */
export const ID_COLUMNS_PROPERTY = 'floe.id-columns';
/** In the summary of the snapshot that took duplicates away. */
const DUPLICATES_SUMMARY = 'floe.duplicate-rows-removed';

export interface TableUpsertsOptions {
  readonly indexes: KeyIndexes;
  readonly upsert: UpsertTable;
  /** Field ids of `_kafka_partition` and `_kafka_offset`, where the table has them. */
  readonly order: { readonly partition: number | undefined; readonly offset: number | undefined };
  /** Up to which commit of the log all partitions are committed, once these offsets are. */
  readonly floor: (offsets: Offsets) => Promise<number>;
  /** Committed changes above the floor, read again from the log; by topic id what the table holds. */
  readonly history: (topics: ReadonlyMap<string, Offsets>) => Promise<readonly Uint8Array[]>;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

export interface LandedCommit {
  readonly tableUuid: string;
  readonly commitId: string;
  /** Of the snapshot that was made, or of the one that stayed when no file changed. */
  readonly snapshotId: bigint | undefined;
  readonly sequenceNumber: number;
  readonly offsets: Offsets;
}

/** What an attempt adds for its upserts. */
export interface UpsertDraft {
  readonly changes: PreparedChanges;
  readonly properties: Readonly<Record<string, string>>;
  readonly summary: Readonly<Record<string, string>>;
}

export class TableUpserts {
  readonly #options: TableUpsertsOptions;

  constructor(options: TableUpsertsOptions) {
    this.#options = options;
  }

  /** Fields of the key: sidecars of others are read again. */
  get idFields(): readonly number[] {
    return this.#options.upsert.columns.map(({ fieldId }) => fieldId);
  }

  /** Resolves against `metadata`'s newest snapshot (K4); derived afresh for every attempt (T4). */
  async prepare(
    metadata: TableMetadata,
    commit: {
      readonly commitId: string;
      readonly files: readonly DataFile[];
      readonly sidecars: readonly SidecarRef[];
      /** Committed changes that the index must know the order of, whatever it knows. */
      readonly history?: readonly Uint8Array[];
    },
  ): Promise<UpsertDraft> {
    const { indexes, upsert, order, logger } = this.#options;
    const idColumns = this.idFields.join(',');
    const turnedOn = metadata.properties?.[ID_COLUMNS_PROPERTY] !== idColumns;
    const before = readBack(metadata);
    const watermark = before.kind === 'at' ? before.watermark : undefined;
    const request: PrepareRequest = {
      metadata: slim(metadata),
      upsert,
      files: commit.files.map(withoutMetrics),
      sidecars: commit.sidecars,
      prefix: `${dataFolder(metadata)}/${commit.commitId}`,
      commitId: watermark?.commitId ?? '',
      ...(turnedOn ? { turnedOn: order } : {}),
      ...(commit.history === undefined ? {} : { history: commit.history }),
    };
    let changes = await indexes.prepare(request);
    if ('kind' in changes) {
      const history = await this.#options.history(watermark?.topics ?? new Map());
      changes = await indexes.prepare({ ...request, history });
      assert(!('kind' in changes), 'K1: an index that was told the order doesn’t ask again');
    }
    // The index needs no metrics, manifests do.
    const whole = new Map(commit.files.map((file) => [file.filePath, file]));
    const added = changes.added.map((file) => whole.get(file.filePath) ?? file);
    if (changes.duplicateRows > 0) {
      logger.warn(
        { rows: changes.duplicateRows, idColumns },
        'upserts were turned on over duplicates: of each key the newest row stays',
      );
    }
    if (changes.unreadableCells > 0) {
      logger.warn(
        { cells: changes.unreadableCells },
        'cells that their source did not send stay as they came: the old rows lie in files without field ids, or in encodings that are not read',
      );
    }
    return {
      changes: { ...changes, added },
      properties: turnedOn ? { [ID_COLUMNS_PROPERTY]: idColumns } : {},
      summary:
        changes.duplicateRows === 0 ? {} : { [DUPLICATES_SUMMARY]: String(changes.duplicateRows) },
    };
  }

  /** The commit is certain. What goes wrong here is the index's business: it finds out by reading. */
  async landed(draft: UpsertDraft, made: LandedCommit): Promise<void> {
    const { indexes, floor, metrics, logger } = this.#options;
    countChanges(metrics, draft.changes);
    try {
      await indexes.landed({
        tableUuid: made.tableUuid,
        token: draft.changes.token,
        snapshotId: made.snapshotId === undefined ? '' : String(made.snapshotId),
        sequenceNumber: made.sequenceNumber,
        commitId: made.commitId,
        floor: await floor(made.offsets),
      });
    } catch (caught) {
      logger.warn({ error: FloeError.from(caught).message }, 'key index not moved yet');
    }
  }
}

const withoutMetrics = (file: DataFile): DataFile => ({ ...file, metrics: NO_METRICS });

const NO_METRICS = {
  columnSizes: new Map(),
  valueCounts: new Map(),
  nullValueCounts: new Map(),
  nanValueCounts: new Map(),
  lowerBounds: new Map(),
  upperBounds: new Map(),
};

/** What crosses to the index's thread: one snapshot, no history. */
export function slim(metadata: TableMetadata): TableMetadata {
  const snapshot = currentSnapshot(metadata);
  const { 'snapshot-log': _log, 'metadata-log': _files, statistics: _s, ...kept } = metadata;
  return { ...kept, snapshots: snapshot === undefined ? [] : [snapshot] };
}

/** What makes two records of a table the same row; undefined for a table that only grows, or isn't there yet. */
export function upsertOf(
  config: TopicConfigs,
  binding: Pick<TableBinding, 'table' | 'jobTable'>,
): UpsertTable | undefined {
  const table = binding.jobTable();
  if (table === undefined) return undefined;
  const { 'table-uuid': uuid, properties } = binding.table!.metadata;
  const topicId = properties?.[TOPIC_ID_PROPERTY] ?? '';
  const { schema, system } = table;
  return upsertTable(config, { schema, uuid, keyField: system.key, topicId });
}
