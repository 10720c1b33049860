// Tables of the log on SQLite, and their rows as plain data. Not for: what is written when (log.ts).
import type { FlushRow, ObjectEntry } from '../log.ts';
import type { Migration } from './database.ts';

export const logMigrations: readonly Migration[] = [
  {
    name: 'log-1',
    sql: `
      -- Objects of the log, whatever their kind. state: 'open' = its index is in rows of flushes,
      -- 'sealed' = its index is in object_entries, 'deleting' = claimed by collector or sweeper.
      -- The unique key is the border between commits and the sweeper: whoever is second loses.
      CREATE TABLE log_objects (
        object_id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, kind TEXT NOT NULL,
        generation INTEGER NOT NULL, state TEXT NOT NULL, bytes INTEGER NOT NULL,
        live_bytes INTEGER NOT NULL, created_ms INTEGER NOT NULL, changed_ms INTEGER NOT NULL) STRICT;
      CREATE TABLE flushes (
        commit_number INTEGER PRIMARY KEY, flush_id BLOB NOT NULL UNIQUE, object_id INTEGER NOT NULL,
        committed_ms INTEGER NOT NULL, packed_index BLOB NOT NULL, exceptions BLOB, producers BLOB) STRICT;
      -- NULL in exceptions and producers: none (an empty blob binds as NULL).
      -- high_watermark, max_timestamp, size_bytes: as of the flush applied_commit.
      CREATE TABLE log_partitions (
        partition_id INTEGER PRIMARY KEY, log_start INTEGER NOT NULL, high_watermark INTEGER NOT NULL,
        max_timestamp INTEGER NOT NULL, size_bytes INTEGER NOT NULL, applied_commit INTEGER NOT NULL) STRICT;
      CREATE TABLE producer_sequences (
        partition_id INTEGER NOT NULL, producer_id INTEGER NOT NULL, active_ms INTEGER NOT NULL,
        sequences BLOB NOT NULL, PRIMARY KEY (partition_id, producer_id)) STRICT, WITHOUT ROWID;
      CREATE TABLE object_entries (
        partition_id INTEGER NOT NULL, base_offset INTEGER NOT NULL, end_offset INTEGER NOT NULL,
        object_id INTEGER NOT NULL, index_position INTEGER NOT NULL, index_length INTEGER NOT NULL,
        bytes INTEGER NOT NULL, record_count INTEGER NOT NULL, run_count INTEGER NOT NULL,
        max_timestamp INTEGER NOT NULL, commit_number INTEGER NOT NULL,
        PRIMARY KEY (partition_id, base_offset)) STRICT, WITHOUT ROWID;
      CREATE INDEX object_entries_by_object ON object_entries (object_id);`,
  },
];

/** Of flushes joined with log_objects: what {@link toFlushRow} reads. */
export const FLUSH_COLUMNS =
  'commit_number, flush_id, object_id, key, generation, committed_ms, packed_index';

export function toFlushRow(row: Record<string, unknown>): FlushRow {
  return {
    commitNumber: Number(row['commit_number']),
    flushId: row['flush_id'] as Uint8Array,
    objectId: Number(row['object_id']),
    objectKey: row['key'] as string,
    generation: Number(row['generation']),
    committedMs: Number(row['committed_ms']),
    index: row['packed_index'] as Uint8Array,
  };
}

/** A row of object_entries joined with its object's key. */
export function toObjectEntry(row: Record<string, unknown>): ObjectEntry {
  return {
    partitionId: Number(row['partition_id']),
    objectId: Number(row['object_id']),
    objectKey: row['key'] as string,
    baseOffset: Number(row['base_offset']),
    endOffset: Number(row['end_offset']),
    indexPosition: Number(row['index_position']),
    indexLength: Number(row['index_length']),
    bytes: Number(row['bytes']),
    recordCount: Number(row['record_count']),
    runCount: Number(row['run_count']),
    maxTimestamp: Number(row['max_timestamp']),
    commitNumber: Number(row['commit_number']),
  };
}
