// A small table in memory for tests of this folder and its users. Not for production.
import { FloeError } from '../../base/error.ts';
import { seededIds, seededPrng } from '../../base/prng.ts';
import { type CommitInput, dataFolder, type PreparedCommit, prepareCommit } from './commit.ts';
import { newSnapshotId } from './history.ts';
import { type NewTable, newTableMetadata } from './metadata-builder.ts';
import { applyUpdates } from './metadata-update.ts';
import { checkRequirements } from './requirements.ts';
import type { FileReader } from './table-files.ts';
import type { DataFile, FileMetrics, Schema, TableMetadata } from './types.ts';

export const TEST_SCHEMA: Schema = {
  type: 'struct',
  'schema-id': 0,
  fields: [
    { id: 1, name: 'id', required: true, type: 'long' },
    { id: 2, name: 'name', required: false, type: 'string' },
    { id: 3, name: 'at', required: false, type: 'timestamptz' },
  ],
};

export const NO_METRICS: FileMetrics = {
  columnSizes: new Map(),
  valueCounts: new Map(),
  nullValueCounts: new Map(),
  nanValueCounts: new Map(),
  lowerBounds: new Map(),
  upperBounds: new Map(),
};

/** A table whose commits are applied at once and whose files live in a Map. */
export class TestTable implements FileReader {
  metadata: TableMetadata;
  readonly files = new Map<string, Uint8Array>();
  readonly ids = seededIds(seededPrng(11));
  nowMs = 1_700_000_000_000;
  #fileNumber = 0;

  constructor(table: Partial<NewTable> = {}) {
    this.metadata = newTableMetadata({
      uuid: this.ids.uuid(),
      location: 'memory://test/table',
      schema: TEST_SCHEMA,
      nowMs: this.nowMs,
      ...table,
    });
  }

  async read(uri: string): Promise<Uint8Array> {
    const found = this.files.get(uri);
    if (found === undefined) throw new FloeError('not-found', uri);
    return found;
  }

  /** A data file description; nothing is written. */
  file(changes: Partial<DataFile> = {}): DataFile {
    this.#fileNumber += 1;
    return {
      content: 0,
      filePath: `${dataFolder(this.metadata)}/${this.#fileNumber}.parquet`,
      fileFormat: 'PARQUET',
      specId: this.metadata['default-spec-id'],
      partition: [],
      recordCount: 10,
      fileSizeInBytes: 1000,
      metrics: NO_METRICS,
      ...changes,
    };
  }

  async prepare(input: Partial<CommitInput>): Promise<PreparedCommit> {
    this.nowMs += 1000;
    return prepareCommit({
      metadata: this.metadata,
      io: this,
      snapshotId: newSnapshotId(this.ids, this.metadata),
      commitUuid: this.ids.uuid(),
      nowMs: this.nowMs,
      added: [],
      ...input,
    });
  }

  /** Prepares, writes and applies a commit. */
  async commit(input: Partial<CommitInput>): Promise<PreparedCommit> {
    const prepared = await this.prepare(input);
    for (const { path, bytes } of prepared.objects) this.files.set(path, bytes);
    this.update(...prepared.updates);
    return prepared;
  }

  update(...updates: readonly Readonly<Record<string, unknown>>[]): void {
    checkRequirements(this.metadata, []);
    this.metadata = applyUpdates(this.metadata, updates, this.nowMs);
  }
}
