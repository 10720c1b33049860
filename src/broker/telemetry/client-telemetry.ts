// Client telemetry (KIP-714): which clients there are, what each is asked to push, whether a request of one is in time,
// and the series that came of it, rendered into /metrics. Checks, their order and codes are Kafka's. A client that falls
// silent for three intervals is forgotten, and so is the longest silent one when there are too many.
// Not for: the meaning of subscriptions (subscriptions.ts), of bytes (otlp.ts).
import type { Clock, Timer } from '../../base/clock.ts';
import { FloeError, isFloeError } from '../../base/error.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { IdSource } from '../../base/prng.ts';
import { Compression, decompress, isCompressionType } from '../../protocol/codecs.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import { ZERO_UUID } from '../../protocol/fields.ts';
import type { ResourceConfigs } from '../resource-configs.ts';
import type { ClientFacts } from './match.ts';
import { decodeMetrics } from './otlp.ts';
import { type ClientSeries, keepPoints, labelText, renderSeries } from './series.ts';
import type { TelemetrySettings } from './settings.ts';
import {
  type ClientSubscription,
  parseSubscription,
  type Subscription,
  subscriptionOf,
} from './subscriptions.ts';

/** In the order that clients should prefer. */
export const ACCEPTED_COMPRESSION: readonly number[] = [
  Compression.ZSTD,
  Compression.LZ4,
  Compression.GZIP,
  Compression.SNAPPY,
];

/** A silent client is kept this long at least. */
const MIN_EXPIRY_MS = 60_000;

/** How often silent clients are looked for. */
const SWEEP_MS = 30_000;

/** Kafka's Uuid.RESERVED: zero and one name no client. */
const RESERVED: readonly string[] = [ZERO_UUID, '00000000-0000-0000-0000-000000000001'];

interface Client {
  readonly facts: ClientFacts;
  readonly series: ClientSeries;
  subscription: ClientSubscription;
  /** Of the subscriptions that its own was made from. */
  version: number;
  /** Times of the last request of each kind that was in time; −Infinity for none. */
  lastGetMs: number;
  lastPushMs: number;
  lastSeenMs: number;
  lastError: number;
  terminating: boolean;
}

export interface Push {
  readonly subscriptionId: number;
  readonly terminating: boolean;
  readonly compressionType: number;
  readonly metrics: Uint8Array;
}

export interface ClientTelemetryOptions {
  readonly configs: ResourceConfigs;
  readonly settings: () => TelemetrySettings;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly metrics: Metrics;
}

export class ClientTelemetry {
  readonly #options: ClientTelemetryOptions;
  /** By instance id, the longest silent one first. */
  readonly #clients = new Map<string, Client>();
  #subscriptions: readonly Subscription[] = [];
  #version = 0;
  #timer: Timer | undefined;

  constructor(options: ClientTelemetryOptions) {
    this.#options = options;
    const { configs, metrics } = options;
    this.#subscribe();
    configs.onChange((kind) => {
      if (kind === 'client-metrics') this.#subscribe();
    });
    const help = 'Clients whose metrics are kept (KIP-714)';
    metrics.observeGauge('floe_telemetry_clients', help, () => this.#clients.size);
    metrics.expose(() => this.render());
  }

  /** What the client is to push; a new instance id where it has none. An error code when it asks too early. */
  subscription(
    facts: ClientFacts,
  ): { readonly id: string; readonly told: ClientSubscription } | number {
    const asked = facts.client_instance_id;
    const id = asked === ZERO_UUID ? this.#options.ids.uuid() : asked;
    const client = this.#client({ ...facts, client_instance_id: id });
    const nowMs = this.#options.clock.monotonic();
    const quietMs = nowMs - Math.max(client.lastGetMs, client.lastPushMs);
    if (quietMs < client.subscription.intervalMs && !mayAskAgain(client)) {
      return ErrorCode.THROTTLING_QUOTA_EXCEEDED;
    }
    if (quietMs >= client.subscription.intervalMs) client.lastGetMs = nowMs;
    client.lastError = 0;
    return { id, told: client.subscription };
  }

  /** Takes a push; a Kafka error code, 0 when all is well. */
  push(facts: ClientFacts, push: Push): number {
    if (RESERVED.includes(facts.client_instance_id)) return ErrorCode.INVALID_REQUEST;
    const client = this.#client(facts);
    const errorCode = this.#pushFault(client, push) || this.#take(client, push);
    client.lastError = errorCode;
    client.terminating ||= push.terminating;
    const { metrics } = this.#options;
    const outcome = errorCode === 0 ? 'taken' : 'refused';
    metrics.count('floe_telemetry_pushes_total', 'Pushes of client metrics', { outcome });
    return errorCode;
  }

  /** The series of all clients, as Prometheus reads them. */
  render(): string {
    return renderSeries([...this.#clients.values()].map(({ series }) => series));
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #subscribe(): void {
    const configs = [...this.#options.configs.all('client-metrics').values()];
    this.#subscriptions = configs.map(parseSubscription);
    this.#version += 1;
  }

  /** The client of an instance id, known or new, with the subscription that holds now. */
  #client(facts: ClientFacts): Client {
    const id = facts.client_instance_id;
    let client = this.#clients.get(id);
    if (client === undefined) {
      this.#makeRoom();
      client = this.#newClient(facts);
    } else this.#clients.delete(id);
    if (client.version !== this.#version) {
      // A changed subscription may be asked for at once, as by a client never seen.
      client.subscription = subscriptionOf(this.#subscriptions, client.facts);
      client.version = this.#version;
      client.lastGetMs = -Infinity;
      client.lastPushMs = -Infinity;
    }
    client.lastSeenMs = this.#options.clock.monotonic();
    this.#clients.set(id, client);
    this.#timer ??= this.#options.clock.setTimer(SWEEP_MS, () => this.#sweep());
    return client;
  }

  #newClient(facts: ClientFacts): Client {
    const labels = labelText([
      ['client_id', facts.client_id],
      ['client_instance_id', facts.client_instance_id],
      ['client_software_name', facts.client_software_name],
      ['client_software_version', facts.client_software_version],
    ]);
    return {
      facts,
      series: { labels, byKey: new Map() },
      subscription: subscriptionOf(this.#subscriptions, facts),
      version: this.#version,
      lastGetMs: -Infinity,
      lastPushMs: -Infinity,
      lastSeenMs: 0,
      lastError: 0,
      terminating: false,
    };
  }

  #pushFault(client: Client, push: Push): number {
    if (client.terminating) return ErrorCode.INVALID_REQUEST;
    const nowMs = this.#options.clock.monotonic();
    // The first push after the subscription was told, or one after the interval.
    const inTime =
      client.lastGetMs > client.lastPushMs ||
      nowMs - client.lastPushMs >= client.subscription.intervalMs;
    if (!inTime && !push.terminating) return ErrorCode.THROTTLING_QUOTA_EXCEEDED;
    if (inTime) client.lastPushMs = nowMs;
    if (push.subscriptionId !== client.subscription.id) return ErrorCode.UNKNOWN_SUBSCRIPTION_ID;
    if (!isCompressionType(push.compressionType)) return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE;
    const limit = this.#options.settings()['telemetry.max.bytes'];
    return push.metrics.length > limit ? ErrorCode.TELEMETRY_TOO_LARGE : 0;
  }

  #take(client: Client, { compressionType, metrics: bytes }: Push): number {
    if (bytes.length === 0) return 0;
    const { settings, metrics } = this.#options;
    const limits = settings();
    try {
      const plain = decompress(compressionType, bytes, limits['telemetry.max.bytes']);
      const { points, leftOut } = decodeMetrics(plain);
      const dropped = leftOut + keepPoints(client.series, points, limits['telemetry.max.series']);
      const help = 'Points of client metrics that were not kept: no room, or of another kind';
      if (dropped > 0) metrics.count('floe_telemetry_dropped_points_total', help, {}, dropped);
      return 0;
    } catch (caught) {
      if (isFloeError(caught, 'exhausted')) return ErrorCode.TELEMETRY_TOO_LARGE;
      if (isFloeError(caught, 'corrupt')) return ErrorCode.INVALID_RECORD;
      throw FloeError.from(caught);
    }
  }

  #makeRoom(): void {
    const most = this.#options.settings()['telemetry.max.clients'];
    for (const id of this.#clients.keys()) {
      if (this.#clients.size < most) return;
      this.#clients.delete(id);
    }
  }

  #sweep(): void {
    this.#timer = undefined;
    const nowMs = this.#options.clock.monotonic();
    for (const [id, { lastSeenMs, subscription }] of this.#clients) {
      const expiryMs = Math.max(MIN_EXPIRY_MS, 3 * subscription.intervalMs);
      if (nowMs - lastSeenMs >= expiryMs) this.#clients.delete(id);
    }
    if (this.#clients.size > 0) {
      this.#timer = this.#options.clock.setTimer(SWEEP_MS, () => this.#sweep());
    }
  }
}

/** After these errors a client has to ask for its subscription again, however early. */
function mayAskAgain({ lastError }: Client): boolean {
  return (
    lastError === ErrorCode.UNKNOWN_SUBSCRIPTION_ID ||
    lastError === ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
  );
}
