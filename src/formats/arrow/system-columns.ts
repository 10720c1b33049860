// Floe's own columns beside a value's fields: where the record stood in the log, its time, key and headers.
// Null and empty stay different; headers keep order and duplicates.
// Not for: typed keys (a converter binds `_kafka_key` itself).
import type { BytesColumn } from './byte-columns.ts';
import type { ListColumn, StructColumn } from './nested-columns.ts';
import type { Bindings, ProposedField } from './proposed-schema.ts';
import type { Int32Column, Int64Column } from './scalar-columns.ts';
import type { TableColumns } from './table-columns.ts';

/** Source path of one of Floe's own columns: no field of a value can have it, names there are escaped. */
export const systemPath = (name: string) => `\\${name}`;

const HEADERS = systemPath('_kafka_headers');

/** What every table topic proposes after the value's fields. */
export const SYSTEM_FIELDS: readonly ProposedField[] = [
  field('_kafka_partition', 'int'),
  field('_kafka_offset', 'long'),
  field('_kafka_timestamp', 'timestamptz'),
  field('_kafka_key', 'binary'),
  field('_kafka_headers', {
    type: 'list',
    elementPath: `${HEADERS}[]`,
    element: {
      type: 'struct',
      fields: [
        { name: 'key', aliases: [], path: `${HEADERS}[].key`, type: 'string' },
        { name: 'value', aliases: [], path: `${HEADERS}[].value`, type: 'binary' },
      ],
    },
  }),
];

function field(name: string, type: ProposedField['type']): ProposedField {
  return { name, aliases: [], path: systemPath(name), type };
}

/** Appends to the system columns of one TableColumns. A column that isn't bound is left out. */
export class SystemColumns {
  readonly #columns: TableColumns;
  readonly #partition: Int32Column | undefined;
  readonly #offset: Int64Column | undefined;
  readonly #timestamp: Int64Column | undefined;
  readonly #key: BytesColumn | undefined;
  readonly #headers: ListColumn | undefined;
  readonly #header: StructColumn | undefined;
  readonly #headerKey: BytesColumn | undefined;
  readonly #headerValue: BytesColumn | undefined;

  constructor(columns: TableColumns, bindings: Bindings) {
    this.#columns = columns;
    const find = (name: string) => {
      const id = bindings.get(systemPath(name));
      return id === undefined ? undefined : columns.byId(id);
    };
    this.#partition = find('_kafka_partition') as Int32Column | undefined;
    this.#offset = find('_kafka_offset') as Int64Column | undefined;
    this.#timestamp = find('_kafka_timestamp') as Int64Column | undefined;
    this.#key = find('_kafka_key') as BytesColumn | undefined;
    this.#headers = find('_kafka_headers') as ListColumn | undefined;
    this.#header = this.#headers?.element as StructColumn | undefined;
    [this.#headerKey, this.#headerValue] = (this.#header?.children ?? []) as BytesColumn[];
  }

  /** Where and when: `timestampMs` −1 (no time) is null. */
  appendPosition(partition: number, offset: number, timestampMs: number): void {
    this.#partition?.append(partition);
    this.#offset?.append(offset);
    if (timestampMs === -1) this.#timestamp?.appendNull();
    else this.#timestamp?.append(timestampMs * 1000);
  }

  /** The key's bytes `[start, end)`. A row without this call has a null key. */
  appendKey(bytes: Uint8Array, start: number, end: number): void {
    if (this.#key === undefined) return;
    this.#key.padTo(this.#columns.rowCount);
    this.#key.append(bytes, start, end);
  }

  /** Does nothing: says in the caller's code that the key is null. */
  appendNullKey(): void {}

  /** A header's key, `bytes[start, end)`. Its value must follow. */
  appendHeaderKey(bytes: Uint8Array, start: number, end: number): void {
    this.#headerKey?.append(bytes, start, end);
  }

  /** The value of the header whose key was appended last. */
  appendHeaderValue(bytes: Uint8Array, start: number, end: number): void {
    this.#headerValue?.append(bytes, start, end);
    this.#header?.end();
  }

  appendNullHeaderValue(): void {
    this.#headerValue?.appendNull();
    this.#header?.end();
  }

  /** Ends the row's headers; without any, the list is empty, not null. */
  endHeaders(): void {
    this.#headers?.end();
  }
}
