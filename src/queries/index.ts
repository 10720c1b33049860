// SQL over committed tables: the service, its HTTP route, and what formats its answers.
export { CopiedFiles, type FileAccess, LocalFiles } from './file-access.ts';
export { formatResult, type ResultFormat, type TabularResult } from './format.ts';
export { type SqlRoutesOptions, sqlRoutes } from './http/routes.ts';
export { type OpenQueryOptions, openQueries } from './open.ts';
export type { TableDirectory } from './resolve.ts';
export { type QueryResult, QueryService, type QueryServiceOptions } from './service.ts';
export { querySettings } from './settings.ts';
