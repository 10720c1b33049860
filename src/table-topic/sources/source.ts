// The seam between a registered schema and a table: what a schema format must be able to do, whichever it is.
// A format proposes columns (coordinator) and compiles a decoder into committed columns (worker); both take the same
// plain text, since schemas cross thread borders. Not for: looking schemas up (topic-sources.ts).
import { FloeError } from '../../base/error.ts';
import type { Bindings, ProposedStruct } from '../../formats/arrow/proposed-schema.ts';
import type { TableColumns } from '../../formats/arrow/table-columns.ts';
import type { SchemaType } from '../../schema-registry/schema-source.ts';
import type { RowChange } from '../change.ts';

/**
 * Where a decoded value lands: its fields at top level, whole in `_kafka_value`, or whole in `_kafka_key`; of a
 * Debezium envelope, the row image's fields at top level and `_cdc_*` beside them.
 */
export type Place = 'flattened' | 'value' | 'key' | 'debezium';

/** Half of a record that a schema describes. */
export type Side = 'value' | 'key';

/** A schema that another one imports, under the name by which it does. */
export interface ReferencedText {
  readonly name: string;
  readonly schema: string;
}

/** A schema as its format reads it: everything needed, nothing parsed. */
export interface SchemaText {
  readonly type: SchemaType;
  readonly schema: string;
  /** What it refers to, directly or not, each after those it needs itself. */
  readonly references: readonly ReferencedText[];
  /** Protobuf: the message, by full name. Missing: the first of the file. */
  readonly message?: string;
}

/** How types that engines disagree on are written (topic configs `table.topic.types.*`). */
export interface TypeOptions {
  /** Time of day: Spark refuses a whole table with a `time` column, so text is the default. */
  readonly time: 'string' | 'long' | 'time';
  /** Nanosecond timestamps as `*_ns` of format v3; otherwise microseconds by floor. */
  readonly nanos: boolean;
}

/** A compiled decoder of one schema into one table's columns. */
export interface RowDecoder {
  /**
   * Decodes `bytes[start, end)` as the next row's fields. Undefined when it went well: the caller may append its own
   * columns and must call `columns.endRow()`. Otherwise the reason, and the row is already rolled back.
   */
  decode(bytes: Uint8Array, start: number, end: number): string | undefined;
}

/** A schema at a place with the columns it was given. */
export interface BoundText {
  readonly text: SchemaText;
  readonly place: Place;
  readonly bindings: Bindings;
}

export interface SourceFormat {
  /** Whether a schema is a file of several messages, of which a record names one. */
  readonly hasMessages: boolean;
  /**
   * The columns that a schema would like at its place.
   * @throws FloeError `invalid` when none can be had; with `details.reason` `no_row` when none are wanted.
   */
  propose(text: SchemaText, place: Place, options: TypeOptions): ProposedStruct;
  /**
   * `change` is told what each record does, where the place has a word for it (an envelope's op).
   * @throws FloeError `invalid` when a bound column can't take what the schema writes.
   */
  compile(bound: BoundText, columns: TableColumns, change: RowChange): RowDecoder;
  /** Full names of what records may be: messages at top level, or the one record. @throws FloeError `invalid`. */
  messages(text: SchemaText): readonly string[];
  /** The full name of the message at indexes like `1.0`. @throws FloeError `invalid` when there is none. */
  messageAt(text: SchemaText, indexes: string): string;
}

/** `messageAt` where schemas have no messages. */
export const noMessages = (): never => {
  throw new FloeError('invalid', 'schemas of this type have no messages');
};
