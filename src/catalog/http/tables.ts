// Tables over HTTP: create, load, commit, register, rename, drop. Source: Iceberg REST OpenAPI.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { FloeError } from '../../base/error.ts';
import type { Metrics } from '../../base/metrics.ts';
import {
  asList,
  asObject,
  asText,
  metadataToJson,
  stringifyIcebergJson,
  type TableMetadata,
} from '../../formats/iceberg/index.ts';
import type { TableIdentifier } from '../catalog.ts';
import type { EmbeddedCatalog, StoredTable } from '../embedded.ts';
import { catalogError } from '../errors.ts';
import { shownTable } from '../names.ts';
import type { FileAccess } from './config.ts';
import { takeReport } from './metrics.ts';
import {
  bodyOf,
  commitFrom,
  identifierFrom,
  namespaceOf,
  nextToken,
  page,
  queryOf,
  tableOf,
  tableRequestFrom,
} from './request.ts';

export interface TableRoutesOptions {
  readonly catalog: EmbeddedCatalog;
  /** Goes into every loaded table. */
  readonly access: FileAccess;
  readonly metrics: Metrics;
}

const TABLE = '/namespaces/:namespace/tables/:table';

export function tableRoutes(app: FastifyInstance, options: TableRoutesOptions): void {
  listAndCreate(app, options);
  oneTable(app, options);
  otherChanges(app, options);
}

function listAndCreate(app: FastifyInstance, { catalog, access }: TableRoutesOptions): void {
  app.get('/namespaces/:namespace/tables', async (request) => {
    const found = await page(
      request,
      (range) => catalog.listTables(namespaceOf(request), range),
      (table) => table.name,
    );
    return { identifiers: found.items, ...nextToken(found) };
  });

  app.post('/namespaces/:namespace/tables', async (request, reply) => {
    const body = bodyOf(request);
    const asked = tableRequestFrom(body);
    if (body['stage-create'] === true) {
      const metadata = await catalog.stageTable(namespaceOf(request), asked);
      return {
        metadata: metadataToJson(metadata),
        config: access.config,
        'storage-credentials': access.credentials,
      };
    }
    return sendTable(reply, await catalog.create(namespaceOf(request), asked), access);
  });

  app.post('/namespaces/:namespace/register', async (request, reply) => {
    const body = bodyOf(request);
    const table = await catalog.registerTable(
      { namespace: namespaceOf(request), name: asText(body['name'], 'name') },
      asText(body['metadata-location'], 'metadata-location'),
      { overwrite: body['overwrite'] === true },
    );
    return sendTable(reply, table, access);
  });
}

function oneTable(app: FastifyInstance, { catalog, access, metrics }: TableRoutesOptions): void {
  app.get(TABLE, { exposeHeadRoute: false }, (request, reply) =>
    load(catalog, access, { request, reply }),
  );

  app.head(TABLE, async (request, reply) => {
    await mustExist(catalog, tableOf(request));
    return reply.code(204).send();
  });

  app.post(TABLE, async (request, reply) => {
    const commit = commitFrom(bodyOf(request));
    const table = await catalog.commitTable(tableOf(request), commit);
    return sendTable(reply, table, undefined);
  });

  app.delete(TABLE, async (request, reply) => {
    const purge = queryOf(request, 'purgeRequested')?.toLowerCase() === 'true';
    await catalog.dropTable(tableOf(request), { purge });
    return reply.code(204).send();
  });

  app.get(`${TABLE}/credentials`, async (request) => {
    await mustExist(catalog, tableOf(request));
    return { 'storage-credentials': access.credentials };
  });

  app.post(`${TABLE}/unregister`, async (request, reply) =>
    sendTable(reply, await catalog.unregisterTable(tableOf(request)), undefined),
  );

  app.post(`${TABLE}/metrics`, async (request, reply) => {
    takeReport(bodyOf(request), metrics);
    return reply.code(204).send();
  });
}

function otherChanges(app: FastifyInstance, { catalog }: TableRoutesOptions): void {
  app.post('/tables/rename', async (request, reply) => {
    const body = bodyOf(request);
    await catalog.renameTable(identifierFrom(body['source']), identifierFrom(body['destination']));
    return reply.code(204).send();
  });

  app.post('/transactions/commit', async (request, reply) => {
    const changes = asList(bodyOf(request)['table-changes'], 'table-changes').map((item) => {
      const change = asObject(item, 'a table change');
      return { identifier: identifierFrom(change['identifier']), ...commitFrom(change) };
    });
    await catalog.commitTables(changes);
    return reply.code(204).send();
  });
}

async function load(
  catalog: EmbeddedCatalog,
  access: FileAccess,
  { request, reply }: { readonly request: FastifyRequest; readonly reply: FastifyReply },
) {
  const snapshots = queryOf(request, 'snapshots') ?? 'all';
  if (snapshots !== 'refs' && snapshots !== 'all')
    throw new FloeError('invalid', `snapshots "${snapshots.slice(0, 20)}" is not all or refs`);
  const refsOnly = snapshots === 'refs';
  const asked = request.headers['if-none-match'];
  if (asked !== undefined) {
    const location = await catalog.metadataLocation(tableOf(request));
    if (location !== undefined && asksFor(asked, etag(location, refsOnly)))
      return reply.code(304).header('etag', etag(location, refsOnly)).send();
  }
  const table = await catalog.loadTable(tableOf(request));
  if (!refsOnly) return sendTable(reply, table, access);
  const text = stringifyIcebergJson(metadataToJson(withRefsOnly(table.metadata)));
  void reply.header('etag', etag(table.metadataLocation, true));
  return sendTable(reply, { ...table, text }, access);
}

/** If-None-Match lists tags; proxies that compress mark them weak. RFC 9110 §13.1.2: compared weakly. */
const asksFor = (header: string, tag: string) =>
  header.split(',').some((one) => one.trim().replace(/^W\//, '') === tag);

/** A metadata file's name says everything: it never changes, and every change has a new one. */
const etag = (location: string, refsOnly: boolean) =>
  `"${location.slice(location.lastIndexOf('/') + 1)}${refsOnly ? ';refs' : ''}"`;

/** Only the snapshots that a branch or tag names; others are loaded on demand. */
function withRefsOnly(metadata: TableMetadata): TableMetadata {
  const named = new Set(Object.values(metadata.refs ?? {}).map((ref) => ref['snapshot-id']));
  const snapshots = (metadata.snapshots ?? []).filter((one) => named.has(one['snapshot-id']));
  return { ...metadata, snapshots };
}

/** The metadata's text goes out as it is stored: nothing is parsed and printed again. */
function sendTable(reply: FastifyReply, table: StoredTable, access: FileAccess | undefined) {
  const credentials =
    access === undefined || access.credentials.length === 0
      ? ''
      : `,"storage-credentials":${JSON.stringify(access.credentials)}`;
  const rest =
    access === undefined ? '' : `,"config":${JSON.stringify(access.config)}${credentials}`;
  const location = JSON.stringify(table.metadataLocation);
  if (!reply.hasHeader('etag')) void reply.header('etag', etag(table.metadataLocation, false));
  return reply
    .type('application/json')
    .send(`{"metadata-location":${location},"metadata":${table.text}${rest}}`);
}

/** @throws FloeError `not-found`, without reading the table's metadata. */
async function mustExist(catalog: EmbeddedCatalog, table: TableIdentifier): Promise<void> {
  if (await catalog.tableExists(table)) return;
  const text = `Table does not exist: ${shownTable(table)}`;
  throw catalogError('not-found', 'NoSuchTableException', text);
}
