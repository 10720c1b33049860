// Produce (0), versions 3–13: one batch per partition, checked, admitted to the log in order of arrival, answered
// once durable and committed. acks=1 is served as −1: there is no replica to wait for and nothing faster to offer.
// acks=0 has no reply; a failure then closes the connection, as in Kafka.
// v7 zstd, v8 errors of single records, v9 flexible, v13 topic ids. Advertised from 0 (KAFKA-18659).
// A batch of a transaction is admitted with a note of the transaction as it is now (L6). To v10 its partition must have
// been added (INVALID_TXN_STATE), v11 answers TRANSACTION_ABORTABLE instead, from v12 on the batch adds it (KIP-890).
// In a cluster another node may coordinate the transaction, or have made the topic a moment ago: what this one has to
// learn of that is asked for before the request starts, and what comes after it by the connection waits (`prepare`).
// What an operator has stopped is refused before anything of the batch is looked at or noted (operator-stops.ts).
// Simplifications: a timeout below a second counts as one, since Kafka's own answers would come at once; no hints of
// other leaders (v10, KIP-951; skipped.ts).
import type { TransactionAdmission, TransactionMode } from '../../metadata/transactions.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import {
  type ProduceReply,
  type ProduceRequest,
  produceApi,
} from '../../protocol/messages/00-produce.ts';
import * as RecordBatch from '../../protocol/record-batch.ts';
import { type BatchRules, isAccepted, validateBatches } from '../../protocol/validate.ts';
import type { AppendItem, AppendOutcome } from '../../storage/log/log.ts';
import { HANG_UP, type Handler, NO_REPLY, type Outcome, type RequestContext } from '../handler.ts';
import { type OperatorStop, writeStop } from '../operator-stops.ts';
import { refundProduce } from '../quotas/charge.ts';
import type { TopicPolicy } from '../topic-configs.ts';
import { highest, learnTopics, type NamedTopic, topicFor } from '../topic-lookup.ts';
import type { Learnt } from '../transactions/admission.ts';

type TopicReply = ProduceReply['responses'][number];
type PartitionReply = TopicReply['partitionResponses'][number];

const MIN_TIMEOUT_MS = 1_000;

const NOT_APPENDED = {
  baseOffset: -1,
  logAppendTimeMs: -1,
  logStartOffset: -1,
  recordErrors: [],
} as const;

/** How a transaction stands that another node coordinates; undefined where this one needs not be told. */
type Prepared = Learnt | undefined;

export const produceHandler: Handler<typeof produceApi, Prepared> = {
  api: produceApi,
  versions: { min: 3, max: 13 },
  advertisedFrom: 0,
  inPlace: true,
  prepare(request, context) {
    const topics = learnTopics(context, () => namedIn(request));
    const transaction = learnTransaction(request, context);
    if (topics === undefined && transaction === undefined) return undefined;
    return Promise.all([transaction, topics]).then(([learnt]) => learnt);
  },
  handle(request, context, prepared) {
    const admission = admit(request, context, prepared);
    if (admission.items.length === 0) return conclude(request, context, admission, []);
    const appended = context.services.log.append(admission.items);
    return new Promise((resolve) => {
      const done = (outcomes: readonly AppendOutcome[] | undefined) =>
        resolve(conclude(request, context, admission, outcomes));
      if (request.acks === 0) void appended.then(done);
      else inTime(context, Math.max(request.timeoutMs, MIN_TIMEOUT_MS), appended, done);
    });
  },
};

function* namedIn({ topicData }: ProduceRequest): Generator<NamedTopic> {
  for (const { name, topicId, partitionData } of topicData)
    yield { name, topicId, lastIndex: highest(partitionData.map(({ index }) => index)) };
}

/** All batches of a request are of one producer: what its first one says of itself goes for all. */
function learnTransaction(
  { transactionalId, topicData }: ProduceRequest,
  { services, apiVersion }: RequestContext,
): Promise<Learnt> | undefined {
  if (transactionalId === null || services.transactions === undefined) return undefined;
  const records = topicData[0]?.partitionData[0]?.records;
  if (!records || records.length < RecordBatch.BATCH_HEADER_BYTES) return undefined;
  const producer = {
    producerId: RecordBatch.producerId(records),
    producerEpoch: RecordBatch.producerEpoch(records),
  };
  return services.transactions.learn(transactionalId, producer, modeOf(apiVersion));
}

interface Admission {
  readonly responses: readonly TopicReply[];
  readonly items: readonly AppendItem[];
  /** Where the outcome of each item belongs. */
  readonly places: readonly { readonly partitions: PartitionReply[]; readonly at: number }[];
}

/** Checks every batch and makes items of the good ones; the others have their answer already. */
function admit(request: ProduceRequest, context: RequestContext, prepared: Prepared): Admission {
  const responses: TopicReply[] = [];
  const items: AppendItem[] = [];
  const places: { partitions: PartitionReply[]; at: number }[] = [];
  const { acks, transactionalId } = request;
  const acksKnown = acks === 0 || acks === 1 || acks === -1;
  for (const { name, topicId, partitionData } of request.topicData) {
    const found = topicFor(context, 'write', { name, topicId });
    const policy = found.topic && context.services.topicConfigs.policy(found.topic);
    const rules = policy && rulesOf(policy, context);
    const partitions: PartitionReply[] = [];
    responses.push({ name, topicId, partitionResponses: partitions });
    for (const { index, records } of partitionData) {
      const partitionId = found.topic?.partitions[index];
      if (!acksKnown) {
        partitions.push(refused(index, ErrorCode.INVALID_REQUIRED_ACKS));
      } else if (rules === undefined || partitionId === undefined) {
        partitions.push(refused(index, found.errorCode || ErrorCode.UNKNOWN_TOPIC_OR_PARTITION));
      } else {
        const stop = writeStop(found.topic!, index, policy!);
        const checked =
          stop === undefined
            ? check({ index, records, rules, partitionId, transactionalId, prepared }, context)
            : stopped({ index, records }, stop, context);
        if ('errorCode' in checked) partitions.push(checked);
        else {
          places.push({ partitions, at: partitions.length });
          partitions.push({ index, errorCode: 0, ...NOT_APPENDED });
          items.push(checked);
        }
      }
    }
  }
  return { responses, items, places };
}

function rulesOf(policy: TopicPolicy, { apiVersion, services }: RequestContext): BatchRules {
  return {
    ...policy,
    maxDecompressedBytes: services.config.values['batch.decompressed.max.bytes'],
    nowMs: services.clock.now(),
    produceVersion: apiVersion,
  };
}

/** The refusal; what is not written doesn't count against the client's quota. */
function stopped(
  { index, records }: Pick<Unchecked, 'index' | 'records'>,
  { errorCode, errorMessage }: OperatorStop,
  context: RequestContext,
): PartitionReply {
  refundProduce(context, records?.length ?? 0);
  return { ...refused(index, errorCode), errorMessage };
}

interface Unchecked {
  readonly index: number;
  readonly records: Uint8Array | null;
  readonly rules: BatchRules;
  readonly partitionId: number;
  readonly transactionalId: string | null;
  readonly prepared: Prepared;
}

/** An item, or the refusal. */
function check(from: Unchecked, context: RequestContext): AppendItem | PartitionReply {
  const { index, partitionId } = from;
  const batch = validateBatches(from.records, from.rules);
  if (!isAccepted(batch)) {
    const { errorCode, errorMessage, recordErrors } = batch;
    return { index, ...NOT_APPENDED, errorCode, errorMessage, recordErrors };
  }
  const item = {
    partitionId,
    bytes: batch.bytes,
    recordCount: batch.recordCount,
    lastOffsetDelta: batch.lastOffsetDelta,
    producerId: batch.producerId,
    producerEpoch: batch.producerEpoch,
    baseSequence: batch.baseSequence,
    maxTimestamp: batch.maxTimestamp,
    logAppendTimeMs: batch.logAppendTimeMs,
  };
  if (!batch.transactional) return item;
  const transaction = admitToTransaction(item, from, context);
  if (typeof transaction === 'number') return refused(index, transaction);
  return { ...item, transaction };
}

/** The note that a batch of a transaction takes along, or the error code that refuses it. */
function admitToTransaction(
  { producerId, producerEpoch, partitionId }: AppendItem,
  { transactionalId, prepared }: Unchecked,
  { services, access, apiVersion }: RequestContext,
): TransactionAdmission | number {
  if (transactionalId === null || !access.allows('write', 'transactionalId', transactionalId))
    return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
  const mode = modeOf(apiVersion);
  const { transactions } = services;
  if (transactions === undefined) return ErrorCode.INVALID_TXN_STATE;
  const batch = { transactionalId, producerId, producerEpoch, partitionId, mode };
  return transactions.admit(batch, prepared);
}

function modeOf(apiVersion: number): TransactionMode {
  if (apiVersion >= 12) return 'implicit';
  return apiVersion === 11 ? 'verify-abortable' : 'verify';
}

function refused(index: number, errorCode: number): PartitionReply {
  return { index, errorCode, ...NOT_APPENDED };
}

/** Calls back once: with nothing when the time is up first; what becomes of the batches is then the log's affair. */
function inTime(
  context: RequestContext,
  timeoutMs: number,
  appended: Promise<readonly AppendOutcome[]>,
  done: (outcomes: readonly AppendOutcome[] | undefined) => void,
): void {
  let late = false;
  const timer = context.services.clock.setTimer(timeoutMs, () => {
    late = true;
    // The log still holds the bytes: a client that doesn't wait for them would else have as many again, time after time.
    context.keepUntil(appended);
    done(undefined);
  });
  void appended.then((outcomes) => {
    if (late) return;
    timer.cancel();
    done(outcomes);
  });
}

function conclude(
  { acks, transactionalId }: ProduceRequest,
  context: RequestContext,
  { responses, places }: Admission,
  outcomes: readonly AppendOutcome[] | undefined,
): Outcome<ProduceReply> {
  for (let n = 0; n < places.length; n += 1) {
    const { partitions, at } = places[n]!;
    partitions[at] = answer(partitions[at]!.index, outcomes?.[n]);
  }
  let failed = false;
  for (const { partitionResponses } of responses) {
    for (const { errorCode } of partitionResponses) {
      if (errorCode === 0) continue;
      failed = true;
      context.countError(errorCode);
    }
  }
  if (failed && transactionalId !== null)
    context.services.transactions?.refusedBatch(transactionalId);
  if (acks === 0) return failed ? HANG_UP : NO_REPLY;
  return { responses };
}

function answer(index: number, outcome: AppendOutcome | undefined): PartitionReply {
  if (outcome === undefined) return refused(index, ErrorCode.REQUEST_TIMED_OUT);
  const { errorCode, baseOffset, logAppendTimeMs, logStartOffset, errorMessage } = outcome;
  if (errorCode === 0) {
    return { index, errorCode, baseOffset, logAppendTimeMs, logStartOffset, recordErrors: [] };
  }
  return { ...refused(index, errorCode), errorMessage: errorMessage || null };
}
