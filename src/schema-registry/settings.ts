// Settings of the embedded schema registry. Compatibility, mode and normalisation are data, set over HTTP.
import { bool, int, type Values } from '../base/settings.ts';

export const registrySettings = {
  'schema.registry.avro.validate.defaults': bool({
    default: false,
    doc: 'Refuse new Avro schemas whose defaults do not fit their type. Off, as in Confluent, so that what was registered elsewhere can be registered here.',
    aliases: ['avro.validate.defaults'],
  }),
  'schema.registry.max.schema.bytes': int({
    default: 1_048_576,
    min: 1_024,
    max: 16_777_216,
    doc: 'Largest schema text. Bounds the work of parsing and comparing; the largest real schemas are some hundred KiB.',
  }),
  'schema.registry.max.versions.per.subject': int({
    default: 10_000,
    min: 1,
    doc: 'Versions of one subject, soft-deleted ones included. A producer that registers a schema per record hits it before the store suffers.',
  }),
  'schema.registry.max.references': int({
    default: 200,
    min: 1,
    max: 10_000,
    doc: 'Schemas that one schema may refer to, directly and through others.',
  }),
  'schema.registry.parsed.cache.size': int({
    default: 1_000,
    min: 1,
    doc: 'Parsed schemas kept in memory: of stored ones for compatibility checks, and of texts that clients sent, for look-ups.',
  }),
  'schema.registry.cache.bytes': int({
    default: 16_777_216,
    min: 0,
    doc: 'Texts of schemas, and of the versions of subjects, kept in memory for look-ups; each up to this size.',
  }),
} as const;

export type RegistrySettings = Values<typeof registrySettings>;
