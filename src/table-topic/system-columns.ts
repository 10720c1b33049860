// The columns that Floe adds to every row, and the fixed tables: dead letters, and values kept whole.
import type {
  ProposedField,
  ProposedStruct,
  ProposedType,
} from '../formats/arrow/proposed-schema.ts';
import { VALUE_COLUMN } from '../formats/arrow/proposed-schema.ts';
import type { SystemColumn } from './settings/index.ts';

/** Source paths of what isn't a value's: they can't clash with a value's, which never start with a colon. */
export const SYSTEM_PREFIX = ':kafka_';

export const systemPath = (column: SystemColumn) => `${SYSTEM_PREFIX}${column}`;

const HEADERS: ProposedType = {
  type: 'list',
  elementPath: `${systemPath('headers')}[]`,
  element: {
    type: 'struct',
    fields: [
      plain('key', 'string', `${systemPath('headers')}[].key`),
      plain('value', 'binary', `${systemPath('headers')}[].value`),
    ],
  },
};

/** Order, duplicates and nulls of headers are kept, so a list; the time can be partitioned by, so a timestamp. */
const TYPES: Readonly<Record<Exclude<SystemColumn, 'key'>, ProposedType>> = {
  topic: 'string',
  partition: 'int',
  offset: 'long',
  timestamp: 'timestamptz',
  headers: HEADERS,
};

function plain(name: string, type: ProposedType, path: string): ProposedField {
  return { name, aliases: [], path, type };
}

/** The `_kafka_*` columns that a topic's config asks for: a table that topics share must say whose a row is. */
export const wantedSystemColumns = (config: {
  readonly 'table.topic.system.columns': readonly SystemColumn[];
  readonly 'table.topic.shared': boolean;
}): readonly SystemColumn[] => {
  const columns = config['table.topic.system.columns'];
  return config['table.topic.shared'] && !columns.includes('topic')
    ? ['topic', ...columns]
    : columns;
};

/** The wished `_kafka_*` columns; `key` is the type a key has, a struct when it is decoded by schema. */
export function systemFields(
  columns: readonly SystemColumn[],
  key: ProposedType,
): readonly ProposedField[] {
  return columns.map((column) =>
    plain(`_kafka_${column}`, column === 'key' ? key : TYPES[column], systemPath(column)),
  );
}

/** Where raw and text values go, and with `transform=none` all others. */
export function wholeValue(type: ProposedType): ProposedStruct {
  return { type: 'struct', fields: [plain(VALUE_COLUMN, type, VALUE_COLUMN)] };
}

/** Columns of `<table>_dlq`, in order. */
export const DEAD_LETTER_FIELDS = [
  ['topic', 'string'],
  ['partition', 'int'],
  ['offset', 'long'],
  ['timestamp', 'timestamptz'],
  ['key', 'binary'],
  ['value', 'binary'],
  ['headers', HEADERS],
  ['schema_id', 'int'],
  ['stage', 'string'],
  ['reason', 'string'],
  ['error', 'string'],
  ['table', 'string'],
  ['failed_at', 'timestamptz'],
] as const satisfies readonly (readonly [string, ProposedType])[];

export type DeadLetterColumn = (typeof DEAD_LETTER_FIELDS)[number][0];

export const DEAD_LETTER_TABLE: ProposedStruct = {
  type: 'struct',
  fields: DEAD_LETTER_FIELDS.map(([name, type]) => plain(name, type, name)),
};

/**
 * What stage of a record's way failed, and why, in words that programs may match. `no_row`: nothing failed, a record of
 * this kind is no row of the table (a tombstone after Debezium's delete, a heartbeat); it is counted as skipped.
 */
export type DeadLetterStage = 'batch' | 'key' | 'value' | 'writer';
export type DeadLetterReason =
  | 'no_row'
  /** Upserts: a null in an id column, a null value whose key names no row, an operation that nobody knows. */
  | 'null_id'
  | 'no_key'
  | 'unknown_operation'
  | 'null_value'
  | 'no_schema_id'
  | 'unknown_schema_id'
  | 'unsupported_schema'
  | 'undecodable'
  | 'not_json'
  | 'incompatible_type'
  | 'unreadable_batch'
  | 'unwritable';
