// When brokers came, clients that know only the old ones are sent on to them. Left alone they would find out when
// their metadata is too old, after minutes (`metadata.max.age.ms`, 5 min). So for a moment a Produce or Fetch for a partition
// that the present cluster leads elsewhere is answered as after any change of leaders (elsewhere.ts). After that moment
// every broker serves every partition again: who comes nevertheless has a reason to.
// Readers are sent on at once, and their polls end: nobody is to be given the same by two brokers (fetch-wait.ts). Producers
// only when every broker knows who came: until then metadata may send them back, and they try again only so often.
// Not for: who leads what (cluster-view.ts).
import type { Timer } from '../base/clock.ts';
import type { Cluster } from '../cluster/cluster.ts';
import type { produceApi } from '../protocol/messages/00-produce.ts';
import type { fetchApi } from '../protocol/messages/01-fetch.ts';
import type { Operation } from './auth/authorizer.ts';
import { rackOf } from './client-rack.ts';
import {
  continuesSession,
  fetchedElsewhere,
  frontsOf,
  producedElsewhere,
  serveBy,
  sessionEnded,
} from './elsewhere.ts';
import type { AnyHandler, ClientConnection, Handler, RequestContext } from './handler.ts';
import { produceHandler } from './handlers/00-produce.ts';
import { fetchHandler } from './handlers/01-fetch.ts';
import type { BrokerServices } from './services.ts';
import { topicFor } from './topic-lookup.ts';

/** How long clients are sent on: a client asks something of every broker that it knows in this time, or rests. */
export const SEND_ON_MS = 3_000;

export interface GrowthOptions {
  readonly cluster: Cluster;
  /** After so long all brokers know of one that came, and tell clients so. */
  readonly settleMs: number;
}

/** From now on. @returns how to end it. */
export function sendClientsOn(services: BrokerServices, options: GrowthOptions): () => void {
  const { cluster, settleMs } = options;
  const { clock, metrics, logger } = services;
  let known = frontsOf(cluster);
  let timer: Timer | undefined;
  let restore: (() => void) | undefined;
  const noted = () =>
    metrics.count(
      'floe_broker_sent_on_total',
      'Produce and Fetch requests answered with the way to other brokers, after some came',
    );
  const sendOn = (handlers: readonly AnyHandler[]) => {
    restore?.();
    restore = serveBy(services, handlers);
  };
  const begin = () => {
    const fetches = fetchesOn(noted);
    sendOn([fetches]);
    services.fetchWaits.endAll();
    timer = clock.setTimer(settleMs, () => {
      sendOn([fetches, producesOn(noted)]);
      timer = clock.setTimer(SEND_ON_MS, () => restore?.());
    });
  };
  const forget = cluster.onChange(() => {
    const fronts = frontsOf(cluster);
    const came = [...fronts].filter((nodeId) => !known.has(nodeId));
    known = fronts;
    if (came.length === 0) return;
    logger.info({ came }, 'brokers came: clients are sent on to them');
    timer?.cancel();
    begin();
  });
  return () => {
    forget();
    timer?.cancel();
    restore?.();
  };
}

type Prepared = typeof produceHandler extends Handler<typeof produceApi, infer P> ? P : never;

function producesOn(noted: () => void): Handler<typeof produceApi, Prepared> {
  return {
    ...produceHandler,
    handle(request, context, prepared) {
      const moved = ledElsewhere(context, 'write', function* () {
        for (const { name, topicId, partitionData } of request.topicData)
          for (const { index } of partitionData) yield { name, topicId, index };
      });
      // Without a reply nothing can be said.
      if (!moved || request.acks === 0) return produceHandler.handle(request, context, prepared);
      noted();
      return producedElsewhere(request);
    },
  };
}

function fetchesOn(noted: () => void): Handler<typeof fetchApi> {
  /** Have named all that they ask for since brokers came. */
  const asked = new WeakSet<ClientConnection>();
  return {
    ...fetchHandler,
    handle(request, context) {
      const { connection } = context;
      if (continuesSession(request))
        return asked.has(connection) ? fetchHandler.handle(request, context) : sessionEnded;
      asked.add(connection);
      if (request.rackId !== '') connection.rack = request.rackId;
      const moved = ledElsewhere(context, 'read', function* () {
        for (const { topic: name, topicId, partitions } of request.topics)
          for (const { partition: index } of partitions) yield { name, topicId, index };
      });
      if (!moved) return fetchHandler.handle(request, context);
      noted();
      return fetchedElsewhere(request);
    },
  };
}

interface NamedPartition {
  readonly name: string;
  readonly topicId: string;
  readonly index: number;
}

/** Whether one of the partitions is led by another broker; false for what doesn't exist or isn't the client's to know. */
function ledElsewhere(
  context: RequestContext,
  operation: Operation,
  named: () => Iterable<NamedPartition>,
): boolean {
  const { connection, services } = context;
  const leaderOf = services.cluster.leaders(connection.listener, rackOf(context));
  for (const { index, ...topic } of named()) {
    const partitionId = topicFor(context, operation, topic).topic?.partitions[index];
    if (partitionId !== undefined && leaderOf(partitionId) !== services.cluster.nodeId) return true;
  }
  return false;
}
