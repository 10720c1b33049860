// Which row a record without a value means (a tombstone, or a deletion without a former image): its key, turned into
// the form of the id columns. A typed key names the id columns by equal names; a scalar key is the single id column's
// value; a key that is JSON text is either. Where the id columns lie in the key itself there is nothing to turn.
// Not for: records with a value (changes.ts reads their id columns as they are).
import type { Column } from '../../formats/arrow/column.ts';
import { StructColumn } from '../../formats/arrow/nested-columns.ts';
import type { TableColumns } from '../../formats/arrow/table-columns.ts';
import type { StructType } from '../../formats/iceberg/types.ts';
import { KeyHasher } from './canonical-key.ts';
import { castColumn, castInto, type KeyValue } from './cast-key.ts';
import type { UpsertTable } from './id-columns.ts';

/** Hashes the row that a record key means; the hash is then `hasher.hash`. */
export interface RecordKey {
  readonly hasher: KeyHasher;
  /** The key stands in `row` of the key's column. False: it names no row, see `why`. */
  hash(row: number): boolean;
  readonly why: string;
}

/** Undefined when the table keeps no record keys: then no tombstone names a row. */
export function recordKey(
  columns: TableColumns,
  upsert: UpsertTable,
  isJson: boolean,
): RecordKey | undefined {
  const { keyField, hashKey, nulls } = upsert;
  const key = keyField === undefined ? undefined : columns.byId(keyField);
  if (key === undefined) return undefined;
  const within = upsert.columns.map(({ fieldId }) => columns.byId(fieldId));
  const own = within.every((column) => column !== undefined && isWithin(key, column));
  if (own) return new OwnKey(new KeyHasher(within as Column[], hashKey), nulls);
  const targets = upsert.columns.map(({ type }) => castColumn(type));
  const names = upsert.columns.map(({ path }) => path.at(-1)!);
  const hasher = new KeyHasher(targets, hashKey);
  return new CastKey({ key, targets, names, hasher, nulls, isJson });
}

function isWithin(key: Column, column: Column): boolean {
  if (key === column) return true;
  return key instanceof StructColumn && key.children.some((child) => isWithin(child, column));
}

/** The id columns are the key's own. */
class OwnKey implements RecordKey {
  readonly hasher: KeyHasher;
  readonly why = 'the record key is null';
  readonly #nulls: UpsertTable['nulls'];

  constructor(hasher: KeyHasher, nulls: UpsertTable['nulls']) {
    this.hasher = hasher;
    this.#nulls = nulls;
  }

  hash(row: number): boolean {
    if (this.#nulls === 'error' && this.hasher.hasNull(row)) return false;
    this.hasher.row(row);
    return true;
  }
}

interface CastOptions {
  readonly key: Column;
  readonly targets: readonly Column[];
  readonly names: readonly string[];
  readonly hasher: KeyHasher;
  readonly nulls: UpsertTable['nulls'];
  readonly isJson: boolean;
}

class CastKey implements RecordKey {
  readonly #options: CastOptions;
  why = '';

  constructor(options: CastOptions) {
    this.#options = options;
  }

  get hasher(): KeyHasher {
    return this.#options.hasher;
  }

  hash(row: number): boolean {
    const { key, targets, names, hasher, nulls, isJson } = this.#options;
    for (const target of targets) target.clear();
    if (row >= key.length || !key.isValid(row)) return this.#not('the record key is null');
    const values = key instanceof StructColumn ? fieldsOf(key, row) : key.valueAt(row);
    const found = isJson ? fromJson(values as string) : values;
    const isObject = found instanceof Map;
    if (!isObject && names.length > 1) {
      return this.#not(`the record key is one value, the id columns are ${names.join(', ')}`);
    }
    for (const [n, name] of names.entries()) {
      if (isObject && !found.has(name)) return this.#not(`the record key has no "${name}"`);
      const value = (isObject ? found.get(name) : found) as KeyValue | null;
      if (value === null) {
        if (nulls === 'error') return this.#not(`"${name}" is null in the record key`);
        targets[n]!.appendNull();
      } else if (!castInto(targets[n]!, value)) {
        const type = String(targets[n]!.type);
        return this.#not(`the record key's "${name}" is no ${type}`);
      }
    }
    hasher.row(0);
    return true;
  }

  #not(why: string): false {
    this.why = why;
    return false;
  }
}

/** The primitive fields of a struct in one row, by name. */
function fieldsOf(column: StructColumn, row: number): Map<string, unknown> {
  const { fields } = column.type as StructType;
  return new Map(
    fields.map(({ name }, n) => {
      const child = column.children[n]!;
      return [name, row < child.length ? child.valueAt(row) : null];
    }),
  );
}

/** A JSON key: an object's fields by name (Debezium's envelope opened), or its scalar. */
function fromJson(text: string): Map<string, unknown> | unknown {
  const parsed: unknown = JSON.parse(text);
  if (typeof parsed !== 'object' || parsed === null) return parsed;
  const { schema, payload } = parsed as { readonly schema?: unknown; readonly payload?: unknown };
  const inner = schema !== undefined && payload !== undefined ? payload : parsed;
  if (typeof inner !== 'object' || inner === null) return inner;
  return new Map(Object.entries(inner));
}
