// DescribeProducers (61), version 0: who writes to partitions with sequences, and since which offset with an open
// transaction (KIP-664). What hangs shows here first.
import { ErrorCode } from '../../protocol/errors.ts';
import { ZERO_UUID } from '../../protocol/fields.ts';
import { describeProducersApi } from '../../protocol/messages/61-describe-producers.ts';
import type { Handler, RequestContext } from '../handler.ts';
import { learnTopics, topicNameFault, topicOf } from '../topic-lookup.ts';
import type { TransactionCoordinator } from '../transactions/coordinator.ts';

export function describeProducersHandler(
  transactions: TransactionCoordinator,
): Handler<typeof describeProducersApi> {
  return {
    api: describeProducersApi,
    versions: { min: 0, max: 0 },
    async handle({ topics }, context) {
      await learnTopics(context, () => topics);
      const described = topics.map(async ({ name, partitionIndexes }) => {
        const fault = topicFault(name, context);
        const ids = topicOf(context.services.directory, name, ZERO_UUID).topic?.partitions ?? [];
        const wanted = partitionIndexes.map((index) => (fault === undefined ? ids[index] : -1));
        const producers = await transactions.describeProducers(wanted.map((id) => id ?? -1));
        const partitions = partitionIndexes.map((partitionIndex, n) => {
          const active = producers[n];
          if (active !== undefined) {
            return { partitionIndex, errorCode: 0, activeProducers: active.map(toActive) };
          }
          const errorCode = fault?.code ?? ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
          context.countError(errorCode);
          const errorMessage = fault?.message ?? null;
          return { partitionIndex, errorCode, errorMessage, activeProducers: [] };
        });
        return { name, partitions };
      });
      return { topics: await Promise.all(described) };
    },
    failed: ({ topics }, { code, message }) => ({
      topics: topics.map(({ name, partitionIndexes }) => ({
        name,
        partitions: partitionIndexes.map((partitionIndex) => ({
          partitionIndex,
          errorCode: code,
          errorMessage: message,
          activeProducers: [],
        })),
      })),
    }),
  };
}

function topicFault(name: string, { services, access }: RequestContext) {
  const invalid = topicNameFault(name);
  if (invalid !== undefined) return { code: ErrorCode.INVALID_TOPIC_EXCEPTION, message: invalid };
  if (!access.allows('read', 'topic', name))
    return { code: ErrorCode.TOPIC_AUTHORIZATION_FAILED, message: null };
  if (services.directory.byName(name) !== undefined) return undefined;
  return {
    code: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    message: `there is no topic "${name}"`,
  };
}

type Active = NonNullable<
  Awaited<ReturnType<TransactionCoordinator['describeProducers']>>[number]
>[number];

const toActive = ({ currentTransactionStart, ...producer }: Active) => ({
  ...producer,
  currentTxnStartOffset: currentTransactionStart,
});
