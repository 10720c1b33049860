// DescribeTransactions (65), version 0: state, identity and partitions of transactional ids (KIP-664) that this node
// coordinates; NOT_COORDINATOR of others.
// Difference to Kafka: a transaction with staged offsets doesn't list a partition of __consumer_offsets, which is no
// topic here.
import type { TopicDirectory } from '../../metadata/topic-directory.ts';
import type { TransactionState } from '../../metadata/transactions.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import { describeTransactionsApi } from '../../protocol/messages/65-describe-transactions.ts';
import type { Handler, RequestContext } from '../handler.ts';
import type { TransactionCoordinator } from '../transactions/coordinator.ts';

export function describeTransactionsHandler(
  transactions: TransactionCoordinator,
): Handler<typeof describeTransactionsApi> {
  return {
    api: describeTransactionsApi,
    versions: { min: 0, max: 0 },
    async handle({ transactionalIds }, context) {
      const states = await transactions.describe(transactionalIds);
      const transactionStates = transactionalIds.map((transactionalId, n) => {
        const fault =
          accessFault(transactionalId, context) ||
          transactions.faultOf(transactionalId) ||
          (states[n] === undefined ? ErrorCode.TRANSACTIONAL_ID_NOT_FOUND : ErrorCode.NONE);
        if (fault === 0) return describe(states[n]!, context);
        context.countError(fault);
        return refusal(transactionalId, fault);
      });
      return { transactionStates };
    },
    failed: ({ transactionalIds }) => ({
      transactionStates: transactionalIds.map((id) =>
        refusal(id, ErrorCode.COORDINATOR_NOT_AVAILABLE),
      ),
    }),
  };
}

function accessFault(transactionalId: string, { access }: RequestContext): number {
  if (!access.allows('describe', 'transactionalId', transactionalId))
    return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
  return transactionalId === '' ? ErrorCode.INVALID_REQUEST : ErrorCode.NONE;
}

function refusal(transactionalId: string, errorCode: number) {
  return {
    errorCode,
    transactionalId,
    transactionState: '',
    transactionTimeoutMs: 0,
    transactionStartTimeMs: 0,
    producerId: 0,
    producerEpoch: 0,
    topics: [],
  };
}

function describe(state: TransactionState, { services, access }: RequestContext) {
  return {
    errorCode: 0,
    transactionalId: state.transactionalId,
    transactionState: state.status,
    transactionTimeoutMs: state.timeoutMs,
    transactionStartTimeMs: state.startMs,
    producerId: state.producerId,
    producerEpoch: state.producerEpoch,
    topics: topicsOf(state, services.directory).filter(({ topic }) =>
      access.allows('describe', 'topic', topic),
    ),
  };
}

function topicsOf({ partitions }: TransactionState, directory: TopicDirectory) {
  const topics = new Map<string, number[]>();
  for (const partitionId of partitions) {
    const found = directory.byPartition(partitionId);
    if (found === undefined) continue;
    const indexes = topics.get(found.topic.name);
    if (indexes === undefined) topics.set(found.topic.name, [found.index]);
    else indexes.push(found.index);
  }
  return [...topics].map(([topic, indexes]) => ({ topic, partitions: indexes }));
}
