// How long the work on a table pauses after failures: one pace for commits, rewrites, operations and lanes.
import type { Prng } from '../base/prng.ts';
import { backoffMs } from '../base/retry.ts';

export interface RetryDelayDeps {
  readonly prng: Prng;
  readonly settings: {
    readonly 'table.retry.first.ms': number;
    readonly 'table.retry.max.ms': number;
  };
}

/** Whole milliseconds before the next attempt, after `failures` of them in a row. */
export function retryDelayMs({ prng, settings }: RetryDelayDeps, failures: number): number {
  const backoff = {
    prng,
    firstDelayMs: settings['table.retry.first.ms'],
    maxDelayMs: settings['table.retry.max.ms'],
  };
  return Math.ceil(backoffMs(backoff, failures));
}
