// A broker that is about to go sends its clients to the others: every Produce and Fetch is answered with
// NOT_LEADER_OR_FOLLOWER, at which clients ask for new metadata, which names other leaders by then. Nothing of such a
// request is admitted, so it is safe to send it elsewhere. Requests under way end as they would.
// By taking the place of the two handlers, so that a broker that stays pays nothing for it.
import { ErrorCode } from '../protocol/errors.ts';
import { produceApi } from '../protocol/messages/00-produce.ts';
import { fetchApi } from '../protocol/messages/01-fetch.ts';
import { type AnyHandler, HANG_UP, type Handler } from './handler.ts';
import { produceHandler } from './handlers/00-produce.ts';
import { fetchHandler } from './handlers/01-fetch.ts';
import type { Router } from './router.ts';
import type { BrokerServices } from './services.ts';

export interface SentAway {
  /** Since a client was last sent away, or since this began; milliseconds. */
  quietMs(): number;
}

/** From now on, for as long as the broker lives. */
export function sendClientsAway(services: BrokerServices): SentAway {
  const { clock, metrics, router } = services;
  let lastMs = clock.monotonic();
  const noted = () => {
    lastMs = clock.monotonic();
    const help =
      'Produce and Fetch requests answered with the way to other brokers, while this one drains';
    metrics.count('floe_broker_sent_away_total', help);
  };
  const handlers: readonly AnyHandler[] = [producedElsewhere(noted), fetchedElsewhere(noted)];
  (services as { router: Router }).router = router.with(handlers);
  return { quietMs: () => clock.monotonic() - lastMs };
}

const errorCode = ErrorCode.NOT_LEADER_OR_FOLLOWER;

function producedElsewhere(noted: () => void): Handler<typeof produceApi> {
  const { versions, advertisedFrom } = produceHandler;
  return {
    api: produceApi,
    versions,
    ...(advertisedFrom === undefined ? {} : { advertisedFrom }),
    inPlace: true,
    handle({ acks, topicData }) {
      noted();
      if (acks === 0) return HANG_UP;
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
    },
  };
}

/** A session names only what has changed: it is ended, and the client asks again for everything. */
function fetchedElsewhere(noted: () => void): Handler<typeof fetchApi> {
  return {
    api: fetchApi,
    versions: fetchHandler.versions,
    handle({ sessionId, sessionEpoch, topics }) {
      noted();
      if (sessionId !== 0 && sessionEpoch > 0)
        return { errorCode: ErrorCode.FETCH_SESSION_ID_NOT_FOUND, responses: [] };
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
    },
  };
}
