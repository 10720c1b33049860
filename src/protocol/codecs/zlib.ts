// Gzip and zstd by node:zlib, which bounds its output by itself. What costs here is not the codec but memory: output
// that outgrows a chunk is joined by copying, and a chunk much too large is paid for in page faults. So the first
// chunk has the size that the data claims, as a hint only.
import { gunzipSync, gzipSync, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { asBuffer } from '../bytes.ts';
import { bomb, unreadable } from './output.ts';

const MIN_CHUNK_BYTES = 4_096;
/** Where nothing is claimed: a usual ratio of JSON and Avro, and the most that is worth a guess. */
const USUAL_RATIO = 5;
const MAX_GUESS_BYTES = 262_144;
/** A claim is trusted up to this ratio to the input. */
const MAX_CLAIMED_RATIO = 256;
/** Spare output room, so that the codec sees its end without another chunk. */
const SPARE_BYTES = 64;

export const gzip = (bytes: Uint8Array): Uint8Array => gzipSync(asBuffer(bytes));
export const zstd = (bytes: Uint8Array): Uint8Array => zstdCompressSync(asBuffer(bytes));

export function gunzip(bytes: Uint8Array, limit: number): Uint8Array {
  const input = asBuffer(bytes);
  const options = { maxOutputLength: limit, chunkSize: chunkBytes(input, gzipClaim(input), limit) };
  return guarded('gzip', limit, () => gunzipSync(input, options));
}

export function unzstd(bytes: Uint8Array, limit: number): Uint8Array {
  const input = asBuffer(bytes);
  const options = { maxOutputLength: limit, chunkSize: chunkBytes(input, zstdClaim(input), limit) };
  return guarded('zstd', limit, () => zstdDecompressSync(input, options));
}

function guarded(codec: string, limit: number, work: () => Uint8Array): Uint8Array {
  try {
    return work();
  } catch (caught) {
    const { code } = caught as NodeJS.ErrnoException;
    throw code === 'ERR_BUFFER_TOO_LARGE' ? bomb(limit) : unreadable(codec, caught);
  }
}

function chunkBytes(input: Buffer, claim: number, limit: number): number {
  const guess = Math.min(input.length * USUAL_RATIO, MAX_GUESS_BYTES);
  const credible = claim > 0 && claim <= input.length * MAX_CLAIMED_RATIO;
  return Math.max(Math.min((credible ? claim : guess) + SPARE_BYTES, limit), MIN_CHUNK_BYTES);
}

/** The trailer of a gzip member ends with the size of its content. */
function gzipClaim(input: Buffer): number {
  return input.length < 18 ? 0 : input.readUInt32LE(input.length - 4);
}

/** A zstd frame header may tell the size of its content (RFC 8878 §3.1.1.1); 0 when it doesn't. */
function zstdClaim(input: Buffer): number {
  if (input.length < 14) return 0;
  const descriptor = input[4]!;
  const singleSegment = (descriptor & 0x20) !== 0;
  const dictionaryBytes = [0, 1, 2, 4][descriptor & 3]!;
  const at = 5 + (singleSegment ? 0 : 1) + dictionaryBytes;
  switch (descriptor >> 6) {
    case 0:
      return singleSegment ? input[at]! : 0;
    case 1:
      return input.readUInt16LE(at) + 256;
    case 2:
      return input.readUInt32LE(at);
    default:
      return 0;
  }
}
