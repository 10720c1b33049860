// The schema registry's state: schemas by id, versions by subject, settings (compatibility, mode) by subject.
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

export interface SchemaRow extends SchemaContent {
  readonly id: number;
}

export interface SubjectVersionRow extends SchemaRow {
  readonly subject: string;
  readonly version: number;
  /** Soft-deleted: readable by id, hidden otherwise. */
  readonly deleted: boolean;
}

export interface SubjectRow {
  /** Raised by every change of the subject's versions; 0 when the subject was never used. */
  readonly stamp: number;
  /** In order of version, the soft-deleted ones included. */
  readonly versions: readonly SubjectVersionRow[];
}

export interface AddVersion {
  readonly subject: string;
  /** {@link SubjectRow.stamp} that the caller's checks were made on. */
  readonly stamp: number;
  readonly content: SchemaContent;
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
}

/** `compatibility` or `mode`; the subject '' holds the global value. */
export type RegistrySettingKind = 'config' | 'mode';

export interface RegistryMetadata {
  schema(id: number): Promise<SchemaRow | undefined>;
  schemaByGuid(guid: string): Promise<SchemaRow | undefined>;
  /** Where the schema is registered, in order of subject and version, soft-deleted places included. */
  places(
    id: number,
  ): Promise<readonly Pick<SubjectVersionRow, 'subject' | 'version' | 'deleted'>[]>;
  subject(subject: string): Promise<SubjectRow>;
  subjects(filter: VersionFilter): Promise<readonly { subject: string; allDeleted: boolean }[]>;
  versions(filter: VersionFilter): Promise<readonly SubjectVersionRow[]>;
  /** Ids of live schemas that refer to the version. */
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
  /** Sets (text) or removes (null); returns what was there. */
  setSetting(
    kind: RegistrySettingKind,
    subject: string,
    value: string | null,
  ): Promise<string | undefined>;
  counts(): Promise<{ schemas: number; versions: number }>;
}
