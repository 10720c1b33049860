// Tries the dead letters of a table again, from the log: those that are rows by now enter it, each exactly once. Which
// records are letters is known by their coordinates (metadata, letters); a commit that turns some into rows is noted
// before it is sent, and they are letters no more once the table has it. The watermark stays where it is.
// Not for: what lies in <table>_dlq or the topic of dead letters, which stays as a history.

import { assert } from '../../base/assert.ts';
import type { Clock } from '../../base/clock.ts';
import { errorFromShape, FloeError, isFloeError } from '../../base/error.ts';
import type { IdSource } from '../../base/prng.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import type { Warehouse } from '../../catalog/index.ts';
import { newSnapshotId, prepareCommit } from '../../formats/iceberg/index.ts';
import type { TableMetadata } from '../../formats/iceberg/types.ts';
import { quarantinedPartitions } from '../../metadata/quarantine.ts';
import type { Replay, StagedLetters, TablesMetadata } from '../../metadata/tables.ts';
import type { Topic } from '../../metadata/topics.ts';
import type { TableBinding } from '../binding.ts';
import type { JobSlice, JobStaged, TableJob } from '../job.ts';
import { resolveTopicConfigs } from '../settings/index.ts';
import { trouble } from '../trouble.ts';
import {
  assertedMain,
  COMMIT_ID_SUMMARY,
  EPOCH_SUMMARY,
  formatWatermark,
  holdsCommit,
  movedPastAsserted,
  parseWatermark,
  RANGES_SUMMARY,
  WATERMARK_PROPERTY,
  WATERMARK_TAG,
} from '../watermark.ts';
import { ReplayUpserts, type ReplayUpsertsDeps } from './replay-upserts.ts';

/** Letters looked at in one round. */
const ROUND_LETTERS = 10_000;
/** Bytes of the log that one round reads. */
const ROUND_BYTES = 32 * 2 ** 20;
const MAX_NEEDS = 16;
const MAX_COLUMN_BYTES = 96 * 2 ** 20;
const ATTEMPTS = 10;

export interface ReplayDeps extends ReplayUpsertsDeps {
  readonly catalog: Catalog;
  readonly warehouse: Warehouse;
  readonly tables: TablesMetadata;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly jobsUnderWay: Set<string>;
}

export interface ReplayTable {
  readonly topic: Topic;
  readonly epoch: number;
  readonly binding: TableBinding;
  /** Letters of what isn't committed yet wait: their range may still be read again. */
  readonly committedEnd: (partition: number) => number;
}

export interface Replayed {
  /** Letters that are rows now. */
  readonly rows: number;
  /** Tried, and still no rows. */
  readonly letters: number;
  /** The log has their records no more. */
  readonly gone: number;
}

/** All letters of the table, once each. @throws FloeError; what was done until then stays done. */
export async function replayLetters(deps: ReplayDeps, table: ReplayTable): Promise<Replayed> {
  const waiting = await settleReplays(deps, table);
  const { tables, log } = deps;
  const { topicId, partitions } = table.topic;
  let [rows, letters, gone] = [0, 0, 0];
  const oldest = new Map<number, number>();
  const starts = new Map<number, number>();
  const quarantined = quarantinedPartitions(table.topic);
  for (const { partition } of await tables.openLetters(topicId)) {
    const marks = log.watermarks(partitions[partition]!);
    // Letters of a quarantined partition stay letters until it is read again.
    if (marks === undefined || quarantined.has(partition)) continue;
    const from = marks.logStartOffset;
    gone += await tables.pruneLetters(topicId, partition, from);
    starts.set(partition, from);
    const range = { partition, from, to: table.committedEnd(partition) };
    const [first] = await tables.letters(topicId, range, 1);
    if (first !== undefined) oldest.set(partition, first);
  }
  const upserts = await ReplayUpserts.begin(deps, table, oldest);
  for (const [partition, start] of starts) {
    for (let from = start; ; ) {
      const range = { partition, from, to: table.committedEnd(partition) };
      const known = await tables.letters(topicId, range, ROUND_LETTERS);
      if (known.length === 0) break;
      const offsets = known.filter((offset) => waiting.get(partition)?.has(offset) !== true);
      if (offsets.length === 0) {
        from = known.at(-1)! + 1;
        continue;
      }
      const round = await replayRound(deps, { ...table, upserts }, { partition, offsets });
      rows += round.rows;
      letters += round.letters;
      from = round.next;
    }
  }
  return { rows, letters, gone };
}

/**
 * Finds out about replays without outcome: the table holds their commit, or `main` has moved past what it asserted, so
 * that it can't come any more (T5). The others may yet arrive: their letters wait.
 * @returns those letters by partition.
 */
export async function settleReplays(
  { tables, catalog }: Pick<ReplayDeps, 'tables' | 'catalog'>,
  { topic, epoch, binding }: Omit<ReplayTable, 'committedEnd'>,
): Promise<ReadonlyMap<number, ReadonlySet<number>>> {
  const waiting = new Map<number, Set<number>>();
  const open = await tables.replays(topic.topicId);
  if (open.length === 0) return waiting;
  const { metadata } = await catalog.loadTable(binding.identifier);
  for (const { commitId, parent, letters } of open) {
    const there = landed(metadata, commitId);
    if (there || movedPastAsserted(metadata, parent)) {
      await tables.endReplay(topic.topicId, epoch, { commitId, landed: there });
      continue;
    }
    for (const { partition, offsets } of letters) {
      const set = waiting.get(partition) ?? new Set();
      for (const offset of offsets) set.add(offset);
      waiting.set(partition, set);
    }
  }
  return waiting;
}

function landed(metadata: TableMetadata, commitId: string): boolean {
  const text = metadata.properties?.[WATERMARK_PROPERTY];
  if (text !== undefined && parseWatermark(text).commitId === commitId) return true;
  return holdsCommit(metadata, commitId);
}

interface Round {
  readonly rows: number;
  readonly letters: number;
  /** Where the next round begins. */
  readonly next: number;
}

/** A replay under way. */
interface Replaying extends ReplayTable {
  /** Of an upsert table. */
  readonly upserts: ReplayUpserts | undefined;
}

async function replayRound(
  deps: ReplayDeps,
  table: Replaying,
  { partition, offsets }: StagedLetters,
): Promise<Round> {
  const [first, last] = [offsets[0]!, offsets.at(-1)!];
  const partitionId = table.topic.partitions[partition]!;
  const read = await deps.log.read({
    partitions: [{ partitionId, offset: first, maxBytes: ROUND_BYTES }],
    maxBytes: ROUND_BYTES,
    isolation: 'read_committed',
    purpose: 'table',
  });
  try {
    const [result] = read.partitions;
    if (result === undefined || result.errorCode !== 0) {
      throw new FloeError('unavailable', `reading partition ${partition}: try again`);
    }
    const slice: JobSlice = {
      partition,
      start: first,
      limit: last + 1,
      deadLettersFrom: 0,
      knownLetters: offsets,
      onlyLetters: true,
      runs: result.runs.map(({ baseOffset, bytes, patched }) => ({ baseOffset, bytes, patched })),
      aborted: result.abortedTransactions,
      ...(table.upserts === undefined
        ? {}
        : { commits: await deps.log.commitSteps(partitionId, first, last + 1) }),
    };
    const { staged, prefix } = await convert(deps, table, slice);
    const end = staged.ranges[0]?.end ?? last + 1;
    const still = new Set(staged.stillLetters?.flatMap((one) => one.offsets));
    const tried = offsets.filter((offset) => offset < end);
    const done = tried.filter((offset) => !still.has(offset));
    if (done.length > 0)
      await enter(deps, table, { staged, prefix, letters: { partition, offsets: done } });
    else await deps.tables.dropIntents([prefix]);
    return { rows: done.length, letters: still.size, next: Math.max(end, first + 1) };
  } finally {
    read.release();
  }
}

interface Converted {
  readonly staged: JobStaged;
  /** How the names of the job's files begin: an intent. */
  readonly prefix: string;
}

/** Runs the job until the table has what its records need. */
async function convert(
  deps: ReplayDeps,
  { topic, binding, upserts }: Replaying,
  slice: JobSlice,
): Promise<Converted> {
  const { runner, ids, clock, settings, tables, jobsUnderWay } = deps;
  const jobId = ids.uuid();
  let final = false;
  for (let round = 0; round < MAX_NEEDS; round += 1) {
    const found = binding.jobTable();
    if (found === undefined) throw new FloeError('unavailable', 'there is no table yet');
    const table = upserts?.jobTable(found) ?? found;
    const prefix = `${table.dataFolder}/${jobId}`;
    const { namespace, name } = binding.identifier;
    const intent = { topicId: topic.topicId, createdMs: clock.now(), namespace, table: name };
    await tables.addIntents([{ ...intent, prefix, parent: null }]);
    const job: TableJob = {
      jobId,
      topic: topic.name,
      slices: [slice],
      // What still is no row stays the letter it is.
      config: { ...resolveTopicConfigs(topic.config), 'table.topic.errors.tolerance': 'skip' },
      final,
      nowMs: clock.now(),
      maxBatchBytes: settings['table.batch.max.bytes'],
      maxColumnBytes: MAX_COLUMN_BYTES,
      maxLetterBytes: MAX_COLUMN_BYTES,
      table,
    };
    jobsUnderWay.add(prefix);
    try {
      const result = await runner.run(job);
      if (result.kind === 'staged') return { staged: result, prefix };
      if (result.kind === 'failed') throw errorFromShape(result.error);
      if (result.kind === 'halted') throw trouble(result.error);
      assert(result.kind === 'needs', 'a job that writes is staged, or needs something');
      final = !(await binding.satisfy(result));
    } finally {
      jobsUnderWay.delete(prefix);
    }
  }
  throw new FloeError('unavailable', 'dead letters need more after every evolution');
}

/** The files into the table, the letters out of the store: by one noted commit, however often it must be sent. */
async function enter(
  deps: ReplayDeps,
  table: Replaying,
  { staged, prefix, letters }: Converted & { readonly letters: StagedLetters },
): Promise<void> {
  const { tables, ids } = deps;
  const { topic, epoch } = table;
  const commitId = ids.uuid();
  // Even without files (records that are no rows by their kind) the letters are done with.
  const replay = { commitId, parent: '', letters: [letters] };
  const changes = staged.data.length > 0 || staged.sidecar !== undefined;
  let leftOut: LeftOut = [];
  if (!changes) await tables.beginReplay(topic.topicId, epoch, replay);
  for (let attempt = 1; changes; attempt += 1) {
    try {
      leftOut = await sendOnce(deps, table, { staged, replay });
      break;
    } catch (caught) {
      const passing = isFloeError(caught, 'conflict', 'timeout', 'unavailable');
      if (!passing || attempt === ATTEMPTS) throw caught;
    }
  }
  await tables.endReplay(topic.topicId, epoch, { commitId, landed: true });
  await settleFiles(deps, table, { staged, prefix, leftOut });
}

/** Data files that the commit didn't take; undefined when an earlier attempt turned out to have landed. */
type LeftOut = readonly string[] | undefined;

/** What served is deleted; what may be in the table or not is left to the sweep, file by file. */
async function settleFiles(
  { tables, warehouse, clock }: ReplayDeps,
  { topic, binding, upserts }: Replaying,
  { staged, prefix, leftOut }: Converted & { readonly leftOut: LeftOut },
): Promise<void> {
  const { sidecar } = staged;
  const spent = [...(leftOut ?? []), ...(sidecar === undefined ? [] : [sidecar.path])];
  if (spent.length > 0) await warehouse.delete(spent);
  if (leftOut === undefined && upserts !== undefined) {
    const { namespace, name: table } = binding.identifier;
    const intent = { topicId: topic.topicId, createdMs: clock.now(), namespace, table, parent: '' };
    await tables.addIntents(staged.data.map(({ filePath }) => ({ ...intent, prefix: filePath })));
  }
  await tables.dropIntents([prefix]);
}

/**
 * Returns when the table has the commit. T4: looked up before every attempt.
 */
async function sendOnce(
  deps: ReplayDeps,
  { topic, epoch, binding, upserts }: Replaying,
  { staged, replay }: { readonly staged: JobStaged; readonly replay: Replay },
): Promise<LeftOut> {
  const { catalog, warehouse, tables, clock, ids } = deps;
  const { commitId } = replay;
  const { metadata } = await catalog.loadTable(binding.identifier);
  if (metadata['table-uuid'] !== binding.table!.metadata['table-uuid']) {
    throw trouble('the table was replaced by another of the same name');
  }
  if (landed(metadata, commitId)) return undefined;
  const text = metadata.properties?.[WATERMARK_PROPERTY];
  if (text === undefined) throw new FloeError('invalid', 'nothing was committed to this table yet');
  const resolved = await upserts?.prepare(metadata, staged, commitId);
  const changes = resolved?.draft.changes;
  const added = changes?.added ?? staged.data;
  const removed = changes?.removed ?? [];
  const kept = new Set(added.map((file) => file.filePath));
  const leftOut = staged.data.map((file) => file.filePath).filter((path) => !kept.has(path));
  if (added.length + removed.length === 0) {
    // All of them were overtaken long ago.
    await tables.beginReplay(topic.topicId, epoch, replay);
    return leftOut;
  }
  const snapshotId = newSnapshotId(ids, metadata);
  const prepared = await prepareCommit({
    metadata,
    io: warehouse,
    snapshotId,
    commitUuid: ids.uuid(),
    nowMs: clock.now(),
    added,
    removed,
    summary: {
      [COMMIT_ID_SUMMARY]: commitId,
      [EPOCH_SUMMARY]: String(epoch),
      [RANGES_SUMMARY]: '',
    },
  });
  const objects = [...(changes?.objects ?? []), ...prepared.objects];
  const paths = objects.map(({ path }) => path);
  const { namespace, name } = binding.identifier;
  const parent = assertedMain(metadata);
  const intent = { topicId: topic.topicId, createdMs: clock.now(), namespace, table: name, parent };
  await tables.addIntents(paths.map((prefix) => ({ ...intent, prefix })));
  for (const { path, bytes } of objects) await warehouse.write(path, bytes);
  const sequenceNumber = prepared.snapshot['sequence-number'] ?? 0;
  const watermark = {
    ...parseWatermark(text),
    commitId,
    epoch,
    topicId: topic.topicId,
    snapshotId,
    sequenceNumber,
  };
  await tables.beginReplay(topic.topicId, epoch, { ...replay, parent });
  const { metadata: after } = await catalog.commitTable(binding.identifier, {
    requirements: prepared.requirements,
    updates: [
      ...prepared.updates,
      {
        action: 'set-snapshot-ref',
        'ref-name': WATERMARK_TAG,
        type: 'tag',
        'snapshot-id': snapshotId,
      },
      { action: 'set-properties', updates: { [WATERMARK_PROPERTY]: formatWatermark(watermark) } },
    ],
  });
  binding.observe(after);
  if (resolved !== undefined) {
    await resolved.upserts.landed(resolved.draft, {
      tableUuid: metadata['table-uuid'],
      commitId,
      snapshotId,
      sequenceNumber,
      offsets: watermark.topics.get(topic.topicId) ?? new Map(),
    });
  }
  await tables.dropIntents(paths);
  return leftOut;
}
