// Compression of record batches: one table from Kafka's codec number to how it is read and written.
// Every decompression is bounded; input may be shared memory.
import { FloeError } from '../base/error.ts';
import { lz4, unlz4 } from './codecs/lz4.ts';
import { snappy, unsnappy } from './codecs/snappy.ts';
import { gunzip, gzip, unzstd, zstd } from './codecs/zlib.ts';

/** Numbers of the attributes' lowest three bits. */
export const Compression = { NONE: 0, GZIP: 1, SNAPPY: 2, LZ4: 3, ZSTD: 4 } as const;

/** Names as in `compression.type`, at the place of their number. */
export const COMPRESSION_NAMES = ['none', 'gzip', 'snappy', 'lz4', 'zstd'] as const;

export type CompressionName = (typeof COMPRESSION_NAMES)[number];

interface Codec {
  compress(bytes: Uint8Array): Uint8Array;
  decompress(bytes: Uint8Array, limit: number): Uint8Array;
}

const CODECS: readonly Codec[] = [
  {
    compress: (bytes) => bytes,
    decompress: (bytes) => bytes,
  },
  { compress: gzip, decompress: gunzip },
  { compress: snappy, decompress: unsnappy },
  { compress: lz4, decompress: unlz4 },
  { compress: zstd, decompress: unzstd },
];

/** Whether `type` is a codec. */
export function isCompressionType(type: number): boolean {
  return type >= 0 && type < CODECS.length;
}

/** The records of a batch as they are stored. */
export function compress(type: number, bytes: Uint8Array): Uint8Array {
  return codec(type).compress(bytes);
}

/**
 * The records of a batch as they were.
 * @throws FloeError `corrupt` when they can't be read, `exhausted` past `limit` bytes, `unsupported` for an
 * unknown codec.
 */
export function decompress(type: number, bytes: Uint8Array, limit: number): Uint8Array {
  return codec(type).decompress(bytes, limit);
}

function codec(type: number): Codec {
  const found = CODECS[type];
  if (found === undefined) throw new FloeError('unsupported', `compression type ${type}`);
  return found;
}
