// What a request costs its client: bytes produced, charged on arrival; time of the front thread, when the reply is made;
// bytes fetched, before they are returned, since a reply above the quota goes out empty. Changes of topics: mutations.ts.
// Pure but for the meters. Not for: the wait itself (mute.ts).
import type { RequestContext } from '../handler.ts';
import type { ClientLimits } from './client-quotas.ts';

const PRODUCE_KEY = 0;

/**
 * Charges a request as it arrives, for what it brings; how long its client has to wait, in milliseconds.
 * At once, not when it is answered: a client that sends on meanwhile is held back by the first request too many.
 */
export function chargeArrival(
  { produce }: ClientLimits,
  { apiKey, bytes }: { readonly apiKey: number; readonly bytes: number },
  nowMs: number,
): number {
  return apiKey === PRODUCE_KEY ? (produce?.charge(bytes, nowMs) ?? 0) : 0;
}

/** Takes back what a batch was charged that is refused until an operator lets its topic be written again. */
export function refundProduce({ limits, services }: RequestContext, bytes: number): void {
  limits?.produce?.add(-bytes, services.clock.monotonic());
}

/** Charges time of the front thread; a request quota makes nobody wait longer than one window at once. */
export function chargeTime({ request }: ClientLimits, busyMs: number, nowMs: number): number {
  if (request === undefined) return 0;
  // Milliseconds of a second are tenths of a per cent.
  return Math.min(request.charge(busyMs / 10, nowMs), request.windowMs);
}

/** Charges what a Fetch is about to return; above the quota nothing is charged, and the reply has to go out empty. */
export function chargeFetch({ limits, services }: RequestContext, bytes: number): number {
  const fetch = limits?.fetch;
  if (fetch === undefined) return 0;
  const nowMs = services.clock.monotonic();
  const waitMs = fetch.charge(bytes, nowMs);
  if (waitMs > 0) fetch.add(-bytes, nowMs);
  return waitMs;
}

/** What a Fetch may return at most, so that it isn't certainly throttled. */
export function fetchBound({ limits }: Pick<RequestContext, 'limits'>): number {
  return limits?.fetch?.largestCharge ?? Infinity;
}
