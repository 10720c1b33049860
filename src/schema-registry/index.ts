// The embedded schema registry: Confluent-compatible HTTP and the direct interface for the same process.
export { registryRoutes, registryServerOptions } from './http/routes.ts';
export { SchemaRegistry } from './registry.ts';
export type { SchemaSource } from './schema-source.ts';
export { registrySettings } from './settings.ts';
export { registrySource } from './source.ts';
export { normalSubject } from './subjects.ts';
