// Request bodies that tests need again and again.

import { ZERO_UUID } from '../../protocol/fields.ts';
import { type BatchOptions, buildBatch, type RecordInput } from '../../protocol/record-builder.ts';

/** One batch of `values` for partition 0, or the bytes given, as a Produce request. */
export function produceRequest(
  topic: string,
  records: Uint8Array | null,
  options: {
    readonly acks?: number;
    readonly partition?: number;
    readonly timeoutMs?: number;
  } = {},
) {
  const { acks = -1, partition = 0, timeoutMs = 10_000 } = options;
  return {
    acks,
    timeoutMs,
    topicData: [
      { name: topic, topicId: ZERO_UUID, partitionData: [{ index: partition, records }] },
    ],
  };
}

export function batchOf(values: readonly (string | RecordInput)[], options: BatchOptions = {}) {
  const records = values.map((value) => (typeof value === 'string' ? { value } : value));
  return buildBatch(records, options);
}

export interface FetchFrom {
  readonly topic?: string;
  readonly topicId?: string;
  readonly partition?: number;
  readonly offset?: number;
  readonly maxBytes?: number;
  readonly leaderEpoch?: number;
}

export interface FetchWith {
  readonly maxWaitMs?: number;
  readonly minBytes?: number;
  readonly maxBytes?: number;
  readonly isolationLevel?: number;
  readonly session?: readonly [id: number, epoch: number];
}

export function fetchRequest(from: readonly FetchFrom[], options: FetchWith = {}) {
  const [sessionId, sessionEpoch] = options.session ?? [0, -1];
  return {
    maxWaitMs: options.maxWaitMs ?? 0,
    minBytes: options.minBytes ?? 1,
    maxBytes: options.maxBytes ?? 2 ** 25,
    isolationLevel: options.isolationLevel ?? 0,
    sessionId,
    sessionEpoch,
    replicaState: {},
    topics: from.map((one) => ({
      topic: one.topic ?? '',
      topicId: one.topicId ?? ZERO_UUID,
      partitions: [
        {
          partition: one.partition ?? 0,
          fetchOffset: one.offset ?? 0,
          partitionMaxBytes: one.maxBytes ?? 2 ** 20,
          currentLeaderEpoch: one.leaderEpoch ?? -1,
          replicaDirectoryId: ZERO_UUID,
        },
      ],
    })),
    forgottenTopicsData: [],
  };
}
