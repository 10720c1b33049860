// Which partitions of a topic its operator has put aside, by the topic's config. Part of the topic's metadata, so that
// whoever holds a topic knows it: the broker refuses them, table lanes leave them out.
// Not for: what clients are answered (broker/operator-stops.ts), checking what is set (broker/topic-settings.ts).
import type { Topic } from './topics.ts';

/** Name of the topic config: a comma-separated list of partition numbers. */
export const QUARANTINE_CONFIG = 'floe.quarantined.partitions';

const NONE: ReadonlySet<number> = new Set();

/** Partition indexes, among them such as the topic may not have (yet). Parses: not for every request. */
export function quarantinedPartitions({ config }: Pick<Topic, 'config'>): ReadonlySet<number> {
  const text = config[QUARANTINE_CONFIG];
  if (text === undefined || text.trim() === '') return NONE;
  return new Set(text.split(',').map(Number));
}
