// The registry's state with what was read last kept in memory: look-ups are most of a registry's work, and each read of
// the store goes to another thread. Right as long as this process is the only one that writes the store through this
// object (it owns its database); a write that meets a conflict drops what is kept.
import type {
  AddVersion,
  ContextId,
  DeleteVersions,
  RegistryMetadata,
  RegistrySettingKind,
  SchemaRow,
  SubjectRow,
  VersionFilter,
} from '../metadata/registry.ts';
import { Recent } from './recent.ts';

/** Bytes that an entry takes beside its texts, roughly. */
const ENTRY_BYTES = 500;
/** Settings are small; subjects that have none count too. */
const MAX_SETTINGS = 50_000;

export class CachedRegistry implements RegistryMetadata {
  readonly #store: RegistryMetadata;
  readonly #schemas: Recent<SchemaRow>;
  readonly #subjects: Recent<SubjectRow>;
  readonly #settings = new Recent<string | null>(MAX_SETTINGS);
  #contexts: readonly string[] | undefined;
  /** Raised by every write, so that a read begun before it keeps nothing. */
  #writes = 0;

  /** `bytes` bounds the texts kept, for schemas and for subjects each. */
  constructor(store: RegistryMetadata, bytes: number) {
    this.#store = store;
    this.#schemas = new Recent(bytes);
    this.#subjects = new Recent(bytes);
  }

  schema(id: ContextId): Promise<SchemaRow | undefined> {
    return this.#schemaOf(`${id.id} ${id.context}`, () => this.#store.schema(id));
  }

  schemaByGuid(guid: string): Promise<SchemaRow | undefined> {
    return this.#schemaOf(guid, () => this.#store.schemaByGuid(guid));
  }

  async #schemaOf(
    key: string,
    read: () => Promise<SchemaRow | undefined>,
  ): Promise<SchemaRow | undefined> {
    const kept = this.#schemas.get(key);
    if (kept !== undefined) return kept;
    const writes = this.#writes;
    const row = await read();
    if (row !== undefined && writes === this.#writes) this.#schemas.set(key, row, weightOf(row));
    return row;
  }

  async subject(subject: string): Promise<SubjectRow> {
    const kept = this.#subjects.get(subject);
    if (kept !== undefined) return kept;
    const writes = this.#writes;
    const row = await this.#store.subject(subject);
    const weight = row.versions.reduce((sum, one) => sum + weightOf(one), ENTRY_BYTES);
    if (writes === this.#writes) this.#subjects.set(subject, row, weight);
    return row;
  }

  async setting(kind: RegistrySettingKind, subject: string): Promise<string | undefined> {
    const [value] = await this.settings(kind, [subject]);
    return value;
  }

  async settings(
    kind: RegistrySettingKind,
    subjects: readonly string[],
  ): Promise<readonly (string | undefined)[]> {
    const missing = subjects.filter((subject) => !this.#settings.has(`${kind} ${subject}`));
    const writes = this.#writes;
    const read = missing.length === 0 ? [] : await this.#store.settings(kind, missing);
    const values = new Map(missing.map((subject, at) => [subject, read[at]]));
    if (writes === this.#writes)
      for (const [subject, value] of values)
        this.#settings.set(`${kind} ${subject}`, value ?? null, 1);
    return subjects.map((subject) =>
      values.has(subject)
        ? values.get(subject)
        : (this.#settings.get(`${kind} ${subject}`) ?? undefined),
    );
  }

  async contexts(): Promise<readonly string[]> {
    const writes = this.#writes;
    const contexts = this.#contexts ?? (await this.#store.contexts());
    if (writes === this.#writes) this.#contexts = contexts;
    return contexts;
  }

  idsOfGuid(guid: string): Promise<readonly ContextId[]> {
    return this.#store.idsOfGuid(guid);
  }

  places(id: ContextId): ReturnType<RegistryMetadata['places']> {
    return this.#store.places(id);
  }

  subjects(filter: VersionFilter): ReturnType<RegistryMetadata['subjects']> {
    return this.#store.subjects(filter);
  }

  versions(filter: VersionFilter): ReturnType<RegistryMetadata['versions']> {
    return this.#store.versions(filter);
  }

  referencedBy(subject: string, version: number): Promise<readonly number[]> {
    return this.#store.referencedBy(subject, version);
  }

  counts(): ReturnType<RegistryMetadata['counts']> {
    return this.#store.counts();
  }

  addVersion(request: AddVersion): ReturnType<RegistryMetadata['addVersion']> {
    return this.#write(
      () => this.#store.addVersion(request),
      () => {
        this.#subjects.delete(request.subject);
        // The default context's schema goes before another's of that guid.
        this.#schemas.delete(request.content.guid);
        this.#contexts = undefined;
      },
    );
  }

  deleteVersions(request: DeleteVersions): Promise<void> {
    return this.#write(
      () => this.#store.deleteVersions(request),
      () => {
        this.#subjects.delete(request.subject);
        if (request.permanent) this.#schemas.clear();
      },
    );
  }

  setSetting(
    kind: RegistrySettingKind,
    subject: string,
    value: string | null,
  ): Promise<string | undefined> {
    return this.#write(
      () => this.#store.setSetting(kind, subject, value),
      () => this.#settings.delete(`${kind} ${subject}`),
    );
  }

  /** Drops what the write may have changed, before it (readers under way) and after it, whether it succeeded or not. */
  async #write<T>(work: () => Promise<T>, drop: () => void): Promise<T> {
    this.#writes += 1;
    try {
      return await work();
    } finally {
      this.#writes += 1;
      drop();
    }
  }
}

function weightOf({ schema, contract }: SchemaRow): number {
  return ENTRY_BYTES + schema.length + contract.length;
}
