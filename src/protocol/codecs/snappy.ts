// Snappy, raw and in the framing of xerial's snappy-java, which Kafka's Java clients write (others write raw).
//
//   82 'SNAPPY' 00 | version i32 | compatible version i32 | ( length i32 | raw snappy block )*
import { compressSync, uncompressSync } from 'snappy';
import { asBuffer, readInt32, writeInt32 } from '../bytes.ts';
import { Output, unreadable } from './output.ts';

const XERIAL_MAGIC = [0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00] as const;
const XERIAL_HEADER_BYTES = 16;
/** Uncompressed bytes per block, as snappy-java has it. */
const XERIAL_BLOCK_BYTES = 32_768;
/** Raw snappy gives at most 64 bytes for 3: a claim beyond that is a lie. */
const MAX_RATIO = 22;

/** Reads either framing. */
export function unsnappy(bytes: Uint8Array, limit: number): Uint8Array {
  if (!isXerial(bytes)) return rawBlock(bytes, limit);
  const output = new Output(limit);
  let at = XERIAL_HEADER_BYTES;
  while (at < bytes.length) {
    const length = at + 4 <= bytes.length ? readInt32(bytes, at) : -1;
    at += 4;
    if (length < 0 || length > bytes.length - at) throw unreadable('snappy', 'a block is cut off');
    output.add(rawBlock(bytes.subarray(at, at + length), output.room));
    at += length;
  }
  return output.join();
}

/** Writes xerial framing. */
export function snappy(bytes: Uint8Array): Uint8Array {
  const header = Buffer.alloc(XERIAL_HEADER_BYTES);
  header.set(XERIAL_MAGIC);
  writeInt32(header, 8, 1);
  writeInt32(header, 12, 1);
  const pieces: Uint8Array[] = [header];
  for (let at = 0; at < bytes.length; at += XERIAL_BLOCK_BYTES) {
    const block = compressSync(asBuffer(bytes).subarray(at, at + XERIAL_BLOCK_BYTES));
    const length = Buffer.allocUnsafe(4);
    writeInt32(length, 0, block.length);
    pieces.push(length, block);
  }
  return Buffer.concat(pieces);
}

function isXerial(bytes: Uint8Array): boolean {
  return (
    bytes.length >= XERIAL_HEADER_BYTES &&
    XERIAL_MAGIC.every((byte, index) => bytes[index] === byte)
  );
}

function rawBlock(bytes: Uint8Array, limit: number): Uint8Array {
  const claimed = claimedBytes(bytes);
  if (claimed > bytes.length * MAX_RATIO + 64) throw unreadable('snappy', 'the length is a lie');
  new Output(limit).reserve(claimed);
  try {
    // A copy out of the library is cheaper than an external buffer, whose memory waits for the collector.
    return uncompressSync(asBuffer(bytes), { copyOutputData: true }) as Buffer;
  } catch (caught) {
    throw unreadable('snappy', caught);
  }
}

/** The uncompressed length that a raw block starts with. */
function claimedBytes(bytes: Uint8Array): number {
  let value = 0;
  for (let i = 0; i < 5; i += 1) {
    const byte = bytes[i];
    if (byte === undefined) break;
    value += (byte & 0x7f) * 2 ** (7 * i);
    if (byte < 0x80) return value;
  }
  throw unreadable('snappy', 'no length');
}
