// DeleteRecords (21), versions 0–2: moves log starts up; −1 means the high watermark. Below the log start nothing
// happens; above the high watermark OFFSET_OUT_OF_RANGE; POLICY_VIOLATION where cleanup.policy is compact alone, as in
// Kafka. The bytes go with the next collection.
import { FloeError } from '../../base/error.ts';
import type { Topic } from '../../metadata/topics.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import {
  type DeleteRecordsReply,
  deleteRecordsApi,
} from '../../protocol/messages/21-delete-records.ts';
import { kafkaCodeOf } from '../failures.ts';
import type { Handler, RequestContext } from '../handler.ts';
import { learnTopics, topicFor } from '../topic-lookup.ts';

type PartitionReply = DeleteRecordsReply['topics'][number]['partitions'][number];

export const deleteRecordsHandler: Handler<typeof deleteRecordsApi> = {
  api: deleteRecordsApi,
  versions: { min: 0, max: 2 },
  async handle({ topics }, context) {
    await learnTopics(context, () => topics);
    // −1 and the bound are the end as of the request, whichever broker wrote.
    await context.services.log.caughtUp();
    const replies = topics.map(async ({ name, partitions }) => {
      const { topic, errorCode } = topicFor(context, 'delete', { name });
      const moved = partitions.map(({ partitionIndex, offset }) =>
        move(context, {
          partitionIndex,
          offset,
          partitionId: topic?.partitions[partitionIndex],
          errorCode: topic === undefined ? errorCode : policyError(context, topic),
        }),
      );
      return { name, partitions: await Promise.all(moved) };
    });
    return { topics: await Promise.all(replies) };
  },
};

interface Move {
  readonly partitionIndex: number;
  readonly partitionId: number | undefined;
  /** Why there is no topic, or why nothing may be deleted from it; 0 if it may. */
  readonly errorCode: number;
  readonly offset: number;
}

/** What compaction alone looks after is not cut off at an offset. */
function policyError({ services }: RequestContext, { config }: Topic): number {
  const policy = services.topicConfigs.effective(config, 'cleanup.policy').split(',');
  return policy.includes('delete') ? 0 : ErrorCode.POLICY_VIOLATION;
}

async function move(
  context: RequestContext,
  { partitionIndex, partitionId, offset, errorCode }: Move,
): Promise<PartitionReply> {
  const failed = (errorCode: number): PartitionReply => {
    context.countError(errorCode);
    return { partitionIndex, lowWatermark: -1, errorCode };
  };
  if (partitionId === undefined || errorCode !== 0) {
    return failed(errorCode || ErrorCode.UNKNOWN_TOPIC_OR_PARTITION);
  }
  try {
    const lowWatermark = await context.services.log.deleteRecords(partitionId, offset);
    return { partitionIndex, lowWatermark, errorCode: 0 };
  } catch (caught) {
    const error = FloeError.from(caught);
    return failed(error.code === 'invalid' ? ErrorCode.OFFSET_OUT_OF_RANGE : kafkaCodeOf(error));
  }
}
