// Configs of upserts and change data capture.
import { bool, oneOf, type Setting, type Settings } from '../../base/settings.ts';
import { type ColumnPath, formatColumns, formatPath, parseColumns } from '../column-list.ts';

const idColumns: Setting<readonly ColumnPath[]> = {
  type: 'string',
  default: [],
  valid: '[column, struct.column, `odd name`]',
  aliases: ['automq.table.topic.id.columns'],
  doc: 'The columns whose values make two records the same row of an upsert table, in order. Primitive columns, or structs of them. Empty: the record key, which is then the column _kafka_key.',
  parse: parseColumns,
  format: formatColumns,
};

const cdcField: Setting<ColumnPath | undefined> = {
  type: 'string',
  default: undefined,
  valid: 'column',
  aliases: ['automq.table.topic.cdc.field'],
  doc: 'A text column of the value that says what a record does: insert, create, read or update (by their first letter, any case) write the row, delete takes it away, truncate takes all rows that are older. Null writes the row. Debezium’s envelope needs none.',
  parse: (value) => {
    const [path] = parseColumns(value);
    return path;
  },
  format: (value) => (value === undefined ? '' : formatPath(value)),
};

export const configs = {
  'table.topic.upsert.enable': bool({
    default: false,
    aliases: ['automq.table.topic.upsert.enable'],
    doc: 'One row for each key: a record replaces the row of its key, a record without a value deletes it. Turning it on over duplicates keeps the newest row of each key, in one rewrite that the log announces. Not with table.topic.shared: which change of a key is the newest can only be kept for one topic.',
  }),
  'table.topic.id.columns': idColumns,
  'table.topic.id.null': oneOf(['error', 'match'], {
    default: 'error',
    doc: 'What a null in an id column means in an upsert table: the record goes the way of errors.tolerance, or null is a value like any other, equal to itself.',
  }),
  'table.topic.cdc.field': cdcField,
} as const satisfies Settings;
