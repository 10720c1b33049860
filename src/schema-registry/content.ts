// What a client sends → canonical content with its identity. Resolves references and parses; keeps parsed schemas.
import { createHash } from 'node:crypto';
import { FloeError } from '../base/error.ts';
import { uuidToText } from '../base/prng.ts';
import type { RegistryMetadata, SchemaContent, SchemaRow } from '../metadata/registry.ts';
import { badDefault } from './avro/defaults.ts';
import { parseAvro } from './avro/parse.ts';
import type { AvroSchema, Names } from './avro/schema.ts';
import { avroText } from './avro/text.ts';
import { errors } from './errors.ts';
import type { SchemaReference } from './schema-source.ts';
import type { RegistrySettings } from './settings.ts';

/** A schema as a client sends it. */
export interface SchemaInput {
  readonly schema: string;
  /** AVRO when not given. */
  readonly schemaType?: string | undefined;
  readonly references?: readonly SchemaReference[] | undefined;
  readonly metadata?: unknown;
  readonly ruleSet?: unknown;
}

export interface PreparedSchema {
  readonly content: SchemaContent;
  readonly parsed: AvroSchema;
}

/** Types that Confluent's registry knows and this one doesn't serve yet, with the reason for clients. */
const UNSERVED_TYPES = ['PROTOBUF', 'JSON'];
/** Chains of references longer than this are refused: each link is a recursion. */
const MAX_REFERENCE_DEPTH = 50;

/** One walk through a schema's references: what was visited, by subject and version. */
interface Walk {
  readonly visited: Set<string>;
  readonly depth: number;
}

export class SchemaContents {
  readonly #metadata: RegistryMetadata;
  readonly #settings: RegistrySettings;
  /** Parsed schemas by id, least recently used first. */
  readonly #parsed = new Map<number, AvroSchema>();

  constructor(metadata: RegistryMetadata, settings: RegistrySettings) {
    this.#metadata = metadata;
    this.#settings = settings;
  }

  /** @throws FloeError 42201 with the reason, 42209 when the text is too large. */
  async prepare(input: SchemaInput, normalize: boolean): Promise<PreparedSchema> {
    const type = (input.schemaType ?? 'AVRO').toUpperCase();
    if (type !== 'AVRO') throw errors.invalidSchema(type, unservedReason(type));
    if (input.schema.trim() === '') throw errors.invalidSchema(type, 'Empty schema');
    this.#assertSize(input.schema);
    try {
      const references = await this.#resolveVersions(input.references ?? []);
      const known = await this.#referencedNames(references, { visited: new Set(), depth: 0 });
      const { schema: parsed } = parseAvro(input.schema, known);
      if (this.#settings['schema.registry.avro.validate.defaults']) assertDefaults(parsed);
      const schema = avroText(parsed, { known, normalize });
      const contract = contractText(input);
      const guid = guidOf([type, schema, JSON.stringify(references), contract]);
      return { parsed, content: { type, schema, references, contract, guid } };
    } catch (caught) {
      const error = FloeError.from(caught);
      if (error.code !== 'invalid' || 'registryCode' in error.details) throw error;
      throw errors.invalidSchema(type, error.message);
    }
  }

  /** The parsed form of a stored schema. */
  async parsed(row: SchemaRow): Promise<AvroSchema> {
    const known = this.#parsed.get(row.id);
    this.#parsed.delete(row.id);
    const schema = known ?? (await this.#parse(row, { visited: new Set(), depth: 0 })).schema;
    this.#parsed.set(row.id, schema);
    const [oldest] = this.#parsed.keys();
    if (this.#parsed.size > this.#settings['schema.registry.parsed.cache.size'])
      this.#parsed.delete(oldest!);
    return schema;
  }

  /** The schema's text with its references inlined, so that it stands alone. */
  async standalone(row: SchemaRow): Promise<string> {
    return row.references.length === 0 ? row.schema : avroText(await this.parsed(row));
  }

  /** Texts of all that the schema refers to, by name, each after those it depends on. */
  async resolved(row: SchemaRow): Promise<ReadonlyMap<string, string>> {
    const texts = new Map<string, string>();
    await this.#resolve(row.references, { visited: new Set(), depth: 0 }, texts);
    return texts;
  }

  async #resolve(
    references: readonly SchemaReference[],
    walk: Walk,
    texts: Map<string, string>,
  ): Promise<void> {
    if (walk.depth > MAX_REFERENCE_DEPTH)
      throw new FloeError('invalid', `references are nested deeper than ${MAX_REFERENCE_DEPTH}`);
    for (const reference of references) {
      const key = `${reference.version} ${reference.subject}`;
      if (walk.visited.has(key)) continue;
      walk.visited.add(key);
      const row = await this.#referenced(reference);
      await this.#resolve(row.references, { ...walk, depth: walk.depth + 1 }, texts);
      if (!texts.has(reference.name)) texts.set(reference.name, row.schema);
    }
  }

  /** Drops what is kept about an id that was permanently deleted. */
  forget(id: number): void {
    this.#parsed.delete(id);
  }

  #assertSize(schema: string): void {
    const limit = this.#settings['schema.registry.max.schema.bytes'];
    if (Buffer.byteLength(schema) > limit)
      throw errors.schemaTooLarge(
        `Schema is larger than ${limit} bytes (schema.registry.max.schema.bytes)`,
      );
  }

  /** Version −1 means the latest; what is stored names a number. */
  async #resolveVersions(references: readonly SchemaReference[]): Promise<SchemaReference[]> {
    const resolved: SchemaReference[] = [];
    for (const { name, subject, version } of references) {
      const { versions } = await this.#metadata.subject(subject);
      const live = versions.filter((row) => !row.deleted);
      const found = version === -1 ? live.at(-1) : live.find((row) => row.version === version);
      if (found === undefined)
        throw new FloeError('invalid', errors.missingReference({ name, subject, version }));
      resolved.push({ name, subject, version: found.version });
    }
    return resolved;
  }

  async #referencedNames(references: readonly SchemaReference[], walk: Walk): Promise<Names> {
    if (walk.depth > MAX_REFERENCE_DEPTH)
      throw new FloeError('invalid', `references are nested deeper than ${MAX_REFERENCE_DEPTH}`);
    let names: Names = new Map();
    for (const reference of references) {
      const key = `${reference.version} ${reference.subject}`;
      if (walk.visited.has(key)) continue;
      walk.visited.add(key);
      if (walk.visited.size > this.#settings['schema.registry.max.references'])
        throw new FloeError('invalid', 'too many references (schema.registry.max.references)');
      const row = await this.#referenced(reference);
      names = (await this.#parse(row, { ...walk, depth: walk.depth + 1 }, names)).names;
    }
    return names;
  }

  /** Soft-deleted versions still serve those who refer to them. */
  async #referenced(reference: SchemaReference): Promise<SchemaRow> {
    const { versions } = await this.#metadata.subject(reference.subject);
    const row = versions.find(({ version }) => version === reference.version);
    if (row === undefined) throw new FloeError('invalid', errors.missingReference(reference));
    return row;
  }

  async #parse(row: SchemaRow, walk: Walk, above: Names = new Map()) {
    const own = await this.#referencedNames(row.references, walk);
    return parseAvro(row.schema, new Map([...above, ...own]));
  }
}

function unservedReason(type: string): string {
  return UNSERVED_TYPES.includes(type)
    ? `schemas of type ${type} are not served by this version of Floe; AVRO is`
    : `unknown schema type; AVRO is served`;
}

function assertDefaults(schema: AvroSchema): void {
  const bad = badDefault(schema);
  if (bad !== undefined)
    throw new FloeError('invalid', `the default of field ${bad} does not fit its type`);
}

/** Metadata and rule set are the clients' business: kept and returned as they came. */
function contractText({ metadata, ruleSet }: SchemaInput): string {
  const given = {
    ...(metadata === undefined || metadata === null ? {} : { metadata }),
    ...(ruleSet === undefined || ruleSet === null ? {} : { ruleSet }),
  };
  return Object.keys(given).length === 0 ? '' : JSON.stringify(given);
}

/** Equal parts, equal guid: SHA-256 cut to 128 bits, in the form of a UUID. */
function guidOf(parts: readonly string[]): string {
  return uuidToText(createHash('sha256').update(JSON.stringify(parts)).digest().subarray(0, 16));
}
