// Avro object container files: header with metadata, then compressed blocks of records.
// Codecs: null, deflate, zstandard, snappy (read); null, deflate (written). Source: Avro 1.12, "Object Container Files".
import { constants, deflateRawSync, inflateRawSync, zstdDecompressSync } from 'node:zlib';
import { uncompressSync } from 'snappy';
import { FloeError } from '../../base/error.ts';
import {
  AvroInput,
  AvroOutput,
  type AvroSchema,
  compileReader,
  compileWriter,
  type ReaderOptions,
} from './value-codec.ts';

const MAGIC = Uint8Array.of(0x4f, 0x62, 0x6a, 0x01);
const SYNC_LENGTH = 16;

/** A block may grow to this many bytes when decompressed; more is taken for a bomb. */
export const MAX_BLOCK_BYTES = 256 * 1024 * 1024;

/** Blocks are closed at about this size when written: small enough to decompress cheaply, large enough to compress. */
const BLOCK_BYTES = 64 * 1024;

export interface AvroContainer {
  readonly schema: AvroSchema;
  /** Every header entry as text, `avro.schema` and `avro.codec` included. */
  readonly metadata: ReadonlyMap<string, string>;
  /** Decodes all records with the reader that `options` ask for. */
  records(options?: ReaderOptions): unknown[];
}

const readHeader = compileReader({ type: 'map', values: 'bytes' });

/** Opens a container. @throws FloeError `corrupt` when it is none or damaged. */
export function openContainer(file: Uint8Array): AvroContainer {
  const input = new AvroInput(file);
  if (Buffer.compare(input.take(MAGIC.length), MAGIC) !== 0) {
    throw new FloeError('corrupt', 'not an Avro object container file');
  }
  const header = readHeader(input) as Map<string, Uint8Array>;
  const metadata = new Map(
    [...header].map(([key, value]) => [key, Buffer.from(value).toString('utf8')]),
  );
  const sync = input.take(SYNC_LENGTH);
  const schema = parseSchema(metadata.get('avro.schema'));
  const codec = metadata.get('avro.codec') ?? 'null';
  const start = input.position;
  return {
    schema,
    metadata,
    records(options) {
      return asCorrupt(() =>
        readBlocks(new AvroInput(file, start), { sync, codec, schema, options }),
      );
    },
  };
}

/** A schema that is JSON but none of Avro's shows as whatever error it causes: all the same to the caller. */
function asCorrupt<T>(read: () => T): T {
  try {
    return read();
  } catch (caught) {
    if (caught instanceof FloeError) throw caught;
    throw new FloeError('corrupt', `Avro: ${FloeError.from(caught).message}`, { cause: caught });
  }
}

function parseSchema(source: string | undefined): AvroSchema {
  try {
    return JSON.parse(source ?? '') as AvroSchema;
  } catch (caught) {
    throw new FloeError('corrupt', 'Avro container without a readable schema', { cause: caught });
  }
}

interface BlockFormat {
  readonly sync: Uint8Array;
  readonly codec: string;
  readonly schema: AvroSchema;
  readonly options: ReaderOptions | undefined;
}

function readBlocks(input: AvroInput, format: BlockFormat): unknown[] {
  const read = compileReader(format.schema, format.options);
  const records: unknown[] = [];
  while (input.position < input.bytes.length) {
    const count = input.size();
    const block = new AvroInput(decompress(format.codec, input.take(input.size())));
    if (count > block.bytes.length)
      throw new FloeError('corrupt', `Avro: ${count} records in fewer bytes`);
    for (let n = 0; n < count; n += 1) records.push(read(block));
    if (block.position !== block.bytes.length)
      throw new FloeError('corrupt', 'Avro: bytes left over in a block');
    if (Buffer.compare(input.take(SYNC_LENGTH), format.sync) !== 0) {
      throw new FloeError('corrupt', 'Avro: a block does not end with the sync marker');
    }
  }
  return records;
}

function decompress(codec: string, bytes: Uint8Array): Uint8Array {
  try {
    switch (codec) {
      case 'null':
        return bytes;
      case 'deflate':
        return inflateRawSync(bytes, { maxOutputLength: MAX_BLOCK_BYTES });
      case 'zstandard':
        return zstdDecompressSync(bytes, { maxOutputLength: MAX_BLOCK_BYTES });
      case 'snappy':
        return unsnappy(bytes);
      default:
        throw new FloeError('unsupported', `Avro codec "${codec}" is not read`);
    }
  } catch (caught) {
    if (caught instanceof FloeError) throw caught;
    throw new FloeError('corrupt', `Avro: ${FloeError.from(caught).message}`, { cause: caught });
  }
}

/** Raw snappy, then 4 bytes of CRC-32 that snappy's own length check makes needless here. */
function unsnappy(bytes: Uint8Array): Uint8Array {
  const body = bytes.subarray(0, -4);
  let length = 0;
  for (let index = 0; index < 5; index += 1) {
    length += (body[index]! & 0x7f) * 2 ** (7 * index);
    if (body[index]! < 0x80) break;
  }
  if (length > MAX_BLOCK_BYTES)
    throw new FloeError('corrupt', `Avro: a block of ${length} bytes is too large`);
  return uncompressSync(Buffer.from(body), { asBuffer: true }) as Buffer;
}

export interface ContainerOptions {
  readonly schema: AvroSchema;
  /** Header entries beside schema and codec. */
  readonly metadata: Readonly<Record<string, string>>;
  /** 16 bytes that end each block. Any will do: derive them from the file's identity, so that bytes are reproducible. */
  readonly sync: Uint8Array;
  readonly codec?: 'null' | 'deflate';
}

/** Writes all records into one container file. */
export function writeContainer(
  records: Iterable<unknown>,
  { schema, metadata, sync, codec = 'deflate' }: ContainerOptions,
): Uint8Array {
  const output = new AvroOutput();
  output.raw(MAGIC);
  const entries = { 'avro.schema': JSON.stringify(schema), 'avro.codec': codec, ...metadata };
  output.long(Object.keys(entries).length);
  for (const [key, value] of Object.entries(entries)) {
    output.string(key);
    output.string(value);
  }
  output.long(0);
  output.raw(sync);
  const write = compileWriter(schema);
  let block = new AvroOutput();
  let count = 0;
  const close = () => {
    if (count === 0) return;
    output.long(count);
    output.bytes(codec === 'deflate' ? deflate(block.written) : block.written);
    output.raw(sync);
    block = new AvroOutput();
    count = 0;
  };
  for (const record of records) {
    write(block, record);
    count += 1;
    if (block.written.length >= BLOCK_BYTES) close();
  }
  close();
  return output.written.slice();
}

// Level 1: manifests are small and written at every commit; the higher levels save few bytes for 3 × the time.
const deflate = (bytes: Uint8Array) => deflateRawSync(bytes, { level: constants.Z_BEST_SPEED });
