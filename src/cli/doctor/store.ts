// The object store under `floe doctor`: reachable, fit, quick, in time, tidy, this cluster's.
import type { Clock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import type { IdSource } from '../../base/prng.ts';
import { readIdentity } from '../../storage/cluster.ts';
import { type ObjectStore, probeConditionalWrites } from '../../storage/objects/index.ts';
import { clusterPrefix, probeKey } from '../../storage/paths.ts';
import { type Finding, findingsOf, median } from './finding.ts';

export interface StoreParts {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly ids: IdSource;
  /** What the metadata says; undefined: it belongs to no cluster yet; null: it can't be asked, so whose the store is isn't known. */
  readonly clusterId: string | undefined | null;
  /** Uploads in parts older than this are left over. */
  readonly uploadAgeMs: number;
}

const { ok, warning, wrong } = findingsOf('store');
const PROBES = 3;
/** A flush waits for its PUT: past this every acknowledgement does. */
const SLOW_PUT_MS = 500;
/** Last-Modified has whole seconds. */
const SKEW_MS = 5_000;

export async function checkStore(parts: StoreParts): Promise<readonly Finding[]> {
  const { store, ids } = parts;
  try {
    await probeConditionalWrites(store, probeKey(ids.uuid()));
  } catch (caught) {
    const error = FloeError.from(caught);
    if (error.code === 'unsupported')
      return [wrong('conditional writes', 'ignored', error.message)];
    const remedy = /TimeTooSkewed/.test(error.message)
      ? 'run an NTP client: the store refuses requests of a clock that is 15 minutes off its own'
      : 'check --storage, --s3-endpoint, credentials and region';
    return [wrong('reachable', `${store.uri}: ${error.message}`, remedy)];
  }
  return [
    ok('reachable', store.uri),
    ok('conditional writes', 'honoured'),
    ...(await probeTimes(parts)),
    ...(await leftovers(parts)),
    ...(await identity(parts)),
  ];
}

async function probeTimes({ store, clock, ids }: StoreParts): Promise<readonly Finding[]> {
  const took: number[] = [];
  let skewMs = 0;
  for (let n = 0; n < PROBES; n += 1) {
    const key = probeKey(ids.uuid());
    const startedMs = clock.monotonic();
    await store.put(key, Buffer.from('floe doctor\n'));
    took.push(clock.monotonic() - startedMs);
    const head = await store.head(key);
    await store.delete([key]);
    if (head !== undefined) skewMs = clock.now() - head.modifiedMs;
  }
  const putMs = Math.round(median(took));
  const { ok: fine, warning: warn } = findingsOf('clock');
  const skew = `${(skewMs / 1_000).toFixed(1)} s`;
  return [
    putMs <= SLOW_PUT_MS
      ? ok('small PUT', `${putMs} ms`)
      : warning(
          'small PUT',
          `${putMs} ms`,
          'every flush waits for one: use a bucket of the same region, or look for throttling',
        ),
    Math.abs(skewMs) <= SKEW_MS
      ? fine('this machine against the store', skew)
      : warn(
          'this machine against the store',
          skew,
          'run an NTP client: S3 refuses requests that are 15 minutes off, and ages of orphans are taken by it',
        ),
  ];
}

async function leftovers(parts: StoreParts): Promise<readonly Finding[]> {
  const { store, clock, clusterId, uploadAgeMs } = parts;
  if (store.countUploads === undefined || typeof clusterId !== 'string') return [];
  const count = await store.countUploads(clusterPrefix(clusterId), clock.now() - uploadAgeMs);
  if (count === 0) return [ok('unfinished uploads', '0')];
  return [
    warning(
      'unfinished uploads',
      String(count),
      'their parts are paid for: a node with the role maintenance gives them up; a lifecycle rule AbortIncompleteMultipartUpload is the net below',
    ),
  ];
}

async function identity({ store, clusterId }: StoreParts): Promise<readonly Finding[]> {
  if (clusterId === null) return [];
  try {
    const found = await readIdentity(store);
    if (found === undefined && clusterId === undefined)
      return [ok('cluster.json', 'none yet, nor in the metadata')];
    if (found?.clusterId === clusterId) return [ok('cluster.json', `cluster ${clusterId}`)];
    const remedy =
      'storage and metadata do not belong together: name the bucket and the database of one cluster';
    const value = `${found?.clusterId ?? 'none'}; the metadata says ${clusterId ?? 'none'}`;
    return [wrong('cluster.json', value, remedy)];
  } catch (caught) {
    const remedy =
      'restore cluster.json from the id that the metadata names; nothing starts without it';
    return [wrong('cluster.json', FloeError.from(caught).message, remedy)];
  }
}
