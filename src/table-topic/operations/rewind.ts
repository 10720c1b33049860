// Sends a table back to earlier offsets of its topic: the rows from there on leave it and are made again from the log,
// each exactly once. One snapshot takes the rows and moves the watermark; what was staged is void (rule T1).
// The store goes back first: a crash before the table followed leaves the table as it was, and its offsets win (T4).
// A tag keeps what was there readable for a day. An upsert table's key index is forgotten with the same commit: the stamps
// of changes that come again would keep them out.
// Not for: a table that somebody else moved (positions.ts).

import type { Clock } from '../../base/clock.ts';
import { FloeError, isFloeError } from '../../base/error.ts';
import type { Logger } from '../../base/log.ts';
import type { IdSource, Prng } from '../../base/prng.ts';
import type { Catalog, LoadedTable, TableIdentifier } from '../../catalog/catalog.ts';
import type { Warehouse } from '../../catalog/index.ts';
import { newSnapshotId, prepareCommit } from '../../formats/iceberg/index.ts';
import type { TablesMetadata } from '../../metadata/tables.ts';
import { retryDelayMs } from '../retry-delay.ts';
import { KEYS_GENERATION_PROPERTY } from '../upsert/keys-generation.ts';
import {
  COMMIT_ID_SUMMARY,
  EPOCH_SUMMARY,
  formatRanges,
  formatWatermark,
  mainSnapshotId,
  NO_SNAPSHOT,
  type Offsets,
  RANGES_SUMMARY,
  readBack,
  WATERMARK_PROPERTY,
  WATERMARK_TAG,
  type Watermark,
} from '../watermark.ts';
import { removalOf } from './row-removal.ts';

/** The tag on the snapshot before a rewind. */
export const BEFORE_TAG = 'floe-before-rewind';
const BEFORE_TAG_MS = 86_400_000;
/** Each is derived afresh: a foreign commit in between costs one. */
const ATTEMPTS = 10;

export interface RewindDeps {
  readonly catalog: Catalog;
  readonly warehouse: Warehouse;
  readonly tables: TablesMetadata;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly prng: Prng;
  readonly logger: Logger;
  readonly settings: {
    readonly 'table.retry.first.ms': number;
    readonly 'table.retry.max.ms': number;
  };
}

export interface RewindRequest {
  readonly identifier: TableIdentifier;
  readonly topicId: string;
  readonly topicName: string;
  readonly epoch: number;
  readonly tableUuid: string;
  /** Offsets to go on from, by partition; those that aren't named, or are ahead of the table, stay where they are. */
  readonly to: Offsets;
  /** An upsert table: its key index begins anew. */
  readonly upserts: boolean;
}

export interface Rewound {
  /** Rows taken out of the table. */
  readonly rows: number;
  /** Where each partition of the topic goes on. */
  readonly offsets: Offsets;
}

/** The rows leave the table and its watermark moves, in one commit. @throws FloeError, and nothing changed. */
export async function rewindTable(deps: RewindDeps, request: RewindRequest): Promise<Rewound> {
  const { clock, catalog } = deps;
  let commitId = '';
  for (let attempt = 1; ; attempt += 1) {
    const table = await catalog.loadTable(request.identifier);
    // T4: a 409 may be one's own earlier, late success.
    const done = commitId !== '' && ownWatermark(table, request).commitId === commitId;
    if (done)
      return { rows: 0, offsets: ownWatermark(table, request).topics.get(request.topicId)! };
    commitId = deps.ids.uuid();
    try {
      return await attemptRewind(deps, request, { table, commitId });
    } catch (caught) {
      if (attempt === ATTEMPTS || !isFloeError(caught, 'conflict', 'timeout', 'unavailable'))
        throw caught;
      await clock.sleep(retryDelayMs(deps, attempt));
    }
  }
}

/** Where each partition that the table has rows of would go on. @throws FloeError, as {@link rewindTable}. */
export async function rewindTarget(
  { catalog }: Pick<RewindDeps, 'catalog'>,
  request: RewindRequest,
): Promise<Offsets> {
  const table = await catalog.loadTable(request.identifier);
  const current = ownWatermark(table, request).topics.get(request.topicId) ?? new Map();
  return new Map([...current, ...earlier(request.to, current)]);
}

const earlier = (to: Offsets, current: Offsets) =>
  [...to].filter(([at, offset]) => offset < (current.get(at) ?? 0));

/** @throws FloeError `invalid` when this isn't the table, or not its history, that Floe wrote. */
function ownWatermark({ metadata }: LoadedTable, { tableUuid }: RewindRequest): Watermark {
  if (tableUuid !== '' && metadata['table-uuid'] !== tableUuid) {
    throw new FloeError('invalid', 'the table was replaced by another: resume with a policy first');
  }
  const back = readBack(metadata);
  if (back.kind === 'moved') {
    throw new FloeError('invalid', 'the table’s history was moved: resume with a policy first');
  }
  if (back.kind === 'at') return back.watermark;
  const topics = new Map<string, Offsets>();
  return {
    commitId: '',
    topicId: '',
    epoch: 0,
    snapshotId: NO_SNAPSHOT,
    sequenceNumber: 0,
    topics,
  };
}

/**
 * The table of dead letters starts again there, its rows stay: which offsets it has is known (metadata, letters).
 * @returns where it was. @throws FloeError `not-found` when there is none.
 */
async function rewindLetters(
  { catalog, ids }: Pick<RewindDeps, 'catalog' | 'ids'>,
  request: Pick<RewindRequest, 'identifier' | 'topicId' | 'epoch' | 'to'>,
): Promise<Offsets> {
  const { identifier, topicId, epoch, to } = request;
  const table = await catalog.loadTable(identifier);
  const read = readBack(table.metadata);
  const current = read.kind === 'at' ? read.watermark.topics.get(topicId) : undefined;
  if (read.kind !== 'at' || current === undefined) return new Map();
  const back = earlier(to, current);
  if (back.length === 0) return current;
  const topics = new Map([...read.watermark.topics, [topicId, new Map([...current, ...back])]]);
  const watermark = { ...read.watermark, commitId: ids.uuid(), topicId, epoch, topics };
  await catalog.commitTable(identifier, watermarkOnly(table, watermark));
  return current;
}

/**
 * The table of dead letters beside `table` starts again at `to` at the latest: a record from there on that is no row is a
 * letter again, unless it is known as one. @returns where it was, empty when there is none.
 */
export async function lettersBack(
  deps: Pick<RewindDeps, 'catalog' | 'ids'>,
  request: Pick<RewindRequest, 'topicId' | 'epoch' | 'to'> & { readonly table: TableIdentifier },
): Promise<Offsets> {
  const { topicId, epoch, to, table } = request;
  const identifier = { ...table, name: `${table.name}_dlq` };
  try {
    return await rewindLetters(deps, { topicId, epoch, identifier, to });
  } catch (caught) {
    if (isFloeError(caught, 'not-found')) return new Map();
    throw caught;
  }
}

async function attemptRewind(
  deps: RewindDeps,
  request: RewindRequest,
  { table, commitId }: { readonly table: LoadedTable; readonly commitId: string },
): Promise<Rewound> {
  const { metadata } = table;
  const before = ownWatermark(table, request);
  const current = before.topics.get(request.topicId) ?? new Map<number, number>();
  const from = new Map(earlier(request.to, current));
  const offsets: Offsets = new Map([...current, ...from]);
  if (from.size === 0) return { rows: 0, offsets };
  const { topicName } = request;
  const asked = { from, prefix: commitId, topicName };
  const removal = await removalOf(metadata, deps.warehouse, asked);
  const topics = new Map([...before.topics, [request.topicId, offsets]]);
  const watermark = { ...before, commitId, topicId: request.topicId, epoch: request.epoch, topics };
  const properties: Properties = request.upserts ? { [KEYS_GENERATION_PROPERTY]: commitId } : {};
  if (removal.rows === 0) {
    const only = watermarkOnly(table, watermark, properties);
    await deps.catalog.commitTable(request.identifier, only);
    return { rows: 0, offsets };
  }
  const snapshotId = newSnapshotId(deps.ids, metadata);
  const prepared = await prepareCommit({
    metadata,
    io: deps.warehouse,
    snapshotId,
    commitUuid: commitId,
    nowMs: deps.clock.now(),
    added: removal.added,
    removed: removal.removed,
    summary: {
      [COMMIT_ID_SUMMARY]: commitId,
      [EPOCH_SUMMARY]: String(request.epoch),
      [RANGES_SUMMARY]: formatRanges(emptyRanges(from)),
    },
  });
  const objects = [
    ...removal.objects,
    ...prepared.objects.map(({ path, bytes }) => ({ path, parts: [bytes] })),
  ];
  await recordIntents(deps, request, { paths: objects.map(({ path }) => path), table });
  for (const { path, parts } of objects) await deps.warehouse.write(path, parts);
  const sequenceNumber = prepared.snapshot['sequence-number'] ?? 0;
  await deps.catalog.commitTable(request.identifier, {
    requirements: prepared.requirements,
    updates: [
      ...keepBefore(table),
      ...prepared.updates,
      { ...TAG, 'ref-name': WATERMARK_TAG, 'snapshot-id': snapshotId },
      setWatermark({ ...watermark, snapshotId, sequenceNumber }, properties),
    ],
  });
  await deps.tables.dropIntents(objects.map(({ path }) => path));
  return { rows: removal.rows, offsets };
}

const TAG = { action: 'set-snapshot-ref', type: 'tag' } as const;

/** What was there stays readable under a tag, until that expires. */
function keepBefore({ metadata }: LoadedTable) {
  const snapshotId = mainSnapshotId(metadata);
  if (snapshotId === undefined) return [];
  const ref = { 'ref-name': BEFORE_TAG, 'snapshot-id': snapshotId };
  return [{ ...TAG, ...ref, 'max-ref-age-ms': BEFORE_TAG_MS }];
}

type Properties = Readonly<Record<string, string>>;

const setWatermark = (watermark: Watermark, properties: Properties = {}) => ({
  action: 'set-properties',
  updates: { ...properties, [WATERMARK_PROPERTY]: formatWatermark(watermark) },
});

/** For reading positions back from history: here each partition went back to. */
const emptyRanges = (from: Offsets) =>
  [...from].map(([partition, offset]) => ({ partition, start: offset, end: offset }));

function watermarkOnly(
  { metadata }: LoadedTable,
  watermark: Watermark,
  properties: Properties = {},
) {
  const main = mainSnapshotId(metadata) ?? null;
  return {
    requirements: [
      { type: 'assert-table-uuid', uuid: metadata['table-uuid'] },
      { type: 'assert-ref-snapshot-id', ref: 'main', 'snapshot-id': main },
    ],
    updates: [setWatermark(watermark, properties)],
  };
}

/** M2: names before files. */
async function recordIntents(
  { tables, clock }: RewindDeps,
  { identifier, topicId }: RewindRequest,
  { paths, table }: { readonly paths: readonly string[]; readonly table: LoadedTable },
): Promise<void> {
  const parent = String(mainSnapshotId(table.metadata) ?? '');
  const { namespace, name } = identifier;
  const intent = { topicId, createdMs: clock.now(), namespace, table: name, parent };
  await tables.addIntents(paths.map((prefix) => ({ ...intent, prefix })));
}
