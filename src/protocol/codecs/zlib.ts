// Gzip and zstd by node:zlib, which bounds its output by itself.
import { gunzipSync, gzipSync, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { asBuffer } from '../bytes.ts';
import { bomb, unreadable } from './output.ts';

export const gzip = (bytes: Uint8Array): Uint8Array => gzipSync(asBuffer(bytes));
export const zstd = (bytes: Uint8Array): Uint8Array => zstdCompressSync(asBuffer(bytes));

export const gunzip = (bytes: Uint8Array, limit: number): Uint8Array =>
  bounded('gzip', gunzipSync, bytes, limit);
export const unzstd = (bytes: Uint8Array, limit: number): Uint8Array =>
  bounded('zstd', zstdDecompressSync, bytes, limit);

const MIN_CHUNK_BYTES = 16_384;
const MAX_CHUNK_BYTES = 1_048_576;
/** A usual ratio of JSON and Avro: output then fits one chunk and isn't joined by copying. */
const EXPECTED_RATIO = 6;

function bounded(
  codec: string,
  decompress: (bytes: Buffer, options: { maxOutputLength: number; chunkSize: number }) => Buffer,
  bytes: Uint8Array,
  limit: number,
): Uint8Array {
  const expected = Math.min(bytes.length * EXPECTED_RATIO, MAX_CHUNK_BYTES, limit);
  try {
    return decompress(asBuffer(bytes), {
      maxOutputLength: limit,
      chunkSize: Math.max(expected, MIN_CHUNK_BYTES),
    });
  } catch (caught) {
    const { code } = caught as NodeJS.ErrnoException;
    throw code === 'ERR_BUFFER_TOO_LARGE' ? bomb(limit) : unreadable(codec, caught);
  }
}
