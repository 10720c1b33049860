// A Parquet file of which only what is wanted is fetched: its footer, then column chunks of some row groups. The bytes lie
// where they lie in the file, in a buffer of its size whose untouched pages no memory stands behind; so the reader of
// whole files reads it. Not for: files that are read whole anyway.
import { FloeError } from '../../../base/error.ts';
import { type FileProjection, WHOLE_FILE } from '../../iceberg/projection.ts';
import { ParquetReader } from './reader.ts';

/** Reads `[start, end)` of a file. */
export type RangeReader = (start: number, end: number) => Promise<Uint8Array>;

/** Most footers are shorter: one request then. */
const TAIL_BYTES = 64 * 2 ** 10;

/** Chunks that lie closer together than this are fetched with what is between them. */
const COALESCE_BYTES = 128 * 2 ** 10;

export class SparseParquet {
  readonly #bytes: Uint8Array;
  readonly #read: RangeReader;
  readonly reader: ParquetReader;

  private constructor(bytes: Uint8Array, read: RangeReader, projection: FileProjection) {
    this.#bytes = bytes;
    this.#read = read;
    this.reader = new ParquetReader(bytes, projection);
  }

  /** @throws FloeError `corrupt`, `unsupported`, or what `read` throws. */
  static async open(
    size: number,
    read: RangeReader,
    projection: FileProjection = WHOLE_FILE,
  ): Promise<SparseParquet> {
    const bytes = new Uint8Array(size);
    const from = Math.max(0, size - TAIL_BYTES);
    await fetchInto(bytes, read, { start: from, end: size });
    const footer = size < 12 ? 0 : new DataView(bytes.buffer).getUint32(size - 8, true);
    const start = size - 8 - footer;
    // What isn't a footer the reader refuses by itself.
    if (start >= 0 && start < from) await fetchInto(bytes, read, { start, end: from });
    return new SparseParquet(bytes, read, projection);
  }

  /** Fetches the wanted columns of a row group: `reader.readRowGroup` with the same arguments may follow. */
  async fetch(group: number, wanted: (fieldId: number) => boolean): Promise<void> {
    const ranges = this.reader.chunkRanges(group, wanted).toSorted((a, b) => a.start - b.start);
    const joined: { start: number; end: number }[] = [];
    for (const { start, end } of ranges) {
      const last = joined.at(-1);
      if (last !== undefined && start - last.end <= COALESCE_BYTES)
        last.end = Math.max(last.end, end);
      else joined.push({ start, end });
    }
    for (const range of joined) await fetchInto(this.#bytes, this.#read, range);
  }
}

async function fetchInto(
  bytes: Uint8Array,
  read: RangeReader,
  { start, end }: { readonly start: number; readonly end: number },
): Promise<void> {
  if (end <= start) return;
  const part = await read(start, end);
  if (part.length !== end - start)
    throw new FloeError('corrupt', `Parquet: ${part.length} of ${end - start} bytes at ${start}`);
  bytes.set(part, start);
}
