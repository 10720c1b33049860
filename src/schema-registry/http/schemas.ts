// Routes under /schemas: by id, by guid, all of them.
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { SchemaRow, SubjectVersionRow } from '../../metadata/registry.ts';
import { SCHEMA_TYPES } from '../formats.ts';
import type { SchemaRegistry } from '../registry.ts';
import { flag, page, pathPart, queryText, schemaId } from './input.ts';
import { schemaBody, versionBody } from './output.ts';

export function schemaRoutes(app: FastifyInstance, registry: SchemaRegistry): void {
  app.get('/schemas/types', async () => SCHEMA_TYPES);

  app.get('/schemas', async (request) => {
    const prefix = queryText(request, 'subjectPrefix') ?? '';
    const rows = await registry.allVersions({ prefix, deleted: flag(request, 'deleted') });
    const shown = flag(request, 'latestOnly') ? rows.filter(isLatest) : rows;
    return page(request, shown).map((row) => versionBody(row));
  });

  app.get('/schemas/ids/:id', async (request) => {
    const row = await registry.byId(schemaId(request));
    return schemaBody(row, await textFor(request, registry, row));
  });

  app.get('/schemas/ids/:id/schema', async (request) => {
    const row = await registry.byId(schemaId(request));
    return textFor(request, registry, row);
  });

  app.get('/schemas/ids/:id/versions', async (request) =>
    page(request, await registry.places(schemaId(request), flag(request, 'deleted'))),
  );

  app.get('/schemas/ids/:id/subjects', async (request) => {
    const places = await registry.places(schemaId(request), flag(request, 'deleted'));
    return page(request, [...new Set(places.map((place) => place.subject))]);
  });

  app.get('/schemas/guids/:guid', async (request) => {
    const row = await registry.byGuid(pathPart(request, 'guid').toLowerCase());
    return schemaBody(row, await textFor(request, registry, row));
  });

  app.get('/schemas/guids/:guid/ids', async (request) => {
    const { id } = await registry.byGuid(pathPart(request, 'guid').toLowerCase());
    return [{ context: '.', id }];
  });
}

/** The text as stored, or in the form that `format` of the query asks for. */
export function textFor(
  request: FastifyRequest,
  registry: SchemaRegistry,
  row: SchemaRow,
): Promise<string> {
  return registry.contents.formatted(row, queryText(request, 'format') ?? '');
}

/** Rows come in order of subject and version. */
function isLatest(
  row: SubjectVersionRow,
  index: number,
  rows: readonly SubjectVersionRow[],
): boolean {
  return rows[index + 1]?.subject !== row.subject;
}
