// The composition root: the one place where real clock, stores, threads and servers meet. Parts start in the order
// of their dependencies and stop in reverse, so that what was admitted is flushed after the sockets are closed.

import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { fastify } from 'fastify';
import { systemClock } from '../base/clock.ts';
import { FloeError } from '../base/error.ts';
import { Lifecycle } from '../base/lifecycle.ts';
import { createLogger } from '../base/log.ts';
import { PrometheusMetrics } from '../base/metrics.ts';
import { systemIds, systemPrng } from '../base/prng.ts';
import { resolveSettings } from '../base/settings.ts';
import { SteeredClock } from '../base/steered-clock.ts';
import { HTTP_LISTENER, splitListenerSettings } from '../broker/auth/index.ts';
import { type Broker, splitListenerLimits } from '../broker/index.ts';
import {
  CatalogTokens,
  createCatalogServer,
  EmbeddedCatalog,
  openCatalog,
  Warehouse,
} from '../catalog/index.ts';
import { openSchemas } from '../schema-registry/external/index.ts';
import {
  registryRoutes,
  registryServerOptions,
  registrySource,
  SchemaRegistry,
} from '../schema-registry/index.ts';
import { makeDataDir } from '../storage/log/data-dir-lock.ts';
import { openLog } from '../storage/log/open-log.ts';
import type { MetadataChoice } from '../storage/log/sequencer-backend.ts';
import {
  type ObjectStore,
  openObjectStore,
  probeConditionalWrites,
} from '../storage/objects/index.ts';
import { probeKey, warehousePrefix } from '../storage/paths.ts';
import { clusterStatus, nodeStatus } from './cluster-status.ts';
import { drain } from './compose/drain.ts';
import { advertised, followChanges, kafkaAddresses, startKafka } from './compose/kafka.ts';
import { maintain } from './compose/maintenance.ts';
import { reachableUrl, takePlace } from './compose/membership.ts';
import type { Node, ServerSettings } from './compose/node.ts';
import { startSql } from './compose/sql.ts';
import { startTables } from './compose/tables.ts';
import { shareReads } from './compose/zone.ts';
import { startHttp } from './http.ts';
import { HttpAuth, protectFaces } from './http-auth.ts';
import { operatorApp } from './operator.ts';
import type { ServeOptions } from './options.ts';
import { observeProcess } from './process-metrics.ts';
import { startSecurity } from './security.ts';
import { serverSettings } from './settings.ts';

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
  /** How long giving work to other nodes may take at the stop; 0 for a node alone. */
  readonly drainMs: number;
  /** Gives work to other nodes, stops taking any, flushes, frees everything. */
  stop(): Promise<void>;
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
    clock: new SteeredClock(systemClock),
    prng: systemPrng,
    ids: systemIds,
  };
  observeProcess(node.metrics);
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
    await openLog({
      ...node,
      dataDir: options.dataDir,
      store,
      logLevel: settings['log.level'],
      metadata: metadataChoice(node),
    }),
  );
  const secured = lifecycle.add(
    'security',
    await startSecurity({ ...node, kafka: options.kafka, metadata: opened.metadata.security }),
  );
  const place = await takePlace(node, opened, secured.listeners[0]!.host);
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
  let started: Broker | undefined;
  const tables = lifecycle.add(
    'table topics',
    startTables(node, parts, { place, broker: () => started }),
  );
  const broker = await startKafka(node, parts, { secured, place });
  started = broker;
  followChanges(node, { opened, broker, secured, place });
  maintain(node, { opened, store, tables, configs: broker.topicConfigs, place });

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
    cluster: {
      node: () => nodeStatus({ place, opened }),
      status: (asking) =>
        clusterStatus(
          { place, opened, aliveMs: settings['cluster.alive.ms'], clock: node.clock },
          asking,
        ),
    },
    sql: settings['node.roles'].includes('query')
      ? () => startSql(node, { catalog, warehouse, tables, auth, quotas: broker.services.quotas })
      : undefined,
    attach: () => ({
      type: settings['catalog.type'],
      uri: settings['catalog.uri'] || `${scheme}://${addresses.catalog}`,
      warehouse: settings['catalog.warehouse'],
      s3Endpoint: settings['s3.endpoint'],
    }),
  });
  shareReads(operator, { opened, place });
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
    registry: 'none',
    catalog: 'none',
    http: '',
  };
  for (const [name, app] of faces) {
    // The operator's face is everywhere: health, metrics, the state of the cluster.
    if (name !== 'http' && !settings['node.roles'].includes('http')) continue;
    const server = lifecycle.add(name, await startHttp(`--${name}`, app, options[name], tls));
    Object.assign(addresses, { [name]: server.address });
  }
  const listeners = advertised(broker);
  const bound = { address: addresses.http, told: settings['cluster.http.advertised'] };
  await place.announce({ listeners, http: reachableUrl(scheme, bound, listeners) });
  logger.info({ ...addresses, storage: store.uri, clusterId: opened.clusterId }, 'ready');
  return {
    addresses,
    scheme,
    reload: () => secured.reload(),
    drainMs: place.follower === undefined ? 0 : settings['cluster.drain.ms'],
    async stop() {
      await drain(node, place, broker);
      await lifecycle.stop();
    },
  };
}

function metadataChoice({ options, settings }: Node): MetadataChoice {
  const { metadata: url, nodeId } = options;
  if (url === undefined) return { kind: 'sqlite' };
  return { kind: 'postgres', url, settings, applicationName: `floe ${nodeId ?? ''}`.trim() };
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
