// Every object key of Floe is made and parsed here, and nowhere else. All lie under the cluster's id, so that two
// clusters in one bucket can't touch each other. At the root stand `cluster.json`, which names it, and for a moment the
// start-up probe, which comes before anybody knows whether the store is fit to hold a name.
//
//   cluster.json
//   probe/<id>
//   <cluster>/wal/<time>-<id>.wal        one flush (S3); time-prefixed, so that a sweep lists only what is new
//   <cluster>/file/<generation>.wal      local write-ahead file, many flushes; recycled under a new generation
//   <cluster>/stream/<time>-<id>.log     what compaction writes: sorted by (partition, offset)
//   <cluster>/warehouse/…                tables: below it the catalog decides
import { assert } from '../base/assert.ts';

/** At the root of the store; see storage/cluster.ts. */
export const CLUSTER_KEY = 'cluster.json';

const CLUSTER_ID = /^[A-Za-z0-9_-]{1,64}$/;
const UNIQUE = /^[A-Za-z0-9-]{1,64}$/;
/** Digits of a time (ms) or number in a key: enough for ever, and text order is time order. */
const DIGITS = 15;

/** A key of this cluster, taken apart. */
export type ParsedKey =
  | { readonly kind: 'wal' | 'stream'; readonly timeMs: number; readonly id: string }
  | { readonly kind: 'file'; readonly generation: number }
  | { readonly kind: 'warehouse'; readonly path: string };

/** Of objects that are written once and named by time and chance. */
export interface TimedName {
  /** Milliseconds since the epoch, by the metadata store's clock. */
  readonly timeMs: number;
  /** A UUID or the like. */
  readonly id: string;
}

/** True for ids that may stand in keys. */
function isClusterId(text: string): boolean {
  return CLUSTER_ID.test(text);
}

/** Every key of the cluster starts with this. */
export function clusterPrefix(clusterId: string): string {
  assert(isClusterId(clusterId), `a cluster id is 1–64 letters, digits, "_" or "-": ${clusterId}`);
  return `${clusterId}/`;
}

const digits = (value: number): string => {
  assert(Number.isSafeInteger(value) && value >= 0, 'a key holds whole times and numbers');
  return String(value).padStart(DIGITS, '0');
};

const timed = ({ timeMs, id }: TimedName): string => {
  assert(UNIQUE.test(id), `an id in a key is letters, digits and "-": ${id}`);
  return `${digits(timeMs)}-${id}`;
};

/** Where the write-ahead objects of single flushes lie. */
export const walPrefix = (clusterId: string): string => `${clusterPrefix(clusterId)}wal/`;
/** Where the results of compaction lie. */
export const streamPrefix = (clusterId: string): string => `${clusterPrefix(clusterId)}stream/`;
/** Where local write-ahead files lie. */
export const filePrefix = (clusterId: string): string => `${clusterPrefix(clusterId)}file/`;
/** Where tables lie; the catalog makes the keys below it. */
export const warehousePrefix = (clusterId: string): string =>
  `${clusterPrefix(clusterId)}warehouse/`;

/** Key of a flush's own object. */
export const walKey = (clusterId: string, name: TimedName): string =>
  `${walPrefix(clusterId)}${timed(name)}.wal`;

/** Key of a stream object. */
export const streamKey = (clusterId: string, name: TimedName): string =>
  `${streamPrefix(clusterId)}${timed(name)}.log`;

/**
 * Key of a local write-ahead file. The generation is the one in its block headers: a file that is used anew gets
 * another, so key and content belong together and no key is ever used twice.
 */
export const fileKey = (clusterId: string, generation: number): string =>
  `${filePrefix(clusterId)}${digits(generation)}.wal`;

/** True for keys of local write-ahead files, which lie in the data directory and not in the object store. */
export const isFileKey = (key: string): boolean => key.split('/', 2)[1] === 'file';

/** True for objects of single flushes: what was written last lies in them. */
export const isWalKey = (key: string): boolean => key.split('/', 2)[1] === 'wal';

/** The generation that the block headers of `key`'s object carry: a file's own, 0 for objects of a store. */
export function generationOf(key: string): number {
  const found = /\/file\/(\d{15})\.wal$/.exec(key);
  return found === null ? 0 : Number(found[1]);
}

/** When an object that is named by time was begun, by its writer's clock; undefined for keys of another kind. */
export function timeOfKey(key: string): number | undefined {
  const found = /\/(?:wal|stream)\/(\d{15})-[^/]+$/.exec(key);
  return found === null ? undefined : Number(found[1]);
}

/** Key of a start-up probe (objects/probe.ts), deleted at once. */
export const probeKey = (id: string): string => `probe/${id}`;

/** List after this key to see the timed objects under `prefix` that are younger than `timeMs`. */
export const keyBefore = (prefix: string, timeMs: number): string =>
  `${prefix}${digits(Math.max(0, timeMs))}`;

/** Takes a key apart; undefined when it is none of this cluster's. */
export function parseKey(clusterId: string, key: string): ParsedKey | undefined {
  const prefix = clusterPrefix(clusterId);
  if (!key.startsWith(prefix)) return undefined;
  const slash = key.indexOf('/', prefix.length);
  const folder = key.slice(prefix.length, slash === -1 ? key.length : slash);
  const rest = slash === -1 ? '' : key.slice(slash + 1);
  switch (folder) {
    case 'wal':
      return parseTimed('wal', /^(\d{15})-([A-Za-z0-9-]{1,64})\.wal$/.exec(rest));
    case 'stream':
      return parseTimed('stream', /^(\d{15})-([A-Za-z0-9-]{1,64})\.log$/.exec(rest));
    case 'file': {
      const found = /^(\d{15})\.wal$/.exec(rest);
      return found === null ? undefined : { kind: 'file', generation: Number(found[1]) };
    }
    case 'warehouse':
      return rest === '' ? undefined : { kind: 'warehouse', path: rest };
    default:
      return undefined;
  }
}

function parseTimed(kind: 'wal' | 'stream', found: RegExpExecArray | null): ParsedKey | undefined {
  return found === null ? undefined : { kind, timeMs: Number(found[1]), id: found[2]! };
}
