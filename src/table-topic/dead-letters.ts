// Dead letters of one job as columns of `<table>_dlq`: coordinates, raw bytes, stage, reason, error.
// Bounded by the job: at most one per record, and its bytes are the record's.
import type { BytesColumn } from '../formats/arrow/byte-columns.ts';
import type { Column } from '../formats/arrow/column.ts';
import type { ListColumn } from '../formats/arrow/nested-columns.ts';
import type { Int32Column, Int64Column } from '../formats/arrow/scalar-columns.ts';
import { TableColumns } from '../formats/arrow/table-columns.ts';
import type { Schema } from '../formats/iceberg/types.ts';
import type { RecordCursor } from '../protocol/record-cursor.ts';
import type { Fault } from './converter.ts';
import { appendHeaders, appendMicros, type HeaderColumns, headerColumns } from './rows.ts';
import type { DeadLetterColumn } from './system-columns.ts';

/** Longest error text kept: it explains, it isn't the value. */
export const MAX_ERROR_CHARS = 1_000;

export interface DeadLetterContext {
  readonly topic: string;
  readonly table: string;
  readonly nowMs: number;
}

/** Where the dead letters of one job are gathered. */
export interface LetterSink {
  /** About how many bytes were gathered. */
  readonly byteSize: number;
  /** The record the cursor stands at. */
  add(cursor: RecordCursor, at: LetterCoordinates, fault: Fault): void;
  /** A batch, or the rest of one, that can't be taken apart: its bytes as the value. */
  addBatch(batch: Uint8Array, at: LetterCoordinates, fault: Fault): void;
}

export interface LetterCoordinates {
  readonly partition: number;
  readonly offset: number;
}

export class DeadLetters implements LetterSink {
  readonly columns: TableColumns;
  readonly #context: DeadLetterContext;
  readonly #byName: ReadonlyMap<string, Column>;
  readonly #headers: HeaderColumns | undefined;

  constructor(schema: Schema, context: DeadLetterContext) {
    this.columns = new TableColumns(schema);
    this.#context = context;
    this.#byName = new Map(
      schema.fields.map((field) => [field.name, this.columns.byId(field.id)!] as const),
    );
    this.#headers = headerColumns(this.#find<ListColumn>('headers'));
  }

  get byteSize(): number {
    return this.columns.byteSize();
  }

  add(cursor: RecordCursor, at: LetterCoordinates, fault: Fault): void {
    this.#coordinates(at, fault);
    this.#bytes('key', cursor.bytes, cursor.keyStart, cursor.keyLength);
    this.#bytes('value', cursor.bytes, cursor.valueStart, cursor.valueLength);
    const timestamp = this.#find<Int64Column>('timestamp');
    if (timestamp !== undefined) appendMicros(timestamp, cursor.timestamp);
    if (this.#headers !== undefined) {
      cursor.restartHeaders();
      appendHeaders(this.#headers, cursor);
    }
    this.columns.endRow();
  }

  addBatch(batch: Uint8Array, at: LetterCoordinates, fault: Fault): void {
    this.#coordinates(at, fault);
    this.#bytes('value', batch, 0, batch.length);
    this.columns.endRow();
  }

  #find<T extends Column>(name: DeadLetterColumn): T | undefined {
    const column = this.#byName.get(name) as T | undefined;
    if (column !== undefined && column.length < this.columns.rowCount) {
      column.padTo(this.columns.rowCount);
    }
    return column;
  }

  #coordinates(at: LetterCoordinates, fault: Fault): void {
    const { topic, table, nowMs } = this.#context;
    this.#find<BytesColumn>('topic')?.appendText(topic);
    this.#find<Int32Column>('partition')?.append(at.partition);
    this.#find<Int64Column>('offset')?.append(at.offset);
    if (fault.schemaId >= 0) this.#find<Int32Column>('schema_id')?.append(fault.schemaId);
    this.#find<BytesColumn>('stage')?.appendText(fault.stage);
    this.#find<BytesColumn>('reason')?.appendText(fault.reason);
    this.#find<BytesColumn>('error')?.appendText(fault.error.slice(0, MAX_ERROR_CHARS));
    this.#find<BytesColumn>('table')?.appendText(table);
    const failedAt = this.#find<Int64Column>('failed_at');
    if (failedAt !== undefined) appendMicros(failedAt, nowMs);
  }

  #bytes(name: 'key' | 'value', bytes: Uint8Array, start: number, length: number): void {
    if (length >= 0) this.#find<BytesColumn>(name)?.append(bytes, start, start + length);
  }
}
