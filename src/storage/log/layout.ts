// Lays a flush out as blocks grouped by partition, and gathers its bytes for one vectored write: block headers from
// a small scratch buffer, batches straight from the slab, small ones joined by copying (a slice costs more than 4 KiB
// of memcpy). Pure but for the columns' positions, which it fills in.
import { crc32c } from '@node-rs/crc32';
import type { BatchColumns } from '../../metadata/batch-columns.ts';
import { BLOCK_HEADER_BYTES, writeBlockHeader } from './wal-format.ts';

/** Batches shorter than this are copied together. */
const JOIN_BELOW_BYTES = 4096;
const CRC_AT = 17;

export interface LayoutOptions {
  readonly batches: BatchColumns;
  /** Ordinals grouped by partition (groupByPartition). */
  readonly order: Uint32Array;
  readonly slab: Buffer;
  /** Where in the object the first block begins. */
  readonly position: number;
  readonly clusterTag: Uint8Array;
  readonly generation: number;
  readonly flushId: Uint8Array;
}

export interface FlushLayout {
  /** The bytes of all blocks, end to end. */
  readonly parts: readonly Uint8Array[];
  readonly bytes: number;
}

/** Fills `positions` and `blockPositions` of the columns and returns what is to be written. */
export function layoutFlush(options: LayoutOptions): FlushLayout {
  const { batches, order } = options;
  const gather = new Gather(options);
  let position = options.position;
  for (let start = 0; start < order.length; ) {
    let end = start + 1;
    const partitionId = batches.partitionIds[order[start]!];
    while (end < order.length && batches.partitionIds[order[end]!] === partitionId) end += 1;
    position = gather.block(order.subarray(start, end), position);
    start = end;
  }
  return { parts: gather.finish(), bytes: position - options.position };
}

class Gather {
  readonly #options: LayoutOptions;
  readonly #parts: Uint8Array[] = [];
  #scratch: Buffer;
  /** The scratch bytes `[#from, #to)` are not yet in a part. */
  #from = 0;
  #to = 0;
  #crcs = Buffer.allocUnsafe(64);

  constructor(options: LayoutOptions) {
    this.#options = options;
    this.#scratch = Buffer.allocUnsafe(scratchBytes(options));
  }

  /** Adds the batches of one partition; returns the position after them. */
  block(ordinals: Uint32Array, blockPosition: number): number {
    const { batches, slab } = this.#options;
    const headerAt = this.#to;
    this.#to += BLOCK_HEADER_BYTES;
    if (this.#crcs.length < ordinals.length * 4)
      this.#crcs = Buffer.allocUnsafe(ordinals.length * 8);
    let position = blockPosition + BLOCK_HEADER_BYTES;
    for (let i = 0; i < ordinals.length; i += 1) {
      const n = ordinals[i]!;
      const at = batches.slabOffsets[n]!;
      const length = batches.lengths[n]!;
      batches.positions[n] = position;
      batches.blockPositions[n] = blockPosition;
      slab.copy(this.#crcs, i * 4, at + CRC_AT, at + CRC_AT + 4);
      this.#add(at, length);
      position += length;
    }
    writeBlockHeader(this.#scratch, headerAt, {
      kind: 'block',
      clusterId: this.#options.clusterTag,
      generation: this.#options.generation,
      partitionId: batches.partitionIds[ordinals[0]!]!,
      position: blockPosition,
      payloadLength: position - blockPosition - BLOCK_HEADER_BYTES,
      batchCount: ordinals.length,
      payloadChecksum: crc32c(this.#crcs.subarray(0, ordinals.length * 4)),
      flushId: this.#options.flushId,
    });
    return position;
  }

  #add(at: number, length: number): void {
    const { slab } = this.#options;
    if (length < JOIN_BELOW_BYTES) {
      slab.copy(this.#scratch, this.#to, at, at + length);
      this.#to += length;
      return;
    }
    this.#cut();
    this.#parts.push(slab.subarray(at, at + length));
  }

  #cut(): void {
    if (this.#to === this.#from) return;
    this.#parts.push(this.#scratch.subarray(this.#from, this.#to));
    this.#from = this.#to;
  }

  finish(): readonly Uint8Array[] {
    this.#cut();
    return this.#parts;
  }
}

/** Headers and short batches. */
function scratchBytes({ batches, order }: LayoutOptions): number {
  let bytes = 0;
  let previous = -1;
  for (let i = 0; i < order.length; i += 1) {
    const n = order[i]!;
    if (batches.partitionIds[n] !== previous) {
      previous = batches.partitionIds[n]!;
      bytes += BLOCK_HEADER_BYTES;
    }
    if (batches.lengths[n]! < JOIN_BELOW_BYTES) bytes += batches.lengths[n]!;
  }
  return bytes;
}
