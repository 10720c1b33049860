// The topics that dead letters are appended to: found by name, created when missing.
// Not for: what a dead letter looks like (topic-letters.ts), appending (lane.ts).
import type { Clock } from '../base/clock.ts';
import { isFloeError } from '../base/error.ts';
import type { IdSource } from '../base/prng.ts';
import type { TopicDirectory } from '../metadata/topic-directory.ts';
import type { Topic } from '../metadata/topics.ts';

/** As Kafka Connect creates them. */
const PARTITIONS = 1;

export interface LetterTopicsDeps {
  readonly directory: TopicDirectory;
  readonly clock: Clock;
  readonly ids: IdSource;
}

/** The topic; letters of partition p go to number p modulo its partitions, so their order stays. */
export async function letterTopic(
  { directory, clock, ids }: LetterTopicsDeps,
  name: string,
): Promise<Topic> {
  const found = directory.byName(name);
  if (found !== undefined) return found;
  try {
    const request = { topicId: ids.uuid(), name, partitionCount: PARTITIONS, config: {} };
    return await directory.create({ ...request, nowMs: clock.now() });
  } catch (caught) {
    const other: Topic | undefined = directory.byName(name);
    // Somebody else was first: theirs is as good.
    if (other === undefined || !isFloeError(caught, 'conflict')) throw caught;
    return other;
  }
}
