// ListOffsets (2), versions 1–11: the first record at or after a time, and the special times −1 latest,
// −2 earliest, −3 the record with the largest timestamp (v7), −4 earliest local (v8; the same as −2, since no log
// is tiered), −5 and −6 of tiered logs (v9, v11; nothing, −1). v2 isolation, v4 leader epochs, v6 flexible.
// Of a quarantined partition both ends are told, they are in memory; what reads its records isn't (KAFKA_STORAGE_ERROR).
// Simplification: the request's timeout (v10) is not used: look-ups are bounded by the log's own reads.
import { AssertionError } from '../../base/assert.ts';
import { FloeError } from '../../base/error.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import {
  type ListOffsetsReply,
  type ListOffsetsRequest,
  listOffsetsApi,
} from '../../protocol/messages/02-list-offsets.ts';
import type { Isolation, OffsetAtTime } from '../../storage/log/log.ts';
import { kafkaCodeOf } from '../failures.ts';
import { LEADER_EPOCH } from '../fetch-read.ts';
import type { Handler, RequestContext } from '../handler.ts';
import type { BrokerServices } from '../services.ts';
import { highest, learnTopics, type NamedTopic, topicFor } from '../topic-lookup.ts';

type TopicReply = ListOffsetsReply['topics'][number];
type PartitionReply = TopicReply['partitions'][number];
type PartitionRequest = ListOffsetsRequest['topics'][number]['partitions'][number];

const LATEST = -1;
const EARLIEST = -2;
const MAX_TIMESTAMP = -3;
const EARLIEST_LOCAL = -4;

export const listOffsetsHandler: Handler<typeof listOffsetsApi> = {
  api: listOffsetsApi,
  versions: { min: 1, max: 11 },
  async handle(request, context) {
    const isolation = request.isolationLevel === 1 ? 'read_committed' : 'read_uncommitted';
    await learnTopics(context, () => namedIn(request));
    const { topicConfigs } = context.services;
    // What was acknowledged before the request, by whichever broker, counts.
    await context.services.log.caughtUp();
    const topics = request.topics.map(async ({ name, partitions }): Promise<TopicReply> => {
      const { topic, errorCode } = topicFor(context, 'describe', { name });
      const replies = partitions.map((asked) => {
        const partitionId = topic?.partitions[asked.partitionIndex];
        const quarantined =
          topic !== undefined && topicConfigs.isQuarantined(topic, asked.partitionIndex);
        return answer(context, asked, { partitionId, errorCode, isolation, quarantined });
      });
      return { name, partitions: await Promise.all(replies) };
    });
    return { topics: await Promise.all(topics) };
  },
};

function* namedIn({ topics }: ListOffsetsRequest): Generator<NamedTopic> {
  for (const { name, partitions } of topics)
    yield { name, lastIndex: highest(partitions.map(({ partitionIndex }) => partitionIndex)) };
}

interface Where {
  readonly partitionId: number | undefined;
  /** Why there is no topic. */
  readonly errorCode: number;
  readonly isolation: Isolation;
  readonly quarantined: boolean;
}

async function answer(
  context: RequestContext,
  { partitionIndex, timestamp, currentLeaderEpoch }: PartitionRequest,
  { partitionId, errorCode, isolation, quarantined }: Where,
): Promise<PartitionReply> {
  const failed = (errorCode: number): PartitionReply => {
    context.countError(errorCode);
    return { partitionIndex, errorCode };
  };
  if (partitionId === undefined) {
    return failed(errorCode || ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
  }
  if (currentLeaderEpoch > LEADER_EPOCH) return failed(ErrorCode.UNKNOWN_LEADER_EPOCH);
  if (quarantined && readsRecords(timestamp)) return failed(ErrorCode.KAFKA_STORAGE_ERROR);
  try {
    const found = await offsetAt(context.services, { partitionId, isolation, timestamp });
    if (found === 'gone') return failed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
    if (found === undefined) return { partitionIndex, errorCode: 0 };
    return { partitionIndex, errorCode: 0, ...found, leaderEpoch: LEADER_EPOCH };
  } catch (caught) {
    // A look-up by time reads records; what ails one partition's storage is no matter of the others.
    if (caught instanceof AssertionError) throw caught;
    return failed(kafkaCodeOf(FloeError.from(caught)));
  }
}

const readsRecords = (timestamp: number) => timestamp >= 0 || timestamp === MAX_TIMESTAMP;

interface Wanted {
  readonly partitionId: number;
  readonly isolation: Isolation;
  readonly timestamp: number;
}

/** Undefined where there is no such record. */
async function offsetAt(
  { log }: BrokerServices,
  { partitionId, isolation, timestamp }: Wanted,
): Promise<OffsetAtTime | 'gone' | undefined> {
  const watermarks = log.watermarks(partitionId);
  if (watermarks === undefined) return 'gone';
  const { logStartOffset, lastStableOffset, highWatermark } = watermarks;
  switch (timestamp) {
    case LATEST:
      return {
        timestamp: -1,
        offset: isolation === 'read_committed' ? lastStableOffset : highWatermark,
      };
    case EARLIEST:
    case EARLIEST_LOCAL:
      return { timestamp: -1, offset: logStartOffset };
    case MAX_TIMESTAMP:
      return log.maxTimestamp(partitionId, isolation);
    default:
      return timestamp < 0 ? undefined : log.offsetForTime(partitionId, timestamp, isolation);
  }
}
