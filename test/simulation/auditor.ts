// Compares what clients were told with what the log holds, once faults have ended: the invariants by name.
import { entriesOf, openIndex } from '../../src/metadata/packed-index.ts';
import type { Surroundings } from './surroundings.ts';
import { auditMarkers } from './transaction-auditor.ts';
import type { SentBatch, Workload } from './workload.ts';
import type { World } from './world.ts';

const MAX_FAILURES = 3;

/** Reads every partition from its log start to its end. @throws Error naming the invariant that is broken. */
export async function audit(world: Surroundings, workload: Workload): Promise<void> {
  const found = new Map<number, string[]>();
  for (const partitionId of workload.partitionIds) {
    const marks = world.node.log.watermarks(partitionId);
    if (marks === undefined) throw new Error(`L1: partition ${partitionId} is gone`);
    await checkMetadata(world, partitionId, marks.highWatermark);
    // A read may share a request to the store that was sent while faults were on: then it fails once more.
    for (let offset = marks.logStartOffset, failures = 0; offset < marks.highWatermark; ) {
      const next = await world.drive(
        workload.readFrom(partitionId, offset, { maxBytes: 10_000, at: world }),
      );
      failures = next <= offset ? failures + 1 : 0;
      if (failures === MAX_FAILURES)
        throw new Error(`L4: partition ${partitionId} does not read on at ${offset}`);
      // Another broker's retention may have been quicker.
      offset = Math.max(next, world.node.log.watermarks(partitionId)!.logStartOffset);
    }
    for (const [key, id] of workload.seen) {
      if (key.startsWith(`${partitionId}@`)) found.set(id, [...(found.get(id) ?? []), key]);
    }
  }
  for (const batch of workload.batches.values()) {
    if (workload.deletedPartitions.has(batch.partitionId)) continue;
    const marks = world.node.log.watermarks(batch.partitionId);
    if (marks === undefined) throw new Error(`L1: partition ${batch.partitionId} is gone`);
    checkBatch(batch, found.get(batch.id) ?? [], marks.logStartOffset);
    checkTransaction(batch, workload);
  }
  auditMarkers(world, workload);
}

/** L6, L7: what readers of committed records get of a transaction is what its producer was told, and all or nothing. */
function checkTransaction({ id, transaction }: SentBatch, { given, leftOut }: Workload): void {
  if (transaction === undefined) {
    if (leftOut.has(id)) throw new Error(`L7: batch ${id} is left out and of no transaction`);
    return;
  }
  const { outcome } = transaction;
  if (outcome === 'open') throw new Error(`L8: the transaction of batch ${id} is open at rest`);
  if (outcome === 'committed' && leftOut.has(id))
    throw new Error(`L1: batch ${id} was committed and is left out`);
  if (outcome === 'aborted' && given.has(id))
    throw new Error(`L7: batch ${id} was aborted and is given to readers`);
  // What has expired, nobody may have read.
  if (outcome === 'lost' && (given.has(id) || leftOut.has(id)))
    checkWhole(transaction, given.has(id), id);
}

const fates = new WeakMap<object, { readonly given: boolean; readonly id: number }>();

/** Nobody knows whether it was committed: then all of it was, or nothing. */
function checkWhole(transaction: object, given: boolean, id: number): void {
  const other = fates.get(transaction);
  if (other !== undefined && other.given !== given)
    throw new Error(`L7: a torn transaction: batches ${other.id} and ${id}`);
  fates.set(transaction, { given, id });
}

/** Memory and metadata agree. */
async function checkMetadata(world: Surroundings, partitionId: number, end: number): Promise<void> {
  const [stored] = await world.metadata.log.partitions([partitionId]);
  if (stored?.highWatermark !== end)
    throw new Error(
      `L4: partition ${partitionId} ends at ${end}, in the metadata at ${stored?.highWatermark}`,
    );
  const { sizeBytes, indexedBytes } = await sizes(world, partitionId);
  if (sizeBytes !== indexedBytes)
    throw new Error(
      `L1: partition ${partitionId} counts ${sizeBytes} bytes and has ${indexedBytes}: retention by size would err`,
    );
}

/** What a partition is said to hold, and what its indexes add up to: asked in one turn, as one state. */
async function sizes({ metadata }: Surroundings, partitionId: number) {
  const [partitions, entries, flushes] = await Promise.all([
    metadata.log.partitions([partitionId]),
    metadata.log.entriesFrom(partitionId, 0, 1_000_000),
    metadata.log.flushesAfter(0, 1_000_000),
  ]);
  let indexedBytes = entries.reduce((sum, { bytes }) => sum + bytes, 0);
  for (const flush of flushes) {
    const index = openIndex(flush.index);
    const [start, end] = entriesOf(index, partitionId);
    for (let n = start; n < end; n += 1) indexedBytes += index.lengths[n]!;
  }
  return { sizeBytes: partitions[0]!.sizeBytes, indexedBytes };
}

function checkBatch(batch: SentBatch, places: readonly string[], logStartOffset: number): void {
  const what = `batch ${batch.id} of producer ${batch.producerId}`;
  if (places.length > 1)
    throw new Error(`L5: ${what} is in the log ${places.length} times: ${places}`);
  const expected = `${batch.partitionId}@${batch.offset}`;
  const expired = batch.offset < logStartOffset;
  if (batch.state === 'acked' && !expired && places[0] !== expected)
    throw new Error(`L1: ${what} was acked at ${expected} and is at ${places[0] ?? 'no place'}`);
  if (batch.state === 'acked' && places.length === 1 && places[0] !== expected)
    throw new Error(`L2: ${what} was acked at ${expected} and was read at ${places[0]}`);
  if (batch.state === 'refused' && batch.sends === 1 && places.length > 0)
    throw new Error(`L9: ${what} was refused for good and is at ${places[0]}`);
}

/**
 * L10, after retention, compaction, collection and sweep had their time: what is referenced exists, what exists is
 * referenced (the file that is being filled may not have its first commit yet).
 */
export async function auditObjects(world: Pick<World, 'inventory' | 'mode'>): Promise<void> {
  const { stored, referenced } = await world.inventory();
  const missing = referenced.filter((key) => !stored.includes(key));
  if (missing.length > 0) throw new Error(`L10: referenced and gone: ${few(missing)}`);
  const orphans = stored.filter((key) => !referenced.includes(key));
  if (orphans.length > (world.mode === 'local' ? 1 : 0))
    throw new Error(`L10: not referenced and not swept: ${few(orphans)}`);
}

function few(keys: readonly string[]): string {
  return `${keys.length} keys, ${keys.slice(0, 3).map((key) => key.slice(-40))}`;
}
