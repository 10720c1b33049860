// The schema registry's state: schemas by context and id, versions by subject, settings (compatibility, mode) by subject.
// A context is a registry of its own within the registry: ids count for each by themselves.
// Changes of a subject are compare-and-set on its stamp, so that a check made on what was loaded holds when it lands.
// Not here: parsing, compatibility, the rules of deletion (schema-registry/).

export interface SchemaReferenceRow {
  readonly name: string;
  readonly subject: string;
  readonly version: number;
}

/** What makes a schema the same schema, whatever the subject. */
export interface SchemaContent {
  readonly type: string;
  /** Canonical text. */
  readonly schema: string;
  readonly references: readonly SchemaReferenceRow[];
  /** Metadata and rule set as JSON text, kept for clients; empty when there is none. */
  readonly contract: string;
  /** A UUID derived from the four others: equal contents have equal guids. */
  readonly guid: string;
}

/** `.` is the default context; others are `.name`. */
export interface ContextId {
  readonly context: string;
  readonly id: number;
}

export interface SchemaRow extends SchemaContent, ContextId {}

export interface SubjectVersionRow extends SchemaRow {
  readonly subject: string;
  readonly version: number;
  /** Soft-deleted: readable by id, hidden otherwise. */
  readonly deleted: boolean;
}

export interface SubjectRow {
  /** Raised by every change of the subject's versions; 0 when the subject was never used. */
  readonly stamp: number;
  /** The number that the next version gets, never one used before. */
  readonly nextVersion: number;
  /** In order of version, the soft-deleted ones included. */
  readonly versions: readonly SubjectVersionRow[];
}

/** A version that a schema refers to: `subject` as the store has it, with its context. */
export interface ReferenceTarget {
  readonly subject: string;
  readonly version: number;
}

export interface AddVersion {
  /** With its context in front, unless that is the default one. */
  readonly subject: string;
  readonly context: string;
  /** {@link SubjectRow.stamp} that the caller's checks were made on. */
  readonly stamp: number;
  readonly content: SchemaContent;
  /** What the content's references lead to. */
  readonly targets: readonly ReferenceTarget[];
  /** Import only: the id to use. Otherwise the same content has the same id, and new content the next one. */
  readonly id?: number;
  /** Import only; otherwise the next version, never one used before. */
  readonly version?: number;
}

export interface DeleteVersions {
  readonly subject: string;
  readonly stamp: number;
  readonly versions: readonly number[];
  /** Removes the rows (and schemas that nobody uses any more); else marks them. */
  readonly permanent: boolean;
}

export interface VersionFilter {
  /** Subjects that start with this; '' for all. */
  readonly prefix: string;
  readonly deleted: boolean;
  /** Subjects of this context only; of all contexts when not given. */
  readonly context?: string;
}

/** `compatibility` or `mode`; the subject '' holds the global value. */
export type RegistrySettingKind = 'config' | 'mode';

export interface RegistryMetadata {
  schema(id: ContextId): Promise<SchemaRow | undefined>;
  /** Of any context, the default one first. */
  schemaByGuid(guid: string): Promise<SchemaRow | undefined>;
  /** In order of context and id. */
  idsOfGuid(guid: string): Promise<readonly ContextId[]>;
  /** Contexts that were ever registered in, and the default one; in order. */
  contexts(): Promise<readonly string[]>;
  /** Where the schema is registered, in order of subject and version, soft-deleted places included. */
  places(
    id: ContextId,
  ): Promise<readonly Pick<SubjectVersionRow, 'subject' | 'version' | 'deleted'>[]>;
  subject(subject: string): Promise<SubjectRow>;
  subjects(filter: VersionFilter): Promise<readonly { subject: string; allDeleted: boolean }[]>;
  versions(filter: VersionFilter): Promise<readonly SubjectVersionRow[]>;
  /** Ids of live schemas that refer to the version, of any context. */
  referencedBy(subject: string, version: number): Promise<readonly number[]>;
  /**
   * Atomic. @throws FloeError `conflict` when the stamp moved (load again) and, with `details.taken`, when an
   * imported id or version holds something else; `not-found` when a referenced version has gone meanwhile.
   */
  addVersion(request: AddVersion): Promise<{ id: number; version: number }>;
  /**
   * Atomic, all or none. @throws FloeError `conflict` when the stamp moved, `invalid` with `details.version`
   * when a live schema refers to one of them.
   */
  deleteVersions(request: DeleteVersions): Promise<void>;
  setting(kind: RegistrySettingKind, subject: string): Promise<string | undefined>;
  /** Several subjects' settings at once, in the order asked for. */
  settings(
    kind: RegistrySettingKind,
    subjects: readonly string[],
  ): Promise<readonly (string | undefined)[]>;
  /** Sets (text) or removes (null); returns what was there. */
  setSetting(
    kind: RegistrySettingKind,
    subject: string,
    value: string | null,
  ): Promise<string | undefined>;
  counts(): Promise<{ schemas: number; versions: number }>;
}
