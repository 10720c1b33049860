// The part of Node's native compression handle that is driven synchronously here, for compressing (zstd.ts) and for reading
// (read/decompress.ts). It is internal to Node: both try it once at start and have the public functions to fall back on.

export interface ZlibHandle {
  writeSync(
    flush: number,
    input: Uint8Array,
    inputOffset: number,
    inputLength: number,
    output: Uint8Array,
    outputOffset: number,
    outputLength: number,
  ): void;
  /** Called instead of throwing, for what can't be decompressed. */
  onerror?: () => void;
}
