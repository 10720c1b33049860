// Decompressors for hyparquet, which brings only Snappy itself: what Parquet files of any writer may use.
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib';
import type { Compressors } from 'hyparquet';
import { uncompressSync as lz4UncompressSync } from 'lz4-napi';

const exact = (bytes: Uint8Array) =>
  new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);

export const parquetCompressors: Compressors = {
  ZSTD: (input: Uint8Array) => exact(zstdDecompressSync(input)),
  GZIP: (input: Uint8Array) => exact(gunzipSync(input)),
  BROTLI: (input: Uint8Array) => exact(brotliDecompressSync(input)),
  LZ4_RAW: (input: Uint8Array, length: number) => {
    // The native decoder wants the size in front of the block.
    const sized = Buffer.alloc(4 + input.length);
    sized.writeUInt32LE(length, 0);
    sized.set(input, 4);
    return exact(lz4UncompressSync(sized));
  },
};
