// What is wrong with a ConsumerGroupHeartbeat in itself, whatever group it meets. Codes as Kafka's (KIP-848).
import { ErrorCode } from '../../../protocol/errors.ts';
import type { ConsumerGroupHeartbeatRequest } from '../../../protocol/messages/68-consumer-group-heartbeat.ts';
import { JOINING, LEAVING, LEAVING_FOR_A_WHILE } from './group.ts';
import { type HeartbeatReply, refusedHeartbeat } from './heartbeat.ts';

export interface HeartbeatRules {
  /** v1: members make their own ids. */
  readonly apiVersion: number;
  /** Assignors that may be asked for. */
  readonly assignors: readonly string[];
  /** Why a pattern can't be used; undefined when it can. */
  patternFault(pattern: string): string | undefined;
}

/** The refusal, or undefined. */
export function heartbeatRequestFault(
  request: ConsumerGroupHeartbeatRequest,
  rules: HeartbeatRules,
): HeartbeatReply | undefined {
  const text = shapeFault(request, rules.apiVersion);
  if (text !== undefined) return refusedHeartbeat(ErrorCode.INVALID_REQUEST, text);
  const { serverAssignor, subscribedTopicRegex } = request;
  if (serverAssignor !== null && !rules.assignors.includes(serverAssignor))
    return refusedHeartbeat(
      ErrorCode.UNSUPPORTED_ASSIGNOR,
      `assignor ${serverAssignor} is not offered: use one of ${rules.assignors.join(', ')}`,
    );
  const pattern = subscribedTopicRegex ?? '';
  const why = pattern === '' ? undefined : rules.patternFault(pattern);
  if (why === undefined) return undefined;
  return refusedHeartbeat(
    ErrorCode.INVALID_REGULAR_EXPRESSION,
    `regular expression ${pattern} is not valid: ${why}`,
  );
}

function shapeFault(request: ConsumerGroupHeartbeatRequest, version: number): string | undefined {
  const { groupId, memberId, memberEpoch, instanceId, rackId } = request;
  if (groupId.trim() === '') return 'the group id must not be empty';
  if (instanceId !== null && instanceId.trim() === '') return 'the instance id must not be empty';
  if (rackId !== null && rackId.trim() === '') return 'the rack id must not be empty';
  if (memberEpoch < LEAVING_FOR_A_WHILE) return `${memberEpoch} is no member epoch`;
  const makesOwnId = version >= 1 || memberEpoch !== JOINING;
  if (makesOwnId && memberId.trim() === '') return 'the member id must not be empty';
  if (memberEpoch === LEAVING_FOR_A_WHILE && instanceId === null)
    return 'only a static member, which has an instance id, may leave with epoch −2';
  return memberEpoch === JOINING ? joinFault(request) : undefined;
}

function joinFault(request: ConsumerGroupHeartbeatRequest): string | undefined {
  const { rebalanceTimeoutMs, topicPartitions, subscribedTopicNames } = request;
  if (rebalanceTimeoutMs === -1) return 'whoever joins must give a rebalance timeout';
  if (topicPartitions === null || topicPartitions.length > 0)
    return 'whoever joins must own no partitions, and say so';
  if (subscribedTopicNames === null && request.subscribedTopicRegex === null)
    return 'whoever joins must subscribe to topics, by name or by pattern';
  return undefined;
}

/** True when the request says that its member leaves. */
export const isLeaving = ({ memberEpoch }: ConsumerGroupHeartbeatRequest) =>
  memberEpoch === LEAVING || memberEpoch === LEAVING_FOR_A_WHILE;
