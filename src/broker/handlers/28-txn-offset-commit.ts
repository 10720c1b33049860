// TxnOffsetCommit (28), versions 0–5: stages a group's positions in a transaction; they count once it commits.
// v2 leader epochs, v3 flexible, with member and generation (KIP-447), v4 TRANSACTION_ABORTABLE for a group that was
// not announced (INVALID_TXN_STATE before), v5 needs no AddOffsetsToTxn before it (KIP-890).
import type { StoredOffset } from '../../metadata/groups.ts';
import type { TransactionMode } from '../../metadata/transactions.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import { ZERO_UUID } from '../../protocol/fields.ts';
import {
  type TxnOffsetCommitRequest,
  txnOffsetCommitApi,
} from '../../protocol/messages/28-txn-offset-commit.ts';
import type { Handler, RequestContext } from '../handler.ts';
import { learnTopics, topicOf } from '../topic-lookup.ts';
import type { TransactionCoordinator } from '../transactions/coordinator.ts';

export function txnOffsetCommitHandler(
  transactions: TransactionCoordinator,
): Handler<typeof txnOffsetCommitApi> {
  return {
    api: txnOffsetCommitApi,
    versions: { min: 0, max: 5 },
    async handle(request, context) {
      const fault = accessFault(request, context);
      await learnTopics(context, () => request.topics);
      const { settings } = transactions.groups;
      const { offsets, codes } = resolve(request, context, settings['offset.metadata.max.bytes']);
      const staged =
        fault !== 0 || offsets.length === 0
          ? fault
          : await stage(transactions, request, { offsets, mode: modeOf(context.apiVersion) });
      return reply(request, (n) => {
        const errorCode = fault || codes[n]! || staged;
        if (errorCode !== 0) context.countError(errorCode);
        return errorCode;
      });
    },
    failed: (request) => reply(request, () => ErrorCode.COORDINATOR_NOT_AVAILABLE),
  };
}

function modeOf(apiVersion: number): TransactionMode {
  if (apiVersion >= 5) return 'implicit';
  return apiVersion === 4 ? 'verify-abortable' : 'verify';
}

function accessFault(
  { transactionalId, groupId }: TxnOffsetCommitRequest,
  { access }: RequestContext,
): number {
  if (!access.allows('write', 'transactionalId', transactionalId))
    return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
  if (!access.allows('read', 'group', groupId)) return ErrorCode.GROUP_AUTHORIZATION_FAILED;
  return groupId === '' ? ErrorCode.INVALID_GROUP_ID : ErrorCode.NONE;
}

function stage(
  transactions: TransactionCoordinator,
  request: TxnOffsetCommitRequest,
  what: { readonly offsets: readonly StoredOffset[]; readonly mode: TransactionMode },
): Promise<number> | number {
  const { transactionalId, groupId, generationId, memberId, groupInstanceId } = request;
  const committer = { generation: generationId, memberId, instanceId: groupInstanceId };
  const fault = transactions.groups.stageFault(groupId, committer);
  return fault !== 0
    ? fault
    : transactions.stageOffsets(transactionalId, request, { groupId, ...what });
}

/** Positions of partitions that exist, and what is known to be wrong with each, in order of the request. */
function resolve(
  { topics }: TxnOffsetCommitRequest,
  { services, access }: RequestContext,
  metadataLimit: number,
) {
  const offsets: StoredOffset[] = [];
  const codes: number[] = [];
  const commitMs = services.clock.now();
  for (const { name, partitions } of topics) {
    const topic = topicOf(services.directory, name, ZERO_UUID).topic;
    const isAllowed = access.allows('read', 'topic', name);
    for (const partition of partitions) {
      const partitionId = topic?.partitions[partition.partitionIndex];
      const metadata = partition.committedMetadata ?? '';
      if (!isAllowed) codes.push(ErrorCode.TOPIC_AUTHORIZATION_FAILED);
      else if (partitionId === undefined) codes.push(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
      else if (Buffer.byteLength(metadata) > metadataLimit)
        codes.push(ErrorCode.OFFSET_METADATA_TOO_LARGE);
      else {
        codes.push(0);
        const { committedOffset: offset, committedLeaderEpoch: leaderEpoch } = partition;
        offsets.push({ partitionId, offset, leaderEpoch, metadata, commitMs, expireMs: -1 });
      }
    }
  }
  return { offsets, codes };
}

/** `codeOf` gets the ordinal of the partition in the request. */
function reply({ topics }: TxnOffsetCommitRequest, codeOf: (n: number) => number) {
  let n = 0;
  return {
    topics: topics.map(({ name, partitions }) => ({
      name,
      partitions: partitions.map(({ partitionIndex }) => ({
        partitionIndex,
        errorCode: codeOf(n++),
      })),
    })),
  };
}
