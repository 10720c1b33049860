// Cuts what a reader asked for out of stored bytes: whole batches from the one that holds the offset, below an end,
// within a budget. Pure. Raw bytes' base offsets mean nothing, so offsets are counted from the entry's; the headers of
// placed batches (compaction by key) say theirs. Not for: where the bytes come from (reader.ts).
import { FloeError } from '../../base/error.ts';
import {
  batchEnd,
  baseOffset as headerOffset,
  lastOffsetDelta,
} from '../../protocol/record-batch.ts';
import type { ReadRun } from './log.ts';

/** A place between two batches of an entry. */
export interface BatchPosition {
  /** Byte within the entry's bytes. */
  readonly at: number;
  /** Offset of the batch that begins there. */
  readonly baseOffset: number;
}

export interface CutLimits {
  /** The batch that holds it is the first. */
  readonly offset: number;
  /** No batch that begins at or above it. */
  readonly endOffset: number;
  /** No more bytes than this, but at least one batch if `first`. */
  readonly maxBytes: number;
  readonly first: boolean;
  /** The batches say their own base offsets. */
  readonly placed?: boolean;
}

/** Batches `[from.at, to.at)` of an entry. */
export interface Cut {
  readonly from: BatchPosition;
  readonly to: BatchPosition;
}

/**
 * Cuts an entry's bytes, beginning at `start` (its first batch, or a place known from an earlier cut).
 * @throws FloeError `corrupt` when the bytes aren't whole batches.
 */
export function cutBatches(entry: Uint8Array, start: BatchPosition, limits: CutLimits): Cut {
  let { at, baseOffset } = start;
  const placed = limits.placed === true;
  for (; at < entry.length; ) {
    if (placed) baseOffset = headerOffset(entry, at);
    const next = baseOffset + lastOffsetDelta(entry, at) + 1;
    if (next > limits.offset) break;
    at = wholeBatch(entry, at);
    baseOffset = next;
  }
  const from = { at, baseOffset };
  while (at < entry.length) {
    const base = placed ? headerOffset(entry, at) : baseOffset;
    if (base >= limits.endOffset) break;
    const end = wholeBatch(entry, at);
    const needed = limits.first && at === from.at;
    if (!needed && end - from.at > limits.maxBytes) break;
    baseOffset = base + lastOffsetDelta(entry, at) + 1;
    at = end;
  }
  return { from, to: { at, baseOffset } };
}

function wholeBatch(entry: Uint8Array, at: number): number {
  const end = batchEnd(entry, at);
  if (end === -1)
    throw new FloeError('corrupt', `no whole record batch at ${at} of an index entry`);
  return end;
}

/** Slices below this are joined by copying: sending one costs more than that. */
const JOIN_BELOW_BYTES = 4096;

/** Collects slices as few runs: adjacent short ones are copied together. */
export class RunCollector {
  readonly #runs: ReadRun[] = [];
  #bytes = 0;
  #short: Uint8Array[] = [];
  #shortBytes = 0;
  #shortBase = 0;
  #shortNext = 0;
  #shortPatched = false;

  /** Bytes of all slices so far. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Adds batches of offsets `[baseOffset, nextOffset)`, raw or (`patched`) with base offsets of their own. */
  add(slice: Uint8Array, baseOffset: number, nextOffset: number, patched = false): void {
    this.#bytes += slice.length;
    const follows = patched || this.#shortNext === baseOffset;
    if (this.#short.length > 0 && (!follows || this.#shortPatched !== patched)) this.#join();
    if (slice.length >= JOIN_BELOW_BYTES) {
      this.#join();
      this.#runs.push({ baseOffset, bytes: slice, patched });
      return;
    }
    if (this.#short.length === 0) this.#shortBase = baseOffset;
    this.#shortPatched = patched;
    this.#short.push(slice);
    this.#shortBytes += slice.length;
    this.#shortNext = nextOffset;
  }

  finish(): readonly ReadRun[] {
    this.#join();
    return this.#runs;
  }

  #join(): void {
    if (this.#short.length === 0) return;
    const bytes =
      this.#short.length === 1 ? this.#short[0]! : Buffer.concat(this.#short, this.#shortBytes);
    this.#runs.push({ baseOffset: this.#shortBase, bytes, patched: this.#shortPatched });
    this.#short = [];
    this.#shortBytes = 0;
  }
}
