// A schema registry elsewhere as the source of schemas. What an id or GUID means never changes, so it is kept (bounded);
// the newest version of a subject is kept for a while, and so is that something isn't registered.
import type { Clock } from '../../base/clock.ts';
import { FloeError, isFloeError } from '../../base/error.ts';
import type {
  RegisteredSchema,
  SchemaReference,
  SchemaSource,
  SchemaType,
  SubjectVersion,
} from '../schema-source.ts';
import type { RegistryHttp } from './http.ts';

export interface ExternalSourceOptions {
  readonly http: Pick<RegistryHttp, 'call'>;
  readonly clock: Clock;
  /** Schemas kept. */
  readonly cacheSize: number;
  readonly latestTtlMs: number;
}

/** How long an unknown id, GUID or subject is taken for unknown. */
const UNKNOWN_TTL_MS = 5_000;

/** Schemas that one schema may refer to, directly and through others. */
const MAX_REFERENCES = 200;

const TYPES: ReadonlySet<string> = new Set(['AVRO', 'PROTOBUF', 'JSON']);

export function externalSource(options: ExternalSourceOptions): SchemaSource {
  const { http, cacheSize, latestTtlMs, clock } = options;
  const schemas = new Kept<RegisteredSchema>(clock, { size: cacheSize, ttlMs: Infinity });
  const newest = new Kept<SubjectVersion>(clock, { size: cacheSize, ttlMs: latestTtlMs });
  const places = new Kept<unknown>(clock, { size: cacheSize, ttlMs: latestTtlMs });
  const versions = new Kept<Answered>(clock, { size: cacheSize, ttlMs: Infinity });

  const referenced = ({ subject, version }: SchemaReference): Promise<Answered> => {
    const path = `/subjects/${encodeURIComponent(subject)}/versions/${version}`;
    return versions.get(path, async () => answered(await http.call(path), path));
  };

  /** Texts of all references, each after those it needs. */
  const resolve = async (answer: Answered): Promise<ReadonlyMap<string, string>> => {
    const resolved = new Map<string, string>();
    const visit = async (references: readonly SchemaReference[], above: readonly string[]) => {
      for (const reference of references) {
        const { name } = reference;
        if (resolved.has(name) || above.includes(name)) continue;
        if (resolved.size + above.length >= MAX_REFERENCES) {
          throw new FloeError('unavailable', `more than ${MAX_REFERENCES} references of a schema`);
        }
        const found = await referenced(reference);
        await visit(found.references, [...above, name]);
        resolved.set(name, found.schema);
      }
    };
    await visit(answer.references, []);
    return resolved;
  };

  const whole = async (answer: Answered, id: number, guid: string): Promise<RegisteredSchema> => ({
    id: answer.id ?? id,
    guid: answer.guid ?? guid,
    type: answer.type,
    schema: answer.schema,
    references: answer.references,
    resolved: await resolve(answer),
  });

  const look = (path: string, id: number, guid: string) =>
    schemas.get(path, async () => whole(answered(await http.call(path), path), id, guid));

  return {
    byId: (id) => look(`/schemas/ids/${id}`, id, ''),
    byGuid: (guid) => look(`/schemas/guids/${guid.toLowerCase()}`, -1, guid.toLowerCase()),
    latest: (subject) => {
      const path = `/subjects/${encodeURIComponent(subject)}/versions/latest`;
      return newest.get(path, async () => {
        const answer = answered(await http.call(path), path);
        return { ...(await whole(answer, -1, '')), subject, version: answer.version ?? -1 };
      });
    },
    async versionOf(subject, schemaId) {
      const path = `/schemas/ids/${schemaId}/versions`;
      try {
        const found = await places.get(path, () => http.call(path));
        const list = (Array.isArray(found) ? found : []) as Record<string, unknown>[];
        const own = list.findLast((place) => place['subject'] === subject);
        return own === undefined ? undefined : Number(own['version']);
      } catch (caught) {
        if (isFloeError(caught, 'not-found')) return undefined;
        throw caught;
      }
    },
    async register(subject, schema, schemaType) {
      const path = `/subjects/${encodeURIComponent(subject)}/versions`;
      const { id } = (await http.call(path, { schema, schemaType })) as { id?: unknown };
      if (typeof id === 'number') return id;
      throw new FloeError('unavailable', `the schema registry gave no id for subject "${subject}"`);
    },
  };
}

/** A schema as the registry answered, checked. */
interface Answered {
  readonly schema: string;
  readonly type: SchemaType;
  readonly references: readonly SchemaReference[];
  readonly id?: number;
  readonly guid?: string;
  readonly version?: number;
}

/** @throws FloeError `unavailable` when it is no schema: something else may stand there tomorrow. */
function answered(answer: unknown, path: string): Answered {
  const given = (answer ?? {}) as Record<string, unknown>;
  const { schema, schemaType, references, id, guid, version } = given;
  const type = schemaType ?? 'AVRO';
  const list = references ?? [];
  if (typeof schema !== 'string' || !TYPES.has(String(type)) || !isReferences(list)) {
    throw new FloeError('unavailable', `the schema registry's answer to ${path} is no schema`);
  }
  return {
    schema,
    type: type as SchemaType,
    references: list,
    ...(typeof id === 'number' ? { id } : {}),
    ...(typeof guid === 'string' ? { guid: guid.toLowerCase() } : {}),
    ...(typeof version === 'number' ? { version } : {}),
  };
}

function isReferences(value: unknown): value is readonly SchemaReference[] {
  return (
    Array.isArray(value) &&
    value.every(
      (one: Record<string, unknown> | null) =>
        typeof one?.['name'] === 'string' &&
        typeof one['subject'] === 'string' &&
        typeof one['version'] === 'number',
    )
  );
}

/** Answers by path, the least recently asked for dropped first; one request at a time for each. */
class Kept<T> {
  readonly #clock: Clock;
  readonly #limits: { readonly size: number; readonly ttlMs: number };
  readonly #entries = new Map<string, { readonly answer: Promise<T>; untilMs: number }>();

  constructor(clock: Clock, limits: { readonly size: number; readonly ttlMs: number }) {
    this.#clock = clock;
    this.#limits = limits;
  }

  get(path: string, ask: () => Promise<T>): Promise<T> {
    const now = this.#clock.monotonic();
    const known = this.#entries.get(path);
    this.#entries.delete(path);
    if (known !== undefined && now < known.untilMs) {
      this.#entries.set(path, known);
      return known.answer;
    }
    const answer = ask();
    const entry = { answer, untilMs: Infinity };
    this.#entries.set(path, entry);
    if (this.#entries.size > this.#limits.size) {
      this.#entries.delete(this.#entries.keys().next().value!);
    }
    answer.then(
      () => {
        entry.untilMs = this.#clock.monotonic() + this.#limits.ttlMs;
      },
      (caught: unknown) => {
        // Only that there is none is remembered; trouble is asked for again.
        const none = isFloeError(caught, 'not-found');
        entry.untilMs = none ? this.#clock.monotonic() + UNKNOWN_TTL_MS : -Infinity;
      },
    );
    return answer;
  }
}
