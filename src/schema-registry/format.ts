// What the registry needs of a schema format; avro/, protobuf/ and json-schema/ each give one (format.ts there).
import type { SchemaReference, SchemaType } from './schema-source.ts';

/** A schema that another refers to, directly or through others. */
export interface Dependency {
  readonly reference: SchemaReference;
  readonly text: string;
}

/** Who is who in a comparison: `reader` must be able to read what was written with `writer`. */
export interface Sides {
  readonly reader: 'new' | 'old';
  readonly writer: 'new' | 'old';
}

export interface TextForm {
  /** Drops order and spelling that mean nothing to readers. */
  readonly normalize: boolean;
}

export interface ParseRules {
  /** Avro: refuse defaults that don't fit their type. */
  readonly validateDefaults: boolean;
}

/** `S` is the format's parsed schema: plain data, safe to keep. Errors are FloeError `invalid` with the reason. */
export interface SchemaFormat<S> {
  readonly type: SchemaType;
  /** `dependencies` come before those that depend on them. */
  parse(text: string, dependencies: readonly Dependency[], rules: ParseRules): S;
  /** The canonical text: equal texts are the same schema. */
  text(schema: S, form: TextForm): string;
  /** The text in the form that `format=` asks for; undefined for a form that the format doesn't have. */
  formatted(schema: S, form: string): string | undefined;
  /** The registry's messages about what `reader` can't read; empty when it can read all. */
  differences(reader: S, writer: S, sides: Sides): readonly string[];
}
