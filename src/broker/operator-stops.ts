// What an operator has stopped: writes to a topic (read-only mode), all traffic of a partition (quarantine). Who is
// stopped gets a retriable code, so that clients wait and go on when it ends, and a sentence with setting and remedy.
// Decided by a topic's policy, which is parsed once per version of the topic; sentences are made for refusals only.
// Decision 0042 has the choice of codes and what isn't stopped.
import { QUARANTINE_CONFIG } from '../metadata/quarantine.ts';
import type { Topic } from '../metadata/topics.ts';
import { ErrorCode } from '../protocol/errors.ts';

/** Name of the topic config and of the brokers' default for it. */
export const READ_ONLY_CONFIG = 'floe.read.only';

/** The part of a topic's policy that stops anything. */
export interface StopPolicy {
  readonly readOnly: boolean;
  /** Partition indexes. */
  readonly quarantined: ReadonlySet<number>;
}

export interface OperatorStop {
  /** A Kafka error code. */
  readonly errorCode: number;
  readonly errorMessage: string;
}

/** Why partition `index` of the topic takes no records now; undefined where it does. */
export function writeStop(
  topic: Topic,
  index: number,
  { readOnly, quarantined }: StopPolicy,
): OperatorStop | undefined {
  if (quarantined.has(index)) return quarantineStop(topic, index);
  return readOnly ? readOnlyStop(topic) : undefined;
}

/** Why partition `index` of the topic, which is quarantined, is not read. */
export function quarantineStop({ name }: Pick<Topic, 'name'>, index: number): OperatorStop {
  return {
    // Kafka's code of a replica whose log directory is offline.
    errorCode: ErrorCode.KAFKA_STORAGE_ERROR,
    errorMessage: `partition ${index} of topic "${name}" is quarantined: it is served again once an operator takes ${index} off the topic's ${QUARANTINE_CONFIG}`,
  };
}

function readOnlyStop({ name, config }: Topic): OperatorStop {
  const own = config[READ_ONLY_CONFIG] !== undefined;
  const whose = own ? 'of the topic' : 'of the brokers, which the topic can override';
  return {
    errorCode: ErrorCode.NOT_ENOUGH_REPLICAS,
    errorMessage: `topic "${name}" is read-only: it takes records again once an operator sets ${READ_ONLY_CONFIG}=false (now true by the config ${whose})`,
  };
}
