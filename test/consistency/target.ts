// What the consistency workload is run against, and the bad things that can happen to it.
import type { Prng } from '../../src/base/prng.ts';

export interface Target {
  /** HOST:PORT, several separated by commas: what clients are given. */
  readonly brokers: string;
  /** HOST:PORT of the HTTP face of a node that is well. */
  readonly http: string;
  /** Of `floe` commands that look at what is stored. */
  readonly stores: readonly string[];
  /** By name: does it, and undoes it before it resolves. */
  readonly harms: Readonly<Record<string, (prng: Prng) => Promise<void>>>;
  /** How often a harm comes in a round of all of them. Default: once. */
  readonly weights?: Readonly<Record<string, number>>;
  /** Called once clients are at rest. @returns what the nodes did that nobody may do. */
  faults?(): readonly string[];
  stop(): Promise<void>;
}

/** Settings that bring background work within the minutes of a run. */
export const QUICK_UPKEEP = [
  '--set',
  'table.sweep.age.ms=5000',
  '--set',
  'log.retention.check.interval.ms=5000',
];
