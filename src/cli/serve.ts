// The composition root: the one place where real clock, stores, threads and servers meet. Parts start in the order
// of their dependencies and stop in reverse, so that what was admitted is flushed after the sockets are closed.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { fastify } from 'fastify';
import { systemClock } from '../base/clock.ts';
import { FloeError } from '../base/error.ts';
import { Lifecycle } from '../base/lifecycle.ts';
import { createLogger, type Logger } from '../base/log.ts';
import { PrometheusMetrics } from '../base/metrics.ts';
import { systemIds, systemPrng } from '../base/prng.ts';
import { resolveSettings, type Values } from '../base/settings.ts';
import { GroupCoordinator, groupHandlers } from '../broker/groups/index.ts';
import { startBroker } from '../broker/index.ts';
import { createCatalogServer, EmbeddedCatalog, Warehouse } from '../catalog/index.ts';
import { openQueries, type QueryService, sqlRoutes } from '../queries/index.ts';
import {
  registryRoutes,
  registryServerOptions,
  registrySource,
  SchemaRegistry,
  type SchemaSource,
} from '../schema-registry/index.ts';
import { type OpenedLog, openLog } from '../storage/log/open-log.ts';
import {
  type ObjectStore,
  objectSettings,
  openObjectStore,
  probeConditionalWrites,
} from '../storage/objects/index.ts';
import { startTableTopics, type TableTopics, tableRoutes } from '../table-topic/index.ts';
import { formatAddress } from './address.ts';
import { portError, startHttp } from './http.ts';
import type { ServeOptions } from './options.ts';
import { serverSettings } from './settings.ts';
import { tableTopicConfigs } from './table-configs.ts';

export interface Floe {
  /** HOST:PORT of each face as bound. */
  readonly addresses: {
    readonly kafka: string;
    readonly registry: string;
    readonly catalog: string;
    readonly http: string;
  };
  /** Stops taking work, flushes, frees everything. */
  stop(): Promise<void>;
}

type ServerSettings = Values<typeof serverSettings>;

/** What every part gets. */
interface Node {
  readonly options: ServeOptions;
  readonly settings: ServerSettings;
  readonly logger: Logger;
  readonly metrics: PrometheusMetrics;
  readonly lifecycle: Lifecycle;
  readonly clock: typeof systemClock;
  readonly prng: typeof systemPrng;
  readonly ids: typeof systemIds;
}

/** Starts a node. @throws FloeError of one clear line; nothing is left running then. */
export async function serve(options: ServeOptions): Promise<Floe> {
  const settings = resolveSettings(serverSettings, options.settings);
  const logger = createLogger(settings['log.level']);
  const lifecycle = new Lifecycle(systemClock, logger);
  const node: Node = {
    options,
    settings,
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
  const schemas = registrySource(registry);
  const warehouse = new Warehouse(store, 'warehouse/');
  const catalog = new EmbeddedCatalog({ ...node, metadata: opened.metadata.catalog, warehouse });
  const tables = lifecycle.add(
    'table topics',
    startTables(node, { opened, store, catalog, schemas }),
  );
  const kafka = await startKafka(node, { opened, store, schemas });

  const registryApp = fastify(registryServerOptions);
  registryRoutes(registryApp, registry);
  const catalogApp = createCatalogServer({ catalog, s3: s3Access(settings), settings, logger });
  const queries = lifecycle.add(
    'queries',
    await openQueries({
      ...node,
      catalog,
      dataDir: options.dataDir,
      tableOfTopic: (topic) => tables.tableOf(topic),
    }),
  );
  const operator = operatorApp(node, { tables, queries });
  const faces = [
    ['registry', registryApp],
    ['catalog', catalogApp],
    ['http', operator],
  ] as const;
  const addresses: Floe['addresses'] & Record<string, string> = {
    kafka,
    registry: '',
    catalog: '',
    http: '',
  };
  for (const [name, app] of faces) {
    const server = lifecycle.add(name, await startHttp(`--${name}`, app, options[name]));
    Object.assign(addresses, { [name]: server.address });
  }
  logger.info({ ...addresses, storage: store.uri, clusterId: opened.clusterId }, 'ready');
  return { addresses, stop: () => lifecycle.stop() };
}

interface TableParts {
  readonly opened: OpenedLog;
  readonly store: ObjectStore;
  readonly catalog: EmbeddedCatalog;
  readonly schemas: SchemaSource;
}

function startTables(node: Node, { opened, store, catalog, schemas }: TableParts): TableTopics {
  const names = Object.keys(objectSettings) as (keyof typeof objectSettings)[];
  const storeSettings = Object.fromEntries(names.map((name) => [name, node.settings[name]]));
  return startTableTopics({
    ...node,
    log: opened.log,
    directory: opened.directory,
    metadata: opened.metadata,
    catalog,
    schemas,
    warehouse: store,
    threads: { storeUri: store.uri, storeSettings },
  });
}

async function openStore(node: Node): Promise<ObjectStore> {
  const { options, settings, ids } = node;
  try {
    mkdirSync(options.dataDir, { recursive: true });
  } catch (caught) {
    throw FloeError.from(caught, `--data-dir ${options.dataDir}`);
  }
  const uri = options.storage ?? pathToFileURL(join(options.dataDir, 'storage')).href;
  const store = await openObjectStore(uri, { ...node, settings });
  // A local folder's exclusive create is the kernel's; a remote store has to show that it excludes.
  if (!uri.startsWith('file:')) await probeConditionalWrites(store, `probe/${ids.uuid()}`);
  return store;
}

interface KafkaParts {
  readonly opened: OpenedLog;
  readonly store: ObjectStore;
  readonly schemas: SchemaSource;
}

async function startKafka(node: Node, { opened, store, schemas }: KafkaParts): Promise<string> {
  const { options, settings, lifecycle } = node;
  const { log, directory, metadata, clusterId } = opened;
  const groups = lifecycle.add(
    'groups',
    await GroupCoordinator.load({ ...node, directory, metadata: metadata.groups }),
  );
  try {
    const broker = await startBroker({
      ...node,
      listeners: [{ name: 'PLAINTEXT', ...options.kafka }],
      log,
      directory,
      metadata,
      clusterId,
      nodeId: settings['node.id'],
      logDirectory: store.uri,
      topicConfigExtensions: [tableTopicConfigs({ directory, schemas })],
      handlers: () => groupHandlers(groups),
    });
    lifecycle.add('broker', broker);
    return formatAddress({ host: options.kafka.host, port: broker.addresses[0]!.port });
  } catch (caught) {
    throw portError('--kafka', options.kafka, caught);
  }
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

interface OperatorParts {
  readonly tables: TableTopics;
  readonly queries: QueryService;
}

/** SQL, tables, metrics, health. */
function operatorApp(node: Node, { tables, queries }: OperatorParts) {
  const { metrics } = node;
  const app = fastify();
  sqlRoutes(app, { ...node, service: queries });
  tableRoutes(app, { tables });
  app.get('/healthz', async () => ({ status: 'ok' }));
  app.get('/metrics', async (_request, reply) =>
    reply.type('text/plain; version=0.0.4; charset=utf-8').send(await metrics.render()),
  );
  return app;
}
