// Compression of pages: the codecs of parquet.thrift that engines read everywhere, one compressor kept for each.
// Not for: reading (hyparquet has its own).
import zlib from 'node:zlib';
import { compressSync as lz4Sync } from 'lz4-napi';
import { compressSync as snappySync } from 'snappy';
import type { CodecName } from './layout.ts';
import { CODEC } from './thrift.ts';
import { type Compress, zstdCompressor } from './zstd.ts';

/** Level 1: on mixed data 3 % larger than level 3, the library's default, at two thirds of its time. */
const DEFAULT_ZSTD_LEVEL = 1;

export interface Codec {
  /** Its number in parquet.thrift. */
  readonly number: number;
  /** Undefined stores pages as they are. */
  readonly compress: Compress | undefined;
}

const clamp = (level: number, min: number, max: number) => Math.max(min, Math.min(max, level));

const asBuffer = (bytes: Uint8Array) =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** A compressor, for one thread, of the codec at a level; the codec's own default when undefined. */
export function createCodec(name: CodecName, level: number | undefined): Codec {
  switch (name) {
    case 'uncompressed':
      return { number: CODEC.UNCOMPRESSED, compress: undefined };
    case 'zstd':
      return { number: CODEC.ZSTD, compress: zstdCompressor(level ?? DEFAULT_ZSTD_LEVEL) };
    case 'snappy':
      return { number: CODEC.SNAPPY, compress: (bytes) => snappySync(asBuffer(bytes)) };
    case 'gzip': {
      const options = level === undefined ? {} : { level: clamp(level, 0, 9) };
      return { number: CODEC.GZIP, compress: (bytes) => zlib.gzipSync(bytes, options) };
    }
    case 'brotli': {
      const quality = clamp(level ?? 1, 0, 11);
      const params = { [zlib.constants.BROTLI_PARAM_QUALITY]: quality };
      return {
        number: CODEC.BROTLI,
        compress: (bytes) => zlib.brotliCompressSync(bytes, { params }),
      };
    }
    case 'lz4':
      // Raw blocks: what the format calls LZ4 is Hadoop's framing, which is deprecated. The library puts a length of
      // four bytes before its blocks, which Parquet doesn't have.
      return {
        number: CODEC.LZ4_RAW,
        compress: (bytes) => lz4Sync(asBuffer(bytes)).subarray(4),
      };
  }
}
