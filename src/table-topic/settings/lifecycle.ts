// Configs of a table topic's life: enabling, where it starts, whose table it may take, how often it commits,
// and what retention leaves in place for it. Not for: the table's name (naming.ts).
import { FloeError } from '../../base/error.ts';
import { bool, long, oneOf, type Setting, type Settings } from '../../base/settings.ts';
import { type ColumnPath, formatPath, parseColumns } from '../column-list.ts';

/** Where an enabled topic starts: its first record, its end, or the first record at or after a time. */
export type Backfill = 'earliest' | 'latest' | { readonly timestampMs: number };

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

const ttlColumn: Setting<ColumnPath> = {
  type: 'string',
  default: ['_kafka_timestamp'],
  doc: 'The date or timestamp column that table.topic.row.ttl.ms goes by; nested ones by a.b.',
  parse(value) {
    const [column, ...more] = parseColumns(value);
    if (column !== undefined && more.length === 0) return column;
    throw new FloeError('invalid', `"${value}" is not one column`);
  },
  format: formatPath,
};

export const configs = {
  'table.topic.enable': bool({
    default: false,
    aliases: ['automq.table.topic.enable'],
    doc: 'Makes the topic a table. May be turned on at any time: records still in the topic are backfilled.',
  }),
  'table.topic.adopt': bool({
    default: false,
    doc: 'Take over an existing table of that name. Off, because writing into a stranger’s table is rarely meant.',
  }),
  'table.topic.recreated': oneOf(['suspend', 'append', 'replace'], {
    default: 'suspend',
    doc: 'What to do when the table was filled by a deleted topic of the same name: suspend until told, append the new topic’s records, or replace the table (the old one is dropped from the catalog, its files stay).',
  }),
  'table.topic.moved': oneOf(['rename', 'continue', 'restart'], {
    default: 'rename',
    doc: 'What to do when table.topic.namespace or .name names another table than before: rename the table in the catalog, its rows and history with it; leave it and continue in a new table with what comes after; or leave it and restart, filling the new table by table.topic.backfill.',
  }),
  'table.topic.dropped': oneOf(['suspend', 'restart'], {
    default: 'suspend',
    doc: 'What to do when somebody dropped or replaced the table: suspend until told (floe tables resume), or restart: make a new one and fill it by table.topic.backfill. A table that took its place is taken over only with table.topic.adopt.',
  }),
  'table.topic.deleted': oneOf(['keep', 'drop', 'purge'], {
    default: 'keep',
    doc: 'What becomes of the table, and of its dead letters, when the topic is deleted: keep them, drop them from the catalog and leave the files, or purge the files too. A table that other topics share is kept. Rows that were not committed yet are lost with the topic.',
  }),
  'table.topic.row.ttl.ms': long({
    default: 0,
    min: 0,
    doc: 'How long rows stay, by table.topic.row.ttl.column; 0: for ever. Looked at a few times within that time, at least hourly: data files all of whose rows are past it leave, the rows of others are deleted in place. Partition or sort by the time column to keep that cheap. Rows without a time stay.',
  }),
  'table.topic.row.ttl.column': ttlColumn,
  'table.topic.backfill': backfill,
  'table.topic.commit.interval.ms': long({
    default: 10_000,
    min: 100,
    max: 900_000,
    aliases: ['automq.table.topic.commit.interval.ms'],
    doc: 'Longest time from a record’s commit to its row being visible, give or take the commit itself. 10 s keeps metadata and file counts small.',
  }),
  'table.topic.retention.hold.bytes': long({
    default: 10 * 2 ** 30,
    min: 0,
    doc: 'How many bytes retention leaves in place for a table that lags; past that, records are deleted uncommitted and the gap is counted.',
  }),
} as const satisfies Settings;

/** True when the topic is (to be) a table; false also for values that don't parse. */
export function isEnabled(config: Readonly<Record<string, string>>): boolean {
  const value = config['table.topic.enable'] ?? config['automq.table.topic.enable'] ?? 'false';
  return value.trim().toLowerCase() === 'true';
}
