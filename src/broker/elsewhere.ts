// Answers that send a client to other brokers: at NOT_LEADER_OR_FOLLOWER clients ask for new metadata, and go where it
// says. Nothing of such a request is admitted, so it is safe to send it elsewhere. Not for: when to (draining.ts,
// growth.ts).
import { ErrorCode } from '../protocol/errors.ts';
import type { ProduceReply, ProduceRequest } from '../protocol/messages/00-produce.ts';
import type { FetchReply, FetchRequest } from '../protocol/messages/01-fetch.ts';

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
