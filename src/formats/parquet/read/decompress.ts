// Pages as they were before compression. Codecs that Iceberg's writers use; others are refused by name.
import zlib from 'node:zlib';
import { uncompressSync as unlz4 } from 'lz4-napi';
import { uncompressSync as unsnappy } from 'snappy';
import { FloeError } from '../../../base/error.ts';
import type { ZlibHandle } from '../zlib-handle.ts';

/** Gives the page's bytes, `length` of them: valid until the next page is decompressed. */
export type Decompress = (input: Uint8Array, length: number) => Uint8Array;

/** A page may not unfold to more than this: what is larger is no page of a sane writer. */
const MAX_PAGE_BYTES = 1 << 30;

/** Output is written over that of the last page up to this size: fresh memory costs as much as what fills it. */
const KEPT_BYTES = 1 << 22;

const same: Decompress = (input) => input;

const CODECS: Readonly<Record<string, Decompress>> = {
  UNCOMPRESSED: same,
  SNAPPY: (input) => unsnappy(Buffer.from(input.buffer, input.byteOffset, input.length)) as Buffer,
  GZIP: (input, length) => zlib.gunzipSync(input, { maxOutputLength: Math.max(1, length) }),
  BROTLI: (input, length) =>
    zlib.brotliDecompressSync(input, { maxOutputLength: Math.max(1, length) }),
  ZSTD: zstdDecompressor(),
  LZ4_RAW: rawLz4,
};

/** The native decoder wants the size in front of the block. */
function rawLz4(input: Uint8Array, length: number): Uint8Array {
  const sized = Buffer.alloc(4 + input.length);
  sized.writeUInt32LE(length, 0);
  sized.set(input, 4);
  return unlz4(sized);
}

/** By the codec's name in the footer. @throws FloeError `unsupported`. */
export function decompressor(codec: string): Decompress {
  const decompress = CODECS[codec];
  if (decompress === undefined) throw new FloeError('unsupported', `Parquet: codec ${codec}`);
  if (decompress === same) return same;
  return (input, length) => {
    if (length > MAX_PAGE_BYTES) throw new FloeError('exhausted', `Parquet: a page of ${length} B`);
    let output: Uint8Array;
    try {
      output = decompress(input, length);
    } catch (caught) {
      throw new FloeError('corrupt', `Parquet: a ${codec} page can't be read`, { cause: caught });
    }
    if (output.length !== length) throw new FloeError('corrupt', `Parquet: a ${codec} page's size`);
    return output;
  };
}

/**
 * One zstd context for all pages, as in ../zstd.ts and for the same reason: a context per call costs three to nine
 * times the decompression of a page. A handle that saw damage is given up: written to again it would end the process.
 * Falls back to the public function where the handle isn't what it was.
 */
function zstdDecompressor(): Decompress {
  let context: ZstdContext | undefined;
  let tried = false;
  return (input, length) => {
    if (!tried) {
      tried = true;
      context = works(ZstdContext.open()) ? ZstdContext.open() : undefined;
    } else if (context?.broken === true) context = ZstdContext.open();
    if (context !== undefined) return context.decompress(input, length);
    return zlib.zstdDecompressSync(input, { maxOutputLength: Math.max(1, length) });
  };
}

class ZstdContext {
  readonly #handle: ZlibHandle;
  /** [bytes of output left, bytes of input left] after `writeSync`. */
  readonly #state: Uint32Array;
  broken = false;
  #kept = new Uint8Array(0);

  private constructor(handle: ZlibHandle, state: Uint32Array) {
    this.#handle = handle;
    this.#state = state;
    handle.onerror = () => {
      this.broken = true;
    };
  }

  static open(): ZstdContext | undefined {
    const stream = zlib.createZstdDecompress() as unknown as {
      readonly _handle?: ZlibHandle;
      readonly _writeState?: Uint32Array;
    };
    const { _handle: handle, _writeState: state } = stream;
    if (typeof handle?.writeSync !== 'function' || state === undefined) return undefined;
    return new ZstdContext(handle, state);
  }

  decompress(input: Uint8Array, length: number): Uint8Array {
    // A byte more than there should be, so that too long a page is seen.
    const output = this.#room(length + 1);
    const { ZSTD_e_end: end } = zlib.constants;
    const state = this.#state;
    this.#handle.writeSync(end, input, 0, input.length, output, 0, output.length);
    const whole = !this.broken && state[1] === 0 && state[0] === 1;
    if (whole) return output.subarray(0, length);
    // A frame that isn't at its end would go on with the next page.
    this.broken = true;
    throw new Error('zstd: damaged, or not the size that its page says');
  }

  #room(bytes: number): Uint8Array {
    if (bytes > KEPT_BYTES) return new Uint8Array(bytes);
    if (bytes > this.#kept.length)
      this.#kept = new Uint8Array(Math.min(KEPT_BYTES, Math.max(1 << 16, bytes * 2)));
    return this.#kept.subarray(0, bytes);
  }
}

function works(context: ZstdContext | undefined): boolean {
  if (context === undefined) return false;
  const sample = new Uint8Array(3000).map((_, i) => i % 11);
  const packed = zlib.zstdCompressSync(sample);
  try {
    for (let round = 0; round < 2; round++)
      if (Buffer.compare(context.decompress(packed, sample.length), sample) !== 0) return false;
    return true;
  } catch {
    return false;
  }
}
