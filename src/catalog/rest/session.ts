// What a REST catalog says about itself before anything else is asked of it: prefix, separator, endpoints, headers.
// Asked once, at the first need, so that an unreachable catalog never keeps a broker from starting.
// Source: Iceberg REST OpenAPI, getConfig; merged as defaults < ours < overrides.
import { SingleFlight } from '../../base/queue.ts';
import { asList, asObject, asText, asTextMap } from '../../formats/iceberg/index.ts';
import type { RestCall, RestHttp } from './http.ts';

export interface RestSession {
  /** Absolute, without trailing slash: everything but `/v1/config` and tokens lies below it. */
  readonly base: string;
  /** Percent-encoded separator of namespace levels in paths. */
  readonly separator: string;
  /** Of every request. */
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined when the catalog doesn't say: then the specification's default set holds. */
  readonly endpoints: ReadonlySet<string> | undefined;
  /** Merged configuration, for the files' access (`s3.*`). */
  readonly properties: Readonly<Record<string, string>>;
}

export interface SessionOptions {
  readonly http: RestHttp;
  /** As configured, with or without trailing slash, without `/v1`. */
  readonly uri: string;
  readonly warehouse: string;
  readonly properties: Readonly<Record<string, string>>;
  readonly ask: (call: RestCall) => Promise<unknown>;
}

export class RestSessions {
  readonly #options: SessionOptions;
  readonly #asking = new SingleFlight<'config', RestSession>();
  #session: RestSession | undefined;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /** Undefined until it was asked for. */
  get known(): RestSession | undefined {
    return this.#session;
  }

  /** @throws FloeError as the call does; the next call asks again. */
  get(): Promise<RestSession> {
    if (this.#session !== undefined) return Promise.resolve(this.#session);
    return this.#asking.run('config', async () => {
      this.#session = await this.#ask();
      return this.#session;
    });
  }

  async #ask(): Promise<RestSession> {
    const { uri, warehouse, properties, ask } = this.#options;
    const query = warehouse === '' ? '' : `?warehouse=${encodeURIComponent(warehouse)}`;
    const url = `${trimmed(uri)}/v1/config${query}`;
    const raw = asObject(await ask({ method: 'GET', url, changes: false }), 'the configuration');
    const merged = {
      ...asTextMap(raw['defaults'] ?? {}, 'defaults'),
      ...properties,
      ...asTextMap(raw['overrides'] ?? {}, 'overrides'),
    };
    const prefix = (merged['prefix'] ?? '').replace(/^\/+|\/+$/g, '');
    const endpoints = raw['endpoints'];
    return {
      base: [`${trimmed(merged['uri'] ?? uri)}/v1`, ...(prefix === '' ? [] : [prefix])].join('/'),
      separator: merged['namespace-separator'] ?? '%1F',
      headers: headersIn(merged),
      endpoints:
        endpoints === undefined || endpoints === null
          ? undefined
          : new Set(asList(endpoints, 'endpoints').map((one) => asText(one, 'an endpoint'))),
      properties: merged,
    };
  }
}

/** `header.X-Name` properties are headers of every request. */
function headersIn(properties: Readonly<Record<string, string>>): Record<string, string> {
  const found = Object.entries(properties).filter(([name]) => name.startsWith('header.'));
  return Object.fromEntries(found.map(([name, value]) => [name.slice('header.'.length), value]));
}

const trimmed = (uri: string) => uri.replace(/\/+$/, '').replace(/\/v1$/, '');
