// Version ranges in Kafka's notation: "3" one version, "0-12" both ends, "9+" open upward.

/** Inclusive; `max` is Infinity for an open range. */
export interface VersionRange {
  readonly min: number;
  readonly max: number;
}

/** Every version. */
export const ALL_VERSIONS: VersionRange = { min: 0, max: Number.POSITIVE_INFINITY };

/** No version at all ("none" in Kafka's notation). */
export const NO_VERSIONS: VersionRange = { min: 1, max: 0 };

/** Parses "3", "0-12", "9+" or "none". @throws RangeError on anything else: definitions are ours. */
export function parseVersions(text: string): VersionRange {
  if (text === 'none') return NO_VERSIONS;
  const [, from, open, to] = /^(\d+)(?:(\+)|-(\d+))?$/.exec(text) ?? [];
  if (from === undefined) throw new RangeError(`not a version range: "${text}"`);
  const min = Number(from);
  if (open !== undefined) return { min, max: Number.POSITIVE_INFINITY };
  return { min, max: to === undefined ? min : Number(to) };
}

/** Whether `version` lies in `range`. */
export function inVersions(range: VersionRange, version: number): boolean {
  return version >= range.min && version <= range.max;
}
