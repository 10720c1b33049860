// Configs of a table's upkeep: compaction, snapshot expiry, orphans.
import { FloeError } from '../../base/error.ts';
import { bool, int, long, type Setting, type Settings } from '../../base/settings.ts';
import type { Refusals } from './theme.ts';

/** A part of the day in minutes from midnight UTC; `to` before `from` spans midnight. */
export interface DailyWindow {
  readonly from: number;
  readonly to: number;
}

const DAY_MINUTES = 1_440;

const pause: Setting<DailyWindow | undefined> = {
  type: 'string',
  default: undefined,
  valid: 'empty, or HH:MM-HH:MM in UTC',
  doc: 'Time of day, UTC, in which Floe rewrites no data files of the table, so that another engine’s rewrite_data_files finds it still. Expiry goes on. Empty: never.',
  parse(value) {
    if (value.trim() === '') return undefined;
    const match = /^\s*(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2})\s*$/.exec(value);
    const minute = (hour: string, minutes: string) => {
      const total = Number(hour) * 60 + Number(minutes);
      if (Number(minutes) > 59 || total > DAY_MINUTES)
        throw new FloeError('invalid', `"${value}" is no time of day`);
      return total % DAY_MINUTES;
    };
    if (match === null) throw new FloeError('invalid', `"${value}" is not HH:MM-HH:MM`);
    const [, fromHour, fromMinute, toHour, toMinute] = match as unknown as string[];
    return { from: minute(fromHour!, fromMinute!), to: minute(toHour!, toMinute!) };
  },
  format: (window) =>
    window === undefined ? '' : `${clockText(window.from)}-${clockText(window.to)}`,
};

const clockText = (minutes: number) =>
  `${String(Math.floor(minutes / 60)).padStart(2, '0')}:${String(minutes % 60).padStart(2, '0')}`;

/** Whether a moment (ms since the epoch) lies in the window. */
export function inWindow(window: DailyWindow | undefined, nowMs: number): boolean {
  if (window === undefined) return false;
  const minute = Math.floor(nowMs / 60_000) % DAY_MINUTES;
  const { from, to } = window;
  return from <= to ? minute >= from && minute < to : minute >= from || minute < to;
}

export const configs = {
  'table.topic.compact.enable': bool({
    default: true,
    doc: 'Rewrite small and much-deleted data files of the table in the background, and its small delete files. Off: leave that to another engine.',
  }),
  'table.topic.compact.min.input.files': int({
    default: 8,
    min: 2,
    max: 10_000,
    doc: 'So many small files of a partition are made into one. Fewer rewrites rows more often, more leaves readers more files.',
  }),
  'table.topic.compact.target.file.bytes': long({
    default: 128 * 2 ** 20,
    min: 64 * 2 ** 10,
    max: 2 ** 30,
    doc: 'Size aimed at. Files of three quarters of it are left alone; one rewrite takes about so many bytes.',
  }),
  'table.topic.compact.interval.ms': long({
    default: 60_000,
    min: 100,
    doc: 'How often the table is looked at. A table that nobody committed to costs one look at the catalog.',
  }),
  'table.topic.compact.delete.percent': int({
    default: 20,
    min: 1,
    max: 100,
    doc: 'A data file with at least this part of its rows deleted is rewritten without them.',
  }),
  'table.topic.compact.pause': pause,
  'table.topic.expire.snapshot.enable': bool({
    default: true,
    doc: 'Remove old snapshots and the files that only they need. Branches and tags of others, and Floe’s newest snapshot, are kept.',
  }),
  'table.topic.expire.snapshot.older.than.hours': int({
    default: 24,
    min: 0,
    max: 1_000_000,
    doc: 'Snapshots older than this are removed. The table property history.expire.max-snapshot-age-ms, and what is set on a branch, go first.',
  }),
  'table.topic.expire.snapshot.retain.last': int({
    default: 1,
    min: 1,
    max: 100_000,
    doc: 'So many of the newest snapshots are kept whatever their age (history.expire.min-snapshots-to-keep goes first).',
  }),
  'table.topic.expire.snapshot.max.count': int({
    default: 1_000,
    min: 1,
    max: 100_000,
    doc: 'Snapshots kept at most, however young: each is in every metadata file. Those that branches and tags need don’t count.',
  }),
  'table.topic.expire.snapshot.interval.ms': long({
    default: 600_000,
    min: 100,
    doc: 'How often snapshots are expired: each time is one commit of metadata alone.',
  }),
  'table.topic.orphan.enable': bool({
    default: false,
    doc: 'Once a day, delete files in the table’s folder that no snapshot and nothing under way names, whoever wrote them. Off, because somebody else may keep files there. Floe’s own left-overs go without it.',
  }),
  'table.topic.orphan.older.than.hours': int({
    default: 72,
    min: 24,
    max: 1_000_000,
    doc: 'Age from which an unknown file counts as an orphan: longer than any commit that may still name it.',
  }),
} as const satisfies Settings;

export const unserved: Refusals = {
  'automq.table.topic.expire.snapshot.enabled':
    'it expires within the commit: set table.topic.expire.snapshot.enable',
  'automq.table.topic.expire.snapshot.older.than.hours':
    'set table.topic.expire.snapshot.older.than.hours',
  'automq.table.topic.expire.snapshot.retain.last': 'set table.topic.expire.snapshot.retain.last',
};
