// Every table of the metadata as SQLite and PostgreSQL both have it: what is read there, and as which values it is written
// here. For moving a store of one node to one of many (floe migrate). What lives with processes (nodes, leases,
// versions) is not moved, nor are rows of flushes: objects are sealed before.
import type { SqlValue } from '../postgres/database.ts';
import { packOpen } from '../postgres/log-rows.ts';
import { shardOf } from '../shards.ts';
import { rangesKey } from '../table-rules.ts';
import type { StagedRange } from '../tables.ts';
import { storedText } from '../text.ts';

/** A row as SQLite gives it. */
export type SourceRow = Readonly<Record<string, unknown>>;

/** `client`: text of clients, which may hold what PostgreSQL's can't (postgres/text.ts). */
type ColumnType = 'text' | 'client' | 'int4' | 'int8' | 'bool' | 'float8' | 'bytea' | 'int8[]';

export interface TransferColumn {
  /** In PostgreSQL. */
  readonly name: string;
  readonly type: ColumnType;
  readonly of: (row: SourceRow) => SqlValue;
}

export interface TransferTable {
  readonly name: string;
  readonly columns: readonly TransferColumn[];
  /** Reads the rows from SQLite. */
  readonly select: string;
  /** The column that numbers itself. */
  readonly identity?: string;
  /** Migrations put a row there that gives way. */
  readonly seeded?: boolean;
}

interface Rest {
  readonly select?: string;
  readonly identity?: string;
  readonly seeded?: boolean;
  /** Columns that aren't simply the one of the same name. */
  readonly of?: Readonly<Record<string, (row: SourceRow) => SqlValue>>;
}

/** `columns`: `name type, …`, as in CREATE TABLE. */
function table(name: string, columns: string, { of = {}, ...rest }: Rest = {}): TransferTable {
  return {
    name,
    select: `SELECT * FROM ${name}`,
    ...rest,
    columns: columns.split(',').map((column) => {
      const [columnName, type] = column.trim().split(' ') as [string, ColumnType];
      return { name: columnName, type, of: of[columnName] ?? plain(columnName, type) };
    }),
  };
}

function plain(name: string, type: ColumnType): (row: SourceRow) => SqlValue {
  return (row) => {
    const value = row[name];
    if (value === null || value === undefined) return null;
    if (type === 'client') return storedText(value as string);
    if (type === 'bool') return value === 1;
    return value as SqlValue;
  };
}

const SEALED = "state = 'sealed'";

/** In the order of their references. */
export const transferTables: readonly TransferTable[] = [
  table('topics', 'topic_id text, name client, config text, created_ms int8, version int8'),
  table('partitions', 'partition_id int8, topic_id text, partition_index int4', {
    identity: 'partition_id',
  }),
  table('broker_configs', 'scope text, name client, value client'),
  table('producer_ids', 'next_id int8', { seeded: true }),
  table('producer_id_ages', 'first_id int8, allocated_ms int8'),
  // A local file is an object like any other once it lies in a store: its generation stands in its key.
  table(
    'log_objects',
    'object_id int8, key text, kind text, generation int8, state text, bytes int8, created_ms int8, changed_ms int8',
    {
      identity: 'object_id',
      select: `SELECT * FROM log_objects WHERE ${SEALED}`,
      of: { kind: () => 'object' },
    },
  ),
  table(
    'log_partitions',
    'partition_id int8, log_start int8, high_watermark int8, max_timestamp int8, size_bytes int8, open_transactions bytea',
    {
      select: `SELECT *, (SELECT json_group_array(json_array(producer_id, first_offset)) FROM
        (SELECT * FROM open_transactions o WHERE o.partition_id = p.partition_id ORDER BY first_offset)) AS open
        FROM log_partitions p`,
      of: { open_transactions: openOf },
    },
  ),
  table(
    'producer_sequences',
    'partition_id int8, producer_id int8, active_ms int8, sequences bytea',
  ),
  table(
    'object_entries',
    'partition_id int8, base_offset int8, end_offset int8, object_id int8, index_position int8, index_length int8, bytes int8, record_count int8, run_count int8, max_timestamp int8, commit_number int8',
  ),
  table(
    'log_cleanings',
    'partition_id int8, clean_end int8, clean_bytes int8, tombstone_bytes int8, horizon_ms int8, cleaned_ms int8',
  ),
  table(
    'aborted_transactions',
    'partition_id int8, last_offset int8, producer_id int8, first_offset int8, stable_offset int8',
  ),
  table(
    'transactions',
    'transactional_id client, shard int4, producer_id int8, producer_epoch int4, previous_producer_id int8, last_producer_epoch int4, incarnation int8, status text, transaction_version int4, timeout_ms int8, start_ms int8, update_ms int8, partitions int8[], offsets text',
    {
      of: {
        shard: (row) => shardOf(row['transactional_id'] as string),
        partitions: (row) => JSON.parse(row['partitions'] as string) as number[],
      },
    },
  ),
  table(
    'groups',
    'group_key int8, group_id client, shard int4, kind text, protocol_type client, generation int8, assignment_epoch int8, protocol client, leader_id client, members text, state_since_ms int8',
    { identity: 'group_key', of: { shard: (row) => shardOf(row['group_id'] as string) } },
  ),
  table('group_members', 'group_key int8, member_id client, member text'),
  table(
    'group_offsets',
    'group_key int8, partition_id int8, committed_offset int8, leader_epoch int4, metadata client, commit_ms int8, expire_ms int8',
  ),
  table(
    'scram_credentials',
    'username text, mechanism text, iterations int4, salt bytea, stored_key bytea, server_key bytea',
    { of: { username: (row) => storedText(row['user'] as string) } },
  ),
  table(
    'acls',
    'resource_type int4, resource_name client, pattern_type int4, principal client, host client, operation int4, permission int4',
  ),
  table('registry_contexts', 'context text, last_id int8', { seeded: true }),
  table(
    'registry_contents',
    'context text, id int8, guid text, type text, text text, refs text, contract text',
  ),
  table('registry_subjects', 'subject text, stamp int8, next_version int8'),
  table('registry_places', 'subject text, version int8, context text, id int8, deleted bool'),
  table('registry_uses', 'subject text, version int8, context text, by_id int8'),
  table('registry_settings', 'kind text, subject text, value text'),
  table(
    'table_topics',
    'topic_id text, topic_name text, namespace text, table_name text, table_uuid text, generation int8, epoch int8, paused bool, state text, reason text, rows int8, dead_letters int8, skipped int8, lost_offsets int8, files int8, commits int8, last_commit_ms int8, last_snapshot_id text',
  ),
  table(
    'table_positions',
    'topic_id text, partition_index int4, staged_end int8, committed_end int8',
  ),
  table(
    'table_stages',
    'sequence int8, stage_id text, topic_id text, attempted bool, parent text, ranges_key text, bytes int8, head text, payload text',
    {
      identity: 'sequence',
      of: {
        ranges_key: (row) => rangesKey(headOf(row).ranges),
        bytes: (row) => headOf(row).bytes,
      },
    },
  ),
  table(
    'table_intents',
    'prefix text, topic_id text, created_ms int8, sweeping bool, namespace text, table_name text, parent text',
  ),
  table(
    'table_letters',
    'topic_id text, partition_index int4, first_offset int8, last_offset int8, place text, count int4, runs bytea',
  ),
  table('table_replays', 'commit_id text, parent text, letters text, topic_id text'),
  table('table_orders', 'topic_id text, epoch int8, number int8, version text, targets text'),
  table('table_asks', 'sequence int8, ask_id text, topic_id text, epoch int8, payload text', {
    identity: 'sequence',
  }),
  table('catalog_namespaces', 'namespace text, parent text, properties text'),
  table('catalog_tables', 'namespace text, name text, metadata_location text, kind text'),
  table('catalog_secrets', 'name text, value text'),
  table('client_quotas', 'entity text, quota_key text, value float8'),
  table('resource_configs', 'kind text, resource client, name text, value client'),
];

function openOf(row: SourceRow): SqlValue {
  const open = JSON.parse(row['open'] as string) as [number, number][];
  return packOpen(row['partition_id'] as number, open.length === 0 ? undefined : new Map(open));
}

function headOf(row: SourceRow): {
  readonly ranges: readonly StagedRange[];
  readonly bytes: number;
} {
  return JSON.parse(row['head'] as string);
}
