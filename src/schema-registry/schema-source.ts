// Where schemas come from, as table topics and the CLI use it: the embedded registry now, an external one later.

export type SchemaType = 'AVRO' | 'PROTOBUF' | 'JSON';

export interface SchemaReference {
  readonly name: string;
  readonly subject: string;
  readonly version: number;
}

export interface RegisteredSchema {
  readonly id: number;
  readonly type: SchemaType;
  /** The schema's text as registered. */
  readonly schema: string;
  readonly references: readonly SchemaReference[];
}

export interface SubjectVersion extends RegisteredSchema {
  readonly subject: string;
  readonly version: number;
}

/** Errors: `not-found` (the id or subject is unknown: a record's fault), `unavailable` (try again: nobody's). */
export interface SchemaSource {
  byId(id: number): Promise<RegisteredSchema>;
  latest(subject: string): Promise<SubjectVersion>;
  /** The version of `schemaId` under `subject`, for ordering versions; undefined when it isn't registered there. */
  versionOf(subject: string, schemaId: number): Promise<number | undefined>;
  /** Registers the schema (idempotent) and returns its id. */
  register(subject: string, schema: string, type: SchemaType): Promise<number>;
}
