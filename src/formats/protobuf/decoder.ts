// Compiles a Protobuf message and the columns bound to it into closures that decode values straight from wire bytes
// into the columns: no object per record. The message is walked once, by the same paths as to-iceberg.ts.
//
// As the format says: fields come in any order, unknown ones are skipped, of several values of a field the last wins,
// parts of a message are merged (split.ts), lists may be packed or not, absent fields without presence are their
// default. A record's own fault (truncated, a length beyond the end, invalid UTF-8, a missing required field, …) is
// returned as a reason and leaves the columns at the previous row.
import { assert } from '../../base/assert.ts';
import type { BytesColumn } from '../arrow/byte-columns.ts';
import type { Column } from '../arrow/column.ts';
import { type ColumnSource, columnMismatch, expectColumn } from '../arrow/expect-column.ts';
import type { ListColumn, MapColumn, StructColumn } from '../arrow/nested-columns.ts';
import {
  type Bindings,
  elementPath,
  fieldPath,
  keyPath,
  valuePath,
} from '../arrow/proposed-schema.ts';
import { RowFailure } from '../arrow/row-failure.ts';
import type { BooleanColumn, Int64Column } from '../arrow/scalar-columns.ts';
import type { TableColumns } from '../arrow/table-columns.ts';
import { type Arm, type Body, compileBody, type Ending, place } from './body.ts';
import { DELIMITED, ProtoCursor, type Step } from './cursor.ts';
import { type FindMessage, jsonText } from './json-text.ts';
import { entryStep, type MapField, mapEnding } from './maps.ts';
import { messageShape, numberPath, PRESENT_FIELD, rootPath } from './paths.ts';
import { defaultStep, enumStep, scalarStep, wireType } from './scalar-steps.ts';
import {
  type ProtoEnum,
  type ProtoField,
  type ProtoMessage,
  type ProtoScalarType,
  zeroOf,
} from './schema.ts';
import { singleMessageStep } from './split.ts';
import { timestampBody } from './timestamp.ts';

export interface ProtobufDecoder {
  /**
   * Decodes `bytes[start, end)` as the next row's fields. Undefined when it went well: the caller may append its own
   * columns and must call `columns.endRow()`. Otherwise the reason, and the row is already rolled back.
   */
  decode(bytes: Uint8Array, start: number, end: number): string | undefined;
}

export interface ProtobufSource {
  readonly message: ProtoMessage;
  /** Messages that an Any may hold. */
  readonly find: FindMessage;
  /** Set: whole messages go into the column bound to this path. Missing: their fields are the table's. */
  readonly path?: string;
}

/**
 * A decoder into `columns`; what `bindings` doesn't name is skipped.
 * @throws FloeError `invalid` when a bound column can't take what the message writes (no evolution was agreed on).
 */
export function compileProtobufDecoder(
  source: ProtobufSource,
  columns: TableColumns,
  bindings: Bindings,
): ProtobufDecoder {
  const body = new Compiler(columns, bindings, source.find).root(source);
  const cursor = new ProtoCursor();
  return {
    decode(bytes, start, end) {
      cursor.reset(bytes, start, end);
      try {
        body(cursor, columns.rowCount);
        return undefined;
      } catch (failure) {
        if (!(failure instanceof RowFailure)) throw failure;
        columns.rollback();
        const within = cursor.bytes === bytes ? ` at byte ${cursor.pos - start}` : '';
        return `${failure.reason}${within}`;
      }
    },
  };
}

interface Target {
  readonly column: Column;
  readonly path: string;
  readonly ancestors: readonly ProtoMessage[];
}

/** What a field adds to its message's body. */
interface FieldCode {
  readonly arms: readonly Arm[];
  readonly endings: readonly Ending[];
}

class Compiler {
  readonly #columns: TableColumns;
  readonly #bindings: Bindings;
  readonly #find: FindMessage;

  constructor(columns: TableColumns, bindings: Bindings, find: FindMessage) {
    this.#columns = columns;
    this.#bindings = bindings;
    this.#find = find;
  }

  root({ message, path }: ProtobufSource): Body {
    if (path === undefined) return this.#fields(message, '', [message]);
    const column = this.#bound(path);
    if (column === undefined) return compileBody([], []);
    const body = this.#message(message, { column, path, ancestors: [] });
    return (cursor, row) => {
      place(column, row);
      body(cursor, row);
    };
  }

  #bound(path: string): Column | undefined {
    const id = this.#bindings.get(path);
    if (id === undefined) return undefined;
    const column = this.#columns.byId(id);
    assert(column !== undefined, `T8: field id ${id} bound to "${path}" is in the table's schema`);
    return column;
  }

  /** The body of a message whose fields are bound below `path`; `ancestors` ends with the message. */
  #fields(message: ProtoMessage, above: string, ancestors: readonly ProtoMessage[]): Body {
    const path = ancestors.length === 1 ? rootPath(above, message) : above;
    if (message.fields.length === 0) return this.#empty(path);
    const codes = message.fields.map((field) => {
      const own = numberPath(path, field.number);
      const column = this.#bound(own);
      const code =
        column === undefined
          ? { arms: [], endings: [] }
          : this.#field(field, message, { column, path: own, ancestors });
      return this.#exclusive(field, message, { code, path });
    });
    return compileBody(
      codes.flatMap(({ arms }) => arms),
      codes.flatMap(({ endings }) => endings),
    );
  }

  #empty(path: string): Body {
    const present = this.#bound(fieldPath(path, PRESENT_FIELD)) as BooleanColumn | undefined;
    const skip = compileBody([], []);
    return (cursor, row) => {
      skip(cursor, row);
      if (present === undefined) return;
      place(present, row);
      present.append(true);
    };
  }

  /** A member of a oneof takes back the others, also when it has no column itself. */
  #exclusive(
    field: ProtoField,
    message: ProtoMessage,
    { code, path }: { readonly code: FieldCode; readonly path: string },
  ): FieldCode {
    const others = rivals(field, message)
      .map((rival) => this.#bound(numberPath(path, rival.number)))
      .filter((column) => column !== undefined);
    if (others.length === 0) return code;
    const clear = (row: number) => {
      for (const column of others) if (column.length > row) column.truncate(row);
    };
    if (code.arms.length === 0) {
      const { type } = field;
      const wire = type.kind === 'message' ? DELIMITED : wireOf(type);
      const tag = field.number * 8 + wire;
      const step = (cursor: ProtoCursor, row: number) => {
        clear(row);
        cursor.skip(tag);
      };
      return { arms: [{ tag, step }], endings: [] };
    }
    const arms = code.arms.map((arm) => ({
      ...arm,
      step: (cursor: ProtoCursor, row: number) => {
        clear(row);
        arm.step(cursor, row);
      },
    }));
    return { arms, endings: code.endings };
  }

  #field(field: ProtoField, message: ProtoMessage, target: Target): FieldCode {
    const { type, number } = field;
    if (field.cardinality === 'map') return this.#map(field, target);
    if (field.cardinality === 'repeated') return this.#list(field, target);
    const { column } = target;
    const required = field.cardinality === 'required' ? [requiredEnding(field, column)] : [];
    const tag = number * 8 + DELIMITED;
    if (type.kind === 'message') {
      const numbers = new Set(rivals(field, message).map((rival) => rival.number));
      const decode = this.#message(type, target);
      const step = singleMessageStep({ number, column, decode, rivals: numbers });
      return { arms: [{ tag, step }], endings: required };
    }
    const step = this.#scalar(type, target);
    const arms = [{ tag: number * 8 + wireOf(type), step, column }];
    if (field.default === undefined || required.length > 0) return { arms, endings: required };
    return { arms, endings: [defaultEnding(type, field.default, column)] };
  }

  #scalar(type: ProtoScalarType | ProtoEnum, { column, path }: Target): Step {
    const step =
      type.kind === 'scalar'
        ? scalarStep(type.scalar, column)
        : column.type === 'string'
          ? enumStep(type, column as BytesColumn)
          : undefined;
    return (
      step ?? columnMismatch(column, told(type.kind === 'enum' ? type.name : type.scalar, path))
    );
  }

  /** Reads a message up to `cursor.end` and appends one row to its column, which has been brought to that row. */
  #message(message: ProtoMessage, target: Target): Body {
    const { column, path, ancestors } = target;
    const shape = messageShape(message, ancestors);
    switch (shape.kind) {
      case 'json': {
        if (column.type !== 'string') return columnMismatch(column, told(message.name, path));
        const text = column as BytesColumn;
        return (cursor) => text.appendText(jsonText(cursor, message, this.#find));
      }
      case 'timestamp': {
        if (column.type !== 'timestamptz' && column.type !== 'timestamptz_ns') {
          return columnMismatch(column, told(message.name, path));
        }
        return timestampBody(column as Int64Column);
      }
      case 'wrapper': {
        const type = { kind: 'scalar', scalar: shape.scalar } as const;
        const step = this.#scalar(type, target);
        const arm = { tag: 8 + wireType(shape.scalar), step, column };
        return compileBody([arm], [defaultEnding(type, zeroOf(type), column)]);
      }
      default: {
        const struct = expectColumn<StructColumn>(column, 'struct', told(message.name, path));
        const fields = this.#fields(message, path, [...ancestors, message]);
        return (cursor, row) => {
          fields(cursor, row);
          struct.end();
        };
      }
    }
  }

  #list(field: ProtoField, target: Target): FieldCode {
    const { type, number, name } = field;
    const list = expectColumn<ListColumn>(target.column, 'list', told(name, target.path));
    const path = elementPath(target.path);
    const column = this.#bound(path);
    const endings = [{ end: listEnding(list) }];
    if (column === undefined) return { arms: [], endings };
    const element = { column, path, ancestors: target.ancestors };
    const tag = number * 8 + DELIMITED;
    if (type.kind === 'message') {
      const step = elementStep(this.#message(type, element), column, 1 + type.fields.length);
      return { arms: [{ tag, step, repeats: true }], endings };
    }
    const step = this.#scalar(type, element);
    const wire = wireOf(type);
    if (wire === DELIMITED) return { arms: [{ tag, step, repeats: true }], endings };
    const cost = type.kind === 'enum' ? 1 : 0;
    const packed = { tag, step: packedStep(step, cost), repeats: true };
    return { arms: [packed, { tag: number * 8 + wire, step, repeats: true }], endings };
  }

  #map(field: ProtoField, target: Target): FieldCode {
    const { number, key, name, type } = field;
    const map = expectColumn<MapColumn>(target.column, 'map', told(name, target.path));
    const { ancestors } = target;
    const keyType = { kind: 'scalar', scalar: key! } as const;
    const keyTarget = { column: map.key, path: keyPath(target.path), ancestors };
    const valueTarget = { column: map.value, path: valuePath(target.path), ancestors };
    const arms: Arm[] = [
      { tag: 8 + wireType(key!), step: this.#scalar(keyType, keyTarget), column: map.key },
    ];
    const endings: Ending[] = [defaultEnding(keyType, zeroOf(keyType), map.key)];
    if (type.kind === 'message') {
      const decode = this.#message(type, valueTarget);
      const { column } = valueTarget;
      const none = new Set<number>();
      arms.push({
        tag: 16 + DELIMITED,
        step: singleMessageStep({ number: 2, column, decode, rivals: none }),
      });
      endings.push({ column, end: absentMessage(decode, column) });
    } else {
      const step = this.#scalar(type, valueTarget);
      arms.push({ tag: 16 + wireOf(type), step, column: map.value });
      endings.push(defaultEnding(type, zeroOf(type), map.value));
    }
    const code: MapField = { number, map, key: key!, entry: compileBody(arms, endings) };
    return {
      arms: [{ tag: number * 8 + DELIMITED, step: entryStep(code), repeats: true }],
      endings: [{ end: mapEnding(code) }],
    };
  }
}

/** The other members of a field's oneof. */
function rivals(field: ProtoField, message: ProtoMessage): ProtoField[] {
  if (field.oneof === undefined) return [];
  return message.fields.filter((other) => other !== field && other.oneof === field.oneof);
}

const wireOf = (type: ProtoScalarType | ProtoEnum) =>
  wireType(type.kind === 'enum' ? 'int32' : type.scalar);

function defaultEnding(
  type: ProtoScalarType | ProtoEnum,
  value: Parameters<typeof defaultStep>[1],
  column: Column,
): Ending {
  const append = defaultStep(type, value, column);
  const end = (_: ProtoCursor, row: number) => {
    if (column.length < row) column.padTo(row);
    append();
  };
  return { column, end };
}

function requiredEnding({ name }: ProtoField, column: Column): Ending {
  return { column, end: () => RowFailure.raise(`required field "${name}" is missing`) };
}

function listEnding(list: ListColumn): Ending['end'] {
  return (_, row) => {
    if (list.length < row) list.padTo(row);
    list.end();
  };
}

/** A map entry without its value: an empty message. */
function absentMessage(decode: Body, column: Column): Ending['end'] {
  return (cursor, row) => {
    place(column, row);
    const { end } = cursor;
    cursor.end = cursor.pos;
    decode(cursor, row);
    cursor.end = end;
  };
}

function elementStep(decode: Body, column: Column, cells: number): Step {
  return (cursor) => {
    cursor.spend(cells);
    const length = cursor.readLength();
    const outer = cursor.end;
    cursor.end = cursor.pos + length;
    decode(cursor, column.length);
    cursor.end = outer;
  };
}

/** Several numbers in one go. */
function packedStep(step: Step, cost: number): Step {
  return (cursor) => {
    const length = cursor.readLength();
    const outer = cursor.end;
    const end = cursor.pos + length;
    cursor.end = end;
    if (cost > 0) cursor.spend(length);
    while (cursor.pos < end) step(cursor);
    cursor.end = outer;
  };
}

const told = (type: string, path: string): ColumnSource => ({ source: `Protobuf ${type}`, path });
