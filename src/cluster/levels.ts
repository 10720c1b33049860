// Levels: versions of what nodes say to each other (hints) and write for each other (metadata rows, objects). During a
// rolling upgrade old and new programs live side by side, so whoever writes a new form asks `cluster.level()` first
// and writes the old one below its level. A program speaks a range; the cluster's level is the highest that all
// living nodes speak, and never goes back: a program that doesn't speak it may not join any more.
import { FloeError } from '../base/error.ts';
import type { NodeDescription } from '../metadata/nodes.ts';

export type Levels = NodeDescription['levels'];

/**
 * What this program speaks. Level 1: the first with clusters.
 * How a form changes: raise `max` to n, read both forms, write the new one only when `cluster.level() >= n`; a later
 * release that no longer reads the old form raises `min`.
 */
export const LEVELS: Levels = { min: 1, max: 1 };

interface Speaker {
  readonly version: string;
  readonly levels: Levels;
}

/** The highest level that all of them speak; undefined when there is none, or nobody. */
export function commonLevel(speakers: readonly Pick<Speaker, 'levels'>[]): number | undefined {
  if (speakers.length === 0) return undefined;
  const highest = Math.min(...speakers.map(({ levels }) => levels.max));
  const lowest = Math.max(...speakers.map(({ levels }) => levels.min));
  return highest >= lowest ? highest : undefined;
}

/**
 * The level at which `newcomer` joins those that live.
 * @throws FloeError `conflict` when it doesn't speak theirs, with the way out.
 */
export function joinLevel(newcomer: Speaker, living: readonly Speaker[]): number {
  const { min, max } = newcomer.levels;
  const theirs = commonLevel(living);
  if (theirs === undefined) return max;
  if (theirs >= min && theirs <= max) return theirs;
  const versions = [...new Set(living.map(({ version }) => version))].join(', ');
  const remedy =
    theirs < min
      ? 'first upgrade all of them to a version between the two'
      : 'they have gone on to a level that this program does not know: start their version here';
  throw new FloeError(
    'conflict',
    `this program (${newcomer.version}) speaks levels ${min} to ${max}, the living nodes (${versions}) ` +
      `are at level ${theirs}: ${remedy}`,
  );
}
