// How clients are sent to other brokers: at NOT_LEADER_OR_FOLLOWER they ask for new metadata, and go where it says. Nothing
// of such a request is admitted, so it is safe to send it elsewhere. Handlers that answer so take the places of the two
// usual ones, so that a broker that sends nobody away pays nothing for it. Not for: when to (draining.ts, growth.ts).
import type { Cluster } from '../cluster/cluster.ts';
import { ErrorCode } from '../protocol/errors.ts';
import type { ProduceReply, ProduceRequest } from '../protocol/messages/00-produce.ts';
import type { FetchReply, FetchRequest } from '../protocol/messages/01-fetch.ts';
import type { AnyHandler } from './handler.ts';
import type { Router } from './router.ts';
import type { BrokerServices } from './services.ts';

/** Brokers that clients may be sent to, by node id. */
export function frontsOf(cluster: Cluster): ReadonlySet<number> {
  const fronts = cluster
    .nodes()
    .filter(({ draining, roles }) => !draining && roles.includes('front'));
  return new Set(fronts.map(({ nodeId }) => nodeId));
}

/** Puts handlers in others' places. @returns how to put those back, unless more has been changed since. */
export function serveBy(services: BrokerServices, handlers: readonly AnyHandler[]): () => void {
  const changing = services as { router: Router };
  const before = changing.router;
  const during = before.with(handlers);
  changing.router = during;
  return () => {
    if (changing.router === during) changing.router = before;
  };
}

const errorCode = ErrorCode.NOT_LEADER_OR_FOLLOWER;

export function producedElsewhere({ topicData }: ProduceRequest): ProduceReply {
  return {
    responses: topicData.map(({ name, topicId, partitionData }) => ({
      name,
      topicId,
      partitionResponses: partitionData.map(({ index }) => ({
        index,
        errorCode,
        baseOffset: -1,
        recordErrors: [],
      })),
    })),
  };
}

/** Of a request that names all that it asks for; one that continues a session doesn't: {@link sessionEnded}. */
export function fetchedElsewhere({ topics }: FetchRequest): FetchReply {
  return {
    errorCode: 0,
    responses: topics.map(({ topic, topicId, partitions }) => ({
      topic,
      topicId,
      partitions: partitions.map(({ partition }) => ({
        partitionIndex: partition,
        errorCode,
        highWatermark: -1,
        abortedTransactions: null,
        records: null,
      })),
    })),
  };
}

/** Whether a request names only what has changed since the one before (KIP-227). */
export const continuesSession = ({ sessionId, sessionEpoch }: FetchRequest): boolean =>
  sessionId !== 0 && sessionEpoch > 0;

/** The client asks again, for everything. */
export const sessionEnded: FetchReply = {
  errorCode: ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
  responses: [],
};
