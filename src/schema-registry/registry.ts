// The registry itself: register, look up, read, check, delete. HTTP (http/) and the direct interface (source.ts)
// both go through it. State lives in the metadata store; a change is checked on what was loaded and lands by
// compare-and-set on the subject's stamp, so several processes may serve one store.
import { FloeError, isFloeError } from '../base/error.ts';
import { Mutex } from '../base/queue.ts';
import type {
  RegistryMetadata,
  SchemaRow,
  SubjectRow,
  SubjectVersionRow,
  VersionFilter,
} from '../metadata/registry.ts';
import { type PreparedSchema, SchemaContents, type SchemaInput } from './content.ts';
import { errors } from './errors.ts';
import { comparedVersions, context, incompatibilities } from './levels.ts';
import type { RegistrySettings } from './settings.ts';
import { type Mode, type RegistryConfig, SubjectSettings } from './subject-settings.ts';

/** A version number, or the newest. */
export type VersionChoice = number | 'latest';

export interface RegisterInput extends SchemaInput {
  /** In IMPORT mode: the id and version to use. */
  readonly id?: number | undefined;
  readonly version?: number | undefined;
}

export interface CompatibilityVerdict {
  readonly compatible: boolean;
  readonly messages: readonly string[];
}

/** Rounds of load, check, write before a change gives up against other writers. */
const MAX_ATTEMPTS = 20;
/** Longest subject name, in UTF-16 units; Kafka's topic names have at most 249. */
const MAX_SUBJECT_LENGTH = 1_024;

export class SchemaRegistry {
  readonly settings: SubjectSettings;
  readonly contents: SchemaContents;
  readonly #metadata: RegistryMetadata;
  readonly #limits: RegistrySettings;
  /** One change at a time in this process: they would only meet as conflicts in the store. */
  readonly #changes = new Mutex();

  constructor(metadata: RegistryMetadata, limits: RegistrySettings) {
    this.#metadata = metadata;
    this.#limits = limits;
    this.settings = new SubjectSettings(metadata);
    this.contents = new SchemaContents(metadata, limits);
  }

  /** Registers under the subject; the same content gives the same id, and the same live version. */
  register(subject: string, input: RegisterInput, normalize = false): Promise<SubjectVersionRow> {
    assertSubject(subject);
    return this.#change(async () => {
      const mode = await this.settings.assertWritable(subject);
      assertImport(subject, mode, input);
      const config = await this.settings.effectiveConfig(subject);
      const prepared = await this.contents.prepare(input, normalize || (config.normalize ?? false));
      const row = await this.#metadata.subject(subject);
      const existing = sameLive(row, prepared);
      if (existing !== undefined && repeats(existing, input)) return existing;
      if (mode !== 'IMPORT') await this.#assertMayFollow(subject, prepared, row, config);
      return this.#add(subject, input, prepared, row.stamp);
    });
  }

  /** The version that holds this schema. @throws FloeError 40401, 40403. */
  async lookup(
    subject: string,
    input: SchemaInput,
    options: { normalize: boolean; deleted: boolean },
  ): Promise<SubjectVersionRow> {
    const versions = await this.versions(subject, options.deleted);
    const config = await this.settings.effectiveConfig(subject);
    const normalize = options.normalize || (config.normalize ?? false);
    const { content } = await this.contents.prepare(input, normalize);
    const found = versions.findLast(({ guid }) => guid === content.guid);
    if (found === undefined) throw errors.schemaNotFound();
    return found;
  }

  /** @throws FloeError 40403. */
  async byId(id: number): Promise<SchemaRow> {
    const row = await this.#metadata.schema(id);
    if (row === undefined) throw errors.schemaNotFound(id);
    return row;
  }

  /** @throws FloeError 40403. */
  async byGuid(guid: string): Promise<SchemaRow> {
    const row = await this.#metadata.schemaByGuid(guid);
    if (row === undefined) throw errors.schemaNotFound(guid);
    return row;
  }

  /** Where the id is registered. @throws FloeError 40403 when nowhere. */
  async places(
    id: number,
    deleted: boolean,
  ): Promise<readonly { subject: string; version: number }[]> {
    await this.byId(id);
    const rows = (await this.placesOf(id)).filter((row) => deleted || !row.deleted);
    return rows.map(({ subject, version }) => ({ subject, version }));
  }

  /** Where the id is registered, soft-deleted places included; none for an unknown id. */
  placesOf(id: number): ReturnType<RegistryMetadata['places']> {
    return this.#metadata.places(id);
  }

  /** The subject's versions in order. @throws FloeError 40401 when there is none. */
  async versions(subject: string, deleted: boolean): Promise<readonly SubjectVersionRow[]> {
    const { versions } = await this.#metadata.subject(subject);
    const shown = versions.filter((row) => deleted || !row.deleted);
    if (shown.length === 0) throw errors.subjectNotFound(subject);
    return shown;
  }

  /** @throws FloeError 40401, 40402. */
  async version(
    subject: string,
    choice: VersionChoice,
    deleted: boolean,
  ): Promise<SubjectVersionRow> {
    return choose(await this.versions(subject, deleted), choice);
  }

  subjects(filter: VersionFilter) {
    return this.#metadata.subjects(filter);
  }

  allVersions(filter: VersionFilter): Promise<readonly SubjectVersionRow[]> {
    return this.#metadata.versions(filter);
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
    const prepared = await this.contents.prepare(input, options.normalize);
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
      for (const { id } of permanent ? all : []) this.contents.forget(id);
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
      const { id, version, deleted } = choose(candidates, choice);
      if (permanent && !deleted) throw errors.versionNotSoftDeleted(subject, version);
      if (!permanent && deleted) throw errors.versionSoftDeleted(subject, version);
      await this.#remove({ subject, stamp, versions: [version], permanent });
      if (permanent) this.contents.forget(id);
      return version;
    });
  }

  /** Runs a change alone in this process, again when another process was first. */
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

  async #add(
    subject: string,
    input: RegisterInput,
    { content }: PreparedSchema,
    stamp: number,
  ): Promise<SubjectVersionRow> {
    const place = {
      ...(input.id === undefined ? {} : { id: input.id }),
      ...(input.version === undefined ? {} : { version: input.version }),
    };
    try {
      const added = await this.#metadata.addVersion({ subject, stamp, content, ...place });
      return { ...content, ...added, subject, deleted: false };
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
    config: RegistryConfig & { compatibility: NonNullable<RegistryConfig['compatibility']> },
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

function choose(versions: readonly SubjectVersionRow[], choice: VersionChoice): SubjectVersionRow {
  const found =
    choice === 'latest' ? versions.at(-1) : versions.find(({ version }) => version === choice);
  if (found === undefined) throw errors.versionNotFound(choice);
  return found;
}

function sameLive(
  { versions }: SubjectRow,
  { content }: PreparedSchema,
): SubjectVersionRow | undefined {
  return versions.findLast((row) => !row.deleted && row.guid === content.guid);
}

/** True when the request asks for nothing that the live version isn't already. */
function repeats(existing: SubjectVersionRow, { id, version }: RegisterInput): boolean {
  return (id ?? existing.id) === existing.id && (version ?? existing.version) === existing.version;
}

/** The value of the metadata property that groups versions; all are one group when none is set. */
function groupOf({ contract }: { contract: string }, property: string | undefined): unknown {
  if (property === undefined || contract === '') return undefined;
  const { metadata } = JSON.parse(contract) as {
    metadata?: { properties?: Record<string, unknown> };
  };
  return metadata?.properties?.[property];
}

/** A subject is any text; only what would mean something else to Confluent's clients is refused. */
function assertSubject(subject: string): void {
  if (subject === '') throw errors.invalidSubject(subject, 'it is empty');
  if (subject.length > MAX_SUBJECT_LENGTH)
    throw errors.invalidSubject(subject, `it is longer than ${MAX_SUBJECT_LENGTH} characters`);
  if (subject.startsWith(':.')) throw errors.invalidSubject(subject, 'contexts are not served');
}

function assertImport(subject: string, mode: Mode, { id, version }: RegisterInput): void {
  if (id === undefined && mode === 'IMPORT')
    throw errors.notPermitted(`Subject ${subject} is in import mode: give the id`);
  if ((id !== undefined || version !== undefined) && mode !== 'IMPORT')
    throw errors.notPermitted(`Subject ${subject} is not in import mode`);
  for (const number of [id, version])
    if (number !== undefined && (number < 1 || number > 2 ** 31 - 1))
      throw errors.invalidRequest(`${number} is no valid id or version: 1 to 2^31-1`);
}

function translateAdd(caught: unknown, type: string, input: RegisterInput): FloeError {
  const error = FloeError.from(caught);
  if (error.code === 'not-found') return errors.invalidSchema(type, error.message);
  const { taken } = error.details;
  if (taken === undefined) return error;
  return errors.notPermitted(
    `Overwriting ${taken} ${input[taken as 'id' | 'version']} is not permitted`,
  );
}
