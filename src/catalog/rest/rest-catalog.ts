// An external Iceberg REST catalog (Polaris, Lakekeeper, Unity, Glue's and S3 Tables' endpoints, another Floe).
// Reads are repeated while the catalog is away; a change is sent once, and what its failure proves is told truly:
// `conflict` and the other refusals only when the catalog itself said so (rule T5), else `timeout`.
import type { Clock } from '../../base/clock.ts';
import { FloeError, isFloeError } from '../../base/error.ts';
import type { Prng } from '../../base/prng.ts';
import { backoffMs } from '../../base/retry.ts';
import {
  asList,
  asObject,
  asText,
  type Json,
  toTableMetadata,
} from '../../formats/iceberg/index.ts';
import type { StoreKeys } from '../../storage/objects/index.ts';
import type {
  Catalog,
  CommitTableRequest,
  CreateTableRequest,
  LoadedTable,
  TableIdentifier,
} from '../catalog.ts';
import { Freshness } from '../freshness.ts';
import { shownTable } from '../names.ts';
import type { Warehouse } from '../warehouse.ts';
import type { RestAnswer, RestCall, RestHttp } from './http.ts';
import { type RestSession, RestSessions } from './session.ts';
import { TableCache } from './table-cache.ts';
import { vendedIn } from './vended.ts';

export interface RestCatalogOptions {
  readonly http: RestHttp;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly uri: string;
  readonly warehouse: string;
  /** Properties of ours, between the catalog's defaults and overrides. */
  readonly properties?: Readonly<Record<string, string>>;
  /** Attempts of a read, the first included. */
  readonly readAttempts: number;
  /** An older answer than before is not believed for this long. */
  readonly staleMs: number;
  /** Tables kept by their ETags, by the length of the answers. */
  readonly cacheBytes: number;
  /** Where files can be read and written: a table that lies elsewhere is refused. Missing: anywhere. */
  readonly storage?: Pick<Warehouse, 'uri' | 'holds'>;
  /** Ask for the files' keys, and hand them on as they come. */
  readonly onCredentials?: (credentials: readonly StoreKeys[]) => void;
}

/** Pages of one listing; a catalog that gives ever more is not followed. */
const MAX_PAGES = 10_000;
/** Longest pause that a catalog may ask for between two reads, in ms. */
const MAX_RETRY_AFTER_MS = 30_000;

export class RestCatalog implements Catalog {
  readonly #options: RestCatalogOptions;
  readonly #sessions: RestSessions;
  readonly #fresh: Freshness;
  readonly #cache: TableCache;

  constructor(options: RestCatalogOptions) {
    this.#options = options;
    // Keys come with whole tables only.
    this.#cache = new TableCache(options.onCredentials === undefined ? options.cacheBytes : 0);
    this.#fresh = new Freshness(options.clock, options.staleMs);
    this.#sessions = new RestSessions({
      ...options,
      properties: options.properties ?? {},
      ask: async (call) => (await this.#read(call)).json,
    });
  }

  async ensureNamespace(
    namespace: readonly string[],
    properties: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    for (let depth = 1; depth <= namespace.length; depth += 1) {
      const level = namespace.slice(0, depth);
      if (await this.#namespaceExists(level)) continue;
      const own = depth === namespace.length ? properties : {};
      const { base } = await this.#sessions.get();
      try {
        await this.#change('POST', `${base}/namespaces`, { namespace: level, properties: own });
      } catch (caught) {
        // Somebody else made it meanwhile: it is there, which is all that was asked.
        if (!isFloeError(caught, 'conflict')) throw caught;
      }
    }
  }

  async #namespaceExists(namespace: readonly string[]): Promise<boolean> {
    const url = namespaceUrl(await this.#sessions.get(), namespace);
    return this.#exists({ method: 'GET', url, changes: false });
  }

  async #exists(call: RestCall): Promise<boolean> {
    try {
      await this.#read(call);
      return true;
    } catch (caught) {
      if (isFloeError(caught, 'not-found')) return false;
      throw caught;
    }
  }

  async listNamespaces(parent: readonly string[]): Promise<string[][]> {
    const session = await this.#sessions.get();
    const query: [string, string][] =
      parent.length === 0 ? [] : [['parent', joined(session, parent)]];
    const found = await this.#pages(`${session.base}/namespaces`, 'namespaces', query);
    return found.map((one) =>
      asList(one, 'a namespace').map((level) => asText(level, 'a namespace level')),
    );
  }

  async listTables(namespace: readonly string[]): Promise<TableIdentifier[]> {
    const session = await this.#sessions.get();
    const found = await this.#pages(`${namespaceUrl(session, namespace)}/tables`, 'identifiers');
    return found.map((one) => {
      const raw = asObject(one, 'an identifier');
      return {
        namespace: asList(raw['namespace'], 'namespace').map((level) => asText(level, 'a level')),
        name: asText(raw['name'], 'name'),
      };
    });
  }

  async #pages(url: string, key: string, query: readonly [string, string][] = []) {
    const items: unknown[] = [];
    let token: string | undefined = '';
    for (let page = 0; token !== undefined && page < MAX_PAGES; page += 1) {
      // Values stand encoded already: a parent keeps the separator that the catalog asked for.
      const asked = [...query, ['pageToken', encodeURIComponent(token)]];
      const text = asked.map(([name, value]) => `${name}=${value}`).join('&');
      const answer = await this.#read({ method: 'GET', url: `${url}?${text}`, changes: false });
      const raw = asObject(answer.json, 'a page');
      items.push(...asList(raw[key] ?? [], key));
      const next = raw['next-page-token'];
      token = typeof next === 'string' && next !== '' ? next : undefined;
    }
    return items;
  }

  async tableExists(identifier: TableIdentifier): Promise<boolean> {
    const url = tableUrl(await this.#sessions.get(), identifier);
    return this.#exists({ method: 'HEAD', url, changes: false });
  }

  async loadTable(identifier: TableIdentifier): Promise<LoadedTable> {
    const url = tableUrl(await this.#sessions.get(), identifier);
    const known = this.#cache.get(identifier);
    const headers: Readonly<Record<string, string>> =
      known === undefined ? this.#asks() : { 'if-none-match': known.etag };
    const answer = await this.#read({ method: 'GET', url, changes: false, headers });
    if (known !== undefined && answer.status === 304) {
      this.#fresh.check(identifier, known.table.metadata);
      return known.table;
    }
    const table = this.#loaded(identifier, answer.json);
    this.#fresh.check(identifier, table.metadata);
    this.#cache.keep(table, answer);
    return this.#reachable(table);
  }

  async createTable(
    namespace: readonly string[],
    { schema, partitionSpec, writeOrder, ...request }: CreateTableRequest,
  ): Promise<LoadedTable> {
    const identifier = { namespace, name: request.name };
    const url = `${namespaceUrl(await this.#sessions.get(), namespace)}/tables`;
    const answer = await this.#change(
      'POST',
      url,
      {
        ...request,
        schema,
        'stage-create': false,
        ...(partitionSpec === undefined ? {} : { 'partition-spec': partitionSpec }),
        ...(writeOrder === undefined ? {} : { 'write-order': writeOrder }),
      },
      this.#asks(),
    );
    this.#fresh.forget(identifier);
    return this.#reachable(this.#changed(identifier, answer));
  }

  async commitTable(
    identifier: TableIdentifier,
    { requirements, updates }: CommitTableRequest,
  ): Promise<LoadedTable> {
    const url = tableUrl(await this.#sessions.get(), identifier);
    const { namespace, name } = identifier;
    const body = { identifier: { namespace, name }, requirements, updates };
    return this.#changed(identifier, await this.#change('POST', url, body));
  }

  async renameTable(from: TableIdentifier, to: TableIdentifier): Promise<void> {
    const { base } = await this.#sessions.get();
    const plain = ({ namespace, name }: TableIdentifier) => ({ namespace, name });
    const body = { source: plain(from), destination: plain(to) };
    await this.#change('POST', `${base}/tables/rename`, body);
    this.#fresh.forget(from);
    this.#cache.forget(from);
  }

  async dropTable(
    identifier: TableIdentifier,
    { purge }: { readonly purge: boolean },
  ): Promise<void> {
    const url = tableUrl(await this.#sessions.get(), identifier);
    await this.#change('DELETE', `${url}?purgeRequested=${purge}`);
    this.#fresh.forget(identifier);
    this.#cache.forget(identifier);
  }

  /** Which catalog may take a table is for the catalog to say, when it is asked to. */
  checkTable(): void {}

  #reachable(table: LoadedTable): LoadedTable {
    const { storage } = this.#options;
    const { location } = table.metadata;
    if (storage === undefined || storage.holds(`${location}/x`)) return table;
    throw new FloeError(
      'invalid',
      `${shownTable(table.identifier)} lies at ${location}, outside ${storage.uri}: set catalog.storage to a folder that holds it`,
    );
  }

  #asks(): Readonly<Record<string, string>> {
    return this.#options.onCredentials === undefined
      ? {}
      : { 'x-iceberg-access-delegation': 'vended-credentials' };
  }

  /** The answer to a change. One that can't be read leaves its outcome open. */
  #changed(identifier: TableIdentifier, answer: RestAnswer): LoadedTable {
    try {
      const table = this.#loaded(identifier, answer.json);
      this.#fresh.note(identifier, table.metadata);
      this.#cache.keep(table, answer);
      return table;
    } catch (caught) {
      throw new FloeError(
        'timeout',
        `the catalog's answer about ${shownTable(identifier)} can't be read: ${FloeError.from(caught).message}`,
        { cause: caught },
      );
    }
  }

  #loaded(identifier: TableIdentifier, answer: unknown): LoadedTable {
    const raw = asObject(answer, 'a loaded table');
    const metadata = toTableMetadata(raw['metadata']);
    this.#options.onCredentials?.(vendedIn(metadata.location, raw));
    const location = raw['metadata-location'];
    return { identifier, metadata, metadataLocation: typeof location === 'string' ? location : '' };
  }

  /** Sends once. */
  async #change(
    method: 'POST' | 'DELETE',
    url: string,
    body?: Json,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<RestAnswer> {
    const session = await this.#sessions.get();
    const call = { method, url, headers: { ...session.headers, ...headers }, changes: true };
    try {
      return await this.#options.http.exchange(body === undefined ? call : { ...call, body });
    } catch (caught) {
      throw explained(caught);
    }
  }

  /** Sends until there is an answer, as often as is allowed. */
  async #read(call: RestCall): Promise<RestAnswer> {
    const { http, clock, prng, readAttempts } = this.#options;
    for (let attempt = 1; ; attempt += 1) {
      try {
        const headers = { ...this.#sessions.known?.headers, ...call.headers };
        return await http.exchange({ ...call, headers });
      } catch (caught) {
        const error = call.method === 'HEAD' ? FloeError.from(caught) : explained(caught);
        if (error.code !== 'unavailable' || attempt >= readAttempts) throw error;
        const backoff = backoffMs({ prng, firstDelayMs: 100, maxDelayMs: 5_000 }, attempt);
        const asked = Number(error.details['retryAfterMs'] ?? 0);
        await clock.sleep(Math.max(backoff, Math.min(asked, MAX_RETRY_AFTER_MS)));
      }
    }
  }
}

/** A 404 says that a table or namespace isn't there only in the catalog's own words. */
function explained(caught: unknown): FloeError {
  const error = FloeError.from(caught);
  const { status, type } = error.details;
  if (status !== 404 || isAbsence(type)) return error;
  const message = `${error.message} (is catalog.uri right?)`;
  const code = type === 'NotFoundException' ? 'corrupt' : 'unavailable';
  return new FloeError(code, message, { cause: caught, details: error.details });
}

/** `NotFoundException` is a file that isn't there; HEAD has no words. */
function isAbsence(type: unknown): boolean {
  return typeof type === 'string' && type !== 'NotFoundException';
}

const joined = ({ separator }: RestSession, namespace: readonly string[]) =>
  namespace.map(encodeURIComponent).join(separator);

const namespaceUrl = (session: RestSession, namespace: readonly string[]) =>
  `${session.base}/namespaces/${joined(session, namespace)}`;

const tableUrl = (session: RestSession, { namespace, name }: TableIdentifier) =>
  `${namespaceUrl(session, namespace)}/tables/${encodeURIComponent(name)}`;
