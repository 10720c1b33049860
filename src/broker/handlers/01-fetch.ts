// Fetch (1), versions 4–18: reads many partitions, waiting up to `maxWaitMs` for `minBytes`.
// Sessions by KIP-227 (fetch-sessions.ts). A batch is never cut: the first one of the first partition that has
// any is returned even past every limit, and an offset within a batch returns it whole.
// One unknown partition doesn't end the wait of the others; an offset out of range does, as in Kafka. A quarantined one
// (KAFKA_STORAGE_ERROR) doesn't either, and what asks for nothing else waits, too: Java clients ask again at once.
// v7 sessions, v9 leader epochs, v11 racks (every broker reads from the same storage, so no other is preferred: −1; the
// rack told decides which leaders Metadata names), v12 flexible, v13 topic ids.
// In a cluster other brokers write too: a partition or offset that isn't here yet is looked for in the store once, before
// it counts as unknown or out of range.
// Simplifications: followers don't exist, so replica fields are ignored; epochs never diverge or rise, so
// clients would believe no hint of another leader (KIP-951; skipped.ts).
import { ErrorCode } from '../../protocol/errors.ts';
import { type FetchReply, type FetchRequest, fetchApi } from '../../protocol/messages/01-fetch.ts';
import {
  type FetchLimits,
  leavesMore,
  type PartitionRead,
  type ReadPass,
  readPass,
} from '../fetch-read.ts';
import type {
  FetchContext,
  FetchDemand,
  FetchPartition,
  PartitionName,
} from '../fetch-sessions.ts';
import { waitForBytes } from '../fetch-wait.ts';
import type { Handler, RequestContext } from '../handler.ts';
import { chargeFetch, fetchBound } from '../quotas/charge.ts';
import { learnTopics, type NamedTopic } from '../topic-lookup.ts';

const FIRST_VERSION_WITH_TOPIC_IDS = 13;

export const fetchHandler: Handler<typeof fetchApi> = {
  api: fetchApi,
  versions: { min: 4, max: 18 },
  bulky: true,
  waits: true,
  async handle(request, context) {
    const { services, apiVersion } = context;
    const demand = demandOf(request, apiVersion);
    if (request.rackId !== '') context.connection.rack = request.rackId;
    const opened = services.fetchSessions.open(demand, services.clock.monotonic());
    if (opened.kind === 'refused') return refusal(opened.errorCode);
    const pass = await poll(request, context, opened.partitions);
    const waitMs = chargeFetch(context, pass.bytes);
    if (waitMs > 0) {
      pass.release();
      context.throttle(waitMs);
      return throttled(opened);
    }
    context.afterSend(() => pass.release());
    return replyOf(opened, pass, context);
  },
  failed: (_request, { code }) => refusal(code),
};

function demandOf(request: FetchRequest, version: number): FetchDemand {
  const partitions: FetchPartition[] = [];
  for (const { topic, topicId, partitions: asked } of request.topics) {
    for (const { partition, fetchOffset, partitionMaxBytes, currentLeaderEpoch } of asked) {
      const maxBytes = partitionMaxBytes;
      partitions.push({
        topic,
        topicId,
        index: partition,
        fetchOffset,
        maxBytes,
        currentLeaderEpoch,
      });
    }
  }
  const forgotten: PartitionName[] = [];
  for (const { topic, topicId, partitions: indexes } of request.forgottenTopicsData) {
    for (const index of indexes) forgotten.push({ topic, topicId, index });
  }
  const byTopicId = version >= FIRST_VERSION_WITH_TOPIC_IDS;
  const { sessionId, sessionEpoch } = request;
  return { sessionId, sessionEpoch, byTopicId, partitions, forgotten };
}

/** Reads until there is enough, something is wrong, or the time is up. */
async function poll(
  request: FetchRequest,
  context: RequestContext,
  asked: readonly FetchPartition[],
): Promise<ReadPass> {
  const { services, connection } = context;
  const { config, clock } = services;
  const isolation = request.isolationLevel === 1 ? 'read_committed' : 'read_uncommitted';
  const maxBytes = Math.min(
    request.maxBytes,
    config.values['fetch.max.bytes'],
    fetchBound(context),
  );
  const minBytes = Math.min(request.minBytes, maxBytes);
  const limits = { isolation, maxBytes, signal: connection.signal } as const;
  const maxWaitMs = Math.min(request.maxWaitMs, config.values['fetch.max.wait.ms']);
  const deadlineMs = clock.monotonic() + maxWaitMs;
  const learning = learnTopics(context, () => namedIn(asked));
  if (learning !== undefined) await learning;
  for (let last = maxWaitMs <= 0; ; ) {
    const { changes } = services.fetchWaits;
    const pass = await readCaughtUp(context, asked, limits);
    const { partitions, bytes, failed } = pass;
    if (last || failed || bytes >= minBytes || !partitions.some(mayCome)) return pass;
    // What the limits leave for the next request is there already.
    if (bytes > 0 && partitions.some((read) => leavesMore(read, isolation))) return pass;
    // Slabs are not held while waiting.
    pass.release();
    last = await waitForBytes(services, {
      partitions,
      bytes,
      minBytes,
      deadlineMs,
      changes,
      readCommitted: isolation === 'read_committed',
      signal: connection.signal,
    });
  }
}

function* namedIn(asked: readonly FetchPartition[]): Generator<NamedTopic> {
  for (const { topic: name, topicId, index: lastIndex } of asked)
    yield { name, topicId, lastIndex };
}

/** A pass; where an offset lies above the end, another one once this broker has surely heard of everything. */
async function readCaughtUp(
  context: RequestContext,
  asked: readonly FetchPartition[],
  limits: FetchLimits,
): Promise<ReadPass> {
  const { log } = context.services;
  const pass = await readPass(context, asked, limits);
  const isAbove = ({ errorCode, partitionId, asked: { fetchOffset } }: PartitionRead) =>
    errorCode === ErrorCode.OFFSET_OUT_OF_RANGE &&
    fetchOffset > (log.watermarks(partitionId)?.highWatermark ?? -1);
  if (!pass.failed || !pass.partitions.some(isAbove)) return pass;
  pass.release();
  await log.caughtUp();
  return readPass(context, asked, limits);
}

/** It is there, and its operator may let it be read yet: a read that failed would have ended the poll. */
const mayCome = ({ errorCode }: PartitionRead) =>
  errorCode === 0 || errorCode === ErrorCode.KAFKA_STORAGE_ERROR;

/** An empty reply, as of a Fetch that found nothing: the client asks again after its wait. */
function throttled({ kind, session }: Exclude<FetchContext, { kind: 'refused' }>): FetchReply {
  const sessionId = kind === 'incremental' ? session.id : 0;
  return { errorCode: ErrorCode.NONE, sessionId, responses: [] };
}

function refusal(errorCode: number): FetchReply {
  return { errorCode, sessionId: 0, responses: [] };
}

type TopicReply = FetchReply['responses'][number];
type PartitionReply = TopicReply['partitions'][number];

function replyOf(
  opened: Exclude<FetchContext, { kind: 'refused' }>,
  pass: ReadPass,
  context: RequestContext,
): FetchReply {
  const { kind, session } = opened;
  const responses: { topic: string; topicId: string; partitions: PartitionReply[] }[] = [];
  for (const read of pass.partitions) {
    const { asked, errorCode } = read;
    if (errorCode !== 0) context.countError(errorCode);
    const news = session === undefined || session.news(read);
    if (kind === 'incremental' && !news) continue;
    let topic = responses.at(-1);
    if (topic === undefined || topic.topic !== asked.topic || topic.topicId !== asked.topicId) {
      topic = { topic: asked.topic, topicId: asked.topicId, partitions: [] };
      responses.push(topic);
    }
    topic.partitions.push(partitionReply(read));
  }
  return { errorCode: ErrorCode.NONE, sessionId: session?.id ?? 0, responses };
}

function partitionReply(read: PartitionRead): PartitionReply {
  return {
    partitionIndex: read.asked.index,
    errorCode: read.errorCode,
    highWatermark: read.highWatermark,
    lastStableOffset: read.lastStableOffset,
    logStartOffset: read.logStartOffset,
    abortedTransactions: read.aborted.length > 0 ? byFirstOffset(read.aborted) : null,
    records: read.pieces,
  };
}

/** Kafka lists them by their ends; kafkajs goes through them by their beginnings and would show what was aborted. */
function byFirstOffset(aborted: PartitionRead['aborted']): PartitionRead['aborted'] {
  return aborted.toSorted((a, b) => a.firstOffset - b.firstOffset);
}
