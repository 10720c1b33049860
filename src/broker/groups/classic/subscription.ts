// Which topics the members of a group of type "consumer" subscribe to: read from what they told the leader.
import { isFloeError } from '../../../base/error.ts';
import { decodeSubscription } from '../../../protocol/messages/consumer-protocol.ts';
import type { Group } from './group.ts';
import { metadataOf } from './protocols.ts';

export const CONSUMER_PROTOCOL = 'consumer';

/** Topics of all members; undefined when it can't be known (another protocol type, foreign metadata). */
export function subscribedTopics(group: Group): ReadonlySet<string> | undefined {
  if (group.protocolType !== CONSUMER_PROTOCOL || group.protocol === null) return undefined;
  const topics = new Set<string>();
  for (const { protocols } of group.members.values()) {
    const own = topicsOf(metadataOf(protocols, group.protocol));
    if (own === undefined) return undefined;
    for (const topic of own) topics.add(topic);
  }
  return topics;
}

function topicsOf(metadata: Uint8Array): readonly string[] | undefined {
  try {
    return decodeSubscription(metadata).topics;
  } catch (caught) {
    if (isFloeError(caught, 'invalid', 'exhausted')) return undefined;
    throw caught;
  }
}

/** True when offsets of the topic must stay because members use it; unknown subscriptions count as all topics. */
export function isSubscribed(group: Group, topic: string): boolean {
  if (group.members.size === 0) return false;
  return subscribedTopics(group)?.has(topic) ?? true;
}
