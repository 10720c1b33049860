// Sets of partition ids as ascending arrays: what members of a consumer group own, give up and shall own.
// Small, compared and stored often, so plain arrays rather than Sets.

/** Ascending, without repetition. Ids are those of the metadata store, not indexes within a topic. */
export type Partitions = readonly number[];

export const NO_PARTITIONS: Partitions = [];

export function partitionSet(ids: Iterable<number>): Partitions {
  const sorted = [...ids].sort((a, b) => a - b);
  return sorted.filter((id, index) => index === 0 || id !== sorted[index - 1]);
}

export function samePartitions(a: Partitions, b: Partitions): boolean {
  return a === b || (a.length === b.length && a.every((id, index) => id === b[index]));
}

/** Those of `a` that are in `b` (`keep` true) or not in it (false). */
function filtered(a: Partitions, b: Partitions, keep: boolean): Partitions {
  if (a.length === 0 || b.length === 0) return keep ? NO_PARTITIONS : a;
  const others = new Set(b);
  return a.filter((id) => others.has(id) === keep);
}

export const intersection = (a: Partitions, b: Partitions) => filtered(a, b, true);
export const difference = (a: Partitions, b: Partitions) => filtered(a, b, false);

export function union(a: Partitions, b: Partitions): Partitions {
  if (a.length === 0) return b;
  return b.length === 0 ? a : partitionSet([...a, ...b]);
}

/** True when every one of `ids`, in whatever order, is in `b`. */
export function isSubset(ids: readonly number[], b: Partitions): boolean {
  if (ids.length === 0) return true;
  const others = new Set(b);
  return ids.every((id) => others.has(id));
}
