// What a source (an Avro schema, a set of JSON records) would like its table to look like, before the table's
// coordinator gave it field ids. Every part carries its source path, the key under which the coordinator keeps
// the committed field id and by which a decoder finds its columns.
// Not for: deciding what a table may become (evolution is the coordinator's, T10).
import type { PrimitiveTypeName } from '../iceberg/types.ts';

export interface ProposedField {
  /** Column name: the source's, unless reserved or taken. */
  readonly name: string;
  /** The source's former names of this field, newest first as the source lists them. */
  readonly aliases: readonly string[];
  /** See `sourcePath`. */
  readonly path: string;
  readonly type: ProposedType;
  readonly doc?: string;
}

export type ProposedType = PrimitiveTypeName | ProposedStruct | ProposedList | ProposedMap;

export interface ProposedStruct {
  readonly type: 'struct';
  readonly fields: readonly ProposedField[];
}

export interface ProposedList {
  readonly type: 'list';
  readonly elementPath: string;
  readonly element: ProposedType;
}

/** Keys are required, values optional. */
export interface ProposedMap {
  readonly type: 'map';
  readonly keyPath: string;
  readonly key: ProposedType;
  readonly valuePath: string;
  readonly value: ProposedType;
}

/** Source path → committed field id. Paths that are missing are skipped by decoders. */
export type Bindings = ReadonlyMap<string, number>;

/**
 * `parent.name`, with `\`, `.`, `[`, `{` and a leading `:` of the name escaped by a backslash, and `\@` for an
 * empty name. The root's path is ''. Paths that start with a colon are free for columns that are no value's.
 */
export function fieldPath(parent: string, name: string): string {
  const escaped = name === '' ? '\\@' : name.replace(/^:|[\\.[{]/g, '\\$&');
  return parent === '' ? escaped : `${parent}.${escaped}`;
}

/** The path of a value that is no record and lands whole in `_kafka_value`. */
export const ROOT_PATH = '';

/** Does a path lead through a numbered field (Protobuf's)? Names are escaped, so `\#` never comes from one. */
export const isNumbered = (path: string): boolean => /(?<!\\)(?:\\\\)*\\#/.test(path);

/** The path of a list's elements. */
export const elementPath = (list: string) => `${list}[]`;
/** The path of a map's keys. */
export const keyPath = (map: string) => `${map}{key}`;
/** The path of a map's values. */
export const valuePath = (map: string) => `${map}{value}`;

/** Where a value that is no record lands, and what `transform=none` keeps. */
export const VALUE_COLUMN = '_kafka_value';

/** Names that Floe's own columns have at top level; a source's field gets a trailing underscore. */
export const RESERVED_COLUMNS: ReadonlySet<string> = new Set([
  '_kafka_partition',
  '_kafka_offset',
  '_kafka_timestamp',
  '_kafka_key',
  '_kafka_headers',
  '_kafka_topic',
  VALUE_COLUMN,
  '_rest',
  '_cdc_op',
  '_cdc_ts',
  '_cdc_source',
]);

/**
 * Gives names to the fields of one struct, in order: reserved ones (top level only) and '' get `_` appended, and a name
 * that differs from an earlier one only in case, as some engines can't tell them apart, gets `_2`, `_3`, ….
 */
export class ColumnNames {
  readonly #taken = new Set<string>();
  readonly #topLevel: boolean;

  constructor(topLevel: boolean) {
    this.#topLevel = topLevel;
  }

  /** Keeps `name` from being given out. */
  reserve(name: string): void {
    this.#taken.add(name.toLowerCase());
  }

  take(wanted: string): string {
    const reserved = this.#topLevel && RESERVED_COLUMNS.has(wanted.toLowerCase());
    const base = reserved || wanted === '' ? `${wanted}_` : wanted;
    let name = base;
    for (let n = 2; this.#taken.has(name.toLowerCase()); n++) name = `${base}_${n}`;
    this.#taken.add(name.toLowerCase());
    return name;
  }
}
