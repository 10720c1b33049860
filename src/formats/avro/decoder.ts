// Compiles a writer's schema and the columns bound to it into closures that decode one value straight into the
// columns: no object per record. The schema is walked once, by the same paths as to-iceberg.ts.
//
// A record's own fault (truncated, trailing bytes, a length beyond the end, an index out of range, invalid UTF-8,
// a time outside the day, …) is returned as a reason and leaves the columns at the previous row.
// Not for: containers (container.ts), evolution (bindings are given), schema look-up.
import { assert } from '../../base/assert.ts';
import type { BytesColumn } from '../arrow/byte-columns.ts';
import type { Column } from '../arrow/column.ts';
import { type ColumnSource, columnMismatch, expectColumn } from '../arrow/expect-column.ts';
import { hasDuplicateKeys } from '../arrow/map-keys.ts';
import type { ListColumn, MapColumn, StructColumn } from '../arrow/nested-columns.ts';
import {
  type Bindings,
  elementPath,
  fieldPath,
  keyPath,
  ROOT_PATH,
  valuePath,
} from '../arrow/proposed-schema.ts';
import { RowFailure } from '../arrow/row-failure.ts';
import type { BooleanColumn } from '../arrow/scalar-columns.ts';
import type { TableColumns } from '../arrow/table-columns.ts';
import { VARIABLE_DECIMAL } from './connect-types.ts';
import { AvroCursor, type Step } from './cursor.ts';
import { inlineRead } from './inline-reads.ts';
import { compileJsonText } from './json-text.ts';
import { variableDecimalStep } from './logical-steps.ts';
import { scalarStep } from './scalar-steps.ts';
import {
  type AvroArray,
  type AvroMap,
  type AvroRecord,
  type AvroSchema,
  type AvroUnion,
  branchName,
} from './schema.ts';
import { forEachItem, skipStep } from './skip.ts';
import { PRESENT_FIELD, rootRecord } from './to-iceberg.ts';
import { type Child, unroll } from './unroll.ts';

export interface AvroDecoder {
  /**
   * Decodes `bytes[start, end)` as the next row's fields. Undefined when it went well: the caller may append its
   * own columns and must call `columns.endRow()`. Otherwise the reason, and the row is already rolled back.
   */
  decode(bytes: Uint8Array, start: number, end: number): string | undefined;
}

/**
 * A decoder for values of `schema` into `columns`; what `bindings` doesn't name is skipped.
 * @throws FloeError `invalid` when a bound column can't take what the schema writes (no evolution was agreed on).
 */
export function compileAvroDecoder(
  schema: AvroSchema,
  columns: TableColumns,
  bindings: Bindings,
): AvroDecoder {
  return rowDecoder(new Compiler(columns, bindings).root(schema), columns);
}

/** A decoder that runs `step` over each value, and turns what it raises into a reason and a row rolled back. */
export function rowDecoder(step: Step, columns: TableColumns): AvroDecoder {
  const cursor = new AvroCursor();
  return {
    decode(bytes, start, end) {
      cursor.reset(bytes, start, end);
      try {
        step(cursor);
        if (cursor.pos === end) return undefined;
        columns.rollback();
        return `trailing bytes: ${end - cursor.pos} after the value`;
      } catch (failure) {
        if (!(failure instanceof RowFailure)) throw failure;
        columns.rollback();
        return `${failure.reason} at byte ${cursor.pos - start}`;
      }
    },
  };
}

/** The parts of a decoder, for who lays the row out otherwise than the schema's root does (Debezium's envelope). */
export interface AvroParts {
  /** Steps for the fields of a record, whose columns are at top level. */
  fields(record: AvroRecord): readonly Child[];
  /** The step for one value at a source path; it skips where nothing is bound. */
  child(schema: AvroSchema, path: string): Child;
}

/** See {@link AvroParts}. */
export function compileAvroParts(columns: TableColumns, bindings: Bindings): AvroParts {
  const compiler = new Compiler(columns, bindings);
  return {
    fields: (record) => compiler.fields(record, '', [record]),
    child: (schema, path) => compiler.child(schema, path, []),
  };
}

class Compiler {
  readonly #columns: TableColumns;
  readonly #bindings: Bindings;

  constructor(columns: TableColumns, bindings: Bindings) {
    this.#columns = columns;
    this.#bindings = bindings;
  }

  root(schema: AvroSchema): Step {
    const record = rootRecord(schema);
    if (record === undefined) {
      const child = this.child(schema, ROOT_PATH, []);
      return unroll([child], this.#columns);
    }
    const fields = unroll(this.fields(record, '', [record]), this.#columns);
    if (schema.kind !== 'union') return fields;
    const recordAt = schema.branches.findIndex((branch) => branch.kind !== 'null');
    return (cursor) => {
      const index = readBranch(cursor, schema.branches.length);
      if (index !== recordAt) RowFailure.raise('null value');
      fields(cursor);
    };
  }

  fields(record: AvroRecord, path: string, ancestors: readonly AvroRecord[]): Child[] {
    return record.fields.map((field) =>
      this.child(field.type, fieldPath(path, field.name), ancestors),
    );
  }

  /** The step for what lies at `path`: skipping when it isn't bound. */
  child(schema: AvroSchema, path: string, ancestors: readonly AvroRecord[]): Child {
    const id = this.#bindings.get(path);
    if (id === undefined) return { step: skipStep(schema), column: undefined };
    const column = this.#columns.byId(id);
    assert(column !== undefined, `T8: field id ${id} bound to "${path}" is in the table's schema`);
    const step = this.#value(schema, path, { column, ancestors });
    const optional = this.#optional(schema, path, { column, ancestors });
    if (optional === undefined) return { step, column, inline: inlineRead(schema, column) };
    return { step, column, optional, inline: inlineRead(optional.schema, column) };
  }

  /** Of a union of null and one scalar. */
  #optional(schema: AvroSchema, path: string, target: Target) {
    if (schema.kind !== 'union' || schema.branches.length !== 2) return undefined;
    const [first, second] = schema.branches as [AvroSchema, AvroSchema];
    const nullFirst = first.kind === 'null';
    if (!nullFirst && second.kind !== 'null') return undefined;
    const value = nullFirst ? second : first;
    const isScalar = !['null', 'record', 'array', 'map', 'union'].includes(value.kind);
    if (!isScalar) return undefined;
    return { schema: value, value: this.#value(value, path, target), nullFirst };
  }

  #value(schema: AvroSchema, path: string, target: Target): Step {
    const { column, ancestors } = target;
    switch (schema.kind) {
      case 'null':
        return () => column.appendNull();
      case 'union':
        return this.#union(schema, path, target);
      case 'record':
        if (ancestors.includes(schema)) return jsonStep(schema, expectBytes(column, schema, path));
        if (schema.name === VARIABLE_DECIMAL) {
          return variableDecimalStep(column) ?? columnMismatch(column, told(schema, path));
        }
        return this.#record(schema, path, target);
      case 'array':
        return this.#array(schema, path, target);
      case 'map':
        return this.#map(schema, path, target);
      default:
        return scalarStep(schema, column) ?? columnMismatch(column, told(schema, path));
    }
  }

  #record(schema: AvroRecord, path: string, { column, ancestors }: Target): Step {
    const struct = expectColumn<StructColumn>(column, 'struct', told(schema, path));
    if (schema.fields.length === 0) return this.#present(struct, path);
    const children = this.fields(schema, path, [...ancestors, schema]);
    const fields = unroll(children, struct);
    return (cursor) => {
      fields(cursor);
      struct.end();
    };
  }

  #present(struct: StructColumn, path: string): Step {
    const id = this.#bindings.get(fieldPath(path, PRESENT_FIELD));
    const present = id === undefined ? undefined : (this.#columns.byId(id) as BooleanColumn);
    return () => {
      present?.padTo(struct.length);
      present?.append(true);
      struct.end();
    };
  }

  #array(schema: AvroArray, path: string, { column, ancestors }: Target): Step {
    const list = expectColumn<ListColumn>(column, 'list', told(schema, path));
    const { step } = this.child(schema.items, elementPath(path), ancestors);
    return (cursor) => {
      forEachItem(cursor, step);
      list.end();
    };
  }

  #map(schema: AvroMap, path: string, { column, ancestors }: Target): Step {
    const map = expectColumn<MapColumn>(column, 'map', told(schema, path));
    const key = this.child({ kind: 'string' }, keyPath(path), ancestors).step;
    const value = this.child(schema.values, valuePath(path), ancestors);
    const entry: Step = (cursor) => {
      key(cursor);
      value.step(cursor);
    };
    return (cursor) => {
      forEachItem(cursor, entry);
      if (hasDuplicateKeys(map, map.offsets[map.length]!)) {
        RowFailure.raise('a map holds a key twice');
      }
      map.end();
    };
  }

  #union({ branches }: AvroUnion, path: string, target: Target): Step {
    const { column } = target;
    const filled = branches.filter((branch) => branch.kind !== 'null');
    if (filled.length <= 1) {
      const steps = branches.map((branch) => this.#value(branch, path, target));
      return (cursor) => {
        steps[readBranch(cursor, steps.length)]!(cursor);
      };
    }
    const schema: AvroUnion = { kind: 'union', branches };
    const struct = expectColumn<StructColumn>(column, 'struct', told(schema, path));
    const children = branches.map((branch) =>
      this.child(branch, fieldPath(path, branchName(branch)), target.ancestors),
    );
    return (cursor) => {
      const index = readBranch(cursor, children.length);
      if (branches[index]!.kind === 'null') {
        struct.appendNull();
        return;
      }
      const child = children[index]!;
      child.column?.padTo(struct.length);
      child.step(cursor);
      struct.end();
    };
  }
}

interface Target {
  readonly column: Column;
  readonly ancestors: readonly AvroRecord[];
}

function readBranch(cursor: AvroCursor, branches: number): number {
  const index = cursor.readInt();
  if (index < 0 || index >= branches) RowFailure.raise(`union branch ${index} of ${branches}`);
  return index;
}

function told(schema: AvroSchema, path: string): ColumnSource {
  const type = 'logical' in schema && schema.logical ? schema.logical.kind : branchName(schema);
  return { source: `Avro ${type}`, path };
}

function expectBytes(column: Column, schema: AvroSchema, path: string): BytesColumn {
  return expectColumn<BytesColumn>(column, 'bytes', told(schema, path));
}

function jsonStep(schema: AvroSchema, column: BytesColumn): Step {
  const text = compileJsonText(schema);
  return (cursor) => column.appendText(text(cursor));
}
