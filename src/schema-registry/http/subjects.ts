// Routes under /subjects and /compatibility.
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { SubjectVersionRow } from '../../metadata/registry.ts';
import type { SchemaRegistry, VersionChoice } from '../registry.ts';
import { flag, page, pathPart, queryText, schemaInput, versionChoice } from './input.ts';
import { versionBody } from './output.ts';
import { textFor } from './schemas.ts';

export function subjectRoutes(app: FastifyInstance, registry: SchemaRegistry): void {
  app.get('/subjects', async (request) => {
    const prefix = contextless(queryText(request, 'subjectPrefix') ?? '');
    const deletedOnly = flag(request, 'deletedOnly');
    const deleted = deletedOnly || flag(request, 'deleted');
    const rows = await registry.subjects({ prefix, deleted });
    const shown = deletedOnly ? rows.filter((row) => row.allDeleted) : rows;
    return page(
      request,
      shown.map((row) => row.subject),
    );
  });

  app.post('/subjects/:subject', async (request) => {
    const options = { normalize: flag(request, 'normalize'), deleted: flag(request, 'deleted') };
    return versionBody(await registry.lookup(subject(request), schemaInput(request), options));
  });

  app.delete('/subjects/:subject', (request) =>
    registry.deleteSubject(subject(request), flag(request, 'permanent')),
  );

  app.get('/subjects/:subject/versions', async (request) => {
    const deletedOnly = flag(request, 'deletedOnly');
    const rows = await registry.versions(subject(request), deletedOnly || flag(request, 'deleted'));
    const shown = deletedOnly ? rows.filter((row) => row.deleted) : rows;
    return page(
      request,
      shown.map((row) => row.version),
    );
  });

  app.post('/subjects/:subject/versions', async (request) =>
    versionBody(
      await registry.register(subject(request), schemaInput(request), flag(request, 'normalize')),
    ),
  );

  app.get('/subjects/:subject/versions/:version', async (request) => {
    const row = await chosen(request, registry);
    return versionBody(row, await textFor(request, registry, row));
  });

  app.get('/subjects/:subject/versions/:version/schema', async (request) => {
    const row = await chosen(request, registry);
    return textFor(request, registry, row);
  });

  app.get('/subjects/:subject/versions/:version/referencedby', (request) =>
    registry.referencedBy(subject(request), versionChoice(request)),
  );

  app.delete('/subjects/:subject/versions/:version', (request) =>
    registry.deleteVersion(subject(request), versionChoice(request), flag(request, 'permanent')),
  );

  app.post('/compatibility/subjects/:subject/versions', (request) => check(request, registry));

  app.post('/compatibility/subjects/:subject/versions/:version', (request) =>
    check(request, registry, versionChoice(request)),
  );
}

const subject = (request: FastifyRequest) => pathPart(request, 'subject');

/** `:.:` and `:*:` name the default context and all contexts; there is only the one. */
const contextless = (prefix: string) => prefix.replace(/^:(\.|\*):/, '');

function chosen(request: FastifyRequest, registry: SchemaRegistry): Promise<SubjectVersionRow> {
  return registry.version(subject(request), versionChoice(request), flag(request, 'deleted'));
}

async function check(request: FastifyRequest, registry: SchemaRegistry, choice?: VersionChoice) {
  const { compatible, messages } = await registry.check(subject(request), schemaInput(request), {
    normalize: flag(request, 'normalize'),
    ...(choice === undefined ? {} : { choice }),
  });
  return {
    is_compatible: compatible,
    ...(flag(request, 'verbose') ? { messages } : {}),
  };
}
