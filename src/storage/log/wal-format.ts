// What the bytes of a log object look like, local WAL file or object of a store: blocks, then a footer.
// A block is a 64-byte header and the batches of one partition from one flush, end to end, raw as produced.
// The footer is a header of the same shape followed by the packed index of the whole object (metadata/packed-index.ts);
// an object's last 16 bytes say where it begins, so an object explains itself without the metadata store.
// Readers check a header *after* reading, against what they expected: a stale plan never yields another topic's bytes.
// Pure: no I/O here.
import { createHash } from 'node:crypto';
import { crc32c } from '@node-rs/crc32';
import { assert } from '../../base/assert.ts';
import { FloeError } from '../../base/error.ts';

export const BLOCK_HEADER_BYTES = 64;
export const TRAILER_BYTES = 16;

/** "FLB1", "FLF1", "FLT1" read as little-endian words. */
const BLOCK_MAGIC = 0x31424c46;
const FOOTER_MAGIC = 0x31464c46;
const TRAILER_MAGIC = 0x31544c46;

/** The 16 bytes that stand for a cluster id (any text) in headers. */
export function clusterTag(clusterId: string): Uint8Array {
  return createHash('sha256').update(clusterId).digest().subarray(0, 16);
}

/** What a header says; a footer's partition id and flush id are zero. */
export interface BlockHeader {
  readonly kind: 'block' | 'footer';
  /** 16 bytes: {@link clusterTag}. */
  readonly clusterId: Uint8Array;
  /** Raised each time a local file is used anew; 0 in objects of a store. */
  readonly generation: number;
  readonly partitionId: number;
  /** Where this header begins in the object. */
  readonly position: number;
  /** Bytes after the header. */
  readonly payloadLength: number;
  readonly batchCount: number;
  /** CRC32C over the payload's batch CRCs (blocks) or over the payload itself (footer). */
  readonly payloadChecksum: number;
  /** 16 bytes. */
  readonly flushId: Uint8Array;
}

/** Writes `header` at `to[at…at+64)`. */
export function writeBlockHeader(to: Uint8Array, at: number, header: BlockHeader): void {
  assert(header.clusterId.length === 16 && header.flushId.length === 16, 'ids have 16 bytes');
  const view = new DataView(to.buffer, to.byteOffset + at, BLOCK_HEADER_BYTES);
  view.setUint32(0, header.kind === 'block' ? BLOCK_MAGIC : FOOTER_MAGIC, true);
  to.set(header.clusterId, at + 8);
  view.setUint32(24, header.generation, true);
  view.setUint32(28, header.partitionId, true);
  view.setUint32(32, header.position, true);
  view.setUint32(36, header.payloadLength, true);
  view.setUint32(40, header.batchCount, true);
  view.setUint32(44, header.payloadChecksum, true);
  to.set(header.flushId, at + 48);
  view.setUint32(4, crc32c(to.subarray(at + 8, at + BLOCK_HEADER_BYTES)), true);
}

/** The header at `from[at…at+64)`, or undefined when no intact one is there. */
export function readBlockHeader(from: Uint8Array, at = 0): BlockHeader | undefined {
  if (at + BLOCK_HEADER_BYTES > from.length) return undefined;
  const view = new DataView(from.buffer, from.byteOffset + at, BLOCK_HEADER_BYTES);
  const magic = view.getUint32(0, true);
  if (magic !== BLOCK_MAGIC && magic !== FOOTER_MAGIC) return undefined;
  const checked = from.subarray(at + 8, at + BLOCK_HEADER_BYTES);
  if (crc32c(checked) !== view.getUint32(4, true)) return undefined;
  return {
    kind: magic === BLOCK_MAGIC ? 'block' : 'footer',
    clusterId: new Uint8Array(from.subarray(at + 8, at + 24)),
    generation: view.getUint32(24, true),
    partitionId: view.getUint32(28, true),
    position: view.getUint32(32, true),
    payloadLength: view.getUint32(36, true),
    batchCount: view.getUint32(40, true),
    payloadChecksum: view.getUint32(44, true),
    flushId: new Uint8Array(from.subarray(at + 48, at + 64)),
  };
}

/** What a reader knows about a block before it reads. */
export interface ExpectedBlock {
  readonly clusterId: Uint8Array;
  readonly generation: number;
  readonly partitionId: number;
  readonly position: number;
}

/** @throws FloeError `corrupt` when the header at `from[at…]` isn't the expected block's. */
export function checkBlock(from: Uint8Array, at: number, expected: ExpectedBlock): BlockHeader {
  const header = readBlockHeader(from, at);
  if (
    header === undefined ||
    header.kind !== 'block' ||
    header.generation !== expected.generation ||
    header.partitionId !== expected.partitionId ||
    header.position !== expected.position ||
    Buffer.compare(header.clusterId, expected.clusterId) !== 0
  ) {
    throw new FloeError(
      'corrupt',
      `no block of partition ${expected.partitionId}, generation ${expected.generation} at ${expected.position}`,
    );
  }
  return header;
}

/**
 * As {@link checkBlock} for readers in a hurry: makes no objects.
 * @returns where the payload ends in `from`, or −1 when the header isn't the expected block's.
 */
export function expectedBlockEnd(from: Uint8Array, at: number, expected: ExpectedBlock): number {
  if (at < 0 || at + BLOCK_HEADER_BYTES > from.length) return -1;
  const intact =
    word(from, at) === BLOCK_MAGIC &&
    word(from, at + 24) === expected.generation &&
    word(from, at + 28) === expected.partitionId &&
    word(from, at + 32) === expected.position;
  if (!intact) return -1;
  for (let n = 0; n < 16; n += 1) if (from[at + 8 + n] !== expected.clusterId[n]) return -1;
  if (crc32c(from.subarray(at + 8, at + BLOCK_HEADER_BYTES)) !== word(from, at + 4)) return -1;
  return at + BLOCK_HEADER_BYTES + word(from, at + 36);
}

function word(from: Uint8Array, at: number): number {
  return (from[at]! | (from[at + 1]! << 8) | (from[at + 2]! << 16) | (from[at + 3]! << 24)) >>> 0;
}

/** The last 16 bytes of an object: magic, position of the footer header, its whole length, checksum. */
function writeTrailer(to: Uint8Array, at: number, footerPosition: number, length: number): void {
  const view = new DataView(to.buffer, to.byteOffset + at, TRAILER_BYTES);
  view.setUint32(0, TRAILER_MAGIC, true);
  view.setUint32(4, footerPosition, true);
  view.setUint32(8, length, true);
  view.setUint32(12, crc32c(to.subarray(at, at + 12)), true);
}

/** Where the footer lies, from an object's last 16 bytes; undefined when they are no trailer. */
export function readTrailer(
  from: Uint8Array,
): { readonly position: number; readonly length: number } | undefined {
  if (from.length < TRAILER_BYTES) return undefined;
  const at = from.length - TRAILER_BYTES;
  const view = new DataView(from.buffer, from.byteOffset + at, TRAILER_BYTES);
  if (view.getUint32(0, true) !== TRAILER_MAGIC) return undefined;
  if (crc32c(from.subarray(at, at + 12)) !== view.getUint32(12, true)) return undefined;
  return { position: view.getUint32(4, true), length: view.getUint32(8, true) };
}

/** Footer header, packed index, trailer: what follows the last block at `position`. */
export function buildFooter(
  position: number,
  index: Uint8Array,
  identity: { readonly clusterId: Uint8Array; readonly generation: number },
): Uint8Array {
  const footer = new Uint8Array(BLOCK_HEADER_BYTES + index.length + TRAILER_BYTES);
  footer.set(index, BLOCK_HEADER_BYTES);
  writeBlockHeader(footer, 0, {
    kind: 'footer',
    ...identity,
    partitionId: 0,
    position,
    payloadLength: index.length,
    batchCount: 0,
    payloadChecksum: crc32c(index),
    flushId: new Uint8Array(16),
  });
  writeTrailer(footer, footer.length - TRAILER_BYTES, position, footer.length);
  return footer;
}

/** The packed index bytes of a footer. @throws FloeError `corrupt`. */
export function footerIndex(footer: Uint8Array): Uint8Array {
  const header = readBlockHeader(footer);
  const end = BLOCK_HEADER_BYTES + (header?.payloadLength ?? 0);
  const index = footer.subarray(BLOCK_HEADER_BYTES, end);
  if (header?.kind !== 'footer' || footer.length < end || crc32c(index) !== header.payloadChecksum)
    throw new FloeError('corrupt', 'the footer of a log object is damaged');
  return index;
}
