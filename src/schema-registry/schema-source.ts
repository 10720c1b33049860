// Where schemas come from, as table topics and the CLI use it: the embedded registry (source.ts) or an external one.

export type SchemaType = 'AVRO' | 'PROTOBUF' | 'JSON';

export interface SchemaReference {
  /** What the referring text calls it: an Avro full name, a Protobuf import path, a JSON Schema URI. */
  readonly name: string;
  readonly subject: string;
  readonly version: number;
}

export interface RegisteredSchema {
  readonly id: number;
  /** UUID of the content, as records carry it in headers; lower case. */
  readonly guid: string;
  readonly type: SchemaType;
  /**
   * The schema's text: Avro JSON, .proto source or JSON Schema. A source may inline the references of Avro texts;
   * `resolved` is empty then.
   */
  readonly schema: string;
  /** Direct references, as registered. */
  readonly references: readonly SchemaReference[];
  /**
   * Texts of everything referred to, directly or through others, by the name that the referring text uses; what a
   * text depends on comes before it. Well-known google/protobuf imports are not among them: decoders know those.
   */
  readonly resolved: ReadonlyMap<string, string>;
}

export interface SubjectVersion extends RegisteredSchema {
  readonly subject: string;
  readonly version: number;
}

/** Errors: `not-found` (the id or subject is unknown: a record's fault), `unavailable` (try again: nobody's). */
export interface SchemaSource {
  byId(id: number): Promise<RegisteredSchema>;
  /** `guid` is a UUID's text, in any case. */
  byGuid(guid: string): Promise<RegisteredSchema>;
  latest(subject: string): Promise<SubjectVersion>;
  /** The version of `schemaId` under `subject`, for ordering versions; undefined when it isn't registered there. */
  versionOf(subject: string, schemaId: number): Promise<number | undefined>;
  /** Registers the schema (idempotent) and returns its id. */
  register(subject: string, schema: string, type: SchemaType): Promise<number>;
}
