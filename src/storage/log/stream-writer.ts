// Fills a laid-out stream object: reads each source once in order of its positions, in large ranges, checks every
// block and every batch's CRC (damage must not spread), and copies runs to their places. One copy per byte.
import { crc32c } from '@node-rs/crc32';
import { isMarker } from '../../metadata/packed-index.ts';
import { batchEnd, storedCrc } from '../../protocol/record-batch.ts';
import { checkEntries } from './block-check.ts';
import type { ByteSource } from './byte-source.ts';
import type { EntryColumns, ObjectRef } from './entries.ts';
import { planRanges, type Range } from './plan.ts';
import { reading } from './set-aside.ts';
import type { RunMove, StreamLayout } from './stream-layout.ts';
import { BLOCK_HEADER_BYTES, buildFooter, writeBlockHeader } from './wal-format.ts';

/** Gaps this small are read along. */
const GAP_BYTES = 64 * 1024;
/** Headers written before the event loop gets its turn. */
const BLOCKS_AT_ONCE = 256;

export interface FillOptions {
  readonly source: ByteSource;
  readonly clusterTag: Uint8Array;
  /** Memory for so many bytes of the layout's data, which the body then lies in. */
  readonly memory: (bytes: number) => Uint8Array;
  /** Sources are read in ranges this large. */
  readonly rangeBytes: number;
  /** Sources read at once. */
  readonly parallel: number;
}

interface Filling extends Omit<FillOptions, 'memory'> {
  readonly buffer: Uint8Array;
}

/** The runs of one source by ascending position. */
interface SourceRuns extends EntryColumns {
  readonly object: ObjectRef;
  readonly partitionIds: Uint32Array;
  readonly targets: Uint32Array;
}

/** Fills the memory and returns the object's body in parts. @throws FloeError as ByteSource, `corrupt`. */
export async function fillStream(
  layout: StreamLayout,
  options: FillOptions,
): Promise<readonly Uint8Array[]> {
  const buffer = options.memory(layout.footerPosition);
  const filling = { ...options, buffer };
  await copySources(bySource(layout.moves), filling);
  await writeHeaders(layout, filling);
  const identity = { clusterId: options.clusterTag, generation: 0 };
  const footer = buildFooter(layout.footerPosition, layout.index.bytes, identity);
  return [buffer.subarray(0, layout.footerPosition), footer];
}

/** What filling a stream object reads of one source: the ranges of its runs, each one call. */
export interface SourceReads {
  readonly object: ObjectRef;
  readonly ranges: readonly Range[];
}

/** All read calls that {@link fillStream} makes. Pure. */
export function sourceReads({ moves }: StreamLayout, rangeBytes: number): SourceReads[] {
  return bySource(moves).map((runs) => ({
    object: runs.object,
    ranges: rangesOf(runs, rangeBytes),
  }));
}

function rangesOf(runs: SourceRuns, rangeBytes: number): Range[] {
  return planRanges(runs, [0, runs.positions.length], { maxGap: GAP_BYTES, maxRange: rangeBytes });
}

function bySource(moves: readonly RunMove[]): SourceRuns[] {
  const groups = new Map<number, RunMove[]>();
  for (const move of moves) {
    const { objectId } = move.share.object;
    const group = groups.get(objectId);
    if (group === undefined) groups.set(objectId, [move]);
    else group.push(move);
  }
  return [...groups.values()].map(toRuns);
}

function toRuns(moves: RunMove[]): SourceRuns {
  const positionOf = ({ share, entry }: RunMove) => share.index.positions[entry]!;
  moves.sort((a, b) => positionOf(a) - positionOf(b));
  const column = (pick: (move: RunMove) => number) => Uint32Array.from(moves, pick);
  return {
    object: moves[0]!.share.object,
    positions: column(positionOf),
    lengths: column(({ share, entry }) => share.index.lengths[entry]!),
    blockPositions: column(({ share, entry }) => share.index.blockPositions[entry]!),
    partitionIds: column(({ share }) => share.partitionId),
    targets: column(({ position }) => position),
    // Not looked at: offsets were settled by the layout.
    baseOffsets: [],
    offsetSpans: [],
    maxTimestamps: [],
    kinds: [],
  };
}

async function copySources(sources: readonly SourceRuns[], options: Filling): Promise<void> {
  const waiting = [...sources];
  const copy = async () => {
    const scratch = new Uint8Array(new SharedArrayBuffer(options.rangeBytes));
    for (let runs = waiting.shift(); runs !== undefined; runs = waiting.shift())
      await reading(runs.object, () => copyRuns(runs, options, scratch));
  };
  const copies = Array.from({ length: Math.min(options.parallel, sources.length) }, copy);
  // All have ended before the first error goes on: they write into memory that is used again.
  const ended = await Promise.allSettled(copies);
  for (const result of ended) if (result.status === 'rejected') throw result.reason;
}

async function copyRuns(runs: SourceRuns, options: Filling, scratch: Uint8Array): Promise<void> {
  for (const range of rangesOf(runs, options.rangeBytes)) {
    const bytes =
      range.length <= scratch.length
        ? scratch.subarray(0, range.length)
        : new Uint8Array(new SharedArrayBuffer(range.length));
    const read = [{ position: range.position, into: bytes }];
    await options.source.read(runs.object, read, { purpose: 'maintenance' });
    copyRange(bytes, runs, range, options);
  }
}

function copyRange(
  bytes: Uint8Array,
  runs: SourceRuns,
  range: Range,
  { clusterTag, buffer }: Filling,
): void {
  const { object } = runs;
  const { position, start, end } = range;
  const partitionOf = (n: number) => runs.partitionIds[n]!;
  checkEntries(
    { object, position, bytes, clusterTag },
    { columns: runs, start, end, partitionOf, deep: true },
  );
  for (let n = range.start; n < range.end; n += 1) {
    const from = runs.positions[n]! - range.position;
    buffer.set(bytes.subarray(from, from + runs.lengths[n]!), runs.targets[n]!);
  }
}

async function writeHeaders(
  { index }: StreamLayout,
  { buffer, clusterTag }: Filling,
): Promise<void> {
  const flushId = new Uint8Array(16);
  for (let n = 0; n < index.count; n += 1) {
    if (n % BLOCKS_AT_ONCE === BLOCKS_AT_ONCE - 1)
      await new Promise((resolve) => setImmediate(resolve));
    if (isMarker(index.kinds[n]!)) continue;
    const position = index.blockPositions[n]!;
    const payloadLength = index.lengths[n]!;
    const start = position + BLOCK_HEADER_BYTES;
    writeBlockHeader(buffer, position, {
      kind: 'block',
      clusterId: clusterTag,
      generation: 0,
      partitionId: index.partitionIds[n]!,
      position,
      payloadLength,
      batchCount: index.batchCounts[n]!,
      payloadChecksum: checksumOf(
        buffer.subarray(start, start + payloadLength),
        index.batchCounts[n]!,
      ),
      flushId,
    });
  }
}

/** CRC32C over the CRCs of the payload's batches, as layout.ts makes it. */
function checksumOf(payload: Uint8Array, batchCount: number): number {
  const crcs = Buffer.allocUnsafe(batchCount * 4);
  let n = 0;
  for (let at = 0, end: number; (end = batchEnd(payload, at)) !== -1; at = end) {
    crcs.writeUInt32BE(storedCrc(payload, at), n * 4);
    n += 1;
  }
  return crc32c(crcs.subarray(0, n * 4));
}
