// What a client sends → canonical content with its identity. Resolves references and parses; keeps parsed schemas.
import { createHash } from 'node:crypto';
import { FloeError } from '../base/error.ts';
import { uuidToText } from '../base/prng.ts';
import type {
  ReferenceTarget,
  RegistryMetadata,
  SchemaContent,
  SchemaRow,
} from '../metadata/registry.ts';
import { contractText, type Metadata, type RuleSet } from './contract.ts';
import { errors } from './errors.ts';
import type { Dependency } from './format.ts';
import { type AnyFormat, formatOf, SCHEMA_TYPES } from './formats.ts';
import { wellKnownSource } from './protobuf/well-known.ts';
import { Recent } from './recent.ts';
import type { SchemaReference } from './schema-source.ts';
import type { RegistrySettings } from './settings.ts';
import { subjectWithin } from './subjects.ts';

/** A schema as a client sends it. */
export interface SchemaInput {
  readonly schema: string;
  /** AVRO when not given. */
  readonly schemaType?: string | undefined;
  readonly references?: readonly SchemaReference[] | undefined;
  readonly metadata?: Metadata | undefined;
  readonly ruleSet?: RuleSet | undefined;
}

export interface PreparedSchema {
  readonly content: SchemaContent;
  /** What its references lead to. */
  readonly targets: readonly ReferenceTarget[];
  readonly format: AnyFormat;
  /** What the format made of it. */
  readonly parsed: unknown;
}

interface PrepareForm {
  readonly normalize: boolean;
  /** Where references without a context lead. */
  readonly context: string;
}

/** Longer texts are parsed each time: what is kept is bounded by number. */
const MAX_KEPT_TEXT = 64 * 1024;
/** Chains of references longer than this are refused: each link is a recursion. */
const MAX_REFERENCE_DEPTH = 50;

/** One walk through a schema's references: what was visited, by subject and version. */
interface Walk {
  /** Where subjects without a context belong. */
  readonly context: string;
  readonly visited: Set<string>;
  readonly depth: number;
}

export class SchemaContents {
  readonly #metadata: RegistryMetadata;
  readonly #settings: RegistrySettings;
  /** Parsed schemas by guid and context. */
  readonly #parsed: Recent<unknown>;
  /** What was made of texts that clients sent: producers look up the same ones all the time. */
  readonly #prepared: Recent<PreparedSchema>;

  constructor(metadata: RegistryMetadata, settings: RegistrySettings) {
    this.#metadata = metadata;
    this.#settings = settings;
    this.#parsed = new Recent(settings['schema.registry.parsed.cache.size']);
    this.#prepared = new Recent(settings['schema.registry.parsed.cache.size']);
  }

  /** @throws FloeError 42201 with the reason, 42209 when the text is too large. */
  async prepare(input: SchemaInput, form: PrepareForm): Promise<PreparedSchema> {
    const key = keyOfInput(input, form);
    const known = key === undefined ? undefined : this.#prepared.get(key);
    if (known !== undefined) return known;
    const prepared = await this.#prepare(input, form);
    if (key !== undefined) this.#prepared.set(key, prepared, 1);
    return prepared;
  }

  async #prepare(input: SchemaInput, { normalize, context }: PrepareForm): Promise<PreparedSchema> {
    const type = (input.schemaType ?? 'AVRO').toUpperCase();
    const format = formatOf(type);
    if (format === undefined)
      throw errors.invalidSchema(type, `Invalid schema type ${type}: ${SCHEMA_TYPES.join(', ')}`);
    if (input.schema.trim() === '') throw errors.invalidSchema(type, 'Empty schema');
    this.#assertSize(input.schema);
    return withReason(type, async () => {
      const given = await this.#resolveVersions(input.references ?? [], context);
      const references = normalize ? sortedReferences(given) : given;
      const parsed = format.parse(input.schema, await this.#dependencies(references, context), {
        validateDefaults: this.#settings['schema.registry.avro.validate.defaults'],
      });
      const schema = format.text(parsed, { normalize });
      const contract = contractText(input);
      const guid = guidOf([type, schema, JSON.stringify(references), contract]);
      const targets = references.map(({ subject, version }) => ({
        subject: subjectWithin(context, subject),
        version,
      }));
      return { format, parsed, targets, content: { type, schema, references, contract, guid } };
    });
  }

  /** The parsed form of a stored schema, for its format. */
  async parsed(row: SchemaRow): Promise<unknown> {
    const key = keyOf(row);
    const schema = this.#parsed.get(key) ?? (await this.#parse(row));
    this.#parsed.set(key, schema, 1);
    return schema;
  }

  /** The text in the form that `format=` names; as stored for forms that the schema's format doesn't have. */
  async formatted(row: SchemaRow, form: string): Promise<string> {
    if (form === '') return row.schema;
    return withReason(row.type, async () => {
      const parsed = await this.parsed(row);
      return formatOf(row.type)?.formatted(parsed, form) ?? row.schema;
    });
  }

  /** Texts of all that the schema refers to, by name, each after those it depends on. */
  async resolved(row: SchemaRow): Promise<ReadonlyMap<string, string>> {
    const texts = new Map<string, string>();
    for (const { reference, text } of await this.#dependencies(row.references, row.context))
      if (!texts.has(reference.name)) texts.set(reference.name, text);
    return row.type === 'PROTOBUF' ? withWellKnown(row.schema, texts) : texts;
  }

  /** Drops what is kept, after versions went for good: others may have referred to them. */
  clear(): void {
    this.#parsed.clear();
    this.#prepared.clear();
  }

  #assertSize(schema: string): void {
    const limit = this.#settings['schema.registry.max.schema.bytes'];
    if (Buffer.byteLength(schema) > limit)
      throw errors.schemaTooLarge(
        `Schema is larger than ${limit} bytes (schema.registry.max.schema.bytes)`,
      );
  }

  /** Version −1 means the latest; what is stored names a number. */
  async #resolveVersions(
    references: readonly SchemaReference[],
    context: string,
  ): Promise<SchemaReference[]> {
    const resolved: SchemaReference[] = [];
    for (const { name, subject, version } of references) {
      const { versions } = await this.#metadata.subject(subjectWithin(context, subject));
      const live = versions.filter((row) => !row.deleted);
      const found = version === -1 ? live.at(-1) : live.find((row) => row.version === version);
      if (found === undefined)
        throw new FloeError('invalid', errors.missingReference({ name, subject, version }));
      resolved.push({ name, subject, version: found.version });
    }
    return resolved;
  }

  /** What the references lead to, each once and after what it depends on. */
  async #dependencies(
    references: readonly SchemaReference[],
    context: string,
  ): Promise<readonly Dependency[]> {
    const found: Dependency[] = [];
    if (references.length > 0)
      await this.#collect(references, { context, visited: new Set(), depth: 0 }, found);
    return found;
  }

  async #collect(
    references: readonly SchemaReference[],
    { context, visited, depth }: Walk,
    found: Dependency[],
  ): Promise<void> {
    if (depth > MAX_REFERENCE_DEPTH)
      throw new FloeError('invalid', `references are nested deeper than ${MAX_REFERENCE_DEPTH}`);
    for (const reference of references) {
      const subject = subjectWithin(context, reference.subject);
      const key = `${reference.version} ${subject}`;
      if (visited.has(key)) continue;
      visited.add(key);
      if (visited.size > this.#settings['schema.registry.max.references'])
        throw new FloeError('invalid', 'too many references (schema.registry.max.references)');
      const row = await this.#referenced({ ...reference, subject });
      await this.#collect(
        row.references,
        { context: row.context, visited, depth: depth + 1 },
        found,
      );
      found.push({ reference, text: row.schema });
    }
  }

  /** Soft-deleted versions still serve those who refer to them. */
  async #referenced(reference: SchemaReference): Promise<SchemaRow> {
    const { versions } = await this.#metadata.subject(reference.subject);
    const row = versions.find(({ version }) => version === reference.version);
    if (row === undefined) throw new FloeError('invalid', errors.missingReference(reference));
    return row;
  }

  async #parse(row: SchemaRow): Promise<unknown> {
    const dependencies = await this.#dependencies(row.references, row.context);
    return formatOf(row.type)!.parse(row.schema, dependencies, { validateDefaults: false });
  }
}

/** Runs `work`; what is wrong with the schema becomes the registry's error about it. */
async function withReason<T>(type: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (caught) {
    const error = FloeError.from(caught);
    if (error.code !== 'invalid' || 'registryCode' in error.details) throw error;
    throw errors.invalidSchema(type, error.message);
  }
}

/** Order means nothing. */
function sortedReferences(references: readonly SchemaReference[]): SchemaReference[] {
  const byText = new Map(
    references.map((one) => [`${one.name} ${one.subject} ${one.version}`, one]),
  );
  return [...byText.keys()].sort().map((key) => byText.get(key)!);
}

const IMPORT = /\bimport\s+(?:public\s+|weak\s+)?"([^"]+)"/g;

/** Adds the built-in files outside google/protobuf that the texts import: decoders don't have them. */
function withWellKnown(text: string, texts: Map<string, string>): ReadonlyMap<string, string> {
  const added = new Map<string, string>();
  const add = (source: string) => {
    for (const [, path] of source.matchAll(IMPORT)) {
      const known = texts.has(path!) || added.has(path!) ? undefined : wellKnownSource(path!);
      if (known === undefined) continue;
      add(known);
      added.set(path!, known);
    }
  };
  for (const source of [text, ...texts.values()]) add(source);
  return new Map([...added, ...texts]);
}

/** Undefined for what isn't kept: long texts, and references whose version isn't said. */
function keyOfInput(input: SchemaInput, { normalize, context }: PrepareForm): string | undefined {
  const { schema, schemaType = 'AVRO', references = [] } = input;
  if (schema.length > MAX_KEPT_TEXT || references.some(({ version }) => version < 1))
    return undefined;
  const others = references.length === 0 ? '' : JSON.stringify(references);
  return [schemaType, normalize, context, contractText(input), others, schema].join('\n');
}

/** By content, which an id doesn't always name: imports may bring another under it. */
const keyOf = ({ context, guid }: SchemaRow) => `${guid} ${context}`;

/** Equal parts, equal guid: SHA-256 cut to 128 bits, in the form of a UUID. */
function guidOf(parts: readonly string[]): string {
  return uuidToText(createHash('sha256').update(JSON.stringify(parts)).digest().subarray(0, 16));
}
