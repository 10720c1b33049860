// The broker's public face: Kafka over sockets, on top of a log and a metadata store that it is given.
import type { Clock } from '../base/clock.ts';
import { FloeError } from '../base/error.ts';
import type { Component } from '../base/lifecycle.ts';
import type { LevelControl, Logger } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { IdSource, Prng } from '../base/prng.ts';
import { resolveSettings } from '../base/settings.ts';
import type { Cluster, ClusterNode, Leases } from '../cluster/cluster.ts';
import { LEVELS, soloCluster } from '../cluster/index.ts';
import type { Metadata } from '../metadata/metadata.ts';
import { nodeRoles } from '../metadata/nodes.ts';
import type { TopicDirectory } from '../metadata/topic-directory.ts';
import type { Log } from '../storage/log/log.ts';
import { openSecurity, type Security, securitySettings } from './auth/index.ts';
import { BrokerConfig, type ShownSetting } from './broker-config.ts';
import { BufferPool } from './buffer-pool.ts';
import { clusterView, type Endpoint } from './cluster-view.ts';
import { CopyBudget } from './copy-budget.ts';
import { FetchSessions } from './fetch-sessions.ts';
import { endPollsOfQuarantine, FetchWaits } from './fetch-wait.ts';
import { LANDING_BYTES } from './frame-receiver.ts';
import { Gate } from './gate.ts';
import { type GroupCoordinator, groupHandlers } from './groups/index.ts';
import type { AnyHandler } from './handler.ts';
import { HANDLERS } from './handlers/table.ts';
import { LoggerLevels } from './logger-levels.ts';
import { ClientQuotas, ConnectionLimits } from './quotas/index.ts';
import { RequestStats } from './request-stats.ts';
import { ResourceConfigs } from './resource-configs.ts';
import { Router } from './router.ts';
import { type BoundListener, KafkaServer, type ListenerOptions } from './server.ts';
import type { BrokerServices } from './services.ts';
import type { BrokerSettings } from './settings.ts';
import { Shares } from './shares.ts';
import { ClientTelemetry } from './telemetry/client-telemetry.ts';
import { type TopicConfigExtension, TopicConfigs } from './topic-configs.ts';
import { type TransactionCoordinator, transactionHandlers } from './transactions/index.ts';

export { type ShownSetting, splitListenerLimits } from './broker-config.ts';
export type { AnyHandler, Handler } from './handler.ts';
export { ResourceConfigs } from './resource-configs.ts';
export type { BoundListener, ListenerOptions } from './server.ts';
export { type BrokerSettings, brokerSettings, defaultRetentionMs } from './settings.ts';
export type { TopicConfigChange, TopicConfigExtension, TopicConfigs } from './topic-configs.ts';
export { topicSettings } from './topic-settings.ts';

export interface BrokerOptions {
  readonly listeners: readonly ListenerOptions[];
  readonly settings: BrokerSettings;
  readonly log: Log;
  readonly directory: TopicDirectory;
  readonly metadata: Metadata;
  readonly clusterId: string;
  readonly nodeId: number;
  /** The other brokers and who coordinates what; unless given, this broker is alone and does everything. */
  readonly cluster?: { readonly cluster: Cluster; readonly leases: Leases };
  /** Where the log lies, as DescribeLogDirs shows it. */
  readonly logDirectory: string;
  /** Limits of single listeners, from splitListenerLimits. */
  readonly listenerLimits?: Readonly<Record<string, string>>;
  /** What is logged, for the BROKER_LOGGER resource; unless given, nothing can be changed. */
  readonly logControl?: LevelControl;
  /** Configs of groups and client metrics; unless given, loaded from the metadata. */
  readonly resourceConfigs?: ResourceConfigs;
  /** Further topic configs, e.g. table.topic.*. */
  readonly topicConfigExtensions?: readonly TopicConfigExtension[];
  /** Settings of other parts that DescribeConfigs shows. */
  readonly otherSettings?: readonly ShownSetting[];
  /** Coordinates transactional ids; without it they are refused. */
  readonly transactions?: TransactionCoordinator;
  /** Handlers that need more than the broker's services, e.g. those of groups. */
  readonly handlers?: (services: BrokerServices) => readonly AnyHandler[];
  /** Unless given, clients are asked nothing and may do everything. */
  readonly security?: Security;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly ids: IdSource;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Called when a bug was met: end the process. */
  readonly crash?: (error: Error) => void;
}

export interface Broker extends Component {
  /** In the order of the listeners given. */
  readonly addresses: readonly BoundListener[];
  readonly config: BrokerConfig;
  readonly topicConfigs: TopicConfigs;
  readonly services: BrokerServices;
}

export interface ServedApi {
  readonly key: number;
  readonly name: string;
  /** Versions served. */
  readonly min: number;
  readonly max: number;
}

/** Every API that a broker with consumer groups serves, by ascending key: for the documentation. */
export function servedApis(): readonly ServedApi[] {
  // The handlers of the coordinators are only looked at, never called.
  const groups = groupHandlers({} as GroupCoordinator);
  const transactions = transactionHandlers({} as TransactionCoordinator);
  return [...HANDLERS, ...groups, ...transactions]
    .map(({ api, versions }) => ({ key: api.key, name: api.name, ...versions }))
    .sort((a, b) => a.key - b.key);
}

/** Starts listening. @throws FloeError `conflict` for a taken port; nothing is left behind then. */
export async function startBroker(options: BrokerOptions): Promise<Broker> {
  const endpoints = new Map<string, Endpoint>();
  const fetchWaits = new FetchWaits();
  const services = await buildServices(options, endpoints, fetchWaits);
  const { config, metrics, clock } = services;
  const stats = new RequestStats(metrics, clock);
  const factor = () => config.values['request.share.factor'];
  const inFlight = new Shares({
    free: () => options.log.room,
    whenFree: (action) => options.log.whenRelieved(action),
    factor,
  });
  observeShares(metrics, inFlight);
  const server = new KafkaServer(
    {
      services,
      copies: new CopyBudget(),
      gate: new Gate({
        maxRequests: config.values['queued.max.requests'],
        maxBytes: config.values['queued.max.request.bytes'],
        factor,
      }),
      inFlight,
      pool: new BufferPool(),
      landing: Buffer.allocUnsafeSlow(LANDING_BYTES),
      stats,
      crash: options.crash ?? rethrow,
    },
    new ConnectionLimits({ config, quotas: services.quotas, clock }),
  );
  const help = 'Long polls that wait for data';
  metrics.observeGauge('floe_broker_fetch_waiting', help, () => fetchWaits.waiting);
  const addresses: BoundListener[] = [];
  try {
    for (const listener of options.listeners) {
      const bound = await server.listen(listener);
      addresses.push(bound);
      endpoints.set(bound.name, advertisedEndpoint(options.settings, bound));
    }
  } catch (caught) {
    await server.stop();
    throw FloeError.from(caught);
  }
  const forget = endPollsOfQuarantine(services);
  return {
    addresses,
    config,
    topicConfigs: services.topicConfigs,
    services,
    stop() {
      forget();
      return server.stop();
    },
  };
}

function observeShares(metrics: Metrics, shares: Shares): void {
  const waiting = 'Connections whose next Produce waits for bytes in flight';
  metrics.observeGauge('floe_broker_produce_waiting', waiting, () => shares.waiting);
  const largest = 'Bytes of Produce in flight of the user that has most of them';
  metrics.observeGauge('floe_broker_produce_largest_user_bytes', largest, () => shares.largest);
  const users = 'Users whose connections have produced';
  metrics.observeGauge('floe_broker_produce_users', users, () => shares.users);
}

async function buildServices(
  options: BrokerOptions,
  endpoints: ReadonlyMap<string, Endpoint>,
  fetchWaits: FetchWaits,
): Promise<BrokerServices> {
  const { settings, nodeId, clusterId, metadata, prng, logDirectory } = options;
  const security = options.security ?? (await unsecured(options));
  const config = await BrokerConfig.load({
    settings,
    nodeId,
    store: metadata.topics,
    others: options.otherSettings ?? [],
    listenerLimits: options.listenerLimits ?? {},
  });
  const resourceConfigs =
    options.resourceConfigs ?? (await ResourceConfigs.load(metadata.resourceConfigs));
  const services: Omit<BrokerServices, 'router'> & { router?: Router } = {
    log: options.log,
    directory: options.directory,
    metadata,
    config,
    topicConfigs: new TopicConfigs(config, options.topicConfigExtensions ?? []),
    cluster: clusterView({
      clusterId,
      logDirectory,
      ...(options.cluster ?? aloneAs(options)),
      endpoint: (listener) => endpoints.get(listener)!,
    }),
    resourceConfigs,
    telemetry: new ClientTelemetry({
      ...options,
      configs: resourceConfigs,
      settings: () => config.values,
    }),
    loggers: new LoggerLevels(options.logControl ?? { level: 'silent' }),
    quotas: await ClientQuotas.load({
      metadata: metadata.quotas,
      settings,
      clock: options.clock,
    }),
    security,
    authorizer: security.authorizer,
    transactions: options.transactions,
    fetchSessions: new FetchSessions({
      prng,
      slots: () => config.values['max.incremental.fetch.session.cache.slots'],
    }),
    fetchWaits,
    clock: options.clock,
    prng,
    ids: options.ids,
    logger: options.logger,
    metrics: options.metrics,
  };
  const complete = services as BrokerServices & { router: Router };
  complete.router = new Router([...HANDLERS, ...(options.handlers?.(complete) ?? [])]);
  return complete;
}

/** One broker that is the whole cluster. */
function aloneAs({ nodeId, settings }: BrokerOptions): NonNullable<BrokerOptions['cluster']> {
  const self: ClusterNode = {
    nodeId,
    session: '',
    rack: settings['broker.rack'] || null,
    roles: nodeRoles,
    listeners: {},
    hints: null,
    http: null,
    version: '',
    levels: LEVELS,
    draining: false,
  };
  const everything = { held: () => undefined, want: () => async () => {}, holder: () => nodeId };
  return { cluster: soloCluster(self), leases: everything };
}

/** Listeners that ask nobody for a name, on which everybody may do everything. */
function unsecured({ listeners, metadata, ...parts }: BrokerOptions): Promise<Security> {
  const settings = resolveSettings(securitySettings, {});
  const plain = listeners.map(
    (listener) => ({ ...listener, protocol: 'PLAINTEXT', settings }) as const,
  );
  return openSecurity({ ...parts, settings, metadata: metadata.security, listeners: plain });
}

/** The address that clients are told for a listener: the advertised one, or the one it is bound to. */
function advertisedEndpoint(
  settings: BrokerSettings,
  { name, host, port }: BoundListener,
): Endpoint {
  for (const advertised of settings['advertised.listeners']) {
    const [, listener, toldHost, toldPort] = /^(\w+):\/\/(.*):(\d+)$/.exec(advertised) ?? [];
    if (listener === name) return { host: toldHost || host, port: Number(toldPort) || port };
  }
  // "Every address" is none that a client could connect to.
  const everywhere = host === '0.0.0.0' || host === '::' || host === '';
  return { host: everywhere ? '127.0.0.1' : host, port };
}

function rethrow(error: Error): never {
  throw error;
}
