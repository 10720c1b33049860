// What becomes of a topic's table when its config names another one (`table.topic.moved`), or when the table is lost
// (`table.topic.dropped`). Done once, before the table is opened; a process that dies in between does it again.
// Not for: a table that somebody rolled back or rewrote (positions.ts, rule T2).
import { FloeError, isFloeError } from '../base/error.ts';
import type { IdSource } from '../base/prng.ts';
import type { Catalog, LoadedTable, TableIdentifier } from '../catalog/catalog.ts';
import type { TableRecord, TablesMetadata } from '../metadata/tables.ts';
import type { Topic } from '../metadata/topics.ts';
import type { Log } from '../storage/log/log.ts';
import { lettersBack } from './operations/rewind.ts';
import { backfillOffset } from './positions.ts';
import type { TopicConfigs } from './settings/index.ts';
import { isShared } from './table-owner.ts';
import { readBack, TOPIC_ID_PROPERTY } from './watermark.ts';

export interface RelocateDeps {
  readonly catalog: Catalog;
  readonly tables: TablesMetadata;
  readonly log: Log;
  readonly clock: { now(): number };
  readonly ids: IdSource;
}

export interface Relocation {
  readonly topic: Topic;
  readonly record: TableRecord;
  /** The table that the config names now. */
  readonly identifier: TableIdentifier;
  readonly config: Pick<TopicConfigs, 'table.topic.moved' | 'table.topic.backfill'>;
}

const textOf = ({ namespace, name }: TableIdentifier) => [...namespace, name].join('.');

const letters = ({ namespace, name }: TableIdentifier): TableIdentifier => ({
  namespace,
  name: `${name}_dlq`,
});

/** Trouble that an operator, or another config, ends. */
const trouble = (reason: string) =>
  new FloeError('invalid', reason, { details: { trouble: true } });

/**
 * Brings the table to where the config names it, or leaves it and begins a new one there. Returns the record as it is
 * then; the very record when nothing moved.
 * @throws FloeError with `details.trouble` when it can't be done.
 */
export async function relocate(deps: RelocateDeps, move: Relocation): Promise<TableRecord> {
  const { record, identifier, topic, config } = move;
  const former = { namespace: record.namespace, name: record.table };
  if (textOf(former) === textOf(identifier)) return record;
  const { namespace, name: table } = identifier;
  if (record.tableUuid === '') {
    return deps.tables.update(topic.topicId, record.epoch, { namespace, table });
  }
  if (config['table.topic.moved'] === 'rename') {
    await renameTables(deps.catalog, { record, from: former, to: identifier });
    return deps.tables.update(topic.topicId, record.epoch, { namespace, table });
  }
  await startOver(deps, { ...move, from: former, to: identifier });
  return deps.tables.update(topic.topicId, record.epoch, { namespace, table, tableUuid: '' });
}

/** The table, then its dead letters; each may have been renamed by an attempt that was cut short. */
async function renameTables(
  catalog: Catalog,
  {
    record,
    from,
    to,
  }: {
    readonly record: TableRecord;
    readonly from: TableIdentifier;
    readonly to: TableIdentifier;
  },
): Promise<void> {
  const target = await find(catalog, to);
  if (target !== undefined && target.metadata['table-uuid'] !== record.tableUuid) {
    throw trouble(
      `table ${textOf(to)} exists already: set table.topic.name to a free name, or table.topic.moved to continue or restart to fill it beside ${textOf(from)}`,
    );
  }
  if (target === undefined) {
    const source = await find(catalog, from);
    if (source?.metadata['table-uuid'] !== record.tableUuid) {
      throw trouble(
        `table ${textOf(from)}, which should become ${textOf(to)}, was dropped or replaced: resume with policy "restart", or set table.topic.moved to continue or restart`,
      );
    }
    if (isShared(source.metadata.properties ?? {})) {
      throw trouble(
        `table ${textOf(from)} is other topics' too and can't be renamed for one: set table.topic.moved to continue or restart`,
      );
    }
    await rename(catalog, from, to);
  }
  const dead = await find(catalog, letters(from));
  if (dead !== undefined && (await find(catalog, letters(to))) === undefined) {
    await rename(catalog, letters(from), letters(to));
  }
}

async function rename(catalog: Catalog, from: TableIdentifier, to: TableIdentifier): Promise<void> {
  if (catalog.renameTable === undefined) {
    throw trouble(
      `the catalog can't rename ${textOf(from)} to ${textOf(to)}: set table.topic.moved to continue or restart`,
    );
  }
  await catalog.ensureNamespace(to.namespace);
  await catalog.renameTable(from, to);
}

async function find(
  catalog: Catalog,
  identifier: TableIdentifier,
): Promise<LoadedTable | undefined> {
  try {
    return await catalog.loadTable(identifier);
  } catch (caught) {
    if (isFloeError(caught, 'not-found')) return undefined;
    throw caught;
  }
}

/**
 * Drops what is staged; a new table begins where the former one stands (`continue`), or by the backfill setting.
 * `from`: the former table, when it is to be gone on from; `to`: where the new one will be.
 */
async function startOver(
  deps: RelocateDeps,
  {
    topic,
    record,
    config,
    from,
    to,
  }: Omit<Relocation, 'identifier'> & { from?: TableIdentifier; to: TableIdentifier },
): Promise<void> {
  const { tables, log, clock } = deps;
  const goesOn = from !== undefined && config['table.topic.moved'] === 'continue';
  const committed = goesOn ? await committedOffsets(deps, { topic, from }) : new Map();
  const backfill = config['table.topic.backfill'];
  const positions = await Promise.all(
    topic.partitions.map(async (partitionId, partition) => ({
      partition,
      offset: committed.get(partition) ?? (await backfillOffset(log, partitionId, backfill)),
    })),
  );
  const { topicId } = topic;
  const { epoch } = record;
  const start = new Map(positions.map(({ partition, offset }) => [partition, offset]));
  // Letters that lie beside the new table already come no second time; others may come below where they are.
  const there = await lettersBack(deps, { topicId, epoch, table: to, to: start });
  const lettersCommitted = new Map(committed);
  for (const [partition, offset] of there)
    lettersCommitted.set(partition, Math.max(offset, committed.get(partition) ?? 0));
  await tables.rewind(topicId, epoch, { positions, nowMs: clock.now(), lettersCommitted });
}

/** What the former table says itself; what is known here when it is gone. */
async function committedOffsets(
  { catalog, tables }: RelocateDeps,
  { topic, from }: { readonly topic: Topic; readonly from: TableIdentifier },
): Promise<ReadonlyMap<number, number>> {
  const known = await tables.positions(topic.topicId);
  const offsets = new Map(known.map(({ partition, committedEnd }) => [partition, committedEnd]));
  const table = await find(catalog, from);
  if (table === undefined) return offsets;
  const back = readBack(table.metadata);
  const own = back.kind === 'at' ? back.watermark.topics.get(topic.topicId) : undefined;
  for (const [partition, offset] of own ?? []) offsets.set(partition, offset);
  return offsets;
}

/** The table is lost and a new one shall be filled: forgets the old one. */
export async function forgetTable(
  deps: RelocateDeps,
  lost: Omit<Relocation, 'identifier'>,
): Promise<TableRecord> {
  const { namespace, table: name } = lost.record;
  await startOver(deps, { ...lost, to: { namespace, name } });
  return deps.tables.update(lost.topic.topicId, lost.record.epoch, { tableUuid: '' });
}

/** The table of a deleted topic, as `table.topic.deleted` has it. Somebody else's, or a shared one, stays. */
export async function retireTable(
  catalog: Catalog,
  table: {
    readonly identifier: TableIdentifier;
    readonly tableUuid: string;
    readonly policy: TopicConfigs['table.topic.deleted'];
  },
): Promise<void> {
  const { identifier, tableUuid, policy } = table;
  if (policy === 'keep' || tableUuid === '') return;
  const found = await find(catalog, identifier);
  if (found === undefined || found.metadata['table-uuid'] !== tableUuid) return;
  if (isShared(found.metadata.properties ?? {})) return;
  const purge = policy === 'purge';
  await catalog.dropTable(identifier, { purge });
  const dead = await find(catalog, letters(identifier));
  const owner = found.metadata.properties?.[TOPIC_ID_PROPERTY];
  if (owner !== undefined && dead?.metadata.properties?.[TOPIC_ID_PROPERTY] === owner) {
    await catalog.dropTable(letters(identifier), { purge });
  }
}
