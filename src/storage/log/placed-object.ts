// A stream object that is filled batch by batch with what compaction by key keeps: blocks of a few hundred KiB of one
// partition each, batches with their own base offsets, so that gaps between them cost nothing and readers send them
// as they are. Rows of the new object cover the offsets of the rows they replace, gaps included: a partition's rows
// tile its log. Pure but for its memory. Format: wal-format.ts, generation 0. Not for: which batches stay.
import { crc32c } from '@node-rs/crc32';
import { assert } from '../../base/assert.ts';
import type { NewObjectEntry, ObjectEntry } from '../../metadata/log.ts';
import { allocateIndex, EntryKind } from '../../metadata/packed-index.ts';
import { batchEnd, storedCrc } from '../../protocol/record-batch.ts';
import type { CleanedRange } from './range-cleaner.ts';
import { BLOCK_HEADER_BYTES, buildFooter, writeBlockHeader } from './wal-format.ts';

interface Block {
  readonly partitionId: number;
  /** Of its header. */
  readonly position: number;
  readonly baseOffset: number;
  length: number;
  endOffset: number;
  records: number;
  batches: number;
  /** Running maximum of the partition. */
  maxTimestamp: number;
}

/** Rows of one partition that follow one another and become one. */
export interface RowGroup {
  readonly partitionId: number;
  readonly rows: readonly ObjectEntry[];
  /** Largest timestamp of the partition before the group. */
  readonly runningMax: number;
}

/** A group while its batches are added, or one that stays. */
interface OpenGroup {
  readonly group: RowGroup;
  readonly firstBlock: number;
  /** Length of the object before it. */
  readonly start: number;
  changed: boolean;
  /** Running maximum timestamp so far. */
  maxTimestamp: number;
}

export interface PlacedObjectOptions {
  readonly blockBytes: number;
  readonly clusterTag: Uint8Array;
}

const FIRST_BYTES = 64 * 1024;

export class PlacedObject {
  readonly #options: PlacedObjectOptions;
  #buffer = new Uint8Array(FIRST_BYTES);
  #length = 0;
  readonly #blocks: Block[] = [];
  readonly #groups: { readonly group: RowGroup; readonly entry: Omit<NewObjectEntry, At> }[] = [];
  #open: OpenGroup | undefined;

  constructor(options: PlacedObjectOptions) {
    this.#options = options;
  }

  /** Bytes so far. */
  get bytes(): number {
    return this.#length;
  }

  /** Groups that give way. */
  get groups(): readonly RowGroup[] {
    return this.#groups.map(({ group }) => group);
  }

  /** What is added next replaces the rows of `group`; groups come by (partition, offset). */
  begin(group: RowGroup): void {
    assert(this.#open === undefined, 'one group at a time');
    const last = this.#groups.at(-1)?.entry;
    const { partitionId, rows, runningMax } = group;
    assert(
      last === undefined ||
        last.partitionId < partitionId ||
        (last.partitionId === partitionId && last.endOffset <= rows[0]!.baseOffset),
      'L2: rows of a partition ascend',
    );
    this.#open = {
      group,
      firstBlock: this.#blocks.length,
      start: this.#length,
      changed: false,
      maxTimestamp: runningMax,
    };
  }

  /** Adds batches of the open group. */
  add(cleaned: CleanedRange): void {
    const open = this.#open;
    assert(open !== undefined, 'batches belong to a group');
    open.changed ||= cleaned.changed;
    this.#reserve(cleaned.bytes.length + cleaned.count * BLOCK_HEADER_BYTES);
    let from = 0;
    for (let n = 0; n < cleaned.count; n += 1) {
      const length = cleaned.lengths[n]!;
      open.maxTimestamp = Math.max(open.maxTimestamp, cleaned.maxTimestamps[n]!);
      const block = this.#blockFor(open, cleaned.baseOffsets[n]!, length);
      this.#buffer.set(cleaned.bytes.subarray(from, from + length), this.#length);
      this.#length += length;
      from += length;
      block.length += length;
      block.batches += 1;
      block.records += cleaned.records[n]!;
      block.endOffset = cleaned.endOffsets[n]!;
      block.maxTimestamp = open.maxTimestamp;
    }
  }

  /**
   * Ends the group. One in which every batch stayed as it was is taken back: its rows stay.
   * @returns bytes of its rows from now on, and the running maximum timestamp at its end.
   */
  end(): { readonly bytes: number; readonly maxTimestamp: number } {
    const open = this.#open;
    assert(open !== undefined, 'a group was begun');
    this.#open = undefined;
    const { group, changed, firstBlock, start } = open;
    if (!changed) {
      this.#blocks.length = firstBlock;
      this.#length = start;
      const bytes = group.rows.reduce((sum, row) => sum + row.bytes, 0);
      return { bytes, maxTimestamp: Math.max(open.maxTimestamp, group.rows.at(-1)!.maxTimestamp) };
    }
    const entry = this.#entryOf(open);
    this.#groups.push({ group, entry });
    return entry;
  }

  #blockFor({ group, firstBlock }: OpenGroup, baseOffset: number, length: number): Block {
    const last = this.#blocks.at(-1);
    const { partitionId } = group;
    const isOpen = last !== undefined && this.#blocks.length > firstBlock;
    if (isOpen) assert(baseOffset >= last.endOffset, 'L2: batches of a partition ascend');
    if (isOpen && last.length + length <= this.#options.blockBytes) return last;
    const block = {
      partitionId,
      position: this.#length,
      baseOffset,
      length: 0,
      endOffset: baseOffset,
      records: 0,
      batches: 0,
      maxTimestamp: -1,
    };
    this.#length += BLOCK_HEADER_BYTES;
    this.#blocks.push(block);
    return block;
  }

  #reserve(bytes: number): void {
    if (this.#length + bytes <= this.#buffer.length) return;
    const grown = new Uint8Array(Math.max(this.#length + bytes, this.#buffer.length * 2));
    grown.set(this.#buffer.subarray(0, this.#length));
    this.#buffer = grown;
  }

  /** The object's body in parts, and its rows. Nothing may be added afterwards. */
  finish(): { readonly body: readonly Uint8Array[]; readonly entries: readonly NewObjectEntry[] } {
    const index = this.#index();
    for (const block of this.#blocks) this.#writeHeader(block);
    const identity = { clusterId: this.#options.clusterTag, generation: 0 };
    const footer = buildFooter(this.#length, index, identity);
    const indexPosition = this.#length + BLOCK_HEADER_BYTES;
    const at = { indexPosition, indexLength: index.length };
    const entries = this.#groups.map(({ entry }) => ({ ...entry, ...at }));
    return { body: [this.#buffer.subarray(0, this.#length), footer], entries };
  }

  #index(): Uint8Array {
    const index = allocateIndex(this.#blocks.length);
    for (const [n, block] of this.#blocks.entries()) {
      index.partitionIds[n] = block.partitionId;
      index.baseOffsets[n] = block.baseOffset;
      index.offsetSpans[n] = block.endOffset - block.baseOffset;
      index.maxTimestamps[n] = block.maxTimestamp;
      index.positions[n] = block.position + BLOCK_HEADER_BYTES;
      index.lengths[n] = block.length;
      index.recordCounts[n] = block.records;
      index.batchCounts[n] = block.batches;
      index.blockPositions[n] = block.position;
      index.kinds[n] = EntryKind.PLACED;
    }
    return index.bytes;
  }

  #writeHeader({ partitionId, position, length, batches }: Block): void {
    const start = position + BLOCK_HEADER_BYTES;
    writeBlockHeader(this.#buffer, position, {
      kind: 'block',
      clusterId: this.#options.clusterTag,
      generation: 0,
      partitionId,
      position,
      payloadLength: length,
      batchCount: batches,
      payloadChecksum: payloadChecksum(this.#buffer.subarray(start, start + length), batches),
      flushId: new Uint8Array(16),
    });
  }

  #entryOf({ group, firstBlock, maxTimestamp }: OpenGroup): Omit<NewObjectEntry, At> {
    const blocks = this.#blocks.slice(firstBlock);
    const { partitionId, rows } = group;
    const { endOffset } = rows.at(-1)!;
    assert(
      blocks.at(-1)?.endOffset === endOffset,
      'L4: the last batch of a row stays, so that its end can be read',
    );
    return {
      partitionId,
      baseOffset: rows[0]!.baseOffset,
      endOffset,
      bytes: blocks.reduce((sum, block) => sum + block.length, 0),
      recordCount: blocks.reduce((sum, block) => sum + block.records, 0),
      runCount: blocks.length,
      maxTimestamp,
      commitNumber: Math.max(...rows.map((row) => row.commitNumber)),
    };
  }
}

type At = 'indexPosition' | 'indexLength';

/** CRC32C over the CRCs of the payload's batches, as layout.ts makes it. */
export function payloadChecksum(payload: Uint8Array, batchCount: number): number {
  const crcs = Buffer.allocUnsafe(batchCount * 4);
  let n = 0;
  for (let at = 0, end: number; (end = batchEnd(payload, at)) !== -1; at = end) {
    crcs.writeUInt32BE(storedCrc(payload, at), n * 4);
    n += 1;
  }
  return crc32c(crcs.subarray(0, n * 4));
}
