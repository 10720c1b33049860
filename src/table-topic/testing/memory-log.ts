// A Log in memory for the tests of table topics: batches as appended, watermarks, subscriptions, retention.
// Not for: durability, producers, anything of the broker's.

import type { StageRequest, TablesMetadata } from '../../metadata/tables.ts';
import {
  baseOffset,
  lastOffsetDelta,
  maxTimestamp,
  patchBaseOffset,
} from '../../protocol/record-batch.ts';
import type {
  AbortedTransaction,
  AppendItem,
  AppendOutcome,
  CommitSteps,
  Log,
  OffsetAtTime,
  ReadPartitionResult,
  ReadRequest,
  ReadResult,
  StagedAppend,
  Watermarks,
} from '../../storage/log/log.ts';

interface Partition {
  readonly batches: Uint8Array[];
  /** First offset and number of each commit. */
  readonly steps: { readonly offset: number; readonly commit: number }[];
  logStart: number;
  end: number;
  /** Undefined: the end. */
  lastStable: number | undefined;
  aborted: AbortedTransaction[];
}

export class MemoryLog implements Log {
  readonly congested = false;
  readonly room = 2 ** 30;
  /** Reads made, for tests of what is read again. */
  reads = 0;
  pinned = 0;
  readonly #partitions = new Map<number, Partition>();
  readonly #listeners = new Map<number, Set<(partitionId: number) => void>>();

  #partition(partitionId: number): Partition {
    let partition = this.#partitions.get(partitionId);
    if (partition === undefined) {
      partition = {
        batches: [],
        steps: [],
        logStart: 0,
        end: 0,
        lastStable: undefined,
        aborted: [],
      };
      this.#partitions.set(partitionId, partition);
    }
    return partition;
  }

  /** Each added batch is a commit of its own. */
  lastCommitNumber = 0;

  async caughtUp(): Promise<void> {}

  async commitSteps(partitionId: number, offset: number, endOffset: number): Promise<CommitSteps> {
    const { steps } = this.#partition(partitionId);
    const first = steps.findLastIndex((step) => step.offset <= offset);
    const found = steps.slice(Math.max(0, first)).filter((step) => step.offset < endOffset);
    return {
      offsets: Float64Array.from(found, (step) => step.offset),
      commits: Float64Array.from(found, (step) => step.commit),
    };
  }

  /** Appends a built batch; its base offset is set. */
  add(partitionId: number, batch: Uint8Array): void {
    const partition = this.#partition(partitionId);
    const shared = new Uint8Array(new SharedArrayBuffer(batch.length));
    shared.set(batch);
    patchBaseOffset(shared, 0, partition.end);
    partition.batches.push(shared);
    this.lastCommitNumber += 1;
    partition.steps.push({ offset: partition.end, commit: this.lastCommitNumber });
    partition.end += lastOffsetDelta(shared) + 1;
    this.tell(partitionId);
  }

  /** Leaves a hole, as compaction or an expired range does. */
  skip(partitionId: number, offsets: number): void {
    this.#partition(partitionId).end += offsets;
  }

  setLastStable(partitionId: number, offset: number | undefined): void {
    this.#partition(partitionId).lastStable = offset;
    this.tell(partitionId);
  }

  setAborted(partitionId: number, aborted: AbortedTransaction[]): void {
    this.#partition(partitionId).aborted = aborted;
  }

  /** Retention: whole batches below `offset` go. */
  expire(partitionId: number, offset: number): void {
    const partition = this.#partition(partitionId);
    partition.logStart = offset;
    while (partition.batches[0] !== undefined && endOf(partition.batches[0]) <= offset) {
      partition.batches.shift();
    }
  }

  tell(partitionId: number): void {
    for (const listener of this.#listeners.get(partitionId) ?? []) listener(partitionId);
  }

  append(): Promise<readonly AppendOutcome[]> {
    throw new Error('tests add batches');
  }

  maxAppendBytes = 8 * 2 ** 20;
  /** Where stages of {@link appendWithStage} enter. */
  stages: Pick<TablesMetadata, 'stage'> | undefined;
  /** Partitions that were deleted: nothing can be appended to them. */
  readonly gone = new Set<number>();

  async appendWithStage(items: readonly AppendItem[], stage: StageRequest): Promise<StagedAppend> {
    if (items.some(({ partitionId }) => this.gone.has(partitionId))) return { kind: 'unplaced' };
    // Kept before the caller may change its buffers.
    const batches = items.map(({ partitionId, bytes }) => ({ partitionId, bytes: bytes.slice() }));
    const outcome = await this.stages!.stage(stage);
    if (outcome.kind !== 'staged') return outcome;
    for (const { partitionId, bytes } of batches) this.add(partitionId, bytes);
    return outcome;
  }

  /** The batches of a partition, in order. */
  batches(partitionId: number): readonly Uint8Array[] {
    return this.#partition(partitionId).batches;
  }

  whenRelieved(action: () => void): void {
    action();
  }

  async read(request: ReadRequest): Promise<ReadResult> {
    this.reads += 1;
    this.pinned += 1;
    let left = request.maxBytes;
    const partitions = request.partitions.map(({ partitionId, offset, maxBytes }) => {
      const partition = this.#partition(partitionId);
      const stable = partition.lastStable ?? partition.end;
      const runs: { baseOffset: number; bytes: Uint8Array; patched: boolean }[] = [];
      let bytes = 0;
      for (const batch of partition.batches) {
        if (endOf(batch) <= offset || baseOffset(batch) >= stable) continue;
        const room = Math.min(left, maxBytes - bytes);
        if (batch.length > room && runs.length > 0) break;
        if (left <= 0) break;
        runs.push({ baseOffset: baseOffset(batch), bytes: batch, patched: true });
        bytes += batch.length;
        left -= batch.length;
      }
      return {
        partitionId,
        errorCode: offset < partition.logStart ? 1 : 0,
        highWatermark: partition.end,
        lastStableOffset: stable,
        logStartOffset: partition.logStart,
        runs: offset < partition.logStart ? [] : runs,
        bytes,
        abortedTransactions: partition.aborted,
      } satisfies ReadPartitionResult;
    });
    return {
      partitions,
      release: () => {
        this.pinned -= 1;
      },
    };
  }

  watermarks(partitionId: number): Watermarks {
    const partition = this.#partition(partitionId);
    return {
      logStartOffset: partition.logStart,
      lastStableOffset: partition.lastStable ?? partition.end,
      highWatermark: partition.end,
    };
  }

  subscribe(partitionIds: readonly number[], listener: (partitionId: number) => void): () => void {
    for (const id of partitionIds) {
      const listeners = this.#listeners.get(id) ?? new Set();
      listeners.add(listener);
      this.#listeners.set(id, listeners);
    }
    return () => {
      for (const id of partitionIds) this.#listeners.get(id)?.delete(listener);
    };
  }

  async offsetForTime(partitionId: number, timestampMs: number): Promise<OffsetAtTime | undefined> {
    for (const batch of this.#partition(partitionId).batches) {
      if (maxTimestamp(batch) >= timestampMs) {
        return { offset: baseOffset(batch), timestamp: maxTimestamp(batch) };
      }
    }
    return undefined;
  }

  async maxTimestamp(): Promise<OffsetAtTime | undefined> {
    return undefined;
  }

  async deleteRecords(partitionId: number, offset: number): Promise<number> {
    this.expire(partitionId, offset);
    return offset;
  }

  sizeOf(partitionId: number): number {
    return this.#partition(partitionId).batches.reduce((sum, batch) => sum + batch.length, 0);
  }

  async stop(): Promise<void> {}
}

const endOf = (batch: Uint8Array) => baseOffset(batch) + lastOffsetDelta(batch) + 1;
