// The tail of a table: rows of records that the log has and a snapshot hasn't, decoded as a commit would (rule K6).
// Committed offsets are the snapshot's own, so that snapshot and tail hold each record exactly once. Of an upsert table
// the tail also says which committed rows it replaces or deletes, and which of its own rows are older than those.
// Bounded: past `maxBytes` of the log the rest is left out, from the end of each partition.
// Not for: how a query joins the two (queries/).
import { errorFromShape, FloeError } from '../base/error.ts';
import type { IdSource } from '../base/prng.ts';
import { currentSchema } from '../formats/iceberg/history.ts';
import type { DataFile, TableMetadata } from '../formats/iceberg/types.ts';
import type { Log } from '../storage/log/log.ts';
import type { JobConfig, JobNeeds, JobResult, JobRunner, JobSlice, JobTable } from './job.ts';
import type { TableSettings } from './settings/index.ts';
import type { KeyIndexes, LookedUp, LookupRequest } from './upsert/key-index.ts';
import { decodeSidecar, partialFiles } from './upsert/sidecar.ts';
import { slim } from './upsert/table-upserts.ts';
import { readBack } from './watermark.ts';

export interface TailDeps {
  readonly log: Log;
  readonly runner: JobRunner;
  readonly keys: KeyIndexes;
  readonly ids: IdSource;
  readonly settings: Pick<
    TableSettings,
    'table.job.bytes' | 'table.batch.max.bytes' | 'table.tail.max.bytes'
  >;
}

export interface TailRequest {
  readonly topic: string;
  readonly topicId: string;
  /** Ids by partition index. */
  readonly partitions: readonly number[];
  /** Indexes of partitions that nothing is read of: committed rows are all that a query sees of them. */
  readonly quarantined: ReadonlySet<number>;
  /** Where a partition starts that the snapshot says nothing of. */
  readonly startOf: (partition: number) => number | undefined;
  readonly table: JobTable;
  readonly config: JobConfig;
  /** Of the snapshot that is being queried. */
  readonly metadata: TableMetadata;
  /**
   * Of a table that isn't coordinated in this process: binds what records need and the table has; the table as it is
   * then, undefined when nothing more can be had.
   */
  readonly bind?: (needs: JobNeeds) => Promise<JobTable | undefined>;
  /** Likewise: nobody else brings this node's key index to the snapshot. Committed changes whose order it lacks. */
  readonly history?: () => Promise<readonly Uint8Array[]>;
}

export interface TableTail {
  /** Parquet files in the snapshot's current schema. */
  readonly files: readonly { readonly file: DataFile; readonly bytes: Uint8Array }[];
  /** Positions that don't count, by path of a data file or of one of `files`. */
  readonly gone: ReadonlyMap<string, Float64Array>;
}

/** `behind`: the snapshot or the index has just moved; ask again with the table loaded anew. */
export type TailAnswer = TableTail | 'behind';

/** Arrow bytes at which a job ends. */
const MAX_COLUMN_BYTES = 96 * 2 ** 20;

/** @throws FloeError as reads do. */
export async function readTail(deps: TailDeps, request: TailRequest): Promise<TailAnswer> {
  const { metadata, table } = request;
  // Columns that came meanwhile: the table is loaded anew, or its tail has to wait for the job's schema.
  if (currentSchema(metadata)['schema-id'] !== table.schema['schema-id']) return 'behind';
  const back = readBack(metadata);
  const offsets = back.kind === 'at' ? back.watermark.topics.get(request.topicId) : undefined;
  const files: { readonly file: DataFile; readonly bytes: Uint8Array }[] = [];
  const sidecars: Uint8Array[] = [];
  const ends = new Map<number, number>();
  const { settings } = deps;
  let left = settings['table.tail.max.bytes'];
  for (;;) {
    const wanted = request.partitions.flatMap((id, partition) => {
      if (request.quarantined.has(partition)) return [];
      const at = ends.get(partition) ?? offsets?.get(partition) ?? request.startOf(partition);
      const end = deps.log.watermarks(id)?.lastStableOffset ?? 0;
      return at === undefined || at >= end ? [] : [{ partition, id, at }];
    });
    if (wanted.length === 0 || left <= 0) break;
    const part = await readPart(deps, request, {
      wanted,
      maxBytes: Math.min(left, settings['table.job.bytes']),
    });
    if (part.bytes === 0 || part.ends.length === 0) break;
    left -= part.bytes;
    files.push(...part.files);
    if (part.sidecar !== undefined) sidecars.push(part.sidecar);
    for (const [partition, end] of part.ends) ends.set(partition, end);
  }
  if (table.upsert === undefined || sidecars.length === 0) return { files, gone: new Map() };
  const waiting = new Set(
    sidecars.flatMap((bytes) => partialFiles(decodeSidecar(bytes, 'of a tail'))),
  );
  const found = await lookup(deps, request, {
    metadata: slim(metadata),
    upsert: table.upsert,
    commitId: back.kind === 'at' ? back.watermark.commitId : '',
    files: files.map(({ file }) => file),
    sidecars,
    partial: new Map(
      files.flatMap(({ file, bytes }) =>
        waiting.has(file.filePath) ? [[file.filePath, bytes] as const] : [],
      ),
    ),
    prefix: `tail-${deps.ids.uuid()}`,
  });
  return found === undefined ? 'behind' : { files: [...files, ...found.files], gone: found.gone };
}

async function lookup(
  { keys }: TailDeps,
  { history }: TailRequest,
  request: LookupRequest,
): Promise<LookedUp | undefined> {
  const follow = history === undefined ? {} : { follow: {} };
  let found = await keys.lookup({ ...request, ...follow });
  if (found !== undefined && 'kind' in found) {
    found = await keys.lookup({ ...request, follow: { history: await history!() } });
  }
  return found === undefined || 'kind' in found ? undefined : found;
}

interface Wanted {
  readonly partition: number;
  readonly id: number;
  readonly at: number;
}

async function readPart(
  deps: TailDeps,
  request: TailRequest,
  { wanted, maxBytes }: { readonly wanted: readonly Wanted[]; readonly maxBytes: number },
) {
  const { log } = deps;
  const { topic, table } = request;
  const read = await log.read({
    partitions: wanted.map(({ id, at }) => ({ partitionId: id, offset: at, maxBytes })),
    maxBytes,
    isolation: 'read_committed',
    purpose: 'table',
  });
  try {
    const slices: JobSlice[] = [];
    let bytes = 0;
    for (const [n, found] of read.partitions.entries()) {
      const { partition, id, at } = wanted[n]!;
      if (found.errorCode !== 0)
        throw new FloeError('unavailable', `partition ${partition} of ${topic} can't be read now`);
      if (found.runs.length === 0) continue;
      bytes += found.bytes;
      const limit = found.lastStableOffset;
      slices.push({
        partition,
        start: at,
        limit,
        deadLettersFrom: limit,
        runs: found.runs.map(({ baseOffset, bytes: run, patched }) => ({
          baseOffset,
          bytes: run,
          patched,
        })),
        aborted: found.abortedTransactions,
        ...(table.upsert === undefined ? {} : { commits: await log.commitSteps(id, at, limit) }),
      });
    }
    if (slices.length === 0) return NOTHING;
    const result = await decode(deps, request, slices);
    if (result.kind === 'failed') throw errorFromShape(result.error);
    if (result.kind !== 'inline') return NOTHING;
    const ends = result.ranges.map(({ partition, end }) => [partition, end] as const);
    return { bytes, ends, files: result.files, sidecar: result.sidecar };
  } finally {
    read.release();
  }
}

/** Binds what the records need first, where that is to be done; what is lacking then is left out. */
async function decode(
  { runner, ids, settings }: TailDeps,
  { topic, config, bind, ...request }: TailRequest,
  slices: readonly JobSlice[],
): Promise<JobResult> {
  let { table } = request;
  for (let round = 1; ; round += 1) {
    const final = bind === undefined || round > MAX_ROUNDS;
    const job = {
      jobId: ids.uuid(),
      topic,
      slices,
      // Dead letters are the commit's business.
      config: { ...config, 'table.topic.errors.tolerance': 'skip' as const },
      table,
      inline: true,
      nowMs: 0,
      maxBatchBytes: settings['table.batch.max.bytes'],
      maxLetterBytes: 0,
      maxColumnBytes: MAX_COLUMN_BYTES,
    };
    const result = await runner.run({ ...job, final });
    if (result.kind !== 'needs' || final) return result;
    const bound = await bind(result);
    if (bound === undefined) return runner.run({ ...job, final: true });
    table = bound;
  }
}

/** Rounds of binding and decoding again; each brings what the one before lacked. */
const MAX_ROUNDS = 16;

const NOTHING = { bytes: 0, ends: [], files: [], sidecar: undefined };
