// Whose a table is, as its properties say: one topic's, shared by several, or somebody else's.
// Pure: properties in, plain data out. Not for: what follows from it (binding.ts).
import { TOPIC_ID_PROPERTY, TOPIC_NAME_PROPERTY } from './watermark.ts';

/** "true" on a table that several topics fill. */
export const SHARED_PROPERTY = 'floe.shared';
/** Followed by a topic's id; the value is its name. One property a topic, so that two may join at once. */
export const SHARED_TOPIC_PREFIX = 'floe.shared-topic.';

export interface TableOwner {
  readonly topicId: string;
  readonly topicName: string;
  /** The topic shares its table with others (`table.topic.shared`). */
  readonly shared: boolean;
}

export type Ownership =
  | { readonly kind: 'own' }
  /** Filled by a topic of the same name that is gone. */
  | { readonly kind: 'recreated'; readonly formerTopicId: string }
  /** Shared by other topics. */
  | { readonly kind: 'joinable' }
  | { readonly kind: 'foreign' };

type Properties = Readonly<Record<string, string>>;

export function ownershipOf(properties: Properties, owner: TableOwner): Ownership {
  const topicId = properties[TOPIC_ID_PROPERTY];
  const own = `${SHARED_TOPIC_PREFIX}${owner.topicId}`;
  if (topicId === owner.topicId || properties[own] !== undefined) return { kind: 'own' };
  const former = Object.entries(properties).find(
    ([name, value]) => name.startsWith(SHARED_TOPIC_PREFIX) && value === owner.topicName,
  );
  if (former !== undefined) {
    return { kind: 'recreated', formerTopicId: former[0].slice(SHARED_TOPIC_PREFIX.length) };
  }
  if (topicId !== undefined && properties[TOPIC_NAME_PROPERTY] === owner.topicName) {
    return { kind: 'recreated', formerTopicId: topicId };
  }
  return { kind: isShared(properties) ? 'joinable' : 'foreign' };
}

export const isShared = (properties: Properties) => properties[SHARED_PROPERTY] === 'true';

/** What marks a table as this topic's. */
export function ownerProperties({ topicId, topicName, shared }: TableOwner): Properties {
  return shared
    ? { [SHARED_PROPERTY]: 'true', [`${SHARED_TOPIC_PREFIX}${topicId}`]: topicName }
    : { [TOPIC_ID_PROPERTY]: topicId, [TOPIC_NAME_PROPERTY]: topicName };
}

/** Marks of a former topic of this name, which go when its successor takes over. */
export function formerMarks(properties: Properties, owner: TableOwner): string[] {
  return Object.entries(properties)
    .filter(([name, value]) => name.startsWith(SHARED_TOPIC_PREFIX) && value === owner.topicName)
    .map(([name]) => name)
    .filter((name) => name !== `${SHARED_TOPIC_PREFIX}${owner.topicId}`);
}
