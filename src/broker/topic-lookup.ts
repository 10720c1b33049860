// Topics as requests name them: by name, or by id in the newer versions of most APIs (KIP-516).
import type { TopicDirectory } from '../metadata/topic-directory.ts';
import type { Topic } from '../metadata/topics.ts';
import { ErrorCode } from '../protocol/errors.ts';
import { ZERO_UUID } from '../protocol/fields.ts';
import type { Access } from './auth/access.ts';
import type { Operation } from './auth/authorizer.ts';

/** A topic, or the error code that says why there is none. */
export interface TopicLookup {
  readonly topic: Topic | undefined;
  readonly errorCode: number;
}

/** By id unless that is zero, else by name. */
export function topicOf(
  directory: TopicDirectory,
  name: string | null,
  topicId: string,
): TopicLookup {
  if (topicId !== ZERO_UUID) {
    const topic = directory.byId(topicId);
    return { topic, errorCode: topic === undefined ? ErrorCode.UNKNOWN_TOPIC_ID : 0 };
  }
  const topic = directory.byName(name ?? '');
  return { topic, errorCode: topic === undefined ? ErrorCode.UNKNOWN_TOPIC_OR_PARTITION : 0 };
}

/** Whose request it is, and where topics are. */
export interface TopicAsker {
  readonly access: Access;
  readonly services: { readonly directory: TopicDirectory };
}

/**
 * {@link topicOf} for a client that wants to do `operation`: TOPIC_AUTHORIZATION_FAILED where it may not. A name then
 * tells nothing about whether there is such a topic; an id does, as in Kafka, since ids can't be guessed.
 */
export function topicFor(
  { access, services }: TopicAsker,
  operation: Operation,
  { name, topicId = ZERO_UUID }: { readonly name: string | null; readonly topicId?: string },
): TopicLookup {
  if (topicId === ZERO_UUID && !access.allows(operation, 'topic', name ?? '')) return DENIED;
  const found = topicOf(services.directory, name, topicId);
  if (found.topic === undefined || topicId === ZERO_UUID) return found;
  return access.allows(operation, 'topic', found.topic.name) ? found : DENIED;
}

/** A topic as a request names it, with the highest partition index that it asks for. */
export interface NamedTopic {
  readonly name: string | null;
  readonly topicId?: string;
  readonly lastIndex?: number;
}

/**
 * Topics or partitions that this node doesn't know may have been made by another one a moment ago: looks once, before
 * they count as unknown. Undefined where nothing has to be looked at, as always on one node alone.
 */
export function learnTopics(
  { access, services }: TopicAsker,
  named: () => Iterable<NamedTopic>,
): Promise<void> | undefined {
  const { directory } = services;
  if (!directory.isShared) return undefined;
  for (const { name, topicId = ZERO_UUID, lastIndex = -1 } of named()) {
    // What a client may not know of, nobody is asked about for it.
    const byName = topicId === ZERO_UUID;
    if (byName && (name === null || !access.allows('describe', 'topic', name))) continue;
    const { topic } = topicOf(directory, name, topicId);
    if (topic === undefined || lastIndex >= topic.partitions.length) return directory.catchUp();
  }
  return undefined;
}

/** The highest of partition indexes, −1 of none. */
export function highest(indexes: Iterable<number>): number {
  let max = -1;
  for (const index of indexes) if (index > max) max = index;
  return max;
}

const DENIED: TopicLookup = {
  topic: undefined,
  errorCode: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
};

/** Longest topic name: Kafka's, so that tools which build file names of it keep working. */
const MAX_TOPIC_NAME = 249;

/** Why `name` can't be a topic's, or undefined when it can. Clients look for the word "invalid" in the text. */
export function topicNameFault(name: string): string | undefined {
  const invalid = (why: string) => `topic name "${name}" is invalid: ${why}`;
  if (name === '') return invalid('it is empty');
  if (name === '.' || name === '..') return invalid('it names a folder');
  if (name.length > MAX_TOPIC_NAME) {
    return `a topic name of ${name.length} characters is invalid: at most ${MAX_TOPIC_NAME}`;
  }
  if (!/^[a-zA-Z0-9._-]+$/.test(name)) {
    return invalid('only letters, digits, ".", "_" and "-" may be in it');
  }
  return undefined;
}
