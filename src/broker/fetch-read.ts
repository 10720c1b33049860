// One pass of a Fetch over the log: names resolved, offsets compared with the watermarks, the rest read.
// Not for: waiting (fetch-wait.ts), sessions (fetch-sessions.ts).
import { ErrorCode } from '../protocol/errors.ts';
import { ZERO_UUID } from '../protocol/fields.ts';
import * as RecordBatch from '../protocol/record-batch.ts';
import type {
  AbortedTransaction,
  Isolation,
  ReadPartitionRequest,
  ReadPartitionResult,
  ReadRun,
} from '../storage/log/log.ts';
import type { FetchPartition } from './fetch-sessions.ts';
import type { BrokerServices } from './services.ts';
import { type TopicAsker, topicFor } from './topic-lookup.ts';

/** Every partition has one leader for ever, so its epoch never changes; see OffsetForLeaderEpoch. */
export const LEADER_EPOCH = 0;

export interface FetchLimits {
  readonly isolation: Isolation;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

/** Who fetches, from what. */
export interface FetchClient extends TopicAsker {
  readonly services: BrokerServices;
}

/** What a partition's part of the reply is made of. */
export interface PartitionRead {
  readonly asked: FetchPartition;
  /** −1 when it doesn't exist. */
  readonly partitionId: number;
  readonly errorCode: number;
  readonly highWatermark: number;
  readonly lastStableOffset: number;
  readonly logStartOffset: number;
  readonly pieces: readonly Uint8Array[];
  readonly bytes: number;
  /** The last of what was read, raw or patched. */
  readonly lastRun?: ReadRun;
  readonly aborted: readonly AbortedTransaction[];
}

export interface ReadPass {
  readonly partitions: readonly PartitionRead[];
  readonly bytes: number;
  /**
   * True when an offset was out of range or a read failed: such an error ends a long poll, an unknown or a quarantined
   * partition doesn't.
   */
  readonly failed: boolean;
  release(): void;
}

const NOTHING: readonly never[] = [];
const noRelease = () => {};

/** Reads once, in the order asked, without waiting for data. */
export async function readPass(
  context: FetchClient,
  asked: readonly FetchPartition[],
  limits: FetchLimits,
): Promise<ReadPass> {
  const partitions: PartitionRead[] = [];
  const wanted: ReadPartitionRequest[] = [];
  const places: number[] = [];
  for (const partition of asked) {
    const settled = settle(context, partition, limits.isolation);
    if (settled.errorCode === 0 && settled.logStartOffset === UNREAD) {
      places.push(partitions.length);
      wanted.push({
        partitionId: settled.partitionId,
        offset: partition.fetchOffset,
        maxBytes: Math.max(partition.maxBytes, 0),
      });
    }
    partitions.push(settled);
  }
  if (wanted.length === 0) return { partitions, bytes: 0, failed: false, release: noRelease };
  const result = await context.services.log.read({
    partitions: wanted,
    maxBytes: limits.maxBytes,
    isolation: limits.isolation,
    purpose: 'consumer',
    signal: limits.signal,
  });
  let bytes = 0;
  let failed = false;
  for (const [n, read] of result.partitions.entries()) {
    const place = places[n]!;
    const made = madeOf(partitions[place]!, read);
    partitions[place] = made;
    bytes += made.bytes;
    failed ||= made.errorCode !== 0;
  }
  return { partitions, bytes, failed, release: () => result.release() };
}

/** Stands for "the log has to say": no log starts here. */
const UNREAD = Number.NEGATIVE_INFINITY;

/** What can be said of a partition without reading: errors, and that there is nothing new. */
function settle(context: FetchClient, asked: FetchPartition, isolation: Isolation): PartitionRead {
  const { services } = context;
  const named = { name: asked.topic, topicId: asked.topicId };
  const { topic, errorCode } = topicFor(context, 'read', named);
  const partitionId = topic?.partitions[asked.index];
  if (partitionId === undefined) {
    return failure(asked, -1, errorCode || ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
  }
  if (asked.currentLeaderEpoch > LEADER_EPOCH) {
    return failure(asked, partitionId, ErrorCode.UNKNOWN_LEADER_EPOCH);
  }
  if (services.topicConfigs.isQuarantined(topic!, asked.index)) {
    return failure(asked, partitionId, ErrorCode.KAFKA_STORAGE_ERROR);
  }
  const watermarks = services.log.watermarks(partitionId);
  const none = { asked, partitionId, errorCode: 0, pieces: NOTHING, bytes: 0, aborted: NOTHING };
  const end =
    isolation === 'read_committed' ? watermarks?.lastStableOffset : watermarks?.highWatermark;
  if (watermarks !== undefined && asked.fetchOffset === end) return { ...none, ...watermarks };
  return { ...none, highWatermark: -1, lastStableOffset: -1, logStartOffset: UNREAD };
}

function failure(asked: FetchPartition, partitionId: number, errorCode: number): PartitionRead {
  return {
    asked,
    partitionId,
    errorCode,
    highWatermark: -1,
    lastStableOffset: -1,
    logStartOffset: -1,
    pieces: NOTHING,
    bytes: 0,
    aborted: NOTHING,
  };
}

function madeOf({ asked, partitionId }: PartitionRead, read: ReadPartitionResult): PartitionRead {
  if (read.errorCode !== 0) {
    // Whoever asked by id is told in terms of ids.
    const gone = read.errorCode === ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
    const byId = gone && asked.topicId !== ZERO_UUID;
    return failure(asked, partitionId, byId ? ErrorCode.UNKNOWN_TOPIC_ID : read.errorCode);
  }
  return {
    asked,
    partitionId,
    errorCode: 0,
    highWatermark: read.highWatermark,
    lastStableOffset: read.lastStableOffset,
    logStartOffset: read.logStartOffset,
    pieces: read.runs.length === 0 ? NOTHING : read.runs.flatMap(runPieces),
    bytes: read.bytes,
    ...(read.runs.length === 0 ? {} : { lastRun: read.runs.at(-1)! }),
    aborted: read.abortedTransactions,
  };
}

/** True when a limit, not the log's end, ended the read: waiting would bring nothing that isn't there already. */
export function leavesMore(read: PartitionRead, isolation: Isolation): boolean {
  if (read.errorCode !== 0) return false;
  const end = isolation === 'read_committed' ? read.lastStableOffset : read.highWatermark;
  let next = read.asked.fetchOffset;
  if (read.lastRun !== undefined) {
    const { bytes, baseOffset, patched } = read.lastRun;
    next = baseOffset;
    for (let at = 0; at < bytes.length; at += RecordBatch.batchBytes(bytes, at)) {
      // Compaction leaves gaps between batches; then their headers say where they are.
      if (patched) next = RecordBatch.baseOffset(bytes, at);
      next += RecordBatch.lastOffsetDelta(bytes, at) + 1;
    }
  }
  return next < end;
}

/**
 * A run as it goes over the wire. Raw batches get a copy of their header with base offset and leader epoch
 * set, both outside the CRC; their bodies are slices of what is stored.
 */
function runPieces(run: ReadRun): readonly Uint8Array[] {
  if (run.patched) return [run.bytes];
  const pieces: Uint8Array[] = [];
  const { bytes } = run;
  let offset = run.baseOffset;
  for (let at = 0, end = 0; at < bytes.length; at = end) {
    end = at + RecordBatch.batchBytes(bytes, at);
    const bodyAt = at + RecordBatch.BATCH_HEADER_BYTES;
    const header = Buffer.allocUnsafe(RecordBatch.BATCH_HEADER_BYTES);
    header.set(bytes.subarray(at, bodyAt));
    RecordBatch.patchBaseOffset(header, 0, offset);
    RecordBatch.patchLeaderEpoch(header, 0, LEADER_EPOCH);
    pieces.push(header, bytes.subarray(bodyAt, end));
    offset += RecordBatch.lastOffsetDelta(bytes, at) + 1;
  }
  return pieces;
}
