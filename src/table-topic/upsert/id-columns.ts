// Which columns of a table are its key (rule K2): `id.columns` resolved against the schema as it is, structs taken
// apart into their leaves, or the record key where none are configured. What other
// engines read of it is identifiers.ts's. Pure. Not for: the form of a key (canonical-key.ts).
import { FloeError } from '../../base/error.ts';
import { uuidToBytes } from '../../base/prng.ts';
import { findField } from '../../formats/iceberg/schema.ts';
import type { IcebergType, PrimitiveTypeName, Schema } from '../../formats/iceberg/types.ts';
import { type ColumnPath, formatPath } from '../column-list.ts';
import type { TopicConfigs } from '../settings/index.ts';
import { type HashKey, hashKeyOf } from './sip-hash.ts';

/** One leaf of the key. */
export interface IdColumn {
  /** −1 while the table has no such column: its values are null. */
  readonly fieldId: number;
  readonly path: ColumnPath;
  readonly type: PrimitiveTypeName;
}

/** What a job, a commit and the index must know of an upsert table's key. Plain data: it crosses threads. */
export interface UpsertTable {
  readonly columns: readonly IdColumn[];
  readonly hashKey: HashKey;
  readonly nulls: 'error' | 'match';
  /** The column that names the operation; undefined: none does. */
  readonly operationField: number | undefined;
  /** The record key's column, by which null values name their rows; undefined: the table has none. */
  readonly keyField: number | undefined;
  /** The topic's id: stamps of another topic's changes say nothing about these. */
  readonly topicId: string;
}

export const KEY_COLUMN = '_kafka_key';

/** Undefined for an append-only table. @throws FloeError `invalid` naming the column that can't be a key. */
export function upsertTable(
  config: TopicConfigs,
  table: {
    readonly schema: Schema;
    readonly uuid: string;
    readonly keyField: number | undefined;
    readonly topicId: string;
  },
): UpsertTable | undefined {
  if (!config['table.topic.upsert.enable']) return undefined;
  const { schema, uuid, keyField, topicId } = table;
  const configured = config['table.topic.id.columns'];
  const keyName = keyField === undefined ? undefined : findField(schema, keyField)?.name;
  if (
    configured.length === 0 &&
    keyName === undefined &&
    config['table.topic.convert.key.type'] !== 'by_schema_id'
  ) {
    throw new FloeError(
      'invalid',
      'table.topic.upsert.enable: without table.topic.id.columns the record key is the key, and the table has no _kafka_key column',
    );
  }
  const paths = configured.length > 0 ? configured : [[keyName ?? KEY_COLUMN]];
  const columns = paths.flatMap((path) => leavesOf(schema, path));
  const operation = config['table.topic.cdc.field'];
  const operationField =
    operation === undefined ? undefined : findField(schema, operation.join('.'))?.id;
  return {
    columns,
    hashKey: hashKeyOf(uuidToBytes(uuid)),
    nulls: config['table.topic.id.null'],
    operationField,
    keyField,
    topicId,
  };
}

function leavesOf(schema: Schema, path: ColumnPath): IdColumn[] {
  const field = findField(schema, path.join('.'));
  // It may come with later records (JSON, a key's first schema); until then it is null everywhere.
  if (field === undefined) return [{ fieldId: -1, path, type: 'string' }];
  if (field.repeated) throw notAKey(path, 'is inside a list or map');
  return leavesOfType(field.type, field.id, path);
}

function leavesOfType(type: IcebergType, fieldId: number, path: ColumnPath): IdColumn[] {
  if (typeof type === 'string') return [{ fieldId, path, type }];
  if (type.type !== 'struct') throw notAKey(path, `is a ${type.type}`);
  return type.fields.flatMap((field) => leavesOfType(field.type, field.id, [...path, field.name]));
}

const notAKey = (path: ColumnPath, why: string) =>
  new FloeError(
    'invalid',
    `table.topic.id.columns: column ${formatPath(path)} ${why}, so it can't be part of a key`,
  );
