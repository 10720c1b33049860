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
import { startBroker } from '../broker/index.ts';
import { createCatalogServer, EmbeddedCatalog, Warehouse } from '../catalog/index.ts';
import { registryRoutes, registryServerOptions, SchemaRegistry } from '../schema-registry/index.ts';
import { type OpenedLog, openLog } from '../storage/log/open-log.ts';
import {
  type ObjectStore,
  openObjectStore,
  probeConditionalWrites,
} from '../storage/objects/index.ts';
import { formatAddress } from './address.ts';
import { portError, startHttp } from './http.ts';
import type { ServeOptions } from './options.ts';
import { serverSettings } from './settings.ts';

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
  const warehouse = new Warehouse(store, 'warehouse/');
  const registry = new SchemaRegistry(opened.metadata.registry, settings);
  const catalog = new EmbeddedCatalog({ ...node, metadata: opened.metadata.catalog, warehouse });

  const kafka = await startKafka(node, { opened, store });
  const registryApp = fastify(registryServerOptions);
  registryRoutes(registryApp, registry);
  const registryServer = lifecycle.add(
    'schema registry',
    await startHttp('--registry', registryApp, options.registry),
  );
  const catalogApp = createCatalogServer({ catalog, s3: s3Access(settings), settings, logger });
  const catalogServer = lifecycle.add(
    'catalog',
    await startHttp('--catalog', catalogApp, options.catalog),
  );
  const httpServer = lifecycle.add(
    'http',
    await startHttp('--http', operatorApp(node), options.http),
  );
  const addresses = {
    kafka,
    registry: registryServer.address,
    catalog: catalogServer.address,
    http: httpServer.address,
  };
  logger.info(
    { ...addresses, dataDir: options.dataDir, storage: store.uri, clusterId: opened.clusterId },
    'ready',
  );
  return { addresses, stop: () => lifecycle.stop() };
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

async function startKafka(
  node: Node,
  { opened, store }: { opened: OpenedLog; store: ObjectStore },
): Promise<string> {
  const { options, settings, lifecycle } = node;
  try {
    const broker = await startBroker({
      ...node,
      listeners: [{ name: 'PLAINTEXT', ...options.kafka }],
      log: opened.log,
      directory: opened.directory,
      metadata: opened.metadata,
      clusterId: opened.clusterId,
      nodeId: settings['node.id'],
      logDirectory: store.uri,
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

/** SQL, tables, metrics, health. */
function operatorApp({ metrics }: Node) {
  const app = fastify();
  app.get('/healthz', async () => ({ status: 'ok' }));
  app.get('/metrics', async (_request, reply) =>
    reply.type('text/plain; version=0.0.4; charset=utf-8').send(await metrics.render()),
  );
  return app;
}
