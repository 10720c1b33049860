// A Log in memory for the tests of handlers and sockets: commits at once or when told, forgets nothing.
// It keeps the contract of storage/log/log.ts as far as one process sees it: outcomes in order, sequences of
// idempotent producers, raw and patched runs, watermarks, waiters, back-pressure. Not for: durability.
import { FloeError } from '../../base/error.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import * as RecordBatch from '../../protocol/record-batch.ts';
import { RecordCursor } from '../../protocol/record-cursor.ts';
import type {
  AppendItem,
  AppendOutcome,
  Log,
  OffsetAtTime,
  ReadPartitionRequest,
  ReadPartitionResult,
  ReadRequest,
  ReadResult,
  StagedAppend,
  Watermarks,
} from '../../storage/log/log.ts';

interface StoredBatch {
  readonly baseOffset: number;
  readonly endOffset: number;
  readonly bytes: Buffer;
}

interface ProducerState {
  epoch: number;
  nextSequence: number;
  recent: { sequence: number; outcome: AppendOutcome }[];
}

interface Partition {
  readonly batches: StoredBatch[];
  readonly producers: Map<number, ProducerState>;
  start: number;
  end: number;
}

interface Appending {
  readonly items: readonly AppendItem[];
  resolve(outcomes: readonly AppendOutcome[]): void;
}

/** Sequences wrap from 2^31 − 1 to 0. */
const SEQUENCE_SPACE = 2 ** 31;
const WINDOW = 5;

export class MemoryLog implements Log {
  /** False: appends wait for `commit`. */
  autoCommit = true;
  congested = false;
  /** While it isn't congested. */
  roomBytes = 2 ** 30;
  /** True: runs are handed out raw, as from storage, and the broker has to patch headers. */
  raw = false;
  /** Results handed out and not released. */
  unreleased = 0;
  reads = 0;
  readonly #known: (partitionId: number) => boolean;
  readonly #partitions = new Map<number, Partition>();
  readonly #listeners = new Map<number, Set<(partitionId: number) => void>>();
  readonly #pending: Appending[] = [];
  #relieved: (() => void)[] = [];

  constructor(known: (partitionId: number) => boolean = () => true) {
    this.#known = known;
  }

  readonly maxAppendBytes = 8 * 2 ** 20;

  get room(): number {
    return this.congested ? 0 : this.roomBytes;
  }

  readonly lastCommitNumber = 0;

  async caughtUp(): Promise<void> {}

  commitSteps(): Promise<never> {
    throw new Error('no table topics here');
  }

  appendWithStage(): Promise<StagedAppend> {
    throw new Error('no table topics here');
  }

  append(items: readonly AppendItem[]): Promise<readonly AppendOutcome[]> {
    const copies = items.map((item) => ({ ...item, bytes: Buffer.from(item.bytes) }));
    return new Promise((resolve) => {
      this.#pending.push({ items: copies, resolve });
      if (this.autoCommit) queueMicrotask(() => this.commit());
    });
  }

  /** Appends that wait for {@link commit}. */
  get pending(): number {
    return this.#pending.length;
  }

  /** Commits what was admitted, or the first so many appends. */
  commit(count = this.#pending.length): void {
    const moved = new Set<number>();
    const settled = this.#pending.splice(0, count).map(({ items, resolve }) => ({
      resolve,
      outcomes: items.map((item) => this.#commitItem(item, moved)),
    }));
    for (const id of moved) this.#tell(id);
    for (const { resolve, outcomes } of settled) resolve(outcomes);
  }

  relieve(): void {
    this.congested = false;
    for (const action of this.#relieved.splice(0)) action();
  }

  whenRelieved(action: () => void): void {
    if (this.congested) this.#relieved.push(action);
    else action();
  }

  async read({ partitions, maxBytes }: ReadRequest): Promise<ReadResult> {
    this.reads += 1;
    this.unreleased += 1;
    let left = maxBytes;
    let first = true;
    const results = partitions.map((request) => {
      const result = this.#readPartition(request, Math.min(left, request.maxBytes), first);
      left = Math.max(0, left - result.bytes);
      if (result.bytes > 0) first = false;
      return result;
    });
    let released = false;
    const release = () => {
      if (released) throw new Error('released twice');
      released = true;
      this.unreleased -= 1;
    };
    return { partitions: results, release };
  }

  watermarks(partitionId: number): Watermarks | undefined {
    const partition = this.#partition(partitionId);
    if (partition === undefined) return undefined;
    const { start, end } = partition;
    return { logStartOffset: start, lastStableOffset: end, highWatermark: end };
  }

  subscribe(partitionIds: readonly number[], listener: (partitionId: number) => void): () => void {
    for (const id of partitionIds) {
      const listeners = this.#listeners.get(id) ?? new Set();
      this.#listeners.set(id, listeners.add(listener));
    }
    return () => {
      for (const id of partitionIds) this.#listeners.get(id)?.delete(listener);
    };
  }

  async offsetForTime(id: number, timestampMs: number): Promise<OffsetAtTime | undefined> {
    return this.#records(id).find((record) => record.timestamp >= timestampMs);
  }

  async maxTimestamp(id: number): Promise<OffsetAtTime | undefined> {
    let best: OffsetAtTime | undefined;
    for (const record of this.#records(id)) {
      if (best === undefined || record.timestamp > best.timestamp) best = record;
    }
    return best;
  }

  async deleteRecords(partitionId: number, offset: number): Promise<number> {
    const partition = this.#partition(partitionId);
    if (partition === undefined) throw new FloeError('not-found', `no partition ${partitionId}`);
    const target = offset === -1 ? partition.end : offset;
    if (target > partition.end || target < 0) {
      throw new FloeError('invalid', `offset ${offset} is not within the log`);
    }
    partition.start = Math.max(partition.start, target);
    return partition.start;
  }

  sizeOf(partitionId: number): number {
    const batches = this.#partition(partitionId)?.batches ?? [];
    return batches.reduce((sum, batch) => sum + batch.bytes.length, 0);
  }

  async stop(): Promise<void> {
    this.commit();
  }

  #partition(id: number): Partition | undefined {
    if (!this.#known(id)) return undefined;
    let partition = this.#partitions.get(id);
    if (partition === undefined) {
      partition = { batches: [], producers: new Map(), start: 0, end: 0 };
      this.#partitions.set(id, partition);
    }
    return partition;
  }

  #commitItem(item: AppendItem, moved: Set<number>): AppendOutcome {
    const partition = this.#partition(item.partitionId);
    if (partition === undefined) return refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
    const earlier = sequenceCheck(partition, item);
    if (earlier !== undefined) return earlier;
    const baseOffset = partition.end;
    const endOffset = baseOffset + item.lastOffsetDelta + 1;
    const bytes = Buffer.from(item.bytes);
    RecordBatch.patchBaseOffset(bytes, 0, baseOffset);
    RecordBatch.patchLeaderEpoch(bytes, 0, 0);
    partition.batches.push({ baseOffset, endOffset, bytes });
    partition.end = endOffset;
    moved.add(item.partitionId);
    const outcome = {
      errorCode: 0,
      baseOffset,
      logAppendTimeMs: item.logAppendTimeMs,
      logStartOffset: partition.start,
      errorMessage: '',
    };
    noteSequence(partition, item, outcome);
    return outcome;
  }

  #readPartition(
    { partitionId, offset }: ReadPartitionRequest,
    limit: number,
    first: boolean,
  ): ReadPartitionResult {
    const partition = this.#partition(partitionId);
    const none = { partitionId, runs: [], bytes: 0, abortedTransactions: [] };
    const unknown = { highWatermark: -1, lastStableOffset: -1, logStartOffset: -1 };
    if (partition === undefined) {
      return { ...none, ...unknown, errorCode: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION };
    }
    if (offset < partition.start || offset > partition.end) {
      return { ...none, ...unknown, errorCode: ErrorCode.OFFSET_OUT_OF_RANGE };
    }
    const taken: StoredBatch[] = [];
    let bytes = 0;
    for (const batch of partition.batches) {
      if (batch.endOffset <= offset) continue;
      if (bytes + batch.bytes.length > limit && !(first && taken.length === 0)) break;
      taken.push(batch);
      bytes += batch.bytes.length;
    }
    return {
      ...none,
      errorCode: 0,
      highWatermark: partition.end,
      lastStableOffset: partition.end,
      logStartOffset: partition.start,
      runs: taken.length === 0 ? [] : [this.#run(taken)],
      bytes,
    };
  }

  #run(taken: readonly StoredBatch[]) {
    const { baseOffset } = taken[0]!;
    const bytes = Buffer.concat(taken.map((batch) => batch.bytes));
    if (this.raw) {
      for (let at = 0; at < bytes.length; at = RecordBatch.batchEnd(bytes, at)) {
        RecordBatch.patchBaseOffset(bytes, at, 0);
        RecordBatch.patchLeaderEpoch(bytes, at, -1);
      }
    }
    return { baseOffset, bytes, patched: !this.raw };
  }

  #records(id: number): OffsetAtTime[] {
    const partition = this.#partition(id);
    const cursor = new RecordCursor();
    const found: OffsetAtTime[] = [];
    for (const { bytes } of partition?.batches ?? []) {
      cursor.open(bytes);
      while (cursor.next()) {
        const { offset, timestamp } = cursor;
        if (offset >= partition!.start) found.push({ offset, timestamp });
      }
    }
    return found;
  }

  #tell(partitionId: number): void {
    for (const listener of [...(this.#listeners.get(partitionId) ?? [])]) listener(partitionId);
  }
}

function refused(errorCode: number): AppendOutcome {
  const none = { baseOffset: -1, logAppendTimeMs: -1, logStartOffset: -1 };
  return { errorCode, ...none, errorMessage: '' };
}

/** The outcome of a duplicate or out-of-order batch; undefined when it may be appended. */
function sequenceCheck(partition: Partition, item: AppendItem): AppendOutcome | undefined {
  if (item.producerId < 0) return undefined;
  const state = partition.producers.get(item.producerId);
  const { baseSequence, producerEpoch } = item;
  if (state === undefined) return undefined;
  if (producerEpoch < state.epoch) return refused(ErrorCode.INVALID_PRODUCER_EPOCH);
  if (producerEpoch > state.epoch) {
    return baseSequence === 0 ? undefined : refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
  }
  const duplicate = state.recent.find(({ sequence }) => sequence === baseSequence);
  if (duplicate !== undefined) return duplicate.outcome;
  if (baseSequence === state.nextSequence) return undefined;
  return refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER);
}

function noteSequence(partition: Partition, item: AppendItem, outcome: AppendOutcome): void {
  if (item.producerId < 0) return;
  const known = partition.producers.get(item.producerId);
  const same = known?.epoch === item.producerEpoch ? known.recent : [];
  partition.producers.set(item.producerId, {
    epoch: item.producerEpoch,
    nextSequence: (item.baseSequence + item.lastOffsetDelta + 1) % SEQUENCE_SPACE,
    recent: [...same, { sequence: item.baseSequence, outcome }].slice(-WINDOW),
  });
}
