// OffsetForLeaderEpoch (23), versions 2–4: where an epoch ended. A partition has one epoch for ever, 0, which ends
// at the log's end; a higher one is unknown (−1, no error), and a client that believes in a higher current epoch
// hears UNKNOWN_LEADER_EPOCH. v3 replica id, v4 flexible.
import { ErrorCode } from '../../protocol/errors.ts';
import {
  type OffsetForLeaderEpochReply,
  offsetForLeaderEpochApi,
} from '../../protocol/messages/23-offset-for-leader-epoch.ts';
import { LEADER_EPOCH } from '../fetch-read.ts';
import type { Handler } from '../handler.ts';
import { learnTopics, topicFor } from '../topic-lookup.ts';

type PartitionReply = OffsetForLeaderEpochReply['topics'][number]['partitions'][number];

export const offsetForLeaderEpochHandler: Handler<typeof offsetForLeaderEpochApi> = {
  api: offsetForLeaderEpochApi,
  versions: { min: 2, max: 4 },
  async handle({ topics }, context) {
    const { log } = context.services;
    await learnTopics(context, () => topics.map(({ topic: name }) => ({ name })));
    // What was acknowledged before the request, by whichever broker, counts.
    await log.caughtUp();
    return {
      topics: topics.map(({ topic, partitions }) => {
        const found = topicFor(context, 'describe', { name: topic });
        const replies = partitions.map(
          ({ partition, currentLeaderEpoch, leaderEpoch }): PartitionReply => {
            const partitionId = found.topic?.partitions[partition];
            const end =
              partitionId === undefined ? undefined : log.watermarks(partitionId)?.highWatermark;
            if (end === undefined) {
              const errorCode = found.errorCode || ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
              return { errorCode, partition };
            }
            if (currentLeaderEpoch > LEADER_EPOCH) {
              return { errorCode: ErrorCode.UNKNOWN_LEADER_EPOCH, partition };
            }
            if (leaderEpoch !== LEADER_EPOCH) return { errorCode: 0, partition };
            return { errorCode: 0, partition, leaderEpoch: LEADER_EPOCH, endOffset: end };
          },
        );
        return { topic, partitions: replies };
      }),
    };
  },
};
