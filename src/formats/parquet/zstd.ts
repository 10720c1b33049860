// Zstandard with one compression context kept for all pages.
//
// Node's own zstdCompressSync makes a context and an output buffer per call: on a 64 KiB page that costs ten
// times the compression itself. The stream object behind it can be driven synchronously, frame after frame, but only
// by its internal handle, so it is tried once at start and the public function serves where that has changed.
// (Its `reset` is not called: it makes a new context and forgets the level; an ended frame needs no reset.)
// Not for: streams and reading (readers have their own).
import zlib from 'node:zlib';
import type { ZlibHandle } from './zlib-handle.ts';

const { ZSTD_e_end: END, ZSTD_c_compressionLevel: LEVEL } = zlib.constants;

/** Compresses `input`; the result is valid until the next call. */
export type Compress = (input: Uint8Array) => Uint8Array;

/** [bytes of output left, bytes of input left] after `writeSync`. */
type WriteState = Uint32Array;

/** A compressor of zstd frames at `level` (1…22; 3 is the library's default). */
export function zstdCompressor(level: number): Compress {
  const fallback: Compress = (input) =>
    zlib.zstdCompressSync(input, { params: { [LEVEL]: level } });
  const reusing = reusingCompressor(level);
  return reusing !== undefined && works(reusing) ? reusing : fallback;
}

/** The most that a frame of `length` bytes takes (ZSTD_COMPRESSBOUND). */
const bound = (length: number) => length + (length >>> 8) + 256;

function reusingCompressor(level: number): Compress | undefined {
  const stream = zlib.createZstdCompress({ params: { [LEVEL]: level } }) as unknown as {
    readonly _handle?: ZlibHandle;
    readonly _writeState?: WriteState;
  };
  const { _handle: handle, _writeState: state } = stream;
  if (typeof handle?.writeSync !== 'function' || state === undefined) return undefined;
  let output = new Uint8Array(1 << 17);
  return (input) => {
    if (bound(input.length) > output.length) output = new Uint8Array(bound(input.length) * 2);
    handle.writeSync(END, input, 0, input.length, output, 0, output.length);
    if (state[0] === 0 || state[1] !== 0) throw new Error('zstd: the output did not fit its bound');
    return output.subarray(0, output.length - state[0]!);
  };
}

function works(compress: Compress): boolean {
  const sample = new Uint8Array(5000).map((_, i) => i % 7);
  try {
    for (let round = 0; round < 2; round++) {
      const back = zlib.zstdDecompressSync(compress(sample));
      if (Buffer.compare(back, sample) !== 0) return false;
    }
    return true;
  } catch {
    return false;
  }
}
