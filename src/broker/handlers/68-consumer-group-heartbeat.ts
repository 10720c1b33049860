// ConsumerGroupHeartbeat (68), versions 0–1: the life of a member of the consumer protocol (KIP-848): it joins with
// epoch 0, subscribes, says what it owns, leaves with −1 (or −2 for a while); see groups/SPEC.md. v1 patterns that the
// broker looks up, and member ids that clients make. Needs READ on the group, DESCRIBE on topics it names; a pattern
// finds those that its member may describe.
import type { TopicDirectory } from '../../metadata/topic-directory.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import {
  type ConsumerGroupHeartbeatReply,
  type ConsumerGroupHeartbeatRequest,
  consumerGroupHeartbeatApi,
} from '../../protocol/messages/68-consumer-group-heartbeat.ts';
import { LEAVING } from '../groups/consumer/group.ts';
import { type HeartbeatReply, refusedHeartbeat } from '../groups/consumer/heartbeat.ts';
import { heartbeatRequestFault, isLeaving } from '../groups/consumer/validate.ts';
import type { GroupCoordinator } from '../groups/coordinator.ts';
import type { Handler, RequestContext } from '../handler.ts';

export function consumerGroupHeartbeatHandler(
  groups: GroupCoordinator,
): Handler<typeof consumerGroupHeartbeatApi> {
  return {
    api: consumerGroupHeartbeatApi,
    versions: { min: 0, max: 1 },
    async handle(request, context) {
      const reply =
        accessFault(request, context) ??
        heartbeatRequestFault(request, {
          apiVersion: context.apiVersion,
          assignors: groups.settings['group.consumer.assignors'],
          patternFault: (pattern) => groups.patternFault(pattern),
        }) ??
        (await groups.consumerHeartbeat(request.groupId, eventOf(request, context)));
      if (reply.errorCode !== 0) context.countError(reply.errorCode);
      return toMessage(reply, context.services.directory);
    },
    failed: (_request, { code, message }) => ({
      errorCode: code,
      errorMessage: message,
      memberEpoch: 0,
      heartbeatIntervalMs: 0,
    }),
  };
}

function accessFault(
  { groupId, subscribedTopicNames }: ConsumerGroupHeartbeatRequest,
  { access }: RequestContext,
): HeartbeatReply | undefined {
  if (!access.allows('read', 'group', groupId))
    return refusedHeartbeat(ErrorCode.GROUP_AUTHORIZATION_FAILED, `READ on group ${groupId}`);
  const hidden = subscribedTopicNames?.find((name) => !access.allows('describe', 'topic', name));
  if (hidden === undefined) return undefined;
  return refusedHeartbeat(ErrorCode.TOPIC_AUTHORIZATION_FAILED, `DESCRIBE on topic ${hidden}`);
}

function eventOf(request: ConsumerGroupHeartbeatRequest, context: RequestContext) {
  const { memberEpoch, instanceId } = request;
  const { access, services } = context;
  const memberId = request.memberId === '' ? services.ids.uuid() : request.memberId;
  if (isLeaving(request))
    return { type: 'leave', memberId, instanceId, forGood: memberEpoch === LEAVING } as const;
  return {
    type: 'heartbeat',
    memberId,
    memberEpoch,
    instanceId,
    rackId: request.rackId,
    clientId: context.clientId ?? '',
    clientHost: `/${context.connection.remoteAddress}`,
    rebalanceTimeoutMs: request.rebalanceTimeoutMs,
    topicNames: request.subscribedTopicNames,
    topicRegex: request.subscribedTopicRegex,
    assignor: request.serverAssignor,
    mayDescribe: services.authorizer.enabled
      ? (topic: string) => access.allows('describe', 'topic', topic)
      : undefined,
    owned: ownedBy(request, services.directory),
  } as const;
}

/** Partition ids; −1 for what its topic doesn't have. A deleted topic's partitions count as given up. */
function ownedBy(
  { topicPartitions }: ConsumerGroupHeartbeatRequest,
  directory: TopicDirectory,
): readonly number[] | null {
  if (topicPartitions === null) return null;
  return topicPartitions.flatMap(({ topicId, partitions }) => {
    const topic = directory.byId(topicId);
    return topic === undefined ? [] : partitions.map((index) => topic.partitions[index] ?? -1);
  });
}

function toMessage(reply: HeartbeatReply, directory: TopicDirectory): ConsumerGroupHeartbeatReply {
  const { errorCode, errorMessage, memberId, memberEpoch, heartbeatIntervalMs, assigned } = reply;
  return {
    errorCode,
    errorMessage: errorMessage === '' ? null : errorMessage,
    memberId: memberId === '' ? null : memberId,
    memberEpoch,
    heartbeatIntervalMs,
    assignment:
      assigned === null ? null : { topicPartitions: byTopic(assigned, directory).map(withoutName) },
  };
}

const withoutName = ({ topicId, partitions }: TopicPartitions) => ({ topicId, partitions });

interface TopicPartitions {
  readonly topicId: string;
  readonly topicName: string;
  readonly partitions: number[];
}

/** Partitions as messages name them; those of deleted topics are left out. */
export function byTopic(ids: readonly number[], directory: TopicDirectory): TopicPartitions[] {
  const topics = new Map<string, TopicPartitions>();
  for (const id of ids) {
    const found = directory.byPartition(id);
    if (found === undefined) continue;
    const { topicId, name } = found.topic;
    const topic = topics.get(topicId);
    if (topic === undefined)
      topics.set(topicId, { topicId, topicName: name, partitions: [found.index] });
    else topic.partitions.push(found.index);
  }
  return [...topics.values()];
}
