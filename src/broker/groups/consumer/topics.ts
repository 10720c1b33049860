// What subscriptions of a consumer group mean at present: names and patterns → partitions, and who subscribes to what.
import { type ConsumerGroup, type ConsumerMember, FROM_ASSIGNMENT } from './group.ts';
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

/** Whose request makes the group look again. */
export interface Asker {
  /** Its pattern; '' for none. */
  readonly pattern: string;
  /** Which topics it may know of; undefined for all. Patterns of others are looked up when those ask. */
  readonly mayDescribe: ((topic: string) => boolean) | undefined;
}

/**
 * Looks again at what subscriptions mean. True when that changed, so that a new assignment is due.
 * After a restart, the assignment itself tells what they meant.
 */
export function refreshSources(group: ConsumerGroup, topics: TopicView, asker: Asker): boolean {
  const before = group.sources;
  const restored = group.topicsVersion === FROM_ASSIGNMENT;
  const next = new Map<string, Partitions>();
  const patterns = new Map<string, readonly string[]>();
  group.unresolved.clear();
  for (const { topicNames, topicRegex } of group.members.values()) {
    for (const name of topicNames) addName(next, name, topics);
    if (topicRegex === '' || patterns.has(topicRegex)) continue;
    const names = lookUp(group, { topicNames, topicRegex }, { topics, asker });
    const key = patternKey(topicRegex);
    const found = partitionSet(names.flatMap((name) => topics.partitionsOf(name) ?? []));
    const known = before.get(key);
    patterns.set(topicRegex, names);
    next.set(key, known !== undefined && samePartitions(known, found) ? known : found);
  }
  group.sources = next;
  group.patterns = patterns;
  group.topicsVersion = topics.version;
  return restored ? !isCovered(group) : !sameSources(before, next);
}

function addName(into: Map<string, Partitions>, name: string, topics: TopicView): void {
  if (into.has(name)) return;
  const partitions = topics.partitionsOf(name);
  if (partitions !== undefined) into.set(name, partitionSet(partitions));
}

/**
 * Names of the topics that a member's pattern means now. What can't be told yet stays unresolved until the next
 * heartbeat: what others may know of; and a new pattern beside names. For that Kafka looks patterns up in the
 * background, so that clients which mix both expect the topics they named first.
 */
function lookUp(
  group: ConsumerGroup,
  { topicNames, topicRegex }: Pick<ConsumerMember, 'topicNames' | 'topicRegex'>,
  { topics, asker }: { readonly topics: TopicView; readonly asker: Asker },
): readonly string[] {
  const known = group.patterns.get(topicRegex);
  const restored = group.topicsVersion === FROM_ASSIGNMENT;
  if (known === undefined && topicNames.length > 0 && !restored) {
    group.unresolved.add(topicRegex);
    return [];
  }
  const { mayDescribe } = asker;
  if (mayDescribe === undefined) return topics.matching(topicRegex);
  if (asker.pattern === topicRegex) return topics.matching(topicRegex).filter(mayDescribe);
  group.unresolved.add(topicRegex);
  return known ?? topics.matching(topicRegex);
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
