// The range assignor: each topic's partitions in contiguous ranges over its subscribers in a fixed order, so that
// topics with as many partitions are divided alike (joins stay local). Counts differ by at most one per topic.
import { type AssignedMember, byIdentity } from './assigned-member.ts';
import { type Partitions, partitionSet } from './partitions.ts';

/** Longer ranges go to the first subscribers, as in Kafka. */
export function assignRange(members: readonly AssignedMember[]): readonly Partitions[] {
  const given = new Map<AssignedMember, number[]>(members.map((member) => [member, []]));
  const subscribers = new Map<Partitions, AssignedMember[]>();
  for (const member of [...members].sort(byIdentity))
    for (const topic of member.topics) {
      const list = subscribers.get(topic);
      if (list === undefined) subscribers.set(topic, [member]);
      else list.push(member);
    }
  for (const [topic, list] of subscribers) {
    const quota = Math.floor(topic.length / list.length);
    const longer = topic.length % list.length;
    let start = 0;
    for (const [index, member] of list.entries()) {
      const end = start + quota + (index < longer ? 1 : 0);
      given.get(member)!.push(...topic.slice(start, end));
      start = end;
    }
  }
  return members.map((member) => partitionSet(given.get(member)!));
}
