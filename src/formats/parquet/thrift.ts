// Thrift structs of page headers and footer, by hyparquet-writer's compact-protocol serialiser.
// Numbers become i32 and bigints i64, so the two must be told apart here. Source: parquet.thrift.
import { ByteWriter } from 'hyparquet-writer/src/bytewriter.js';
import { serializeTCompactProtocol } from 'hyparquet-writer/src/thrift.js';

/** A struct as `field_N` → value; undefined fields are left out. */
export type ThriftStruct = { [key: `field_${number}`]: unknown };

export function serializeThrift(struct: ThriftStruct): Uint8Array {
  const writer = new ByteWriter(256);
  serializeTCompactProtocol(writer as never, struct);
  return new Uint8Array(writer.getBuffer());
}

/** Encoding numbers of parquet.thrift. */
export const ENCODING = { PLAIN: 0, RLE: 3, RLE_DICTIONARY: 8 } as const;
/** CompressionCodec numbers of parquet.thrift. */
export const CODEC = {
  UNCOMPRESSED: 0,
  SNAPPY: 1,
  GZIP: 2,
  BROTLI: 4,
  ZSTD: 6,
  LZ4_RAW: 7,
} as const;
/** PageType numbers of parquet.thrift. */
export const PAGE_TYPE = { DATA: 0, DICTIONARY: 2 } as const;
