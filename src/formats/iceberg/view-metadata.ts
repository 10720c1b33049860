// Views: their metadata as data, new ones, and updates applied one after another. Pure, like metadata-builder.ts.
// SQL in them is kept, never read. Source: Iceberg view spec; REST OpenAPI ViewMetadata, ViewUpdate, AssertViewUUID.
import { FloeError } from '../../base/error.ts';
import { parseIcebergJson, stringifyIcebergJson } from './json.ts';
import { LAST_ADDED } from './metadata-builder.ts';
import { sameSchema } from './schema.ts';
import { asInt, asList, asObject, asSchema, asText, asTextMap, type Json } from './shapes.ts';
import type { Schema } from './types.ts';

export interface ViewRepresentation {
  readonly type: string;
  readonly sql: string;
  readonly dialect: string;
}

export interface ViewVersion {
  readonly 'version-id': number;
  readonly 'timestamp-ms': number;
  readonly 'schema-id': number;
  readonly summary: Readonly<Record<string, string>>;
  readonly representations: readonly ViewRepresentation[];
  readonly 'default-catalog'?: string;
  readonly 'default-namespace': readonly string[];
}

export interface ViewMetadata {
  readonly 'view-uuid': string;
  readonly 'format-version': number;
  readonly location: string;
  readonly schemas: readonly Schema[];
  readonly 'current-version-id': number;
  readonly versions: readonly ViewVersion[];
  readonly 'version-log': readonly {
    readonly 'version-id': number;
    readonly 'timestamp-ms': number;
  }[];
  readonly properties: Readonly<Record<string, string>>;
}

const VIEW_FORMAT_VERSION = 1;
/** Properties that rule a view's history. Source: Iceberg view spec, "View metadata". */
const HISTORY_SIZE = 'version.history.num-entries';
const DROP_DIALECT_ALLOWED = 'replace.drop-dialect.allowed';
const DEFAULT_HISTORY_SIZE = 10;

const invalid = (message: string) => new FloeError('invalid', message);

/** JSON text of a view's metadata file. @throws FloeError `corrupt` naming what is wrong, `unsupported`. */
export function parseViewMetadata(text: string): ViewMetadata {
  try {
    const raw = asObject(parseIcebergJson(text), 'view metadata');
    const version = asInt(raw['format-version'], 'format-version');
    if (version !== VIEW_FORMAT_VERSION)
      throw new FloeError('unsupported', `view format version ${version} is not known here`);
    const metadata: ViewMetadata = {
      'view-uuid': asText(raw['view-uuid'], 'view-uuid'),
      'format-version': version,
      location: asText(raw['location'], 'location'),
      schemas: asList(raw['schemas'], 'schemas').map(asSchema),
      'current-version-id': asInt(raw['current-version-id'], 'current-version-id'),
      versions: asList(raw['versions'], 'versions').map(asViewVersion),
      'version-log': asList(raw['version-log'], 'version-log').map(asLogEntry),
      properties: asTextMap(raw['properties'] ?? {}, 'properties'),
    };
    currentViewVersion(metadata);
    return metadata;
  } catch (caught) {
    const error = FloeError.from(caught);
    if (error.code === 'unsupported') throw error;
    throw new FloeError('corrupt', `view metadata: ${error.message}`, { cause: caught });
  }
}

export function serialiseViewMetadata(metadata: ViewMetadata): string {
  return stringifyIcebergJson(metadata);
}

/** The version that a view stands for. @throws FloeError `invalid` when there is none of that id. */
export function currentViewVersion(metadata: ViewMetadata): ViewVersion {
  const id = metadata['current-version-id'];
  const found = metadata.versions.find((version) => version['version-id'] === id);
  if (found === undefined) throw invalid(`the view has no version ${id}, its current one`);
  return found;
}

function asLogEntry(value: unknown) {
  const raw = asObject(value, 'an entry of version-log');
  return {
    'version-id': asInt(raw['version-id'], 'version-id'),
    'timestamp-ms': asInt(raw['timestamp-ms'], 'timestamp-ms'),
  };
}

/** Untrusted JSON → a version. @throws FloeError `invalid`. */
export function asViewVersion(value: unknown): ViewVersion {
  const raw = asObject(value, 'view-version');
  const catalog = raw['default-catalog'];
  return {
    'version-id': asInt(raw['version-id'], 'version-id'),
    'timestamp-ms': asInt(raw['timestamp-ms'], 'timestamp-ms'),
    'schema-id': asInt(raw['schema-id'], 'schema-id'),
    summary: asTextMap(raw['summary'], 'summary'),
    representations: asList(raw['representations'], 'representations').map(asRepresentation),
    ...(catalog === undefined || catalog === null
      ? {}
      : { 'default-catalog': asText(catalog, 'default-catalog') }),
    'default-namespace': asList(raw['default-namespace'], 'default-namespace').map((level) =>
      asText(level, 'default-namespace'),
    ),
  };
}

function asRepresentation(value: unknown): ViewRepresentation {
  const raw = asObject(value, 'a representation');
  const type = asText(raw['type'], 'type of a representation');
  if (type !== 'sql') throw invalid(`representations of a view are of type "sql", not "${type}"`);
  const dialect = asText(raw['dialect'], 'dialect');
  if (dialect === '') throw invalid('Invalid dialect: (empty string)');
  return { type, sql: asText(raw['sql'], 'sql'), dialect };
}

/** Checks requirements. @throws FloeError `conflict` for one that doesn't hold, `invalid` for an unknown one. */
export function checkViewRequirements(metadata: ViewMetadata, requirements: readonly Json[]): void {
  for (const requirement of requirements) {
    const type = asText(requirement['type'], 'type of a requirement');
    if (type !== 'assert-view-uuid') throw invalid(`unknown requirement "${type}" of a view`);
    const wanted = asText(requirement['uuid'], 'uuid');
    if (wanted.toLowerCase() !== metadata['view-uuid'].toLowerCase()) {
      throw new FloeError(
        'conflict',
        `Requirement failed: view UUID does not match: expected ${wanted}, is ${metadata['view-uuid']}`,
      );
    }
  }
}

export interface NewView {
  readonly uuid: string;
  readonly location: string;
  readonly schema: Schema;
  readonly version: ViewVersion;
  readonly properties: Readonly<Record<string, string>>;
  readonly nowMs: number;
}

/** Metadata of a new view; its schema gets id 0. @throws FloeError `invalid`. */
export function newViewMetadata(view: NewView): ViewMetadata {
  const builder = new ViewBuilder(undefined, view.nowMs);
  builder.assignUuid(view.uuid);
  builder.setLocation(view.location);
  builder.setProperties(view.properties);
  builder.addSchema(view.schema);
  builder.addVersion({ ...view.version, 'schema-id': LAST_ADDED });
  builder.setCurrentVersion(LAST_ADDED);
  return builder.build();
}

/** Applies updates in order. @throws FloeError `invalid` (unknown or impossible). */
export function applyViewUpdates(
  base: ViewMetadata,
  updates: readonly Json[],
  nowMs: number,
): ViewMetadata {
  const builder = new ViewBuilder(base, nowMs);
  for (const update of updates) {
    const action = asText(update['action'], 'action of an update');
    if (!Object.hasOwn(HANDLERS, action)) throw invalid(`unknown update "${action}" of a view`);
    HANDLERS[action]!(builder, update);
  }
  return builder.build();
}

const HANDLERS: Readonly<Record<string, (builder: ViewBuilder, update: Json) => void>> = {
  'assign-uuid': (builder, { uuid }) => builder.assignUuid(asText(uuid, 'uuid')),
  'upgrade-format-version': (_builder, update) => {
    const version = asInt(update['format-version'], 'format-version');
    if (version !== VIEW_FORMAT_VERSION)
      throw invalid(`view format version ${version} does not exist: ${VIEW_FORMAT_VERSION} does`);
  },
  'add-schema': (builder, { schema }) => builder.addSchema(asSchema(schema)),
  'set-location': (builder, { location }) => builder.setLocation(asText(location, 'location')),
  'set-properties': (builder, { updates }) => builder.setProperties(asTextMap(updates, 'updates')),
  'remove-properties': (builder, { removals }) =>
    builder.removeProperties(asList(removals, 'removals').map((name) => asText(name, 'removals'))),
  'add-view-version': (builder, update) =>
    builder.addVersion(asViewVersion(update['view-version'])),
  'set-current-view-version': (builder, update) =>
    builder.setCurrentVersion(asInt(update['view-version-id'], 'view-version-id')),
};

type Draft = { -readonly [K in keyof ViewMetadata]: ViewMetadata[K] };

class ViewBuilder {
  readonly #before: ViewMetadata | undefined;
  readonly #draft: Draft;
  readonly #nowMs: number;
  readonly #addedVersions = new Set<number>();
  #lastSchema: number | undefined;
  #lastVersion: number | undefined;

  constructor(base: ViewMetadata | undefined, nowMs: number) {
    this.#before = base;
    this.#nowMs = nowMs;
    this.#draft = {
      'view-uuid': '',
      'format-version': VIEW_FORMAT_VERSION,
      location: '',
      schemas: [],
      'current-version-id': LAST_ADDED,
      versions: [],
      'version-log': [],
      properties: {},
      ...base,
    };
  }

  assignUuid(uuid: string): void {
    const present = this.#draft['view-uuid'];
    if (present !== '' && present.toLowerCase() !== uuid.toLowerCase())
      throw invalid(`the view has uuid ${present}: it can't become ${uuid}`);
    if (present === '') this.#draft['view-uuid'] = uuid;
  }

  setLocation(location: string): void {
    const trimmed = location.replace(/\/+$/, '');
    if (!/^[a-z][a-z0-9+.-]*:\/\/?[^/]?/i.test(trimmed))
      throw invalid(`location "${location}" must be absolute, with its scheme (file://, s3://)`);
    this.#draft.location = trimmed;
  }

  setProperties(changes: Readonly<Record<string, string>>): void {
    this.#draft.properties = { ...this.#draft.properties, ...changes };
  }

  removeProperties(names: readonly string[]): void {
    this.#draft.properties = Object.fromEntries(
      Object.entries(this.#draft.properties).filter(([name]) => !names.includes(name)),
    );
  }

  /** An equal schema is used again under the id it has. */
  addSchema(schema: Schema): void {
    const { schemas } = this.#draft;
    const same = schemas.find((one) => sameSchema(one, schema));
    const id = same?.['schema-id'] ?? Math.max(-1, ...schemas.map((one) => one['schema-id'])) + 1;
    if (same === undefined) this.#draft.schemas = [...schemas, { ...schema, 'schema-id': id }];
    this.#lastSchema = id;
  }

  /** An equal version is used again under the id it has. */
  addVersion(version: ViewVersion): void {
    const schemaId = this.#schemaId(version['schema-id']);
    refuseTwoOfADialect(version);
    const { versions } = this.#draft;
    const wanted = { ...version, 'schema-id': schemaId };
    const same = versions.find((one) => sameVersion(one, wanted));
    const id =
      same?.['version-id'] ??
      Math.max(version['version-id'], ...versions.map((one) => one['version-id'] + 1));
    if (same === undefined) {
      this.#draft.versions = [...versions, { ...wanted, 'version-id': id }];
      this.#addedVersions.add(id);
    }
    this.#lastVersion = id;
  }

  #schemaId(asked: number): number {
    const id = asked === LAST_ADDED ? this.#lastSchema : asked;
    if (id === undefined) throw invalid('Cannot set last added schema: no schema has been added');
    if (!this.#draft.schemas.some((schema) => schema['schema-id'] === id))
      throw invalid(`Cannot add version with unknown schema: ${id}`);
    return id;
  }

  setCurrentVersion(asked: number): void {
    const id = asked === LAST_ADDED ? this.#lastVersion : asked;
    if (id === undefined)
      throw invalid('Cannot set last version id: no current version id has been set');
    const version = this.#draft.versions.find((one) => one['version-id'] === id);
    if (version === undefined)
      throw invalid(`Cannot set current version to unknown version: ${id}`);
    if (this.#draft['current-version-id'] === id) return;
    this.#draft['current-version-id'] = id;
    const timestamp = this.#addedVersions.has(id) ? version['timestamp-ms'] : this.#nowMs;
    this.#draft['version-log'] = [
      ...this.#draft['version-log'],
      { 'version-id': id, 'timestamp-ms': timestamp },
    ];
  }

  /** The finished metadata. @throws FloeError `invalid` when it doesn't hold together. */
  build(): ViewMetadata {
    const draft = this.#draft;
    if (draft['view-uuid'] === '') throw invalid('a view needs a uuid (assign-uuid)');
    if (draft.location === '') throw invalid('a view needs a location (set-location)');
    if (draft.versions.length === 0) throw invalid('Invalid view: no versions were added');
    const current = currentViewVersion(draft);
    if (this.#before !== undefined && draft.properties[DROP_DIALECT_ALLOWED] !== 'true')
      refuseLostDialects(currentViewVersion(this.#before), current);
    this.#expire();
    return draft;
  }

  /** Old versions go, by `version.history.num-entries`; what this change added and what is current stay. */
  #expire(): void {
    const asked = Number(this.#draft.properties[HISTORY_SIZE] ?? DEFAULT_HISTORY_SIZE);
    if (!Number.isInteger(asked) || asked <= 0)
      throw invalid(`${HISTORY_SIZE} must be positive but was ${asked}`);
    const current = this.#draft['current-version-id'];
    const held = new Set([...this.#addedVersions, current]);
    const size = Math.max(asked, held.size);
    const { versions } = this.#draft;
    if (versions.length <= size) return;
    const newest = versions.map((one) => one['version-id']).sort((a, b) => b - a);
    const kept = new Set([current, ...newest.filter((id) => id !== current).slice(0, size - 1)]);
    this.#draft.versions = versions.filter((one) => kept.has(one['version-id']));
    const log = this.#draft['version-log'];
    const gap = log.findLastIndex((entry) => !kept.has(entry['version-id']));
    this.#draft['version-log'] = log.slice(gap + 1);
  }
}

const dialectsOf = (version: ViewVersion) =>
  version.representations.map(({ dialect }) => dialect.toLowerCase());

function refuseTwoOfADialect(version: ViewVersion): void {
  const dialects = dialectsOf(version);
  const twice = dialects.find((dialect, index) => dialects.indexOf(dialect) < index);
  if (twice !== undefined)
    throw invalid(`Invalid view version: Cannot add multiple queries for dialect ${twice}`);
}

/** An engine that can read the view now must be able to afterwards, unless the view says otherwise. */
function refuseLostDialects(before: ViewVersion, after: ViewVersion): void {
  const [old, fresh] = [dialectsOf(before), dialectsOf(after)];
  if (old.every((dialect) => fresh.includes(dialect))) return;
  throw invalid(
    `Cannot replace view due to loss of view dialects (${DROP_DIALECT_ALLOWED}=false):\nPrevious dialects: [${old.join(', ')}]\nNew dialects: [${fresh.join(', ')}]`,
  );
}

/** Do two versions mean the same, ids and time apart? */
function sameVersion(a: ViewVersion, b: ViewVersion): boolean {
  const meaning = (version: ViewVersion) =>
    JSON.stringify([
      Object.entries(version.summary).sort(),
      version.representations.map(({ type, sql, dialect }) => [type, sql, dialect]),
      version['default-catalog'] ?? null,
      version['default-namespace'],
      version['schema-id'],
    ]);
  return meaning(a) === meaning(b);
}
