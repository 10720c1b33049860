// Rows → response bodies in the shape that Confluent's clients read: AVRO and empty lists are left out.
import type { SchemaRow, SubjectVersionRow } from '../../metadata/registry.ts';
import type { Mode, RegistryConfig } from '../subject-settings.ts';

/** The schema by itself, as under /schemas/ids. */
export function schemaBody(row: SchemaRow, text = row.schema) {
  return {
    guid: row.guid,
    ...(row.type === 'AVRO' ? {} : { schemaType: row.type }),
    schema: text,
    ...(row.references.length === 0 ? {} : { references: row.references }),
    ...(row.contract === '' ? {} : (JSON.parse(row.contract) as object)),
  };
}

/** A version of a subject. */
export function versionBody(row: SubjectVersionRow, text = row.schema) {
  return {
    subject: row.subject,
    version: row.version,
    id: row.id,
    ...schemaBody(row, text),
    ...(row.deleted ? { deleted: true } : {}),
  };
}

/** What is read is called compatibilityLevel, what is written compatibility. */
export function configBody({ compatibility, ...others }: RegistryConfig) {
  return {
    ...(compatibility === undefined ? {} : { compatibilityLevel: compatibility }),
    ...others,
  };
}

export function modeBody(mode: Mode) {
  return { mode };
}
