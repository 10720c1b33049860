// Reads committed changes once more from the log, keys and stamps only, for an index that lost their order (history.ts).
// Only what lies above the floor: in a table whose partitions are committed alike that is little or nothing.
import { errorFromShape, FloeError } from '../../base/error.ts';
import type { Log } from '../../storage/log/log.ts';
import type { JobConfig, JobRunner, JobSlice, JobTable } from '../job.ts';
import type { TableSettings } from '../settings/index.ts';
import type { Offsets } from '../watermark.ts';

export interface HistoryDeps {
  readonly log: Log;
  readonly runner: JobRunner;
  readonly settings: Pick<TableSettings, 'table.job.bytes' | 'table.batch.max.bytes'>;
}

export interface HistoryRequest {
  readonly topic: string;
  /** Ids by partition index. */
  readonly partitions: readonly number[];
  /** Next offset to commit, by partition index: the end of what is read. */
  readonly offsets: Offsets;
  /** Commits of the log up to this one don't matter. */
  readonly floor: number;
  readonly table: JobTable;
  readonly config: JobConfig;
}

/** Arrow bytes at which a job ends: nothing is kept of them. */
const MAX_COLUMN_BYTES = 96 * 2 ** 20;

/** Sidecars of the ranges. @throws FloeError as reads do. */
export async function readHistory(
  deps: HistoryDeps,
  request: HistoryRequest,
): Promise<Uint8Array[]> {
  const sidecars: Uint8Array[] = [];
  for (const [partition, id] of request.partitions.entries()) {
    const end = request.offsets.get(partition) ?? 0;
    for (let at = await startOf(deps.log, { id, end, floor: request.floor }); at < end; ) {
      const part = await readPart(deps, request, { partition, id, at, end });
      if (part.sidecar !== undefined) sidecars.push(part.sidecar);
      if (part.end <= at) break;
      at = part.end;
    }
  }
  return sidecars;
}

/** First offset of a commit above the floor, or `end`. */
async function startOf(
  log: Log,
  { id, end, floor }: { readonly id: number; readonly end: number; readonly floor: number },
): Promise<number> {
  const start = log.watermarks(id)?.logStartOffset ?? end;
  if (start >= end) return end;
  const { offsets, commits } = await log.commitSteps(id, start, end);
  const first = commits.findIndex((commit) => commit > floor);
  return first === -1 ? end : Math.max(start, offsets[first]!);
}

interface Part {
  readonly partition: number;
  readonly id: number;
  readonly at: number;
  readonly end: number;
}

async function readPart(
  { log, runner, settings }: HistoryDeps,
  { topic, table, config }: HistoryRequest,
  { partition, id, at, end }: Part,
): Promise<{ readonly end: number; readonly sidecar: Uint8Array | undefined }> {
  const read = await log.read({
    partitions: [{ partitionId: id, offset: at, maxBytes: settings['table.job.bytes'] }],
    maxBytes: settings['table.job.bytes'],
    isolation: 'read_committed',
    purpose: 'table',
  });
  try {
    const [found] = read.partitions;
    if (found === undefined || found.errorCode !== 0) {
      throw new FloeError('unavailable', `reading partition ${partition} of ${topic} again failed`);
    }
    if (found.runs.length === 0) return { end: at, sidecar: undefined };
    const slice: JobSlice = {
      partition,
      start: at,
      limit: end,
      deadLettersFrom: end,
      runs: found.runs.map(({ baseOffset, bytes, patched }) => ({ baseOffset, bytes, patched })),
      aborted: found.abortedTransactions,
      commits: await log.commitSteps(id, at, end),
    };
    const result = await runner.run({
      jobId: 'history',
      topic,
      slices: [slice],
      // What was no row then is none now, whatever the policy was.
      config: { ...config, 'table.topic.errors.tolerance': 'skip' },
      table,
      final: true,
      keysOnly: true,
      nowMs: 0,
      maxBatchBytes: settings['table.batch.max.bytes'],
      maxLetterBytes: 0,
      maxColumnBytes: MAX_COLUMN_BYTES,
    });
    if (result.kind === 'failed') throw errorFromShape(result.error);
    if (result.kind !== 'keys') return { end, sidecar: undefined };
    return { end: result.end, sidecar: result.sidecar };
  } finally {
    read.release();
  }
}
