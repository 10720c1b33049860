// DescribeLogDirs (35), versions 1–5: bytes held per partition. The log is one store, shown as one directory; tools ask
// every broker and add up, so each shows the partitions that it would lead if there were no racks: each is shown once,
// but for the seconds in which brokers disagree about who lives.
// v3 top-level error, v4 total and usable bytes: −1, since an object store has no such numbers.

import type { Topic } from '../../metadata/topics.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import {
  type DescribeLogDirsReply,
  type DescribeLogDirsRequest,
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
    const { cluster } = context.services;
    const leaderOf = cluster.leaders(context.connection.listener, null);
    const shownHere = (id: number) => leaderOf(id) === cluster.nodeId;
    const shown = asked(context, topics)
      .map(([topic, indexes]) => sizesOf(context, topic, { indexes, shownHere }))
      .filter(({ partitions }) => partitions.length > 0);
    return {
      errorCode: 0,
      results: [{ errorCode: 0, logDir: cluster.logDirectory, topics: shown }],
    };
  },
};

/** Partitions by topic, each once however often it is named; null asks about all. */
function asked(
  { services: { directory } }: RequestContext,
  topics: DescribeLogDirsRequest['topics'],
): readonly (readonly [Topic, Iterable<number>])[] {
  if (topics === null) return directory.all().map((topic) => [topic, topic.partitions.keys()]);
  const found = new Map<Topic, Set<number>>();
  for (const { topic: name, partitions } of topics) {
    const topic = directory.byName(name);
    if (topic !== undefined)
      found.set(topic, new Set([...(found.get(topic) ?? []), ...partitions]));
  }
  return [...found];
}

function sizesOf(
  { services: { log } }: RequestContext,
  topic: Topic,
  {
    indexes,
    shownHere,
  }: { indexes: Iterable<number>; shownHere: (partitionId: number) => boolean },
): TopicReply {
  const partitions = [];
  for (const partitionIndex of indexes) {
    const id = topic.partitions[partitionIndex];
    if (id === undefined || !shownHere(id)) continue;
    partitions.push({
      partitionIndex,
      partitionSize: log.sizeOf(id),
      offsetLag: 0,
      isFutureKey: false,
    });
  }
  return { name: topic.name, partitions };
}
