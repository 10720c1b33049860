// Objects of the log on their way to another store: copied where they aren't there yet, read back, compared, and the
// batches in them checked by their CRCs. Keys stay, so nothing that names an object changes.
import { crc32c } from '@node-rs/crc32';
import { FloeError } from '../../base/error.ts';
import { openIndex } from '../../metadata/packed-index.ts';
import type { Database } from '../../metadata/sqlite/database.ts';
import { checkEntries } from '../../storage/log/block-check.ts';
import { clusterTag } from '../../storage/log/wal-format.ts';
import type { ObjectStore } from '../../storage/objects/index.ts';
import { generationOf } from '../../storage/paths.ts';

export interface LogObjectRow {
  readonly objectId: number;
  readonly key: string;
  readonly bytes: number;
  /** Where in the object its indexes lie: `[position, length]`. */
  readonly indexes: readonly (readonly [number, number])[];
}

export interface CopyOptions {
  readonly clusterId: string;
  readonly from: ObjectStore;
  readonly to: ObjectStore;
  /** CRCs of the batches of one of so many objects are checked; 1: of all. */
  readonly checkOneOf: number;
}

export interface Copied {
  readonly objects: number;
  readonly bytes: number;
  /** Of these were there already, whole. */
  readonly kept: number;
  /** Objects of which every batch was checked. */
  readonly checked: number;
}

/** Objects on their way at once: each is held in memory whole. */
const AT_ONCE = 3;

/** Sealed objects with what refers to them; those that nothing refers to are about to go, and stay behind. */
export function sealedObjects(database: Database): readonly LogObjectRow[] {
  const rows = database
    .prepare(`SELECT object_id, key, bytes, (SELECT json_group_array(DISTINCT index_position || ' ' || index_length)
      FROM object_entries e WHERE e.object_id = o.object_id) AS indexes
      FROM log_objects o WHERE state = 'sealed' AND EXISTS
        (SELECT 1 FROM object_entries e WHERE e.object_id = o.object_id) ORDER BY object_id`)
    .all();
  return rows.map((row) => ({
    objectId: Number(row['object_id']),
    key: row['key'] as string,
    bytes: Number(row['bytes']),
    indexes: (JSON.parse(row['indexes'] as string) as string[]).map((index) => {
      const [position, length] = index.split(' ').map(Number) as [number, number];
      return [position, length] as const;
    }),
  }));
}

/** @throws FloeError `corrupt`, naming the object, when source or copy isn't what its row says. */
export async function copyObjects(
  objects: readonly LogObjectRow[],
  options: CopyOptions,
): Promise<Copied> {
  const copied = { objects: 0, bytes: 0, kept: 0, checked: 0 };
  await eachOf(objects, AT_ONCE, async (object, n) => {
    const { body, kept } = await copyOne(object, options);
    copied.objects += 1;
    copied.bytes += object.bytes;
    if (kept) copied.kept += 1;
    if (n % options.checkOneOf !== 0) return;
    checkBatches(object, body, options.clusterId);
    copied.checked += 1;
  });
  return copied;
}

/** @returns the copy as it was read back. */
async function copyOne(
  { key, bytes }: LogObjectRow,
  { from, to }: CopyOptions,
): Promise<{ readonly body: Uint8Array; readonly kept: boolean }> {
  const source = await from.get(key, { length: bytes });
  if (source.length !== bytes)
    throw new FloeError(
      'corrupt',
      `${key} has ${source.length} bytes in ${from.uri}, not ${bytes}`,
    );
  if (from.uri === to.uri) return { body: source, kept: true };
  const expected = crc32c(source);
  const is = (found: Uint8Array) => found.length === bytes && crc32c(found) === expected;
  if ((await to.head(key))?.size === bytes) {
    const found = await to.get(key);
    if (is(found)) return { body: found, kept: true };
  }
  await to.put(key, source);
  const body = await to.get(key);
  if (!is(body))
    throw new FloeError('corrupt', `${key} reads back otherwise than it was written to ${to.uri}`);
  return { body, kept: false };
}

function checkBatches(
  { objectId, key, indexes }: LogObjectRow,
  bytes: Uint8Array,
  clusterId: string,
) {
  const object = { objectId, key, generation: generationOf(key) };
  const read = { object, position: 0, bytes, clusterTag: clusterTag(clusterId) };
  for (const [position, length] of indexes) {
    const index = openIndex(bytes.slice(position, position + length));
    const partitionOf = (n: number) => index.partitionIds[n]!;
    checkEntries(read, { columns: index, start: 0, end: index.count, partitionOf, deep: true });
  }
}

/** Works on several at once, in order of their beginning; the first failure ends it. */
export async function eachOf<T>(
  items: readonly T[],
  atOnce: number,
  work: (item: T, n: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < items.length) {
      const n = next++;
      await work(items[n]!, n);
    }
  };
  try {
    await Promise.all(Array.from({ length: atOnce }, worker));
  } catch (caught) {
    next = items.length;
    throw caught;
  }
}

/** L4: the rows of each partition follow one another from its log start to its end. @throws FloeError `corrupt`. */
export function assertTiled(database: Database): number {
  const entries = database.prepare(
    'SELECT base_offset, end_offset FROM object_entries WHERE partition_id = ? ORDER BY base_offset',
  );
  let partitions = 0;
  for (const row of database
    .prepare('SELECT partition_id, log_start, high_watermark FROM log_partitions')
    .iterate()) {
    const partitionId = Number(row['partition_id']);
    let at = Number(row['log_start']);
    const end = Number(row['high_watermark']);
    partitions += 1;
    for (const entry of entries.iterate(partitionId)) {
      if (Number(entry['end_offset']) <= at) continue;
      if (Number(entry['base_offset']) > at) break;
      at = Number(entry['end_offset']);
    }
    if (at < end)
      throw new FloeError(
        'corrupt',
        `L4: partition ${partitionId} has nothing from offset ${at} to ${end}`,
      );
  }
  return partitions;
}
