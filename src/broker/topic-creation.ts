// Creating a topic, asked for (CreateTopics) or not (Metadata): the checks that both share.
import { FloeError, isFloeError } from '../base/error.ts';
import type { Topic } from '../metadata/topics.ts';
import { ErrorCode } from '../protocol/errors.ts';
import type { BrokerServices } from './services.ts';
import { topicNameFault } from './topic-lookup.ts';

/** A client's mistake: a Kafka error code with a sentence. */
export interface Fault {
  readonly errorCode: number;
  readonly errorMessage: string;
}

export interface TopicPlan {
  readonly name: string;
  readonly partitionCount: number;
  /** Checked, under proper names. */
  readonly config: Readonly<Record<string, string>>;
}

export interface TopicWish {
  readonly name: string;
  /** −1: the broker's default. */
  readonly partitionCount: number;
  readonly config: Readonly<Record<string, string>>;
  /** Whether who asks may write into another topic, where a config names one. */
  readonly mayWrite?: (topicName: string) => boolean;
}

/** What would be created, or what stands against it. */
export async function planTopic(
  services: BrokerServices,
  wish: TopicWish,
): Promise<TopicPlan | Fault> {
  const { name } = wish;
  const nameFault = topicNameFault(name);
  if (nameFault !== undefined) return fault(ErrorCode.INVALID_TOPIC_EXCEPTION, nameFault);
  // Another node may have deleted it a moment ago.
  if (services.directory.byName(name) !== undefined) await services.directory.catchUp();
  if (services.directory.byName(name) !== undefined) {
    return fault(ErrorCode.TOPIC_ALREADY_EXISTS, `topic "${name}" already exists`);
  }
  const asked = wish.partitionCount;
  const partitionCount = asked === -1 ? services.config.values['num.partitions'] : asked;
  const countFault = partitionCountFault(services, partitionCount, partitionCount);
  if (countFault !== undefined) return fault(ErrorCode.INVALID_PARTITIONS, countFault);
  try {
    const checked = await services.topicConfigs.check(
      { name },
      wish.config,
      wish.mayWrite ?? (() => true),
    );
    return { name, partitionCount, config: checked as Record<string, string> };
  } catch (caught) {
    const error = FloeError.from(caught);
    if (error.code !== 'invalid') throw error;
    return fault(ErrorCode.INVALID_CONFIG, error.message);
  }
}

/** Why a topic can't have `count` partitions, `added` of them new. */
export function partitionCountFault(
  { config, directory }: BrokerServices,
  count: number,
  added: number,
): string | undefined {
  const { 'max.partitions.per.topic': perTopic, 'max.topic.partitions': inAll } = config.values;
  if (count < 1) return `a topic has at least one partition, not ${count}`;
  if (count > perTopic) return `${count} partitions: max.partitions.per.topic is ${perTopic}`;
  let total = added;
  for (const topic of directory.all()) total += topic.partitions.length;
  if (total > inAll) return `${total} partitions in all: max.topic.partitions is ${inAll}`;
  return undefined;
}

/** Creates what was planned. */
export async function createTopic(
  { directory, ids, clock }: BrokerServices,
  plan: TopicPlan,
): Promise<Topic | Fault> {
  try {
    return await directory.create({ ...plan, topicId: ids.uuid(), nowMs: clock.now() });
  } catch (caught) {
    if (!isFloeError(caught, 'conflict')) throw caught;
    return fault(ErrorCode.TOPIC_ALREADY_EXISTS, `topic "${plan.name}" already exists`);
  }
}

export function isFault(value: object): value is Fault {
  return 'errorCode' in value;
}

function fault(errorCode: number, errorMessage: string): Fault {
  return { errorCode, errorMessage };
}
