// Which snapshots of a table may go. Pure. What somebody else relies on stays: every branch and tag with its own
// retention; and Floe's newest own snapshot, which its watermark is read back by (rule T2).
// Source: Iceberg table spec, "Snapshot Retention Policy".
import { ancestorsOf, MAIN_BRANCH } from '../../formats/iceberg/history.ts';
import type { Snapshot, SnapshotRef, TableMetadata } from '../../formats/iceberg/types.ts';
import { COMMIT_ID_SUMMARY, WATERMARK_TAG } from '../watermark.ts';

export interface ExpiryPolicy {
  /** Snapshots older than this are removed (ms). */
  readonly maxAgeMs: number;
  readonly minSnapshots: number;
  /** Of `main`, however young. */
  readonly maxCount: number;
}

export interface ExpiryChoice {
  readonly snapshots: readonly bigint[];
  /** Branches and tags past their own `max-ref-age-ms`. */
  readonly refs: readonly string[];
}

const AGE_PROPERTY = 'history.expire.max-snapshot-age-ms';
const COUNT_PROPERTY = 'history.expire.min-snapshots-to-keep';
const REF_AGE_PROPERTY = 'history.expire.max-ref-age-ms';

export function chooseExpired(
  metadata: TableMetadata,
  policy: ExpiryPolicy,
  nowMs: number,
): ExpiryChoice {
  const asked = withProperties(policy, metadata.properties ?? {});
  const kept = new Set<bigint>();
  const refs: string[] = [];
  const byId = new Map((metadata.snapshots ?? []).map((one) => [one['snapshot-id'], one]));
  for (const [name, ref] of Object.entries(metadata.refs ?? {})) {
    const head = byId.get(ref['snapshot-id']);
    if (head === undefined || isRefExpired({ name, ref, head }, metadata, nowMs)) refs.push(name);
    else for (const one of keptBy({ name, ref }, metadata, { policy: asked, nowMs })) kept.add(one);
  }
  const own = newestOwn(metadata);
  if (own !== undefined) kept.add(own['snapshot-id']);
  const current = metadata['current-snapshot-id'];
  if (current !== undefined) kept.add(current);
  const line = new Set(
    Object.values(metadata.refs ?? {}).flatMap((ref) =>
      ancestorsOf(metadata, ref['snapshot-id']).map((one) => one['snapshot-id']),
    ),
  );
  const snapshots = [...byId.values()].filter((one) => {
    const id = one['snapshot-id'];
    if (kept.has(id)) return false;
    // Off every branch: rolled back, or staged by somebody who will name it yet.
    return line.has(id) || nowMs - one['timestamp-ms'] > asked.maxAgeMs;
  });
  return { snapshots: snapshots.map((one) => one['snapshot-id']), refs };
}

function withProperties(
  policy: ExpiryPolicy,
  properties: Readonly<Record<string, string>>,
): ExpiryPolicy {
  const read = (name: string, standard: number) => {
    const value = Number(properties[name] ?? Number.NaN);
    return Number.isFinite(value) && value >= 0 ? value : standard;
  };
  return {
    ...policy,
    maxAgeMs: read(AGE_PROPERTY, policy.maxAgeMs),
    minSnapshots: Math.max(1, read(COUNT_PROPERTY, policy.minSnapshots)),
  };
}

interface Named {
  readonly name: string;
  readonly ref: SnapshotRef;
}

/** `main` never, nor Floe's tag; others by what was set on them, else on the table. */
function isRefExpired(
  { name, ref, head }: Named & { readonly head: Snapshot },
  metadata: TableMetadata,
  nowMs: number,
): boolean {
  if (name === MAIN_BRANCH || name === WATERMARK_TAG) return false;
  const age =
    ref['max-ref-age-ms'] ?? Number(metadata.properties?.[REF_AGE_PROPERTY] ?? Number.NaN);
  return Number.isFinite(age) && nowMs - head['timestamp-ms'] > age;
}

function keptBy(
  { name, ref }: Named,
  metadata: TableMetadata,
  { policy, nowMs }: { readonly policy: ExpiryPolicy; readonly nowMs: number },
): bigint[] {
  if (ref.type === 'tag') return [ref['snapshot-id']];
  const maxAgeMs = ref['max-snapshot-age-ms'] ?? policy.maxAgeMs;
  const minCount = ref['min-snapshots-to-keep'] ?? policy.minSnapshots;
  const maxCount = name === MAIN_BRANCH ? Math.max(policy.maxCount, minCount) : Infinity;
  return ancestorsOf(metadata, ref['snapshot-id'])
    .filter(
      (one, index) =>
        index < minCount || (index < maxCount && nowMs - one['timestamp-ms'] <= maxAgeMs),
    )
    .map((one) => one['snapshot-id']);
}

/** What {@link readBack} will look for. */
function newestOwn(metadata: TableMetadata): Snapshot | undefined {
  return ancestorsOf(metadata, metadata['current-snapshot-id']).find(
    (one) => one.summary?.[COMMIT_ID_SUMMARY] !== undefined,
  );
}
