// The rows of the log that checks go through, page by page, so that none of them has to fit into memory.
// Not for: what is wrong with them (tiles.ts, objects.ts).
import { openIndex, type PackedIndex } from '../../metadata/packed-index.ts';
import type { Ask } from './metadata.ts';

const PAGE = 1_000;
/** Packed indexes are large: of some hundred partitions each. */
const FLUSHES_AT_ONCE = 128;

/** Objects that hold only markers have an index and no bytes: nothing lies under their keys. */
const MARKERS_KEY = 'markers/';

/** An object of the log that something refers to. */
export interface ObjectRow {
  readonly object_id: number;
  readonly key: string;
  readonly kind: 'file' | 'object';
  readonly state: 'open' | 'sealed';
  readonly bytes: number;
}

const REFERRED = `(o.state = 'open' OR (o.state = 'sealed'
  AND EXISTS (SELECT 1 FROM object_entries e WHERE e.object_id = o.object_id)))`;
const OBJECT_COLUMNS = 'o.object_id, o.key, o.kind, o.state, o.bytes';

const OBJECTS = `SELECT ${OBJECT_COLUMNS} FROM log_objects o
  WHERE o.object_id > $1 AND ${REFERRED} ORDER BY o.object_id LIMIT $2`;

// Whose batches lie in an unsealed one isn't known before its flush rows are read.
const OBJECTS_OF_TOPIC = `SELECT ${OBJECT_COLUMNS} FROM log_objects o
  WHERE o.object_id > $1 AND (o.state = 'open' OR (o.state = 'sealed' AND EXISTS (
    SELECT 1 FROM object_entries e JOIN partitions q ON q.partition_id = e.partition_id
      JOIN topics t ON t.topic_id = q.topic_id WHERE e.object_id = o.object_id AND t.name = $3)))
  ORDER BY o.object_id LIMIT $2`;

/** Objects that rows refer to and that have bytes, a page at a time; of a topic: at least all of its own. */
export async function* objectPages(ask: Ask, topic?: string): AsyncGenerator<readonly ObjectRow[]> {
  for (let after = 0; ; ) {
    const rows =
      topic === undefined
        ? await ask<ObjectRow>(OBJECTS, [after, PAGE])
        : await ask<ObjectRow>(OBJECTS_OF_TOPIC, [after, PAGE, topic]);
    yield rows.filter(({ key }) => !key.startsWith(MARKERS_KEY));
    if (rows.length < PAGE) return;
    after = rows.at(-1)!.object_id;
  }
}

/** The object's row as it is now; undefined when nothing refers to the object any more. */
export async function objectRow(ask: Ask, objectId: number): Promise<ObjectRow | undefined> {
  const [row] = await ask<ObjectRow>(
    `SELECT ${OBJECT_COLUMNS} FROM log_objects o WHERE o.object_id = $1 AND ${REFERRED}`,
    [objectId],
  );
  return row;
}

/** A partition's share of a sealed object. */
export interface ShareRow {
  readonly partition_id: number;
  readonly base_offset: number;
  readonly end_offset: number;
  readonly index_position: number;
  readonly index_length: number;
  readonly bytes: number;
  readonly record_count: number;
  readonly run_count: number;
}

/** All shares of one object, by (partition, offset). */
export function sharesOf(ask: Ask, objectId: number): Promise<readonly ShareRow[]> {
  return ask<ShareRow>(
    `SELECT partition_id, base_offset, end_offset, index_position, index_length, bytes, record_count, run_count
     FROM object_entries WHERE object_id = $1 ORDER BY partition_id, base_offset`,
    [objectId],
  );
}

interface FlushRecord {
  readonly commit_number: number;
  readonly packed_index: Uint8Array;
}

export interface FlushIndex {
  readonly commitNumber: number;
  readonly index: PackedIndex;
}

const toIndex = ({ commit_number, packed_index }: FlushRecord): FlushIndex => ({
  commitNumber: commit_number,
  index: openIndex(new Uint8Array(packed_index)),
});

/** The indexes of flushes whose objects aren't sealed, in commit order. */
export function openFlushes(ask: Ask): AsyncGenerator<FlushIndex> {
  return flushes((after) =>
    ask<FlushRecord>(
      `SELECT f.commit_number, f.packed_index FROM flushes f JOIN log_objects o ON o.object_id = f.object_id
       WHERE o.state = 'open' AND f.commit_number > $1 ORDER BY f.commit_number LIMIT $2`,
      [after, FLUSHES_AT_ONCE],
    ),
  );
}

/** The indexes of one object's flushes, in commit order. */
export function flushesOf(ask: Ask, objectId: number): AsyncGenerator<FlushIndex> {
  return flushes((after) =>
    ask<FlushRecord>(
      `SELECT commit_number, packed_index FROM flushes
       WHERE object_id = $1 AND commit_number > $2 ORDER BY commit_number LIMIT $3`,
      [objectId, after, FLUSHES_AT_ONCE],
    ),
  );
}

async function* flushes(
  page: (after: number) => Promise<readonly FlushRecord[]>,
): AsyncGenerator<FlushIndex> {
  for (let after = 0; ; ) {
    const rows = await page(after);
    for (const row of rows) yield toIndex(row);
    if (rows.length < FLUSHES_AT_ONCE) return;
    after = rows.at(-1)!.commit_number;
  }
}

/** A partition's log and what a table has committed of it. */
export interface PartitionRow {
  readonly partition_id: number;
  readonly log_start: number;
  readonly high_watermark: number;
  /** Null for a partition whose topic has no row. */
  readonly topic: string | null;
  readonly partition_index: number | null;
  /** Null: no table. */
  readonly committed_end: number | null;
}

const PARTITIONS = `SELECT p.partition_id, p.log_start, p.high_watermark, t.name AS topic, q.partition_index,
    c.committed_end
  FROM log_partitions p LEFT JOIN partitions q ON q.partition_id = p.partition_id
    LEFT JOIN topics t ON t.topic_id = q.topic_id
    LEFT JOIN table_positions c ON c.topic_id = q.topic_id AND c.partition_index = q.partition_index`;

/** At most `limit` partitions after one, by id. */
export function partitionsAfter(
  ask: Ask,
  {
    after,
    limit,
    topic,
  }: { readonly after: number; readonly limit: number; readonly topic?: string },
): Promise<readonly PartitionRow[]> {
  if (topic === undefined)
    return ask<PartitionRow>(
      `${PARTITIONS} WHERE p.partition_id > $1 ORDER BY p.partition_id LIMIT $2`,
      [after, limit],
    );
  return ask<PartitionRow>(
    `${PARTITIONS} WHERE p.partition_id > $1 AND t.name = $3 ORDER BY p.partition_id LIMIT $2`,
    [after, limit, topic],
  );
}

/** An entry as far as tiling goes. */
export interface EntryRow {
  readonly partition_id: number;
  readonly base_offset: number;
  readonly end_offset: number;
  readonly object_id: number;
  /** Null when the object has no row. */
  readonly state: string | null;
}

/** Entries of the partitions `[first, last]`, by (partition, offset). */
export async function* entriesOf(
  ask: Ask,
  first: number,
  last: number,
): AsyncGenerator<readonly EntryRow[]> {
  let [partition, offset] = [first, -1];
  for (;;) {
    const rows = await ask<EntryRow>(
      `SELECT e.partition_id, e.base_offset, e.end_offset, e.object_id, o.state
       FROM object_entries e LEFT JOIN log_objects o ON o.object_id = e.object_id
       WHERE (e.partition_id, e.base_offset) > ($1, $2) AND e.partition_id <= $3
       ORDER BY e.partition_id, e.base_offset LIMIT $4`,
      [partition, offset, last, PAGE],
    );
    yield rows;
    if (rows.length < PAGE) return;
    ({ partition_id: partition, base_offset: offset } = rows.at(-1)!);
  }
}
