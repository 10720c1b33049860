// The composition root: the one place where real clock, stores, threads and servers meet. Parts start in the order
// of their dependencies and stop in reverse, so that what was admitted is flushed after the sockets are closed.

import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type FastifyInstance, fastify } from 'fastify';
import { systemClock } from '../base/clock.ts';
import { FloeError } from '../base/error.ts';
import { Lifecycle } from '../base/lifecycle.ts';
import { createLogger, type LeveledLogger } from '../base/log.ts';
import { PrometheusMetrics } from '../base/metrics.ts';
import { systemIds, systemPrng } from '../base/prng.ts';
import { resolveSettings, type Settings, type Values } from '../base/settings.ts';
import { HTTP_LISTENER, type SplitSettings, splitListenerSettings } from '../broker/auth/index.ts';
import { GroupCoordinator, groupHandlers } from '../broker/groups/index.ts';
import {
  type Broker,
  ResourceConfigs,
  type ShownSetting,
  splitListenerLimits,
  startBroker,
  type TopicConfigs,
} from '../broker/index.ts';
import type { ClientQuotas } from '../broker/quotas/index.ts';
import { TransactionCoordinator, transactionHandlers } from '../broker/transactions/index.ts';
import {
  type Catalog,
  CatalogTokens,
  createCatalogServer,
  EmbeddedCatalog,
  type OpenedCatalog,
  openCatalog,
  type TableIdentifier,
  Warehouse,
} from '../catalog/index.ts';
import { soloLeases } from '../cluster/index.ts';
import { nodeRoles } from '../metadata/nodes.ts';
import { openSchemas } from '../schema-registry/external/index.ts';
import {
  registryRoutes,
  registryServerOptions,
  registrySource,
  SchemaRegistry,
  type SchemaSource,
} from '../schema-registry/index.ts';
import { makeDataDir } from '../storage/log/data-dir-lock.ts';
import { maintainLog } from '../storage/log/maintenance.ts';
import { type OpenedLog, openLog } from '../storage/log/open-log.ts';
import {
  type ObjectStore,
  objectSettings,
  openObjectStore,
  probeConditionalWrites,
} from '../storage/objects/index.ts';
import { probeKey, warehousePrefix } from '../storage/paths.ts';
import { startTableTopics, type TableTopics } from '../table-topic/index.ts';
import { formatAddress } from './address.ts';
import { portError, startHttp } from './http.ts';
import { HttpAuth, protectFaces } from './http-auth.ts';
import { operatorApp } from './operator.ts';
import type { ServeOptions } from './options.ts';
import { compactedPartitions, retentionPin, retentionPolicy } from './retention.ts';
import { type NodeSecurity, startSecurity } from './security.ts';
import { serverSettings, settingsByArea } from './settings.ts';
import { tableTopicConfigs } from './table-configs.ts';

export interface Floe {
  /** HOST:PORT of each face as bound. */
  readonly addresses: {
    readonly kafka: string;
    readonly registry: string;
    readonly catalog: string;
    readonly http: string;
  };
  /** Of the HTTP faces. */
  readonly scheme: 'http' | 'https';
  /** Looks at certificate files now. */
  reload(): void;
  /** Stops taking work, flushes, frees everything. */
  stop(): Promise<void>;
}

type ServerSettings = Values<typeof serverSettings>;

/** What every part gets. */
interface Node {
  readonly options: ServeOptions;
  readonly settings: ServerSettings;
  readonly byListener: SplitSettings['byListener'];
  readonly listenerLimits: Readonly<Record<string, string>>;
  readonly logger: LeveledLogger;
  readonly metrics: PrometheusMetrics;
  readonly lifecycle: Lifecycle;
  readonly clock: typeof systemClock;
  readonly prng: typeof systemPrng;
  readonly ids: typeof systemIds;
}

/** Starts a node. @throws FloeError of one clear line; nothing is left running then. */
export async function serve(options: ServeOptions): Promise<Floe> {
  const { limits: listenerLimits, others } = splitListenerLimits(options.settings);
  const { common, byListener } = splitListenerSettings(others);
  const settings = resolveSettings(serverSettings, common);
  const logger = createLogger(settings['log.level']);
  const lifecycle = new Lifecycle(systemClock, logger);
  const node: Node = {
    options,
    settings,
    byListener,
    listenerLimits,
    logger,
    lifecycle,
    metrics: new PrometheusMetrics(),
    clock: systemClock,
    prng: systemPrng,
    ids: systemIds,
  };
  try {
    return await start(node);
  } catch (caught) {
    await lifecycle.stop();
    throw caught;
  }
}

async function start(node: Node): Promise<Floe> {
  const { options, lifecycle, settings, logger } = node;
  const store = await openStore(node);
  const opened = lifecycle.add(
    'log',
    await openLog({ ...node, dataDir: options.dataDir, store, logLevel: settings['log.level'] }),
  );
  const registry = new SchemaRegistry(opened.metadata.registry, settings);
  const schemas = openSchemas({ ...node, embedded: registrySource(registry) });
  const embedded = new EmbeddedCatalog({
    ...node,
    metadata: opened.metadata.catalog,
    warehouse: new Warehouse(store, warehousePrefix(opened.clusterId)),
  });
  const chosen = lifecycle.add('catalog client', await openCatalog({ ...node, embedded, store }));
  const { catalog, warehouse } = chosen;
  const parts = { opened, store, chosen, schemas };
  const tables = lifecycle.add('table topics', startTables(node, parts));
  const secured = lifecycle.add(
    'security',
    await startSecurity({ ...node, kafka: options.kafka, metadata: opened.metadata.security }),
  );
  const broker = await startKafka(node, parts, secured);
  maintain(node, { opened, store, tables, configs: broker.topicConfigs });

  const { security } = secured;
  const tokens = new CatalogTokens({
    ...node,
    metadata: opened.metadata.catalog,
    lifetimeMs: settings['catalog.token.lifetime.ms'],
  });
  const auth = new HttpAuth({ ...node, security, tokens });
  const registryApp = fastify(registryServerOptions);
  registryRoutes(registryApp, registry);
  const catalogApp = createCatalogServer({
    ...node,
    catalog: embedded,
    s3: s3Access(settings),
    tokens: auth.tokens,
    authority: auth.authority(),
  });
  const operator = operatorApp({
    metrics: node.metrics,
    tables,
    sql: () => startSql(node, { catalog, warehouse, tables, auth, quotas: broker.services.quotas }),
    attach: () => ({
      type: settings['catalog.type'],
      uri: settings['catalog.uri'] || `${scheme}://${addresses.catalog}`,
      warehouse: settings['catalog.warehouse'],
      s3Endpoint: settings['s3.endpoint'],
    }),
  });
  const subjectOf = (name: string) => registry.settings.target(name);
  const faceNames = { tables, subjectOf };
  protectFaces(auth, { registry: registryApp, catalog: catalogApp, operator }, faceNames);
  const { tls } = security.listeners.get(HTTP_LISTENER)!;
  const scheme = tls === undefined ? 'http' : 'https';
  const faces = [
    ['registry', registryApp],
    ['catalog', catalogApp],
    ['http', operator],
  ] as const;
  const addresses: Floe['addresses'] & Record<string, string> = {
    kafka: kafkaAddresses(broker),
    registry: '',
    catalog: '',
    http: '',
  };
  for (const [name, app] of faces) {
    const server = lifecycle.add(name, await startHttp(`--${name}`, app, options[name], tls));
    Object.assign(addresses, { [name]: server.address });
  }
  logger.info({ ...addresses, storage: store.uri, clusterId: opened.clusterId }, 'ready');
  return { addresses, scheme, reload: () => secured.reload(), stop: () => lifecycle.stop() };
}

interface Parts {
  readonly opened: OpenedLog;
  readonly store: ObjectStore;
  readonly chosen: OpenedCatalog;
  readonly schemas: SchemaSource;
}

function startTables(node: Node, parts: Parts): TableTopics {
  const { opened, chosen, schemas } = parts;
  const names = Object.keys(objectSettings) as (keyof typeof objectSettings)[];
  const storeSettings = Object.fromEntries(names.map((name) => [name, node.settings[name]]));
  return startTableTopics({
    ...node,
    log: opened.log,
    directory: opened.directory,
    metadata: opened.metadata,
    catalog: chosen.catalog,
    schemas,
    warehouse: chosen.warehouse,
    threads: {
      storeUri: chosen.storeUri,
      storeSettings,
      keyFolder: join(node.options.dataDir, 'table-keys'),
    },
  });
}

async function openStore(node: Node): Promise<ObjectStore> {
  const { options, settings, ids } = node;
  try {
    makeDataDir(options.dataDir);
  } catch (caught) {
    throw FloeError.from(caught, `--data-dir ${options.dataDir}`);
  }
  const uri = options.storage ?? pathToFileURL(join(options.dataDir, 'storage')).href;
  const store = await openObjectStore(uri, { ...node, settings });
  // A local folder's exclusive create is the kernel's; a remote store has to show that it excludes.
  if (!uri.startsWith('file:')) await probeConditionalWrites(store, probeKey(ids.uuid()));
  return store;
}

async function startKafka(
  node: Node,
  { opened, store, schemas, chosen }: Parts,
  { security, listeners }: NodeSecurity,
): Promise<Broker> {
  const { options, settings, lifecycle } = node;
  const { log, directory, metadata, clusterId } = opened;
  const resourceConfigs = await ResourceConfigs.load(metadata.resourceConfigs);
  const leases = soloLeases({ ...node, self: { nodeId: settings['node.id'], roles: nodeRoles } });
  const groups = lifecycle.add(
    'groups',
    await GroupCoordinator.load({
      ...node,
      directory,
      leases,
      metadata: metadata.groups,
      transactions: metadata.transactions,
      groupConfigs: (groupId) => resourceConfigs.of('group', groupId),
    }),
  );
  const transactions = lifecycle.add(
    'transactions',
    await TransactionCoordinator.load({
      ...node,
      groups,
      leases,
      metadata: metadata.transactions,
    }),
  );
  try {
    return lifecycle.add(
      'broker',
      await startBroker({
        ...node,
        listeners,
        security,
        log,
        directory,
        metadata,
        clusterId,
        nodeId: settings['node.id'],
        logControl: node.logger.control,
        resourceConfigs,
        logDirectory: store.uri,
        topicConfigExtensions: [tableTopicConfigs({ directory, schemas, catalog: chosen.catalog })],
        otherSettings: otherSettings(settings),
        transactions,
        handlers: () => [...groupHandlers(groups), ...transactionHandlers(transactions)],
      }),
    );
  } catch (caught) {
    if (settings.listeners.length > 0) throw caught;
    throw portError('--kafka', options.kafka, caught);
  }
}

/** `host:port` of the first listener; further ones with their names. */
function kafkaAddresses({ addresses }: Broker): string {
  const [first, ...others] = addresses.map((bound) => ({ ...bound, text: formatAddress(bound) }));
  return [first!.text, ...others.map(({ name, text }) => `${name}://${text}`)].join(',');
}

/** What DescribeConfigs shows of the parts beside the broker. */
function otherSettings(settings: ServerSettings): ShownSetting[] {
  const { Broker: _, ...others } = settingsByArea;
  return Object.values(others).flatMap((area: Settings) =>
    Object.entries(area).map(([name, setting]) => ({
      name,
      setting,
      value: setting.format(settings[name as keyof ServerSettings]),
    })),
  );
}

interface Maintained {
  readonly opened: OpenedLog;
  readonly store: ObjectStore;
  readonly tables: TableTopics;
  readonly configs: TopicConfigs;
}

/** Retention, collection, compaction of the log. */
function maintain(node: Node, { opened, store, tables, configs }: Maintained): void {
  const maintenance = maintainLog(opened, {
    ...node,
    store,
    policy: retentionPolicy(opened.directory, configs),
    compacted: compactedPartitions(opened.directory, configs),
    maxDecompressedBytes: node.settings['batch.decompressed.max.bytes'],
    pin: retentionPin(tables, opened),
  });
  node.lifecycle.add('maintenance', maintenance);
}

function s3Access(settings: ServerSettings) {
  return {
    endpoint: settings['s3.endpoint'],
    region: settings['s3.region'],
    pathStyle: settings['s3.path.style'],
    accessKeyId: settings['s3.access.key.id'],
    secretAccessKey: settings['s3.secret.access.key'],
    sessionToken: settings['s3.session.token'],
  };
}

interface SqlParts {
  readonly catalog: Catalog;
  readonly warehouse: Warehouse;
  readonly tables: TableTopics;
  readonly auth: HttpAuth;
  readonly quotas: ClientQuotas;
}

/** The server of `/v1/sql`, with DuckDB behind it. */
async function startSql(node: Node, parts: SqlParts): Promise<FastifyInstance> {
  const { openQueries, sqlRoutes } = await import('../queries/index.ts');
  const { catalog, warehouse, tables, auth, quotas } = parts;
  const { options, settings, clock } = node;
  const service = await openQueries({
    ...node,
    catalog,
    warehouse,
    dataDir: options.dataDir,
    tableOfTopic: (topic) => tables.tableOf(topic),
    tail: { read: (identifier, metadata) => tables.tail(identifier, metadata) },
  });
  const app = fastify();
  const mayRead = (request: IncomingMessage, table: TableIdentifier) =>
    auth.mayRead(request, tables.topicsOf(table));
  const quotaOf = (request: IncomingMessage) => {
    // HTTP knows users, not client ids.
    const fetch = quotas.limits(auth.accessOf(request).who.principal.name, '')?.fetch;
    if (fetch === undefined) return undefined;
    return { charge: (bytes: number) => fetch.charge(bytes, clock.monotonic()) };
  };
  sqlRoutes(app, { ...node, service, settings, mayRead, quotaOf });
  app.addHook('onClose', () => service.stop());
  await app.ready();
  return app;
}
