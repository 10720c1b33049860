// A flush while it is being filled: a stretch of one slab, the columns of its batches, and who waits for them.
// Not for: when it is sent (front-log.ts) and where its bytes go (layout.ts).
import { assert } from '../../base/assert.ts';
import {
  allocateColumns,
  type BatchColumns,
  transactionCode,
} from '../../metadata/batch-columns.ts';
import type { StageRider } from '../../metadata/log.ts';
import type { StageRequest } from '../../metadata/tables.ts';
import { asBuffer } from '../../protocol/bytes.ts';
import type { AppendItem, AppendOutcome, StagedAppend } from './log.ts';
import type { Slab } from './slab.ts';

/** One call of `append`, answered when its last batch is. */
export interface AppendRequest {
  readonly items: readonly AppendItem[];
  readonly outcomes: AppendOutcome[];
  /** Items without an outcome. */
  remaining: number;
  readonly resolve: (outcomes: readonly AppendOutcome[]) => void;
}

/** Items `[firstItem, firstItem + count)` of a request are the batches from `firstBatch` on. */
export interface RequestSpan {
  readonly request: AppendRequest;
  readonly firstItem: number;
  readonly firstBatch: number;
  count: number;
}

/** A stage that rides with batches of this flush, and who waits for what becomes of it. */
export interface WaitingRider extends StageRider {
  readonly resolve: (outcome: StagedAppend) => void;
}

const FIRST_CAPACITY = 64;
/** More batches than this make a flush of their own; see groupByPartition. */
const MAX_FLUSH_BATCHES = 2 ** 20;

export class OpenFlush {
  readonly slab: Slab;
  readonly start: number;
  readonly startedMs: number;
  readonly spans: RequestSpan[] = [];
  readonly riders: WaitingRider[] = [];
  #end: number;
  #count = 0;
  #transactional = false;
  #capacity = FIRST_CAPACITY;
  #columns = allocateColumns(FIRST_CAPACITY);

  constructor(slab: Slab, start: number, startedMs: number) {
    this.slab = slab;
    this.start = start;
    this.startedMs = startedMs;
    this.#end = start;
  }

  get count(): number {
    return this.#count;
  }

  /** True when any of its batches is part of a transaction. */
  get transactional(): boolean {
    return this.#transactional;
  }

  /** Where in the slab the next batch goes. */
  get end(): number {
    return this.#end;
  }

  get bytes(): number {
    return this.#end - this.start;
  }

  hasRoom(bytes: number, batches = 1): boolean {
    const end = this.#end + bytes;
    return end <= this.slab.bytes.length && this.#count + batches <= MAX_FLUSH_BATCHES;
  }

  /** Copies the batch in: the one copy of its way through the broker. */
  add(item: AppendItem, request: AppendRequest, itemNumber: number): void {
    assert(this.hasRoom(item.bytes.length), 'a batch fits the slab it is copied into');
    if (this.#count === this.#capacity) this.#grow();
    const n = this.#count;
    const columns = this.#columns;
    columns.producerIds[n] = item.producerId;
    columns.maxTimestamps[n] = item.maxTimestamp;
    columns.partitionIds[n] = item.partitionId;
    columns.slabOffsets[n] = this.#end;
    columns.lengths[n] = item.bytes.length;
    columns.recordCounts[n] = item.recordCount;
    columns.lastOffsetDeltas[n] = item.lastOffsetDelta;
    columns.producerEpochs[n] = item.producerEpoch;
    columns.baseSequences[n] = item.baseSequence;
    if (item.transaction !== undefined) {
      this.#transactional = true;
      columns.transactions[n] = transactionCode(item.transaction.mode);
      columns.incarnations[n] = item.transaction.incarnation;
    }
    // Not `set`: into shared memory it copies byte by byte unless both ends are aligned alike (1.2 GB/s, not 17).
    asBuffer(item.bytes).copy(this.slab.bytes, this.#end);
    this.#end += item.bytes.length;
    this.#count = n + 1;
    const span = this.spans.at(-1);
    if (span?.request === request && span.firstItem + span.count === itemNumber) span.count += 1;
    else this.spans.push({ request, firstItem: itemNumber, firstBatch: n, count: 1 });
  }

  /** Batches of one call whose stage enters with them: all in this flush. */
  addWithStage(
    request: AppendRequest,
    stage: StageRequest,
    resolve: (outcome: StagedAppend) => void,
  ): void {
    const { items } = request;
    this.riders.push({ firstBatch: this.#count, batchCount: items.length, stage, resolve });
    for (const [n, item] of items.entries()) this.add(item, request, n);
  }

  /** The riders as plain data, to be handed over with the columns. */
  takeRiders(): { readonly riders?: readonly StageRider[] } {
    if (this.riders.length === 0) return {};
    return {
      riders: this.riders.map(({ firstBatch, batchCount, stage }) => ({
        firstBatch,
        batchCount,
        stage,
      })),
    };
  }

  /** The columns with the capacity they are laid out for, to be handed over. */
  take(): { readonly buffer: ArrayBuffer; readonly capacity: number; readonly count: number } {
    return {
      buffer: this.#columns.partitionIds.buffer as ArrayBuffer,
      capacity: this.#capacity,
      count: this.#count,
    };
  }

  #grow(): void {
    const before = this.#columns;
    this.#capacity *= 4;
    this.#columns = allocateColumns(this.#capacity);
    for (const [name, column] of Object.entries(before)) {
      if (name === 'count') continue;
      const target = this.#columns[name as keyof BatchColumns] as Float64Array;
      target.set(column as Float64Array);
    }
  }
}
