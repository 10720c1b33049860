// What a client is asked to push (KIP-714): all subscriptions that match it, put together. Pure. The subscription's id
// follows from its content and the client, so that every broker, restarted or not, gives the same.
import { crc32c } from '@node-rs/crc32';
import { uuidToBytes } from '../../base/prng.ts';
import { RESOURCE_DEFINITIONS } from '../resource-definitions.ts';
import { type ClientFacts, type ClientMatch, isMatch, parseMatch } from './match.ts';

/** A CLIENT_METRICS resource, parsed. */
export interface Subscription {
  readonly match: ClientMatch;
  readonly metrics: readonly string[];
  readonly intervalMs: number;
}

/** What one client is to push. */
export interface ClientSubscription {
  readonly id: number;
  /** Prefixes of names; `*` alone for all, none for nothing. */
  readonly metrics: readonly string[];
  readonly intervalMs: number;
}

/** How often a client without a subscription asks again; Kafka's default interval too. */
export const DEFAULT_INTERVAL_MS = 300_000;

const ALL = '*';

/** From the configs of a resource, which were checked when they were set. */
export function parseSubscription(config: Readonly<Record<string, string>>): Subscription {
  const { settings } = RESOURCE_DEFINITIONS['client-metrics'];
  const metrics = settings['metrics']!.parse(config['metrics'] ?? '') as readonly string[];
  const intervalMs = Number(config['interval.ms'] ?? DEFAULT_INTERVAL_MS);
  return { match: parseMatch(config['match'] ?? ''), metrics, intervalMs };
}

export function subscriptionOf(
  subscriptions: Iterable<Subscription>,
  facts: ClientFacts,
): ClientSubscription {
  const metrics = new Set<string>();
  let intervalMs = DEFAULT_INTERVAL_MS;
  for (const subscription of subscriptions) {
    if (!isMatch(subscription.match, facts)) continue;
    for (const prefix of subscription.metrics) metrics.add(prefix);
    intervalMs = Math.min(intervalMs, subscription.intervalMs);
  }
  const asked = metrics.has(ALL) ? [ALL] : [...metrics].sort();
  const content = crc32c(`${asked.join(',')} ${intervalMs}`);
  const client = crc32c(Buffer.from(uuidToBytes(facts.client_instance_id)));
  return { id: (content ^ client) | 0, metrics: asked, intervalMs };
}
