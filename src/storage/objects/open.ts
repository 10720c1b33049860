// Builds the object store behind a URI, with its decorators: retries outside, counting inside, so that every
// attempt is counted; for S3 see s3-stack.ts.
import { fileURLToPath } from 'node:url';
import type { Clock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { IdSource, Prng } from '../../base/prng.ts';
import { measuredStore } from './decorators/counting.ts';
import { retryingStore } from './decorators/retrying.ts';
import { LocalObjectStore } from './local.ts';
import { MemoryObjectStore } from './memory.ts';
import type { ObjectStore } from './object-store.ts';
import type { Purpose } from './purposes.ts';
import type { S3Settings } from './s3-context.ts';
import { s3Stack } from './s3-stack.ts';
import { VENDED, VendedObjectStore } from './vended.ts';

export interface OpenOptions {
  readonly clock: Clock;
  readonly prng: Prng;
  readonly ids: IdSource;
  readonly metrics: Metrics;
  readonly settings: S3Settings;
  /** What its requests are for, unless `for` says otherwise. Default: `other`. */
  readonly purpose?: Purpose;
}

/**
 * `file:///dir`, `s3://bucket` or `s3://bucket/prefix`, `memory://name`; `vended+s3://…` for a store whose keys are
 * handed out (vended.ts).
 * @throws FloeError `invalid` for any other URI.
 */
export async function openObjectStore(uri: string, options: OpenOptions): Promise<ObjectStore> {
  const bare = await openBare(uri, options);
  if (uri.startsWith('s3:')) return s3Stack(bare, options);
  const { purpose = 'other' } = options;
  return retryingStore(measuredStore(bare, { ...options, purpose, prices: FREE }), options);
}

/** Stores other than S3 charge nothing; nor does who hands out keys tell a price. */
const FREE = { write: 0, read: 0, partBytes: Infinity };

async function openBare(uri: string, options: OpenOptions): Promise<ObjectStore> {
  const { clock, ids, settings } = options;
  if (uri.startsWith(VENDED)) return openVended(uri.slice(VENDED.length), options);
  const url = URL.canParse(uri) ? new URL(uri) : undefined;
  switch (url?.protocol) {
    case 'file:':
      if (url.host !== '') break;
      return LocalObjectStore.open(fileURLToPath(url).replace(/(?<=.)\/$/, ''), { clock, ids });
    case 'memory:':
      return new MemoryObjectStore(clock, url.host || 'floe');
    case 's3:': {
      const location = s3Location(uri);
      if (location === undefined) break;
      // The SDK takes a while to load: only who needs it waits for it.
      const { S3ObjectStore } = await import('./s3.ts');
      return new S3ObjectStore(location, settings, clock);
    }
    default:
  }
  throw new FloeError(
    'invalid',
    `storage "${uri}" is not a URI of a store: use file:///absolute/folder, s3://bucket/prefix or memory://name`,
  );
}

async function openVended(uri: string, options: OpenOptions): Promise<ObjectStore> {
  const { clock, settings } = options;
  const location = s3Location(uri);
  if (location === undefined)
    throw new FloeError('invalid', `keys are handed out for s3://bucket/prefix, not for "${uri}"`);
  const { S3ObjectStore } = await import('./s3.ts');
  return new VendedObjectStore({
    uri: uri.replace(/\/+$/, ''),
    clock,
    open: (keys) =>
      new S3ObjectStore(
        location,
        {
          ...settings,
          's3.access.key.id': keys.accessKeyId,
          's3.secret.access.key': keys.secretAccessKey,
          's3.session.token': keys.sessionToken,
          's3.endpoint': keys.endpoint || settings['s3.endpoint'],
          's3.region': keys.region || settings['s3.region'],
        },
        clock,
      ),
  });
}

function s3Location(uri: string) {
  const url = URL.canParse(uri) ? new URL(uri) : undefined;
  if (url?.protocol !== 's3:' || url.host === '') return undefined;
  return {
    bucket: url.host,
    prefix: decodeURIComponent(url.pathname).replace(/^\/+|\/+$/g, ''),
  };
}
