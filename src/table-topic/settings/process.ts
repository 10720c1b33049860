// Settings of the table work of a whole process. Not for: what one topic asks of its table (the other themes).
import { bool, int, long, type Settings, type Values } from '../../base/settings.ts';

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
  'table.tail.max.bytes': long({
    default: 64 * 2 ** 20,
    min: 0,
    doc: 'Bytes of the log past a snapshot that one query decodes to answer with rows that are not committed yet; 0: queries see what is committed.',
  }),
  'table.lanes.poll.ms': long({
    default: 200,
    min: 10,
    max: 10_000,
    doc: 'In a cluster: how often nodes look at what a table’s coordinator ordered, or its lanes asked for, while records wait; a tenth as often while none do.',
  }),
  'table.lanes.wait.ms': long({
    default: 2_000,
    min: 0,
    max: 60_000,
    doc: 'In a cluster: how long a commit waits for other nodes to stage their partitions. What they stage later is in the next one.',
  }),
  'table.keys.checkpoint.ms': long({
    default: 600_000,
    min: 1_000,
    doc: 'How often the key index of an upsert table that is committed to is written to the object store, from where another node starts.',
  }),
  'table.maintenance.enable': bool({
    default: true,
    doc: 'Compact tables, expire their snapshots and remove orphans in the background. Off: only by command.',
  }),
  'table.compact.threads': int({
    default: 1,
    min: 1,
    max: 64,
    doc: 'Tables maintained at the same time, each on a thread of its own, which runs at low priority (Linux).',
  }),
  'table.compact.bytes.per.second': long({
    default: 64 * 2 ** 20,
    min: 0,
    doc: 'Bytes of data files that maintenance rewrites a second and thread, on average; 0: no limit. Keeps disk and store for commits and readers.',
  }),
  'table.compact.memory.bytes': long({
    default: 256 * 2 ** 20,
    min: 4 * 2 ** 20,
    doc: 'Column buffers of one rewrite, about. Sorted tables are sorted this much at a time, others take a quarter per row group; the file being written comes on top.',
  }),
  'table.compact.commit.attempts': int({
    default: 20,
    min: 1,
    doc: 'Commits of one rewrite that may lose against other writers before it is given up.',
  }),
} as const satisfies Settings;

export type TableSettings = Values<typeof tableSettings>;
