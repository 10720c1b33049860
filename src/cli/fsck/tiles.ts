// Whether the entries of each partition tile its log (L4): from its log start to its end without hole or overlap, whatever
// compaction by key took, since rows cover the offsets of what they replaced. Rows of sealed objects come first, then
// the runs of flushes whose objects aren't sealed. Each page of partitions is seen as of one moment, so a commit, a seal
// or a swap meanwhile is no finding. Not for: the bytes (objects.ts).
import { endOffset, partitionsIn } from '../../metadata/packed-index.ts';
import type { Ask, AskedMetadata } from './metadata.ts';
import { entriesOf, openFlushes, type PartitionRow, partitionsAfter } from './rows.ts';

export interface TileFault {
  readonly kind: 'hole' | 'ahead';
  readonly partitionId: number;
  /** For people: `orders 3 (partition id 17)`. */
  readonly partition: string;
  readonly text: string;
}

export interface Tiled {
  readonly partitions: number;
  readonly faults: readonly TileFault[];
}

export interface TileOptions {
  readonly topic?: string;
  /** Awaited before what looks wrong is looked at again. */
  readonly pause: () => Promise<void>;
  /** Faults kept; more are counted no further. */
  readonly maxFaults: number;
}

/** Flush rows are gone through once for so many partitions. */
const PARTITIONS_AT_ONCE = 10_000;

/** What is known of one partition while its runs come by. */
export class Tiling {
  readonly row: PartitionRow;
  /** Up to here the log is tiled. */
  end: number;
  fault: string | undefined;
  readonly #first: { offset: number | undefined } = { offset: undefined };

  constructor(row: PartitionRow) {
    this.row = row;
    this.end = row.log_start;
  }

  /** Runs and rows come by ascending offset. What lies whole below the log start has expired and says nothing. */
  add(base: number, end: number): void {
    if (end <= this.row.log_start || this.fault !== undefined) return;
    const isFirst = this.#first.offset === undefined;
    this.#first.offset ??= base;
    if (base > this.end) this.fault = `nothing holds offsets ${this.end} to ${base - 1}`;
    else if (!isFirst && base < this.end)
      this.fault = `offsets from ${base} on are held twice, up to ${Math.min(end, this.end) - 1}`;
    this.end = Math.max(this.end, end);
  }

  /** After the last run. `exact`: the row says where the log ends, else at least where. */
  finish(exact: boolean): void {
    const { high_watermark: high } = this.row;
    if (this.fault !== undefined) return;
    if (this.end < high) this.fault = `nothing holds offsets ${this.end} to ${high - 1}`;
    else if (exact && this.end > high)
      this.fault = `entries hold offsets up to ${this.end - 1}, though the high watermark is ${high}`;
  }
}

/** Looks at all partitions; what is wrong at a second look, too, is told. */
export async function checkTiles(metadata: AskedMetadata, options: TileOptions): Promise<Tiled> {
  const faults: TileFault[] = [];
  let partitions = 0;
  for (let after = 0; ; ) {
    const look = () => metadata.snapshot((ask) => checkPage(ask, metadata, { after, ...options }));
    const page = await look();
    partitions += page.partitions;
    if (page.faults.length > 0) {
      await options.pause();
      const again = new Set((await look()).faults.map(identity));
      faults.push(...page.faults.filter((fault) => again.has(identity(fault))));
    }
    if (page.partitions < PARTITIONS_AT_ONCE || faults.length > options.maxFaults) break;
    after = page.last;
  }
  return { partitions, faults };
}

const identity = ({ kind, partitionId }: TileFault): string => `${kind} ${partitionId}`;

async function checkPage(
  ask: Ask,
  { exactEnds }: AskedMetadata,
  { after, topic }: { readonly after: number; readonly topic?: string },
): Promise<Tiled & { readonly last: number }> {
  const page = { after, limit: PARTITIONS_AT_ONCE, ...(topic === undefined ? {} : { topic }) };
  const rows = await partitionsAfter(ask, page);
  const tilings = new Map(rows.map((row) => [row.partition_id, new Tiling(row)]));
  const ranges = topic === undefined ? wholeRange(rows) : rows.map((row) => [row, row] as const);
  for (const [first, last] of ranges)
    await addEntries(ask, tilings, [first.partition_id, last.partition_id]);
  if (rows.length > 0) await addFlushes(ask, tilings);
  const faults: TileFault[] = [];
  for (const tiling of tilings.values()) {
    tiling.finish(exactEnds);
    faults.push(...faultsOf(tiling));
  }
  return { partitions: rows.length, faults, last: rows.at(-1)?.partition_id ?? after };
}

const wholeRange = (rows: readonly PartitionRow[]) =>
  rows.length === 0 ? [] : [[rows[0]!, rows.at(-1)!] as const];

async function addEntries(
  ask: Ask,
  tilings: ReadonlyMap<number, Tiling>,
  [first, last]: readonly [number, number],
): Promise<void> {
  for await (const entries of entriesOf(ask, first, last)) {
    for (const entry of entries) {
      const tiling = tilings.get(entry.partition_id);
      if (tiling === undefined) continue;
      tiling.add(entry.base_offset, entry.end_offset);
      if (entry.state === 'sealed' || entry.end_offset <= tiling.row.log_start) continue;
      // L10.
      tiling.fault ??= `offsets from ${entry.base_offset} on lie in object ${entry.object_id}, which is ${entry.state ?? 'unknown'}`;
    }
  }
}

async function addFlushes(ask: Ask, tilings: ReadonlyMap<number, Tiling>): Promise<void> {
  for await (const { index } of openFlushes(ask)) {
    if (!partitionsIn(index).some((id) => tilings.has(id))) continue;
    for (let n = 0; n < index.count; n += 1)
      tilings.get(index.partitionIds[n]!)?.add(index.baseOffsets[n]!, endOffset(index, n));
  }
}

function faultsOf({ row, fault, end }: Tiling): TileFault[] {
  const { partition_id: partitionId, committed_end: committed } = row;
  const partition = partitionName(row);
  const found: TileFault[] = [];
  if (fault !== undefined) found.push({ kind: 'hole', partitionId, partition, text: fault });
  const high = Math.max(end, row.high_watermark);
  if (committed !== null && committed > high) {
    const text = `the table has offsets below ${committed}, the log ends at ${high}`;
    found.push({ kind: 'ahead', partitionId, partition, text });
  }
  return found;
}

function partitionName({ topic, partition_index, partition_id }: PartitionRow): string {
  return topic === null
    ? `partition id ${partition_id}`
    : `${topic} ${partition_index} (partition id ${partition_id})`;
}
