// Routes under /subjects and /compatibility.
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { SubjectVersionRow } from '../../metadata/registry.ts';
import type { SchemaInput } from '../content.ts';
import { errors } from '../errors.ts';
import { isDescriptorText } from '../protobuf/format.ts';
import type { VersionChoice } from '../registration.ts';
import type { SchemaRegistry } from '../registry.ts';
import {
  flag,
  page,
  pathSubject,
  queryText,
  queryTexts,
  schemaInput,
  versionChoice,
} from './input.ts';
import { versionBody } from './output.ts';
import { textFor } from './schemas.ts';

export function subjectRoutes(app: FastifyInstance, registry: SchemaRegistry): void {
  const subject = (request: FastifyRequest) => registry.settings.target(pathSubject(request));
  const chosen = async (request: FastifyRequest): Promise<SubjectVersionRow> =>
    registry.version(await subject(request), versionChoice(request), flag(request, 'deleted'));

  /** Who sends a descriptor gets one: Confluent's Python client keeps the answer and decodes by it. */
  const answer = async (request: FastifyRequest, input: SchemaInput, row: SubjectVersionRow) => {
    const asked = queryText(request, 'format') ?? '';
    const serialized = asked === '' && row.type === 'PROTOBUF' && isDescriptorText(input.schema);
    const form = serialized ? 'serialized' : asked;
    return versionBody(row, await registry.contents.formatted(row, form));
  };

  app.get('/subjects', async (request) => {
    const prefix = queryText(request, 'subjectPrefix') ?? ':*:';
    const deletedOnly = flag(request, 'deletedOnly');
    const rows = await registry.subjects(prefix, deletedOnly || flag(request, 'deleted'));
    const shown = deletedOnly ? rows.filter((row) => row.allDeleted) : rows;
    return page(
      request,
      shown.map((row) => row.subject),
    );
  });

  app.post('/subjects/:subject', async (request) => {
    const options = { normalize: flag(request, 'normalize'), deleted: flag(request, 'deleted') };
    const input = schemaInput(request);
    const row = await registry.lookup(await subject(request), input, options);
    return answer(request, input, row);
  });

  app.delete('/subjects/:subject', async (request) =>
    registry.deleteSubject(await subject(request), flag(request, 'permanent')),
  );

  app.get('/subjects/:subject/metadata', async (request) => {
    const [names, values] = [queryTexts(request, 'key'), queryTexts(request, 'value')];
    if (names.length !== values.length) throw errors.invalidRequest('give a value for each key');
    const properties = new Map(names.map((name, at) => [name, values[at]!]));
    const deleted = flag(request, 'deleted');
    const row = await registry.latestWithMetadata(await subject(request), properties, deleted);
    return versionBody(row, await textFor(request, registry, row));
  });

  app.get('/subjects/:subject/versions', async (request) => {
    const deletedOnly = flag(request, 'deletedOnly');
    const deleted = deletedOnly || flag(request, 'deleted');
    const rows = await registry.versions(await subject(request), deleted);
    const shown = deletedOnly ? rows.filter((row) => row.deleted) : rows;
    return page(
      request,
      shown.map((row) => row.version),
    );
  });

  app.post('/subjects/:subject/versions', async (request) => {
    const normalize = flag(request, 'normalize');
    const input = schemaInput(request);
    const row = await registry.register(await subject(request), input, normalize);
    return answer(request, input, row);
  });

  app.get('/subjects/:subject/versions/:version', async (request) => {
    const row = await chosen(request);
    return versionBody(row, await textFor(request, registry, row));
  });

  app.get('/subjects/:subject/versions/:version/schema', async (request) =>
    textFor(request, registry, await chosen(request)),
  );

  app.get('/subjects/:subject/versions/:version/referencedby', async (request) =>
    registry.referencedBy(await subject(request), versionChoice(request)),
  );

  app.delete('/subjects/:subject/versions/:version', async (request) =>
    registry.deleteVersion(
      await subject(request),
      versionChoice(request),
      flag(request, 'permanent'),
    ),
  );

  app.post('/compatibility/subjects/:subject/versions', (request) => check(request, registry));

  app.post('/compatibility/subjects/:subject/versions/:version', (request) =>
    check(request, registry, versionChoice(request)),
  );
}

async function check(request: FastifyRequest, registry: SchemaRegistry, choice?: VersionChoice) {
  const subject = await registry.settings.target(pathSubject(request));
  const { compatible, messages } = await registry.check(subject, schemaInput(request), {
    normalize: flag(request, 'normalize'),
    ...(choice === undefined ? {} : { choice }),
  });
  return {
    is_compatible: compatible,
    ...(flag(request, 'verbose') ? { messages } : {}),
  };
}
