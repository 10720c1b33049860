// floe fsck: whether the metadata, the log's objects and the files of tables agree, while brokers run or not. Reads only.
// Each part is looked through although another failed. What live brokers change meanwhile is no finding: rows are seen
// as of one moment, and what looks wrong is looked at again.
// Not for: whether stores, database and clocks are fit (doctor), mending anything.
import { FloeError } from '../../base/error.ts';
import type { Prng } from '../../base/prng.ts';
import type { Catalog, TableIdentifier } from '../../catalog/index.ts';
import { readIdentity } from '../../storage/cluster.ts';
import type { ObjectStore } from '../../storage/objects/index.ts';
import type { ServerSettings } from '../compose/node.ts';
import { type Finding, findingsOf } from '../doctor/finding.ts';
import { openStoreToRead, openTables, type StorePlace } from '../stores.ts';
import type { Found } from './found.ts';
import { type AskedMetadata, openAsked } from './metadata.ts';
import { type CheckedObjects, checkObjects, type ObjectFault } from './objects.ts';
import { findOrphans, type Orphans } from './orphans.ts';
import { type CheckedTables, checkTables } from './tables.ts';
import { checkTiles, type Tiled } from './tiles.ts';

export interface FsckOptions extends StorePlace {
  /** Of the log's blocks, in percent: 0 reads none, 100 reads all. */
  readonly samplePercent: number;
  /** Only this topic's partitions, objects and table; orphans belong to none. */
  readonly topic?: string;
  readonly prng: Prng;
  /** Awaited before what looks wrong is looked at again: a swap of rows, a commit of a table is over by then. */
  readonly pause: () => Promise<void>;
}

const log = findingsOf('log');
const tables = findingsOf('tables');

const REMEDIES = {
  missing: "its offsets can't be read: bring its version back in the bucket or folder",
  damaged:
    'consumers of these offsets are refused them: bring the version before back in the bucket or folder, or move the log start past them (kafka-delete-records.sh)',
  index:
    'object and metadata are of different times: bring back the one that is older than the other (floe restore, or a version in the bucket)',
  hole: "records of these offsets can't be read: restore the metadata of a time before (floe restore), or move the log start past them",
  ahead: 'an older log or a foreign commit: floe tables rewind',
  table: "bring the file's version back, or floe tables rebuild",
  orphans:
    'they only take room: a node with the role maintenance sweeps them; after a restore once floe doctor --confirm is said',
} as const;

/** @throws FloeError for what the options say wrong, `not-found` for an unknown topic. */
export async function fsck(options: FsckOptions): Promise<readonly Finding[]> {
  const metadata = openAsked({ ...options, applicationName: 'floe fsck' });
  try {
    const clusterId = await metadata.cluster.clusterId();
    if (clusterId === undefined)
      throw new FloeError('not-found', 'the metadata belongs to no cluster yet: nothing to check');
    const store = await openStoreToRead(options);
    await checkIdentity(store, clusterId);
    return await fsckOpen({ ...options, store, asked: metadata, clusterId });
  } finally {
    await metadata.close();
  }
}

/** Every object would be missing in a wrong bucket. */
async function checkIdentity(store: ObjectStore, clusterId: string): Promise<void> {
  const found = await readIdentity(store);
  if (found?.clusterId === clusterId) return;
  throw new FloeError(
    'conflict',
    `${store.uri} belongs to cluster ${found?.clusterId ?? '(none)'}, the metadata to ${clusterId}: name storage and metadata of one cluster`,
  );
}

/** What is open already, see {@link fsck}. */
export interface OpenParts extends Omit<FsckOptions, keyof StorePlace> {
  readonly settings: ServerSettings;
  readonly store: ObjectStore;
  readonly asked: AskedMetadata;
  readonly clusterId: string;
}

/** {@link fsck} of parts that are open. */
export function fsckOpen(parts: OpenParts): Promise<readonly Finding[]> {
  return new Checks(parts).all();
}

class Checks {
  readonly #options: OpenParts;

  constructor(options: OpenParts) {
    this.#options = options;
  }

  async all(): Promise<readonly Finding[]> {
    const { asked, topic } = this.#options;
    const partitionIds = topic === undefined ? undefined : await partitionsOf(asked, topic);
    return [
      ...(await finished(log, 'entries', () => this.#tiles())),
      ...(await finished(log, 'objects', () => this.#objects(partitionIds))),
      ...(topic === undefined ? await finished(log, 'orphans', () => this.#orphans()) : []),
      ...(await finished(tables, 'files', () => this.#tables())),
    ];
  }

  async #tiles(): Promise<readonly Finding[]> {
    const { asked, topic, pause } = this.#options;
    const scope = topic === undefined ? {} : { topic };
    return tilesFindings(await checkTiles(asked, { ...scope, pause, maxFaults: MOST_FAULTS }));
  }

  async #objects(partitionIds: ReadonlySet<number> | undefined): Promise<readonly Finding[]> {
    const { asked, store, clusterId, samplePercent, prng, topic, pause } = this.#options;
    const scope =
      topic === undefined || partitionIds === undefined
        ? {}
        : { topic: { name: topic, partitionIds } };
    const { ask } = asked;
    const parts = { ask, store, clusterId, samplePercent, prng, pause, ...scope };
    return objectsFindings(await checkObjects(parts), samplePercent);
  }

  async #orphans(): Promise<readonly Finding[]> {
    const { asked, store, clusterId, settings } = this.#options;
    const orphanAgeMs = settings['log.orphan.age.ms'];
    const nowMs = await asked.nowMs();
    const { ask } = asked;
    const options = { ask, store, clusterId, nowMs, orphanAgeMs, withFiles: true };
    return [orphansFinding(await findOrphans(options), orphanAgeMs)];
  }

  async #tables(): Promise<readonly Finding[]> {
    const { asked, store, clusterId, settings, topic, pause } = this.#options;
    const opened = await openTables({ settings, metadata: asked.catalog, store, clusterId });
    try {
      const { catalog, warehouse } = opened;
      // Tables of others in a catalog of others aren't ours to judge.
      const all = topic === undefined && settings['catalog.type'] === 'embedded';
      const listed = all ? tablesBelow(catalog, []) : tablesOfTopics(asked, topic);
      return tablesFindings(await checkTables({ catalog, warehouse, tables: listed, pause }));
    } finally {
      await opened.stop();
    }
  }
}

/** A part that breaks off is a finding of its own, the others go on. */
async function finished(
  { wrong }: ReturnType<typeof findingsOf>,
  what: string,
  check: () => Promise<readonly Finding[]>,
): Promise<readonly Finding[]> {
  try {
    return await check();
  } catch (caught) {
    const { message } = FloeError.from(caught);
    return [wrong(what, `not looked through: ${message}`, 'cure the cause and say it again')];
  }
}

async function partitionsOf({ ask }: AskedMetadata, topic: string): Promise<ReadonlySet<number>> {
  const rows = await ask<{ partition_id: number }>(
    'SELECT q.partition_id FROM partitions q JOIN topics t ON t.topic_id = q.topic_id WHERE t.name = $1',
    [topic],
  );
  if (rows.length === 0)
    throw new FloeError('not-found', `--topic ${topic}: there is no such topic`);
  return new Set(rows.map(({ partition_id }) => partition_id));
}

async function* tablesBelow(
  catalog: Catalog,
  namespace: readonly string[],
): AsyncGenerator<TableIdentifier> {
  if (namespace.length > 0) yield* await catalog.listTables(namespace);
  for (const child of await catalog.listNamespaces(namespace)) yield* tablesBelow(catalog, child);
}

async function* tablesOfTopics(
  { ask }: AskedMetadata,
  topic: string | undefined,
): AsyncGenerator<TableIdentifier> {
  const rows = await ask<{ topic_name: string; namespace: string; table_name: string }>(
    'SELECT topic_name, namespace, table_name FROM table_topics ORDER BY topic_name',
  );
  for (const { topic_name, namespace, table_name: name } of rows)
    if (topic === undefined || topic === topic_name)
      yield { namespace: namespace.split('.'), name };
}

const MOST_FAULTS = 10;

function tilesFindings({ partitions, faults }: Tiled): readonly Finding[] {
  const findings = faults
    .slice(0, MOST_FAULTS)
    .map(({ kind, partition, text }) =>
      log.wrong(
        kind === 'hole' ? 'entries' : 'table ahead',
        `${partition}: ${text}`,
        REMEDIES[kind],
      ),
    );
  if (faults.length > MOST_FAULTS)
    findings.push(log.wrong('entries', `at least ${faults.length} partitions`, REMEDIES.hole));
  if (findings.length > 0) return findings;
  return [log.ok('entries', `tile the logs of ${partitions} partitions`)];
}

function objectsFindings(
  { objects, missing, damaged, index, sample }: CheckedObjects,
  samplePercent: number,
): readonly Finding[] {
  const findings = [
    ...each('missing', missing),
    ...each('damaged', damaged),
    ...each('index', index),
  ];
  if (missing.count === 0)
    findings.push(log.ok('objects', `${objects} that rows refer to, all there with their bytes`));
  if (samplePercent > 0 && damaged.count === 0) {
    const { bytes, batches, blocks } = sample;
    const read = `${blocks} blocks, ${batches} batches, ${bytes} bytes`;
    findings.push(
      log.ok('sample', `${samplePercent} %: ${read}, each batch with its CRC and offsets`),
    );
  }
  return findings;
}

function each(what: ObjectFault, found: Found): Finding[] {
  const findings = found.first.map((text) => log.wrong(what, text, REMEDIES[what]));
  if (found.more > 0) findings.push(log.wrong(what, `and ${found.more} more`, REMEDIES[what]));
  return findings;
}

function orphansFinding({ count, bytes, old, oldestMs = 0 }: Orphans, ageMs: number): Finding {
  const minutes = (ms: number) => `${Math.round(ms / 60_000)} min`;
  if (count === 0) return log.ok('orphans', '0');
  const oldest = `the oldest of ${minutes(oldestMs)}`;
  if (old.count === 0)
    return log.ok('orphans', `${count}, ${bytes} bytes, ${oldest}: younger than ${minutes(ageMs)}`);
  const value = `${old.count} above ${minutes(ageMs)}, ${old.bytes} bytes, ${oldest}: ${old.first.join(', ')}`;
  return log.warning('orphans', value, REMEDIES.orphans);
}

function tablesFindings({ tables: count, files, broken }: CheckedTables): readonly Finding[] {
  if (broken.count === 0)
    return [tables.ok('files', `${files} that ${count} tables name, all there with their sizes`)];
  const findings = broken.first.map((text) => tables.wrong('file', text, REMEDIES.table));
  if (broken.more > 0)
    findings.push(tables.wrong('file', `and ${broken.more} more`, REMEDIES.table));
  return findings;
}
