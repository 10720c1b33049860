// Which objects are worth rewriting: pure, from what is left of each. Three reasons: its partitions lie scattered
// in small runs (record-by-record writing), most of it is dead, or many objects hold a little of each partition.
// Not worth it: large runs, as full-speed producers leave them.
import type { ObjectUse } from '../../metadata/objects.ts';

export interface ChoiceLimits {
  /** Runs shorter than this on average are scattered. */
  readonly smallRunBytes: number;
  /** Neighbours this close are read together anyway (the reader's gap). */
  readonly gapBytes: number;
  /** Shares of a partition smaller than this on average are worth merging. */
  readonly smallShareBytes: number;
  /** Objects merged at once; fewer wait. */
  readonly fanIn: number;
  /** Where so many have no partitions in common, more are taken together, up to these. Default: none are. */
  readonly maxFanIn?: number;
  /** Bytes of one new object. */
  readonly objectBytes: number;
  /** Objects younger than this are left alone. */
  readonly minAgeMs: number;
}

/** Objects to be rewritten together, by ascending id. */
export interface CompactionJob {
  readonly reason: 'scattered' | 'dead' | 'merge';
  readonly objectIds: readonly number[];
  /** Of a merge: see {@link tierOf}. */
  readonly tier?: number;
}

/** The oldest work there is; `settled` are objects that a merge would not improve. */
export function chooseJob(
  uses: readonly ObjectUse[],
  nowMs: number,
  more: {
    readonly limits: ChoiceLimits;
    readonly settled: ReadonlySet<number>;
    /** Objects that a merge of a tier takes now. Default: `limits.fanIn`. */
    readonly fanInOf?: (tier: number) => number;
  },
): CompactionJob | undefined {
  const { limits, settled, fanInOf = () => limits.fanIn } = more;
  const old = uses.filter(
    ({ object, entries }) => entries > 0 && nowMs - object.createdMs >= limits.minAgeMs,
  );
  const scattered = upTo(
    old.filter((use) => isScattered(use, limits)),
    limits.objectBytes,
  );
  if (scattered.length > 0) return { reason: 'scattered', objectIds: scattered };
  const dead = upTo(old.filter(isMostlyDead), limits.objectBytes);
  if (dead.length > 0) return { reason: 'dead', objectIds: dead };
  const small = old.filter((use) => isSmall(use, limits) && !settled.has(use.object.objectId));
  return chooseMerge(small, limits, fanInOf);
}

/**
 * Merges take objects whose shares are alike, the smallest first: a large share that is rewritten for the sake of a small
 * one gains little, and would be rewritten many times on its way to a size that is left alone.
 */
function chooseMerge(
  small: readonly ObjectUse[],
  limits: ChoiceLimits,
  fanInOf: (tier: number) => number,
): CompactionJob | undefined {
  const tiers = Map.groupBy(small, (use) => tierOf(use, limits));
  for (const tier of [...tiers.keys()].sort((a, b) => b - a)) {
    const uses = tiers.get(tier)!;
    const fanIn = fanInOf(tier);
    const objectIds = upToEntries(uses, fanIn);
    const enough = objectIds.length === fanIn || objectIds.length < uses.length;
    if (enough && objectIds.length > 1) return { reason: 'merge', objectIds, tier };
  }
  return undefined;
}

/** How many merges an object's shares are away from a size that is left alone, each making them `fanIn` times as large. */
function tierOf(
  { liveBytes, entries }: ObjectUse,
  { smallShareBytes, fanIn }: ChoiceLimits,
): number {
  return Math.floor(Math.log((smallShareBytes * entries) / liveBytes) / Math.log(fanIn));
}

/** Rows of a job are held in memory together. */
const MAX_ENTRIES = 250_000;

function upToEntries(uses: readonly ObjectUse[], count: number): number[] {
  let entries = 0;
  const taken = uses.slice(0, count).filter((use) => (entries += use.entries) <= MAX_ENTRIES);
  return taken.map(({ object }) => object.objectId);
}

function isScattered(
  { object, entries, runs, liveBytes }: ObjectUse,
  limits: ChoiceLimits,
): boolean {
  const run = liveBytes / runs;
  // Between two runs of a partition lies about one of every other.
  return (
    object.kind === 'file' && run < limits.smallRunBytes && run * (entries - 1) > limits.gapBytes
  );
}

/** A run costs a block header and an index entry; small ones cost more than they hold and aren't dead for that. */
const RUN_OVERHEAD_BYTES = 128;

function isMostlyDead({ object, liveBytes, runs }: ObjectUse): boolean {
  return liveBytes + runs * RUN_OVERHEAD_BYTES < object.bytes / 2;
}

function isSmall({ entries, liveBytes }: ObjectUse, limits: ChoiceLimits): boolean {
  const share = liveBytes / entries;
  return share < limits.smallShareBytes && liveBytes < limits.objectBytes * 2;
}

/** The first, and as many more as fit into one object together. */
function upTo(uses: readonly ObjectUse[], bytes: number): number[] {
  const objectIds: number[] = [];
  let total = 0;
  for (const { object, liveBytes } of uses) {
    total += liveBytes;
    if (objectIds.length > 0 && total > bytes) break;
    objectIds.push(object.objectId);
  }
  return objectIds;
}
