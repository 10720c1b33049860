// One record → one row: value and key by their converters, then the system columns, straight into column buffers.
// A record that can't be a row leaves the columns as they were and says at which stage and why.
// Compiled decoders and buffers live as long as the table they were made for; nothing is allocated per record.
// Not for: walking batches (batches.ts), converters (converters.ts), files (worker.ts).
import type { BytesColumn } from '../formats/arrow/byte-columns.ts';
import type { Column } from '../formats/arrow/column.ts';
import type { ListColumn, StructColumn } from '../formats/arrow/nested-columns.ts';
import type { ProposedStruct } from '../formats/arrow/proposed-schema.ts';
import type { Int32Column, Int64Column } from '../formats/arrow/scalar-columns.ts';
import { TableColumns } from '../formats/arrow/table-columns.ts';
import type { JsonInference } from '../formats/json/infer.ts';
import type { RecordCursor } from '../protocol/record-cursor.ts';
import { RowChange } from './change.ts';
import { type Converter, Fault, Needs } from './converter.ts';
import { compileKey, compileValue } from './converters.ts';
import type { PlainInference } from './debezium/plain-events.ts';
import type { JobConfig, JobNeeds, JobTable, TableJob } from './job.ts';
import { committedColumns } from './json-source.ts';
import { HeaderMarks } from './sources/wire.ts';
import { UpsertRows } from './upsert/upsert-rows.ts';

/** Largest millisecond timestamp whose microseconds are a safe integer. */
const SAFE_MILLIS = Math.floor(Number.MAX_SAFE_INTEGER / 1_000);

export class RowBuilder {
  readonly columns: TableColumns;
  /** What the last record does to the table's rows: an insert unless its source says otherwise. */
  readonly change = new RowChange();
  /** Why the last `append` returned false. */
  readonly fault = new Fault();
  readonly #needs = new Needs();
  readonly #value: Converter;
  readonly #key: Converter | undefined;
  readonly #topic: BytesColumn | undefined;
  /** Name of the topic, for tables that several fill. */
  #topicName = new Uint8Array();
  readonly #partition: Int32Column | undefined;
  readonly #offset: Int64Column | undefined;
  readonly #timestamp: Int64Column | undefined;
  readonly #headers: HeaderColumns | undefined;
  readonly #table: JobTable;
  /** Of an upsert table: what records do to its rows. */
  readonly upserts: UpsertRows | undefined;
  readonly #marks: HeaderMarks | undefined;

  constructor(table: JobTable, config: JobConfig) {
    const columns = new TableColumns(table.schema);
    const { system } = table;
    const find = <T extends Column>(id: number | undefined) =>
      (id === undefined ? undefined : columns.byId(id)) as T | undefined;
    this.columns = columns;
    this.#table = table;
    this.#topic = find(system.topic);
    this.#partition = find(system.partition);
    this.#offset = find(system.offset);
    this.#timestamp = find(system.timestamp);
    this.#headers = headerColumns(find<ListColumn>(system.headers));
    const marks = new HeaderMarks();
    if (namesSchemas(config)) this.#marks = marks;
    const target = {
      columns,
      table,
      config,
      marks,
      fault: this.fault,
      needs: this.#needs,
      change: this.change,
    };
    this.#value = compileValue(target);
    this.#key = compileKey(target);
    if (table.upsert !== undefined) {
      this.upserts = new UpsertRows(this, {
        upsert: table.upsert,
        isJsonKey: config['table.topic.convert.key.type'] === 'json',
        tombstonesRepeat: config['table.topic.transform.value.type'] === 'flatten_debezium',
      });
    }
  }

  /** Forgets the rows and keeps the buffers; also drops what an earlier, abandoned job left. */
  clear({ final, topic }: Pick<TableJob, 'final' | 'topic'>): void {
    this.columns.clear();
    if (this.#topic !== undefined) this.#topicName = new TextEncoder().encode(topic);
    this.#needs.clear(final);
    this.upserts?.changes.clear();
  }

  /** A record needed what the table hasn't agreed to. */
  get hasNeeds(): boolean {
    return this.#needs.any;
  }

  needs(): JobNeeds | undefined {
    if (!this.#needs.any) return undefined;
    const { valueSchemas, keySchemas, sentSchemas, json, events } = this.#needs;
    // Schemas first, they know the types: what values without one lack beside them shows when the job comes again.
    const inference = sentSchemas.size > 0 ? undefined : (json ?? events);
    return {
      kind: 'needs',
      valueSchemas: [...valueSchemas],
      keySchemas: [...keySchemas],
      deadLetterTable: false,
      ...(inference === undefined ? {} : { columns: this.#inferred(inference) }),
      ...(sentSchemas.size === 0 ? {} : { schemas: [...sentSchemas] }),
    };
  }

  #inferred(inference: JsonInference | PlainInference): ProposedStruct {
    const { schema, bindings } = this.#table;
    return inference.proposed(committedColumns(schema, bindings));
  }

  /** Appends the record's key alone, without ending a row. False: see `fault`. */
  appendKey(cursor: RecordCursor): boolean {
    return this.#key?.(cursor.bytes, cursor.keyStart, cursor.keyLength) ?? true;
  }

  /** Appends the record the cursor stands at. False: it is none of the table's, see `fault`. */
  append(cursor: RecordCursor, partition: number, offset: number): boolean {
    const { bytes } = cursor;
    this.#marks?.scan(cursor);
    if (!this.#value(bytes, cursor.valueStart, cursor.valueLength)) return false;
    if (this.#key !== undefined && !this.#key(bytes, cursor.keyStart, cursor.keyLength)) {
      return false;
    }
    this.#topic?.append(this.#topicName, 0, this.#topicName.length);
    this.#partition?.append(partition);
    this.#offset?.append(offset);
    if (this.#timestamp !== undefined) appendMicros(this.#timestamp, cursor.timestamp);
    if (this.#headers !== undefined) appendHeaders(this.#headers, cursor);
    this.columns.endRow();
    return true;
  }
}

/** Does a record say which schema it was written with? */
function namesSchemas(config: JobConfig): boolean {
  return (
    config['table.topic.convert.value.type'] === 'by_schema_id' ||
    config['table.topic.convert.key.type'] === 'by_schema_id'
  );
}

/** Milliseconds as microseconds; −1, Kafka's "none", is null. */
export function appendMicros(column: Int64Column, millis: number): void {
  if (millis === -1) column.appendNull();
  else if (Math.abs(millis) <= SAFE_MILLIS) column.append(millis * 1_000);
  // A clock gone wild, up to the end of 64 bits: still told apart, never an error.
  else column.appendBigInt(clamp64(BigInt(Math.trunc(millis)) * 1_000n));
}

const MAX_64 = 2n ** 63n - 1n;
const clamp64 = (value: bigint) => (value > MAX_64 ? MAX_64 : value < -MAX_64 ? -MAX_64 : value);

export interface HeaderColumns {
  readonly list: ListColumn;
  readonly entry: StructColumn;
  readonly key: BytesColumn;
  readonly value: BytesColumn;
}

/** The parts of a `list<struct<key, value>>` column. */
export function headerColumns(list: ListColumn | undefined): HeaderColumns | undefined {
  if (list === undefined) return undefined;
  const entry = list.element as StructColumn;
  const [key, value] = entry.children as [BytesColumn, BytesColumn];
  return { list, entry, key, value };
}

/** Order, duplicates and null values are kept; a record without headers has an empty list. */
export function appendHeaders(target: HeaderColumns, cursor: RecordCursor): void {
  if (cursor.headerCount > 0) {
    const { entry, key, value } = target;
    while (cursor.nextHeader()) {
      const row = entry.length;
      // Header names are text by protocol; a name that isn't goes in as Unicode reads it.
      const name = Buffer.from(
        cursor.bytes.buffer,
        cursor.bytes.byteOffset + cursor.headerKeyStart,
        cursor.headerKeyLength,
      );
      key.padTo(row);
      key.appendText(name.toString('utf8'));
      value.padTo(row);
      if (cursor.headerValueLength < 0) value.appendNull();
      else {
        const start = cursor.headerValueStart;
        value.append(cursor.bytes, start, start + cursor.headerValueLength);
      }
      entry.end();
    }
  }
  target.list.end();
}
