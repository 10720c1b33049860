// Client quotas in force: loaded once, changed by AlterClientQuotas, asked by every request while there are any.
// Clients that share a quota share a meter. What a client used is not stored: after a restart it starts afresh, as in
// Kafka. Memory is bounded: meters that remember nothing go first, then the longest unused.
// Not for: addresses and numbers of connections (connection-limits.ts), making a client wait (connection.ts).
import type { Clock } from '../../base/clock.ts';
import { Mutex } from '../../base/queue.ts';
import type { ClientQuota, ClientQuotaChange, QuotasMetadata } from '../../metadata/quotas.ts';
import { CLIENT_QUOTA_KEYS, type ClientQuotaKey } from './entities.ts';
import { TokenBucket, WindowedRate, type WindowOptions } from './rate.ts';
import { type AppliedQuota, QuotaRules } from './rules.ts';
import type { QuotaSettings } from './settings.ts';

/** Meters, and clients whose meters are looked up already: so many of each are kept. */
const MAX_KEPT = 10_000;

/** The meters of one client; those without a quota are undefined. */
export interface ClientLimits {
  /** Bytes of Produce requests per second. */
  readonly produce: WindowedRate | undefined;
  /** Bytes of records in Fetch replies per second. */
  readonly fetch: WindowedRate | undefined;
  /** Per cent of the front thread’s time. */
  readonly request: WindowedRate | undefined;
  /** Partitions created and deleted per second. */
  readonly mutations: TokenBucket | undefined;
}

interface ResolvedClient {
  readonly limits: ClientLimits | undefined;
}

export interface ClientQuotasOptions {
  readonly metadata: QuotasMetadata;
  readonly settings: QuotaSettings;
  readonly clock: Clock;
}

export class ClientQuotas {
  readonly #metadata: QuotasMetadata;
  readonly #clock: Clock;
  readonly #rateWindows: WindowOptions;
  readonly #bucketWindows: WindowOptions;
  readonly #clients = new Map<string, ResolvedClient>();
  readonly #meters = new Map<string, WindowedRate | TokenBucket>();
  /** What is read never replaces what was changed after. */
  readonly #turns = new Mutex();
  #quotas: readonly ClientQuota[] = [];
  #rules = new QuotaRules([]);

  private constructor({ metadata, settings, clock }: ClientQuotasOptions) {
    this.#metadata = metadata;
    this.#clock = clock;
    this.#rateWindows = {
      windows: settings['quota.window.num'],
      windowMs: settings['quota.window.size.seconds'] * 1_000,
    };
    this.#bucketWindows = {
      windows: settings['controller.quota.window.num'],
      windowMs: settings['controller.quota.window.size.seconds'] * 1_000,
    };
  }

  static async load(options: ClientQuotasOptions): Promise<ClientQuotas> {
    const quotas = new ClientQuotas(options);
    quotas.#use(await options.metadata.list());
    return quotas;
  }

  /** False: no client has a limit, and nobody need ask. */
  get active(): boolean {
    return this.#rules.limitsClients;
  }

  get rules(): QuotaRules {
    return this.#rules;
  }

  /** How rates are measured. */
  get windows(): WindowOptions {
    return this.#rateWindows;
  }

  /** All quotas as set. */
  list(): readonly ClientQuota[] {
    return this.#quotas;
  }

  /** Stores checked changes, then uses them; what clients used so far still counts. */
  async alter(changes: readonly ClientQuotaChange[]): Promise<void> {
    await this.#turns.run(async () => this.#use(await this.#metadata.alter(changes)));
  }

  /** Takes over what other nodes have changed; what clients used so far still counts. */
  async refresh(): Promise<void> {
    await this.#turns.run(async () => this.#use(await this.#metadata.list()));
  }

  /** The meters of a client; undefined when it has no quota. */
  limits(user: string, clientId: string): ClientLimits | undefined {
    const key = `${user}\0${clientId}`;
    let client = this.#clients.get(key);
    if (client === undefined) {
      client = { limits: this.#resolve(user, clientId) };
      if (this.#clients.size >= MAX_KEPT) this.#clients.clear();
      this.#clients.set(key, client);
    }
    return client.limits;
  }

  #use(quotas: readonly ClientQuota[]): void {
    this.#quotas = quotas;
    this.#rules = new QuotaRules(quotas);
    this.#clients.clear();
  }

  #resolve(user: string, clientId: string): ClientLimits | undefined {
    const quotaOf = (key: ClientQuotaKey) => this.#rules.ofClient(user, clientId, key);
    if (CLIENT_QUOTA_KEYS.every((key) => quotaOf(key) === undefined)) return undefined;
    const rate = (key: ClientQuotaKey) =>
      this.#meter(key, quotaOf(key), (limit) => new WindowedRate(limit, this.#rateWindows));
    const nowMs = this.#clock.monotonic();
    const bucket = (key: ClientQuotaKey) =>
      this.#meter(key, quotaOf(key), (limit) => new TokenBucket(limit, this.#bucketWindows, nowMs));
    return {
      produce: rate('producer_byte_rate'),
      fetch: rate('consumer_byte_rate'),
      request: rate('request_percentage'),
      mutations: bucket('controller_mutation_rate'),
    };
  }

  /** The meter of those who share a quota, with its present limit. */
  #meter<M extends WindowedRate | TokenBucket>(
    key: ClientQuotaKey,
    quota: AppliedQuota | undefined,
    make: (limit: number) => M,
  ): M | undefined {
    if (quota === undefined) return undefined;
    const name = JSON.stringify([key, quota.user, quota.clientId]);
    let meter = this.#meters.get(name) as M | undefined;
    if (meter === undefined) {
      meter = make(quota.limit);
      this.#makeRoom();
    } else this.#meters.delete(name);
    // Set again even so: the map's order is that of the last look-up.
    meter.limit = quota.limit;
    this.#meters.set(name, meter);
    return meter;
  }

  #makeRoom(): void {
    if (this.#meters.size < MAX_KEPT) return;
    const nowMs = this.#clock.monotonic();
    for (const [name, meter] of this.#meters) if (meter.idle(nowMs)) this.#meters.delete(name);
    for (const name of this.#meters.keys()) {
      if (this.#meters.size < MAX_KEPT) return;
      this.#meters.delete(name);
    }
  }
}
