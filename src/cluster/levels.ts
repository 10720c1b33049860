// Levels: versions of what nodes say to each other (hints) and write for each other (metadata rows, objects). During a
// rolling upgrade old and new programs live side by side, so whoever writes a new form asks `cluster.level()` first
// and writes the old one below its level. A program speaks a range; the cluster's level is the highest that all
// living nodes speak. Each release that changes a form raises `max`, and `min` when it drops an old one.
import { FloeError } from '../base/error.ts';
import type { NodeDescription } from '../metadata/nodes.ts';

export type Levels = NodeDescription['levels'];

/**
 * What this program speaks. Level 1: the first with clusters.
 * How a form changes: raise `max` to n, read both forms, write the new one only when `cluster.level() >= n`.
 */
export const LEVELS: Levels = { min: 1, max: 1 };

interface Speaker {
  readonly nodeId: number;
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

/** @throws FloeError `conflict` naming the living node that `newcomer` can't talk to, and the way out. */
export function assertLevels(newcomer: Omit<Speaker, 'nodeId'>, living: readonly Speaker[]): void {
  const { min, max } = newcomer.levels;
  for (const { nodeId, version, levels } of living) {
    if (levels.max >= min && levels.min <= max) continue;
    const older = levels.max < min;
    throw new FloeError(
      'conflict',
      `this program (${newcomer.version}) speaks levels ${min} to ${max}, node ${nodeId} (${version}) speaks ` +
        `${levels.min} to ${levels.max}: ${older ? `upgrade node ${nodeId} first, to a version between the two` : 'start a newer version here'}`,
    );
  }
}
