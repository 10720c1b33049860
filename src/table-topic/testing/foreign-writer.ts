// Another engine that writes the tables too: appends, deletes by position, by vector and by value, overwrites,
// compactions, tags; each a commit of its own, made with the formats' own parts but none of table topics' or maintenance's.
import { isFloeError } from '../../base/error.ts';
import type { IdSource, Prng } from '../../base/prng.ts';
import type { Catalog, TableIdentifier } from '../../catalog/catalog.ts';
import type { Warehouse } from '../../catalog/index.ts';
import type { BytesColumn } from '../../formats/arrow/byte-columns.ts';
import type { Int32Column, Int64Column } from '../../formats/arrow/scalar-columns.ts';
import { TableColumns } from '../../formats/arrow/table-columns.ts';
import {
  type CommitInput,
  currentSchema,
  currentSnapshot,
  type DataFile,
  dataFolder,
  newSnapshotId,
  prepareCommit,
  type Schema,
  type TableMetadata,
} from '../../formats/iceberg/index.ts';
import { writePositionDeletes } from '../../formats/iceberg/position-deletes.ts';
import { writeVectors } from '../../formats/iceberg/puffin.ts';
import { ParquetWriter } from '../../formats/parquet/writer.ts';
import { type LiveRow, liveRows } from './live-rows.ts';
import { liveFiles } from './parquet-rows.ts';

export interface ForeignDeps {
  readonly catalog: Catalog;
  readonly warehouse: Warehouse;
  readonly ids: IdSource;
  readonly prng: Prng;
  readonly now: () => number;
}

/** Coordinates of a row: `partition/offset`. */
export const coordinate = ({ values }: Pick<LiveRow, 'values'>) =>
  `${values['_kafka_partition']}/${values['_kafka_offset']}`;

/** Rows that no topic wrote have this partition. */
const FOREIGN_PARTITION = 99;

type Change = Pick<CommitInput, 'added'> & Partial<Pick<CommitInput, 'removed' | 'operation'>>;

export class ForeignWriter {
  readonly #deps: ForeignDeps;
  readonly #identifier: TableIdentifier;
  #offset = 0;

  constructor(deps: ForeignDeps, identifier: TableIdentifier) {
    this.#deps = deps;
    this.#identifier = identifier;
  }

  /** Adds `count` rows; returns their coordinates. */
  async append(count: number): Promise<string[]> {
    const offsets = Array.from({ length: count }, () => this.#offset++);
    const rows = offsets.map((offset) => ({ partition: FOREIGN_PARTITION, offset }));
    await this.#commit(async (metadata) => ({ added: [await this.#file(metadata, rows)] }));
    return rows.map(({ partition, offset }) => `${partition}/${offset}`);
  }

  /** Deletes about `count` rows, by position (v2) or vector (v3); returns their coordinates. */
  deletePositions(count: number): Promise<string[]> {
    let gone: LiveRow[] = [];
    return this.#commit(async (metadata) => {
      const rows = await liveRows(this.#deps.warehouse, metadata);
      gone = this.#some(rows, count);
      if (gone.length === 0) return undefined;
      return metadata['format-version'] >= 3
        ? this.#vectors(metadata, gone)
        : this.#positionFile(metadata, gone);
    }).then(() => gone.map(coordinate));
  }

  /** Deletes about `count` rows by their coordinates' values. */
  deleteEqual(count: number): Promise<string[]> {
    let gone: LiveRow[] = [];
    return this.#commit(async (metadata) => {
      gone = this.#some(await liveRows(this.#deps.warehouse, metadata), count);
      if (gone.length === 0) return undefined;
      const schema = currentSchema(metadata);
      const id = (name: string) => schema.fields.find((field) => field.name === name)!.id;
      const equalityIds = [id('_kafka_partition'), id('_kafka_offset')];
      const keys: Schema = {
        ...schema,
        fields: schema.fields.filter((field) => equalityIds.includes(field.id)),
      };
      const columns = new TableColumns(keys);
      for (const { values } of gone) {
        (columns.byId(equalityIds[0]!) as Int32Column).append(Number(values['_kafka_partition']));
        (columns.byId(equalityIds[1]!) as Int64Column).append(Number(values['_kafka_offset']));
        columns.endRow();
      }
      const file = await this.#write(metadata, columns, keys);
      return { added: [{ ...file, content: 2, equalityIds }], operation: 'delete' };
    }).then(() => gone.map(coordinate));
  }

  /** Writes the rows of some files anew: as a compaction (`replace`), or an overwrite that drops a few of them. */
  rewrite(files: number, dropped: number): Promise<string[]> {
    let gone: LiveRow[] = [];
    return this.#commit(async (metadata) => {
      const live = await liveFiles(this.#deps.warehouse, metadata);
      const data = this.#some(
        live.filter((file) => file.content === 0),
        files,
      );
      if (data.length === 0) return undefined;
      const paths = new Set(data.map((file) => file.filePath));
      const rows = (await liveRows(this.#deps.warehouse, metadata)).filter((row) =>
        paths.has(row.filePath),
      );
      gone = this.#some(rows, dropped);
      const kept = rows.filter((row) => !gone.includes(row));
      // Vectors leave with their data files, as the specification wants.
      const vectors = live.filter(
        (file) => file.contentOffset !== undefined && paths.has(file.referencedDataFile ?? ''),
      );
      const added = kept.length === 0 ? [] : [await this.#copy(metadata, kept)];
      return {
        added,
        removed: [...data, ...vectors],
        operation: gone.length === 0 ? 'replace' : 'overwrite',
      };
    }).then(() => gone.map(coordinate));
  }

  /** A tag on the present snapshot; returns whether there was one. */
  async tag(name: string): Promise<boolean> {
    const { metadata } = await this.#deps.catalog.loadTable(this.#identifier);
    const snapshotId = metadata['current-snapshot-id'];
    if (snapshotId === undefined) return false;
    await this.#deps.catalog.commitTable(this.#identifier, {
      requirements: [],
      updates: [
        {
          action: 'set-snapshot-ref',
          'ref-name': name,
          type: 'tag',
          'snapshot-id': snapshotId,
        },
      ],
    });
    return true;
  }

  #some<T>(items: readonly T[], count: number): T[] {
    const left = [...items];
    const taken: T[] = [];
    while (taken.length < count && left.length > 0)
      taken.push(...left.splice(this.#deps.prng.int(left.length), 1));
    return taken;
  }

  /** Derived afresh as often as somebody else is faster. */
  async #commit(change: (metadata: TableMetadata) => Promise<Change | undefined>): Promise<void> {
    const { catalog, warehouse, ids, now } = this.#deps;
    for (;;) {
      const { metadata } = await catalog.loadTable(this.#identifier);
      const made = await change(metadata);
      if (made === undefined) return;
      const prepared = await prepareCommit({
        ...made,
        metadata,
        io: warehouse,
        snapshotId: newSnapshotId(ids, metadata),
        commitUuid: ids.uuid(),
        nowMs: now(),
        // Rows that were deleted by value stay deleted however a later writer numbers its files.
        ...(made.operation === 'replace'
          ? { dataSequenceNumber: currentSnapshot(metadata)!['sequence-number']! }
          : {}),
      });
      for (const { path, bytes } of prepared.objects) await warehouse.write(path, bytes);
      try {
        await catalog.commitTable(this.#identifier, prepared);
        return;
      } catch (caught) {
        if (!isFloeError(caught, 'conflict')) throw caught;
      }
    }
  }

  async #copy(metadata: TableMetadata, rows: readonly LiveRow[]): Promise<DataFile> {
    return this.#file(
      metadata,
      rows.map(({ values }) => ({
        partition: Number(values['_kafka_partition']),
        offset: Number(values['_kafka_offset']),
        value: values['_kafka_value'] as string | null,
      })),
    );
  }

  #file(
    metadata: TableMetadata,
    rows: readonly { partition: number; offset: number; value?: string | null }[],
  ): Promise<DataFile> {
    const schema = currentSchema(metadata);
    const columns = new TableColumns(schema);
    const at = (name: string) => columns.byId(schema.fields.find((f) => f.name === name)!.id)!;
    for (const { partition, offset, value = 'foreign' } of rows) {
      (at('_kafka_partition') as Int32Column).append(partition);
      (at('_kafka_offset') as Int64Column).append(offset);
      if (value === null) at('_kafka_value').appendNull();
      else (at('_kafka_value') as BytesColumn).appendText(value);
      columns.endRow();
      columns.align();
    }
    return this.#write(metadata, columns, schema);
  }

  async #write(metadata: TableMetadata, columns: TableColumns, schema: Schema): Promise<DataFile> {
    const writer = new ParquetWriter({ schema });
    writer.writeRowGroup(columns);
    const file = writer.finish();
    const path = `${dataFolder(metadata)}/foreign-${this.#deps.ids.uuid()}.parquet`;
    await this.#deps.warehouse.write(path, file.parts);
    return {
      content: 0,
      filePath: path,
      fileFormat: 'PARQUET',
      specId: metadata['default-spec-id'],
      partition: [],
      recordCount: file.recordCount,
      fileSizeInBytes: file.byteLength,
      metrics: file.metrics,
    };
  }

  async #positionFile(metadata: TableMetadata, gone: readonly LiveRow[]): Promise<Change> {
    const path = `${dataFolder(metadata)}/foreign-${this.#deps.ids.uuid()}-deletes.parquet`;
    const { file, parts } = writePositionDeletes({
      path,
      specId: metadata['default-spec-id'],
      partition: [],
      rows: byFile(gone),
    });
    await this.#deps.warehouse.write(path, parts);
    return { added: [file], operation: 'delete' };
  }

  /** A vector holds all deletes of its file: the union with the one before, which leaves. */
  async #vectors(metadata: TableMetadata, gone: readonly LiveRow[]): Promise<Change> {
    const { warehouse, ids } = this.#deps;
    const live = await liveFiles(warehouse, metadata);
    const rows = await liveRows(warehouse, metadata);
    const inputs = byFile(gone).map(({ filePath, positions }) => {
      const data = live.find((file) => file.filePath === filePath)!;
      const alive = new Set(
        rows.filter((row) => row.filePath === filePath).map((row) => row.position),
      );
      const before = Array.from({ length: data.recordCount }, (_, n) => n).filter(
        (position) => !alive.has(position),
      );
      const all = Float64Array.from(new Set([...before, ...positions])).sort();
      return { filePath, positions: all, data };
    });
    const path = `${dataFolder(metadata)}/foreign-${ids.uuid()}.puffin`;
    const { files, bytes } = await writeVectors(path, inputs);
    await warehouse.write(path, bytes);
    const paths = new Set(inputs.map((one) => one.filePath));
    const removed = live.filter(
      (file) => file.contentOffset !== undefined && paths.has(file.referencedDataFile ?? ''),
    );
    return { added: files, removed, operation: 'delete' };
  }
}

function byFile(rows: readonly LiveRow[]): { filePath: string; positions: Float64Array }[] {
  const found = new Map<string, number[]>();
  for (const { filePath, position } of rows)
    found.set(filePath, [...(found.get(filePath) ?? []), position]);
  return [...found].map(([filePath, positions]) => ({
    filePath,
    positions: Float64Array.from(positions).sort(),
  }));
}
