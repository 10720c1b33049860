// Short runs of bytes from one buffer to another: byte strings of columns and pages.

/** Copies up to this length are made here, by words: past it a native call pays for its two views. */
const WORDS_UP_TO = 128;

/** A buffer as bytes and as words that begin anywhere. */
export interface Buffered {
  readonly bytes: Uint8Array;
  readonly words: DataView;
}

export const buffered = (bytes: Uint8Array): Buffered => ({
  bytes,
  words: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength),
});

/** Copies `source[start, end)` to `target` from `at` on. */
export function copyBytes(
  source: Buffered,
  start: number,
  end: number,
  target: Buffered,
  at: number,
): void {
  if (end - start > WORDS_UP_TO) {
    target.bytes.set(source.bytes.subarray(start, end), at);
    return;
  }
  let from = start;
  let to = at;
  for (; from + 4 <= end; from += 4, to += 4)
    target.words.setInt32(to, source.words.getInt32(from, true), true);
  const { bytes } = target;
  while (from < end) bytes[to++] = source.bytes[from++]!;
}
