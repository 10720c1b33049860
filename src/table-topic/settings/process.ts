// Settings of the table work of a whole process. Not for: what one topic asks of its table (the other themes).
import { int, long, type Settings, type Values } from '../../base/settings.ts';

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
