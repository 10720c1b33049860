// The catalog that the settings choose, with the store its tables lie in. Nothing is asked of it here: a catalog that is
// away never keeps a broker from starting, its tables say so and go on when it is back.
import type { Clock } from '../base/clock.ts';
import { FloeError } from '../base/error.ts';
import type { Logger } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { IdSource, Prng } from '../base/prng.ts';
import type { Values } from '../base/settings.ts';
import {
  KeyDispenser,
  type ObjectStore,
  type objectSettings,
  openObjectStore,
  VENDED,
} from '../storage/objects/index.ts';
import type { Catalog } from './catalog.ts';
import type { EmbeddedCatalog } from './embedded.ts';
import { type Fetch, noAuth, type RestAuth, RestHttp } from './rest/http.ts';
import { bearerAuth, OAuth2Auth } from './rest/oauth2.ts';
import { RestCatalog } from './rest/rest-catalog.ts';
import type { AwsCredentials } from './rest/sigv4.ts';
import type { catalogSettings } from './settings.ts';
import { Warehouse } from './warehouse.ts';

export type CatalogSettings = Values<typeof catalogSettings> & Values<typeof objectSettings>;

export interface OpenCatalogOptions {
  readonly settings: CatalogSettings;
  /** With the warehouse that it uses. */
  readonly embedded: EmbeddedCatalog;
  /** The store of the embedded catalog's warehouse. */
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly ids: IdSource;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly fetch?: Fetch;
}

export interface OpenedCatalog {
  readonly catalog: Catalog;
  /** Reads and writes the files of its tables. */
  readonly warehouse: Warehouse;
  /** URI of the store behind it, for threads that open it for themselves. */
  readonly storeUri: string;
  stop(): Promise<void>;
}

/** @throws FloeError `invalid` naming the setting that is missing. */
export async function openCatalog(options: OpenCatalogOptions): Promise<OpenedCatalog> {
  const { settings, embedded, store } = options;
  if (settings['catalog.type'] === 'embedded') {
    refuseForeign(settings);
    const { warehouse } = embedded;
    return { catalog: embedded, warehouse, storeUri: store.uri, stop: async () => {} };
  }
  const lies = storageOf(settings);
  const vended = settings['catalog.type'] === 'rest' && settings['catalog.vended.credentials'];
  const storeUri = vended ? `${VENDED}${lies}` : lies;
  const warehouse = new Warehouse(await openObjectStore(storeUri, options));
  if (settings['catalog.type'] === 'glue') return openGlue(options, warehouse, storeUri);
  const keys = vended ? new KeyDispenser(lies) : undefined;
  const catalog = await openRest(options, warehouse, keys);
  return { catalog, warehouse, storeUri, stop: async () => keys?.stop() };
}

/** Says so instead of filling the wrong catalog. */
function refuseForeign(settings: CatalogSettings): void {
  const names = ['catalog.uri', 'catalog.storage', 'catalog.credential', 'catalog.token'] as const;
  const given = names.find((name) => settings[name] !== '');
  if (given === undefined) return;
  throw new FloeError(
    'invalid',
    `${given} is for another catalog than the embedded one: set catalog.type to rest or glue, or leave it out`,
  );
}

/** Where the tables of an external catalog lie. */
function storageOf(settings: CatalogSettings): string {
  const given = settings['catalog.storage'] || settings['catalog.warehouse'];
  if (/^(?:s3:\/\/[^/]+|file:\/\/\/)/.test(given)) return given.replace(/\/+$/, '');
  throw new FloeError(
    'invalid',
    `catalog.storage: with catalog.type=${settings['catalog.type']} it says where the tables lie (s3://bucket/prefix or file:///folder)`,
  );
}

async function openRest(
  options: OpenCatalogOptions,
  storage: Warehouse,
  keys: KeyDispenser | undefined,
): Promise<RestCatalog> {
  const { settings, clock, prng } = options;
  const uri = required(settings, 'catalog.uri');
  const fetch: Fetch = options.fetch ?? ((url, init) => globalThis.fetch(url, init));
  return new RestCatalog({
    http: new RestHttp({
      fetch,
      clock,
      auth: await restAuth(options, fetch),
      timeoutMs: settings['catalog.request.timeout.ms'],
      maxBytes: settings['catalog.max.response.bytes'],
    }),
    clock,
    prng,
    uri,
    warehouse: settings['catalog.warehouse'],
    readAttempts: settings['catalog.read.attempts'],
    staleMs: settings['catalog.stale.believe.ms'],
    storage,
    cacheBytes: settings['catalog.metadata.cache.bytes'],
    ...(keys === undefined ? {} : { onCredentials: (given) => keys.use(given) }),
  });
}

async function restAuth({ settings, clock }: OpenCatalogOptions, fetch: Fetch): Promise<RestAuth> {
  if (settings['catalog.sigv4.enabled']) {
    const { SigV4Auth } = await import('./rest/sigv4.ts');
    return new SigV4Auth({
      region: awsRegion(settings),
      service: settings['catalog.sigv4.service'],
      credentials: await awsCredentialsOrSearch(settings),
      clock,
    });
  }
  const credential = settings['catalog.credential'];
  if (credential !== '') {
    const own = `${settings['catalog.uri'].replace(/\/+$/, '')}/v1/oauth/tokens`;
    const audience = settings['catalog.oauth2.audience'];
    const resource = settings['catalog.oauth2.resource'];
    return new OAuth2Auth({
      fetch,
      clock,
      tokenUrl: settings['catalog.oauth2.server.uri'] || own,
      credential,
      scope: settings['catalog.oauth2.scope'],
      parameters: {
        ...(audience === '' ? {} : { audience }),
        ...(resource === '' ? {} : { resource }),
      },
      timeoutMs: settings['catalog.request.timeout.ms'],
    });
  }
  const token = settings['catalog.token'];
  return token === '' ? noAuth : bearerAuth(token);
}

async function openGlue(
  options: OpenCatalogOptions,
  warehouse: Warehouse,
  storeUri: string,
): Promise<OpenedCatalog> {
  const { settings } = options;
  // The SDK takes a while to load: only who needs it waits for it.
  const [{ GlueApi }, { GlueCatalog }] = await Promise.all([
    import('./glue/glue-api.ts'),
    import('./glue/glue-catalog.ts'),
  ]);
  const access = {
    region: awsRegion(settings),
    endpoint: settings['catalog.uri'],
    credentials: awsCredentials(settings),
    timeoutMs: settings['catalog.request.timeout.ms'],
  };
  const api = new GlueApi(access, options.clock);
  const catalog = new GlueCatalog({
    ...options,
    api,
    warehouse,
    catalogId: settings['catalog.glue.id'],
    skipArchive: settings['catalog.glue.skip.archive'],
    cacheBytes: settings['catalog.metadata.cache.bytes'],
    readAttempts: settings['catalog.read.attempts'],
    commitAttempts: settings['catalog.commit.attempts'],
    staleMs: settings['catalog.stale.believe.ms'],
  });
  return { catalog, warehouse, storeUri, stop: async () => api.stop() };
}

const awsRegion = (settings: CatalogSettings) =>
  settings['catalog.aws.region'] || settings['s3.region'];

function awsCredentials(settings: CatalogSettings): AwsCredentials | undefined {
  const accessKeyId = settings['catalog.aws.access.key.id'];
  if (accessKeyId === '') return undefined;
  const sessionToken = settings['catalog.aws.session.token'];
  return {
    accessKeyId,
    secretAccessKey: settings['catalog.aws.secret.access.key'],
    ...(sessionToken === '' ? {} : { sessionToken }),
  };
}

async function awsCredentialsOrSearch(
  settings: CatalogSettings,
): Promise<() => Promise<AwsCredentials>> {
  const given = awsCredentials(settings);
  if (given !== undefined) return async () => given;
  const { defaultProvider } = await import('@aws-sdk/credential-provider-node');
  return defaultProvider();
}

function required(settings: CatalogSettings, name: 'catalog.uri'): string {
  if (settings[name] !== '') return settings[name];
  throw new FloeError('invalid', `${name}: it is missing, catalog.type=rest needs it`);
}
