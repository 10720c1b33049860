// AddPartitionsToTxn (24), versions 0–5: partitions join a transaction, which begins with the first. All or none: if
// one can't, the others are OPERATION_NOT_ATTEMPTED. v2 PRODUCER_FENCED (INVALID_PRODUCER_EPOCH before), v3 flexible.
// v4 and v5 are for brokers of a cluster: several transactions, and "is it in the transaction" without adding.
import type { TopicDirectory } from '../../metadata/topic-directory.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import { ZERO_UUID } from '../../protocol/fields.ts';
import {
  type AddPartitionsToTxnRequest,
  addPartitionsToTxnApi,
} from '../../protocol/messages/24-add-partitions-to-txn.ts';
import type { Handler, RequestContext } from '../handler.ts';
import { highest, learnTopics, type NamedTopic, topicOf } from '../topic-lookup.ts';
import { fencedCode } from '../transactions/codes.ts';
import type { TransactionCoordinator } from '../transactions/coordinator.ts';

type Transaction = AddPartitionsToTxnRequest['transactions'][number];
type Topics = Transaction['topics'];

const EMPTY = { errorCode: 0, resultsByTransaction: [], resultsByTopicV3AndBelow: [] };

/** From this version on only brokers ask. */
const BROKERS_ONLY = 4;

export function addPartitionsToTxnHandler(
  transactions: TransactionCoordinator,
): Handler<typeof addPartitionsToTxnApi> {
  return {
    api: addPartitionsToTxnApi,
    versions: { min: 0, max: 5 },
    async handle(request, context) {
      if (context.apiVersion < BROKERS_ONLY) {
        const topics = await add(transactions, onlyTransaction(request), context);
        return { ...EMPTY, resultsByTopicV3AndBelow: topics };
      }
      if (!context.access.allows('clusterAction', 'cluster')) {
        return { ...EMPTY, errorCode: ErrorCode.CLUSTER_AUTHORIZATION_FAILED };
      }
      const results = request.transactions.map(async (transaction) => ({
        transactionalId: transaction.transactionalId,
        topicResults: await add(transactions, transaction, context),
      }));
      return { ...EMPTY, resultsByTransaction: await Promise.all(results) };
    },
    failed(request, _failure, { apiVersion }) {
      const errorCode = ErrorCode.COORDINATOR_NOT_AVAILABLE;
      if (apiVersion >= BROKERS_ONLY) return { ...EMPTY, errorCode };
      const { topics } = onlyTransaction(request);
      return { ...EMPTY, resultsByTopicV3AndBelow: results(topics, () => errorCode) };
    },
  };
}

function onlyTransaction(request: AddPartitionsToTxnRequest): Transaction {
  return {
    transactionalId: request.v3AndBelowTransactionalId,
    producerId: request.v3AndBelowProducerId,
    producerEpoch: request.v3AndBelowProducerEpoch,
    verifyOnly: false,
    topics: request.v3AndBelowTopics,
  };
}

async function add(
  transactions: TransactionCoordinator,
  transaction: Transaction,
  context: RequestContext,
) {
  const { transactionalId, topics } = transaction;
  const fail = (code: number) => {
    context.countError(code);
    return results(topics, () => code);
  };
  if (
    context.apiVersion < BROKERS_ONLY &&
    !context.access.allows('write', 'transactionalId', transactionalId)
  )
    return fail(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
  await learnTopics(context, () => namedIn(topics));
  const { partitionIds, codes, isFaulty } = resolve(topics, context);
  if (isFaulty) {
    for (const code of codes) if (code !== 0) context.countError(code);
    return results(topics, (n) => codes[n]! || ErrorCode.OPERATION_NOT_ATTEMPTED);
  }
  if (transaction.verifyOnly) {
    const verified = await transactions.verifyPartitions(
      transactionalId,
      transaction,
      partitionIds,
    );
    return results(topics, (n) => verified[n]!);
  }
  const code = await transactions.addPartitions(transactionalId, transaction, partitionIds);
  const told = fencedCode(code, context.apiVersion >= 2);
  return told === 0 ? results(topics, () => 0) : fail(told);
}

function* namedIn(topics: Topics): Generator<NamedTopic> {
  for (const { name, partitions } of topics) yield { name, lastIndex: highest(partitions) };
}

/** Ids of the partitions, and the code of each that can't be added, in order of the request. */
function resolve(topics: Topics, { services, access, apiVersion }: RequestContext) {
  const partitionIds: number[] = [];
  const codes: number[] = [];
  for (const { name, partitions } of topics) {
    const isAllowed = apiVersion >= BROKERS_ONLY || access.allows('write', 'topic', name);
    for (const index of partitions) {
      const partitionId = partitionOf(services.directory, name, index);
      if (!isAllowed) codes.push(ErrorCode.TOPIC_AUTHORIZATION_FAILED);
      else if (partitionId === undefined) codes.push(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
      else {
        codes.push(0);
        partitionIds.push(partitionId);
      }
    }
  }
  return { partitionIds, codes, isFaulty: codes.some((code) => code !== 0) };
}

function partitionOf(directory: TopicDirectory, name: string, index: number): number | undefined {
  return topicOf(directory, name, ZERO_UUID).topic?.partitions[index];
}

/** `codeOf` gets the ordinal of the partition in the request. */
function results(topics: Topics, codeOf: (n: number) => number) {
  let n = 0;
  return topics.map(({ name, partitions }) => ({
    name,
    resultsByPartition: partitions.map((partitionIndex) => ({
      partitionIndex,
      partitionErrorCode: codeOf(n++),
    })),
  }));
}
