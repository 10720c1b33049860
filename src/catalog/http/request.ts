// Reading requests: names in paths, paging, bodies. Everything here is untrusted.
import type { FastifyRequest } from 'fastify';
import { FloeError } from '../../base/error.ts';
import {
  asList,
  asObject,
  asPartitionFields,
  asSchema,
  asSortFields,
  asText,
  asTextMap,
  asViewVersion,
  type Json,
} from '../../formats/iceberg/index.ts';
import { LEVEL_SEPARATOR } from '../../metadata/catalog.ts';
import type { TableIdentifier, TableRequirement, TableUpdate } from '../catalog.ts';
import type { TableRequest } from '../embedded.ts';
import type { ViewRequest } from '../views.ts';

type Params = Readonly<Record<string, string>>;

/** The namespace of a path: levels separated by U+001F (sent as `%1F`). */
export function namespaceOf(request: FastifyRequest): string[] {
  return (request.params as Params)['namespace']!.split(LEVEL_SEPARATOR);
}

export function tableOf(request: FastifyRequest): TableIdentifier {
  return { namespace: namespaceOf(request), name: (request.params as Params)['table']! };
}

export function viewOf(request: FastifyRequest): TableIdentifier {
  return { namespace: namespaceOf(request), name: (request.params as Params)['view']! };
}

export function queryOf(request: FastifyRequest, name: string): string | undefined {
  const value = (request.query as Record<string, string | string[] | undefined>)[name];
  return Array.isArray(value) ? value[0] : value;
}

export function bodyOf(request: FastifyRequest): Json {
  return asObject(request.body, 'the request body');
}

export function namespaceFrom(value: unknown): string[] {
  return asList(value, 'namespace').map((level) => asText(level, 'a namespace level'));
}

export function identifierFrom(value: unknown): TableIdentifier {
  const raw = asObject(value, 'table identifier');
  return {
    namespace: namespaceFrom(raw['namespace']),
    name: asText(raw['name'], 'the name of the table'),
  };
}

export function tableRequestFrom(body: Json): TableRequest {
  const optional = <T>(key: string, read: (value: unknown) => T) =>
    body[key] === undefined || body[key] === null ? undefined : read(body[key]);
  const location = optional('location', (value) => asText(value, 'location'));
  return {
    name: asText(body['name'], 'name'),
    schema: asSchema(body['schema']),
    partitionFields: optional('partition-spec', asPartitionFields) ?? [],
    sortFields: optional('write-order', asSortFields) ?? [],
    properties: optional('properties', (value) => asTextMap(value, 'properties')) ?? {},
    ...(location === undefined ? {} : { location }),
  };
}

export function viewRequestFrom(body: Json): ViewRequest {
  const location = body['location'];
  return {
    name: asText(body['name'], 'name'),
    schema: asSchema(body['schema']),
    version: asViewVersion(body['view-version']),
    properties: asTextMap(body['properties'] ?? {}, 'properties'),
    ...(location === undefined || location === null
      ? {}
      : { location: asText(location, 'location') }),
  };
}

export function commitFrom(body: Json) {
  const objects = (key: string) =>
    asList(body[key], key).map((item) => asObject(item, `an entry of "${key}"`));
  return {
    requirements: (body['requirements'] === undefined
      ? []
      : objects('requirements')) as TableRequirement[],
    updates: objects('updates') as TableUpdate[],
  };
}

/** Entries of a page when the client sends no size. */
const DEFAULT_PAGE = 1000;

export interface Page<T> {
  readonly items: readonly T[];
  /** Undefined when the client didn't ask for pages; null after the last. */
  readonly next: string | null | undefined;
}

/**
 * Serves one page: a client asks for pages by sending `pageToken`, empty at first; without it, it gets everything.
 * One entry more than asked for is read to know whether there is another page.
 */
export async function page<T>(
  request: FastifyRequest,
  read: (range: { readonly after?: string; readonly limit?: number }) => Promise<readonly T[]>,
  nameOf: (item: T) => string,
): Promise<Page<T>> {
  const token = queryOf(request, 'pageToken');
  if (token === undefined) return { items: await read({}), next: undefined };
  const asked = queryOf(request, 'pageSize') ?? String(DEFAULT_PAGE);
  if (!/^[1-9]\d{0,9}$/.test(asked))
    throw new FloeError('invalid', `pageSize "${asked.slice(0, 20)}" is not a number above 0`);
  const size = Math.min(Number(asked), DEFAULT_PAGE);
  const after = Buffer.from(token, 'base64url').toString('utf8');
  const found = await read({ after, limit: size + 1 });
  const items = found.slice(0, size);
  const last = items.at(-1);
  const next =
    found.length > size && last !== undefined
      ? Buffer.from(nameOf(last)).toString('base64url')
      : null;
  return { items, next };
}

export const nextToken = ({ next }: Page<unknown>) =>
  next === undefined ? {} : { 'next-page-token': next };
