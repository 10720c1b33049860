// The registry without HTTP, for table topics and the CLI in the same process. Avro texts stand alone (references are
// inlined); the others come with the texts they refer to, so a decoder needs no second look-up.
import type { SchemaRow, SubjectVersionRow } from '../metadata/registry.ts';
import { errors } from './errors.ts';
import type { SchemaRegistry } from './registry.ts';
import type {
  RegisteredSchema,
  SchemaSource,
  SchemaType,
  SubjectVersion,
} from './schema-source.ts';
import { contextOf } from './subjects.ts';

/** The embedded registry as a SchemaSource. */
export function registrySource(registry: SchemaRegistry): SchemaSource {
  const toSchema = async (row: SchemaRow): Promise<RegisteredSchema> => ({
    id: row.id,
    guid: row.guid,
    type: row.type as SchemaType,
    schema: row.type === 'AVRO' ? await registry.contents.formatted(row, 'resolved') : row.schema,
    references: row.references,
    resolved: row.type === 'AVRO' ? new Map() : await registry.contents.resolved(row),
  });
  const toVersion = async (row: SubjectVersionRow): Promise<SubjectVersion> => ({
    ...(await toSchema(row)),
    subject: row.subject,
    version: row.version,
  });
  return {
    byId: async (id) => toSchema(await registry.byId(id)),
    byGuid: async (guid) => toSchema(await registry.byGuid(guid.toLowerCase())),
    async latest(subject) {
      const name = await registry.settings.target(subject);
      const row = await registry.version(name, 'latest', false);
      // Look-ups go on in other contexts, whose ids mean something else.
      if (row.subject !== name) throw errors.subjectNotFound(subject);
      return toVersion(row);
    },
    async versionOf(subject, schemaId) {
      const name = await registry.settings.target(subject);
      // Soft-deleted versions count: records of that version are still in the log and keep their order.
      const places = await registry.placesOf({ context: contextOf(name), id: schemaId });
      return places.findLast((place) => place.subject === name)?.version;
    },
    async register(subject, schema, type) {
      const name = await registry.settings.target(subject);
      return (await registry.register(name, { schema, schemaType: type })).id;
    },
  };
}
