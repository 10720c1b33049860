// The registry itself: register, look up, read, check, delete. HTTP (http/) and the direct interface (source.ts)
// both go through it. State lives in the metadata store, behind a cache; a change is checked on what was loaded and
// lands by compare-and-set on the subject's stamp. Subjects come in their normal form (subjects.ts), aliases resolved.
import { FloeError, isFloeError } from '../base/error.ts';
import { Mutex } from '../base/queue.ts';
import type {
  ContextId,
  RegistryMetadata,
  SchemaRow,
  SubjectRow,
  SubjectVersionRow,
  VersionFilter,
} from '../metadata/registry.ts';
import { CachedRegistry } from './cached-store.ts';
import { type PreparedSchema, SchemaContents, type SchemaInput } from './content.ts';
import { mergedContract } from './contract.ts';
import { errors } from './errors.ts';
import { comparedVersions, context, incompatibilities } from './levels.ts';
import {
  assertImport,
  assertSubject,
  choose,
  contractOf,
  groupOf,
  ifMissing,
  live,
  populated,
  positiveVersion,
  type RegisterInput,
  translateAdd,
  type VersionChoice,
} from './registration.ts';
import { sameSchema } from './same-schema.ts';
import type { RegistrySettings } from './settings.ts';
import {
  type EffectiveConfig,
  type RegistryConfig,
  SubjectSettings,
  takesIds,
} from './subject-settings.ts';
import { contextOf, DEFAULT_CONTEXT, parsePrefix, parseSubject, subjectName } from './subjects.ts';

export interface CompatibilityVerdict {
  readonly compatible: boolean;
  readonly messages: readonly string[];
}

/** Rounds of load, check, write before a change gives up against other writers. */
const MAX_ATTEMPTS = 20;
export class SchemaRegistry {
  readonly settings: SubjectSettings;
  readonly contents: SchemaContents;
  readonly #metadata: RegistryMetadata;
  readonly #limits: RegistrySettings;
  /** One change at a time in this process: they would only meet as conflicts in the store. */
  readonly #changes = new Mutex();

  /** `store` is written by nobody else. */
  constructor(store: RegistryMetadata, limits: RegistrySettings) {
    const metadata = new CachedRegistry(store, limits['schema.registry.cache.bytes']);
    this.#metadata = metadata;
    this.#limits = limits;
    this.contents = new SchemaContents(metadata, limits);
    this.settings = new SubjectSettings(metadata, () => this.contents.clear());
  }

  /** Registers under the subject; the same content gives the same id, and the same live version. */
  register(subject: string, input: RegisterInput, normalize = false): Promise<SubjectVersionRow> {
    assertSubject(subject);
    return this.#change(async () => {
      const mode = await this.settings.assertWritable(subject);
      assertImport(subject, mode, input);
      const config = await this.settings.effectiveConfig(subject);
      const row = await this.#metadata.subject(subject);
      const filled = takesIds(mode) ? input : populated(input, row, config);
      const prepared = await this.#prepare(
        subject,
        filled,
        normalize || (config.normalize ?? false),
      );
      const existing =
        input.version === undefined ? await this.#findSame(prepared, live(row)) : undefined;
      if (existing !== undefined && (input.id ?? existing.id) === existing.id) return existing;
      if (!takesIds(mode)) await this.#assertMayFollow(subject, prepared, row, config);
      return this.#add(subject, positiveVersion(input), prepared, row.stamp);
    });
  }

  /** The version that holds this schema. @throws FloeError 40401, 40403. */
  lookup(
    subject: string,
    input: SchemaInput,
    options: { normalize: boolean; deleted: boolean },
  ): Promise<SubjectVersionRow> {
    return this.#inContexts(subject, (name) => this.#lookup(name, input, options));
  }

  async #lookup(
    subject: string,
    input: SchemaInput,
    options: { normalize: boolean; deleted: boolean },
  ): Promise<SubjectVersionRow> {
    const versions = await this.#versions(subject, options.deleted);
    const config = await this.settings.effectiveConfig(subject);
    const normalize = options.normalize || (config.normalize ?? false);
    const plain = await this.#prepare(subject, input, normalize);
    const found = await this.#findSame(plain, versions);
    if (found !== undefined) return found;
    // As registration would complete it.
    const { metadata, ruleSet } = mergedContract(input, contractOf(versions.at(-1)), config);
    if (metadata === undefined && ruleSet === undefined) throw errors.schemaNotFound();
    const full = await this.#prepare(subject, { ...input, metadata, ruleSet }, normalize);
    const completed = await this.#findSame(full, versions);
    if (completed === undefined) throw errors.schemaNotFound();
    return completed;
  }

  /** `subject`, if given, says in which context to look. @throws FloeError 40403. */
  async byId(id: number, subject = ''): Promise<SchemaRow> {
    const { context: own, subject: name } = parseSubject(subject);
    const row = await this.#metadata.schema({ context: own, id });
    if (row !== undefined) return row;
    if (own === DEFAULT_CONTEXT && name !== '')
      for (const other of await this.#otherContexts()) {
        const found = await this.#metadata.schema({ context: other, id });
        const places = found === undefined ? [] : await this.#metadata.places(found);
        if (places.some((place) => parseSubject(place.subject).subject === name)) return found!;
      }
    throw errors.schemaNotFound(id);
  }

  /** @throws FloeError 40403. */
  async byGuid(guid: string): Promise<SchemaRow> {
    const row = await this.#metadata.schemaByGuid(guid);
    if (row === undefined) throw errors.schemaNotFound(guid);
    return row;
  }

  /** @throws FloeError 40403. */
  async idsOfGuid(guid: string): Promise<readonly ContextId[]> {
    const ids = await this.#metadata.idsOfGuid(guid);
    if (ids.length === 0) throw errors.schemaNotFound(guid);
    return ids;
  }

  /** Where the id is registered. @throws FloeError 40403 when nowhere. */
  async places(
    id: number,
    { subject = '', deleted }: { subject?: string; deleted: boolean },
  ): Promise<readonly { subject: string; version: number }[]> {
    const rows = await this.#metadata.places(await this.byId(id, subject));
    return rows
      .filter((row) => deleted || !row.deleted)
      .map(({ subject: name, version }) => ({ subject: name, version }));
  }

  /** Where the id is registered, soft-deleted places included; none for an unknown id. */
  placesOf(id: ContextId): ReturnType<RegistryMetadata['places']> {
    return this.#metadata.places(id);
  }

  /** The subject's versions in order. @throws FloeError 40401 when there is none. */
  versions(subject: string, deleted: boolean): Promise<readonly SubjectVersionRow[]> {
    return this.#versions(subject, deleted);
  }

  async #versions(subject: string, deleted: boolean): Promise<readonly SubjectVersionRow[]> {
    const { versions } = await this.#metadata.subject(subject);
    const shown = versions.filter((row) => deleted || !row.deleted);
    if (shown.length === 0) throw errors.subjectNotFound(subject);
    return shown;
  }

  /** @throws FloeError 40401, 40402. */
  version(subject: string, choice: VersionChoice, deleted: boolean): Promise<SubjectVersionRow> {
    return this.#inContexts(subject, async (name) =>
      choose(await this.#versions(name, deleted), choice),
    );
  }

  /** The newest version that has these metadata properties. @throws FloeError 40401, 40403. */
  async latestWithMetadata(
    subject: string,
    properties: ReadonlyMap<string, string>,
    deleted: boolean,
  ): Promise<SubjectVersionRow> {
    const versions = await this.#versions(subject, deleted);
    const found = versions.findLast((row) => {
      const own = contractOf(row).metadata?.properties ?? {};
      return [...properties].every(([name, value]) => own[name] === value);
    });
    if (found === undefined) throw errors.schemaNotFound();
    return found;
  }

  /** `.` first. */
  contexts(): Promise<readonly string[]> {
    return this.#metadata.contexts();
  }

  /** Subjects that a prefix as clients write it covers, soft-deleted ones if asked for. */
  async subjects(prefix: string, deleted: boolean) {
    const lists = (await this.#filters(prefix, deleted)).map((one) => this.#metadata.subjects(one));
    return (await Promise.all(lists)).flat();
  }

  /** Their versions, in order of subject and version. */
  async allVersions(prefix: string, deleted: boolean): Promise<readonly SubjectVersionRow[]> {
    const lists = (await this.#filters(prefix, deleted)).map((one) => this.#metadata.versions(one));
    return (await Promise.all(lists)).flat();
  }

  async #filters(text: string, deleted: boolean): Promise<readonly VersionFilter[]> {
    const { context: own, subject } = parsePrefix(text);
    if (own !== undefined)
      return [{ prefix: subjectName({ context: own, subject }), context: own, deleted }];
    if (subject === '') return [{ prefix: '', deleted }];
    return (await this.contexts()).map((one) => ({
      prefix: subjectName({ context: one, subject }),
      context: one,
      deleted,
    }));
  }

  /** Ids of live schemas that refer to the version. @throws FloeError 40401, 40402. */
  async referencedBy(subject: string, choice: VersionChoice): Promise<readonly number[]> {
    const { version } = await this.version(subject, choice, true);
    return this.#metadata.referencedBy(subject, version);
  }

  /**
   * Would the schema be accepted? Against one version if `choice` is given, else against those of the level.
   * A subject without versions accepts everything, unless a version is asked for by number.
   */
  async check(
    subject: string,
    input: SchemaInput,
    options: { normalize: boolean; choice?: VersionChoice },
  ): Promise<CompatibilityVerdict> {
    const config = await this.settings.effectiveConfig(subject);
    const live = (await this.#metadata.subject(subject)).versions.filter((row) => !row.deleted);
    const { choice } = options;
    if (live.length === 0 && typeof choice === 'number') throw errors.subjectNotFound(subject);
    const against = choice === undefined || live.length === 0 ? live : [choose(live, choice)];
    const normalize = options.normalize || (config.normalize ?? false);
    const prepared = await this.#prepare(subject, input, normalize);
    const messages = await this.#messages(prepared, against, config);
    return { compatible: messages.length === 0, messages };
  }

  /** Soft-deletes the live versions, or removes all once they are soft-deleted. Returns their numbers. */
  deleteSubject(subject: string, permanent: boolean): Promise<readonly number[]> {
    return this.#change(async () => {
      await this.settings.assertWritable(subject);
      const { stamp, versions: all } = await this.#metadata.subject(subject);
      if (all.length === 0) throw errors.subjectNotFound(subject);
      const live = all.filter((row) => !row.deleted);
      if (permanent && live.length > 0) throw errors.subjectNotSoftDeleted(subject);
      if (!permanent && live.length === 0) throw errors.subjectSoftDeleted(subject);
      const versions = (permanent ? all : live).map((row) => row.version);
      await this.#remove({ subject, stamp, versions, permanent });
      if (permanent) this.contents.clear();
      await this.settings.forget(subject);
      return versions;
    });
  }

  /** Soft-deletes a live version, or removes a soft-deleted one. Returns its number. */
  deleteVersion(subject: string, choice: VersionChoice, permanent: boolean): Promise<number> {
    return this.#change(async () => {
      await this.settings.assertWritable(subject);
      const { stamp, versions: all } = await this.#metadata.subject(subject);
      if (all.length === 0) throw errors.subjectNotFound(subject);
      const candidates =
        choice === 'latest' && !permanent ? all.filter((row) => !row.deleted) : all;
      const { version, deleted } = choose(candidates, choice);
      if (permanent && !deleted) throw errors.versionNotSoftDeleted(subject, version);
      if (!permanent && deleted) throw errors.versionSoftDeleted(subject, version);
      await this.#remove({ subject, stamp, versions: [version], permanent });
      if (permanent) this.contents.clear();
      return version;
    });
  }

  /** Runs a change alone, again when the store says that what it was checked on has changed. */
  #change<T>(attempt: () => Promise<T>): Promise<T> {
    return this.#changes.run(async () => {
      for (let n = 1; ; n += 1) {
        try {
          return await attempt();
        } catch (caught) {
          const again = isFloeError(caught, 'conflict') && !('registryCode' in caught.details);
          if (!again || n >= MAX_ATTEMPTS) throw caught;
        }
      }
    });
  }

  #prepare(subject: string, input: SchemaInput, normalize: boolean): Promise<PreparedSchema> {
    return this.contents.prepare(input, { normalize, context: contextOf(subject) });
  }

  /** The newest of the versions that is the same schema. */
  async #findSame(
    prepared: PreparedSchema,
    versions: readonly SubjectVersionRow[],
  ): Promise<SubjectVersionRow | undefined> {
    const exact = versions.findLast((row) => row.guid === prepared.content.guid);
    if (exact !== undefined) return exact;
    for (const row of versions.toReversed())
      if (await sameSchema(this.contents, prepared, row)) return row;
    return undefined;
  }

  /** Runs a look-up; a subject without context that isn't there is looked for in the other contexts. */
  async #inContexts<T>(subject: string, find: (subject: string) => Promise<T>): Promise<T> {
    try {
      return await find(subject);
    } catch (caught) {
      const isMissing = isFloeError(caught, 'not-found');
      if (!isMissing || contextOf(subject) !== DEFAULT_CONTEXT) throw caught;
      for (const other of await this.#otherContexts()) {
        const found = await find(subjectName({ context: other, subject })).catch(ifMissing);
        if (found !== undefined) return found;
      }
      throw caught;
    }
  }

  async #otherContexts(): Promise<readonly string[]> {
    return (await this.contexts()).filter((one) => one !== DEFAULT_CONTEXT);
  }

  async #add(
    subject: string,
    input: RegisterInput,
    { content, targets }: PreparedSchema,
    stamp: number,
  ): Promise<SubjectVersionRow> {
    const place = {
      ...(input.id === undefined ? {} : { id: input.id }),
      ...(input.version === undefined ? {} : { version: input.version }),
    };
    const own = contextOf(subject);
    try {
      const request = { subject, context: own, stamp, content, targets, ...place };
      const added = await this.#metadata.addVersion(request);
      return { ...content, ...added, context: own, subject, deleted: false };
    } catch (caught) {
      throw translateAdd(caught, content.type, input);
    }
  }

  async #remove(request: Parameters<RegistryMetadata['deleteVersions']>[0]): Promise<void> {
    try {
      await this.#metadata.deleteVersions(request);
    } catch (caught) {
      const error = FloeError.from(caught);
      if (error.code !== 'invalid') throw error;
      throw errors.referenceExists(request.subject, String(error.details['version']));
    }
  }

  async #assertMayFollow(
    subject: string,
    prepared: PreparedSchema,
    { versions }: SubjectRow,
    config: EffectiveConfig,
  ): Promise<void> {
    const limit = this.#limits['schema.registry.max.versions.per.subject'];
    if (versions.length >= limit)
      throw errors.notPermitted(
        `Subject ${subject} has ${limit} versions already (schema.registry.max.versions.per.subject)`,
      );
    const live = versions.filter((row) => !row.deleted);
    const messages = await this.#messages(prepared, live, config);
    if (messages.length > 0) throw errors.incompatible(subject, messages);
  }

  /** Messages of the first incompatible version, newest first. */
  async #messages(
    prepared: PreparedSchema,
    versions: readonly SubjectVersionRow[],
    { compatibility: level = 'NONE', compatibilityGroup }: RegistryConfig,
  ): Promise<readonly string[]> {
    const group = groupOf(prepared.content, compatibilityGroup);
    const peers = versions.filter((row) => groupOf(row, compatibilityGroup) === group);
    for (const row of comparedVersions(level, peers)) {
      if (row.type !== prepared.content.type)
        return [
          'Incompatible because of different schema type',
          ...context(level, { version: row.version, text: row.schema }),
        ];
      const schema = await this.contents.parsed(row);
      const earlier = { version: row.version, text: row.schema, schema };
      const found = incompatibilities(prepared.format, level, { schema: prepared.parsed, earlier });
      if (found.length > 0) return found;
    }
    return [];
  }
}
