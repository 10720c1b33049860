// The catalog's public face: the contract, the embedded implementation with its HTTP routes, and the one that the
// settings choose for table topics.
export * from './catalog.ts';
export {
  EmbeddedCatalog,
  type EmbeddedCatalogOptions,
  type StoredTable,
  type TableRequest,
} from './embedded.ts';
export type { S3Access } from './http/config.ts';
export type { TokenAuthority } from './http/oauth.ts';
export { type CatalogRoutesOptions, catalogRoutes, createCatalogServer } from './http/routes.ts';
export {
  type CatalogSettings,
  type OpenCatalogOptions,
  type OpenedCatalog,
  openCatalog,
} from './open.ts';
export { catalogSettings } from './settings.ts';
export { CatalogTokens } from './tokens.ts';
export { Warehouse } from './warehouse.ts';
