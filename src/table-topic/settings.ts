// Every `table.topic.*` config a topic may carry, and the settings of the table work of a whole process.
// The definitions are the documentation: docs, defaults, syntax. What is understood but not served yet is
// listed with its reason, so that an unknown or unserved config is refused at once instead of being ignored.
// Not for: checks that need other topics or a schema (validate.ts).
import { FloeError } from '../base/error.ts';
import {
  bool,
  findSetting,
  int,
  long,
  oneOf,
  parseSetting,
  type Setting,
  type Settings,
  text,
  type Values,
} from '../base/settings.ts';
import { formatPartitionBy, type PartitionExpression, parsePartitionBy } from './column-list.ts';

export const SYSTEM_COLUMNS = ['partition', 'offset', 'timestamp', 'key', 'headers'] as const;
export type SystemColumn = (typeof SYSTEM_COLUMNS)[number];

/** Where an enabled topic starts: its first record, its end, or the first record at or after a time. */
export type Backfill = 'earliest' | 'latest' | { readonly timestampMs: number };

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

const backfill: Setting<Backfill> = {
  type: 'string',
  default: 'earliest',
  valid: 'earliest, latest, milliseconds since the epoch, or an ISO 8601 time',
  doc: 'Where a newly enabled topic starts. earliest, because a table without the records that are still there surprises.',
  parse: parseBackfill,
  format: (value) => (typeof value === 'string' ? value : String(value.timestampMs)),
};

function parseBackfill(value: string): Backfill {
  const word = value.trim();
  if (word === 'earliest' || word === 'latest') return word;
  if (/^\d{1,15}$/.test(word)) return { timestampMs: Number(word) };
  const iso = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,3})\d*)?)?Z$/.exec(word);
  if (iso === null) {
    throw new FloeError(
      'invalid',
      `"${value}" is not earliest, latest, milliseconds, or a UTC time like 2026-01-31T00:00:00Z`,
    );
  }
  const [, y, mo, d, h, mi, s = '0', ms = '0'] = iso;
  return { timestampMs: utcMs([y, mo, d, h, mi, s].map(Number), Number(ms.padEnd(3, '0'))) };
}

/** Days-from-civil by Howard Hinnant's algorithm: a Date would be hidden time by our lint. */
function utcMs(parts: readonly number[], milliseconds: number): number {
  const [year, month, day, hour, minute, second] = parts as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const shifted = month <= 2 ? year - 1 : year;
  const era = Math.floor(shifted / 400);
  const yearOfEra = shifted - era * 400;
  const dayOfYear = Math.floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1;
  const dayOfEra =
    yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  const days = era * 146_097 + dayOfEra - 719_468;
  return (((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000 + milliseconds;
}

const systemColumns: Setting<readonly SystemColumn[]> = {
  type: 'list',
  default: SYSTEM_COLUMNS,
  valid: SYSTEM_COLUMNS.join(', '),
  doc: 'Which _kafka_* columns follow the value’s. All by default: they tell where a row came from and cost little once compressed. Read when the table is created.',
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

/** Topic configs that are served, by full name. */
export const topicConfigs = {
  'table.topic.enable': bool({
    default: false,
    aliases: ['automq.table.topic.enable'],
    doc: 'Makes the topic a table. May be turned on at any time: records still in the topic are backfilled.',
  }),
  'table.topic.namespace': text({
    default: 'kafka',
    aliases: ['automq.table.topic.namespace'],
    pattern: /^[A-Za-z0-9_]{1,128}(\.[A-Za-z0-9_]{1,128}){0,7}$/,
    wanted: 'a namespace: letters, digits and _, levels parted by dots',
    doc: 'Namespace of the table; created when missing.',
  }),
  'table.topic.name': text({
    default: '',
    pattern: /^[A-Za-z0-9_]{0,255}$/,
    wanted: 'a table name: letters, digits and _',
    doc: 'Name of the table. Empty: the topic’s, every other character than letters, digits and _ becoming _. A name taken by another topic is refused.',
  }),
  'table.topic.adopt': bool({
    default: false,
    doc: 'Take over an existing table of that name. Off, because writing into a stranger’s table is rarely meant.',
  }),
  'table.topic.recreated': oneOf(['suspend', 'append', 'replace'], {
    default: 'suspend',
    doc: 'What to do when the table was filled by a deleted topic of the same name: suspend until told, append the new topic’s records, or replace the table (the old one is dropped from the catalog, its files stay).',
  }),
  'table.topic.commit.interval.ms': long({
    default: 10_000,
    min: 100,
    max: 900_000,
    aliases: ['automq.table.topic.commit.interval.ms'],
    doc: 'Longest time from a record’s commit to its row being visible, give or take the commit itself. 10 s keeps metadata and file counts small.',
  }),
  'table.topic.convert.value.type': oneOf(['by_schema_id', 'json', 'string', 'raw'], {
    default: 'by_schema_id',
    aliases: ['automq.table.topic.convert.value.type'],
    doc: 'How a value becomes columns: by the schema whose id precedes it (magic byte 0 and four bytes), as JSON whose columns are inferred, as text, or as bytes. Must be chosen unless the subject <topic>-value is registered.',
  }),
  'table.topic.convert.key.type': oneOf(['raw', 'string', 'by_schema_id', 'json'], {
    default: 'raw',
    aliases: ['automq.table.topic.convert.key.type'],
    doc: 'How _kafka_key is stored: bytes, text, by schema id as columns of a struct, or checked JSON text.',
  }),
  'table.topic.transform.value.type': oneOf(['flatten', 'none'], {
    default: 'flatten',
    aliases: ['automq.table.topic.transform.value.type'],
    doc: 'flatten lifts the fields of a record value to top-level columns; none keeps it whole in _kafka_value. raw and string values are always in _kafka_value.',
  }),
  'table.topic.partition.by': partitionBy,
  'table.topic.system.columns': systemColumns,
  'table.topic.errors.tolerance': oneOf(['dlq_table', 'skip', 'none'], {
    default: 'dlq_table',
    doc: 'What happens to a record that can’t be a row: kept with reason and raw bytes in <table>_dlq, counted and skipped, or none: this table is suspended until it is cured.',
  }),
  'table.topic.evolution.incompatible': oneOf(['new_column', 'suspend', 'dlq'], {
    default: 'new_column',
    doc: 'What happens when a field takes a type that Iceberg can’t widen to: a further column <name>__<type>, suspend this table, or such records go the way of errors.tolerance.',
  }),
  'table.topic.backfill': backfill,
  'table.topic.format.version': int({
    default: 2,
    min: 2,
    max: 2,
    doc: 'Iceberg format version of a new table. 2, because not every engine reads 3.',
  }),
  'table.topic.types.time': oneOf(['string', 'long', 'time'], {
    default: 'string',
    doc: 'How a time of day is stored: text HH:MM:SS.ffffff, microseconds as long, or Iceberg time, which makes Spark refuse the whole table.',
  }),
  'table.topic.max.partitions.per.commit': int({
    default: 1_000,
    min: 1,
    max: 100_000,
    doc: 'Partitions one commit may write to. Bounds the files that a wild clock or key can open; what is past it goes into the next commit.',
  }),
  'table.topic.json.max.columns': int({
    default: 1_000,
    min: 1,
    max: 10_000,
    doc: 'Columns that JSON values may create, nested ones counted; further properties land in _rest as JSON text.',
  }),
  'table.topic.json.infer.timestamps': bool({
    default: false,
    doc: 'Take ISO 8601 text for timestamps when inferring. Off: dates stay text, because one odd value later would have no place.',
  }),
  'table.topic.retention.hold.bytes': long({
    default: 10 * 2 ** 30,
    min: 0,
    doc: 'How many bytes retention leaves in place for a table that lags; past that, records are deleted uncommitted and the gap is counted.',
  }),
} as const satisfies Settings;

export type TopicConfigs = Values<typeof topicConfigs>;

/** `table.topic.properties.X = Y` sets property X of the table. */
export const PROPERTY_PREFIX = 'table.topic.properties.';
const PREFIXES = ['table.topic.', 'automq.table.topic.'];

/** Configs that are understood and refused, with the sentence that says why and what to do instead. */
export const unservedConfigs: Readonly<Record<string, string>> = {
  'table.topic.upsert.enable': 'upserts are not served yet: tables are append-only',
  'table.topic.id.columns': 'upserts are not served yet: tables are append-only',
  'table.topic.id.null': 'upserts are not served yet: tables are append-only',
  'table.topic.cdc.field': 'change data capture is not served yet: tables are append-only',
  'table.topic.sort.by': 'sorted files come with table compaction, which is not served yet',
  'table.topic.columns': 'column overrides are not served yet: columns follow the schema',
  'table.topic.types.nanos': 'nanosecond timestamps need format version 3, which is not served yet',
  'table.topic.convert.value.by_latest_schema.subject': 'by_latest_schema is not served yet',
  'table.topic.convert.value.by_latest_schema.message.full.name':
    'by_latest_schema is not served yet',
  'table.topic.convert.key.by_latest_schema.subject': 'by_latest_schema is not served yet',
  'table.topic.convert.key.by_latest_schema.message.full.name':
    'by_latest_schema is not served yet',
  'table.topic.expire.snapshot.enable': 'snapshot expiry by Floe is not served yet',
  'table.topic.expire.snapshot.older.than.hours': 'snapshot expiry by Floe is not served yet',
  'table.topic.expire.snapshot.retain.last': 'snapshot expiry by Floe is not served yet',
  'table.topic.compact.min.input.files': 'table compaction is not served yet',
  'table.topic.compact.target.file.bytes': 'table compaction is not served yet',
  'table.topic.compact.interval.ms': 'table compaction is not served yet',
  'table.topic.catalog.type': 'the embedded catalog is the only one served yet',
  'table.topic.catalog.uri': 'the embedded catalog is the only one served yet',
  'table.topic.schema.registry.url': 'the embedded schema registry is the only one served yet',
  'automq.table.topic.schema.type':
    'it mixes converter and transform: set table.topic.convert.value.type and table.topic.transform.value.type',
  'automq.table.topic.errors.tolerance':
    'its values invalid_data and all mean something else: set table.topic.errors.tolerance to dlq_table, skip or none',
  'automq.table.topic.id.columns': 'upserts are not served yet: tables are append-only',
  'automq.table.topic.upsert.enable': 'upserts are not served yet: tables are append-only',
  'automq.table.topic.cdc.field': 'change data capture is not served yet: tables are append-only',
  'automq.table.topic.expire.snapshot.enabled':
    'it expires within the commit: snapshot expiry by Floe is not served yet',
  'automq.table.topic.expire.snapshot.older.than.hours':
    'snapshot expiry by Floe is not served yet',
  'automq.table.topic.expire.snapshot.retain.last': 'snapshot expiry by Floe is not served yet',
};

/** Values of served configs that are understood and refused. */
const unservedValues: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'table.topic.convert.value.type': {
    by_latest_schema: 'by_latest_schema is not served yet: use by_schema_id, json, string or raw',
  },
  'table.topic.convert.key.type': {
    by_latest_schema: 'by_latest_schema is not served yet: use raw, string, by_schema_id or json',
  },
  'table.topic.transform.value.type': {
    flatten_debezium: 'flatten_debezium is not served yet: use flatten or none',
  },
  'table.topic.errors.tolerance': {
    dlq_topic: 'dlq_topic is not served yet: use dlq_table, skip or none',
  },
  'table.topic.format.version': {
    '3': 'format version 3 is not served yet: use 2',
  },
};

/** True for every config name that belongs to table topics, served or not. */
export function isTableTopicConfig(name: string): boolean {
  return PREFIXES.some((prefix) => name.startsWith(prefix));
}

/**
 * The proper name and canonical value of one config of a topic.
 * @throws FloeError `invalid` (unknown name, bad value), `unsupported` (understood, not served).
 */
export function parseTopicConfig(name: string, value: string): { name: string; value: string } {
  const unserved = unservedConfigs[name];
  if (unserved !== undefined) {
    // Turning off what isn't there is no request for it.
    if (value.trim() === 'false') return { name, value: 'false' };
    throw new FloeError('unsupported', `${name}: ${unserved}`);
  }
  if (name.startsWith(PROPERTY_PREFIX)) return { name, value: checkProperty(name, value) };
  const found = findSetting(topicConfigs, name);
  if (found === undefined) {
    throw new FloeError(
      'invalid',
      `unknown topic config "${name}": see docs/settings.md for those of table topics`,
    );
  }
  const [proper, setting] = found;
  const refused = unservedValues[proper]?.[value.trim()];
  if (refused !== undefined) throw new FloeError('unsupported', `${name}: ${refused}`);
  return { name: proper, value: setting.format(parseSetting(name, setting, value)) };
}

function checkProperty(name: string, value: string): string {
  const property = name.slice(PROPERTY_PREFIX.length);
  if (property === '' || property.startsWith('floe.')) {
    throw new FloeError('invalid', `${name}: properties of the table under "floe." are Floe’s own`);
  }
  if (property === 'write.format.default' && value !== 'parquet') {
    throw new FloeError('unsupported', `${name}: Floe writes parquet`);
  }
  return value;
}

/**
 * What a topic's config asks of its table; other configs of the topic are passed over.
 * @throws FloeError `invalid`, `unsupported`.
 */
export function resolveTopicConfigs(
  config: Readonly<Record<string, string>>,
): TopicConfigs & { readonly properties: Readonly<Record<string, string>> } {
  const values: Record<string, unknown> = {};
  const properties: Record<string, string> = {};
  for (const [name, setting] of Object.entries(topicConfigs)) values[name] = setting.default;
  for (const [given, value] of Object.entries(config)) {
    if (!isTableTopicConfig(given)) continue;
    const { name } = parseTopicConfig(given, value);
    if (name.startsWith(PROPERTY_PREFIX)) properties[name.slice(PROPERTY_PREFIX.length)] = value;
    else if (Object.hasOwn(topicConfigs, name)) {
      values[name] = (topicConfigs as Settings)[name]!.parse(value);
    }
  }
  return { ...(values as TopicConfigs), properties };
}

/** The table a topic's config names. */
export function tableIdentifier(
  topicName: string,
  config: Pick<TopicConfigs, 'table.topic.namespace' | 'table.topic.name'>,
): { readonly namespace: readonly string[]; readonly name: string } {
  const configured = config['table.topic.name'];
  return {
    namespace: config['table.topic.namespace'].split('.'),
    name: configured === '' ? topicName.replaceAll(/[^A-Za-z0-9_]/g, '_') : configured,
  };
}

/** True when the topic is (to be) a table; false also for values that don't parse. */
export function isEnabled(config: Readonly<Record<string, string>>): boolean {
  const value = config['table.topic.enable'] ?? config['automq.table.topic.enable'] ?? 'false';
  return value.trim().toLowerCase() === 'true';
}

/** Settings of the process's table work. */
export const tableSettings = {
  'table.threads': int({
    default: 0,
    min: 0,
    max: 256,
    doc: 'Worker threads that turn records into Parquet. 0: one less than the cores, but two on two cores: a burst then ends a second sooner.',
  }),
  'table.job.bytes': long({
    default: 8 * 2 ** 20,
    min: 64 * 2 ** 10,
    max: 256 * 2 ** 20,
    doc: 'Log bytes one worker job takes at most; with the Arrow buffers built from them it bounds a worker’s memory (about 6 × this).',
  }),
  'table.job.start.bytes': long({
    default: 4 * 2 ** 20,
    min: 1,
    doc: 'A job starts before the commit interval ends once this many log bytes wait, so that little is left to do at its end.',
  }),
  'table.batch.max.bytes': long({
    default: 128 * 2 ** 20,
    min: 2 ** 20,
    doc: 'Largest decompressed size of one record batch; a batch that grows past it is a dead letter.',
  }),
  'table.retry.first.ms': long({
    default: 200,
    min: 1,
    doc: 'First delay before a table in trouble tries again; doubles up to table.retry.max.ms.',
  }),
  'table.retry.max.ms': long({
    default: 30_000,
    min: 1,
    doc: 'Longest delay before a table in trouble tries again.',
  }),
  'table.commit.attempts': int({
    default: 10,
    min: 1,
    doc: 'Attempts of one commit, each derived afresh from the table, before the table is suspended for a while.',
  }),
  'table.staged.max.bytes': long({
    default: 2 * 2 ** 30,
    min: 2 ** 20,
    doc: 'Bytes of staged, uncommitted data files of one table; past it reading waits for commits.',
  }),
  'table.stop.commit.ms': long({
    default: 3_000,
    min: 0,
    doc: 'How long a stopping process goes on committing; what is not committed stays staged for the next start.',
  }),
  'table.sweep.age.ms': long({
    default: 600_000,
    min: 1_000,
    doc: 'Age after which files of abandoned jobs are deleted.',
  }),
} as const satisfies Settings;

export type TableSettings = Values<typeof tableSettings>;
