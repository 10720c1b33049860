// SQL over committed tables: the service and its HTTP route.
export { CopiedFiles, type FileAccess, LocalFiles } from './file-access.ts';
export { type SqlRoutesOptions, sqlRoutes } from './http/routes.ts';
export { type OpenQueryOptions, openQueries } from './open.ts';
export type { TableDirectory } from './resolve.ts';
export { type QueryResult, QueryService, type QueryServiceOptions } from './service.ts';
export { querySettings } from './settings.ts';
