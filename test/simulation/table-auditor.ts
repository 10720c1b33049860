// Compares what tables hold with what clients were told: T1–T7 by name, and the files by M2. Faults have ended.
import { manifestsOf, readManifests } from '../../src/formats/iceberg/index.ts';
import type { TableMetadata } from '../../src/formats/iceberg/types.ts';
import { CHECKPOINT_FOLDER } from '../../src/table-topic/upsert/checkpoint.ts';
import {
  ancestry,
  COMMIT_ID_SUMMARY,
  EPOCH_SUMMARY,
  parseRanges,
  RANGES_SUMMARY,
  readBack,
} from '../../src/table-topic/watermark.ts';
import type { Changelog } from './changelog.ts';
import { KEYED, type Keyed } from './keyed.ts';
import type { RowRun } from './row-runner.ts';
import type { SentBatch, Workload } from './workload.ts';
import type { World } from './world.ts';

/** Simulated milliseconds in which tables must have caught up. */
const CATCH_UP_MS = 60_000;
const NAMES = ['first', 'second', 'changelog', KEYED];

interface Audited {
  readonly world: World;
  readonly workload: Workload;
  readonly changelog: Changelog;
  readonly keyed: Keyed;
}

/** @throws Error naming the rule that is broken. */
export async function auditTables({ world, workload, changelog, keyed }: Audited) {
  await caughtUp(world);
  const offsets = new Map<string, number>();
  let snapshots = 0;
  for (const name of NAMES) {
    const metadata = await load(world, name);
    if (metadata === undefined) continue;
    checkHistory(name, metadata);
    checkPosition(world, name, metadata);
    snapshots += metadata.snapshots?.length ?? 0;
    if (name === KEYED) continue;
    const rows = await rowsOf(world, metadata);
    if (name === 'changelog') checkChangelog(rows, changelog);
    else for (const run of rows) checkRows(run, { workload, offsets });
  }
  for (const batch of workload.batches.values()) checkPresence(batch, { workload, offsets });
  const keys = await keyed.audit(world.side.warehouse, await load(world, KEYED));
  return { snapshots, rows: offsets.size, keys };
}

/** M2: once the sweep had its time, and history has moved on, tables' files and the store's are the same. */
export async function auditTableFiles(world: World): Promise<void> {
  const { side, clock } = world;
  for (const name of NAMES) {
    if ((await load(world, name)) === undefined) continue;
    // Only a commit proves those of before that nobody answered out (T5).
    for (let n = 0; n < 3; n += 1) await world.drive(side.foreignCommit(identifierOf(name)));
  }
  await clock.advance(20_000);
  const referenced = new Set<string>();
  for (const name of NAMES) {
    const metadata = await load(world, name);
    for (const uri of metadata === undefined ? [] : await filesOf(world, metadata))
      referenced.add(uri);
  }
  const stored: string[] = [];
  for await (const { key } of side.store.list('')) {
    // metadata.json files are the catalog's; the key index keeps its own in order.
    if (!key.endsWith('.json') && !key.includes(`/${CHECKPOINT_FOLDER}/`))
      stored.push(`${side.store.uri}/${key}`);
  }
  const missing = [...referenced].filter((uri) => !stored.includes(uri));
  if (missing.length > 0) throw new Error(`L10: named by a table and gone: ${missing.slice(0, 3)}`);
  const orphans = stored.filter((uri) => !referenced.has(uri) && !side.foreign.has(uri));
  if (orphans.length > 0)
    throw new Error(`M2: ${orphans.length} files not swept: ${orphans.slice(0, 3)}`);
}

/** T9, L8: with the faults gone, every table catches up within a bound. */
async function caughtUp({ side, clock }: World): Promise<void> {
  for (let waited = 0; ; waited += 200) {
    const list = await side.tables.list();
    if (list.every(({ state, lagRecords }) => state === 'running' && lagRecords === 0)) return;
    if (waited > CATCH_UP_MS) {
      const text = list.map(
        ({ topic, state, reason, lagRecords }) => `${topic} ${state} ${lagRecords} ${reason}`,
      );
      throw new Error(`T9: not caught up: ${text.join('; ')}`);
    }
    await clock.advance(200);
  }
}

const identifierOf = (name: string) => ({ namespace: ['kafka'], name });

async function load({ side }: World, name: string): Promise<TableMetadata | undefined> {
  const identifier = identifierOf(name);
  const known = await side.catalog.listTables(identifier.namespace).catch(() => []);
  if (!known.some((one) => one.name === name)) return undefined;
  return (await side.catalog.inner.loadTable(identifier)).metadata;
}

/** T2, T6: epochs never go back, and what each commit added continues what was there. */
function checkHistory(name: string, metadata: TableMetadata): void {
  let epoch = 0;
  const ends = new Map<number, number>();
  for (const { summary = {} } of ancestry(metadata).toReversed()) {
    if (summary[COMMIT_ID_SUMMARY] === undefined) continue;
    const ranges = parseRanges(summary[RANGES_SUMMARY] ?? '');
    // A namesake of the deleted topic begins anew, with coordinators of its own.
    const again =
      name === 'first' && ranges.some(({ partition, start }) => start < (ends.get(partition) ?? 0));
    if (again) {
      ends.clear();
      epoch = 0;
    }
    const own = Number(summary[EPOCH_SUMMARY]);
    if (own < epoch && name !== 'first')
      throw new Error(`T6: ${name}: epoch ${own} after ${epoch}`);
    epoch = own;
    for (const { partition, start, end } of ranges) {
      const before = ends.get(partition) ?? 0;
      if (start < before || end <= start)
        throw new Error(`T1: ${name}: partition ${partition}: ${start}–${end} after ${before}`);
      ends.set(partition, end);
    }
  }
}

/** T2: the table says itself how far it is, and it is where the log is. */
function checkPosition({ node }: World, name: string, metadata: TableMetadata): void {
  const topic = node.directory.byName(name);
  if (topic === undefined) return;
  const back = readBack(metadata);
  if (back.kind === 'moved') throw new Error(`T2: ${name}: the watermark is of another history`);
  const offsets = back.kind === 'at' ? back.watermark.topics.get(topic.topicId) : undefined;
  for (const [partition, partitionId] of topic.partitions.entries()) {
    const end = node.log.watermarks(partitionId)!.lastStableOffset;
    const at = offsets?.get(partition) ?? 0;
    if (at !== end)
      throw new Error(`T2: ${name}: partition ${partition} at ${at}, the log at ${end}`);
  }
}

async function rowsOf({ side }: World, metadata: TableMetadata): Promise<RowRun[]> {
  const rows: RowRun[] = [];
  const { warehouse } = side;
  const snapshot = ancestry(metadata)[0];
  const entries = await readManifests(warehouse, metadata, await manifestsOf(warehouse, snapshot));
  for (const { status, file } of entries.flat()) {
    if (status === 2) continue;
    const text = Buffer.from(await warehouse.read(file.filePath)).toString();
    rows.push(...(JSON.parse(text) as RowRun[]));
  }
  return rows;
}

/** Everything that a table's retained snapshots name. */
async function filesOf({ side }: World, metadata: TableMetadata): Promise<Set<string>> {
  const { warehouse } = side;
  const found = new Set<string>();
  for (const snapshot of metadata.snapshots ?? []) {
    found.add(snapshot['manifest-list']);
    const manifests = await manifestsOf(warehouse, snapshot);
    const fresh = manifests.filter(({ manifestPath }) => !found.has(manifestPath));
    for (const { manifestPath } of manifests) found.add(manifestPath);
    // What a manifest says was deleted is named by older snapshots, while there are any.
    for (const entries of await readManifests(warehouse, metadata, fresh))
      for (const { status, file } of entries) if (status !== 2) found.add(file.filePath);
  }
  return found;
}

interface Audit {
  readonly workload: Workload;
  /** Batch of each row, by partition id and offset, over all tables. */
  readonly offsets: Map<string, number>;
}

function checkChangelog(rows: readonly RowRun[], changelog: Changelog): void {
  const byOffset = new Map<number, number>();
  for (const { first, batch } of rows) {
    if (byOffset.has(first)) throw new Error(`T4: ${first} of the changelog is a row twice`);
    byOffset.set(first, batch);
  }
  changelog.auditTable(byOffset);
}

/** T4: no row twice; T7: none that was aborted; and each is what the log has at that offset. */
function checkRows({ first, last, batch: id }: RowRun, { workload, offsets }: Audit): void {
  const batch = workload.batches.get(id);
  if (batch === undefined) throw new Error(`T7: a row of batch ${id}, which nobody sent`);
  const { partitionId, transaction } = batch;
  if (transaction?.outcome === 'aborted')
    throw new Error(`T7: a row of batch ${id}, which was aborted`);
  if (workload.leftOut.has(id))
    throw new Error(`T7: a row of batch ${id}, which readers leave out`);
  const at = batch.state === 'acked' ? batch.offset : first;
  if (first < at || last >= at + batch.records)
    throw new Error(`T7: rows ${first}–${last} of batch ${id}, which is at ${at}`);
  for (let offset = first; offset <= last; offset += 1) {
    const key = `${partitionId}@${offset}`;
    const other = offsets.get(key);
    if (other !== undefined)
      throw new Error(`T4: ${key} is a row twice: batches ${other} and ${id}`);
    const seen = workload.seen.get(key);
    if (seen !== undefined && seen !== id)
      throw new Error(`T7: ${key} is batch ${seen} in the log and ${id} in the table`);
    offsets.set(key, id);
  }
}

/** T1, M3: whatever was acked, and not aborted, is in the table, unless somebody deleted it from the log first. */
function checkPresence(batch: SentBatch, { workload, offsets }: Audit): void {
  const { id, partitionId, offset: first, records, state, transaction } = batch;
  if (state !== 'acked' || workload.deletedPartitions.has(partitionId)) return;
  const kept =
    transaction === undefined || transaction.outcome === 'committed' || workload.given.has(id);
  if (!kept) return;
  for (let offset = first; offset < first + records; offset += 1) {
    if (offset < (workload.deletedBelow.get(partitionId) ?? 0)) continue;
    if (offsets.get(`${partitionId}@${offset}`) !== id)
      throw new Error(
        `T1: batch ${id} was acked at ${partitionId}@${first} and has no row at ${offset}`,
      );
  }
}
