// Configs of how a table's files lie: partitions, sort order, columns of Floe's own, format version, and the
// properties handed to the table.
import { FloeError } from '../../base/error.ts';
import { int, type Setting, type Settings } from '../../base/settings.ts';
import { checkLayoutProperty } from '../../formats/parquet/layout.ts';
import {
  formatPartitionBy,
  formatSortBy,
  type PartitionExpression,
  parsePartitionBy,
  parseSortBy,
  type SortExpression,
} from '../column-list.ts';

export const SYSTEM_COLUMNS = [
  'topic',
  'partition',
  'offset',
  'timestamp',
  'key',
  'headers',
] as const;
export type SystemColumn = (typeof SYSTEM_COLUMNS)[number];

const partitionBy: Setting<readonly PartitionExpression[]> = {
  type: 'string',
  default: [],
  valid:
    '[column, year|month|day|hour(column), bucket(column, n), truncate(column, n), void(column)]',
  aliases: ['automq.table.topic.partition.by'],
  doc: `Partition fields of the table, as [hour(_kafka_timestamp), bucket(id, 16), country]. Any column may be used, nested ones by a.b, odd names in backticks. Changing it adds a partition spec: files already written keep theirs. Unpartitioned by default, because a partition per commit interval makes small files.`,
  parse: parsePartitionBy,
  format: formatPartitionBy,
};

const sortBy: Setting<readonly SortExpression[]> = {
  type: 'string',
  default: [],
  valid: '[column or transform(column), each with asc|desc and nulls first|last]',
  doc: 'Sort order of the table, as [customer, hour(ts) desc, bucket(id, 16) nulls last]. Rows are sorted within each file, so readers skip more. Changing it adds a sort order: files already written keep theirs. Unsorted by default, because sorting about doubles the work of a row.',
  parse: parseSortBy,
  format: formatSortBy,
};

const systemColumns: Setting<readonly SystemColumn[]> = {
  type: 'list',
  default: SYSTEM_COLUMNS.filter((column) => column !== 'topic'),
  valid: SYSTEM_COLUMNS.join(', '),
  doc: 'Which _kafka_* columns follow the value’s. All but topic by default: they tell where a row came from and cost little once compressed. A table that topics share has _kafka_topic always. What is added later is null in older rows; what is taken out stays as a column.',
  parse(value) {
    const words = value
      .replaceAll(/[[\]]/g, '')
      .split(',')
      .map((word) => word.trim().replace(/^_kafka_/, ''))
      .filter((word) => word !== '');
    for (const word of words) {
      if (!(SYSTEM_COLUMNS as readonly string[]).includes(word)) {
        throw new FloeError('invalid', `"${word}" is no system column`);
      }
    }
    return SYSTEM_COLUMNS.filter((column) => words.includes(column));
  },
  format: (value) => value.join(','),
};

export const configs = {
  'table.topic.partition.by': partitionBy,
  'table.topic.sort.by': sortBy,
  'table.topic.system.columns': systemColumns,
  'table.topic.format.version': int({
    default: 2,
    min: 2,
    max: 3,
    doc: 'Iceberg format version of the table. Raising it upgrades the table; it can’t go back. 2, because not every engine reads 3.',
  }),
  'table.topic.max.partitions.per.commit': int({
    default: 1_000,
    min: 1,
    max: 100_000,
    doc: 'Partitions one commit may write to. Bounds the files that a wild clock or key can open; what is past it goes into the next commit.',
  }),
} as const satisfies Settings;

/** `table.topic.properties.X = Y` sets property X of the table. */
export const PROPERTY_PREFIX = 'table.topic.properties.';

/**
 * The value of one property of the table, by the full name of its config.
 * @throws FloeError `invalid` for Floe's own, `unsupported` for another file format.
 */
export function checkProperty(name: string, value: string): string {
  const property = name.slice(PROPERTY_PREFIX.length);
  if (property === '' || property.startsWith('floe.')) {
    throw new FloeError('invalid', `${name}: properties of the table under "floe." are Floe’s own`);
  }
  if (property === 'write.format.default' && value !== 'parquet') {
    throw new FloeError('unsupported', `${name}: Floe writes parquet`);
  }
  if (property === 'format-version') {
    throw new FloeError('invalid', `${name}: set table.topic.format.version`);
  }
  try {
    checkLayoutProperty(property, value);
  } catch (caught) {
    throw new FloeError('invalid', `${name}: ${FloeError.from(caught).message}`, { cause: caught });
  }
  return value;
}
