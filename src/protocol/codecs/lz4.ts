// LZ4 in its frame format, as Kafka has it since magic 2 (proper header checksum). The library has no bound on its
// output, so a frame is measured first: by its block headers, and sequence by sequence when those leave doubt.
import { compressFrameSync, decompressFrameSync } from 'lz4-napi';
import { asBuffer } from '../bytes.ts';
import { bomb, unreadable } from './output.ts';

const MAGIC = 0x184d2204;
const FLAG_BLOCK_CHECKSUM = 0x10;
const FLAG_CONTENT_SIZE = 0x08;
const FLAG_DICTIONARY = 0x01;
const UNCOMPRESSED_BIT = 0x80000000;

export const lz4 = (bytes: Uint8Array): Uint8Array => compressFrameSync(asBuffer(bytes));

export function unlz4(bytes: Uint8Array, limit: number): Uint8Array {
  const buffer = asBuffer(bytes);
  if (frameBound(buffer, blockBound) > limit && frameBound(buffer, blockBytes) > limit) {
    throw bomb(limit);
  }
  try {
    return decompressFrameSync(buffer);
  } catch (caught) {
    throw unreadable('lz4', caught);
  }
}

/** What a compressed block at `from`…`to` unfolds into, at most `maximum`. */
type Measure = (frame: Buffer, from: number, to: number, maximum: number) => number;

/** Sum of what all blocks of the frame unfold into, by `measure`. */
function frameBound(frame: Buffer, measure: Measure): number {
  if (frame.length < 7 || frame.readUInt32LE(0) !== MAGIC) throw unreadable('lz4', 'no frame');
  const flags = frame[4]!;
  const maximum = 256 << (2 * ((frame[5]! >> 4) & 7));
  let at = 7;
  if ((flags & FLAG_CONTENT_SIZE) !== 0) at += 8;
  if ((flags & FLAG_DICTIONARY) !== 0)
    throw unreadable('lz4', 'dictionaries are not used by Kafka');
  let total = 0;
  while (at + 4 <= frame.length) {
    const word = frame.readUInt32LE(at);
    if (word === 0) return total;
    const size = word >= UNCOMPRESSED_BIT ? word - UNCOMPRESSED_BIT : word;
    at += 4;
    if (size > frame.length - at) break;
    total += word === size ? measure(frame, at, at + size, maximum) : size;
    at += size + ((flags & FLAG_BLOCK_CHECKSUM) === 0 ? 0 : 4);
  }
  throw unreadable('lz4', 'the frame is cut off');
}

/** Cheap: no block unfolds into more than its frame allows, nor any byte into more than 255. */
function blockBound(_frame: Buffer, from: number, to: number, maximum: number): number {
  return Math.min((to - from) * 255, maximum);
}

/** Exact: adds up literals and matches without copying them. */
function blockBytes(frame: Buffer, from: number, to: number): number {
  let total = 0;
  let at = from;
  const extended = (nibble: number) => {
    let length = nibble;
    if (nibble !== 15) return length;
    for (;;) {
      const byte = at < to ? frame[at]! : 0;
      at += 1;
      length += byte;
      if (byte !== 255) return length;
    }
  };
  while (at < to) {
    const token = frame[at]!;
    at += 1;
    const literals = extended(token >> 4);
    total += literals;
    at += literals;
    if (at >= to) break;
    at += 2;
    total += extended(token & 15) + 4;
  }
  return total;
}
