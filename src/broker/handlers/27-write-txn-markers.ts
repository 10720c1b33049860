// WriteTxnMarkers (27), versions 1–2: an operator's abort of a hanging transaction (`kafka-transactions abort`).
// The partition named only has to exist: the transaction of its producer is aborted whole, and the producer fenced, so
// that no transaction is ever torn. Nothing open is success. A commit is refused: no operator sends one, and what a
// producer hasn't committed must not be. Coordinators of other brokers don't need this API here.
import { ErrorCode } from '../../protocol/errors.ts';
import { ZERO_UUID } from '../../protocol/fields.ts';
import {
  type WriteTxnMarkersRequest,
  writeTxnMarkersApi,
} from '../../protocol/messages/27-write-txn-markers.ts';
import type { Handler, RequestContext } from '../handler.ts';
import { topicOf } from '../topic-lookup.ts';
import type { TransactionCoordinator } from '../transactions/coordinator.ts';

type Marker = WriteTxnMarkersRequest['markers'][number];

export function writeTxnMarkersHandler(
  transactions: TransactionCoordinator,
): Handler<typeof writeTxnMarkersApi> {
  return {
    api: writeTxnMarkersApi,
    versions: { min: 1, max: 2 },
    async handle({ markers }, context) {
      const replies = [];
      for (const marker of markers) replies.push(await write(transactions, marker, context));
      return { markers: replies };
    },
    failed: ({ markers }) => ({
      markers: markers.map((marker) => reply(marker, () => ErrorCode.COORDINATOR_NOT_AVAILABLE)),
    }),
  };
}

async function write(
  transactions: TransactionCoordinator,
  marker: Marker,
  context: RequestContext,
): Promise<ReturnType<typeof reply>> {
  const { access, services } = context;
  const fail = (code: number) => {
    context.countError(code);
    return code;
  };
  if (!access.allows('alter', 'cluster') && !access.allows('clusterAction', 'cluster'))
    return reply(marker, () => fail(ErrorCode.CLUSTER_AUTHORIZATION_FAILED));
  if (marker.transactionResult) return reply(marker, () => fail(ErrorCode.INVALID_REQUEST));
  const exists = (name: string, index: number) =>
    topicOf(services.directory, name, ZERO_UUID).topic?.partitions[index] !== undefined;
  const isAnyThere = marker.topics.some(({ name, partitionIndexes }) =>
    partitionIndexes.some((index) => exists(name, index)),
  );
  const code = isAnyThere ? await transactions.abort(marker) : 0;
  return reply(marker, (name, index) => {
    const errorCode = exists(name, index) ? code : ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
    return errorCode === 0 ? 0 : fail(errorCode);
  });
}

function reply({ producerId, topics }: Marker, codeOf: (name: string, index: number) => number) {
  return {
    producerId,
    topics: topics.map(({ name, partitionIndexes }) => ({
      name,
      partitions: partitionIndexes.map((partitionIndex) => ({
        partitionIndex,
        errorCode: codeOf(name, partitionIndex),
      })),
    })),
  };
}
