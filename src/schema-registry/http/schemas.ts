// Routes under /schemas: by id, by guid, all of them.
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { SchemaRow, SubjectVersionRow } from '../../metadata/registry.ts';
import { parseContract } from '../contract.ts';
import { SCHEMA_TYPES } from '../formats.ts';
import type { SchemaRegistry } from '../registry.ts';
import { flag, page, pathPart, querySubject, queryText, schemaId } from './input.ts';
import { schemaBody, versionBody } from './output.ts';

export function schemaRoutes(app: FastifyInstance, registry: SchemaRegistry): void {
  app.get('/schemas/types', async () => SCHEMA_TYPES);

  app.get('/schemas', async (request) => {
    const prefix = queryText(request, 'subjectPrefix') ?? '';
    const rows = await registry.allVersions(prefix, flag(request, 'deleted'));
    const latest = flag(request, 'latestOnly') ? rows.filter(isLatest) : rows;
    const ruleType = queryText(request, 'ruleType') ?? '';
    const shown = ruleType === '' ? latest : latest.filter((row) => hasRule(row, ruleType));
    return page(request, shown).map((row) => versionBody(row));
  });

  app.get('/schemas/ids/:id', async (request) => {
    const row = await found(request, registry);
    return schemaBody(row, await textFor(request, registry, row));
  });

  app.get('/schemas/ids/:id/schema', async (request) =>
    textFor(request, registry, await found(request, registry)),
  );

  app.get('/schemas/ids/:id/versions', async (request) =>
    page(request, await places(request, registry)),
  );

  app.get('/schemas/ids/:id/subjects', async (request) => {
    const subjects = (await places(request, registry)).map((place) => place.subject);
    return page(request, [...new Set(subjects)]);
  });

  app.get('/schemas/guids/:guid', async (request) => {
    const row = await registry.byGuid(guid(request));
    return schemaBody(row, await textFor(request, registry, row));
  });

  app.get('/schemas/guids/:guid/ids', async (request) => registry.idsOfGuid(guid(request)));
}

const guid = (request: FastifyRequest) => pathPart(request, 'guid').toLowerCase();

/** The subject of the query, or what its alias names. */
const contextHint = (request: FastifyRequest, registry: SchemaRegistry) => {
  const subject = querySubject(request);
  return subject === '' ? '' : registry.settings.target(subject);
};

async function found(request: FastifyRequest, registry: SchemaRegistry): Promise<SchemaRow> {
  return registry.byId(schemaId(request), await contextHint(request, registry));
}

async function places(request: FastifyRequest, registry: SchemaRegistry) {
  const subject = await contextHint(request, registry);
  return registry.places(schemaId(request), { subject, deleted: flag(request, 'deleted') });
}

/** Whether the schema's rule set has a rule of that type, e.g. `ENCRYPT`. */
function hasRule({ contract }: SchemaRow, type: string): boolean {
  const { migrationRules, domainRules, encodingRules } = parseContract(contract).ruleSet ?? {};
  return [migrationRules, domainRules, encodingRules].some((rules) =>
    rules?.some((rule) => rule['type'] === type),
  );
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
