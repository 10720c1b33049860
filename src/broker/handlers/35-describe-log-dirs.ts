// DescribeLogDirs (35), versions 1–5: bytes held per partition. The log is one store, shown as one directory; tools ask
// every broker and add up, so each shows the partitions that it would lead if there were no racks.
// v3 top-level error, v4 total and usable bytes: −1, since an object store has no such numbers.

import type { Topic } from '../../metadata/topics.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import {
  type DescribeLogDirsReply,
  describeLogDirsApi,
} from '../../protocol/messages/35-describe-log-dirs.ts';
import type { Handler, RequestContext } from '../handler.ts';

type TopicReply = DescribeLogDirsReply['results'][number]['topics'][number];

export const describeLogDirsHandler: Handler<typeof describeLogDirsApi> = {
  api: describeLogDirsApi,
  versions: { min: 1, max: 5 },
  handle({ topics }, context) {
    if (!context.access.allows('describe', 'cluster')) {
      return { errorCode: ErrorCode.CLUSTER_AUTHORIZATION_FAILED, results: [] };
    }
    const { directory, cluster } = context.services;
    const leaderOf = cluster.leaders(context.connection.listener, null);
    const sizes = (topic: Topic, indexes: readonly number[]) =>
      sizesOf(
        context,
        topic,
        indexes.filter((index) => leaderOf(topic.partitions[index] ?? -1) === cluster.nodeId),
      );
    const shown: TopicReply[] = [];
    if (topics === null) {
      for (const topic of directory.all()) {
        shown.push(sizes(topic, [...topic.partitions.keys()]));
      }
    } else {
      for (const { topic: name, partitions } of topics) {
        const topic = directory.byName(name);
        if (topic !== undefined) shown.push(sizes(topic, partitions));
      }
    }
    return {
      errorCode: 0,
      results: [{ errorCode: 0, logDir: cluster.logDirectory, topics: shown }],
    };
  },
};

function sizesOf(
  { services }: RequestContext,
  topic: Topic,
  indexes: readonly number[],
): TopicReply {
  const partitions = [];
  for (const partitionIndex of indexes) {
    const id = topic.partitions[partitionIndex];
    if (id === undefined) continue;
    const partitionSize = services.log.sizeOf(id);
    partitions.push({ partitionIndex, partitionSize, offsetLag: 0, isFutureKey: false });
  }
  return { name: topic.name, partitions };
}
