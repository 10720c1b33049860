// A new assignment for a consumer group: which assignor, whom it is asked about, and what becomes of the answer.
import { assert } from '../../../base/assert.ts';
import { assignorOf } from './assignors.ts';
import { type ConsumerGroup, updateMember } from './group.ts';
import { type Partitions, samePartitions } from './partitions.ts';
import { isCovered, type TopicView } from './topics.ts';

/** Makes targets for the present epoch, unless they are of it already. */
export function assignIfDue(
  group: ConsumerGroup,
  { topics, defaultAssignor }: { readonly topics: TopicView; readonly defaultAssignor: string },
): void {
  if (group.epoch === group.assignmentEpoch) return;
  const sources = new Map<string, readonly Partitions[]>();
  const topicsOf = (names: readonly string[], pattern: string): readonly Partitions[] => {
    const key = JSON.stringify([names, pattern]);
    let found = sources.get(key);
    if (found === undefined) {
      found = topicLists(topics, [...names, ...(group.patterns.get(pattern) ?? [])]);
      sources.set(key, found);
    }
    return found;
  };
  const members = [...group.members.values()];
  const shares = assignorOf(preferredAssignor(group, defaultAssignor))(
    members.map(({ memberId, instanceId, topicNames, topicRegex, target }) => ({
      memberId,
      instanceId,
      topics: topicsOf(topicNames, topicRegex),
      target,
    })),
  );
  for (const [index, member] of members.entries())
    if (!samePartitions(member.target, shares[index]!))
      updateMember(group, member, { target: shares[index]! });
  group.assignmentEpoch = group.epoch;
  group.unsaved.header = true;
  assert(isCovered(group), 'K4: every partition that is subscribed to has one target');
}

function topicLists(topics: TopicView, names: readonly string[]): readonly Partitions[] {
  const lists = [...new Set(names)].map((name) => topics.partitionsOf(name));
  return lists.filter((list) => list !== undefined);
}

/** The one that most members ask for; the first of the settings when nobody does. */
export function preferredAssignor(group: ConsumerGroup, defaultAssignor: string): string {
  const votes = new Map<string, number>();
  for (const { assignor } of group.members.values())
    if (assignor !== null) votes.set(assignor, (votes.get(assignor) ?? 0) + 1);
  let best: string | undefined;
  for (const [name, count] of votes)
    if (best === undefined || count > votes.get(best)!) best = name;
  return best ?? defaultAssignor;
}
