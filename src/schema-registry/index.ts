// The embedded schema registry: Confluent-compatible HTTP and the direct interface for the same process.
export { registryRoutes, registryServerOptions } from './http/routes.ts';
export { SchemaRegistry } from './registry.ts';
export type {
  RegisteredSchema,
  SchemaReference,
  SchemaSource,
  SchemaType,
  SubjectVersion,
} from './schema-source.ts';
export { type RegistrySettings, registrySettings } from './settings.ts';
export { registrySource } from './source.ts';
