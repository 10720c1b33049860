// Where a client is, for the leaders it is told: Metadata has no field for it. In this order: the rack that a Fetch (v11+,
// `client.rack`) of the same connection has told; the client id, where `rack=NAME` stands in it (also `zone=`, `az=` and
// the names that WarpStream, AutoMQ and Inkless use); else the rack of the broker that answers, which the client has
// reached somehow.
import type { RequestContext } from './handler.ts';

/** What may stand before the name. Rivals': docs of WarpStream (`ws_az`), AutoMQ (`automq_az`), Inkless (`diskless_az`). */
const TOLD =
  /(?:^|[^A-Za-z0-9])(?:floe_)?(?:rack|zone|az|ws_az|warpstream_az|automq_az|inkless_az|diskless_az)=([^,;&\s]+)/i;

/**
 * The rack that a client id names, one of `racks`; undefined if none. Libraries put things behind a client id, such as
 * `-StreamThread-1-producer`: the longest rack counts that the text begins with, up to a character of no name.
 */
export function rackInClientId(clientId: string, racks: Iterable<string>): string | undefined {
  if (!clientId.includes('=')) return undefined;
  const told = TOLD.exec(clientId)?.[1];
  if (told === undefined) return undefined;
  let best: string | undefined;
  for (const rack of racks) {
    const isNamed =
      told === rack || (told.startsWith(rack) && /[^A-Za-z0-9]/.test(told[rack.length]!));
    if (isNamed && (best === undefined || rack.length > best.length)) best = rack;
  }
  return best;
}

/** The rack whose brokers a client is sent to; null where racks mean nothing. */
export function rackOf({ clientId, connection, services }: RequestContext): string | null {
  const { cluster } = services;
  const brokers = cluster.brokers(connection.listener);
  if (brokers.length === 1) return cluster.rack;
  const racks = new Set(brokers.flatMap(({ rack }) => rack ?? []));
  const { rack } = connection;
  if (rack !== undefined && racks.has(rack)) return rack;
  return rackInClientId(clientId ?? '', racks) ?? cluster.rack;
}
