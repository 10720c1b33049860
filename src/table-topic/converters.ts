// Converters: bytes of a value or key → columns. Compiled once for a table, called once a record.
// Each returns true with its columns appended, or false with the whole row rolled back and the fault filled in.
import { assert } from '../base/assert.ts';
import type { BytesColumn } from '../formats/arrow/byte-columns.ts';
import { VALUE_COLUMN } from '../formats/arrow/proposed-schema.ts';
import type { TableColumns } from '../formats/arrow/table-columns.ts';
import { isUtf8Range } from '../formats/arrow/utf8.ts';
import type { Converter, ConverterTarget, Fault } from './converter.ts';
import { compileJsonEvents } from './debezium/json-events.ts';
import { compileJsonValue } from './json-source.ts';
import { byLatestSchema, bySchemaId } from './sources/by-schema.ts';
import { placeOf } from './sources/topic-sources.ts';
import type { DeadLetterStage } from './system-columns.ts';

export function compileValue(target: ConverterTarget): Converter {
  const { columns, table, config, fault } = target;
  const transform = config['table.topic.transform.value.type'];
  const whole = transform === 'none';
  const noNull = (inner: Converter) =>
    transform === 'flatten_debezium' ? skipTombstone(fault, inner) : refuseNull(fault, inner);
  const kind = config['table.topic.convert.value.type'];
  switch (kind) {
    case 'by_schema_id':
      return noNull(bySchemaId(target, table.values, placeOf(config, 'value')));
    case 'by_latest_schema':
      return noNull(byLatestSchema(target, table.values, placeOf(config, 'value')));
    case 'json': {
      if (transform === 'flatten_debezium') return noNull(compileJsonEvents(target));
      if (!whole) return refuseNull(fault, compileJsonValue(target));
      const column = bytesColumn(columns, table.bindings.get(VALUE_COLUMN));
      return refuseNull(fault, jsonText({ columns, column, fault, stage: 'value' }));
    }
    case 'string':
    case 'raw': {
      const column = bytesColumn(columns, table.bindings.get(VALUE_COLUMN));
      assert(column !== undefined, 'T10: a whole value has its column');
      return kind === 'raw'
        ? raw(columns, column)
        : text({ columns, column, fault, stage: 'value' });
    }
  }
}

/** Undefined when the table has no key column. */
export function compileKey(target: ConverterTarget): Converter | undefined {
  const { columns, table, config, fault } = target;
  const kind = config['table.topic.convert.key.type'];
  if (kind === 'by_schema_id' || kind === 'by_latest_schema') {
    // Null keys are common: the column stays untouched and is null.
    const compile = kind === 'by_schema_id' ? bySchemaId : byLatestSchema;
    const decode = compile(target, table.keys, 'key');
    return (bytes, start, length) => length < 0 || decode(bytes, start, length);
  }
  const column = bytesColumn(columns, table.system.key);
  if (column === undefined) return undefined;
  if (kind === 'raw') return raw(columns, column);
  const options = { columns, column, fault, stage: 'key' } as const;
  return kind === 'string' ? text(options) : jsonText(options);
}

/** Append-only tables have no row for "deleted". */
function refuseNull(fault: Fault, inner: Converter): Converter {
  return (bytes, start, length) =>
    length < 0
      ? fault.set('value', 'null_value', 'the value is null and the table is append-only')
      : inner(bytes, start, length);
}

/** Debezium's null value follows a delete, which is a row already: it says nothing more. */
function skipTombstone(fault: Fault, inner: Converter): Converter {
  return (bytes, start, length) =>
    length < 0
      ? fault.set('value', 'no_row', 'a tombstone after a delete')
      : inner(bytes, start, length);
}

function bytesColumn(columns: TableColumns, id: number | undefined): BytesColumn | undefined {
  return id === undefined ? undefined : (columns.byId(id) as BytesColumn | undefined);
}

/** A null leaves the column untouched: it catches up at the next value, many nulls at a time. */
function raw(columns: TableColumns, column: BytesColumn): Converter {
  return (bytes, start, length) => {
    if (length < 0) return true;
    if (column.length < columns.rowCount) column.padTo(columns.rowCount);
    column.append(bytes, start, start + length);
    return true;
  };
}

interface TextOptions {
  readonly columns: TableColumns;
  readonly column: BytesColumn | undefined;
  readonly fault: Fault;
  readonly stage: DeadLetterStage;
}

function text({ columns, column, fault, stage }: TextOptions): Converter {
  assert(column !== undefined, 'T10: text has its column');
  return (bytes, start, length) => {
    if (length < 0) return true;
    if (!isUtf8Range(bytes, start, start + length)) {
      columns.rollback();
      return fault.set(stage, 'undecodable', 'not UTF-8 text');
    }
    if (column.length < columns.rowCount) column.padTo(columns.rowCount);
    column.append(bytes, start, start + length);
    return true;
  };
}

/** JSON kept as the text it came as, once it is known to be JSON. */
function jsonText(options: TextOptions): Converter {
  const { columns, fault, stage } = options;
  const append = text(options);
  return (bytes, start, length) => {
    if (length >= 0) {
      try {
        const view = Buffer.from(bytes.buffer, bytes.byteOffset + start, length);
        // A byte order mark is nothing: it doesn't make the text another.
        JSON.parse(view.toString('utf8').replace(/^\ufeff/, ''));
      } catch (caught) {
        columns.rollback();
        return fault.set(stage, 'not_json', (caught as Error).message);
      }
    }
    return append(bytes, start, length);
  };
}
