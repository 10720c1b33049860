// Tables of the log on PostgreSQL, and their rows as plain data. Not for: what is written when (log-commit.ts).
// Rows that every commit rewrites (partitions, producers) have room on their page for a few versions, so that an update
// touches no index and the next one tidies up (HOT). Flushes are never updated and leave by whole tables
// (flush-ranges.ts). Bytes that don't compress aren't tried to.
import type { BegunTransaction, OpenRanges } from '../decide.ts';
import type { FlushRow, ObjectEntry, PartitionLog } from '../log.ts';
import { firstOpen } from '../markers.ts';
import type { Migration } from './migrations.ts';

export const logMigrations: readonly Migration[] = [
  {
    name: 'log-1',
    sql: `
      -- The store's clock, milliseconds: the only one that anything here is measured by.
      CREATE FUNCTION store_ms() RETURNS int8 LANGUAGE sql VOLATILE AS
        'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8';
      -- Number of the newest commit. Raised last in the transaction of a commit: its lock orders commits, a rollback
      -- leaves no gap, and nobody sees a number before all below it.
      CREATE TABLE log_counter (
        only_row bool PRIMARY KEY DEFAULT true CHECK (only_row), last_commit int8 NOT NULL)
        WITH (fillfactor = 10, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);
      INSERT INTO log_counter (last_commit) VALUES (0);
      -- state: 'open' = its index is in rows of flushes, 'sealed' = in object_entries, 'deleting' = claimed by collector
      -- or sweeper, 'deleted' = only flushes name it. The unique key is the border between commits and the sweeper.
      CREATE TABLE log_objects (
        object_id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text COLLATE "C" NOT NULL UNIQUE,
        kind text NOT NULL, generation int8 NOT NULL, state text NOT NULL, bytes int8 NOT NULL,
        created_ms int8 NOT NULL, changed_ms int8 NOT NULL);
      CREATE INDEX log_objects_by_state ON log_objects (state, object_id);
      CREATE TABLE flushes (
        commit_number int8 NOT NULL, flush_id bytea NOT NULL, object_id int8 NOT NULL, committed_ms int8 NOT NULL,
        packed_index bytea NOT NULL, exceptions bytea, begun bytea, PRIMARY KEY (commit_number))
        PARTITION BY RANGE (commit_number);
      ALTER TABLE flushes ALTER packed_index SET STORAGE EXTERNAL, ALTER exceptions SET STORAGE EXTERNAL,
        ALTER begun SET STORAGE EXTERNAL;
      CREATE INDEX flushes_by_flush_id ON flushes (flush_id);
      CREATE INDEX flushes_by_object ON flushes (object_id);
      -- open_transactions: records of begun transactions (log-rows.ts), ascending by first offset; null: none.
      CREATE TABLE log_partitions (
        partition_id int8 PRIMARY KEY, log_start int8 NOT NULL, high_watermark int8 NOT NULL,
        max_timestamp int8 NOT NULL, size_bytes int8 NOT NULL, open_transactions bytea)
        WITH (fillfactor = 20, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_scale_factor = 0);
      ALTER TABLE log_partitions ALTER open_transactions SET STORAGE EXTERNAL;
      CREATE TABLE producer_sequences (
        partition_id int8 NOT NULL, producer_id int8 NOT NULL, active_ms int8 NOT NULL, sequences bytea NOT NULL,
        PRIMARY KEY (partition_id, producer_id))
        WITH (fillfactor = 25, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_scale_factor = 0.02);
      ALTER TABLE producer_sequences ALTER sequences SET STORAGE PLAIN;
      CREATE TABLE object_entries (
        partition_id int8 NOT NULL, base_offset int8 NOT NULL, end_offset int8 NOT NULL, object_id int8 NOT NULL,
        index_position int8 NOT NULL, index_length int8 NOT NULL, bytes int8 NOT NULL, record_count int8 NOT NULL,
        run_count int8 NOT NULL, max_timestamp int8 NOT NULL, commit_number int8 NOT NULL,
        PRIMARY KEY (partition_id, base_offset));
      CREATE INDEX object_entries_by_object ON object_entries (object_id);`,
  },
];

/** Milliseconds since the epoch by the store's clock, in SQL. */
export const STORE_MS = 'store_ms()';

/** Of flushes joined with log_objects: what {@link toFlushRow} reads. */
export const FLUSH_COLUMNS =
  'f.commit_number, f.flush_id, f.object_id, o.key, o.generation, f.committed_ms, f.packed_index';

export interface FlushRecord {
  readonly commit_number: number;
  readonly flush_id: Uint8Array;
  readonly object_id: number;
  readonly key: string;
  readonly generation: number;
  readonly committed_ms: number;
  readonly packed_index: Uint8Array;
}

export function toFlushRow(row: FlushRecord): FlushRow {
  return {
    commitNumber: row.commit_number,
    flushId: ownBytes(row.flush_id),
    objectId: row.object_id,
    objectKey: row.key,
    generation: row.generation,
    committedMs: row.committed_ms,
    index: ownBytes(row.packed_index),
  };
}

/** Bytes of their own: the driver's are views of what came in one piece, with which they would stay in memory. */
export function ownBytes(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes);
}

/** Of object_entries as e joined with log_objects as o: what {@link toObjectEntry} reads. */
export const ENTRY_COLUMNS = `e.partition_id, e.object_id, o.key, e.base_offset, e.end_offset, e.index_position,
  e.index_length, e.bytes, e.record_count, e.run_count, e.max_timestamp, e.commit_number`;

export interface EntryRecord {
  readonly partition_id: number;
  readonly object_id: number;
  readonly key: string;
  readonly base_offset: number;
  readonly end_offset: number;
  readonly index_position: number;
  readonly index_length: number;
  readonly bytes: number;
  readonly record_count: number;
  readonly run_count: number;
  readonly max_timestamp: number;
  readonly commit_number: number;
}

export function toObjectEntry(row: EntryRecord): ObjectEntry {
  return {
    partitionId: row.partition_id,
    objectId: row.object_id,
    objectKey: row.key,
    baseOffset: row.base_offset,
    endOffset: row.end_offset,
    indexPosition: row.index_position,
    indexLength: row.index_length,
    bytes: row.bytes,
    recordCount: row.record_count,
    runCount: row.run_count,
    maxTimestamp: row.max_timestamp,
    commitNumber: row.commit_number,
  };
}

export const PARTITION_COLUMNS =
  'partition_id, log_start, high_watermark, max_timestamp, size_bytes, open_transactions';

export interface PartitionRecord {
  readonly partition_id: number;
  readonly log_start: number;
  readonly high_watermark: number;
  readonly max_timestamp: number;
  readonly size_bytes: number;
  readonly open_transactions: Uint8Array | null;
}

export function toPartitionLog(row: PartitionRecord): PartitionLog {
  const open = openRanges(row.open_transactions);
  const stable = open === undefined ? row.high_watermark : firstOpen(open, row.high_watermark);
  return {
    partitionId: row.partition_id,
    logStartOffset: row.log_start,
    highWatermark: row.high_watermark,
    lastStableOffset: Math.max(row.log_start, stable),
    maxTimestamp: row.max_timestamp,
    sizeBytes: row.size_bytes,
  };
}

/** Three doubles each: partition id, producer id, first offset. Records of many partitions lie end to end. */
const BEGUN_BYTES = 24;

/** Of a flush's row, or of one partition's. Null: none. */
export function packBegun(begun: readonly BegunTransaction[]): Uint8Array | null {
  if (begun.length === 0) return null;
  const values = new Float64Array(begun.length * 3);
  for (const [n, { partitionId, producerId, firstOffset }] of begun.entries())
    values.set([partitionId, producerId, firstOffset], n * 3);
  return new Uint8Array(values.buffer);
}

/** The inverse of {@link packBegun}. */
export function unpackBegun(packed: Uint8Array | null): readonly BegunTransaction[] {
  if (packed === null) return [];
  const values = new Float64Array(ownBytes(packed).buffer);
  return Array.from({ length: packed.byteLength / BEGUN_BYTES }, (_, n) => ({
    partitionId: values[n * 3]!,
    producerId: values[n * 3 + 1]!,
    firstOffset: values[n * 3 + 2]!,
  }));
}

/** What a partition's row says of its open transactions. */
export function openRanges(packed: Uint8Array | null): OpenRanges | undefined {
  if (packed === null) return undefined;
  return new Map(
    unpackBegun(packed).map(({ producerId, firstOffset }) => [producerId, firstOffset]),
  );
}

/** The inverse of {@link openRanges}. */
export function packOpen(partitionId: number, open: OpenRanges | undefined): Uint8Array | null {
  return packBegun(
    [...(open ?? [])].map(([producerId, firstOffset]) => ({
      partitionId,
      producerId,
      firstOffset,
    })),
  );
}

/** Whole numbers as PostgreSQL reads an array: cheaper than the driver's way, which quotes each. */
export function sqlNumbers(values: Iterable<number>): string {
  return `{${Array.isArray(values) ? values.join() : [...values].join()}}`;
}
