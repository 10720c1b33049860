// What subscriptions of a consumer group mean at present: names and patterns → partitions, and who subscribes to what.
import type { ConsumerGroup, ConsumerMember } from './group.ts';
import { isSubset, type Partitions, partitionSet, samePartitions, union } from './partitions.ts';

/** Topics as groups see them. */
export interface TopicView {
  /** Raised by every change that could change an answer. */
  readonly version: number;
  /** Undefined when there is no such topic. */
  partitionsOf(topic: string): Partitions | undefined;
  /** Names of topics that match all of a pattern (RE2 syntax) known to be valid. The same array until it changes. */
  matching(pattern: string): readonly string[];
}

/** A pattern as a source; no topic has such a name. */
const patternKey = (pattern: string) => `/${pattern}/`;

/**
 * Looks again at what subscriptions mean. True when that changed, so that a new assignment is due.
 * After a restart, the assignment itself tells what they meant.
 */
export function refreshSources(group: ConsumerGroup, topics: TopicView): boolean {
  const before = group.sources;
  const fresh = group.topicsVersion < 0;
  const next = new Map<string, Partitions>();
  for (const member of group.members.values()) addSources(next, before, member, topics);
  group.sources = next;
  group.topicsVersion = topics.version;
  return fresh ? !isCovered(group) : !sameSources(before, next);
}

function addSources(
  into: Map<string, Partitions>,
  before: ReadonlyMap<string, Partitions>,
  { topicNames, topicRegex }: ConsumerMember,
  topics: TopicView,
): void {
  for (const name of topicNames) {
    if (into.has(name)) continue;
    const partitions = topics.partitionsOf(name);
    if (partitions !== undefined) into.set(name, partitionSet(partitions));
  }
  const key = patternKey(topicRegex);
  if (topicRegex === '' || into.has(key)) return;
  const found = partitionSet(
    topics.matching(topicRegex).flatMap((name) => topics.partitionsOf(name) ?? []),
  );
  const known = before.get(key);
  into.set(key, known !== undefined && samePartitions(known, found) ? known : found);
}

function sameSources(
  a: ReadonlyMap<string, Partitions>,
  b: ReadonlyMap<string, Partitions>,
): boolean {
  if (a.size !== b.size) return false;
  for (const [key, partitions] of a) {
    const other = b.get(key);
    if (other === undefined || !samePartitions(partitions, other)) return false;
  }
  return true;
}

/** The partitions a member may be given. */
export function subscribedPartitions(group: ConsumerGroup, member: ConsumerMember): Partitions {
  const named = member.topicNames.map((name) => group.sources.get(name) ?? []);
  const found = group.sources.get(patternKey(member.topicRegex));
  if (named.length === 0) return found ?? [];
  if (named.length === 1 && found === undefined) return named[0]!;
  return union(partitionSet(named.flat()), found ?? []);
}

/** K4: the targets are disjoint, within each member's subscription, and together all that is subscribed to. */
export function isCovered(group: ConsumerGroup): boolean {
  const wanted = new Set<number>();
  const given = new Set<number>();
  let sum = 0;
  for (const partitions of group.sources.values()) for (const id of partitions) wanted.add(id);
  for (const member of group.members.values()) {
    if (!isSubset(member.target, subscribedPartitions(group, member))) return false;
    for (const id of member.target) given.add(id);
    sum += member.target.length;
  }
  return given.size === sum && given.size === wanted.size;
}

/** True when a member's subscription, as it is now, takes the topic in. */
export function subscribesTo(group: ConsumerGroup, topic: string, topics: TopicView): boolean {
  for (const { topicNames, topicRegex } of group.members.values()) {
    if (topicNames.includes(topic)) return true;
    if (topicRegex !== '' && topics.matching(topicRegex).includes(topic)) return true;
  }
  return false;
}
