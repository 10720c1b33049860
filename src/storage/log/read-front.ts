// A read over many partitions: the tail cache where it reaches, else the cold reader, under one budget of bytes.
// Kafka's rule: the first partition with data returns at least one batch, whatever the limits (KIP-74).
import { FloeError } from '../../base/error.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import {
  batchEnd,
  baseOffset as headerOffset,
  lastOffsetDelta,
} from '../../protocol/record-batch.ts';
import type { AbortedRanges } from './aborted-ranges.ts';
import type { ColdReader, ColdReadRequest } from './cold-reader.ts';
import type { FrontPartitions } from './front-partitions.ts';
import type {
  AbortedTransaction,
  ReadPartitionRequest,
  ReadPartitionResult,
  ReadRequest,
  ReadResult,
  ReadRun,
  Watermarks,
} from './log.ts';
import type { ReaderPins } from './reader-pins.ts';
import type { TailCache } from './tail.ts';

export interface ReadSources {
  readonly partitions: FrontPartitions;
  readonly aborted: AbortedRanges;
  readonly tail: TailCache;
  readonly pins: ReaderPins;
  readonly reader: ColdReader;
  /** Undefined: nobody else works on the log. */
  readonly others?: OthersWork;
}

/** What other brokers may have done to stored objects, compaction by key above all. */
export interface OthersWork {
  /** False when it is known here later than readers of committed records may; then it is about to be asked for. */
  isCurrent(): boolean;
  /** Asks where the partition's log begins now. */
  refreshStart(partitionId: number): Promise<void>;
}

interface Batches {
  readonly runs: readonly ReadRun[];
  readonly bytes: number;
  readonly placed?: boolean;
  release(): void;
}

/** Reads; failures of one partition are its error code and touch no other. */
export async function readFront(request: ReadRequest, sources: ReadSources): Promise<ReadResult> {
  const partitions: ReadPartitionResult[] = [];
  const held: Batches[] = [];
  let taken = 0;
  const cold = coldReads(request, sources);
  // One read goes straight away; several shall not wait for one another.
  if (cold.length > 1) sources.reader.warm(cold);
  for (const wanted of request.partitions) {
    const marks = sources.partitions.watermarks(wanted.partitionId);
    const refusal =
      marks === undefined ? ErrorCode.UNKNOWN_TOPIC_OR_PARTITION : rangeError(wanted, marks);
    if (marks === undefined || refusal !== 0) {
      partitions.push(result(wanted.partitionId, refusal, marks));
      continue;
    }
    const left = request.maxBytes - taken;
    const endOffset = endOf(request, marks);
    if (wanted.offset >= endOffset || (taken > 0 && left <= 0)) {
      partitions.push(result(wanted.partitionId, 0, marks));
      continue;
    }
    const limits = { endOffset, maxBytes: Math.min(wanted.maxBytes, left) };
    try {
      const batches =
        sources.pins.read(sources.tail, wanted.partitionId, wanted.offset, limits) ??
        (await sources.reader.read({ ...wanted, ...limits, ...pick(request) }));
      if (taken > 0 && batches.bytes > limits.maxBytes) {
        batches.release();
        partitions.push(result(wanted.partitionId, 0, marks));
        continue;
      }
      held.push(batches);
      taken += batches.bytes;
      const { runs, bytes } = batches;
      const abortedTransactions =
        request.isolation === 'read_committed' &&
        sources.aborted.has(wanted.partitionId, wanted.offset)
          ? await findAborted(wanted, batches, sources)
          : NONE;
      // Its aborted transactions went with a topic that was deleted meanwhile: they could not be left out (L7).
      if (sources.partitions.watermarks(wanted.partitionId) === undefined) {
        partitions.push(
          result(wanted.partitionId, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, undefined),
        );
        continue;
      }
      if (abortedTransactions === undefined) {
        partitions.push(await outOfRange(wanted, sources));
        continue;
      }
      partitions.push({
        ...result(wanted.partitionId, 0, marks),
        runs,
        bytes,
        abortedTransactions,
      });
    } catch (caught) {
      partitions.push(await failure(wanted, caught, sources));
    }
  }
  return {
    partitions,
    release: () => {
      for (const batches of held.splice(0)) batches.release();
    },
  };
}

/** What readers of committed records leave out of these; undefined: the log no longer holds the first of them (L7). */
async function findAborted(
  { partitionId, offset }: ReadPartitionRequest,
  { runs, placed }: Batches,
  { aborted, others }: ReadSources,
): Promise<readonly AbortedTransaction[] | undefined> {
  const stored = others !== undefined && placed === true;
  const found = aborted.find(partitionId, offset, endOfRuns(runs), stored);
  if (!(found instanceof Promise)) return found;
  const list = await found;
  // Ranges go a good while after the records they are about; who knows of others' compaction later than that may have
  // read those records from a copy, and takes them for committed ones.
  if (others?.isCurrent() === false)
    throw new FloeError(
      'unavailable',
      'what others did to stored records is not known: read again',
    );
  return list;
}

/** What was read has expired meanwhile: it is told where the log begins now. */
async function outOfRange(
  { partitionId }: ReadPartitionRequest,
  { partitions, others }: ReadSources,
): Promise<ReadPartitionResult> {
  await others?.refreshStart(partitionId).catch(() => {});
  return result(partitionId, ErrorCode.OFFSET_OUT_OF_RANGE, partitions.watermarks(partitionId));
}

/** What could not be read; it may have expired meanwhile, and nothing is wrong with it then. */
async function failure(
  wanted: ReadPartitionRequest,
  caught: unknown,
  { partitions, others }: ReadSources,
): Promise<ReadPartitionResult> {
  const { partitionId } = wanted;
  // Refused by the store, it is no reason to fail otherwise.
  await others?.refreshStart(partitionId).catch(() => {});
  const marks = partitions.watermarks(partitionId);
  const expired = marks !== undefined && wanted.offset < marks.logStartOffset;
  const errorCode = expired ? ErrorCode.OFFSET_OUT_OF_RANGE : readErrorCode(caught);
  return result(partitionId, errorCode, marks);
}

const NONE: readonly AbortedTransaction[] = [];

/** Offset after the last batch. */
function endOfRuns(runs: readonly ReadRun[]): number {
  const last = runs.at(-1);
  if (last === undefined) return 0;
  let next = last.baseOffset;
  for (let at = 0, end: number; (end = batchEnd(last.bytes, at)) !== -1; at = end) {
    if (last.patched) next = headerOffset(last.bytes, at);
    next += lastOffsetDelta(last.bytes, at) + 1;
  }
  return next;
}

/** The reads that storage will be asked for, as far as the budget certainly reaches. */
function coldReads(request: ReadRequest, { partitions, tail }: ReadSources): ColdReadRequest[] {
  const cold: ColdReadRequest[] = [];
  let left = request.maxBytes;
  for (const wanted of request.partitions) {
    if (left <= 0) break;
    const marks = partitions.watermarks(wanted.partitionId);
    if (marks === undefined || rangeError(wanted, marks) !== 0) continue;
    const endOffset = endOf(request, marks);
    if (wanted.offset >= endOffset) continue;
    const maxBytes = Math.min(wanted.maxBytes, left);
    left -= maxBytes;
    if (tail.holds(wanted.partitionId, wanted.offset)) continue;
    cold.push({ ...wanted, endOffset, maxBytes, ...pick(request) });
  }
  return cold;
}

function endOf({ isolation }: ReadRequest, marks: Watermarks): number {
  return isolation === 'read_committed' ? marks.lastStableOffset : marks.highWatermark;
}

function pick({ purpose, signal }: ReadRequest) {
  return signal === undefined ? { purpose } : { purpose, signal };
}

function rangeError({ offset }: ReadPartitionRequest, marks: Watermarks): number {
  const inside = offset >= marks.logStartOffset && offset <= marks.highWatermark;
  return inside ? 0 : ErrorCode.OFFSET_OUT_OF_RANGE;
}

/** L9: what may pass is retriable; damage is Kafka's storage error, which alarms the operator and not the client. */
function readErrorCode(caught: unknown): number {
  const error = FloeError.from(caught);
  return error.code === 'not-found'
    ? ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    : ErrorCode.KAFKA_STORAGE_ERROR;
}

function result(partitionId: number, errorCode: number, marks?: Watermarks): ReadPartitionResult {
  return {
    partitionId,
    errorCode,
    highWatermark: marks?.highWatermark ?? -1,
    lastStableOffset: marks?.lastStableOffset ?? -1,
    logStartOffset: marks?.logStartOffset ?? -1,
    runs: [],
    bytes: 0,
    abortedTransactions: NONE,
  };
}
