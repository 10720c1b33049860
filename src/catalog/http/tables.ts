// Tables over HTTP: create, load, commit, register, rename, drop. Source: Iceberg REST OpenAPI.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import {
  asList,
  asObject,
  asText,
  metadataToJson,
  stringifyIcebergJson,
  type TableMetadata,
} from '../../formats/iceberg/index.ts';
import type { EmbeddedCatalog, StoredTable } from '../embedded.ts';
import { catalogError } from '../errors.ts';
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
  /** Goes into every loaded table's `config`. */
  readonly config: Readonly<Record<string, string>>;
}

export function tableRoutes(app: FastifyInstance, { catalog, config }: TableRoutesOptions): void {
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
      return { metadata: metadataToJson(metadata), config };
    }
    return sendTable(reply, await catalog.create(namespaceOf(request), asked), config);
  });

  app.get('/namespaces/:namespace/tables/:table', { exposeHeadRoute: false }, (request, reply) =>
    load({ catalog, config }, request, reply),
  );

  app.head('/namespaces/:namespace/tables/:table', async (request, reply) => {
    const table = tableOf(request);
    if (!(await catalog.tableExists(table))) {
      throw catalogError('not-found', 'NoSuchTableException', `no table "${table.name}"`);
    }
    return reply.code(204).send();
  });

  app.post('/namespaces/:namespace/tables/:table', async (request, reply) => {
    const commit = commitFrom(bodyOf(request));
    const table = await catalog.commitTable(tableOf(request), commit);
    return sendTable(reply, table, undefined);
  });

  app.delete('/namespaces/:namespace/tables/:table', async (request, reply) => {
    const purge = queryOf(request, 'purgeRequested')?.toLowerCase() === 'true';
    await catalog.dropTable(tableOf(request), { purge });
    return reply.code(204).send();
  });

  app.post('/namespaces/:namespace/register', async (request, reply) => {
    const body = bodyOf(request);
    const table = await catalog.registerTable(
      { namespace: namespaceOf(request), name: asText(body['name'], 'name') },
      asText(body['metadata-location'], 'metadata-location'),
      { overwrite: body['overwrite'] === true },
    );
    return sendTable(reply, table, config);
  });

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

  // Taken and dropped: what scans and commits of engines cost is not ours to keep.
  app.post('/namespaces/:namespace/tables/:table/metrics', async (_request, reply) =>
    reply.code(204).send(),
  );
}

async function load(
  { catalog, config }: TableRoutesOptions,
  request: FastifyRequest,
  reply: FastifyReply,
) {
  const refsOnly = queryOf(request, 'snapshots') === 'refs';
  const asked = request.headers['if-none-match'];
  if (asked !== undefined) {
    const location = await catalog.metadataLocation(tableOf(request));
    if (location !== undefined && asked === etag(location, refsOnly))
      return reply.code(304).header('etag', asked).send();
  }
  const table = await catalog.loadTable(tableOf(request));
  void reply.header('etag', etag(table.metadataLocation, refsOnly));
  const shown = refsOnly
    ? { ...table, text: stringifyIcebergJson(metadataToJson(withRefsOnly(table.metadata))) }
    : table;
  return sendTable(reply, shown, config);
}

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
function sendTable(
  reply: FastifyReply,
  table: StoredTable,
  config: Readonly<Record<string, string>> | undefined,
) {
  const rest = config === undefined ? '' : `,"config":${JSON.stringify(config)}`;
  const location = JSON.stringify(table.metadataLocation);
  return reply
    .type('application/json')
    .send(`{"metadata-location":${location},"metadata":${table.text}${rest}}`);
}
