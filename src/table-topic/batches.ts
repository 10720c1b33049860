// Walks the records of a job's slice: batch by batch, aborted transactions and control batches passed over, offsets
// outside the range left out, every hole accounted for (rule T7). No object per record.
// Not for: what a record means (rows.ts).
import { FloeError } from '../base/error.ts';
import type { RangeGap } from '../metadata/tables.ts';
import {
  baseOffset,
  batchEnd,
  isControl,
  isTransactional,
  lastOffsetDelta,
  producerId,
} from '../protocol/record-batch.ts';
import type { RecordCursor } from '../protocol/record-cursor.ts';
import type { JobSlice } from './job.ts';

export interface BatchVisitor {
  /** The cursor stands at a record to keep. False ends the walk before this record. */
  record(cursor: RecordCursor, offset: number): boolean;
  /** After each batch; false ends the walk. */
  batchDone(): boolean;
  /** A batch that can't be read: its offsets become dead letters or end the walk (false). */
  unreadable(batch: Uint8Array, first: number, last: number, error: string): boolean;
}

export interface WalkResult {
  /** Exclusive. */
  readonly end: number;
  readonly gaps: readonly RangeGap[];
}

/** Gaps kept by their bounds per range; beyond that neighbours are joined, which only blurs where they are. */
const MAX_GAPS = 64;

class Gaps {
  readonly list: RangeGap[] = [];

  add(from: number, to: number, reason: RangeGap['reason']): void {
    if (to <= from) return;
    const last = this.list.at(-1);
    const joins = last !== undefined && last.to === from && last.reason === reason;
    if (joins || (last !== undefined && this.list.length >= MAX_GAPS)) {
      this.list[this.list.length - 1] = { ...last!, to };
    } else this.list.push({ from, to, reason });
  }
}

export function walkSlice(
  slice: JobSlice,
  cursor: RecordCursor,
  options: { readonly visitor: BatchVisitor; readonly maxBatchBytes: number },
): WalkResult {
  const gaps = new Gaps();
  let next = slice.start;
  if (slice.lost !== undefined) {
    gaps.add(slice.lost.from, slice.lost.to, slice.lost.reason);
    next = slice.lost.to;
  }
  const transactions = new AbortedTransactions(slice.aborted);
  for (const run of slice.runs) {
    let base = run.baseOffset;
    for (let at = 0, end: number; (end = batchEnd(run.bytes, at)) !== -1; at = end) {
      if (run.patched) base = baseOffset(run.bytes, at);
      const after = base + lastOffsetDelta(run.bytes, at) + 1;
      if (base >= slice.limit) return { end: next, gaps: gaps.list };
      const kind = transactions.classify(run.bytes, at, base);
      if (after <= next) {
        base = after;
        continue;
      }
      gaps.add(next, base, 'absent');
      next = Math.max(next, base);
      const bound = Math.min(after, slice.limit);
      if (kind === 'skip') {
        gaps.add(next, bound, 'aborted');
        next = bound;
      } else {
        const stopped = walkBatch(
          { bytes: run.bytes, at, end, base, from: next, to: bound },
          cursor,
          options,
        );
        if (stopped !== -1) return { end: stopped, gaps: gaps.list };
        next = bound;
        if (!options.visitor.batchDone()) return { end: next, gaps: gaps.list };
      }
      base = after;
    }
  }
  return { end: next, gaps: gaps.list };
}

interface OneBatch {
  readonly bytes: Uint8Array;
  readonly at: number;
  readonly end: number;
  readonly base: number;
  /** Offsets wanted: [from, to). */
  readonly from: number;
  readonly to: number;
}

/** −1 when the whole batch was visited, else the offset at which the visitor ended the walk. */
function walkBatch(
  batch: OneBatch,
  cursor: RecordCursor,
  { visitor, maxBatchBytes }: { readonly visitor: BatchVisitor; readonly maxBatchBytes: number },
): number {
  let reached = batch.from;
  try {
    cursor.open(batch.bytes, batch.at, {
      baseOffset: batch.base,
      maxDecompressedBytes: maxBatchBytes,
    });
    while (cursor.next()) {
      const offset = batch.base + cursor.offsetDelta;
      if (offset < reached || offset >= batch.to) continue;
      if (!visitor.record(cursor, offset)) return offset;
      reached = offset + 1;
    }
    return -1;
  } catch (caught) {
    if (!(caught instanceof FloeError)) throw caught;
    // Acked bytes with honest CRC whose inside lies: what was read so far are rows, the rest is one dead letter.
    const whole = batch.bytes.subarray(batch.at, batch.end);
    const goesOn = visitor.unreadable(whole, reached, batch.to - 1, caught.message);
    return goesOn ? -1 : reached;
  }
}

/** Which batches belong to aborted transactions, as consumers tell by the list that comes with a read. */
class AbortedTransactions {
  readonly #list: readonly { readonly producerId: number; readonly firstOffset: number }[];
  readonly #open = new Set<number>();
  #next = 0;

  constructor(list: readonly { readonly producerId: number; readonly firstOffset: number }[]) {
    this.#list = list.toSorted((a, b) => a.firstOffset - b.firstOffset);
  }

  classify(bytes: Uint8Array, at: number, base: number): 'read' | 'skip' {
    while (this.#next < this.#list.length && this.#list[this.#next]!.firstOffset <= base) {
      this.#open.add(this.#list[this.#next]!.producerId);
      this.#next += 1;
    }
    if (isControl(bytes, at)) {
      // Either marker ends the producer's transaction; only aborted ones are in the set.
      this.#open.delete(producerId(bytes, at));
      return 'skip';
    }
    const aborted = isTransactional(bytes, at) && this.#open.has(producerId(bytes, at));
    return aborted ? 'skip' : 'read';
  }
}
