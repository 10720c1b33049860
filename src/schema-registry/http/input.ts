// What comes in over HTTP → typed values: paths, query strings, bodies. Everything wrong is a 42x with its reason.
import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { lazy } from '../../base/lazy.ts';
import { parseMetadata, parseRuleSet } from '../contract.ts';
import { errors } from '../errors.ts';
import type { RegisterInput, VersionChoice } from '../registration.ts';
import { normalSubject } from '../subjects.ts';
import { zod } from '../zod.ts';

const schemaBody = lazy(() => {
  const { z } = zod();
  const reference = z.object({ name: z.string(), subject: z.string(), version: z.number().int() });
  return z.object({
    schema: z.string().nullish(),
    schemaType: z.string().nullish(),
    references: z.array(reference).max(10_000).nullish(),
    metadata: z.unknown().optional(),
    ruleSet: z.unknown().optional(),
    id: z.number().int().nullish(),
    version: z.number().int().nullish(),
  });
});

const anyObject = lazy(() => {
  const { z } = zod();
  return z.record(z.string(), z.unknown());
});

/** The body of a registration, look-up or check. Ids below 1 count as not given, as in Confluent. */
export function schemaInput(request: FastifyRequest): RegisterInput {
  const body = parse(schemaBody(), request.body ?? {});
  return {
    schema: body.schema ?? '',
    schemaType: body.schemaType ?? undefined,
    references: body.references ?? undefined,
    metadata: parseMetadata(body.metadata),
    ruleSet: parseRuleSet(body.ruleSet),
    id: positive(body.id),
    // 0 is how clients say "none"; −1 asks for the next one.
    version: body.version || undefined,
  };
}

/** Any JSON object. */
export function objectBody(request: FastifyRequest): Record<string, unknown> {
  return parse(anyObject(), request.body ?? {});
}

/** A part of the path, e.g. `version`; decoded. */
export function pathPart(request: FastifyRequest, name: string): string {
  return (request.params as Record<string, string>)[name] ?? '';
}

/** The `subject` of the path in its normal form; '' for the default context by itself. */
export function pathSubject(request: FastifyRequest): string {
  return normalSubject(pathPart(request, 'subject'));
}

/** The `subject` of the query string, which says in which context an id is. */
export function querySubject(request: FastifyRequest): string {
  return normalSubject(queryText(request, 'subject') ?? '');
}

/** The `version` of the path: a number from 1, `latest`, or −1 for the same. @throws FloeError 42202. */
export function versionChoice(request: FastifyRequest): VersionChoice {
  const text = pathPart(request, 'version');
  if (text === 'latest' || text === '-1') return 'latest';
  const number = Number(text);
  if (!/^\d+$/.test(text) || number < 1 || number > 2 ** 31 - 1) throw errors.invalidVersion(text);
  return number;
}

/** The `id` of the path. @throws FloeError 40403 for what can't be one. */
export function schemaId(request: FastifyRequest): number {
  const text = pathPart(request, 'id');
  const number = Number(text);
  if (!/^\d+$/.test(text) || number > 2 ** 31 - 1) throw errors.schemaNotFound(text);
  return number;
}

/** A yes-or-no of the query string; absent is no. */
export function flag(request: FastifyRequest, name: string): boolean {
  return queryText(request, name)?.toLowerCase() === 'true';
}

/** A text of the query string. */
export function queryText(request: FastifyRequest, name: string): string | undefined {
  const value = (request.query as Record<string, string | string[] | undefined>)[name];
  return Array.isArray(value) ? value.at(-1) : value;
}

/** All values of a key that may come several times. */
export function queryTexts(request: FastifyRequest, name: string): readonly string[] {
  const value = (request.query as Record<string, string | string[] | undefined>)[name];
  return value === undefined ? [] : Array.isArray(value) ? value : [value];
}

/** The part of `items` that `offset` and `limit` of the query string ask for; a negative limit is none. */
export function page<T>(request: FastifyRequest, items: readonly T[]): readonly T[] {
  const offset = Number(queryText(request, 'offset') ?? 0);
  const limit = Number(queryText(request, 'limit') ?? -1);
  if (!Number.isInteger(offset) || !Number.isInteger(limit) || offset < 0)
    throw errors.invalidRequest('offset and limit are whole numbers');
  return items.slice(offset, limit < 0 ? undefined : offset + limit);
}

function parse<T>(type: z.ZodType<T>, body: unknown): T {
  const result = type.safeParse(body);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw errors.invalidRequest(
    `${issue?.path.join('.') ?? 'body'}: ${issue?.message ?? 'not valid'}`,
  );
}

function positive(value: number | null | undefined): number | undefined {
  return value === null || value === undefined || value < 1 ? undefined : value;
}
