// When an open flush goes out: pure, so that the rules are tested as a table.
// Locally whenever none is in flight (group commit: the busier, the larger). On S3 each flush is a PUT that costs
// money and tens of milliseconds: at size, at age, or after an idle gap under a rate.

import type { Values } from '../../base/settings.ts';
import type { logSettings } from './settings.ts';

export type FlushPolicy =
  | { readonly kind: 'group' }
  | {
      readonly kind: 'object';
      readonly flushBytes: number;
      readonly ageMs: number;
      readonly idleMs: number;
      /** Idle gaps start at most this many flushes a second. */
      readonly rate: number;
      readonly parallel: number;
    };

export type ObjectFlushPolicy = Extract<FlushPolicy, { kind: 'object' }>;

/** Of a log over an object store, as the settings say. */
export function objectFlushPolicy(settings: Values<typeof logSettings>): ObjectFlushPolicy {
  return {
    kind: 'object',
    flushBytes: settings['log.flush.bytes'],
    ageMs: settings['log.flush.age.ms'],
    idleMs: settings['log.flush.idle.ms'],
    rate: settings['log.flush.rate'],
    parallel: settings['log.flush.parallel'],
  };
}

export interface FlushState {
  readonly nowMs: number;
  readonly openBytes: number;
  /** When the first batch of the open flush was admitted. */
  readonly openedMs: number;
  readonly lastAppendMs: number;
  readonly lastFlushMs: number;
  /** Flushes sent and not yet committed. */
  readonly inFlight: number;
}

/** Milliseconds until the open flush is due: 0 now, Infinity not before something else happens. */
export function flushDueIn(policy: FlushPolicy, state: FlushState): number {
  if (state.openBytes === 0) return Infinity;
  if (policy.kind === 'group') return state.inFlight === 0 ? 0 : Infinity;
  if (state.inFlight >= policy.parallel) return Infinity;
  if (state.openBytes >= policy.flushBytes) return 0;
  const byAge = state.openedMs + policy.ageMs;
  const byIdle = Math.max(
    state.lastAppendMs + policy.idleMs,
    state.lastFlushMs + 1000 / policy.rate,
  );
  return Math.max(0, Math.min(byAge, byIdle) - state.nowMs);
}

/** How many flushes may be in flight at once. */
export function maxInFlight(policy: FlushPolicy): number {
  return policy.kind === 'group' ? Infinity : policy.parallel;
}
