// Decides which manifests a commit joins, so that planning stays cheap on a table that is committed to for years.
// Properties as every engine knows them: commit.manifest-merge.enabled, commit.manifest.min-count-to-merge,
// commit.manifest.target-size-bytes.
import type { ManifestFile } from './manifest-list.ts';

const MIN_COUNT = 100;
const TARGET_BYTES = 8 * 1024 * 1024;

export interface MergePlan {
  readonly kept: ManifestFile[];
  /** Each becomes one manifest. */
  readonly bins: readonly (readonly ManifestFile[])[];
}

/**
 * `mergeFrom`: the count to merge from, where it isn't the table's own.
 * Manifests of one spec and content below the target size are joined, up to that size each, once there are
 * `min-count-to-merge` of them: the cost of a merge is spread over as many commits.
 */
export function mergePlan(
  manifests: readonly ManifestFile[],
  properties: Readonly<Record<string, string>>,
  mergeFrom?: number,
): MergePlan {
  if (properties['commit.manifest-merge.enabled'] === 'false') {
    return { kept: [...manifests], bins: [] };
  }
  const minCount =
    mergeFrom ?? positive(properties['commit.manifest.min-count-to-merge'], MIN_COUNT);
  const target = positive(properties['commit.manifest.target-size-bytes'], TARGET_BYTES);
  const groups = new Map<string, ManifestFile[]>();
  for (const manifest of manifests) {
    if (manifest.manifestLength >= target) continue;
    const key = `${manifest.partitionSpecId}/${manifest.content}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [manifest]);
    else group.push(manifest);
  }
  const bins = [...groups.values()]
    .filter((group) => group.length >= Math.max(2, minCount))
    .flatMap((group) => pack(group, target));
  const joined = new Set(bins.flat());
  return { kept: manifests.filter((manifest) => !joined.has(manifest)), bins };
}

function positive(text: string | undefined, fallback: number): number {
  const value = Number(text ?? fallback);
  return Number.isFinite(value) && value > 0 ? value : fallback;
}

/** Fills bins in order; a bin of one is no merge. */
function pack(manifests: readonly ManifestFile[], target: number): ManifestFile[][] {
  const bins: ManifestFile[][] = [];
  let bin: ManifestFile[] = [];
  let bytes = 0;
  for (const manifest of manifests) {
    if (bytes + manifest.manifestLength > target && bin.length > 0) {
      bins.push(bin);
      bin = [];
      bytes = 0;
    }
    bin.push(manifest);
    bytes += manifest.manifestLength;
  }
  bins.push(bin);
  return bins.filter((one) => one.length > 1);
}
