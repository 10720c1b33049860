// Who owns a store: `cluster.json`, created with `If-None-Match: *` at first start, never changed. A metadata
// store and an object store that don't belong together (a wrong bucket, a lost database) refuse to start here,
// before anything is written or swept.
import { FloeError, isFloeError } from '../base/error.ts';
import { type IdSource, uuidToBytes } from '../base/prng.ts';
import type { ObjectStore } from './objects/object-store.ts';
import { CLUSTER_KEY } from './paths.ts';

/** The content of `cluster.json`. */
export interface ClusterIdentity {
  readonly clusterId: string;
  readonly createdMs: number;
  /** Version of the layout of keys and files; a newer one than ours is refused. */
  readonly layout: number;
}

const LAYOUT = 1;
/** A UUID's 16 bytes in base64url, as Kafka writes cluster ids. */
const CLUSTER_ID = /^[A-Za-z0-9_-]{21}[AQgw]$/;

/** A new cluster id; never starts with `-`, which commands would take for an option. */
export function newClusterId(ids: IdSource): string {
  for (;;) {
    const id = Buffer.from(uuidToBytes(ids.uuid())).toString('base64url');
    if (!id.startsWith('-')) return id;
  }
}

export interface ClaimOptions {
  /** What the metadata store knows; undefined when it is fresh. */
  readonly expectedId: string | undefined;
  /** The id to take when nobody has claimed the store. */
  readonly newId: string;
  readonly nowMs: number;
}

/**
 * Reads `cluster.json`, or creates it. Safe when several brokers start at once: all get the winner's identity.
 * @throws FloeError `conflict` when the store belongs to another cluster than `expectedId`, or is empty while the
 * metadata is not; `corrupt`; `unsupported` for a newer layout.
 */
export async function claimCluster(
  store: ObjectStore,
  { expectedId, newId, nowMs }: ClaimOptions,
): Promise<ClusterIdentity> {
  const found = await readIdentity(store);
  if (found === undefined && expectedId !== undefined) {
    throw new FloeError(
      'conflict',
      `${store.uri} holds no ${CLUSTER_KEY}, but the metadata belongs to cluster ${expectedId}: ` +
        'is this the right storage? An empty one can not hold its data',
    );
  }
  const identity =
    found ?? (await createIdentity(store, { clusterId: newId, createdMs: nowMs, layout: LAYOUT }));
  if (expectedId !== undefined && identity.clusterId !== expectedId) {
    throw new FloeError(
      'conflict',
      `${store.uri} belongs to cluster ${identity.clusterId}, the metadata to ${expectedId}: ` +
        'point --storage and --data-dir at the same cluster',
    );
  }
  return identity;
}

async function createIdentity(
  store: ObjectStore,
  identity: ClusterIdentity,
): Promise<ClusterIdentity> {
  const body = Buffer.from(`${JSON.stringify(identity, null, 2)}\n`);
  try {
    await store.put(CLUSTER_KEY, body, { ifNoneMatch: true, contentType: 'application/json' });
    return identity;
  } catch (caught) {
    // Another broker was first, or our own put arrived though its reply did not.
    const winner = isFloeError(caught, 'conflict', 'timeout')
      ? await readIdentity(store)
      : undefined;
    if (winner === undefined) throw caught;
    return winner;
  }
}

/** What `cluster.json` says; undefined when there is none. @throws FloeError `corrupt`, `unsupported`. */
export async function readIdentity(store: ObjectStore): Promise<ClusterIdentity | undefined> {
  let bytes: Uint8Array;
  try {
    bytes = await store.get(CLUSTER_KEY);
  } catch (caught) {
    if (isFloeError(caught, 'not-found')) return undefined;
    throw caught;
  }
  return parseIdentity(bytes, store.uri);
}

function parseIdentity(bytes: Uint8Array, uri: string): ClusterIdentity {
  let value: Partial<ClusterIdentity> | null;
  try {
    value = JSON.parse(Buffer.from(bytes).toString()) as Partial<ClusterIdentity> | null;
  } catch (cause) {
    throw new FloeError('corrupt', `${CLUSTER_KEY} in ${uri} is not JSON`, { cause });
  }
  const { clusterId, createdMs, layout } = value ?? {};
  if (typeof clusterId !== 'string' || !CLUSTER_ID.test(clusterId) || typeof layout !== 'number')
    throw new FloeError('corrupt', `${CLUSTER_KEY} in ${uri} names no cluster`);
  if (layout > LAYOUT) {
    throw new FloeError(
      'unsupported',
      `${uri} has layout ${layout}, this version knows ${LAYOUT}: use a newer Floe`,
    );
  }
  return { clusterId, createdMs: createdMs ?? 0, layout };
}
