// A broker that is about to go sends its clients to the others: every Produce and Fetch is answered with
// NOT_LEADER_OR_FOLLOWER; the metadata that clients ask for then names other leaders. Requests under way end as they would.
import { produceApi } from '../protocol/messages/00-produce.ts';
import { fetchApi } from '../protocol/messages/01-fetch.ts';
import {
  continuesSession,
  fetchedElsewhere,
  producedElsewhere,
  serveBy,
  sessionEnded,
} from './elsewhere.ts';
import { HANG_UP, type Handler } from './handler.ts';
import { produceHandler } from './handlers/00-produce.ts';
import { fetchHandler } from './handlers/01-fetch.ts';
import type { BrokerServices } from './services.ts';

export interface SentAway {
  /** Since a client was last sent away, or since this began; milliseconds. */
  quietMs(): number;
}

/** From now on, for as long as the broker lives. */
export function sendClientsAway(services: BrokerServices): SentAway {
  const { clock, metrics } = services;
  let lastMs = clock.monotonic();
  const noted = () => {
    lastMs = clock.monotonic();
    const help =
      'Produce and Fetch requests answered with the way to other brokers, while this one drains';
    metrics.count('floe_broker_sent_away_total', help);
  };
  serveBy(services, [producesElsewhere(noted), fetchesElsewhere(noted)]);
  services.fetchWaits.endAll();
  return { quietMs: () => clock.monotonic() - lastMs };
}

function producesElsewhere(noted: () => void): Handler<typeof produceApi> {
  const { versions, advertisedFrom } = produceHandler;
  return {
    api: produceApi,
    versions,
    ...(advertisedFrom === undefined ? {} : { advertisedFrom }),
    inPlace: true,
    handle(request) {
      noted();
      return request.acks === 0 ? HANG_UP : producedElsewhere(request);
    },
  };
}

function fetchesElsewhere(noted: () => void): Handler<typeof fetchApi> {
  return {
    api: fetchApi,
    versions: fetchHandler.versions,
    handle(request) {
      noted();
      return continuesSession(request) ? sessionEnded : fetchedElsewhere(request);
    },
  };
}
